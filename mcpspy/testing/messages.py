"""Texts of a failed test about its servers: misses with what would let them match, requests that were not made, the timeline.

Control characters in whatever a peer wrote are escaped.
"""

from collections.abc import Sequence
from typing import Final

from ..replay.mock.miss import Miss, request_name
from ..transcript.model import Exchange, Transcript
from ..views.text.escape import safe_text
from ..views.text.line import plain
from ..views.text.units import counted
from ..views.timeline.miss import miss_lines
from ..views.timeline.timeline import timeline

MAX_MISSES: Final = 10
"""So many misses are explained; more are counted."""

MAX_UNPLAYED: Final = 20

MAX_LINES: Final = 60
"""A longer timeline is cut in its middle."""

WIDTH: Final = 100


def miss_report(name: str, misses: Sequence[Miss], request_count: int, how_to_record: str) -> str:
    """Say why a test fails whose server got requests that its capture, called `name`, does not have."""
    verb = "was" if len(misses) == 1 else "were"
    lines = [f"{name}: {len(misses)} of {counted(request_count, 'request')} {verb} never recorded"]
    for miss in misses[:MAX_MISSES]:
        lines += ["", *(f"  {line}" for line in miss_lines(miss, who="", advice=_advice(miss)))]
    if len(misses) > MAX_MISSES:
        lines += ["", f"  … and {len(misses) - MAX_MISSES} more"]
    return "\n".join([*lines, "", how_to_record])


def unplayed_report(name: str, unplayed: Sequence[Exchange]) -> str:
    """Name the recorded requests that were not made."""
    rows = [f"  row {exchange.row}  {safe_text(request_name(exchange.request))}" for exchange in unplayed[:MAX_UNPLAYED]]
    more = [f"  … and {len(unplayed) - MAX_UNPLAYED} more"] if len(unplayed) > MAX_UNPLAYED else []
    verb = "was" if len(unplayed) == 1 else "were"
    return "\n".join([f"{name}: {counted(len(unplayed), 'recorded request')} {verb} not made", *rows, *more])


def timeline_text(transcript: Transcript, *, live: bool) -> str:
    """Return the timeline as `mcpspy show` prints it. `live` says that it goes on."""
    if live:
        findings = [finding for finding in transcript.findings if finding.rule != "capture-incomplete"]
        transcript = Transcript(transcript.captures, transcript.rows, findings)
    lines = [plain(line) for line in timeline(transcript, width=WIDTH, stderr=False, live=live)]
    if len(lines) > MAX_LINES:
        half = MAX_LINES // 2
        lines = [*lines[:half], f"… {len(lines) - 2 * half} more lines", *lines[-half:]]
    return "\n".join(lines)


def _advice(miss: Miss) -> list[str]:
    """Spell the arguments of `serve` that would let it match; a mock advises options of its command line instead."""
    arguments = [f"ignore={list(miss.ignore)!r}"] if miss.ignore else []
    for option in miss.options:
        name, _, value = option.removeprefix("--").partition(" ")
        arguments.append(f'{name}="{value}"')
    return arguments

"""What a failed test says of its servers: the misses with what would let them match, what was left over, what was said.

Whatever peers wrote is made harmless first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..replay.mock.miss import request_name
from ..transcript.model import Transcript
from ..views.text.escape import safe_text
from ..views.text.line import plain
from ..views.text.units import counted
from ..views.timeline.miss import miss_lines
from ..views.timeline.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..replay.mock.miss import Miss
    from ..transcript.model import Exchange

MAX_MISSES: Final = 10
"""So many are told."""

MAX_LEFT: Final = 20

MAX_LINES: Final = 60
"""A timeline that is longer is cut in its middle."""

WIDTH: Final = 100


def misses_words(name: str, misses: Sequence[Miss], asked: int, anew: str) -> str:
    """Why a test fails whose server was asked what its capture, called `name`, does not have. `anew` is how to record it again."""
    lines = [f"{name}: {len(misses)} of {counted(asked, 'request')} {'was' if len(misses) == 1 else 'were'} never recorded"]
    for one in misses[:MAX_MISSES]:
        lines += ["", *(f"  {line}" for line in miss_lines(one, who="", advice=_advice(one)))]
    if len(misses) > MAX_MISSES:
        lines += ["", f"  … and {len(misses) - MAX_MISSES} more"]
    return "\n".join([*lines, "", anew])


def left_over_words(name: str, left: Sequence[Exchange]) -> str:
    """What was recorded and not asked for."""
    rows = [f"  row {one.row}  {safe_text(request_name(one.request))}" for one in left[:MAX_LEFT]]
    more = [f"  … and {len(left) - MAX_LEFT} more"] if len(left) > MAX_LEFT else []
    return "\n".join(
        [f"{name}: {counted(len(left), 'recorded request')} {'was' if len(left) == 1 else 'were'} not made", *rows, *more]
    )


def said(transcript: Transcript, *, live: bool) -> str:
    """The timeline, as `mcpspy show` has it. `live` says that it goes on."""
    if live:
        findings = [one for one in transcript.findings if one.rule != "capture-incomplete"]
        transcript = Transcript(transcript.captures, transcript.rows, findings)
    lines = [plain(line) for line in timeline(transcript, width=WIDTH, stderr=False, live=live)]
    if len(lines) > MAX_LINES:
        half = MAX_LINES // 2
        lines = [*lines[:half], f"… {len(lines) - 2 * half} more lines", *lines[-half:]]
    return "\n".join(lines)


def _advice(miss: Miss) -> list[str]:
    """What of `serve` lets it match, where a mock names its own options."""
    ways = [f"ignore={list(miss.ignore)!r}"] if miss.ignore else []
    for option in miss.options:
        name, _, value = option.removeprefix("--").partition(" ")
        ways.append(f'{name}="{value}"')
    return ways

"""A session as a report in Markdown, to be pasted into an issue: verdict, versions, findings, the calls in question, a diagram.

What was captured stands as text or as code, never as markup. Refuses to mask secrets: whoever reads the captures does that before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ..replay.identity import identity
from ..transcript.model import Exchange, Log, Outcome, Row, Source, Stray, Transcript
from .checked import worst_first
from .escape import markdown_code, markdown_fence, markdown_text, safe_text
from .exchange import whole
from .line import plain
from .logs import log_line
from .phrases import command_words, outcome_phrase
from .sequence.layout import Drawing, diagram
from .sequence.mermaid import mermaid
from .timeline import timeline
from .units import counted, duration
from .verdict import verdict

if TYPE_CHECKING:
    from ..transcript.finding import Finding

MAX_CALLS: Final = 8
"""So many calls in question are shown whole."""

MAX_CALL_LINES: Final = 60
MAX_MESSAGES: Final = 60
"""So many messages are drawn: an issue's reader looks at no more."""

MAX_ROWS: Final = 200
MAX_LOG_LINES: Final = 20
WIDTH: Final = 110

_AGAIN: Final = [
    "mcpspy export share WHAT -o bug.mcpspy --verify", "mcpspy show bug.mcpspy", "mcpspy mock bug.mcpspy",
    "mcpspy replay bug.mcpspy -- COMMAND",
]  # fmt: skip

_BAD: Final = (Outcome.ERROR, Outcome.TOOL_ERROR, Outcome.UNANSWERED, Outcome.HTTP_ERROR)


def report(transcript: Transcript, rows: list[Row], *, version: str, is_part: bool = False) -> Iterator[str]:
    """The lines of the report. `version` is mcpspy's. `is_part` says that rows were chosen, and all of them count."""
    lanes = [one.name for one in transcript.lanes]
    yield f"# MCP: {' and '.join(map(markdown_code, lanes)) or 'nobody'}"
    yield ""
    yield f"**{markdown_text(' '.join(map(plain, verdict(transcript))))}**"
    yield ""
    for source in transcript.sources:
        yield from _facts(source, [one for one in transcript.exchanges if one.capture == source.index])
    shown = {one.row for one in rows if isinstance(one, Exchange | Stray)}
    findings = [one for one in transcript.findings if not is_part or one.row in shown]
    yield from _findings(findings)
    yield from _calls(transcript, rows, findings, is_part=is_part)
    yield from _picture(transcript, rows)
    yield from _timeline(transcript, rows if is_part else [])
    yield from _logs(transcript)
    yield "## Again"
    yield ""
    yield f"Attach the capture, without its secrets; then mcpspy {version} shows it, plays it, and asks another server the same:"
    yield ""
    yield from _fenced(_AGAIN, "sh")


def _facts(source: Source, exchanges: Sequence[Exchange]) -> Iterator[str]:
    known = identity(exchanges)
    yield "| | |"
    yield "| --- | --- |"
    yield f"| client | {markdown_code(_peer(known.get('client'), source.client))} |"
    yield f"| server | {markdown_code(_peer(known.get('server'), source.server))} |"
    yield f"| revision | {markdown_code(str(known.get('revision') or '?'))} |"
    header = source.header
    if header is not None:
        yield f"| {'URL' if source.transactions else 'command'} | {markdown_code(command_words(source))} |"
        when = datetime.fromtimestamp(header.wall_ns // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        yield f"| recorded | {when} by mcpspy {markdown_text(header.mcpspy_version or '?')} |"
    yield ""


def _peer(said: Any, lane: str) -> str:
    if not isinstance(said, dict) or not said.get("name"):
        return lane
    return f"{said['name']} {said.get('version') or ''}".rstrip()


def _findings(findings: Iterable[Finding]) -> Iterator[str]:
    found = worst_first(findings)
    if not found:
        return
    yield "## What was found"
    yield ""
    for one in found:
        times = f" ×{one.count:,}" if one.count > 1 else ""
        row = f" in row {one.row}" if one.row is not None else ""
        said = f"{markdown_text(one.what)} {markdown_text(one.blame)}"
        yield f"- **{one.severity.value} {markdown_code(one.rule)}**{row}{times}: {said}"
        yield f"  → {markdown_text(one.advice)}"
    yield ""


def _calls(transcript: Transcript, rows: list[Row], findings: Iterable[Finding], *, is_part: bool) -> Iterator[str]:
    """The calls that failed, or that something was found about; of chosen rows all."""
    flagged = {one.row for one in findings}
    calls = [one for one in rows if isinstance(one, Exchange) and (is_part or one.outcome in _BAD or one.row in flagged)]
    if not calls:
        return
    yield "## The calls in question"
    yield ""
    for one in calls[:MAX_CALLS]:
        took = "" if one.duration_ns is None else f" after {duration(one.duration_ns)}"
        words = markdown_code(f"{one.method} {one.target or ''}".rstrip())
        yield f"### Row {one.row}: {words} {outcome_phrase(one).word}{took}"
        yield ""
        lines = [plain(line) for line in whole(transcript, one, width=WIDTH, stderr=False)]
        more = len(lines) - MAX_CALL_LINES
        yield from _fenced(lines if more <= 0 else [*lines[:MAX_CALL_LINES], f"… {counted(more, 'more line')}"])
    if len(calls) > MAX_CALLS:
        yield f"… and {counted(len(calls) - MAX_CALLS, 'more call')}."
        yield ""


def _picture(transcript: Transcript, rows: list[Row]) -> Iterator[str]:
    yield "## Who said what"
    yield ""
    yield from _fenced(list(mermaid(diagram(transcript, rows, Drawing(max_messages=MAX_MESSAGES)))), "mermaid")


def _timeline(transcript: Transcript, rows: list[Row]) -> Iterator[str]:
    lines = [plain(line) for line in timeline(transcript, width=WIDTH, rows=_bounds(rows), stderr=False, zone=UTC)]
    more = len(lines) - MAX_ROWS
    yield "<details><summary>The timeline</summary>"
    yield ""
    yield from _fenced(lines if more <= 0 else [*lines[:MAX_ROWS], f"… {counted(more, 'more line')}"])
    yield "</details>"
    yield ""


def _bounds(rows: list[Row]) -> tuple[int, int] | None:
    numbers = [one.row for one in rows if isinstance(one, Exchange | Stray)]
    return (min(numbers), max(numbers)) if numbers else None


def _logs(transcript: Transcript) -> Iterator[str]:
    logs = [row for row in transcript.rows if isinstance(row, Log)][-MAX_LOG_LINES:]
    if logs:
        yield "<details><summary>The last lines on stderr</summary>"
        yield ""
        yield from _fenced([safe_text(plain(log_line(one.raw, WIDTH))) for one in logs])
        yield "</details>"
        yield ""


def _fenced(lines: list[str], language: str = "text") -> Iterator[str]:
    fence = markdown_fence(lines)
    yield f"{fence}{language}"
    yield from lines
    yield fence
    yield ""

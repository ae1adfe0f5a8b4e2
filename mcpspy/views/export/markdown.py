"""A session as a report in Markdown, to be pasted into an issue: summary, versions, findings, the calls in question, a diagram.

What was captured stands as text or as code, never as markup. Refuses to mask secrets: whoever reads the captures does that before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from ...replay.compare.server import identity
from ...transcript.findings.rule import Severity
from ...transcript.model import CaptureInfo, Exchange, Log, ModelCall, Numbered, Outcome, Row, Transcript, UnpairedMessage
from ..check.model import worst_first
from ..sequence.layout import diagram
from ..sequence.mermaid import mermaid
from ..text.escape import markdown_code, markdown_fence, markdown_text, safe_text
from ..text.line import plain
from ..text.units import counted, duration, wall_time
from ..timeline.exchange import row_lines
from ..timeline.logs import log_line
from ..timeline.phrases import command_words, outcome_phrase
from ..timeline.summary import summary
from ..timeline.timeline import timeline

if TYPE_CHECKING:
    from ...transcript.findings.rule import Finding
    from ...transcript.llm.tool_trips import ToolTrip
    from ..text.line import Line

MAX_CALLS: Final = 8
"""So many calls in question are shown whole."""

MAX_RUNS: Final = 20
MAX_CALL_LINES: Final = 60
MAX_DRAWN_ROWS: Final = 30
"""So many rows are drawn: an issue's reader looks at no more. Of more, those around the calls in question."""

AROUND: Final = 3
"""So many rows before and behind each of them are drawn too, and so many at the beginning."""

MAX_ROWS: Final = 100
"""So many rows the timeline has: of more, it begins shortly before the first call in question."""

MAX_LINES: Final = 200
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
    yield f"**{markdown_text(' '.join(map(plain, summary(transcript))))}**"
    yield ""
    for capture in transcript.captures:
        if capture.is_model:
            yield from _model_facts(transcript, capture)
        else:
            yield from _facts(capture, [one for one in transcript.exchanges if one.capture == capture.index])
    found = _tool_trips(transcript)
    yield from _asked(transcript, found)
    shown = {one.row for one in rows if isinstance(one, Exchange | UnpairedMessage)}
    findings = [one for one in transcript.findings if not is_part or one.row in shown]
    yield from _findings(findings)
    calls = _in_question(rows, findings, is_part=is_part)
    yield from _calls(transcript, calls, found)
    yield from _picture(transcript, rows, calls)
    yield from _timeline(transcript, rows, calls, is_part=is_part)
    yield from _logs(transcript)
    yield "## Again"
    yield ""
    yield f"Attach the capture, without its secrets; then mcpspy {version} shows it, plays it, and asks another server the same:"
    yield ""
    yield from _fenced(_AGAIN, "sh")


def _facts(capture: CaptureInfo, exchanges: Sequence[Exchange]) -> Iterator[str]:
    known = identity(exchanges)
    yield "| | |"
    yield "| --- | --- |"
    yield f"| client | {markdown_code(_peer(known.get('client'), capture.client))} |"
    yield f"| server | {markdown_code(_peer(known.get('server'), capture.server))} |"
    yield f"| revision | {markdown_code(str(known.get('revision') or '?'))} |"
    yield from _recorded(capture)


def _model_facts(transcript: Transcript, capture: CaptureInfo) -> Iterator[str]:
    calls = [one for one in transcript.model_calls if one.capture == capture.index]
    yield "| | |"
    yield "| --- | --- |"
    yield f"| client | {markdown_code(capture.client)} |"
    for name, method in dict.fromkeys((one.model, one.method) for one in calls):
        yield f"| model | {markdown_code(name or '?')} by {markdown_code(method)} |"
    yield from _recorded(capture)


def _recorded(capture: CaptureInfo) -> Iterator[str]:
    header = capture.header
    if header is not None:
        yield f"| {'URL' if capture.transactions else 'command'} | {markdown_code(command_words(capture))} |"
        when = wall_time(header.wall_ns, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        yield f"| recorded | {when} by mcpspy {markdown_text(header.mcpspy_version or '?')} |"
    yield ""


def _peer(said: Any, lane: str) -> str:
    if not isinstance(said, dict) or not said.get("name"):
        return lane
    return f"{said['name']} {said.get('version') or ''}".rstrip()


def _tool_trips(transcript: Transcript) -> list[ToolTrip]:
    if not any(capture.is_model for capture in transcript.captures):
        return []
    from ...transcript.llm.tool_trips import tool_trips  # and all that understands models, which other reports do not wait for

    return tool_trips(transcript)


def _asked(transcript: Transcript, tool_trips: list[ToolTrip]) -> Iterator[str]:
    """What users asked for, and whose time it took."""
    if not any(capture.is_model for capture in transcript.captures):
        return
    from ...transcript.llm.agent_runs import agent_runs
    from ..sequence.model_calls import run_words

    found = agent_runs(transcript, tool_trips)
    if not found:
        return
    yield "## What was asked"
    yield ""
    for one in found[:MAX_RUNS]:
        words = f"{counted(len(one.calls), 'model call')}, {counted(len(one.tool_trips), 'tool use')}"
        yield f"- {markdown_text(run_words(one))} ({words})"
    if len(found) > MAX_RUNS:
        yield f"- … and {counted(len(found) - MAX_RUNS, 'more question')}"
    yield ""


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


def _in_question(rows: list[Row], findings: Iterable[Finding], *, is_part: bool) -> list[Exchange | ModelCall]:
    """The calls that failed, or that a warning or worse is about; of chosen rows all."""
    flagged = {one.row for one in findings if one.severity is not Severity.INFO}
    asked = (one for one in rows if isinstance(one, Exchange | ModelCall))
    return [one for one in asked if is_part or one.outcome in _BAD or one.row in flagged]


def _calls(transcript: Transcript, calls: list[Exchange | ModelCall], tool_trips: list[ToolTrip]) -> Iterator[str]:
    if not calls:
        return
    yield "## The calls in question"
    yield ""
    for one in calls[:MAX_CALLS]:
        took = "" if one.duration_ns is None else f" after {duration(one.duration_ns)}"
        words = markdown_code(f"{one.method} {one.target or ''}".rstrip())
        word = one.outcome.value if isinstance(one, ModelCall) else outcome_phrase(one).word
        yield f"### Row {one.row}: {words} {word}{took}"
        yield ""
        yield from _fenced(_cut([plain(line) for line in _whole(transcript, one, tool_trips)], MAX_CALL_LINES))
    if len(calls) > MAX_CALLS:
        yield f"… and {counted(len(calls) - MAX_CALLS, 'more call')}."
        yield ""


def _whole(transcript: Transcript, row: Exchange | ModelCall, tool_trips: list[ToolTrip]) -> Iterable[Line]:
    if isinstance(row, Exchange):
        return row_lines(transcript, row, width=WIDTH, stderr=False)
    from ..timeline.model_call import model_call_lines

    return model_call_lines(transcript, row, tool_trips, width=WIDTH)


def _picture(transcript: Transcript, rows: list[Row], calls: list[Exchange | ModelCall]) -> Iterator[str]:
    drawn = _drawn(rows, calls)
    yield "## Who said what"
    yield ""
    if len(drawn) < len(rows):
        shown, there = (sum(isinstance(one, Numbered) for one in some) for some in (drawn, rows))
        yield f"{counted(shown, 'row')} of {there:,}{', those around the calls in question' if calls else ''}."
        yield ""
    yield from _fenced(list(mermaid(diagram(transcript, drawn))), "mermaid")


def _drawn(rows: list[Row], calls: list[Exchange | ModelCall]) -> list[Row]:
    """Of many rows the first, and those around calls in question."""
    if len(rows) <= MAX_DRAWN_ROWS:
        return rows
    if not calls:
        return rows[:MAX_DRAWN_ROWS]
    asked = {one.row for one in calls[:MAX_CALLS]}
    places = [at for at, one in enumerate(rows) if isinstance(one, Exchange | ModelCall) and one.row in asked]
    wanted = set(range(AROUND)).union(*(range(max(0, at - AROUND), at + AROUND + 1) for at in places))
    return [rows[at] for at in sorted(wanted) if at < len(rows)]


def _timeline(transcript: Transcript, rows: list[Row], calls: list[Exchange | ModelCall], *, is_part: bool) -> Iterator[str]:
    numbers = [one.row for one in rows if isinstance(one, Numbered)]
    first = next((at for at, number in enumerate(numbers) if calls and number >= calls[0].row), 0)
    begin = max(0, min(first - AROUND, len(numbers) - MAX_ROWS))
    shown = numbers[begin : begin + MAX_ROWS]
    bounds = (min(shown), max(shown)) if shown and (is_part or len(shown) < len(numbers)) else None
    lines = [plain(line) for line in timeline(transcript, width=WIDTH, rows=bounds, stderr=False, zone=UTC)]
    left_out = len(numbers) - len(shown)
    yield "<details><summary>The timeline</summary>"
    yield ""
    yield from _fenced([*_cut(lines, MAX_LINES), *([f"{counted(left_out, 'row')} left out"] if left_out else [])])
    yield "</details>"
    yield ""


def _cut(lines: list[str], limit: int) -> list[str]:
    more = len(lines) - limit
    return lines if more <= 0 else [*lines[:limit], f"… {counted(more, 'more line')}"]


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

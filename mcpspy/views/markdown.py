"""A transcript as a report in Markdown, for an issue: summary, versions, findings, failed calls, a diagram, the timeline.

Captured text is written as text or as code, never as markup. Secrets are not masked here; the reader of the captures does that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from ..replay.compare.server import identity
from ..transcript.findings.rule import Finding, Severity
from ..transcript.model import CaptureInfo, Exchange, Log, ModelCall, Numbered, Outcome, Row, Transcript, UnpairedMessage
from .check.model import worst_first
from .sequence.layout import diagram
from .sequence.mermaid import fitting, mermaid
from .text.escape import markdown_code, markdown_fence, markdown_text, safe_text
from .text.line import Line, plain
from .text.units import counted, duration, wall_time
from .timeline.exchange import row_lines
from .timeline.findings import rows_words
from .timeline.logs import log_line
from .timeline.phrases import command_words, outcome_phrase
from .timeline.summary import summary
from .timeline.timeline import timeline

if TYPE_CHECKING:
    from ..transcript.llm.tool_trips import ToolTrip

MAX_CALLS: Final = 8
"""The most suspect calls shown in full. A call is suspect if it failed, or a warning or an error is about it."""

MAX_RUNS: Final = 20
MAX_CALL_LINES: Final = 60
MAX_DRAWN_ROWS: Final = 30
"""The most rows in the diagram, because an issue should be short. Of more, those around the suspect calls."""

AROUND: Final = 3
"""The number of rows drawn before and after each suspect call, and at the beginning."""

MAX_ROWS: Final = 100
"""The most rows in the timeline. With more, it begins shortly before the first suspect call."""

MAX_LINES: Final = 200
MAX_LOG_LINES: Final = 20
WIDTH: Final = 110

_AGAIN: Final = [
    "mcpspy export share WHAT -o bug.mcpspy --verify", "mcpspy show bug.mcpspy", "mcpspy mock bug.mcpspy",
    "mcpspy replay bug.mcpspy -- COMMAND",
]  # fmt: skip

_BAD: Final = (Outcome.ERROR, Outcome.TOOL_ERROR, Outcome.UNANSWERED, Outcome.HTTP_ERROR)


def report(transcript: Transcript, rows: list[Row], *, version: str, is_part: bool = False) -> Iterator[str]:
    """Yield the lines of the report. `version` is mcpspy's. `is_part` says that the user selected rows, and all of them matter."""
    lanes = [lane.name for lane in transcript.lanes]
    yield f"# MCP: {' and '.join(map(markdown_code, lanes)) or 'no captures'}"
    yield ""
    yield f"**{markdown_text(' '.join(map(plain, summary(transcript))))}**"
    yield ""
    for capture in transcript.captures:
        if capture.is_model:
            yield from _model_facts(transcript, capture)
        else:
            yield from _facts(capture, [exchange for exchange in transcript.exchanges if exchange.capture == capture.index])
    tool_trips = _tool_trips(transcript)
    yield from _agent_runs(transcript, tool_trips)
    shown = {row.row for row in rows if isinstance(row, Exchange | UnpairedMessage)}
    findings = [finding for finding in transcript.findings if not is_part or not shown.isdisjoint(finding.rows)]
    yield from _findings(findings)
    calls = _suspect_calls(rows, findings, is_part=is_part)
    yield from _calls(transcript, calls, tool_trips, is_part=is_part)
    yield from _picture(transcript, rows, calls)
    yield from _timeline(transcript, rows, calls, is_part=is_part)
    yield from _logs(transcript)
    yield "## How to reproduce"
    yield ""
    yield f"Attach the capture without its secrets. mcpspy {version} can then show it, mock the server, and replay it:"
    yield ""
    yield from _fenced(_AGAIN, "sh")


def _facts(capture: CaptureInfo, exchanges: Sequence[Exchange]) -> Iterator[str]:
    known = identity(exchanges)
    yield "| | |"
    yield "| --- | --- |"
    yield f"| client | {markdown_code(_peer(known.get('client'), capture.client))} |"
    yield f"| server | {markdown_code(_peer(known.get('server'), capture.server))} |"
    yield f"| revision | {markdown_code(str(known.get('revision') or '?'))} |"
    yield from _origin(capture)


def _model_facts(transcript: Transcript, capture: CaptureInfo) -> Iterator[str]:
    calls = [call for call in transcript.model_calls if call.capture == capture.index]
    yield "| | |"
    yield "| --- | --- |"
    yield f"| client | {markdown_code(capture.client)} |"
    for name, method in dict.fromkeys((call.model, call.method) for call in calls):
        yield f"| model | {markdown_code(name or '?')} by {markdown_code(method)} |"
    yield from _origin(capture)


def _origin(capture: CaptureInfo) -> Iterator[str]:
    header = capture.header
    if header is not None:
        yield f"| {'URL' if capture.transactions else 'command'} | {markdown_code(command_words(capture))} |"
        when = wall_time(header.wall_ns, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        yield f"| recorded | {when} by mcpspy {markdown_text(header.mcpspy_version or '?')} |"
    yield ""


def _peer(info: Any, lane: str) -> str:
    if not isinstance(info, dict) or not info.get("name"):
        return lane
    return f"{info['name']} {info.get('version') or ''}".rstrip()


def _tool_trips(transcript: Transcript) -> list[ToolTrip]:
    if not any(capture.is_model for capture in transcript.captures):
        return []
    from ..transcript.llm.tool_trips import tool_trips  # imports all modules about models, which other reports do not need

    return tool_trips(transcript)


def _agent_runs(transcript: Transcript, tool_trips: list[ToolTrip]) -> Iterator[str]:
    """Yield the agent runs: what users asked for, and the time of model, server and client."""
    if not any(capture.is_model for capture in transcript.captures):
        return
    from ..transcript.llm.agent_runs import agent_runs
    from .sequence.model_calls import run_words

    runs = agent_runs(transcript, tool_trips)
    if not runs:
        return
    yield "## Agent runs"
    yield ""
    for run in runs[:MAX_RUNS]:
        words = f"{counted(len(run.calls), 'model call')}, {counted(len(run.tool_trips), 'tool use')}"
        yield f"- {markdown_text(run_words(run))} ({words})"
    if len(runs) > MAX_RUNS:
        yield f"- … and {counted(len(runs) - MAX_RUNS, 'more agent run')}"
    yield ""


def _findings(findings: Iterable[Finding]) -> Iterator[str]:
    shown = worst_first(findings)
    if not shown:
        return
    yield "## Findings"
    yield ""
    for finding in shown:
        times = f" ×{finding.count:,}" if finding.count > 1 else ""
        row = f" in {rows_words(finding.rows)}" if finding.rows else ""
        words = f"{markdown_text(finding.what)} {markdown_text(finding.blame)}"
        yield f"- **{finding.severity.value} {markdown_code(finding.rule)}**{row}{times}: {words}"
        yield f"  → {markdown_text(finding.advice)}"
    yield ""


def _suspect_calls(rows: list[Row], findings: Iterable[Finding], *, is_part: bool) -> list[Exchange | ModelCall]:
    """Return the calls that failed, or that a warning or an error is about; of selected rows, all calls."""
    flagged = {row for finding in findings if finding.severity is not Severity.NOTE for row in finding.rows}
    calls = (row for row in rows if isinstance(row, Exchange | ModelCall))
    return [call for call in calls if is_part or call.outcome in _BAD or call.row in flagged]


def _calls(
    transcript: Transcript, calls: list[Exchange | ModelCall], tool_trips: list[ToolTrip], *, is_part: bool
) -> Iterator[str]:
    if not calls:
        return
    yield f"## {'Calls' if is_part else 'Calls with problems'}"
    yield ""
    for call in calls[:MAX_CALLS]:
        took = "" if call.duration_ns is None else f" after {duration(call.duration_ns)}"
        words = markdown_code(f"{call.method} {call.target or ''}".rstrip())
        word = call.outcome.value if isinstance(call, ModelCall) else outcome_phrase(call).word
        yield f"### Row {call.row}: {words} {word}{took}"
        yield ""
        yield from _fenced(_cut([plain(line) for line in _whole(transcript, call, tool_trips)], MAX_CALL_LINES))
    if len(calls) > MAX_CALLS:
        yield f"… and {counted(len(calls) - MAX_CALLS, 'more call')}."
        yield ""


def _whole(transcript: Transcript, row: Exchange | ModelCall, tool_trips: list[ToolTrip]) -> Iterable[Line]:
    if isinstance(row, Exchange):
        return row_lines(transcript, row, width=WIDTH, stderr=False)
    from .timeline.model_call import model_call_lines

    return model_call_lines(transcript, row, tool_trips, width=WIDTH)


def _picture(transcript: Transcript, rows: list[Row], calls: list[Exchange | ModelCall]) -> Iterator[str]:
    drawn = _drawn(rows, calls)
    yield "## Sequence diagram"
    yield ""
    if len(drawn) < len(rows):
        shown, total = (sum(isinstance(row, Numbered) for row in some) for some in (drawn, rows))
        yield f"{counted(shown, 'row')} of {total:,}{', around the calls above' if calls else ''}."
        yield ""
    yield from _fenced(list(mermaid(fitting(diagram(transcript, drawn)))), "mermaid")


def _drawn(rows: list[Row], calls: list[Exchange | ModelCall]) -> list[Row]:
    """Return the rows of the diagram: all, or the first ones and those around the suspect calls."""
    if len(rows) <= MAX_DRAWN_ROWS:
        return rows
    if not calls:
        return rows[:MAX_DRAWN_ROWS]
    numbers = {row.row for row in calls[:MAX_CALLS]}
    suspect = [at for at, row in enumerate(rows) if isinstance(row, Exchange | ModelCall) and row.row in numbers]
    wanted = set(range(AROUND)).union(*(range(max(0, at - AROUND), at + AROUND + 1) for at in suspect))
    return [rows[at] for at in sorted(wanted) if at < len(rows)]


def _timeline(transcript: Transcript, rows: list[Row], calls: list[Exchange | ModelCall], *, is_part: bool) -> Iterator[str]:
    numbers = [row.row for row in rows if isinstance(row, Numbered)]
    first = next((at for at, number in enumerate(numbers) if calls and number >= calls[0].row), 0)
    begin = max(0, min(first - AROUND, len(numbers) - MAX_ROWS))
    shown = numbers[begin : begin + MAX_ROWS]
    bounds = (min(shown), max(shown)) if shown and (is_part or len(shown) < len(numbers)) else None
    lines = [plain(line) for line in timeline(transcript, width=WIDTH, rows=bounds, stderr=False, zone=UTC)]
    left_out = len(numbers) - len(shown)
    yield "<details><summary>Timeline</summary>"
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
        yield "<details><summary>Last lines of stderr</summary>"
        yield ""
        yield from _fenced([safe_text(plain(log_line(log.raw, WIDTH))) for log in logs])
        yield "</details>"
        yield ""


def _fenced(lines: list[str], language: str = "text") -> Iterator[str]:
    fence = markdown_fence(lines)
    yield f"{fence}{language}"
    yield from lines
    yield fence
    yield ""

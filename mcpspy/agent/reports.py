"""The answers of the tools that look at captures: recordings, timelines, rows, findings and comparisons, a page at a time."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ..errors import AgentToolError, PathError
from ..json_path import steps_of
from ..replay.compare.compare import Comparison
from ..transcript.filter.filter import filter_of, filter_rows
from ..transcript.findings.rule import WORST_FIRST, Finding, Unchecked
from ..transcript.model import Exchange, Log, ModelCall, Numbered, Row, Transcript
from ..views.compare.comparison import comparison_lines
from ..views.json.comparisons import comparison_summary
from ..views.json.rows import finding_object
from ..views.listing import CaptureState, RecordingLine, listing
from ..views.text.escape import decoded, model_text
from ..views.text.line import Line, plain
from ..views.text.units import counted
from ..views.timeline.details import Detail
from ..views.timeline.exchange import messages_of, row_lines
from ..views.timeline.findings import rows_words
from ..views.timeline.summary import capture_lines, summary
from ..views.timeline.timeline import timeline_machine
from ..wire.json_spans import span_at
from .answers import Fence, Page, ToolAnswer, more_words, named, page_members, page_of, short_lines
from .source import Mask, ReplayRun, SelectedTranscript

WIDTH: Final = 160
"""The cells of a line of a timeline."""

MAX_PAGE_ROWS: Final = 500
"""The most rows of a page, whatever the budget."""

MAX_PAGE_FINDINGS: Final = 200
MAX_EVIDENCE_ROWS: Final = 20
"""The most findings of a page, and for each the most rows that are searched for secrets which its words may quote."""


def recordings_answer(recordings: Sequence[RecordingLine], mask: Mask, first: int, max_tokens: int, fence: Fence) -> ToolAnswer:
    """List recordings, the newest first."""
    if not recordings:
        text = "Nothing has been recorded yet. Start a server with: mcpspy run -- COMMAND"
        return ToolAnswer(text, {"recordings": []})
    texts = [_text(listing([recording], [], width=None), mask) for recording in recordings]
    lines, next_cursor = page_of(texts, first, max_tokens)
    shown = recordings[first : first + len(lines)]
    text = f"{counted(len(recordings), 'recording')}, the newest first. @ is the newest, @1 the one before it.\n"
    text += fence.around(lines) + more_words(next_cursor, len(recordings) - first - len(lines), "recordings")
    return ToolAnswer(text, {"recordings": [_recording(recording, mask) for recording in shown], **page_members(next_cursor)})


def _recording(recording: RecordingLine, mask: Mask) -> dict[str, Any]:
    return {
        "what": recording.address or f"@{recording.id}",
        "id": recording.id,
        "live": any(capture.state is CaptureState.LIVE for capture in recording.captures),
        "messages": sum(capture.messages for capture in recording.captures),
        "captured": {
            "client": _clean(recording.client, mask),
            "servers": [_clean(capture.label, mask) for capture in recording.captures],
        },
    }


def timeline_answer(selected: SelectedTranscript, expression: str, first: int, max_tokens: int, fence: Fence) -> ToolAnswer:
    """Show rows, those that match a filter or all, from the `first` one on."""
    transcript, rows = selected.transcript, selected.rows
    condition = filter_of([expression]) if expression else None
    if condition is not None:
        rows = filter_rows(condition, transcript, rows).rows
    candidates = list(rows[first : first + MAX_PAGE_ROWS])
    mask = selected.mask_of(candidates)
    machine = timeline_machine(transcript, candidates, WIDTH, Detail.PARAMS, None, stderr=True, fold=False)
    head = [] if first else [*summary(transcript, live=selected.live), *capture_lines(transcript, None)]
    page, shown = Page(max_tokens), 0
    page.add(_text([*head, machine.columns.header()], mask))
    for row in candidates:
        if not page.add(_text(machine.feed(row), mask)):
            break
        shown += 1
    left = len(rows) - first - shown
    next_cursor = first + shown if left else None
    text = f"{counted(len(rows), 'row')} of {named(selected.what)}" + (" match the filter" if expression else "")
    text += ", still recorded" if selected.live else ""
    text += ". ⚑ marks rows with a finding. See a row in full with the tool row.\n" + fence.around(page.texts)
    content = {
        "what": named(selected.what),
        "live": selected.live,
        "total": len(rows),
        "rows": [_row(row, transcript, mask) for row in candidates[:shown]],
    }
    return ToolAnswer(text + more_words(next_cursor, left, "rows"), content | page_members(next_cursor))


def _row(row: Row, transcript: Transcript, mask: Mask) -> dict[str, Any]:
    """Return a row in short."""
    at_ms = round(row.at_ns / 1e6, 3)
    if not isinstance(row, Numbered):
        captured = {"stderr": _clean(decoded(row.raw[:200]), mask)} if isinstance(row, Log) else {}
        return {"row": None, "at_ms": at_ms, "captured": captured}
    members: dict[str, Any] = {"row": row.row, "at_ms": at_ms}
    captured = {"server": transcript.captures[row.capture].server}
    if isinstance(row, Exchange | ModelCall):
        duration_ns = row.duration_ns
        members |= {"outcome": row.outcome.value, "took_ms": None if duration_ns is None else round(duration_ns / 1e6, 3)}
    if isinstance(row, Exchange):
        captured |= {"method": row.method, "target": row.target or ""}
    return {**members, "captured": {name: _clean(text, mask) for name, text in captured.items() if text}}


def row_answer(selected: SelectedTranscript, path: str, first: int, max_tokens: int, fence: Fence) -> ToolAnswer:
    """Show one row in full, or the value at a JSON path of it."""
    number = selected.first_row
    row = None if number is None else selected.transcript.row(number)
    if row is None:
        raise AgentToolError("No row is named", "Append its number to what, as in @:7.")
    mask = selected.mask_of([row])
    if path:
        whole = mask(_value_at(row, path))
        title = f"The value at that path of row {number} of {named(selected.what)}"
    else:
        whole = _text(row_lines(selected.transcript, row, width=None), mask)
        title = f"Row {number} of {named(selected.what)}"
    lines, next_cursor = page_of(list(short_lines(whole)), first, max_tokens)
    total = whole.count("\n") + 1
    text = f"{title}.\n{fence.around(lines)}"
    if next_cursor is not None:
        text += f'\nMore follows: call again with cursor "{next_cursor}", or with a path such as result.content[0].text.'
    content = {"what": named(selected.what), **_row(row, selected.transcript, mask), "lines": total} | page_members(next_cursor)
    content["captured"] = {**content["captured"], "text": model_text("\n".join(lines))}
    return ToolAnswer(text, content)


def _value_at(row: Numbered, path: str) -> str:
    """Return the value at a path of one of the row's messages, the answer first. Raises: AgentToolError."""
    try:
        steps = steps_of(path)
    except PathError as error:
        raise AgentToolError(
            "This is no path", "Write one as result.content[0].text.", f"{path}: {error.reason} {error.advice}"
        ) from error
    for message in reversed(messages_of(row)):
        span = span_at(message.raw, steps)
        if span is not None:
            return _readable(message.raw[span[0] : span[1]])
    raise AgentToolError(f"Row {row.row} does not have it", "Call row without a path to see what it has.", f"has no {path}")


def _readable(raw: bytes) -> str:
    """Spell a JSON value for a reader: a string without quotes and escapes, others as they were."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return decoded(raw)
    return value if isinstance(value, str) else decoded(raw)


def findings_answer(selected: SelectedTranscript, rule: str, first: int, max_tokens: int, fence: Fence) -> ToolAnswer:
    """Report findings, the worst first: culprit, rows of evidence, what happened and what to do."""
    found = sorted(selected.transcript.findings, key=lambda finding: (WORST_FIRST.index(finding.severity), finding.at_ns))
    found = [finding for finding in found if not rule or finding.rule == rule]
    if len(selected.rows) < len(selected.transcript.rows):
        numbers = {row.row for row in selected.rows if isinstance(row, Numbered)}
        found = [finding for finding in found if not numbers.isdisjoint(finding.rows)]
    mask = selected.mask_of(_evidence(found[first : first + MAX_PAGE_FINDINGS], selected.transcript))
    unchecked = list(map(_unchecked_words, selected.unchecked))
    lines, next_cursor = page_of(
        [mask(_finding_text(finding)) for finding in found[: first + MAX_PAGE_FINDINGS]], first, max_tokens
    )
    if next_cursor is None and first + len(lines) < len(found):
        next_cursor = first + len(lines)
    text = (
        f"{counted(len(found), 'finding')} in {named(selected.what)}, the worst first.\n" if found else _nothing_found(selected)
    )
    text += fence.around(lines) if lines else ""
    text += more_words(next_cursor, len(found) - first - len(lines), "findings")
    text += "".join(f"\nNot everything was checked: {words}" for words in unchecked)
    shown = [_finding(finding, mask) for finding in found[first : first + len(lines)]]
    content = {"what": named(selected.what), "total": len(found), "findings": shown, "unchecked": unchecked}
    return ToolAnswer(text, content | page_members(next_cursor))


def _evidence(found: Iterable[Finding], transcript: Transcript) -> list[Row]:
    """Return rows that show findings, at most so many of each."""
    rows = (transcript.row(number) for finding in found for number in finding.rows[:MAX_EVIDENCE_ROWS])
    return [row for row in rows if row is not None]


def _nothing_found(selected: SelectedTranscript) -> str:
    """Say that nothing was found, and which calls wait."""
    waiting = [row for row in selected.rows if isinstance(row, Exchange) and not row.over] if selected.live else []
    words = f"Nothing found in {named(selected.what)}."
    if waiting:
        words += (
            f" {counted(len(waiting), 'call')} without an answer yet: rows {', '.join(str(row.row) for row in waiting[:10])}."
        )
    return words


def _finding_text(finding: Finding) -> str:
    rows = f", {rows_words(finding.rows)}" if finding.rows else ""
    times = f", {finding.count:,} times" if finding.count > 1 else ""
    head = f"{finding.severity.value}: {finding.rule}{rows}{times}; culprit: {finding.culprit}"
    return "\n  ".join([head, finding.what, finding.blame, f"To do: {finding.advice}"])


def _finding(finding: Finding, mask: Mask) -> dict[str, Any]:
    members = finding_object(finding)
    ours = {name: members[name] for name in ("rule", "severity", "culprit", "rows", "count")}
    return {**ours, "captured": {name: _clean(members[name], mask) for name in ("what", "blame", "advice")}}


def _unchecked_words(unchecked: Unchecked) -> str:
    names = ", ".join(unchecked.rules) or "all rules"
    return f"{names}: {unchecked.reason}"


def comparison_answer(
    comparison: Comparison, mask: Mask, before: str, after: str, first: int, max_tokens: int, fence: Fence
) -> ToolAnswer:
    """Report what changed from one selection to another."""
    whole = _text(comparison_lines(comparison, width=WIDTH), mask)
    lines, next_cursor = page_of(list(short_lines(whole)), first, max_tokens)
    words = "differ" if comparison.different else "do not differ in what was asked and answered"
    both = dict.fromkeys((named(before), named(after)))
    text = f"{' and '.join(both) if len(both) > 1 else 'The two captures'} {words}.\n{fence.around(lines)}"
    if next_cursor is not None:
        text += f'\nMore follows: call again with cursor "{next_cursor}".'
    summary = comparison_summary(comparison)
    content = {"different": comparison.different, "summary": summary}
    return ToolAnswer(text, content | page_members(next_cursor))


def call_answer(done: dict[str, Any], mask: Mask, max_tokens: int, fence: Fence) -> ToolAnswer:
    """Report what became of a request that was sent; `done` is the JSON of `mcpspy call`."""
    took = "" if done["took_ns"] is None else f" in {done['took_ns'] / 1e6:.3g} ms"
    text = f"{done['outcome']}{took}." if done["outcome"] else "No answer."
    comparison = done["comparison"]
    if comparison is not None:
        differs = comparison["summary"]["different"]
        text += f" It {'differs from' if differs else 'is as'} recorded in row {done['recorded']['row']}."
    answer = (done["answer"] or {}).get("text") or done["why"] or ""
    whole = mask(answer if comparison is None or not differs else f"{answer}\n{json.dumps(comparison['servers'])}")
    lines, rest = page_of(list(short_lines(whole)), 0, max_tokens)
    text += "\n" + fence.around(lines) + ("\nMore was left out: pass more max_tokens." if rest is not None else "")
    members = {name: done[name] for name in ("exit", "outcome", "took_ns")}
    return ToolAnswer(text, {**members, "captured": {"answer": model_text("\n".join(lines))}})


REPLAYED: Final = {
    0: "The answers do not differ from those recorded",
    1: "The answers differ from those recorded",
    2: "Not everything was sent",
    4: "The server could not be started or reached, or it went away",
}
"""The meaning of each exit status of `mcpspy replay`."""


def replay_answer(run: ReplayRun, what: str, mask: Mask, max_tokens: int, fence: Fence) -> ToolAnswer:
    """Report how the answers of a live server differ from the recorded ones."""
    lines, rest = page_of(list(short_lines(mask(run.text))), 0, max_tokens)
    text = f"{named(what)} was replayed. {REPLAYED.get(run.exit, 'It was ended early')}.\n{fence.around(lines)}"
    text += "\nMore was left out: compare what with @, which is now the replay." if rest is not None else ""
    return ToolAnswer(
        text, {"exit": run.exit, "different": run.exit != 0, "captured": {"report": model_text("\n".join(lines))}}
    )


def _text(lines: Iterable[Line], mask: Mask) -> str:
    """Return lines as text, without their secrets."""
    return mask("\n".join(map(plain, lines)))


def _clean(text: str, mask: Mask) -> str:
    """Return captured text for a program: without secrets, and with invisible characters spelled out."""
    return model_text(mask(text))

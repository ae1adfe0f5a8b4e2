"""Words about the call that a row belongs to, for the row itself and for the lines above a row that is shown in full.

Polls without news are withheld, and counted in the next poll that is shown. Does not show payloads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ...transcript.calls.call import Call, CallPart
from ...transcript.mcp.codes import INPUT_REQUIRED
from ...transcript.mcp.methods import LISTEN
from ...transcript.model import CaptureInfo, Exchange, Outcome, UnpairedMessage
from ..text.escape import one_line
from ..text.line import Line, fitted, joined
from ..text.units import SECOND_NS, counted, duration
from .phrases import Phrase, outcome_phrase

if TYPE_CHECKING:
    from ...transcript.calls.references import TaskFacts

MAX_PARTS = 40
"""The most lines of a call shown above one of its rows; of more, those at the beginning and at the end."""

_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"

_WORDS = {
    CallPart.RESULT: "result of row {}",
    CallPart.INPUT: "input for row {}",
    CallPart.CANCEL: "cancels row {}",
    CallPart.QUESTION: "for row {}",
    CallPart.END: "ends row {}",
}


def with_call(phrase: Phrase, row: Exchange | UnpairedMessage, capture: CaptureInfo, held: int = 0) -> Phrase:
    """Add to `phrase` the part that the row plays in its call. `held` polls came before it and are not shown."""
    call = capture.calls.get(row.row)
    if call is None:
        return _unread(phrase, row, capture)
    if isinstance(row, UnpairedMessage):
        from ...transcript.calls.join import TASK_STATUSES
        from ...transcript.calls.references import task_facts

        facts = task_facts(row.message) if row.message.method in TASK_STATUSES else None
        ends = f", {_took(call, row.at_ns)} in total" if facts is None and call.ended_ns == row.at_ns else ""
        details = [phrase.detail if facts is None else _status(facts, call, row.at_ns), f"of row {call.row}{ends}"]
    else:
        phrase = part_phrase(phrase, row, call)
        details = [_part_words(row, call, held), phrase.detail]
        if call.part(row) is CallPart.POLL:
            details.reverse()
        if held:
            phrase = phrase._replace(word=f"{phrase.word} ×{held + 1}")
    return _unread(phrase._replace(detail=" · ".join(detail for detail in details if detail)), row, capture)


def _unread(phrase: Phrase, row: Exchange | UnpairedMessage, capture: CaptureInfo) -> Phrase:
    """Say how long a request or its answer waited to be read: no call is slow for that."""
    if not capture.unread or phrase.word != "ok" or isinstance(row, UnpairedMessage):
        return phrase
    from ...transcript.waiting import unread_ns

    waited_ns = unread_ns(row, capture)
    return phrase._replace(word=f"{phrase.word}, {duration(waited_ns)} unread") if waited_ns >= SECOND_NS else phrase


def part_phrase(phrase: Phrase, row: Exchange, call: Call) -> Phrase:
    """Return `phrase` with `needs input` for an interim result, and without what each poll would repeat."""
    if phrase.word != "ok" or row.response is None:
        return phrase
    if row.response.result_type == INPUT_REQUIRED:
        return Phrase("needs input", "wait", phrase.detail.removeprefix("wants "))
    if call.part(row) not in (CallPart.POLL, CallPart.CANCEL):
        return phrase
    from ...transcript.calls.references import task_facts

    facts = task_facts(row.response)
    if facts is None:
        return phrase
    if phrase.detail.startswith("wants "):
        return phrase
    return phrase._replace(detail=_status(facts, call, row.response.at_ns))


def _status(facts: TaskFacts, call: Call, at_ns: int) -> str:
    """Return a task's status and its message; with the last status, also how long the call took."""
    words = one_line(facts.status) + (f" after {_took(call, at_ns)}" if call.ended_ns == at_ns else "")
    return f"{words}, {one_line(facts.message)}" if facts.message else words


def _took(call: Call, end_ns: int) -> str:
    return duration(end_ns - call.first.at_ns)


def _part_words(row: Exchange, call: Call, held: int) -> str:
    if row is call.first:
        if row.method != LISTEN:
            return ""
        count = sum(1 for unpaired in call.notifications if unpaired.message.method != _ACKNOWLEDGED)
        return counted(count, "notification") if count else ""
    part, count = call.part(row), call.count(row)
    if part is CallPart.ROUND:
        words = f"round {count} of row {call.row}"
    elif part is CallPart.POLL:
        words = f"polls {count - held}–{count} of row {call.row}" if held else f"poll {count} of row {call.row}"
    else:
        words = _WORDS[part].format(call.row)
    if row.response is None or not (call.answered_by is row or (part is CallPart.END and call.ended_ns == row.response.at_ns)):
        return words
    return f"{words}, {_took(call, row.response.at_ns)} in total"


class PollRun(NamedTuple):
    """Polls of one task without news: the last of them, the number of polls before it, and the first."""

    last: Exchange
    before: int
    first: Exchange


class PollFolder:
    """A machine that withholds polls without news: `feed` takes a row, `take` and `close` release the withheld polls."""

    __slots__ = ("_runs", "_statuses")

    def __init__(self) -> None:
        self._runs: dict[int, PollRun] = {}
        self._statuses: dict[int, str] = {}
        """The last status of each task, by the row of its call."""

    def feed(self, row: Exchange, call: Call, *, flagged: bool) -> bool:
        """Withhold a row that is a poll without news and without a finding; return whether it was withheld."""
        before = self._statuses.get(call.row)
        self._note(row, call)
        is_news = flagged or row.outcome is not Outcome.OK or before != self._statuses.get(call.row)
        if is_news or call.part(row) is not CallPart.POLL:
            return False
        run = self._runs.get(call.row)
        self._runs[call.row] = PollRun(row, 0, row) if run is None else PollRun(row, run.before + 1, run.first)
        return True

    def take(self, call: Call) -> PollRun | None:
        """Release the withheld polls of this call."""
        return self._runs.pop(call.row, None)

    def close(self) -> list[PollRun]:
        """Release all withheld polls."""
        runs = sorted(self._runs.values(), key=lambda run: run.last.row)
        self._runs.clear()
        return runs

    def _note(self, row: Exchange, call: Call) -> None:
        if row.response is None or call.task is None:
            return
        from ...transcript.calls.references import task_facts

        facts = task_facts(row.response)
        if facts is not None:
            self._statuses[call.row] = facts.status


# --- A call above one of its rows ---


def call_lines(row: Exchange | UnpairedMessage, capture: CaptureInfo, width: int | None) -> Iterator[Line]:
    """Yield the outcome of a row's call, and the call's rows. Yields nothing where the call is this one exchange."""
    call = capture.calls.get(row.row)
    if call is None:
        return
    yield []
    yield fitted(joined([[(f"call of row {call.row}", "strong")], *_facts(call)], (" · ", "dim")), width)
    entries = _entries(call)
    if len(entries) > MAX_PARTS:
        left_out = len(entries) - MAX_PARTS
        half = MAX_PARTS // 2
        yield from (_entry(rows, call, row, width) for rows in entries[:half])
        yield [(f"    … {counted(left_out, 'more line')}", "dim")]
        entries = entries[-half:]
    yield from (_entry(rows, call, row, width) for rows in entries)


def _facts(call: Call) -> list[Line]:
    style = "wait" if call.outcome is Outcome.PENDING else ""
    outcome: Line = [("needs input" if call.needs_input else call.outcome.value, style)]
    facts = [] if call.duration_ns is None else [f"{duration(call.duration_ns)} in total"]
    facts.append(f"{duration(call.wire_ns)} on the wire")
    facts += [counted(len(call.rounds), "round")] if len(call.rounds) > 1 else []
    facts += [counted(len(call.polls), "poll")] if call.polls else []
    facts += [counted(len(call.notifications), "notification")] if call.notifications else []
    facts += [f"{call.completed_elicitations} of {counted(call.elicitations, 'URL')} done with"] if call.elicitations else []
    facts += [one_line(f"task {call.task.id} {call.task.status}".rstrip())] if call.task is not None else []
    return [outcome, *([(fact, "")] for fact in facts)]


def _entries(call: Call) -> list[list[Exchange | UnpairedMessage]]:
    """Return the call's rows in order. Consecutive polls make one entry, and so do notifications of one method."""
    rows: list[Exchange | UnpairedMessage] = sorted([*call.exchanges, *call.notifications], key=lambda row: row.row)
    entries: list[list[Exchange | UnpairedMessage]] = []
    for row in rows:
        if entries and _alike(entries[-1][-1], row, call):
            entries[-1].append(row)
        else:
            entries.append([row])
    return entries


def _alike(before: Exchange | UnpairedMessage, row: Exchange | UnpairedMessage, call: Call) -> bool:
    if isinstance(before, UnpairedMessage) or isinstance(row, UnpairedMessage):
        return (
            isinstance(before, UnpairedMessage)
            and isinstance(row, UnpairedMessage)
            and before.message.method == row.message.method
        )
    return call.part(before) is CallPart.POLL and call.part(row) is CallPart.POLL


def _entry(rows: list[Exchange | UnpairedMessage], call: Call, shown: Exchange | UnpairedMessage, width: int | None) -> Line:
    first, last = rows[0], rows[-1]
    numbers = f"row {first.row}" if first is last else f"rows {first.row}–{last.row}"
    line: Line = [("    ", ""), (f"{numbers:<12}", "strong" if shown in rows else "dim")]
    count = f" ×{len(rows)}" if len(rows) > 1 else ""
    if isinstance(last, UnpairedMessage):
        return fitted([*line, (f"{one_line(last.message.method or '')}{count}", "dim")], width)
    line.append((one_line(f"{last.method} {last.target or ''}".rstrip()) + count, ""))
    phrase = part_phrase(outcome_phrase(last), last, call)
    line.append((f"  {phrase.word}", phrase.style))
    if phrase.detail:
        line.append((f": {phrase.detail}", "dim"))
    if first is last and last.duration_ns is not None:
        line.append((f"  {duration(last.duration_ns)}", "dim"))
    return fitted(line, width)

"""What is said of the call that a row belongs to: in the row, and above the row when it is shown whole.

Polls that bring nothing new are held back, and counted in the next that does. Refuses to say what messages hold.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ...transcript.calls.call import Call, CallPart
from ...transcript.calls.join import TASK_NEWS
from ...transcript.calls.references import TaskFacts, task_facts
from ...transcript.mcp.fields import INPUT_REQUIRED
from ...transcript.mcp.methods import LISTEN
from ...transcript.model import CaptureInfo, Exchange, Outcome, UnpairedMessage
from ..text.escape import one_line
from ..text.line import Line, fitted, joined
from ..text.units import counted, duration
from .phrases import Phrase, outcome_phrase

MAX_PARTS = 40
"""So many lines of a call are shown above one of its rows; of more, those at the beginning and at the end."""

_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"

_WORDS = {
    CallPart.RESULT: "result of row {}",
    CallPart.INPUT: "input for row {}",
    CallPart.CANCEL: "cancels row {}",
    CallPart.QUESTION: "for row {}",
    CallPart.END: "ends row {}",
}


def with_call(phrase: Phrase, row: Exchange | UnpairedMessage, capture: CaptureInfo, held: int = 0) -> Phrase:
    """`phrase`, and what the row is to its call. `held` polls came before it and are not shown."""
    call = capture.calls.get(row.row)
    if call is None:
        return phrase
    if isinstance(row, UnpairedMessage):
        facts = task_facts(row.message) if row.message.method in TASK_NEWS else None
        ends = f", {_took(call, row.at_ns)} in all" if facts is None and call.ended_ns == row.at_ns else ""
        details = [phrase.detail if facts is None else _status(facts, call, row.at_ns), f"of row {call.row}{ends}"]
    else:
        phrase = part_phrase(phrase, row, call)
        details = [_part_words(row, call, held), phrase.detail]
        if call.part(row) is CallPart.POLL:
            details.reverse()
        if held:
            phrase = phrase._replace(word=f"{phrase.word} ×{held + 1}")
    return phrase._replace(detail=" · ".join(one for one in details if one))


def part_phrase(phrase: Phrase, row: Exchange, call: Call) -> Phrase:
    """`phrase`, with the word for an answer that is none yet, and without what each poll would repeat."""
    if phrase.word != "ok" or row.response is None:
        return phrase
    if row.response.result_type == INPUT_REQUIRED:
        return Phrase("needs input", "wait", phrase.detail.removeprefix("wants "))
    if call.part(row) not in (CallPart.POLL, CallPart.CANCEL) or (facts := task_facts(row.response)) is None:
        return phrase
    if phrase.detail.startswith("wants "):
        return phrase
    return phrase._replace(detail=_status(facts, call, row.response.at_ns))


def _status(facts: TaskFacts, call: Call, at_ns: int) -> str:
    """How a task stands, in its own words too; and, where that is the last word on it, after how long."""
    words = one_line(facts.status) + (f" after {_took(call, at_ns)}" if call.ended_ns == at_ns else "")
    return f"{words}, {one_line(facts.message)}" if facts.message else words


def _took(call: Call, end_ns: int) -> str:
    return duration(end_ns - call.first.at_ns)


def _part_words(row: Exchange, call: Call, held: int) -> str:
    if row is call.first:
        news = [one for one in call.notifications if one.message.method != _ACKNOWLEDGED] if row.method == LISTEN else []
        return counted(len(news), "notification") if news else ""
    part, count = call.part(row), call.count(row)
    if part is CallPart.ROUND:
        words = f"round {count} of row {call.row}"
    elif part is CallPart.POLL:
        words = f"polls {count - held}–{count} of row {call.row}" if held else f"poll {count} of row {call.row}"
    else:
        words = _WORDS[part].format(call.row)
    if row.response is None or not (call.answered_by is row or (part is CallPart.END and call.ended_ns == row.response.at_ns)):
        return words
    return f"{words}, {_took(call, row.response.at_ns)} in all"


class PollRun(NamedTuple):
    """Polls of one task that brought nothing new: the last of them, how many came before it, and the first."""

    last: Exchange
    before: int
    first: Exchange


class PollFolder:
    """Holds back polls that bring nothing new. A machine: `feed` says whether one is held, `take` and `close` let go of runs."""

    __slots__ = ("_runs", "_statuses")

    def __init__(self) -> None:
        self._runs: dict[int, PollRun] = {}
        self._statuses: dict[int, str] = {}
        """What was last said of each task, by the numbers of their calls."""

    def feed(self, row: Exchange, call: Call, *, flagged: bool) -> bool:
        """Whether this row is a poll that brings nothing new, and no finding is about it. Then it is held."""
        before = self._statuses.get(call.row)
        self._note(row, call)
        is_news = flagged or row.outcome is not Outcome.OK or before != self._statuses.get(call.row)
        if is_news or call.part(row) is not CallPart.POLL:
            return False
        run = self._runs.get(call.row)
        self._runs[call.row] = PollRun(row, 0, row) if run is None else PollRun(row, run.before + 1, run.first)
        return True

    def take(self, call: Call) -> PollRun | None:
        """The run of this call, which is held no more."""
        return self._runs.pop(call.row, None)

    def close(self) -> list[PollRun]:
        """All that is held."""
        runs = sorted(self._runs.values(), key=lambda one: one.last.row)
        self._runs.clear()
        return runs

    def _note(self, row: Exchange, call: Call) -> None:
        facts = None if row.response is None or call.task is None else task_facts(row.response)
        if facts is not None:
            self._statuses[call.row] = facts.status


# --- A call above one of its rows ---


def call_lines(row: Exchange | UnpairedMessage, capture: CaptureInfo, width: int | None) -> Iterator[Line]:
    """What the call of a row came to, and the rows that it is made of. Nothing for a row that is an exchange and no more."""
    call = capture.calls.get(row.row)
    if call is None:
        return
    yield []
    yield fitted(joined([[(f"call of row {call.row}", "strong")], *_facts(call)], (" · ", "dim")), width)
    entries = _entries(call)
    if len(entries) > MAX_PARTS:
        left_out = len(entries) - MAX_PARTS
        half = MAX_PARTS // 2
        yield from (_entry(one, call, row, width) for one in entries[:half])
        yield [(f"    … {counted(left_out, 'more line')}", "dim")]
        entries = entries[-half:]
    yield from (_entry(one, call, row, width) for one in entries)


def _facts(call: Call) -> list[Line]:
    style = "wait" if call.outcome is Outcome.PENDING else ""
    made: list[Line] = [[("needs input" if call.needs_input else call.outcome.value, style)]]
    facts = [] if call.duration_ns is None else [f"{duration(call.duration_ns)} in all"]
    facts.append(f"{duration(call.wire_ns)} on the wire")
    facts += [counted(len(call.rounds), "round")] if len(call.rounds) > 1 else []
    facts += [counted(len(call.polls), "poll")] if call.polls else []
    facts += [counted(len(call.notifications), "notification")] if call.notifications else []
    facts += [f"{call.completed_elicitations} of {counted(call.elicitations, 'URL')} done with"] if call.elicitations else []
    facts += [one_line(f"task {call.task.id} {call.task.status}".rstrip())] if call.task is not None else []
    return [*made, *([(one, "")] for one in facts)]


def _entries(call: Call) -> list[list[Exchange | UnpairedMessage]]:
    """Its rows in order: polls that follow each other in one entry, notifications of one method too."""
    rows: list[Exchange | UnpairedMessage] = sorted([*call.exchanges, *call.notifications], key=lambda one: one.row)
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

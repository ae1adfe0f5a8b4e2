"""Findings about results on their way back to the model: cut, changed, dropped, and errors that the model is not told of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ...llm.fidelity import Fidelity, fidelity, text_sizes, texts_of
from ...message import Kind, Message
from ..rule import Family, Hit, Rule, Severity, hit
from ..words import seconds
from .records import record_of
from .tool_uses import quoted

if TYPE_CHECKING:
    from ...llm.tool_trips import ToolTrip
    from .facts import ModelFacts

_USES: Final = '⇒ asks How is the weather?\n  offers forecast {"type":"object"}\n⇐ uses c1 forecast {}\n'
_CALL: Final = _USES + '→ tools/call 1 {"name":"forecast"}\n'
_LONG: Final = "Sunny in the morning, and rain in the afternoon."
_RESULT: Final = _CALL + f'← result 1 {{"content":[{{"type":"text","text":"{_LONG}"}}]}}\n'
_SAYS: Final = "\n⇐ says It is sunny."
_WELL: Final = _RESULT + "⇒ returns c1 " + _LONG + _SAYS
_FAILED: Final = _CALL + '← result 1 {"content":[{"type":"text","text":"Error: no such city"}],"isError":true}\n'

RESULT_CUT: Final = Rule(
    name="result-cut",
    title="Result cut for the model",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="The model is told only a part of a tool's result.",
    why="It answers from what it was told, and cannot know what is missing unless somebody says so.",
    blame="The client: the server sent all of it.",
    example=_RESULT + "⇒ returns c1 Sunny in the morning, and" + _SAYS,
    clean=_WELL,
    fix="Have the tool send less, in pages or on request; or raise the client's limit on results.",
)

RESULT_CHANGED: Final = Rule(
    name="result-changed",
    title="Result changed for the model",
    family=Family.MODEL,
    severity=Severity.INFO,
    what="The model is told something else than the tool's result.",
    why="A client that sums up or converts what tools return may lose what mattered.",
    blame="The client: it is all that stands between the result and the prompt.",
    example=_RESULT + "⇒ returns c1 The weather was looked up." + _SAYS,
    clean=_WELL,
    fix="Compare the two: mcpspy show of this row has what the model was told, that of the call what the server said.",
)

RESULT_DROPPED: Final = Rule(
    name="result-dropped",
    title="Result never reached the model",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="A tool was called and answered, and the model is told nothing of it, or was told before the answer came.",
    why="The model answers without what it had asked for.",
    blame="The client: the result had reached it, or it did not wait for it.",
    example=_RESULT + "⇒ asks And tomorrow?" + _SAYS,
    clean=_WELL,
    fix="Look at the client's log for what it did with the result; give slow tools more time.",
)

ERROR_HIDDEN: Final = Rule(
    name="error-hidden",
    title="Error hidden from the model",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="A tool failed, and what the model is told does not say so.",
    why="The model takes it for a result, and goes on as if the tool had worked.",
    blame="The client: the server said that it is an error.",
    example=_FAILED + "⇒ returns c1 Done." + _SAYS,
    clean=_FAILED + "⇒ returns c1 Error: no such city" + _SAYS,
    fix="Pass on the error's text and the mark where the API has one (is_error), so that the model can do something about it.",
)

RULES: Final = (RESULT_CUT, RESULT_CHANGED, RESULT_DROPPED, ERROR_HIDDEN)

_failure = re.compile(
    r"error|fail|exception|traceback|invalid|denied|refused|reject|not found|no such|cannot|can't|could not|unable|unknown"
    r"|timed? ?out|missing|not allowed|cancel|错误|失败|异常|无法|不存在|超时",
    re.IGNORECASE,
).search
"""Words by which a text says that something went wrong."""

_READ_LETTERS: Final = 4000
"""So far a text is looked at for such words."""


def find(facts: ModelFacts) -> Iterator[Hit]:
    """What the model was told of results."""
    for tool_trip in facts.tool_trips:
        result = facts.result(tool_trip)
        if result is not None and not result.unkept_bytes and tool_trip.candidates == 1:
            yield from _result(tool_trip, result)


def _result(tool_trip: ToolTrip, result: Message) -> Iterator[Hit]:
    until_ns, returned = tool_trip.until_ns, tool_trip.returned
    if until_ns is None:
        return
    if result.at_ns > until_ns:
        late = f"The model was told of {tool_trip.use.name[:80]} {seconds(result.at_ns - until_ns)} before its result came"
        yield _hit(RESULT_DROPPED, tool_trip, late + (f": {quoted(returned.text)}." if returned else "."))
    elif returned is None:
        yield _hit(
            RESULT_DROPPED,
            tool_trip,
            f"{tool_trip.use.name[:80]} was answered, and the prompt that follows does not tell of it.",
        )
    elif result.kind is Kind.ERROR or result.is_error:
        yield from _error(tool_trip, result, returned.text, is_marked=returned.is_error)
    else:
        yield from _told(tool_trip, result, returned.text)


def _told(tool_trip: ToolTrip, result: Message, text: str) -> Iterator[Hit]:
    said, had = text_sizes(text, result)
    tool = tool_trip.use.name[:80]
    match fidelity(text, result):
        case Fidelity.CUT:
            what = f"Of the result of {tool}, {had:,} bytes of text, the model is told {said:,}; it ends with {quoted(text[-80:])}."
            yield _hit(RESULT_CUT, tool_trip, what)
        case Fidelity.CHANGED:
            what = f"Instead of the result of {tool}, {had:,} bytes of text, the model is told {said:,} others: {quoted(text)}."
            yield _hit(RESULT_CHANGED, tool_trip, what)
        case Fidelity.NOTHING:
            yield _hit(
                RESULT_DROPPED,
                tool_trip,
                f"The result of {tool} has {had:,} bytes of text, and the model is told an empty one.",
            )
        case Fidelity.WHOLE:
            pass


def _error(tool_trip: ToolTrip, result: Message, text: str, *, is_marked: bool) -> Iterator[Hit]:
    if is_marked or _failure(text[:_READ_LETTERS]):
        return
    said = " ".join(texts_of(result))
    if fidelity(text, result) is Fidelity.WHOLE and said:
        what = f"{tool_trip.use.name[:80]} failed, and the model is told its text alone, which does not say so: {quoted(text)}."
        has_mark = tool_trip.returned_in is not None and tool_trip.returned_in.api == "messages"
        yield _hit(ERROR_HIDDEN, tool_trip, what, None if has_mark else Severity.INFO)  # the words are the server's
        return
    what = f"{tool_trip.use.name[:80]} failed with {quoted(said)}, and the model is told {quoted(text)}."
    yield _hit(ERROR_HIDDEN, tool_trip, what)


def _hit(rule: Rule, tool_trip: ToolTrip, what: str, severity: Severity | None = None) -> Hit:
    told_in = tool_trip.returned_in or tool_trip.next
    assert told_in is not None
    return hit(
        rule,
        at_ns=told_in.at_ns,
        capture=told_in.capture,
        number=record_of(told_in),
        row=told_in.row,
        what=what,
        culprit="client",
        severity=severity,
        group=tool_trip.use.name,
    )

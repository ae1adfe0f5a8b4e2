"""Findings about results between a server and the model: cut, changed or dropped ones, and hidden errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ....lazy_pattern import lazy_pattern
from ...llm.tool_trips import Fidelity, fidelity, text_sizes, texts_of
from ...message import Kind, Message
from ..rule import Hit, Rule, Severity, model_rule
from ..words import seconds
from .hits import hit_in_prompt
from .tool_uses import quoted_text

if TYPE_CHECKING:
    from ...llm.tool_trips import ToolTrip
    from .model_facts import ModelFacts

_USES: Final = '⇒ asks How is the weather?\n  offers forecast {"type":"object"}\n⇐ uses c1 forecast {}\n'
_CALL: Final = _USES + '→ tools/call 1 {"name":"forecast"}\n'
_LONG: Final = "Sunny in the morning, and rain in the afternoon."
_RESULT: Final = _CALL + f'← result 1 {{"content":[{{"type":"text","text":"{_LONG}"}}]}}\n'
_SAYS: Final = "\n⇐ says It is sunny."
_WELL: Final = _RESULT + "⇒ returns c1 " + _LONG + _SAYS
_FAILED: Final = _CALL + '← result 1 {"content":[{"type":"text","text":"Error: no such city"}],"isError":true}\n'

RESULT_CUT: Final = model_rule(
    name="result-cut",
    title="Result cut for the model",
    what="The model got only a part of a tool's result.",
    why="It answers from that part, and cannot know what is missing unless it is told.",
    blame="The client: the server sent the whole result.",
    example=_RESULT + "⇒ returns c1 Sunny in the morning, and" + _SAYS,
    clean=_WELL,
    advice="Have the tool return less, in pages or on request, or raise the client's limit on results.",
)

RESULT_CHANGED: Final = model_rule(
    name="result-changed",
    title="Result changed for the model",
    severity=Severity.NOTE,
    what="The model got something other than the tool's result.",
    why="A client that summarises or converts results may lose what mattered.",
    blame="The client: only it comes between the result and the prompt.",
    example=_RESULT + "⇒ returns c1 The weather was looked up." + _SAYS,
    clean=_WELL,
    advice="Compare this row in mcpspy show, which has what the model got, with the row of the call.",
)

RESULT_DROPPED: Final = model_rule(
    name="result-dropped",
    title="Result never reached the model",
    what="A tool returned a result, but the model got none, or got another one before the result came.",
    why="The model continues without the result that it asked for.",
    blame="The client: it received the result, or did not wait for it.",
    example=_RESULT + "⇒ asks And tomorrow?" + _SAYS,
    clean=_WELL,
    advice="Look in the client's log for what it did with the result, and raise its time limit for slow tools.",
)

ERROR_HIDDEN: Final = model_rule(
    name="error-hidden",
    title="Error hidden from the model",
    what="A tool failed, but what the model got does not say so.",
    why="The model takes it for a result, and continues as if the tool had worked.",
    blame="The client: the server marked the result as an error.",
    example=_FAILED + "⇒ returns c1 Done." + _SAYS,
    clean=_FAILED + "⇒ returns c1 Error: no such city" + _SAYS,
    advice="Return the error's text, and its mark where the API has one (is_error), so that the model can react.",
)

RULES: Final = (RESULT_CUT, RESULT_CHANGED, RESULT_DROPPED, ERROR_HIDDEN)

_failure = lazy_pattern(
    r"error|fail|exception|traceback|invalid|denied|refused|reject|not found|no such|cannot|can't|could not|unable|unknown"
    r"|timed? ?out|missing|not allowed|cancel|错误|失败|异常|无法|不存在|超时",
    re.IGNORECASE,
)
"""Words that report a failure."""

_READ_LETTERS: Final = 4000
"""Number of letters of a text that are searched for such words."""


def find(facts: ModelFacts) -> Iterator[Hit]:
    """Compare each result with the tool return that the model got."""
    for tool_trip in facts.tool_trips:
        result = facts.result(tool_trip)
        if result is not None and not result.unkept_bytes and tool_trip.candidates == 1:
            yield from _result(tool_trip, result)


def _result(tool_trip: ToolTrip, result: Message) -> Iterator[Hit]:
    until_ns, returned, tool = tool_trip.until_ns, tool_trip.returned, tool_trip.use.name[:80]
    if until_ns is None:
        return
    if result.at_ns > until_ns:
        words = "no result" if returned is None else f"the result {quoted_text(returned.text)}"
        early = seconds(result.at_ns - until_ns)
        yield _hit(RESULT_DROPPED, tool_trip, f"The model got {words} for {tool}, {early} before the server's response.")
    elif returned is None:
        yield _hit(RESULT_DROPPED, tool_trip, f"{tool} returned a result, but the next prompt does not have it.")
    elif result.kind is Kind.ERROR or result.is_error:
        yield from _error(tool_trip, result, returned.text, is_marked=returned.is_error)
    else:
        yield from _return(tool_trip, result, returned.text)


def _return(tool_trip: ToolTrip, result: Message, text: str) -> Iterator[Hit]:
    return_bytes, result_bytes = text_sizes(text, result)
    of_tool = f"the result of {tool_trip.use.name[:80]} ({result_bytes:,} bytes of text)"
    match fidelity(text, result):
        case Fidelity.CUT:
            what = f"Of {of_tool}, the model got {return_bytes:,} bytes, which end with {quoted_text(text[-80:])}."
            yield _hit(RESULT_CUT, tool_trip, what)
        case Fidelity.CHANGED:
            what = f"Instead of {of_tool}, the model got {return_bytes:,} other bytes: {quoted_text(text)}."
            yield _hit(RESULT_CHANGED, tool_trip, what)
        case Fidelity.NOTHING:
            yield _hit(RESULT_DROPPED, tool_trip, f"Instead of {of_tool}, the model got an empty text.")
        case Fidelity.WHOLE:
            pass


def _error(tool_trip: ToolTrip, result: Message, text: str, *, is_marked: bool) -> Iterator[Hit]:
    if is_marked or _failure.search(text[:_READ_LETTERS]):
        return
    error = " ".join(texts_of(result))
    tool = tool_trip.use.name[:80]
    if fidelity(text, result) is Fidelity.WHOLE and error:
        what = f"{tool} failed, but the model got only the text of the error, which does not say so: {quoted_text(text)}."
        has_mark = tool_trip.returned_in is not None and tool_trip.returned_in.api == "messages"
        yield _hit(ERROR_HIDDEN, tool_trip, what, None if has_mark else Severity.NOTE)  # the words are the server's
        return
    yield _hit(ERROR_HIDDEN, tool_trip, f"{tool} failed with {quoted_text(error)}, but the model got {quoted_text(text)}.")


def _hit(rule: Rule, tool_trip: ToolTrip, what: str, severity: Severity | None = None) -> Hit:
    prompt_call = tool_trip.returned_in or tool_trip.next
    assert prompt_call is not None
    return hit_in_prompt(rule, prompt_call, what, "client", severity=severity, group=tool_trip.use.name)

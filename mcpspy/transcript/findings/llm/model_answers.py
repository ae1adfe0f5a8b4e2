"""Findings about the answers of a model API: cut answers, broken or flawed streams, refused prompts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Unpack

from ....wire.json_spans import members
from ...outcome import HTTP_ERRORS, HTTP_FAILURES
from ..rule import Hit, HitDetails, Rule, Severity, model_rule
from .hits import hit_in_answer

if TYPE_CHECKING:
    from ...llm.model_call import ModelCall
    from .model_facts import ModelFacts

_ASKED: Final = "⇒ asks How is the weather?\n"
_WELL: Final = _ASKED + "⇐ says It is sunny."

ANSWER_CUT: Final = model_rule(
    name="answer-cut",
    title="Answer cut short",
    what="A model's answer ended because it reached a limit on its length or was stopped by a filter.",
    why="The rest of the answer is missing, and a tool's arguments may end in the middle of their JSON.",
    blame="The client if the prompt sets the limit, otherwise the model.",
    example=_ASKED + "⇐ says It is sunny, and in the\n  finish length",
    clean=_WELL,
    advice="Raise max_tokens, or have the client ask the model to continue.",
)

ANSWER_BROKEN: Final = model_rule(
    name="answer-broken",
    title="Answer stream broke off",
    severity=Severity.ERROR,
    what="The stream of an answer ended without its final event.",
    why="A client that does not check for that event takes a part of the answer for the whole.",
    blame="The side that closed the connection: the API by a fault, the client perhaps on purpose.",
    example=_ASKED + "⇐ streams It is\n  breaks off",
    clean=_ASKED + "⇐ streams It is sunny.\n  ends",
    advice="Have the client retry; if it happens often, check the proxies in front of the API and their timeouts.",
)

ANSWER_FLAWED: Final = model_rule(
    name="answer-flawed",
    title="Malformed answer",
    what="An answer does not have the form of its API: events are not JSON, or continue something that never began.",
    why="Clients raise an error or skip what they cannot read, and nobody notices what is missing.",
    blame="The API, or a proxy in front of it: mcpspy forwards bytes unchanged.",
    example=_ASKED + '⇐ streams It is\n  data: {"choices":[\n  ends',
    clean=_ASKED + "⇐ streams It is sunny.\n  ends",
    advice="Look at the events with mcpspy show --http, and report them to the operator of the API.",
)

MODEL_REFUSED: Final = model_rule(
    name="model-refused",
    title="Prompt refused by the API",
    what="The API answered a prompt with an error.",
    why="There is no answer, and clients retry, wait or give up without telling the user why.",
    blame="The client if the API rejects its prompt (400 to 428), or its configuration (401 to 404); else the API.",
    example=_ASKED + "⇐ 429 Too many requests",
    clean=_WELL,
    advice="Follow the error message: correct the prompt, slow down, or retry later.",
)

RULES: Final = (ANSWER_CUT, ANSWER_BROKEN, ANSWER_FLAWED, MODEL_REFUSED)

CUT: Final = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "MAX_TOKENS"}
)
"""Reasons by which APIs report that a limit on the length was reached."""

FILTERED: Final = frozenset({"content_filter", "refusal", "safety", "SAFETY"})
"""Reasons by which APIs report that a filter stopped the answer."""

UNSEEN: Final = (
    "the body was not recorded",
    "a part of the stream was not recorded",
    "records of the capture were lost",
    "the body is compressed with",
    "the body is not in its content encoding: no decoder",
    "compressed with",
    "decodes to more than",
)
"""Beginnings of flaws that are those of the recording, or of the machine that reads it, and not of the API."""

LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Members of prompts that limit the length of the answer."""

_TOO_MANY: Final = 429
_OF_ACCOUNT: Final = (401, 402, 403, 404)
"""A key that is wrong, an account that may not, a model or a path that is not there."""


def find(facts: ModelFacts) -> Iterator[Hit]:
    """Find answers that are refused, cut, broken or flawed."""
    for call in facts.calls:
        response = call.transaction.response
        if response is not None and response.injected:
            continue  # which `upstream-failed` reports
        if call.transaction.status >= HTTP_ERRORS:
            yield _refused(call)
        elif call.answer is not None:
            yield from _answer(call)


def _answer(call: ModelCall) -> Iterator[Hit]:
    answer = call.answer
    assert answer is not None
    if answer.error:
        yield _refused(call)
        return
    if answer.finish in CUT and not _is_probe(call):
        yield _cut(call, answer.finish)
    elif answer.finish in FILTERED:
        what = f"The answer of {call.target} was stopped by a filter: {answer.finish}."
        yield _hit(
            ANSWER_CUT, call, what, "api", blame="The API: it reports that a filter stopped the answer.", group=answer.finish
        )
    if len(flaws := [flaw for flaw in answer.flaws if not flaw.startswith(UNSEEN)]) < len(answer.flaws):
        return  # the missing part may have been correct
    response = call.transaction.response
    is_closed = response is not None and response.close is not None and response.close.how == "eof"
    if answer.is_whole and flaws:
        what = f"The stream of an answer of {call.target} is flawed: {flaws[0].rstrip('.')}."
        yield _hit(ANSWER_FLAWED, call, what, "api", group=flaws[0], count=len(flaws))
    elif flaws and is_closed and not answer.deltas:
        what = f"The answer of {call.target} does not have the form of its API: {flaws[0].rstrip('.')}."
        yield _hit(ANSWER_FLAWED, call, what, "api", group=flaws[0], count=len(flaws))
    elif not answer.is_whole and call.transaction.over and answer.finish not in CUT | FILTERED:
        yield _broken(call)


def _limit(call: ModelCall) -> str:
    """Return the number of tokens to which the prompt limits the answer; empty if it sets no limit."""
    fields = members(call.payload)
    return next((bytes(fields[name]).decode("utf-8", "replace") for name in LIMITS if name in fields), "")


def _is_probe(call: ModelCall) -> bool:
    """Return whether a prompt asks for one token, as clients do to check that the API answers and accepts a key."""
    return _limit(call) == "1"


def _cut(call: ModelCall, finish: str) -> Hit:
    limit = _limit(call)
    by_client = limit.isdigit()
    at_limit = f" at the {int(limit):,} tokens that the prompt allows." if by_client else "."
    what = f"The answer of {call.target} was cut ({finish}){at_limit}"
    blame = (
        "The client: its prompt sets the limit."
        if by_client
        else "The model: the limit is its own, since the prompt sets none."
    )
    return _hit(ANSWER_CUT, call, what, "client" if by_client else "model", blame=blame, group=finish)


def _broken(call: ModelCall) -> Hit:
    by = call.transaction.ended_by
    if by == "client":
        what = "The client closed the stream before the answer ended."
        blame = "The client: it closed the stream, perhaps on its user's request."
        return _hit(ANSWER_BROKEN, call, what, "client", blame=blame, severity=Severity.NOTE, group=by)
    what = f"The stream of an answer of {call.target} ended without its final event."
    if by == "server":
        return _hit(ANSWER_BROKEN, call, what, "api", blame="The API: it closed the connection.", group=by)
    blame = "Unclear: the capture does not show who closed the connection."
    return _hit(ANSWER_BROKEN, call, what, "unclear", blame=blame, group=by)


def _refused(call: ModelCall) -> Hit:
    status, answer = call.transaction.status, call.answer
    error = answer.error if answer is not None and answer.error else ""
    code = f" {status}" if status >= HTTP_ERRORS else ""
    what = f"The API answered a prompt to {call.target} with an error{code}" + (f": {error[:300]}" if error else ".")
    culprit, blame = "client" if HTTP_ERRORS <= status < HTTP_FAILURES and status != _TOO_MANY else "api", ""
    if status in _OF_ACCOUNT:
        culprit, blame = "configuration", "The configuration of the client: its key, its account, or the model that it names."
    what = what if what[-1] in ".!?" else f"{what}."
    return _hit(MODEL_REFUSED, call, what, culprit, group=f"{status} {error[:80]}", blame=blame)


def _hit(rule: Rule, call: ModelCall, what: str, culprit: str, **details: Unpack[HitDetails]) -> Hit:
    return hit_in_answer(rule, call, call.ended_ns or call.at_ns, what, culprit, **details)

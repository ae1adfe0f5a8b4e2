"""Findings about what a model's API said: answers that were cut, streams that broke or are flawed, calls that were refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ....wire.json_spans import members
from ...outcome import HTTP_ERRORS, HTTP_FAILURES
from ..rule import Family, Hit, Rule, Severity, hit
from .records import answer_record

if TYPE_CHECKING:
    from ...llm.call import ModelCall
    from .facts import ModelFacts

_ASKED: Final = "⇒ asks How is the weather?\n"
_WELL: Final = _ASKED + "⇐ says It is sunny."

ANSWER_CUT: Final = Rule(
    name="answer-cut",
    title="Answer cut short",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="A model's answer ends because a limit on its length was reached, or because a filter stopped it.",
    why="What it was about to say is missing; arguments of a tool may end in the middle of their JSON.",
    blame="Who set the limit: the client, if the prompt names one; else it is the model's own.",
    example=_ASKED + "⇐ says It is sunny, and in the\n  finish length",
    clean=_WELL,
    fix="Raise max_tokens, or have the client ask the model to go on.",
)

ANSWER_BROKEN: Final = Rule(
    name="answer-broken",
    title="Answer stream broke off",
    family=Family.MODEL,
    severity=Severity.ERROR,
    what="The stream of an answer ended without the event that ends one.",
    why="A client that does not look for that takes a part of the answer for the whole.",
    blame="Who closed the connection: the API; a client that does so has stopped the answer, which may be meant.",
    example=_ASKED + "⇐ streams It is\n  breaks off",
    clean=_ASKED + "⇐ streams It is sunny.\n  ends",
    fix="Have the client ask again; if it happens often, see what stands between it and the API, and its time limits.",
)

ANSWER_FLAWED: Final = Rule(
    name="answer-flawed",
    title="Malformed answer",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="An answer is none that its API has, or its stream has events that are no JSON, or pieces of what was never begun.",
    why="Clients raise an error, or leave out what they cannot read, and nobody sees that something is missing.",
    blame="The API, or what stands before it: mcpspy passes bytes on as they are.",
    example=_ASKED + '⇐ streams It is\n  data: {"choices":[\n  ends',
    clean=_ASKED + "⇐ streams It is sunny.\n  ends",
    fix="Look at the events with mcpspy show --http; report them to who runs the API.",
)

MODEL_REFUSED: Final = Rule(
    name="model-refused",
    title="Prompt refused by the API",
    family=Family.MODEL,
    severity=Severity.WARNING,
    what="The API answered a prompt with an error.",
    why="There is no answer; clients try again, wait, or give up without telling the user why.",
    blame="The client, which asked for what the API does not take (400 to 428); the API, if it fails or wants less traffic.",
    example=_ASKED + "⇐ 429 Too many requests",
    clean=_WELL,
    fix="Do as the error says: mend the prompt, slow down, or ask again later.",
)

RULES: Final = (ANSWER_CUT, ANSWER_BROKEN, ANSWER_FLAWED, MODEL_REFUSED)

CUT: Final = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "MAX_TOKENS"}
)
FILTERED: Final = frozenset({"content_filter", "refusal", "safety", "SAFETY"})
UNSEEN: Final = (
    "the body was not recorded",
    "a part of the stream was not recorded",
    "records of the capture were lost",
    "the body is compressed with",
    "the body is not in its content encoding: no decoder",
    "compressed with",
    "decodes to more than",
)
"""How flaws begin for which nobody but the recording, or who reads it, is to blame."""

LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""How prompts limit answers."""

_TOO_MANY: Final = 429


def find(facts: ModelFacts) -> Iterator[Hit]:
    """What is odd about the answers."""
    for call in facts.calls:
        response = call.transaction.response
        if response is not None and response.injected:
            continue  # of which `upstream-failed` tells
        if call.transaction.status >= HTTP_ERRORS:
            yield _refused(call)
        elif call.answer is not None:
            yield from _answered(call)


def _answered(call: ModelCall) -> Iterator[Hit]:
    answer = call.answer
    assert answer is not None
    if answer.error:
        yield _refused(call)
        return
    if answer.finish in CUT and not _is_probe(call):
        yield _cut(call, answer.finish)
    elif answer.finish in FILTERED:
        what = f"The answer of {call.target} was stopped: {answer.finish}."
        yield _hit(
            ANSWER_CUT, call, what, "api", blame="The API: it says that a filter stopped the answer.", group=answer.finish
        )
    if len(flaws := [one for one in answer.flaws if not one.startswith(UNSEEN)]) < len(answer.flaws):
        return  # what it lacks may well have been there
    response = call.transaction.response
    is_closed = response is not None and response.close is not None and response.close.how == "eof"
    if answer.is_whole and flaws:
        what = f"The stream of an answer of {call.target} has flaws: {flaws[0].rstrip('.')}."
        yield _hit(ANSWER_FLAWED, call, what, "api", group=flaws[0], count=len(flaws))
    elif flaws and is_closed and not answer.deltas:
        what = f"The answer of {call.target} is none that its API has: {flaws[0].rstrip('.')}."
        yield _hit(ANSWER_FLAWED, call, what, "api", group=flaws[0], count=len(flaws))
    elif not answer.is_whole and call.transaction.over and answer.finish not in CUT | FILTERED:
        yield _broken(call)


def _limit(call: ModelCall) -> str:
    """How many tokens the prompt allows; empty if it sets no limit."""
    said = members(call.payload)
    return next((bytes(said[name]).decode("utf-8", "replace") for name in LIMITS if name in said), "")


def _is_probe(call: ModelCall) -> bool:
    """Whether it asks for one token: then it was to see that the API answers at all, as clients do with a key that is new."""
    return _limit(call) == "1"


def _cut(call: ModelCall, finish: str) -> Hit:
    limit = _limit(call)
    by_client = limit.isdigit()
    what = f"The answer of {call.target} was cut ({finish})" + (
        f" at the {int(limit):,} tokens that the prompt allows." if by_client else "."
    )
    blame = "The client: its prompt sets the limit." if by_client else "The model's own limit: the prompt sets none."
    return _hit(ANSWER_CUT, call, what, "client" if by_client else "model", blame=blame, group=finish)


def _broken(call: ModelCall) -> Hit:
    by = call.transaction.ended_by
    if by == "client":
        what, blame = (
            "The client closed the stream of an answer before its end.",
            "The client, which may have been told to stop.",
        )
        return _hit(ANSWER_BROKEN, call, what, "client", blame=blame, severity=Severity.INFO, group=by)
    what = f"The stream of an answer of {call.target} ended without its last event."
    if by == "server":
        return _hit(ANSWER_BROKEN, call, what, "api", blame="The API: it closed the connection.", group=by)
    return _hit(ANSWER_BROKEN, call, what, "unclear", blame="Nobody knows who closed the connection.", group=by)


def _refused(call: ModelCall) -> Hit:
    status, answer = call.transaction.status, call.answer
    said = answer.error if answer is not None and answer.error else ""
    code = f" {status}" if status >= HTTP_ERRORS else ""
    what = f"The API answered a prompt to {call.target} with an error{code}" + (f": {said[:300]}" if said else ".")
    culprit = "client" if HTTP_ERRORS <= status < HTTP_FAILURES and status != _TOO_MANY else "api"
    return _hit(MODEL_REFUSED, call, what if what[-1] in ".!?" else f"{what}.", culprit, group=f"{status} {said[:80]}")


def _hit(
    rule: Rule,
    call: ModelCall,
    what: str,
    culprit: str,
    *,
    blame: str = "",
    severity: Severity | None = None,
    group: str = "",
    count: int = 1,
) -> Hit:
    return hit(
        rule,
        at_ns=call.ended_ns or call.at_ns,
        capture=call.capture,
        number=answer_record(call),
        row=call.row,
        what=what,
        culprit=culprit,
        blame=blame,
        severity=severity,
        group=group,
        count=count,
    )

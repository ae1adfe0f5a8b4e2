"""Hits in model calls: one constructor for prompts and one for answers, which find the record to point at.

Does not import anything that reads prompts, since the rules are loaded for transcripts without a model API too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from ..rule import Hit, HitDetails, Rule, hit

if TYPE_CHECKING:
    from ...llm.model_call import ModelCall


def hit_in_prompt(rule: Rule, call: ModelCall, what: str, culprit: str, **details: Unpack[HitDetails]) -> Hit:
    """Make a finding of `rule` about the prompt of a model call."""
    return hit(
        rule,
        at_ns=call.at_ns,
        capture=call.capture,
        number=_prompt_record(call),
        row=call.row,
        what=what,
        culprit=culprit,
        **details,
    )


def hit_in_answer(rule: Rule, call: ModelCall, at_ns: int, what: str, culprit: str, **details: Unpack[HitDetails]) -> Hit:
    """Make a finding of `rule` about the answer of a model call; it points at the request if there is no response."""
    response = call.transaction.response
    return hit(
        rule,
        at_ns=at_ns,
        capture=call.capture,
        number=_prompt_record(call) if response is None else response.record,
        row=call.row,
        what=what,
        culprit=culprit,
        **details,
    )


def _prompt_record(call: ModelCall) -> int:
    return 0 if call.transaction.request is None else call.transaction.request.record

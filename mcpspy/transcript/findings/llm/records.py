"""In which records of its capture a model call stands. Refuses to import what reads prompts: rules are loaded without a model too."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...llm.call import ModelCall


def record_of(call: ModelCall) -> int:
    """The record in which a model call begins."""
    return 0 if call.transaction.request is None else call.transaction.request.opened.number


def answer_record(call: ModelCall) -> int:
    """The record in which its answer begins; that of the call where there is none."""
    return record_of(call) if call.transaction.response is None else call.transaction.response.opened.number

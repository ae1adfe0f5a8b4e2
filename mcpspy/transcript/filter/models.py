"""What a filter asks of a model call: the models that it names, what was said. Refuses to compare, and to parse prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import ModelCall

if TYPE_CHECKING:
    from ..llm.model import Answer
    from ..model import Row
    from .facts import Subject


def models(subject: Subject) -> tuple[str, ...]:
    """The model that is asked, and the one that answered, as it calls itself."""
    row = subject.row
    if not isinstance(row, ModelCall):
        return ()
    answer = row.answer
    return (row.model,) if answer is None else (row.model, answer.model)


def answer_of(row: Row) -> Answer | None:
    """What a model answered; None where the row is no model call, and while there is none."""
    return row.answer if isinstance(row, ModelCall) else None


def said(answer: Answer | None) -> bytes:
    """What a model said: its texts, put together from deltas, and what it wants done."""
    if answer is None:
        return b""
    parts: list[str] = [answer.error]
    for turn in (answer.turn, *answer.more):
        parts += [turn.text, turn.thinking, turn.refusal]
        parts += [f"{use.name} {use.arguments}" for use in turn.uses]
    return "\n".join(filter(None, parts)).encode("utf-8", "surrogatepass")

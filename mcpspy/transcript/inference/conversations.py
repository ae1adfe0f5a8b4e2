"""Which model call goes on with which: the turns of a prompt that one before it had already.

Prompts repeat the whole conversation, so that a call of n turns has n turns and a conversation of n calls n² of them. What is kept
here of a conversation is one number for each of its turns. Refuses to hold prompts, and to look into other captures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model_call import ModelCall
    from .nouns import Prompt


class Conversations:
    """Those of one capture.

    A conversation goes on where a prompt begins with all that one before it held, or with so much of it that a turn of the model's
    is there: clients rewrite old turns, but two prompts that share no more than their beginning have nothing in common.
    """

    __slots__ = ("_answers", "_known")

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}
        """By the digest of the first so many turns: the last call that began so, and how many turns it had."""
        self._answers: dict[str, int] = {}
        """By the id of an answer: the call that it answered."""

    def feed(self, call: ModelCall, prompt: Prompt) -> None:
        """A prompt came: tell its call what it goes on with."""
        if prompt.continues:
            call.before = self._answers.get(prompt.continues, 0)
        digest, has_spoken = 0, False
        digests: list[int] = []
        for count, turn in enumerate(prompt.turns, 1):
            digest = hash((digest, turn))
            digests.append(digest)
            has_spoken = has_spoken or turn.role == "assistant"
            row, turns = self._known.get(digest, (0, 0))
            if row and not prompt.continues and (turns == count or has_spoken):
                call.before, call.added = row, count
        for digest in digests:
            self._known[digest] = call.row, len(digests)

    def answered(self, call: ModelCall, id: str) -> None:
        """An answer has this id, by which a prompt may go on with it."""
        self._answers[id] = call.row

"""Which model call goes on with which: the turns of a prompt that one before it had already.

Prompts repeat the whole conversation, so that a call of n turns has n turns and a conversation of n calls n² of them. What is kept
here of a conversation is a number or two for each of its turns. Refuses to hold prompts, and to look into other captures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .call import ModelCall
    from .model import Prompt, Turn

_INSTRUCTIONS: Final = ("system", "developer")


class _Begun(NamedTuple):
    """A prompt that began with certain turns: its call, how many turns it had in all, and whether instructions stood before these."""

    row: int
    turns: int
    is_instructed: bool


class Conversations:
    """Those of one capture.

    A conversation goes on where a prompt begins with all that one before it held, or with so much of it that a turn of the model's
    is there: clients rewrite old turns, but two prompts that share no more than their beginning have nothing in common. Of
    instructions, which some clients write anew each time, the same is asked, but that what follows has to be the model's.
    """

    __slots__ = ("_answers", "_known")

    def __init__(self) -> None:
        self._known: dict[int, _Begun] = {}
        """By the digest of the first so many turns, with instructions and without: the last call that began so."""
        self._answers: dict[str, int] = {}
        """By the id of an answer: the call that it answered."""

    def feed(self, call: ModelCall, prompt: Prompt) -> None:
        """A prompt came: tell its call what it goes on with."""
        turns = prompt.turns
        first = next((at for at, turn in enumerate(turns) if turn.role not in _INSTRUCTIONS), len(turns))
        whole, bare = _digests(turns) if first else [], _digests(turns[first:])
        if prompt.continues:
            call.before = self._answers.get(prompt.continues, 0)
        elif not self._goes_on(call, turns, whole, 0):
            self._goes_on(call, turns, bare, first)
        for digests, begin in ((whole, 0), (bare, first)):
            begun = _Begun(call.row, len(turns) - begin, is_instructed=begin > 0)
            self._known.update(dict.fromkeys(digests, begun))

    def answered(self, call: ModelCall, id: str) -> None:
        """An answer has this id, by which a prompt may go on with it."""
        self._answers[id] = call.row

    def _goes_on(self, call: ModelCall, turns: Sequence[Turn], digests: Sequence[int], begin: int) -> bool:
        """Whether a call before it began with so much of the same that this one goes on with it. The longest beginning counts."""
        has_spoken = False
        for count, digest in enumerate(digests, 1):
            at = begin + count
            has_spoken = has_spoken or turns[at - 1].role == "assistant"
            known = self._known.get(digest)
            if known is None:
                break
            is_all = known.turns == count
            if (begin or known.is_instructed) and is_all:
                is_all = at < len(turns) and turns[at].role == "assistant"
            if is_all or has_spoken:
                call.before, call.added = known.row, at
        return call.before > 0


def _digests(turns: Sequence[Turn]) -> list[int]:
    """Of the first turn, of the first two, and so on."""
    found, digest = [], 0
    for turn in turns:
        digest = hash((digest, turn))
        found.append(digest)
    return found

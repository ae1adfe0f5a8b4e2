"""Conversations: for each model call, the earlier call whose conversation its prompt continues.

A prompt repeats the whole conversation, so that n calls hold n² turns. Only one or two digests are kept of each turn, and no prompts.
Calls of other captures are not considered.

    call  turns of its prompt
    1     user: hi                                         begins a conversation
    2     user: hi  assistant: hello  user: weather?       continues call 1: begins with all of its turns
    3     user: hi  assistant: hello  user: what time?     continues call 2: shares a turn of the model's with it
    4     user: hi  user: bye                              begins a conversation: shares no turn of the model's
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .model_call import ModelCall
    from .prompt import Prompt, Turn

_INSTRUCTIONS: Final = ("system", "developer")


class _KnownPrompt(NamedTuple):
    """A prompt that began with certain turns: its call, its number of turns, and whether instructions preceded these turns."""

    row: int
    turns: int
    is_instructed: bool


class Conversations:
    """The conversations of one capture.

    A prompt continues an earlier one if it begins with all of its turns, or with some of them that include a turn of the model's:
    clients rewrite old turns, but prompts that share only a beginning without an answer have nothing in common. Some clients write
    new instructions each time; if the turns agree only without the instructions, the turn after them has to be the model's.
    """

    __slots__ = ("_answers", "_known")

    def __init__(self) -> None:
        self._known: dict[int, _KnownPrompt] = {}
        """By the digest of the first so many turns, with instructions and without: the last prompt that began so."""
        self._answers: dict[str, int] = {}
        """By the id of an answer: the row of the call that it answered."""

    def feed(self, call: ModelCall, prompt: Prompt) -> None:
        """Take in a prompt, and set the `before` and `added` of its call."""
        turns = prompt.turns
        first = next((at for at, turn in enumerate(turns) if turn.role not in _INSTRUCTIONS), len(turns))
        whole, bare = _digests(turns) if first else [], _digests(turns[first:])
        if prompt.continues:
            call.before = self._answers.get(prompt.continues, 0)
        elif not self._join(call, turns, whole, 0):
            self._join(call, turns, bare, first)
        for digests, begin in ((whole, 0), (bare, first)):
            known = _KnownPrompt(call.row, len(turns) - begin, is_instructed=begin > 0)
            self._known.update(dict.fromkeys(digests, known))

    def add_answer(self, call: ModelCall, id: str) -> None:
        """Take in the id of a call's answer, by which a prompt may continue it."""
        self._answers[id] = call.row

    def _join(self, call: ModelCall, turns: Sequence[Turn], digests: Sequence[int], begin: int) -> bool:
        """Join a call with the known prompt that shares the longest beginning, if it shares enough. Returns True if one does."""
        has_answer = False
        for count, digest in enumerate(digests, 1):
            at = begin + count
            has_answer = has_answer or turns[at - 1].role == "assistant"
            known = self._known.get(digest)
            if known is None:
                break
            is_all = known.turns == count
            if (begin or known.is_instructed) and is_all:
                is_all = at < len(turns) and turns[at].role == "assistant"
            if is_all or has_answer:
                call.before, call.added = known.row, at
        return call.before > 0


def _digests(turns: Sequence[Turn]) -> list[int]:
    """Digest the first turn, the first two, and so on."""
    digests, digest = [], 0
    for turn in turns:
        digest = hash((digest, turn))
        digests.append(digest)
    return digests

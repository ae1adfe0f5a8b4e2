"""Calls that may be meant by a name, told apart by who asks. Where two may be meant, none is.

Refuses to know what the names are. All it does takes the same time however many calls there are.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ..model import Outcome

if TYPE_CHECKING:
    from .call import Call

Name: TypeAlias = tuple[Hashable, ...]

_FAILED = frozenset((Outcome.ERROR, Outcome.CANCELLED, Outcome.UNANSWERED, Outcome.HTTP_ERROR, Outcome.REDIRECTED))


class Found(NamedTuple):
    """The call that is meant; or none, because no call has the name, or because several have it."""

    call: Call | None = None
    ambiguous: bool = False
    taken: Call | None = None
    """The call that was meant last by a name that now means none."""

    def again(self, *, may_be_under_way: bool) -> Found:
        """The call that was taken last, if what became of that came to nothing and is tried again."""
        taken = self.taken
        if taken is None:
            return NOTHING
        outcome = taken.last_round.outcome
        if outcome in _FAILED or (may_be_under_way and outcome is Outcome.PENDING):
            return Found(taken)
        return NOTHING


NOTHING: Final = Found()


class Candidates:
    """Calls by names; one call may have several."""

    __slots__ = ("_names", "_taken", "_waiting", "_words")

    def __init__(self) -> None:
        self._waiting: dict[tuple[Name, Hashable], dict[int, Call]] = {}
        self._taken: dict[tuple[Name, Hashable], Call] = {}
        self._names: dict[int, list[tuple[Name, Hashable]]] = {}
        """The names of each call that waits, by its number."""
        self._words: dict[tuple[Hashable, ...], int] = {}
        """How many wait under names that begin with the same two words."""

    def add(self, name: Name, asker: Hashable, call: Call) -> None:
        """`call` may be meant by `name`."""
        calls = self._waiting.setdefault((name, asker), {})
        if call.row not in calls:
            calls[call.row] = call
            self._names.setdefault(call.row, []).append((name, asker))
            self._words[name[:2]] = self._words.get(name[:2], 0) + 1

    def find(self, name: Name, asker: Hashable) -> Found:
        """The call that is meant."""
        calls = self._waiting.get((name, asker))
        if not calls:
            return Found(taken=self._taken.get((name, asker)))
        if len(calls) > 1:
            return Found(ambiguous=True)
        return Found(next(iter(calls.values())))

    def waits_for(self, *words: Hashable) -> bool:
        """Whether any name begins with these two words."""
        return bool(self._words) and self._words.get(words, 0) > 0

    def take(self, call: Call) -> None:
        """`call` is meant no more by any of its names."""
        for key in self._names.pop(call.row, ()):
            calls = self._waiting.get(key)
            if calls is not None and calls.pop(call.row, None) is not None:
                self._words[key[0][:2]] -= 1
                if not calls:
                    del self._waiting[key]
            self._taken[key] = call

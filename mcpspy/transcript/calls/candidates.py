"""Calls that a name may refer to, separately for each side and session that names them.

A name that several calls have refers to none. The names' meaning is for `references` to know. Every operation takes constant time,
however many calls there are.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple, TypeAlias

from ..outcome import Outcome
from .call import Call

Name: TypeAlias = tuple[Hashable, ...]

_FAILED = frozenset((Outcome.ERROR, Outcome.CANCELLED, Outcome.UNANSWERED, Outcome.HTTP_ERROR, Outcome.REDIRECTED))


class CandidateMatch(NamedTuple):
    """The call that a name refers to; no call if none has the name, or if several have it."""

    call: Call | None = None
    ambiguous: bool = False
    taken: Call | None = None
    """The call that a name which refers to none now referred to last."""

    def again(self, *, may_be_under_way: bool) -> CandidateMatch:
        """Return the call that was taken last, if its last round failed and so may be tried again."""
        taken = self.taken
        if taken is None:
            return NO_MATCH
        outcome = taken.last_round.outcome
        if outcome in _FAILED or (may_be_under_way and outcome is Outcome.PENDING):
            return CandidateMatch(taken)
        return NO_MATCH


NO_MATCH: Final = CandidateMatch()


class Candidates:
    """Calls by names; one call may have several names."""

    __slots__ = ("_names", "_prefixes", "_taken", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[tuple[Name, Hashable], dict[int, Call]] = {}
        self._taken: dict[tuple[Name, Hashable], Call] = {}
        self._names: dict[int, list[tuple[Name, Hashable]]] = {}
        """The names of each call that waits, by its number."""
        self._prefixes: dict[tuple[Hashable, ...], int] = {}
        """The number of waiting calls by the first two words of their names."""

    def add(self, name: Name, asker: Hashable, call: Call) -> None:
        """Let `name` refer to `call`, when `asker` uses it."""
        calls = self._waiting.setdefault((name, asker), {})
        if call.row not in calls:
            calls[call.row] = call
            self._names.setdefault(call.row, []).append((name, asker))
            self._prefixes[name[:2]] = self._prefixes.get(name[:2], 0) + 1

    def find(self, name: Name, asker: Hashable) -> CandidateMatch:
        """Return the call that `name` refers to."""
        calls = self._waiting.get((name, asker))
        if not calls:
            return CandidateMatch(taken=self._taken.get((name, asker)))
        if len(calls) > 1:
            return CandidateMatch(ambiguous=True)
        return CandidateMatch(next(iter(calls.values())))

    def waits_for(self, *words: Hashable) -> bool:
        """Return whether any name begins with these two words."""
        return bool(self._prefixes) and self._prefixes.get(words, 0) > 0

    def take(self, call: Call) -> None:
        """Remove `call` from all its names."""
        for key in self._names.pop(call.row, ()):
            calls = self._waiting.get(key)
            if calls is not None and calls.pop(call.row, None) is not None:
                self._prefixes[key[0][:2]] -= 1
                if not calls:
                    del self._waiting[key]
            self._taken[key] = call

"""Tool calls by what they have in common with a tool use, in order of time: which ones fit, and are not taken by another use.

Refuses to choose among them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..model import Exchange

MAX_CANDIDATES: Final = 16
"""So many are looked at for one tool use; more of them make it no more ambiguous."""


class _Queue:
    """Calls with one key. `free` leads from each to the next that is not taken, itself if it is not: paths are halved on the way."""

    __slots__ = ("calls", "free", "times")

    def __init__(self) -> None:
        self.calls: list[Exchange] = []
        self.times: list[int] = []
        self.free: list[int] = []

    def add(self, call: Exchange) -> None:
        self.free.append(len(self.calls))
        self.calls.append(call)
        self.times.append(call.at_ns)

    def first_free(self, at: int, taken: set[int]) -> int:
        """The first place from `at` on that is not taken; the number of calls where there is none."""
        free, calls = self.free, self.calls
        while at < len(calls):
            if free[at] == at:
                if calls[at].row not in taken:
                    return at
                free[at] = at + 1
            elif free[at] < len(calls):
                free[at] = free[free[at]]
            at = free[at]
        return len(calls)


class CallsByKey:
    """Takes in calls in the order of time, each with the keys it has."""

    __slots__ = ("_queues", "taken")

    def __init__(self) -> None:
        self._queues: dict[Hashable, _Queue] = {}
        self.taken: set[int] = set()
        """The rows of calls that a tool use was joined with."""

    def add(self, key: Hashable, call: Exchange) -> None:
        """Take in a call that is not before the last one of this key."""
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue()
        queue.add(call)

    def fitting(self, key: Hashable, since_ns: int, until_ns: int | None) -> list[Exchange]:
        """The first calls of this key in a span of time that are not taken."""
        queue = self._queues.get(key)
        if queue is None:
            return []
        found: list[Exchange] = []
        at = queue.first_free(bisect_left(queue.times, since_ns), self.taken)
        while at < len(queue.calls) and len(found) < MAX_CANDIDATES and (until_ns is None or queue.times[at] <= until_ns):
            found.append(queue.calls[at])
            at = queue.first_free(at + 1, self.taken)
        return found

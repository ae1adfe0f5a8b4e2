"""Index of tool calls by key: for a tool use, the calls with a key in a span of time that no other use has taken.

A key is any value that a use and a call can share. The choice among several calls is left to the caller.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..model import Exchange

MAX_CANDIDATES: Final = 16
"""Number of calls that are considered for one tool use; more would not make it more ambiguous."""


class _Queue:
    """Calls with one key. `free` leads from each call towards the next one that is not taken (union-find with path halving)."""

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
        """Return the first index from `at` on that is not taken; the number of calls if there is none."""
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
    """Calls by key. They are added in the order of time."""

    __slots__ = ("_queues", "taken")

    def __init__(self) -> None:
        self._queues: dict[Hashable, _Queue] = {}
        self.taken: set[int] = set()
        """Rows of the calls that were joined with a tool use."""

    def add(self, key: Hashable, call: Exchange) -> None:
        """Add a call under a key; it must not be earlier than the last one of that key."""
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue()
        queue.add(call)

    def fitting(self, key: Hashable, since_ns: int, until_ns: int | None) -> list[Exchange]:
        """Return the first calls with this key in a span of time that are not taken."""
        queue = self._queues.get(key)
        if queue is None:
            return []
        calls: list[Exchange] = []
        at = queue.first_free(bisect_left(queue.times, since_ns), self.taken)
        while at < len(queue.calls) and len(calls) < MAX_CANDIDATES and (until_ns is None or queue.times[at] <= until_ns):
            calls.append(queue.calls[at])
            at = queue.first_free(at + 1, self.taken)
        return calls

"""The requests of one side as an index, which tells what was answered in a time span."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..model import Exchange

NEVER: Final = (1 << 63) - 1
"""The time of an answer that did not come."""


class AnswerIndex:
    """The requests of one side, by time, and the times of their answers; each question takes a binary search."""

    __slots__ = ("_answered_ns", "_longest_ns", "_requests", "_soonest", "_sorted_ns", "_times_ns")

    def __init__(self, requests: Iterable[Exchange] = ()) -> None:
        self._requests = sorted(requests, key=lambda exchange: (exchange.at_ns, exchange.row))
        self._times_ns = array("q", [exchange.at_ns for exchange in self._requests])
        answered = (row.response.at_ns if row.response is not None else NEVER for row in self._requests)
        self._answered_ns = array("q", answered)
        self._sorted_ns: Sequence[int] = array("q", sorted(self._answered_ns))
        self._longest_ns: dict[str, int] = {}
        for exchange, answered_ns in zip(self._requests, self._answered_ns, strict=True):
            if answered_ns != NEVER and answered_ns - exchange.at_ns > self._longest_ns.get(exchange.method, 0):
                self._longest_ns[exchange.method] = answered_ns - exchange.at_ns
        self._soonest = array("Q", range(len(self._requests)))
        """For each request the one that was answered first, of itself and those after it."""
        for at in range(len(self._requests) - 2, -1, -1):
            if self._answered_ns[self._soonest[at + 1]] < self._answered_ns[at]:
                self._soonest[at] = self._soonest[at + 1]

    def answers(self, since_ns: int, until_ns: int) -> int:
        """Return the number of answers in a time span."""
        return bisect_right(self._sorted_ns, until_ns) - bisect_right(self._sorted_ns, since_ns)

    def later(self, since_ns: int, until_ns: int, row: int | None = None) -> Exchange | None:
        """Return the request made after `since_ns` that was answered first, if it was by `until_ns`.

        With the row of a request made then, those count too that came with it in one read.
        """
        at = bisect_right(self._times_ns, since_ns)
        while row is not None and at and self._requests[at - 1].row > row and self._times_ns[at - 1] == since_ns:
            at -= 1
        if at == len(self._requests) or self._answered_ns[self._soonest[at]] > until_ns:
            return None
        return self._requests[self._soonest[at]]

    def longest_ns(self, method: str) -> int:
        """Return how long the answer took that took longest, of requests with this method; 0 if none was answered."""
        return self._longest_ns.get(method, 0)

    def last_waiting(self, since_ns: int, until_ns: int) -> Exchange | None:
        """Return the last request made in a time span, if it had no answer by the end of that."""
        at = bisect_left(self._times_ns, until_ns) - 1
        if at < 0 or self._times_ns[at] < since_ns or self._answered_ns[at] < until_ns:
            return None
        return self._requests[at]

    def is_of_another(self, at_ns: int, row: int, slack_ns: int) -> bool:
        """Return whether the last request before a time is another, and had no answer, or got it less than the slack before."""
        at = bisect_right(self._times_ns, at_ns) - 1
        return at >= 0 and self._requests[at].row != row and self._answered_ns[at] >= at_ns - slack_ns

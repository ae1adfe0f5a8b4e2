"""The requests of one side as an index, which tells what was answered in a time span."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model import Exchange

NEVER: Final = (1 << 63) - 1
"""The time of an answer that did not come."""


class Requests:
    """Requests in the order of their rows."""

    __slots__ = ("_exchanges", "answered_ns", "longest_ns", "rows", "times_ns")

    def __init__(self) -> None:
        self._exchanges: list[Exchange] = []
        self.rows = array("Q")
        self.times_ns = array("q")
        self.answered_ns = array("q")
        self.longest_ns: dict[str, int] = {}
        """The longest time that an answer took, by method."""

    def append(self, exchange: Exchange) -> None:
        """Add a request."""
        response = exchange.response
        self._exchanges.append(exchange)
        self.rows.append(exchange.row)
        self.times_ns.append(exchange.at_ns)
        self.answered_ns.append(NEVER if response is None else response.at_ns)
        if response is not None:
            took_ns = response.at_ns - exchange.at_ns
            if took_ns > self.longest_ns.get(exchange.method, 0):
                self.longest_ns[exchange.method] = took_ns

    def sort(self) -> None:
        """Sort them by time, which they nearly always are."""
        times_ns = self.times_ns
        if all(times_ns[at] <= times_ns[at + 1] for at in range(len(times_ns) - 1)):
            return
        order = sorted(range(len(times_ns)), key=lambda at: (times_ns[at], self.rows[at]))
        self._exchanges = [self._exchanges[at] for at in order]
        self.rows = array("Q", [self.rows[at] for at in order])
        self.answered_ns = array("q", [self.answered_ns[at] for at in order])
        self.times_ns = array("q", [times_ns[at] for at in order])

    def exchange(self, at: int) -> Exchange:
        """Return the request at this place."""
        return self._exchanges[at]


class AnswerIndex:
    """The requests of one side, by time, and the times of their answers; each question takes a binary search."""

    __slots__ = ("_answered_ns", "_requests", "_rows", "_soonest", "_sorted_ns", "_times_ns")

    def __init__(self, requests: Requests) -> None:
        requests.sort()
        self._requests = requests
        self._rows, self._times_ns, self._answered_ns = requests.rows, requests.times_ns, requests.answered_ns
        self._sorted_ns: Sequence[int] = array("q", sorted(self._answered_ns))
        self._soonest = array("Q", range(len(self._rows)))
        """For each request the one that was answered first, of itself and those after it."""
        for at in range(len(self._rows) - 2, -1, -1):
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
        while row is not None and at and self._rows[at - 1] > row and self._times_ns[at - 1] == since_ns:
            at -= 1
        if at == len(self._rows) or self._answered_ns[self._soonest[at]] > until_ns:
            return None
        return self._requests.exchange(self._soonest[at])

    def longest_ns(self, method: str) -> int:
        """Return how long the answer took that took longest, of requests with this method; 0 if none was answered."""
        return self._requests.longest_ns.get(method, 0)

    def last_waiting(self, since_ns: int, until_ns: int) -> Exchange | None:
        """Return the last request made in a time span, if it had no answer by the end of that."""
        at = bisect_left(self._times_ns, until_ns) - 1
        if at < 0 or self._times_ns[at] < since_ns or self._answered_ns[at] < until_ns:
            return None
        return self._requests.exchange(at)

    def is_of_another(self, at_ns: int, row: int, slack_ns: int) -> bool:
        """Return whether the last request before a time is another, and had no answer, or got it less than the slack before."""
        at = bisect_right(self._times_ns, at_ns) - 1
        return at >= 0 and self._rows[at] != row and self._answered_ns[at] >= at_ns - slack_ns

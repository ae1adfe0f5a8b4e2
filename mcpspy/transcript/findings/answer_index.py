"""The requests of one side as an index, which tells what was answered in a time span."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter

from ..model import Exchange


class AnswerIndex:
    """The requests of one side, by time, and the times of their answers; each question takes a binary search."""

    __slots__ = ("_answered_ns", "_longest_ns", "_requests", "_soonest", "_sorted_ns", "_times_ns")

    def __init__(self, requests: Iterable[Exchange]) -> None:
        self._requests = sorted(requests, key=attrgetter("at_ns", "row"))
        self._times_ns = [exchange.at_ns for exchange in self._requests]
        self._answered_ns = [
            float("inf") if exchange.response is None else exchange.response.at_ns for exchange in self._requests
        ]
        self._sorted_ns = sorted(self._answered_ns)
        self._longest_ns: dict[str, int] = {}
        for exchange in self._requests:
            if exchange.response is not None:
                took_ns = exchange.response.at_ns - exchange.at_ns
                self._longest_ns[exchange.method] = max(took_ns, self._longest_ns.get(exchange.method, 0))
        self._soonest = list(range(len(self._requests)))
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

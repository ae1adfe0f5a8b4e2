"""Requests of one side that wait, oldest first: those that an answer without an id may be meant for.

Requests that were given up count only if no other waits. Streams of subscriptions do not count.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice

from .exchange import Exchange
from .mcp.methods import LISTEN, PING


class RequestsInOrder:
    """The requests that wait. `add` and `discard` keep it up to date; each request is moved to those given up once."""

    __slots__ = ("_given_up", "_waiting")

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self._waiting = _RowQueue()
        self._given_up = _RowQueue()
        for exchange in sorted(exchanges, key=lambda exchange: exchange.row):
            self.add(exchange)

    def add(self, exchange: Exchange) -> None:
        """Add a request that was sent."""
        if exchange.method != LISTEN:
            self._waiting.add(exchange)

    def discard(self, exchange: Exchange) -> None:
        """Remove a request that was answered, or whose id belongs to another request now."""
        self._waiting.discard(exchange)
        self._given_up.discard(exchange)

    def oldest(self, most: int) -> list[Exchange]:
        """Return the oldest of them, `most` at most."""
        self._move_given_up(self._waiting.all, most)
        return list(islice((self._waiting.all or self._given_up.all).values(), most))

    def oldest_ping(self) -> Exchange | None:
        """Return the oldest `ping` among them."""
        self._move_given_up(self._waiting.pings, 1)
        self._move_given_up(self._waiting.all, 1)
        pings = self._waiting.pings if self._waiting.all else self._given_up.pings
        return next(iter(pings.values()), None)

    def _move_given_up(self, queue: OrderedDict[int, Exchange], most: int) -> None:
        """Move requests to those given up until the first `most` of the queue wait."""
        while given_up := [item for item in islice(queue.values(), most) if item.over or item.cancelled is not None]:
            for exchange in given_up:
                self._waiting.discard(exchange)
                self._given_up.add(exchange)


class _RowQueue:
    """Requests by their rows, and the pings among them. A plain dict would be slow to find its first key after many are gone."""

    __slots__ = ("all", "pings")

    def __init__(self) -> None:
        self.all: OrderedDict[int, Exchange] = OrderedDict()
        self.pings: OrderedDict[int, Exchange] = OrderedDict()

    def add(self, exchange: Exchange) -> None:
        self.all[exchange.row] = exchange
        if exchange.method == PING:
            self.pings[exchange.row] = exchange

    def discard(self, exchange: Exchange) -> None:
        self.all.pop(exchange.row, None)
        self.pings.pop(exchange.row, None)

"""Exchanges by their ids, or by the progress tokens that they gave out.

Of an exchange that is packed only the number of its row is kept, and ids that count up, as most do, are numbers in order.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable
from typing import Final, TypeAlias

from .exchange import Exchange

Keep: TypeAlias = Callable[[int], Exchange]

_MAX_DIGITS: Final = 18


class KnownExchanges(dict[str, Exchange]):
    """A dict of the exchanges that are not packed; `find` knows the others too, and has `keep` make them again."""

    __slots__ = ("_last", "_numbers", "_others", "_rows", "keep")

    def __init__(self) -> None:
        self.keep: Keep | None = None
        self._last = -1
        self._numbers = array("Q")
        self._rows = array("Q")
        self._others = _RowsByHash()
        """The rows of ids that are no numbers, or that do not count up."""

    def find(self, key: str) -> Exchange | None:
        """Return the exchange with this id key."""
        exchange = self.get(key)
        if exchange is not None or self.keep is None:
            return exchange
        row = self._others.row(key)
        number = _number(key)
        if row is None and number >= 0:
            at = bisect_left(self._numbers, number)
            if at < len(self._numbers) and self._numbers[at] == number:
                row = self._rows[at]
        return None if row is None else self.keep(row)

    def forget(self, key: str, exchange: Exchange) -> None:
        """Keep only the number of an exchange's row, if it is the one with this key."""
        if self.get(key) is not exchange:
            return
        del self[key]
        # as `_number`, without the call for most keys
        number = int(key) if key.isdigit() and key.isascii() and key[0] != "0" and len(key) <= _MAX_DIGITS else _number(key)
        if number > self._last:
            self._numbers.append(number)
            self._rows.append(exchange.row)
            self._last = number
        else:
            self._others.add(key, exchange.row)


class _RowsByHash:
    """The numbers of rows by the hashes of their keys, 64 bits each: of a key that comes again, the newest row."""

    __slots__ = ("_blocks", "_newest")

    def __init__(self) -> None:
        self._newest: dict[int, int] = {}
        self._blocks: list[tuple[array[int], array[int]]] = []
        """Hashes in order, and their rows."""

    def add(self, key: str, row: int) -> None:
        self._newest[hash(key)] = row
        if len(self._newest) == _BLOCK_KEYS:
            hashes = array("q", sorted(self._newest))
            self._blocks.append((hashes, array("Q", map(self._newest.__getitem__, hashes))))
            self._newest = {}

    def row(self, key: str) -> int | None:
        """Return the row of a key; None if there is none."""
        hashed = hash(key)
        row = self._newest.get(hashed)
        for hashes, rows in reversed(self._blocks) if row is None else ():
            at = bisect_left(hashes, hashed)
            if at < len(hashes) and hashes[at] == hashed:
                return rows[at]
        return row


_BLOCK_KEYS: Final = 1 << 15


def _number(key: str) -> int:
    """Return the number that an id key spells in its shortest form; -1 for others."""
    if not key.isdigit() or len(key) > _MAX_DIGITS or not key.isascii() or (key[0] == "0" and key != "0"):
        return -1
    return int(key)

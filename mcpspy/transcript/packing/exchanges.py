"""Exchanges of packed rows that rules look at one by one, such as those that failed, with their payloads in little memory.

Messages with flaws are packed too, without their payloads: a server that ends its lines in CR LF gives each of its messages a flaw.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import accumulate, count, islice
from math import inf
from typing import Final, TypeAlias, cast, overload

from ..exchange import Exchange, UnpairedMessage
from ..message import Message
from .block_compression import ALWAYS, compressed, decompressed
from .rows import PackedExchange, PackedMessage, PackedRows, decode_rows, messages_of, packed

_BLOCK: Final = 64
_HELD: Final = 4096
"""So many are held as they are: to make them again takes 10 µs each time."""


class PackedExchanges(Sequence[Exchange]):
    """A list to which exchanges are appended in the order of their rows. An exchange that is taken twice may be two objects."""

    __slots__ = ("_blocks", "_count", "_held", "_newest", "_rows")

    def __init__(self, rows: PackedRows) -> None:
        self._rows = rows
        self._count = 0
        self._held: list[Exchange] = []
        """The first ones."""
        self._blocks: list[tuple[bytes, dict[int, Exchange]]] = []
        """Those after them, and by their places those of a block that cannot be packed."""
        self._newest: list[Exchange] = []

    def append(self, exchange: Exchange) -> None:
        """Add an exchange."""
        self._count += 1
        if self._count <= _HELD:
            self._held.append(exchange)
            return
        self._newest.append(exchange)
        if len(self._newest) == _BLOCK:
            self._pack()

    def _pack(self) -> None:
        newest, self._newest = self._newest, []
        kept = {at: exchange for at, exchange in enumerate(newest) if not self._can_be_packed(exchange)}
        data = packed([None if at in kept else _plain(exchange) for at, exchange in enumerate(newest)])
        if not data:
            kept, data = dict(enumerate(newest)), packed([None] * len(newest))
        self._blocks.append((compressed(data, ALWAYS), kept))

    def _can_be_packed(self, exchange: Exchange) -> bool:
        """Return whether nobody refers to an exchange, nor to its response."""
        transaction, carriers = exchange.transaction, self._rows.carriers
        is_alone = transaction is None or transaction.request_messages <= 1
        is_named = transaction is None or (carriers is not None and carriers.is_first(transaction))
        return bool(messages_of(exchange)) and is_alone and is_named and not self._rows.is_of_call(exchange)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Exchange]:
        yield from self._held
        for data, kept in self._blocks:
            for at, exchange in enumerate(decode_rows(decompressed(data))):
                if isinstance(exchange, PackedExchange):
                    exchange.carriers = self._rows.carriers
                yield kept[at] if exchange is None else cast("Exchange", exchange)
        yield from self._newest

    @overload
    def __getitem__(self, at: int) -> Exchange: ...
    @overload
    def __getitem__(self, at: slice) -> list[Exchange]: ...
    def __getitem__(self, at: int | slice) -> Exchange | list[Exchange]:
        if isinstance(at, slice):
            return list(islice(self, *at.indices(self._count)))
        position = at + self._count if at < 0 else at
        if not 0 <= position < self._count:
            raise IndexError(at)
        return self._held[position] if position < len(self._held) else next(islice(self, position, None))


Flawed: TypeAlias = tuple[int, Message]
"""A message with flaws, after the number of its row."""


class FlawedMessages:
    """A list to which messages with flaws are appended, about in the order of their time."""

    __slots__ = ("_blocks", "_count", "_firsts_ns", "_held", "_newest", "_rows", "names")

    def __init__(self, rows: PackedRows) -> None:
        self._rows = rows
        self.names: set[str] = set()
        """The names of all flaws."""
        self._count = 0
        self._held: list[Flawed] = []
        self._blocks: list[bytes | list[Flawed]] = []
        """Those after the held ones; as they are where they cannot be packed."""
        self._firsts_ns = array("q")
        """The first time in each block."""
        self._newest: list[Flawed] = []

    def append(self, flawed: Flawed) -> None:
        """Add a message."""
        self.names.update(flawed[1].flaws)
        self._count += 1
        if self._count <= _HELD:
            self._held.append(flawed)
            return
        self._newest.append(flawed)
        if len(self._newest) == _BLOCK:
            newest, self._newest = self._newest, []
            self._firsts_ns.append(min(message.at_ns for _, message in newest))
            messages = [_plain_message(message) if isinstance(message, PackedMessage) else message for _, message in newest]
            rows = [UnpairedMessage(row, message) for (row, _), message in zip(newest, messages, strict=True)]
            data = self._rows.packed_without_payloads(rows, messages)
            self._blocks.append(compressed(data, len(self._blocks)) if data else newest)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Flawed]:
        for chunk in self._chunks():
            yield from chunk

    def _chunks(self) -> Iterator[Iterable[Flawed]]:
        yield self._held
        for block in self._blocks:
            if isinstance(block, bytes):
                yield [(row.row, row.message) for row in self._rows.made(block) if isinstance(row, UnpairedMessage)]
            else:
                yield block
        yield self._newest

    def by_time(self) -> Iterator[Flawed]:
        """Yield them sorted by their times, without a list of all: a message waits until no later block has an earlier one."""
        newest_ns = min((message.at_ns for _, message in self._newest), default=inf)
        later_ns: list[float] = [*accumulate((inf, newest_ns, *reversed(self._firsts_ns)), min)]
        waiting: list[tuple[int, int, Flawed]] = []
        numbers = count()
        for chunk in self._chunks():
            for flawed in chunk:
                heappush(waiting, (flawed[1].at_ns, next(numbers), flawed))
            until_ns = later_ns.pop()
            while waiting and waiting[0][0] <= until_ns:
                yield heappop(waiting)[2]


_FIELDS: Final = Message.__struct_fields__


def _plain(exchange: Exchange) -> Exchange:
    """Return an exchange that does not read anything again."""
    if not isinstance(exchange, PackedExchange):
        return exchange
    return Exchange(
        exchange.row,
        _plain_message(exchange.request),
        None if exchange.response is None else _plain_message(exchange.response),
        [_plain_message(message) for message in exchange.notifications],
        over=exchange.over,
        transaction=exchange.transaction,  # type: ignore[arg-type]  # it is one, and its number only where it is packed
        left_ns=exchange.left_ns,
    )


def _plain_message(message: Message) -> Message:
    return Message(*[getattr(message, name) for name in _FIELDS])

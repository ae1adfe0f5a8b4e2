"""Exchanges of packed rows that rules look at one by one, such as those that failed, with their payloads in little memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, cast, overload

from .block_compression import ALWAYS, compressed, decompressed
from .exchange import Exchange
from .message import Message
from .packed_rows import PackedExchange, PackedRows, decode_rows, messages_of, packed

_BLOCK: Final = 64
_HELD: Final = 4096
"""So many are held as they are: to make them again takes 10 µs each time."""


class PackedExchanges(Sequence[Exchange]):
    """A list to which exchanges are appended in the order of their rows. Two takings may return different objects for one."""

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

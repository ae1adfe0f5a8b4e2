"""The rows of a large capture in little memory: those that are over are MessagePack, in blocks, and made again when they are taken.

A message that is one line of the capture is packed without its payload, which is read again with it. What may still change, and
what others refer to, is kept as it is. So memory grows with what is unusual in a capture, and by some 75 bytes for a usual message.

    rows   1 … 64 │ 65 … 128 │ 129 …            64 rows: packed
           bytes  │ bytes    │ rows as they are
                     └ but for row 70, which nobody has answered yet

Two takings may return different objects for one row. Whoever changes a row has to `keep` it before.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import islice
from typing import Final, Literal, Protocol, Self, overload

import msgspec

from .calls.join import TASK_STATUSES
from .mcp.methods import OPENINGS, PING
from .message import Message, UsualMessage
from .model import ChannelEvent, Exchange, Log, Row, UnpairedMessage
from .offers.definitions import LISTINGS

BLOCK_ROWS: Final = 64
NEWEST_ROWS: Final = 512
"""So many rows are not packed: most of what changes is new. Older ones are no longer in the processor's cache."""

MOST_NEWEST_ROWS: Final = 2048
"""So many are not packed while the oldest of them wait for an answer."""

_SMALL_BYTES: Final = 256
"""Payloads up to this size are packed with a message of unusual form, rather than to look whether they can be read again."""

_HELD_BYTES: Final = 1 << 26
"""The first exchanges of a kind are held up to this size of their payloads."""

_KEPT_METHODS: Final = OPENINGS | LISTINGS | {PING, "pong"}
"""Messages that others refer to for long: those that open a session, lists, and the beats of two sides."""


class PayloadSource(Protocol):
    """The payloads of the records of a capture, by their numbers."""

    @property
    def is_regular(self) -> bool:
        """True if the payload of a `UsualMessage` is always that of its number."""

    def around(self, number: int) -> tuple[int, list[bytes]]:
        """Read the payloads of a record and those next to it; the first is that of the record whose number is before them.

        Raises: CaptureError; OSError.
        """

    def holds(self, number: int, payload: bytes) -> bool:
        """Return whether `payload` can be read again as that of a record."""


class PackedMessage(Message, eq=False, gc=False, array_like=True):
    """A message whose payload was left out: `raw` is its size until `_fill` has read it."""

    sender: Literal["client", "server"]
    raw: bytes | int  # type: ignore[assignment]  # bytes once it is filled


class PackedExchange(Exchange, eq=False, gc=False, array_like=True, tag="exchange"):
    """An exchange of packed messages."""

    request: PackedMessage
    response: PackedMessage | None = None
    notifications: Sequence[PackedMessage] = ()
    cancelled: None = None
    more_responses: Sequence[PackedMessage] = ()
    partials: Sequence[PackedMessage] = ()
    transaction: None = None


class PackedUnpaired(UnpairedMessage, eq=False, gc=False, array_like=True, tag="unpaired"):
    """An unpaired message that is packed."""

    message: PackedMessage


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[PackedExchange | PackedUnpaired | Log | None]).decode


class PackedRows(Sequence[Row]):
    """A list of rows to which more are appended, and of which `pack` packs the older ones.

    Rows whose numbers are in `calls` stay as they are: calls refer to them. `read_early` gets rows while they are packed.
    """

    __slots__ = ("_blocks", "_calls", "_firsts", "_kept", "_newest", "_read", "_reader", "_recent", "_source")

    def __init__(self, rows: list[Row], source: PayloadSource, calls: Container[int]) -> None:
        self._source = source
        self._calls = calls
        self._blocks: list[bytes] = []
        self._firsts = array("Q")
        """For each block the number of its first row with a number, or of the last one before it."""
        self._kept: dict[int, Row] = {}
        """By position the rows in blocks that are not packed."""
        self._newest = rows
        self._recent: tuple[int, list[Row]] = (-1, [])
        self._reader: Callable[[list[Row]], object] | None = None
        self._read = 0

    def read_early(self, reader: Callable[[list[Row]], object]) -> None:
        """Have `reader` take the rows in their order, as long as nothing that still may change comes between them."""
        self._reader = reader

    @property
    def read_blocks(self) -> int:
        """The number of blocks that were read early; none if one of their rows has changed since."""
        return self._read

    def append(self, row: Row) -> None:
        """Add a row."""
        self._newest.append(row)

    def __iadd__(self, rows: Sequence[Row]) -> Self:
        self._newest += rows
        return self

    def pack(self, forget: Callable[[Exchange], bool]) -> None:
        """Pack the rows that are old enough. `forget` lets go of an exchange, or returns False if that must stay as it is."""
        newest = self._newest
        begin, waited_for = 0, len(newest) - MOST_NEWEST_ROWS
        while begin + BLOCK_ROWS + NEWEST_ROWS <= len(newest):
            block = newest[begin : begin + BLOCK_ROWS]
            if begin + BLOCK_ROWS > waited_for and not all(row.over for row in block if isinstance(row, Exchange)):
                break
            self._pack_block(block, forget)
            begin += BLOCK_ROWS
        del newest[:begin]

    def _pack_block(self, rows: list[Row], forget: Callable[[Exchange], bool]) -> None:
        before = self._firsts[-1] if self._firsts else 0
        self._firsts.append(next((row.row for row in rows if isinstance(row, Exchange | UnpairedMessage)), before))
        block: list[Row | None] = []
        raws: list[tuple[Message, bytes]] = []
        is_final, is_regular = True, self._source.is_regular
        for position, row in enumerate(rows, len(self._blocks) * BLOCK_ROWS):
            if isinstance(row, Exchange):
                messages = _messages_of(row)
                is_over = messages and row.row not in self._calls and forget(row)
                is_packed = is_over and row.request.method not in _KEPT_METHODS
            else:
                messages = (row.message,) if isinstance(row, UnpairedMessage) else ()
                is_packed = self._can_be_packed(row)
                is_over = is_packed or isinstance(row, ChannelEvent)
            is_final = is_final and bool(is_over)
            if not is_packed:
                block.append(None)
                self._kept[position] = row
                continue
            block.append(row)
            for message in messages:
                raw = message.raw
                if (is_regular and isinstance(message, UsualMessage)) or self._can_be_read_again(message, raw):
                    raws.append((message, raw))
                    message.raw = len(raw)  # type: ignore[assignment]  # until the block is made
        try:
            self._blocks.append(_encode(block))
        finally:
            for message, raw in raws:
                message.raw = raw
        if is_final and self._reader is not None:
            self._reader(rows)
            self._read += 1
        else:
            self._reader = None

    def _can_be_packed(self, row: Row) -> bool:
        """Return whether nothing will change or refer to a row that is no exchange."""
        if not isinstance(row, UnpairedMessage):
            return isinstance(row, Log)
        method = row.message.method
        return not (row.candidates or row.row in self._calls or method in _KEPT_METHODS or method in TASK_STATUSES)

    def _can_be_read_again(self, message: Message, raw: bytes) -> bool:
        return len(raw) > _SMALL_BYTES and not message.batch and self._source.holds(message.number, raw)

    def keep(self, number: int) -> Exchange:
        """Return the exchange with this number, to be changed: from now on it is always the same object."""
        block = bisect_right(self._firsts, number) - 1
        if 0 <= block < len(self._blocks):
            for position, row in enumerate(self._block(block), block * BLOCK_ROWS):
                if isinstance(row, Exchange) and row.row == number:
                    self._kept[position] = row
                    if block < self._read:
                        self._read, self._reader = 0, None
                    return row
        return next(row for row in self._newest if isinstance(row, Exchange) and row.row == number)

    def __len__(self) -> int:
        return len(self._blocks) * BLOCK_ROWS + len(self._newest)

    def __iter__(self) -> Iterator[Row]:
        for block in self.blocks():
            yield from block

    def blocks(self, begin: int = 0) -> Iterator[list[Row]]:
        """Yield all rows from a block on, some at a time."""
        yield from map(self._block, range(begin, len(self._blocks)))
        yield self._newest

    def without_payloads(self) -> Iterator[Row]:
        """Yield all rows, for those who do not look at payloads, which are not read."""
        for number, data in enumerate(self._blocks):
            for position, row in enumerate(_decode(data), number * BLOCK_ROWS):
                yield self._kept[position] if row is None else self._kept.get(position, row)
        yield from self._newest

    def kept(self) -> Iterator[Row]:
        """Yield the rows that are not packed."""
        yield from (self._kept[position] for position in sorted(self._kept))
        yield from self._newest

    def selected(self, test: Callable[[Exchange], object], most: int = 0) -> SelectedExchanges:
        """Return what counts the exchanges for which a test holds, holds the first of them, and makes the others again."""
        return SelectedExchanges(self, test, most)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        if isinstance(at, slice):
            return [self[position] for position in range(*at.indices(len(self)))]
        position = at + len(self) if at < 0 else at
        if not 0 <= position < len(self):
            raise IndexError(at)
        block, place = divmod(position, BLOCK_ROWS)
        if block < len(self._blocks):
            return self._block(block)[place]
        return self._newest[position - len(self._blocks) * BLOCK_ROWS]

    def _block(self, number: int) -> list[Row]:
        recent, rows = self._recent
        if recent == number:
            return rows
        packed = _decode(self._blocks[number])
        _fill(packed, self._source)
        at = number * BLOCK_ROWS
        rows = [self._kept.get(position, row) for position, row in enumerate(packed, at)]  # type: ignore[misc]
        self._recent = number, rows
        return rows


def _messages_of(row: Exchange) -> Sequence[Message]:
    """Return the messages of an exchange of which nothing will change any more, but by what finds it by its id; none of others."""
    request, response = row.request, row.response
    if response is None or response.result_type is not None or row.cancelled is not None or row.transaction is not None:
        return ()
    if row.partials or row.more_responses or row.is_probe:
        return ()
    return (request, response, *row.notifications) if row.notifications else (request, response)


def _fill(rows: list[PackedExchange | PackedUnpaired | Log | None], source: PayloadSource) -> None:
    """Give messages the payloads that were left out. Those of neighbours are next to each other, or a few answers apart."""
    first = 0
    payloads: list[bytes] = []
    messages: Sequence[PackedMessage]
    for row in rows:
        if isinstance(row, PackedExchange):
            messages = (row.request, row.response or row.request, *row.notifications)
        elif isinstance(row, PackedUnpaired):
            messages = (row.message,)
        else:
            continue
        for message in messages:
            if message.raw.__class__ is int:
                at = message.number - first
                if not 0 <= at < len(payloads):
                    first, payloads = source.around(message.number)
                    at = message.number - first
                message.raw = payloads[at]


class SelectedExchanges(Sequence[Exchange]):
    """The exchanges of packed rows for which a test holds. `extend` counts them, while the rows are looked at for the first time.

    The first of them are held as they are, up to a number and to as many bytes: several rules look at these again.
    """

    __slots__ = ("_count", "_first", "_held_bytes", "_most", "_rows", "_test")

    def __init__(self, rows: Sequence[Row], test: Callable[[Exchange], object], most: int) -> None:
        self._rows = rows
        self._test = test
        self._count = 0
        self._first: list[Exchange] = []
        self._held_bytes = 0
        self._most = most

    def extend(self, exchanges: Sequence[Exchange]) -> None:
        """Count these."""
        self._count += len(exchanges)
        if len(self._first) < self._most and len(self._first) == self._count - len(exchanges):
            for exchange in exchanges:
                self._held_bytes += sum(len(message.raw) for message in exchange.messages)
            if self._held_bytes <= _HELD_BYTES:
                self._first += exchanges

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Exchange]:
        test = self._test
        if len(self._first) == self._count:
            return iter(self._first)
        return (row for row in self._rows if isinstance(row, Exchange) and test(row))

    @overload
    def __getitem__(self, at: int) -> Exchange: ...
    @overload
    def __getitem__(self, at: slice) -> list[Exchange]: ...
    def __getitem__(self, at: int | slice) -> Exchange | list[Exchange]:
        if isinstance(at, slice):
            start, stop, step = at.indices(self._count)
            return self._first[start:stop:step] if stop <= len(self._first) else list(islice(self, start, stop, step))
        position = at + self._count if at < 0 else at
        if not 0 <= position < self._count:
            raise IndexError(at)
        return self._first[position] if position < len(self._first) else next(islice(self, position, None))

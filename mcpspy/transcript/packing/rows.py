"""The rows of a large capture in little memory: those that are over are MessagePack, in blocks, and made again when they are taken.

A message whose payload is on a line of the capture is packed without it, and it is read again when somebody asks for it. What may
still change, and what others refer to, is kept as it is. So memory grows with what is unusual in a capture, and by some 75 bytes for
a usual message, or 20 where blocks are compressed. Exchanges over HTTP name transactions, which `http.packed_transactions` packs.

    rows   1 … 64 │ 65 … 128 │ 129 …            64 rows: packed
           bytes  │ bytes    │ rows as they are
                     └ but for row 70, which nobody has answered yet

Two takings may return different objects for one row. Whoever changes a row has to `keep` it before.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Literal, Protocol, Self, TypeAlias, overload

import msgspec

from ...records import Record
from ..calls.join import TASK_STATUSES
from ..http.transaction import Transaction
from ..mcp.methods import OPENINGS, PING
from ..message import ERROR, RESULT, Message, UsualMessage
from ..model import Exchange, Log, Row, UnpairedMessage
from ..offers.definitions import LISTINGS
from ..watching import MOST_BYTES
from .block_compression import ALWAYS, compressed, decompressed
from .number_map import NumberMap

BLOCK_ROWS: Final = 64
NEWEST_ROWS: Final = 512
"""So many rows are not packed: most of what changes is new. Older ones are no longer in the processor's cache."""

READ_ROWS: Final = 512
"""So many rows are packed and read early at a time: rules take less time for many rows at once."""

MOST_NEWEST_ROWS: Final = 2048
"""So many are not packed while the oldest of them wait for an answer."""

_SMALL_BYTES: Final = 256
"""Payloads up to this size are packed with a message of unusual form, rather than to look whether they can be read again."""

_SMALL_BYTES_OF_HTTP: Final = 32
"""The same over HTTP, where all messages are of that form."""

PLAIN_BYTES: Final = 96 << 20
"""Blocks are kept as they are up to this size together, which a million usual messages do not reach. Others are compressed."""

_SIZE_BITS: Final = 32
_SIZES: Final = (1 << _SIZE_BITS) - 1
"""The place of a payload is its size, and above so many bits where it begins in the payload of its record."""

_HELD_BYTES: Final = 1 << 26
"""The first exchanges of a kind are held up to this size of their payloads."""

_KEPT_METHODS: Final = OPENINGS | LISTINGS | {PING, "pong"}
"""Messages that others refer to for long: those that open a session, lists, and the beats of two sides."""


class PayloadSource(Protocol):
    """The payloads of the records of a capture, by their numbers."""

    @property
    def is_regular(self) -> bool:
        """True if the payload of a `UsualMessage` is always that of its number."""

    def payload(self, number: int) -> bytes:
        """Read the payload of a record. Raises: CaptureError; OSError."""

    def position(self, number: int, part: bytes) -> int:
        """Return where in the payload of a record this part of it begins; -1 if it cannot be read again as such."""

    def record(self, number: int) -> Record | None:
        """Read a record; None if it cannot be read again. Raises: CaptureError; OSError."""


class Carriers(Protocol):
    """The transactions of a capture over HTTP, which rows name by their numbers."""

    def first(self, number: int, /) -> Transaction:
        """Return the first transaction of this number. Raises: KeyError: if there is none."""

    def is_first(self, transaction: Transaction, /) -> bool:
        """Return whether a transaction can be named by its number."""


class PackedMessage(Message, eq=False, gc=False, array_like=True):
    """A message whose payload was left out: until somebody asks for it, there is its place in `source`."""

    sender: Literal["client", "server"]
    raw: bytes | int  # type: ignore[assignment]  # read through the property below
    source: Any = None

    @property
    def size(self) -> int:
        """The size of the payload, which is not read."""
        value: Any = _raw.__get__(self)  # type: ignore[attr-defined]
        return (value & _SIZES if isinstance(value, int) else len(value)) + self.unkept_bytes


_raw: Final = Message.raw


def _payload(message: PackedMessage) -> bytes:
    value: Any = _raw.__get__(message)  # type: ignore[attr-defined]
    if isinstance(value, int):
        payload, begin = message.source.payload(message.number), value >> _SIZE_BITS
        value = payload if len(payload) == value else payload[begin : begin + (value & _SIZES)]
        _raw.__set__(message, value)  # type: ignore[attr-defined]
    return value  # type: ignore[no-any-return]


PackedMessage.raw = property(_payload)  # type: ignore[assignment]


class PackedExchange(Exchange, eq=False, gc=False, array_like=True, tag="exchange"):
    """An exchange of packed messages. `carriers` are the transactions by their numbers."""

    request: PackedMessage
    response: PackedMessage | None = None
    notifications: Sequence[PackedMessage] = ()
    cancelled: None = None
    more_responses: Sequence[PackedMessage] = ()
    partials: Sequence[PackedMessage] = ()
    transaction: int | None = None  # type: ignore[assignment]  # its number, read through the property below
    carriers: Any = None


_transaction: Final = Exchange.transaction


def _carrier(exchange: PackedExchange) -> Transaction | None:
    value: Any = _transaction.__get__(exchange)  # type: ignore[union-attr]
    if isinstance(value, int):
        value = exchange.carriers.first(value)
        _transaction.__set__(exchange, value)  # type: ignore[union-attr]
    return value  # type: ignore[no-any-return]


PackedExchange.transaction = property(_carrier)  # type: ignore[assignment]


class PackedUnpaired(UnpairedMessage, eq=False, gc=False, array_like=True, tag="unpaired"):
    """An unpaired message that is packed."""

    message: PackedMessage


_encode: Final = msgspec.msgpack.Encoder().encode
_Packed: TypeAlias = PackedExchange | PackedUnpaired | Log | None

decode_rows: Final[Callable[[bytes], list[_Packed]]] = msgspec.msgpack.Decoder(list[_Packed]).decode
"""Make rows of what `packed` returned."""

_UNPACKABLE: Final = (ValueError, OverflowError)
"""Errors of MessagePack: half a character, a number of more than 64 bits."""

_NUMBERED: Final = (Exchange, UnpairedMessage)


class PackedRows(Sequence[Row]):
    """A list of rows to which more are appended, and of which `pack` packs the older ones.

    Rows whose numbers are in `calls` stay as they are: calls refer to them. `read_early` gets rows while they are packed.
    """

    __slots__ = (
        "_blocks",
        "_calls",
        "_firsts",
        "_kept",
        "_newest",
        "_next",
        "_plain_bytes",
        "_read",
        "_reader",
        "_recent",
        "_source",
        "_unread",
        "_unread_bytes",
        "carriers",
    )

    def __init__(self, rows: list[Row], source: PayloadSource, calls: Container[int]) -> None:
        self._source = source
        self._calls = calls
        self._blocks: list[bytes] = []
        self._plain_bytes = 0
        self._firsts = array("Q")
        """For each block the number of its first row with a number, or the least that the next one may have."""
        self._next = 0
        self._kept: dict[int, Row] = {}
        """By position the rows in blocks that are not packed."""
        self._newest = rows
        self.carriers: Carriers | None = None
        """The transactions of a capture over HTTP, by their numbers."""
        self._recent: tuple[int, list[Row]] = (-1, [])
        self._reader: Callable[[list[Row]], object] | None = None
        self._read = 0
        self._unread: list[Row] = []
        self._unread_bytes = 0

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

    def pack(self, forget: Callable[[Exchange | UnpairedMessage], bool]) -> None:
        """Pack the rows that are old enough. `forget` lets go of a row, or returns False if that must stay as it is."""
        newest = self._newest
        if len(newest) < NEWEST_ROWS + READ_ROWS:
            return
        begin, waited_for = 0, len(newest) - MOST_NEWEST_ROWS
        while begin + BLOCK_ROWS + NEWEST_ROWS <= len(newest):
            block = newest[begin : begin + BLOCK_ROWS]
            if begin + BLOCK_ROWS > waited_for and not _are_over(block):
                break
            self._pack_block(block, forget)
            begin += BLOCK_ROWS
        self._read_early()
        del newest[:begin]

    def _pack_block(self, rows: list[Row], forget: Callable[[Exchange | UnpairedMessage], bool]) -> None:
        self._firsts.append(next((row.row for row in rows if isinstance(row, _NUMBERED)), self._next))
        self._next = next((row.row + 1 for row in reversed(rows) if isinstance(row, _NUMBERED)), self._next)
        block: list[Row | None] = []
        messages: list[Message] = []
        begin, is_final, calls = len(self._blocks) * BLOCK_ROWS, True, self._calls
        for position, row in enumerate(rows, begin):
            if isinstance(row, Exchange):
                parts = messages_of(row)
                is_over = bool(parts) and row.row not in calls and forget(row)
                is_packed = is_over and row.request.method not in _KEPT_METHODS
                if is_packed and row.transaction is not None:  # a message in one with others may answer several requests
                    is_packed = row.transaction.request_messages <= 1
                if is_packed:
                    messages += parts
            elif isinstance(row, UnpairedMessage):
                is_over = is_packed = self._can_be_packed(row) and forget(row)
                if is_packed:
                    messages.append(row.message)
            else:
                is_over, is_packed = True, isinstance(row, Log)
            is_final = is_final and is_over
            block.append(row if is_packed else None)
            if not is_packed:
                self._kept[position] = row
        data = self.packed_without_payloads(block, messages)
        if not data:
            self._kept.update(enumerate(rows, begin))
            data = _encode([None] * len(rows))
        self._plain_bytes += len(data)
        self._blocks.append(compressed(data, 0 if self._plain_bytes <= PLAIN_BYTES else ALWAYS))
        if self._reader is None:
            return
        size_bytes = sum([len(message.raw) for message in messages])
        if not is_final or self._unread_bytes + size_bytes > MOST_BYTES:
            self._read_early()
        if is_final:
            self._unread += rows
            self._unread_bytes += size_bytes
        else:
            self._reader = None

    def _read_early(self) -> None:
        """Have the reader take the rows of the blocks that it has not taken."""
        unread, self._unread, self._unread_bytes = self._unread, [], 0
        if unread and self._reader is not None:
            self._reader(unread)
            self._read += len(unread) // BLOCK_ROWS

    def _can_be_packed(self, row: UnpairedMessage) -> bool:
        """Return whether nothing will change or refer to a message that belongs to no exchange."""
        message = row.message
        if row.candidates or row.row in self._calls or message.method in _KEPT_METHODS or message.method in TASK_STATUSES:
            return False
        return self.carriers is None or (message.kind is not RESULT and message.kind is not ERROR)

    def packed_without_payloads(self, block: Sequence[Row | None], messages: Sequence[Message]) -> bytes:
        """Return rows as MessagePack. Of `messages`, which are those of the rows, places are kept instead of payloads."""
        raws = [message.raw for message in messages]
        places: Sequence[bytes | int]
        if self._source.is_regular and {*map(type, messages)} == {UsualMessage}:
            places = [*map(len, raws)]
        else:
            places = [self._place(message, raw) for message, raw in zip(messages, raws, strict=True)]
        try:
            for message, place in zip(messages, places, strict=True):
                message.raw = place  # type: ignore[assignment]  # until the block is made
            return packed(block)
        finally:
            for message, raw in zip(messages, raws, strict=True):
                message.raw = raw

    def _place(self, message: Message, raw: bytes) -> int | bytes:
        """Return the place of a payload that can be read again; the payload if it cannot, or is small."""
        if isinstance(message, UsualMessage) and self._source.is_regular:
            return len(raw)
        small_bytes = _SMALL_BYTES if self.carriers is None else _SMALL_BYTES_OF_HTTP
        if len(raw) <= small_bytes or message.batch:
            return raw
        begin = self._source.position(message.number, raw)
        return raw if begin < 0 else begin << _SIZE_BITS | len(raw)

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

    def is_of_call(self, row: Exchange) -> bool:
        """Return whether an exchange belongs to a call of several rows, which refers to it."""
        return row.row in self._calls

    def exchange(self, number: int) -> Exchange:
        """Return the exchange with this number."""
        block = bisect_right(self._firsts, number) - 1
        if 0 <= block < len(self._blocks):
            rows, at = self._block(block), number - self._firsts[block]
            if at < len(rows) and isinstance(row := rows[at], Exchange) and row.row == number:
                return row
            for row in rows:
                if isinstance(row, Exchange) and row.row == number:
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
        for number in range(len(self._blocks)):
            for position, row in enumerate(self._decoded(number), number * BLOCK_ROWS):
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
        at = number * BLOCK_ROWS
        rows = [self._kept.get(position, row) for position, row in enumerate(self._decoded(number), at)]  # type: ignore[misc]
        self._recent = number, rows
        return rows

    def _decoded(self, number: int) -> list[_Packed]:
        """Make the rows of a block again; None in the place of those that are kept."""
        return self.made(self._blocks[number])

    def made(self, block: bytes) -> list[_Packed]:
        """Make the rows of a block of `packed_without_payloads` again."""
        rows, source, carriers = decode_rows(decompressed(block)), self._source, self.carriers
        for row in rows:
            if isinstance(row, PackedExchange):
                row.carriers = carriers
                row.request.source = source
                if row.response is not None:
                    row.response.source = source
                for message in row.notifications:
                    message.source = source
            elif isinstance(row, PackedUnpaired):
                row.message.source = source
        return rows


def packed(rows: Sequence[Row | None]) -> bytes:
    """Return rows as MessagePack; empty if they cannot be packed."""
    carried: list[tuple[Exchange, Transaction]] = []
    for row in rows:
        if isinstance(row, Exchange) and row.transaction is not None:
            carried.append((row, row.transaction))
            row.transaction = row.transaction.number  # type: ignore[assignment]  # until the block is made
    try:
        return _encode(rows)
    except _UNPACKABLE:
        return b""
    finally:
        for exchange, transaction in carried:
            exchange.transaction = transaction


def messages_of(row: Exchange) -> Sequence[Message]:
    """Return the messages of an exchange of which nothing will change any more, but by what finds it by its id; none of others."""
    request, response = row.request, row.response
    if response is None or response.result_type is not None or row.cancelled is not None:
        return ()
    if row.partials or row.more_responses or row.is_probe:
        return ()
    return (request, response, *row.notifications) if row.notifications else (request, response)


def _are_over(rows: list[Row]) -> bool:
    """Return whether each exchange has its answer, or will have none, and the transactions that carried them have ended."""
    for row in rows:
        if isinstance(row, Exchange) and not (row.over and (row.transaction is None or row.transaction.over)):
            return False
    return True


class FirstExchanges(Mapping[int, Exchange]):
    """By the numbers of transactions exchanges of packed rows, which are made again when they are taken."""

    __slots__ = ("_count", "_numbers", "_rows")

    def __init__(self, rows: PackedRows) -> None:
        self._rows = rows
        self._numbers = NumberMap()
        self._count = 0

    def setdefault(self, number: int, exchange: Exchange) -> None:
        """Note the exchange of a transaction, unless one is known."""
        if not self._numbers[number]:
            self._numbers[number] = exchange.row
            self._count += 1

    def __getitem__(self, number: int) -> Exchange:
        row = self._numbers[number]
        if not row:
            raise KeyError(number)
        return self._rows.exchange(row)

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self._numbers[number] > 0

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return self._count


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

"""The HTTP transactions of a large capture in little memory: those that are over are MessagePack, and made again when they are taken.

    transactions 1 … 64 │ 65 … 128 │ 129 …
                 bytes  │ bytes    │ as they are
                           └ but for 70, which goes on

A transaction stays as it is if it has what few have: notes, interim responses, a row of its own. Heads that come often are held once,
other records are read from the capture again. Two takings may return different objects for one transaction.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, ValuesView
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec.structs import astuple

from ...records import CLIENT, SERVER, Close, Open, Redaction, Side
from ..packing.block_compression import compressed, decompressed
from ..packing.number_map import NumberMap
from .head import Head, read_head
from .transaction import Scope, ScopeKind, Stream, Transaction, is_slow, is_usual

if TYPE_CHECKING:
    from ..packing.rows import PayloadSource

BLOCK_TRANSACTIONS: Final = 64
NEWEST_TRANSACTIONS: Final = 512
"""So many transactions are not packed: most of what changes is new."""

MOST_NEWEST_TRANSACTIONS: Final = 2048
"""So many are not packed while the oldest of them go on."""

MAX_OPENINGS: Final = 4096
"""So many heads are held. A session has few, and further ones differ in a date or in the number of a request."""

_RECENT: Final = 32
"""So many blocks are kept."""

_READ_AGAIN: Final = -1

Opening: TypeAlias = "tuple[bytes, bytes | None, tuple[Redaction, ...], str, str, bool]"
"""Head, forwarded head, redactions, name, framing and injection of an `Open`: most streams have one of a few."""


class PackedStream(Stream, eq=False, gc=False, array_like=True):
    """A stream whose records were packed: in `opened` number, stream and opening, in `close` number, side and manner."""

    opened: tuple[int, int, int]  # type: ignore[assignment]  # read through the properties below
    close: tuple[int, str, str] | None = None  # type: ignore[assignment]
    kept: tuple[()] = ()
    source: Any = None
    """The transactions that it is among, the number and the connection of its own, and its sender."""

    @property
    def number(self) -> int:
        """Its number in the capture."""
        value: Any = _opened.__get__(self)  # type: ignore[attr-defined]
        return value[1] if isinstance(value, tuple) else value.stream  # type: ignore[no-any-return]

    @property
    def raw_head(self) -> bytes:
        """The bytes of its head."""
        value: Any = _opened.__get__(self)  # type: ignore[attr-defined]
        return self.source[0].opening(value)[0] if isinstance(value, tuple) else value.head  # type: ignore[no-any-return]

    @property
    def head(self) -> Head:
        """Its head, read anew at each call."""
        return read_head(self.raw_head)

    @property
    def injected(self) -> bool:
        """True if mcpspy itself wrote it."""
        value: Any = _opened.__get__(self)  # type: ignore[attr-defined]
        return bool(self.source[0].opening(value)[-1] if isinstance(value, tuple) else value.injected)


_opened: Final = Stream.opened
_close: Final = Stream.close


def _opened_record(stream: PackedStream) -> Open:
    value: Any = _opened.__get__(stream)  # type: ignore[attr-defined]
    if isinstance(value, tuple):
        transactions, transaction, connection, sender = stream.source
        head, forwarded, redacted, name, framing, injected = transactions.opening(value)
        value = Open(
            at_ns=stream.at_ns, name=name, sender=sender, stream=value[1], connection=connection, injected=injected,
            forwarded=forwarded, framing=framing, head=head, number=value[0], redacted=redacted, transaction=transaction,
        )  # fmt: skip
        _opened.__set__(stream, value)  # type: ignore[attr-defined]
    return value  # type: ignore[no-any-return]


def _close_record(stream: PackedStream) -> Close | None:
    value: Any = _close.__get__(stream)  # type: ignore[union-attr]
    if isinstance(value, tuple):
        opened: Any = _opened.__get__(stream)  # type: ignore[attr-defined]
        number = opened[1] if isinstance(opened, tuple) else opened.stream
        value = Close(at_ns=stream.closed_ns or 0, by=value[1], how=value[2], stream=number, number=value[0])
        _close.__set__(stream, value)  # type: ignore[union-attr]
    return value  # type: ignore[no-any-return]


PackedStream.opened = property(_opened_record)  # type: ignore[assignment]
PackedStream.close = property(_close_record)  # type: ignore[assignment]


_NONE: Final = msgspec.Raw(b"\xc0")
"""`nil` in MessagePack."""


class PackedTransaction(Transaction, eq=False, gc=False, array_like=True):
    """A transaction of streams that are made again when they are taken: most passes over transactions look at few of them.

    Its scope is the client's name, if it is its own, or a number among those of several. `source` are the transactions it is among.
    """

    scope: int | str  # type: ignore[assignment]  # replaced when it is made again
    request: msgspec.Raw = _NONE  # type: ignore[assignment]  # read through the properties below
    response: msgspec.Raw = _NONE  # type: ignore[assignment]
    interim: tuple[()] = ()
    notes: tuple[()] = ()
    source: Any = None


_request: Final[Any] = Transaction.request
_response: Final[Any] = Transaction.response
_get_request, _get_response = _request.__get__, _response.__get__
_decode_stream: Final = msgspec.msgpack.Decoder(PackedStream | None).decode


def _stream_of(transaction: PackedTransaction, raw: msgspec.Raw, member: Any, sender: Side) -> PackedStream | None:
    stream: PackedStream | None = _decode_stream(raw)
    if stream is not None:
        stream.source = transaction.source, transaction.number, transaction.connection, sender
    member.__set__(transaction, stream)
    return stream


def _request_of(transaction: PackedTransaction) -> PackedStream | None:
    value: Any = _get_request(transaction)
    return _stream_of(transaction, value, _request, CLIENT) if value.__class__ is msgspec.Raw else value


def _response_of(transaction: PackedTransaction) -> PackedStream | None:
    value: Any = _get_response(transaction)
    return _stream_of(transaction, value, _response, SERVER) if value.__class__ is msgspec.Raw else value


PackedTransaction.request = property(_request_of)  # type: ignore[assignment]
PackedTransaction.response = property(_response_of)  # type: ignore[assignment]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[PackedTransaction | None]).decode

_SCOPE: Final = Transaction.__struct_fields__.index("scope")
_REQUEST: Final = Transaction.__struct_fields__.index("request")
_RESPONSE: Final = Transaction.__struct_fields__.index("response")
_OPENED: Final = Stream.__struct_fields__.index("opened")
_CLOSE: Final = Stream.__struct_fields__.index("close")

_UNPACKABLE: Final = (ValueError, OverflowError)
"""Errors of MessagePack: half a character, a number of more than 64 bits."""


class PackedTransactions(Mapping[int, Transaction]):
    """Transactions by their numbers, in the order in which they came, and `streams`, which are packed with them."""

    __slots__ = (
        "_blocks", "_firsts", "_is_regular", "_kept", "_near", "_newest", "_numbers", "_opening_numbers", "_openings", "_recent",
        "_reads_heads", "_scope_numbers", "_scopes", "_slow", "_source", "_unusual", "streams",
    )  # fmt: skip

    def __init__(self, transactions: dict[int, Transaction], streams: dict[int, Open], source: PayloadSource) -> None:
        self._newest = transactions
        self._source = source
        self.streams = PackedStreams(streams, self)
        self._blocks: list[bytes] = []
        self._numbers = array("Q")
        self._unusual = bytearray()
        """For each block whether it has a transaction that is not usual."""
        self._slow = bytearray()
        """For each block whether it has one that is slow."""
        self._reads_heads = False
        """True if the head of some packed transaction is not held, but read again."""
        self._kept: dict[int, Transaction] = {}
        """By number those in blocks that are not packed."""
        self._firsts: dict[int, Transaction] = {}
        """By number those that a later one with the same number replaced, which happens in damaged captures only."""
        self._recent: dict[int, list[Transaction]] = {}
        self._near: tuple[int, list[Transaction]] = (0, [])
        """The number of the first transaction of the block from which one was taken by its number, and that block."""
        self._is_regular = True
        """False once a number came that does not count up: then nothing more is packed."""
        self._openings: list[Opening] = []
        self._opening_numbers: dict[Opening, int] = {}
        self._scopes: list[Scope] = []
        self._scope_numbers: dict[int, int] = {}

    def __setitem__(self, number: int, transaction: Transaction) -> None:
        if number not in self._newest and (not self._numbers or number > self._numbers[-1]):
            self._newest[number] = transaction
            return
        at = self._position(number)
        if at >= 0 or number in self._newest:
            self._firsts.setdefault(number, self[number])
        if at < 0:
            self._newest[number] = transaction
        else:
            self._kept[number] = transaction
            self._unusual[at // BLOCK_TRANSACTIONS] = True
            self._recent.pop(at // BLOCK_TRANSACTIONS, None)
            self._near = 0, []

    def __getitem__(self, number: int) -> Transaction:
        transaction = self._newest.get(number)
        if transaction is not None:
            return transaction
        begin, block = self._near
        if 0 <= number - begin < len(block) and block[number - begin].number == number:
            return block[number - begin]
        at = self._position(number)
        if at < 0:
            raise KeyError(number)
        block = self._block(at // BLOCK_TRANSACTIONS)
        self._near = block[0].number, block
        return block[at % BLOCK_TRANSACTIONS]

    def first(self, number: int) -> Transaction:
        """Return the first transaction with this number: it is the one that rows mean."""
        return self._firsts.get(number) or self[number]

    def is_first(self, transaction: Transaction) -> bool:
        """Return whether a transaction can be named by its number: whether `first` returns it, or what was packed of it."""
        number = transaction.number
        known = self._firsts.get(number) or self._newest.get(number) or self._kept.get(number)
        if known is None:
            known = self.get(number)
            return known is not None and known.at_ns == transaction.at_ns and known.connection == transaction.connection
        return known is transaction

    def __contains__(self, number: object) -> bool:
        return number in self._newest or (isinstance(number, int) and self._position(number) >= 0)

    def __iter__(self) -> Iterator[int]:
        yield from self._numbers
        yield from self._newest

    def __len__(self) -> int:
        return len(self._numbers) + len(self._newest)

    def values(self) -> ValuesView[Transaction]:
        """Return a view of the transactions."""
        return _Values(self)

    def all(self) -> Iterator[Transaction]:
        """Yield the transactions in their order."""
        for at in range(len(self._blocks)):
            yield from self._block(at)
        yield from self._newest.values()

    def unusual(self) -> Iterator[Transaction]:
        """Yield at least the transactions that are not usual, in their order; see `transaction.unusual`."""
        for at, is_unusual in enumerate(self._unusual):
            if is_unusual:
                yield from self._block(at)
        yield from self._newest.values()

    def slow(self) -> Iterator[Transaction]:
        """Yield at least the transactions that are slow or not usual, in their order; see `transaction.slow`."""
        for at, flags in enumerate(zip(self._slow, self._unusual, strict=True)):
            if any(flags):
                yield from self._block(at)
        yield from self._newest.values()

    def packed_heads(self) -> Iterable[bytes] | None:
        """Return the different heads of packed transactions; None if they are not all held."""
        return None if self._reads_heads else [head for head, *_ in self._openings]

    def all_reversed(self) -> Iterator[Transaction]:
        """Yield them in the other order."""
        yield from reversed(self._newest.values())
        for at in range(len(self._blocks) - 1, -1, -1):
            yield from reversed(self._block(at))

    def pack(self, is_held: Callable[[Transaction], bool]) -> None:
        """Pack the transactions that are old enough, but for those that go on or that somebody still holds."""
        newest = self._newest
        while self._is_regular and len(newest) >= BLOCK_TRANSACTIONS + NEWEST_TRANSACTIONS:
            block = list(islice(newest.values(), BLOCK_TRANSACTIONS))
            waits = len(newest) <= MOST_NEWEST_TRANSACTIONS
            if waits and not all(transaction.over for transaction in block):
                break
            numbers = array("Q", [transaction.number for transaction in block])
            last = self._numbers[-1] if self._numbers else -1
            if list(newest)[: len(block)] != list(numbers) or any(
                number <= before for number, before in zip(numbers, (last, *numbers), strict=False)
            ):
                self._is_regular = False
                break
            self._pack_block(block, is_held)
            self._numbers.extend(numbers)
            for number in numbers:
                del newest[number]

    def _pack_block(self, block: list[Transaction], is_held: Callable[[Transaction], bool]) -> None:
        entries = [None if is_held(transaction) else self._entry(transaction) for transaction in block]
        try:
            data = _encode(entries)
        except _UNPACKABLE:
            entries = [None] * len(block)
            data = _encode(entries)
        self._blocks.append(compressed(data, len(self._blocks)))
        self._unusual.append(not all(map(is_usual, block)) or None in entries)
        self._slow.append(any(map(is_slow, block)))
        for transaction, entry in zip(block, entries, strict=True):
            if entry is None:
                self._kept[transaction.number] = transaction
            else:
                self.streams.pack(transaction)

    def _entry(self, transaction: Transaction) -> tuple[Any, ...] | None:
        """Return what MessagePack has for a transaction; None if it stays as it is."""
        request, response = transaction.request, transaction.response
        if not transaction.over or transaction.row or transaction.notes or transaction.interim or transaction.intercepted:
            return None
        packed_request = None if request is None else self._stream(request, transaction, CLIENT)
        packed_response = None if response is None else self._stream(response, transaction, SERVER)
        if (packed_request is None and request is not None) or (packed_response is None and response is not None):
            return None
        fields = list(astuple(transaction))
        fields[_SCOPE] = self._scope(transaction.scope)
        fields[_REQUEST] = packed_request
        fields[_RESPONSE] = packed_response
        return tuple(fields)

    def _stream(self, stream: Stream, transaction: Transaction, sender: Side) -> list[Any] | None:
        opened, close = stream.opened, stream.close
        if close is None or stream.kept or opened.extra or close.extra or opened.sender != sender:
            return None
        if (opened.transaction, opened.connection) != (transaction.number, transaction.connection):
            return None
        if (opened.at_ns, close.at_ns, close.stream) != (stream.at_ns, stream.closed_ns, opened.stream):
            return None
        opening = self._opening_number(opened)
        if opening is None:
            return None
        fields = list(astuple(stream))
        fields[_OPENED] = opened.number, opened.stream, opening
        fields[_CLOSE] = close.number, close.by, close.how
        return fields

    def _opening_number(self, opened: Open) -> int | None:
        """Return the number of an opening among those that are held, or `_READ_AGAIN`; None if it cannot be read again either."""
        opening = _opening(opened)
        number = self._opening_numbers.get(opening)
        if number is None and len(self._openings) < MAX_OPENINGS:
            number = self._opening_numbers[opening] = len(self._openings)
            self._openings.append(opening)
        if number is None and self._source.record(opened.number) == opened:
            self._reads_heads = True
            return _READ_AGAIN
        return number

    def _scope(self, scope: Scope) -> int | str:
        if scope.is_one_transaction and not (scope.session or scope.stream or scope.unknown_since or scope.replaces):
            return scope.client
        number = self._scope_numbers.get(id(scope))  # it is held here, so that no other has this id
        if number is None:
            number = self._scope_numbers[id(scope)] = len(self._scopes)
            self._scopes.append(scope)
        return number

    def opening(self, opened: tuple[int, int, int]) -> Opening:
        """Return the opening of a packed `Open`. Raises: CaptureError; OSError."""
        number, _, opening = opened
        if opening != _READ_AGAIN:
            return self._openings[opening]
        record = self._source.record(number)
        assert isinstance(record, Open)  # as it was when it was packed
        return _opening(record)

    def _position(self, number: int) -> int:
        """Return the position of a transaction in the blocks; -1 if it is not in one."""
        if number < 0:
            return -1
        at = bisect_left(self._numbers, number)
        return at if at < len(self._numbers) and self._numbers[at] == number else -1

    def _block(self, at: int) -> list[Transaction]:
        block = self._recent.pop(at, None)
        if block is None:
            begin, decoded = at * BLOCK_TRANSACTIONS, _decode(decompressed(self._blocks[at]))
            block = [
                self._joined(entry, number)
                for number, entry in zip(self._numbers[begin : begin + len(decoded)], decoded, strict=True)
            ]
            if len(self._recent) == _RECENT:
                del self._recent[next(iter(self._recent))]
        self._recent[at] = block  # the last one used is the last one to go
        return block

    def _joined(self, entry: PackedTransaction | None, number: int) -> Transaction:
        kept = self._kept.get(number)
        if kept is not None or entry is None:
            return self._kept[number]
        scope: Any = entry.scope
        entry.scope = Scope(ScopeKind.TRANSACTION, client=scope) if isinstance(scope, str) else self._scopes[scope]  # type: ignore[assignment]
        entry.source = self
        return entry


def _opening(record: Open) -> Opening:
    return record.head, record.forwarded, record.redacted, record.name, record.framing, record.injected


class _Values(ValuesView[Transaction]):
    """The transactions, taken block by block."""

    _mapping: PackedTransactions

    def __iter__(self) -> Iterator[Transaction]:
        return self._mapping.all()

    def __reversed__(self) -> Iterator[Transaction]:
        return self._mapping.all_reversed()


class PackedStreams(Mapping[int, Open]):
    """The records that opened streams, by the streams' numbers. Of packed streams only the numbers of the transactions are kept."""

    __slots__ = ("_carriers", "_count", "_newest", "_transactions")

    def __init__(self, streams: dict[int, Open], transactions: PackedTransactions) -> None:
        self._newest = streams
        self._transactions = transactions
        self._carriers = NumberMap()
        self._count = 0

    def pack(self, transaction: Transaction) -> None:
        """Forget the streams of a transaction, which can make them again."""
        for stream in (transaction.request, transaction.response):
            if stream is not None and self._newest.get(stream.opened.stream) is stream.opened:
                del self._newest[stream.opened.stream]
                self._carriers[stream.opened.stream] = transaction.number
                self._count += 1

    def carrier(self, stream: int) -> int:
        """Return the number of the transaction that a stream belongs to; 0 if it belongs to none."""
        opened = self._newest.get(stream)
        return self._carriers[stream] if opened is None else opened.transaction

    def __setitem__(self, stream: int, record: Open) -> None:
        if self._carriers[stream]:
            self._carriers[stream] = 0
            self._count -= 1
        self._newest[stream] = record

    def __getitem__(self, stream: int) -> Open:
        opened = self._newest.get(stream)
        if opened is not None:
            return opened
        transaction = self._transactions.get(self._carriers[stream])
        for known in () if transaction is None else (transaction.request, transaction.response):
            if known is not None and known.number == stream:
                return known.opened
        raise KeyError(stream)

    def __contains__(self, stream: object) -> bool:
        return stream in self._newest or (isinstance(stream, int) and self._carriers[stream] > 0)

    def __iter__(self) -> Iterator[int]:
        yield from self._carriers
        yield from self._newest

    def __len__(self) -> int:
        return self._count + len(self._newest)

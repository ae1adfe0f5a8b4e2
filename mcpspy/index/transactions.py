"""The HTTP transactions of an index, in blocks as rows are: their records and bytes are read from the capture on request."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast, overload

import msgspec

from ..records import Frame, Note, Open
from ..transcript.http.transaction import Scope, ScopeKind, Stream, Transaction
from ..transcript.stored_rows import BLOCK_ROWS

if TYPE_CHECKING:
    from ..capture.file.payloads import Payloads

Place: TypeAlias = tuple[int, int]
"""Offset and number of a record."""

_RECENT: Final = 32
"""So many blocks are kept."""


class ScopeEntry(msgspec.Struct, array_like=True, frozen=True):
    """A scope of several transactions. `replaces` is its position among the others."""

    kind: ScopeKind
    session: str
    stream: int
    client: str
    unknown_since: int
    replaces: int | None
    unread: bool


def scopes_from(entries: Sequence[ScopeEntry]) -> list[Scope]:
    """Return the scopes, each of which may replace another."""
    scopes = [Scope(entry.kind, entry.session, entry.stream, entry.client, entry.unknown_since) for entry in entries]
    for scope, entry in zip(scopes, entries, strict=True):
        scope.unread = entry.unread
        scope.replaces = None if entry.replaces is None else scopes[entry.replaces]
    return scopes


class StreamSource(NamedTuple):
    """The capture that streams read from. With `keeps_frames` they have their frames.

    A stream must not refer to what holds its transaction: the garbage collector does not see it, and would never free both.
    """

    payloads: Payloads
    keeps_frames: bool


class IndexedCapture:
    """The capture that entries read from, with its transactions. With `keeps_frames` streams have their frames."""

    __slots__ = ("payloads", "scopes", "streams", "transactions")

    def __init__(self, payloads: Payloads, *, keeps_frames: bool) -> None:
        self.payloads = payloads
        self.streams = StreamSource(payloads, keeps_frames)
        self.transactions: Mapping[int, Transaction] = {}
        self.scopes: list[Scope] = []
        """Those of several transactions."""


class RecordedFrames(Sequence[Frame]):
    """The frames at these places, each read when it is taken, and those that came `later`. Raises: CaptureError; OSError."""

    __slots__ = ("_later", "_payloads", "_places")

    def __init__(self, places: Sequence[Place], payloads: Payloads, later: Sequence[Frame] = ()) -> None:
        self._places = places
        self._payloads = payloads
        self._later = later

    def grown(self, later: Sequence[Frame]) -> RecordedFrames:
        """Return these frames, and those that came later."""
        return RecordedFrames(self._places, self._payloads, later)

    @overload
    def __getitem__(self, at: int) -> Frame: ...
    @overload
    def __getitem__(self, at: slice) -> list[Frame]: ...
    def __getitem__(self, at: int | slice) -> Frame | list[Frame]:
        if isinstance(at, slice):
            return [self[index] for index in range(len(self))[at]]
        index = range(len(self))[at]
        if index >= len(self._places):
            return self._later[index - len(self._places)]
        return cast("Frame", self._payloads.record(*self._places[index]))

    def __len__(self) -> int:
        return len(self._places) + len(self._later)


class RecordedStream(Stream, eq=False, gc=False, array_like=True):
    """A stream whose records are in the capture."""

    opened: Place  # type: ignore[assignment]  # read through the properties below
    close: Place | None = None  # type: ignore[assignment]
    kept: Sequence[Place] = ()  # type: ignore[assignment]
    source: Any = None


_kept: Final = Stream.kept


def _record_in(member: Any) -> property:
    """Return a property for a member that holds a record, or its place until it is asked for."""

    def record(stream: RecordedStream) -> Any:
        value = member.__get__(stream)
        if isinstance(value, tuple):
            value = stream.source.payloads.record(*value)
            member.__set__(stream, value)
        return value

    return property(record)


def _kept_frames(stream: RecordedStream) -> Sequence[Frame]:
    source = stream.source
    return RecordedFrames(kept_places(stream), source.payloads) if source.keeps_frames else ()


def kept_places(stream: RecordedStream) -> Sequence[Place]:
    """Return the places of a stream's frames."""
    return _kept.__get__(stream)  # type: ignore[attr-defined, no-any-return]


RecordedStream.opened = _record_in(Stream.opened)  # type: ignore[assignment]
RecordedStream.close = _record_in(Stream.close)  # type: ignore[assignment]
RecordedStream.kept = property(_kept_frames)  # type: ignore[assignment]


class IndexedTransaction(Transaction, eq=False, gc=False, array_like=True):
    """A transaction of recorded streams. Its scope is the client's name, if it is its own, or a position among those of several."""

    scope: int | str  # type: ignore[assignment]  # replaced when it is read
    request: RecordedStream | None = None
    response: RecordedStream | None = None
    interim: Sequence[RecordedStream] = ()
    notes: Sequence[Place] = ()  # type: ignore[assignment]


_decode = msgspec.msgpack.Decoder(list[IndexedTransaction]).decode


def transactions_from(block: bytes, source: IndexedCapture) -> list[Transaction]:
    """Return the transactions of a block. Raises: ValueError: if it is none; CaptureError."""
    try:
        entries = _decode(block)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError("no block of an index") from error
    for entry in entries:
        scope: Any = entry.scope
        entry.scope = Scope(ScopeKind.TRANSACTION, client=scope) if isinstance(scope, str) else source.scopes[scope]  # type: ignore[assignment]
        for stream in (entry.request, entry.response, *entry.interim):
            if stream is not None:
                stream.source = source.streams
        if entry.notes:
            entry.notes = [_note(source, place) for place in entry.notes]  # type: ignore[misc]
    return entries  # type: ignore[return-value]


def _note(source: IndexedCapture, place: Place) -> Note:
    return source.payloads.record(*place)  # type: ignore[return-value]


class StoredTransactions(Mapping[int, Transaction]):
    """Transactions by their numbers, read in blocks. If `read` raises ValueError, `whole` reads all in another way."""

    __slots__ = ("_all", "_numbers", "_read", "_recent", "_whole")

    def __init__(
        self,
        numbers: array[int],
        *,
        read: Callable[[int], list[Transaction]],
        whole: Callable[[], Mapping[int, Transaction]],
    ) -> None:
        self._numbers = numbers
        self._read = read
        self._whole = whole
        self._all: list[Transaction] = []
        self._recent: dict[int, list[Transaction]] = {}

    def __getitem__(self, number: int) -> Transaction:
        at = bisect_left(self._numbers, number)
        if not _has(self._numbers, at, number):
            raise KeyError(number)
        return self._block(at // BLOCK_ROWS)[at % BLOCK_ROWS]

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and _has(self._numbers, bisect_left(self._numbers, number), number)

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def _block(self, number: int) -> list[Transaction]:
        block = self._recent.pop(number, None) or self._read_block(number)
        if len(self._recent) == _RECENT:
            del self._recent[next(iter(self._recent))]
        self._recent[number] = block  # the last one used is the last one to go
        return block

    def _read_block(self, number: int) -> list[Transaction]:
        if not self._all:
            try:
                return self._read(number)
            except ValueError:
                self._all = list(self._whole().values())
        return self._all[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS]


def _has(numbers: array[int], at: int, number: int) -> bool:
    return at < len(numbers) and numbers[at] == number


class StoredStreams(Mapping[int, Open]):
    """The records that opened the streams of a capture, by the streams' numbers: those of transactions, and `others`."""

    __slots__ = ("_carriers", "_numbers", "_others", "_transactions")

    def __init__(
        self, numbers: array[int], carriers: array[int], transactions: Mapping[int, Transaction], others: dict[int, Open]
    ) -> None:
        self._numbers = numbers
        self._carriers = carriers
        self._transactions = transactions
        self._others = others

    def __getitem__(self, stream: int) -> Open:
        at = bisect_left(self._numbers, stream)
        if not _has(self._numbers, at, stream):
            return self._others[stream]
        transaction = self._transactions[self._carriers[at]]
        for known in transaction.streams:
            if known.opened.stream == stream:
                return known.opened
        raise KeyError(stream)

    def __contains__(self, stream: object) -> bool:
        is_carried = isinstance(stream, int) and _has(self._numbers, bisect_left(self._numbers, stream), stream)
        return is_carried or stream in self._others

    def __iter__(self) -> Iterator[int]:
        yield from self._others
        yield from self._numbers

    def __len__(self) -> int:
        return len(self._numbers) + len(self._others)

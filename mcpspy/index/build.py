"""A transcript of a large capture to its index: rows in blocks, and what is known of all of them.

Only captures whose records all have their places are indexed, with at most a torn end; for others there is no index.
"""

from __future__ import annotations

from array import array
from binascii import crc32
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from msgspec.structs import asdict, astuple

from ..errors import CaptureError
from ..records import Damage, Gap, Note, Partial
from ..transcript.findings.finders import is_unchecked
from ..transcript.findings.run import hits_of, reached_limits
from ..transcript.http.transaction import Scope, Stream, Transaction
from ..transcript.log_matches import log_matches
from ..transcript.message import Message
from ..transcript.model import (
    CaptureInfo,
    ChannelEvent,
    Exchange,
    Log,
    Numbered,
    Outcome,
    Row,
    Transcript,
    UnpairedMessage,
)
from ..transcript.phases import lifecycles
from ..transcript.stats.outcomes import outcomes
from ..transcript.stats.stored_numbers import SECTION as NUMBERS
from ..transcript.stats.stored_numbers import numbers_entry
from ..transcript.stats.troubles import troubles
from ..transcript.stored_rows import BLOCK_ROWS, RowFigures
from ..transcript.waiting import waited_ns
from .columns import class_columns, row_columns
from .entries import answer_entry
from .facts import Facts, call_entries, copied, encode
from .file import Identity, IndexWriter, is_still
from .places import NotIndexedError, Places
from .seeds import proved, seeds_of
from .transactions import ScopeEntry

T = TypeVar("T")

MoreSections: TypeAlias = Mapping[str, Callable[[Transcript], bytes]]
"""Functions that make sections, by the names of these."""

NO_SECTIONS: Final[MoreSections] = MappingProxyType({})

_RAW: Final = Message.__struct_fields__.index("raw")

MAX_CALLS: Final = 10_000
"""A capture with more calls of several rows has no index: their rows would all be held."""

MAX_LOG_MATCHES: Final = 100_000

MAX_SCOPES: Final = 10_000
"""The same holds for sessions."""


def can_be_indexed(transcript: Transcript) -> bool:
    """Return whether a transcript is of one capture, which is over or can be taken up, with few enough calls of several rows."""
    info = transcript.captures[0]
    is_whole = len(transcript.captures) == 1 and info.header is not None and info.shift_ns == 0
    is_whole = is_whole and (info.closed or not info.is_model)
    return is_whole and len(info.calls) <= MAX_CALLS and info.intercepted_ns is None and not info.restarted


def write_index(
    path: str,
    transcript: Transcript,
    of: Identity,
    version: str,
    widths: tuple[int, int, int, int, int],
    more: MoreSections = NO_SECTIONS,
) -> bool:
    """Write the index of the capture at `path`, which was `of` this identity before it was read. Return whether there is one now.

    `widths` are those of `RowFigures`, `more` makes further sections by their names. An index that cannot be written, because of the
    capture or of the disk, is none.
    """
    if not can_be_indexed(transcript):
        return False
    try:
        with IndexWriter(path) as writer:
            _write(writer, path, transcript, widths, of.size, more)
            if not is_still(path, of, closed=transcript.captures[0].closed):
                return False
            writer.finish(of, version)
    except (NotIndexedError, CaptureError, OSError, ValueError, OverflowError, RecursionError):  # no text, too large, too deep
        return False
    return True


def _write(
    writer: IndexWriter,
    path: str,
    transcript: Transcript,
    widths: tuple[int, int, int, int, int],
    size: int,
    more: MoreSections,
) -> None:
    rows, info = transcript.rows, transcript.captures[0]
    transactions = list(info.transactions.values())
    places = Places(path, size, has_frames=bool(transactions), is_damaged=info.damages > 0)
    seeds = seeds_of(transcript, places)
    if seeds is None and not info.closed:
        raise NotIndexedError
    scopes = _Scopes(transactions)
    columns = row_columns(rows, info) | class_columns(transcript) | _transaction_columns(info)
    columns |= _blocks(writer, "", rows, lambda row: _entry(row, places, info), places.next_block)
    columns |= {"begin": places.block_begins, "end": places.block_ends}
    columns |= _blocks(writer, "transaction_", transactions, lambda transaction: _transaction(transaction, places, scopes.of))
    for name, column in columns.items():
        writer.section(name, column.tobytes())
    writer.section("facts", encode(_facts(transcript, places, widths, scopes)))
    writer.section(NUMBERS, numbers_entry(transcript))
    for name, entry in more.items():
        writer.section(name, entry(transcript))

    def entries(of: Transcript, numbers: set[int], carriers: set[int]) -> bytes:
        info = of.captures[0]
        of_rows = [_entry(row, places, info) for row in of.rows if isinstance(row, Numbered) and row.row in numbers]
        carrying = [info.transactions[number] for number in sorted(carriers)]
        of_transactions = [_transaction(carrier, places, _plain_scope) for carrier in carrying]
        return encode([of_rows, call_entries(info), of_transactions])  # tasks and others are compared by their contents

    writer.section("seeds", encode(proved(seeds, transcript, places.source, entries)))


def _blocks(
    writer: IndexWriter,
    prefix: str,
    items: Sequence[T],
    entry: Callable[[T], tuple[Any, ...]],
    next_block: Callable[[], None] | None = None,
) -> dict[str, array[int]]:
    """Append the blocks of these items, and call `next_block` after each. Return the columns that list them."""
    begins, crcs = array("Q", [writer.offset]), array("I")
    for begin in range(0, len(items), BLOCK_ROWS):
        data = encode([entry(item) for item in items[begin : begin + BLOCK_ROWS]])
        crcs.append(crc32(data))
        writer.append(data)
        begins.append(writer.offset)
        if next_block is not None:
            next_block()
    return {prefix + "begins": begins, prefix + "crcs": crcs}


def _transaction_columns(info: CaptureInfo) -> dict[str, array[int]]:
    """Return the numbers of transactions and of their streams. Raises: NotIndexedError: if a number was given twice."""
    numbers = array("I", info.transactions)
    carried = sorted((stream, opened.transaction) for stream, opened in info.streams.items() if opened.transaction)
    for stream, number in carried:
        transaction = info.transactions.get(number)
        if transaction is None or not any(known.opened is info.streams[stream] for known in transaction.streams):
            raise NotIndexedError(stream)
    if len(carried) != sum(len(transaction.streams) for transaction in info.transactions.values()):
        raise NotIndexedError(carried)
    if any(number >= later for number, later in pairwise(numbers)):
        raise NotIndexedError(numbers)
    return {
        "transactions": numbers,
        "streams": array("I", [stream for stream, _ in carried]),
        "carriers": array("I", [number for _, number in carried]),
    }


def _facts(transcript: Transcript, places: Places, widths: tuple[int, int, int, int, int], scopes: _Scopes) -> Facts:
    info = transcript.captures[0]
    return Facts(
        rows=len(transcript.rows),
        lines=len(places),
        is_checked=not is_unchecked(transcript),
        info=copied(info),
        exit=None if info.exit is None else places.place(info.exit.number),
        client_names=list(info.client_names),
        client_processes=info.client_processes,
        client_ports=info.client_ports,
        streams=[places.place(opened.number) for opened in info.streams.values() if not opened.transaction],
        scopes=scopes.entries,
        clients=info.clients,
        findings=transcript.findings,
        hits=hits_of(transcript),
        limits=list(reached_limits(transcript)),
        calls=call_entries(info),
        figures=_figures(transcript, widths),
    )


def _figures(transcript: Transcript, widths: tuple[int, int, int, int, int]) -> RowFigures:
    info = transcript.captures[0]
    waits: list[tuple[int, int]] = []
    firsts: dict[Outcome, int] = {}
    slowest, slowest_ns, numbered = 0, -1, 0
    for row in transcript.rows:
        numbered += isinstance(row, Numbered)
        if isinstance(row, Exchange):
            if not row.over:
                waits.append((row.at_ns, waited_ns(row, info) or 0))
            firsts.setdefault(row.outcome, row.row)
            if (row.duration_ns or 0) > slowest_ns:
                slowest, slowest_ns = row.row, row.duration_ns or 0
    matches = log_matches(transcript.rows)
    if len(matches) > MAX_LOG_MATCHES:
        raise NotIndexedError
    return RowFigures(
        outcomes={outcome.value: count for outcome, count in outcomes(transcript).items()},
        troubles=asdict(troubles(transcript)),
        waits=waits,
        lifecycle=lifecycles(transcript)[0].state(),
        notable=sorted({*firsts.values(), slowest} - {0}),
        log_matches=[
            (number, match.row, match.message.number, match.gap_ns, match.begin, match.end)
            for (_, number), match in matches.items()
        ],
        widths=widths,
        numbered=numbered,
    )


def _entry(row: Row, places: Places, info: CaptureInfo) -> tuple[Any, ...]:
    """Return what MessagePack has for a row, as the classes of `entries` declare it."""
    if isinstance(row, Exchange):
        response, cancelled = row.response, row.cancelled
        return (
            "exchange",
            row.row,
            _message(row.request, places),
            None if response is None else _message(response, places),
            [_message(message, places) for message in row.notifications],
            None if cancelled is None else _message(cancelled, places),
            [_message(message, places) for message in row.more_responses],
            [_message(message, places) for message in row.partials],
            row.over,
            None if row.transaction is None else _number(row.transaction, info),
            row.left_ns,
            row.is_probe,
        )
    if isinstance(row, UnpairedMessage):
        return "unpaired", row.row, _message(row.message, places), row.candidates
    if isinstance(row, Log):
        return "log", row.capture, row.number, row.at_ns, places.reference(row.number, row.raw)
    if isinstance(row, ChannelEvent):
        record = row.record
        if isinstance(record, Damage):
            if record.reason == "edited":
                raise NotIndexedError  # what the line has cannot be read by itself, for nothing tells whether it was changed since
            places.cannot_be_searched()
            return "event", row.capture, row.at_ns, {name: getattr(record, name) for name in Damage.__annotations__}
        if isinstance(record, Gap | Note | Partial):
            places.cannot_be_searched()
        return "event", row.capture, row.at_ns, places.place(record.number)
    if isinstance(row, Transaction):
        return "transaction", _number(row, info)
    answer = row.answer
    return (
        "model",
        row.row,
        row.api,
        _number(row.transaction, info),
        places.body(row.transaction.request, row.payload),
        row.model,
        row.first_ns,
        row.added,
        row.before,
        None if answer is None else answer_entry(answer),
    )


def _number(transaction: Transaction, info: CaptureInfo) -> int:
    """Return the number of a transaction. Raises: NotIndexedError: if another one has it too."""
    if info.transactions.get(transaction.number) is not transaction:
        raise NotIndexedError(transaction.number)
    return transaction.number


def _message(message: Message, places: Places) -> list[Any]:
    fields, raw = list(astuple(message)), message.raw
    if message.batch or message.unkept_bytes:
        places.cannot_be_searched()
    else:
        fields[_RAW] = places.reference(message.number, raw)
    fields.append(len(raw))
    return fields


class _Scopes:
    """The scopes of transactions: those that are more than the name of one transaction's client have entries."""

    __slots__ = ("_positions", "entries")

    def __init__(self, transactions: Sequence[Transaction]) -> None:
        self._positions: dict[int, int] = {}
        self.entries: list[ScopeEntry] = []
        for transaction in transactions:
            if not _is_plain(transaction.scope):
                self._add(transaction.scope)

    def of(self, scope: Scope) -> int | str:
        """Return what the entry of a transaction has for its scope."""
        return scope.client if _is_plain(scope) else self._positions[id(scope)]

    def _add(self, scope: Scope) -> None:
        chain: list[Scope] = []
        known: Scope | None = scope
        while known is not None and id(known) not in self._positions:
            self._positions[id(known)] = -1
            chain.append(known)
            known = known.replaces
        if len(self._positions) > MAX_SCOPES:
            raise NotIndexedError
        for new in reversed(chain):
            self._positions[id(new)] = len(self.entries)
            replaced = None if new.replaces is None else self._positions[id(new.replaces)]
            self.entries.append(
                ScopeEntry(new.kind, new.session, new.stream, new.client, new.unknown_since, replaced, new.unread)
            )


def _is_plain(scope: Scope) -> bool:
    return scope.is_one_transaction and not (scope.session or scope.stream or scope.unknown_since or scope.replaces)


_SCOPE: Final = Transaction.__struct_fields__.index("scope")
_REQUEST: Final = Transaction.__struct_fields__.index("request")
_RESPONSE: Final = Transaction.__struct_fields__.index("response")
_INTERIM: Final = Transaction.__struct_fields__.index("interim")
_NOTES: Final = Transaction.__struct_fields__.index("notes")
_OPENED: Final = Stream.__struct_fields__.index("opened")
_CLOSE: Final = Stream.__struct_fields__.index("close")
_KEPT: Final = Stream.__struct_fields__.index("kept")


def _plain_scope(scope: Scope) -> object:
    return scope.kind, scope.session, scope.stream, scope.client, scope.unknown_since


def _transaction(transaction: Transaction, places: Places, scope_entry: Callable[[Scope], object]) -> tuple[Any, ...]:
    fields = list(astuple(transaction))
    fields[_SCOPE] = scope_entry(transaction.scope)
    fields[_REQUEST] = None if transaction.request is None else _stream(transaction.request, places)
    fields[_RESPONSE] = None if transaction.response is None else _stream(transaction.response, places)
    fields[_INTERIM] = [_stream(stream, places) for stream in transaction.interim]
    fields[_NOTES] = [places.place(note.number) for note in transaction.notes]
    return tuple(fields)


def _stream(stream: Stream, places: Places) -> list[Any]:
    fields = list(astuple(stream))
    fields[_OPENED] = places.place(stream.opened.number)
    fields[_CLOSE] = None if stream.close is None else places.place(stream.close.number)
    fields[_KEPT] = places.frames(stream.opened, stream.close)
    return fields

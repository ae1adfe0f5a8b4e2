"""The HTTP transactions among the seeds of a capture, with all of their records: those on which later rows depend.

    capture   header  POST initialize  … 100,000 transactions …  POST 7, which waits  …  the newest  │  what came since
    seeds     header  POST initialize                            POST 7                  the newest  │

A transaction is among them if it goes on, if it is the first or the newest of its session, if it carries a message of a row that is
among them, or if it was half-closed. Rows are, if they have a message in such a transaction. Of a stream that a GET brought only
some events are among them: those with messages of these rows. What others made of the stream comes from the index (`complete`):

    capture   GET /sse  endpoint  result 1 … result 99,999  result 100,000 │  POST 7, which waits  │  result 7
    seeds     GET /sse  endpoint                            result 100,000 │  POST 7, which waits  │

Captures whose transactions refer to each other in more ways have no seeds: those of streams that were resumed, of sessions that the
server lost, of streams that answer POSTs without an endpoint.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from ..transcript.correlator import PONG
from ..transcript.digests import blake2b
from ..transcript.http.head import LAST_EVENT_ID, SESSION
from ..transcript.http.transaction import ANSWER_REFUSED, ANSWER_TAKEN, Scope, ScopeKind, Transaction
from ..transcript.mcp.methods import OPENINGS, PING
from ..transcript.model import (
    HTTP_REDIRECTS,
    CaptureInfo,
    Exchange,
    Kind,
    Message,
    Numbered,
    Outcome,
    Transcript,
    UnpairedMessage,
)
from .places import Places

_RESUMES: Final = LAST_EVENT_ID.encode()
_SESSION: Final = SESSION.encode()
_REVISION: Final = b"mcp-protocol-version"
_SETTLED: Final = frozenset({ANSWER_TAKEN, ANSWER_REFUSED})
_REFUSED: Final = frozenset({Outcome.HTTP_ERROR, Outcome.REDIRECTED})


def is_plain_http(transcript: Transcript) -> bool:
    """Return whether transactions refer to each other by sessions and announced endpoints alone, each of which has an opening."""
    info = transcript.captures[0]
    if not all(opened.transaction for opened in info.streams.values()):
        return False
    scopes: set[int] = set()
    for transaction in info.transactions.values():
        scope, request, response = transaction.scope, transaction.request, transaction.response
        head = b"" if request is None else request.opened.head.lower()
        if scope.kind is ScopeKind.STREAM:
            if _SESSION in head or not _follows_endpoint(transaction, info):
                return False
        elif scope.kind is ScopeKind.TRANSACTION and _SESSION in head:
            return False
        if scope.unknown_since or scope.replaces is not None or _RESUMES in head:
            return False
        if response is not None and response.last_event_id and response.opened.framing != "sse":
            return False
        if not scope.is_one_transaction and transaction.number != scope.stream:
            scopes.add(id(scope))
    for row in transcript.rows:
        if isinstance(row, Exchange) and row.request.method in OPENINGS and row.transaction is not None:
            scopes.discard(id(row.transaction.scope))
        elif isinstance(row, UnpairedMessage) and _may_find_another(row):
            return False
    return not scopes


def _follows_endpoint(transaction: Transaction, info: CaptureInfo) -> bool:
    """Return whether a transaction of HTTP+SSE is a stream that announced an endpoint, or came after that."""
    stream = info.transactions[transaction.scope.stream]
    endpoint = None if stream.response is None else stream.response.endpoint
    if endpoint is None or transaction.request is None or not is_in_part(stream):
        return False
    return transaction.number == stream.number or transaction.request.opened.number > endpoint.number


def _may_find_another(row: UnpairedMessage) -> bool:
    """Return whether a row may turn out to be about another one: a beat without an id, or what findings call misdelivered."""
    return row.message.method in (PING, PONG) or (bool(row.candidates) and is_response(row))


def is_response(row: UnpairedMessage) -> bool:
    """Return whether a row is a response that answers no request. It may have been meant for one in another scope."""
    return row.message.kind in (Kind.RESULT, Kind.ERROR) and row.message.id is not None


def is_in_part(transaction: Transaction) -> bool:
    """Return whether some events of a transaction are enough as seeds: it is a stream that a GET brought, in a scope of several."""
    response = transaction.response
    if transaction.method != "GET" or response is None or transaction.scope.is_one_transaction or transaction.request_messages:
        return False
    return response.opened.framing == "sse" and transaction.status < HTTP_REDIRECTS and not response.injected


_OF_EVENTS: Final = ("response_messages", "redelivered", "anomalies")
_OF_FRAMES: Final = (
    "first_ns", "last_ns", "body_bytes", "events", "comments", "keep_alives", "endpoint", "chunks", "open_chunk", "last_event_id",
)  # fmt: skip


def complete(info: CaptureInfo, transactions: Mapping[int, Transaction]) -> None:
    """Give the transactions in part what all of their events made of them: `transactions` has them as they were."""
    for number, transaction in info.transactions.items():
        if is_in_part(transaction):
            known = transactions[number]
            for name in _OF_EVENTS:
                setattr(transaction, name, getattr(known, name))
            for name in _OF_FRAMES:
                setattr(transaction.response, name, getattr(known.response, name))


def sent_ids(info: CaptureInfo, places: Places) -> array[int]:
    """Return what `_hash` makes of the ids of all events so far, in order, in scopes of several transactions.

    Raises: NotIndexedError: if an event with an id is in parts.
    """
    scopes = {
        transaction.response.opened.stream: transaction.scope
        for transaction in info.transactions.values()
        if transaction.response is not None and not transaction.scope.is_one_transaction
        if transaction.response.opened.framing == "sse"
    }
    return array("Q", sorted({_hash(scopes[stream], id) for stream, id in places.ids(scopes)}))


def sent_before(hashes: bytes) -> Callable[[Scope, str], bool]:
    """Return what tells whether an event with this id may have come in a scope before, by what `sent_ids` returned."""
    ids = array("Q", hashes)

    def is_among(scope: Scope, id: str) -> bool:
        at = bisect_left(ids, hashed := _hash(scope, id))
        return at < len(ids) and ids[at] == hashed

    return is_among


def _hash(scope: Scope, id: str) -> int:
    text = f"{scope.kind} {scope.stream} {len(scope.session)} {scope.session} {id}"
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def with_transactions(
    chosen: dict[int, Numbered],
    transcript: Transcript,
    with_equal_keys: Callable[[dict[int, Numbered], Transcript], dict[int, Numbered]],
    places: Places,
    most: int,
) -> tuple[dict[int, Numbered], set[int]]:
    """Return the rows that are chosen, all with messages in what has to be with them, and the numbers of the records of that.

    If there are more than `most` rows or transactions, these are not all, and there are no records.
    """
    carried = _Carried(transcript.captures[0], places)
    chosen = {**chosen, **_first_of_methods(transcript), **carried.broken(transcript)}
    while len(chosen) <= most and len(carried.numbers) <= most:
        chosen = with_equal_keys(chosen, transcript)
        for row in chosen.values():
            carried.take(row)
        more = {
            row.row: row
            for row in transcript.rows
            if isinstance(row, Numbered) and row.row not in chosen and carried.has_some_of(row)
        }
        if not more:
            return chosen, set(carried.records())
        chosen.update(more)
    return chosen, set()


class _Carried:
    """The transactions that have to be among the seeds, by their `numbers`, and the events of those that are in part."""

    __slots__ = ("_events", "_info", "_parts", "_places", "numbers")

    def __init__(self, info: CaptureInfo, places: Places) -> None:
        self._info = info
        self._places = places
        self._parts = {number for number, transaction in info.transactions.items() if is_in_part(transaction)}
        self._events: set[int] = set()
        """The numbers of their last records."""
        self.numbers: set[int] = set()
        for transaction in _needed(info):
            self._add(transaction.number)

    def broken(self, transcript: Transcript) -> dict[int, Numbered]:
        """Return the last message of each stream in part that could not be read: it was cut short if the stream breaks off."""
        messages = (row for row in transcript.rows if isinstance(row, UnpairedMessage) and row.message.kind is Kind.MALFORMED)
        last = {row.message.stream: row for row in messages if self._carrier(row.message) in self._parts}
        return {row.row: row for row in last.values()}

    def take(self, row: Numbered) -> None:
        """Take what carries the messages of a row."""
        if isinstance(row, Transaction):
            self._add(row.number)
        for message in _messages(row):
            number = self._carrier(message)
            if number:
                self._add(number)
            if number in self._parts:
                self._events.add(message.number)

    def has_some_of(self, row: Numbered) -> bool:
        """Return whether this has a message of a row, or the transaction that the row is."""
        if isinstance(row, Transaction):
            return row.number in self.numbers
        return any(
            message.number in self._events if (number := self._carrier(message)) in self._parts else number in self.numbers
            for message in _messages(row)
        )

    def records(self) -> Iterator[int]:
        """Yield the numbers of the records."""
        for number in self.numbers:
            transaction = self._info.transactions[number]
            yield from (note.number for note in transaction.notes)
            for stream in transaction.streams:
                yield stream.opened.number
                is_in_part = number in self._parts and stream is transaction.response
                for event in self._places.events(stream.opened, stream.close):
                    if not is_in_part or event[-1] in self._events:
                        yield from event
                if stream.close is not None:
                    yield stream.close.number

    def _add(self, number: int) -> None:
        """Take a transaction; of one in part the first event, and those that may announce an endpoint."""
        if number not in self.numbers:
            self.numbers.add(number)
            stream = self._info.transactions[number].response
            if number in self._parts and stream is not None:
                events = self._places.events(stream.opened, stream.close)
                self._events.update(event[-1] for at, event in enumerate(events) if not at or self._places.may_announce(event))

    def _carrier(self, message: Message) -> int:
        """Return the number of the transaction that has a message; 0 if its stream is not known."""
        opened = self._info.streams.get(message.stream)
        return 0 if opened is None else opened.transaction


def _messages(row: Numbered) -> Sequence[Message]:
    return row.messages if isinstance(row, Exchange) else (row.message,) if isinstance(row, UnpairedMessage) else ()


def resumes(transaction: Transaction) -> bool:
    """Return whether a transaction asks for what comes after an event."""
    return transaction.request is not None and _RESUMES in transaction.request.opened.head.lower()


def is_over(transaction: Transaction) -> bool:
    """Return whether nothing comes any more in the streams of a transaction, and of it."""
    is_settled = transaction.half_closed_ns is None or any(note.topic in _SETTLED for note in transaction.notes)
    return is_settled and transaction.over and all(stream.close is not None for stream in transaction.streams)


def carriers(row: Numbered, info: CaptureInfo) -> set[int]:
    """Return the numbers of the transactions that have a message of a row."""
    if isinstance(row, Transaction):
        return {row.number}
    return {info.streams[message.stream].transaction for message in _messages(row) if message.stream in info.streams}


def _needed(info: CaptureInfo) -> Iterator[Transaction]:
    """Yield the transactions that may go on, the streams that announced an endpoint, and of each scope of several its landmarks.

    These are the first transaction, the first that names its revision, the newest, and the first at each endpoint.
    """
    newest: dict[int, Transaction] = {}
    known: set[tuple[int, str | None]] = set()
    for transaction in info.transactions.values():
        scope, request = transaction.scope, transaction.request
        if not scope.is_one_transaction:
            names = (id(scope), None) not in known and request is not None and _REVISION in request.opened.head.lower()
            key = id(scope), transaction.target if scope.kind is ScopeKind.STREAM else "/"
            if names or key not in known:
                yield transaction
            known.update([key, (id(scope), None)] if names else [key])
            newest[id(scope)] = transaction
        if not is_over(transaction) or transaction.method == "DELETE":  # which ends what waits in its session
            yield transaction
    yield from newest.values()


def _first_of_methods(transcript: Transcript) -> dict[int, Numbered]:
    """Return the first call of each method that went well, and all that HTTP refused: whether these count depends on those."""
    chosen: dict[int, Numbered] = {}
    seen: set[str] = set()
    for row in transcript.rows:
        if isinstance(row, Exchange):
            outcome = row.outcome
            if outcome in _REFUSED or (outcome is Outcome.OK and row.method not in seen):
                chosen[row.row] = row
                seen.update([row.method] if outcome is Outcome.OK else [])
    return chosen

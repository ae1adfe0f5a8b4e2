"""HTTP's records to rows: transactions, what their streams bring, and the messages in it.

A machine like all stages: a record goes in, the rows that are new or changed come out. Refuses to cut bodies, which `http_decode`
does, and to pair, which `http_correlate` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ...records import CLIENT, SERVER
from ...wire.json_spans import members, string
from ...wire.sse import SseEvent, parse
from ..correlate import appended
from ..decode import message_of
from ..model import CaptureInfo, Exchange, Kind, Row, UnpairedMessage
from .correlate import HttpCorrelator, OpenTransaction
from .decode import BodyDecoder, CompressedEventDecoder, EventDecoder, StreamDecoder, Unit
from .head import EVENT_STREAM, LAST_EVENT_ID, Head, read_head
from .payloads import DONE, ChunkSizes
from .scopes import ScopeState, SentEvent, endpoint, origin
from .transaction import MAX_INJECTED_BYTES, Anomaly, ScopeKind, Stream, Transaction

if TYPE_CHECKING:
    from ...records import Close, Frame, Note, Open
    from ..calls.join import CallJoiner

ENDPOINT: Final = "endpoint"
RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"
"""Where a server says as which resource it wants to be asked for (RFC 9728)."""
_HTTP_OK: Final = 200
_SWITCHING_PROTOCOLS: Final = 101


class _Body:
    """A stream that goes on."""

    __slots__ = ("broken", "chunks", "decoder", "is_metadata", "stream", "work")

    def __init__(self, stream: Stream, work: OpenTransaction, decoder: StreamDecoder | None) -> None:
        self.stream = stream
        self.work = work
        self.decoder = decoder
        self.chunks = ChunkSizes()
        self.is_metadata = stream.opened.sender == SERVER and work.transaction.target.startswith(RESOURCE_METADATA)
        self.broken: UnpairedMessage | None = None
        """The last message that could not be read: cut short, if the stream turns out to be."""


class TransactionAssembler:
    """The HTTP traffic of the capture `source`. New rows go into `rows`, numbered by `next_row`.

    `frame`, `close` and `note` return None for records that are not HTTP's. `named` is told each name that a client gives itself,
    once. `keeps_frames` says that streams keep their frames, `joins` that rows are joined to calls.
    """

    __slots__ = (
        "_bodies", "_calls", "_correlator", "_joined", "_keeps_frames", "_next_row", "_rows", "_scopes", "_source", "_works",
    )  # fmt: skip

    def __init__(
        self,
        source: CaptureInfo,
        rows: list[Row],
        next_row: Callable[[], int],
        named: Callable[[CaptureInfo, str], None],
        *,
        keeps_frames: bool,
        joins: bool,
    ) -> None:
        self._source = source
        self._rows = rows
        self._next_row = next_row
        self._keeps_frames = keeps_frames
        self._calls: CallJoiner | None = None
        self._joined: frozenset[str] = frozenset()
        if joins:
            from ..calls.join import JOINED, CallJoiner

            self._calls, self._joined = CallJoiner(source), JOINED
        self._correlator = HttpCorrelator(source, next_row, named)
        self._scopes = self._correlator.scopes
        self._bodies: dict[int, _Body] = {}
        self._works: dict[int, OpenTransaction] = {}
        """Transactions that go on, by number."""

    def open(self, record: Open) -> Sequence[Row]:
        """A stream began: a request or a response."""
        if not self._scopes.url and self._source.header is not None:
            self._scopes.url = str(self._source.header.tapped.get("url", ""))
        self._source.streams[record.stream] = record
        stream = Stream(record, record.at_ns + self._source.shift_ns)
        head = read_head(record.head)
        rows = self._superseded(record)
        if record.sender == CLIENT:
            self._request(record, stream, head)
            return rows
        return [*rows, *self._response(record, stream, head)]

    def frame(self, record: Frame) -> Sequence[Row] | None:
        """Bytes came."""
        body = self._bodies.get(record.stream)
        if body is None:
            return None
        self._measure(body, record)
        return [] if body.decoder is None else self._units(body, body.decoder.feed(record))

    def close(self, record: Close) -> Sequence[Row] | None:
        """A stream ended."""
        body = self._bodies.pop(record.stream, None)
        if body is None:
            opened = self._source.streams.get(record.stream)
            return () if opened is not None and opened.transaction else None
        stream, work = body.stream, body.work
        stream.close = record
        stream.closed_ns = record.at_ns + self._source.shift_ns
        rows = [] if body.decoder is None else self._units(body, body.decoder.close())
        if body.broken is not None and record.how != "eof":
            body.broken.message.reason = "cut short"
            rows.append(body.broken)
        transaction = work.transaction
        if stream is transaction.request:
            return [*rows, *(self._over(work) if transaction.over else self._row(work))]
        if stream is not transaction.response:
            return [*rows, *work.rows]
        is_early = transaction.request is not None and transaction.request.close is None
        return [*rows, *(work.rows if is_early else self._over(work))]  # a 401 may come before the body that it is about

    def note(self, record: Note) -> Sequence[Row] | None:
        """The tap has a word about a transaction that goes on."""
        number = record.extra.get("transaction")
        work = self._works.get(number) if isinstance(number, int) else None
        if work is None:
            return None
        transaction = work.transaction
        transaction.notes = appended(transaction.notes, record)
        if record.topic != "left":
            return work.rows
        transaction.left_by, transaction.left_ns = str(record.extra.get("by", "")), record.at_ns + self._source.shift_ns
        return self._over(work)

    def damage(self) -> None:
        """Records were lost here: the next frame of each stream may lack its beginning, or its middle."""
        for body in self._bodies.values():
            if body.decoder is not None:
                body.decoder.damaged = True

    def end(self) -> Sequence[Row]:
        """Nothing more will come."""
        rows: list[Row] = []
        for body in self._bodies.values():
            rows += [] if body.decoder is None else self._units(body, body.decoder.close())
        works = (*self._works.values(), *(body.work for body in self._bodies.values()))
        for work in {id(work): work for work in works}.values():
            self._row(work)
            rows += work.rows
        self._bodies.clear()
        self._works.clear()
        return self._with_calls([*rows, *self._correlator.end()])

    # Streams

    def _superseded(self, record: Open) -> list[Row]:
        """The rows of what had these numbers before, which happens in damaged captures alone, and is over now."""
        body = self._bodies.get(record.stream)
        works = [] if body is None else [body.work]
        if record.sender == CLIENT and record.transaction in self._works:
            works.append(self._works[record.transaction])
        for work in works:
            self._row(work)
            transaction = work.transaction
            if self._works.get(transaction.number) is work:
                del self._works[transaction.number]
            for stream in (transaction.request, *transaction.interim, transaction.response):
                if stream is not None and (known := self._bodies.get(stream.opened.stream)) and known.work is work:
                    del self._bodies[stream.opened.stream]
        return [row for work in works for row in work.rows]

    def _request(self, record: Open, stream: Stream, head: Head) -> None:
        work = self._begin(record, stream, self._scopes.of_request(head.target, head), head)
        work.transaction.request = stream
        self._bodies[record.stream] = _Body(stream, work, BodyDecoder(head, answers=head.method == "POST"))

    def _response(self, record: Open, stream: Stream, head: Head) -> Sequence[Row]:
        work = self._works.get(record.transaction) or self._begin(record, stream, self._scopes.alone(), Head(""))
        transaction, status = work.transaction, head.status
        if 0 < status < _HTTP_OK and status != _SWITCHING_PROTOCOLS:
            transaction.interim = appended(transaction.interim, stream)
            self._bodies[record.stream] = _Body(stream, work, None)
            return ()
        if transaction.response is not None:  # which happens in damaged captures alone
            self._bodies.pop(transaction.response.opened.stream, None)
        transaction.response, transaction.status = stream, status
        is_stream = record.framing == "sse" or head.media_type == EVENT_STREAM
        self._correlator.answer(work, head, is_stream=is_stream)
        decoder: StreamDecoder = BodyDecoder(head, answers=transaction.request_messages > 0)
        if is_stream:
            compressed = record.framing != "sse"
            decoder = CompressedEventDecoder(head.get("content-encoding")) if compressed else EventDecoder()
        self._bodies[record.stream] = _Body(stream, work, decoder)
        return work.rows

    def _begin(self, record: Open, stream: Stream, reach: ScopeState, head: Head) -> OpenTransaction:
        number = record.transaction
        transaction = Transaction(
            self._source.index, number, record.connection, reach.facts, stream.at_ns, head.method, head.target
        )
        work = OpenTransaction(transaction, reach, resumes=head.get(LAST_EVENT_ID))
        self._source.transactions[number] = transaction
        self._works[number] = work
        if self._correlator.begin(work, head):
            anomaly = Anomaly(record.number, stream.at_ns, "ambiguous-resume", work.resumes.encode("utf-8", "replace"))
            transaction.anomalies = appended(transaction.anomalies, anomaly)
        elif work.resumes and _is_unheard_of(work):
            anomaly = Anomaly(record.number, stream.at_ns, "unknown-event", work.resumes.encode("utf-8", "replace"))
            transaction.anomalies = appended(transaction.anomalies, anomaly)
        return work

    def _measure(self, body: _Body, frame: Frame) -> None:
        stream, shift_ns = body.stream, self._source.shift_ns
        if stream.first_ns is None:
            stream.first_ns = frame.first_ns + shift_ns
        stream.last_ns = frame.at_ns + shift_ns
        stream.body_bytes += frame.length
        stream.chunks += len(body.chunks.feed(frame))
        if self._keeps_frames:
            stream.kept = appended(stream.kept, frame)

    # What streams bring

    def _units(self, body: _Body, units: list[Unit]) -> list[Row]:
        rows: list[Row] = []
        for unit in units:
            if unit.event is not None and self._came_before(body, unit.event, unit):
                continue
            if body.is_metadata:
                self._resource(body.work, unit)
            if (
                body.stream.injected and unit.frame.data and body.stream.opened.sender == SERVER
            ):  # a driver's requests refuse nothing
                self._note_anomaly(body.work, unit, "injected", unit.frame.data[:MAX_INJECTED_BYTES])
            for piece in unit.pieces:
                message = message_of(self._source, body.stream.opened.sender, unit.frame, piece)
                if message.kind is Kind.MALFORMED and unit.damaged:
                    message.flaws = (*message.flaws, "damaged")
                found = self._correlator.feed(body.work, message)
                if message.kind is Kind.MALFORMED and isinstance(found[0], UnpairedMessage):
                    body.broken = found[0]
                self._rows += [row for row in found if isinstance(row, UnpairedMessage) or row.request is message]
                rows += found
                is_joined = message.method in self._joined or message.result_type or message.kind is Kind.ERROR
                if self._calls is not None and (is_joined or self._source.calls):
                    rows += [first for row in found if (first := self._calls.feed(row, message)) is not None]
        return rows

    def _came_before(self, body: _Body, event: SseEvent, unit: Unit) -> bool:
        """Take note of an event. Whether it came before in this session, and is sent again because somebody asked for that."""
        stream, work = body.stream, body.work
        stream.comments += len(event.comments)
        if event.id is not None:
            stream.last_event_id = event.id
        if not event.data:
            if event.id:
                self._take_note(work, unit, event.id, b"")
            return False
        stream.events += 1
        if event.type == ENDPOINT:
            self._announce(work, event, unit)
        elif event.data.strip() == DONE:
            self._note_anomaly(work, unit, "done-event", event.data)
        elif event.id and unit.pieces:
            return self._is_redelivered(work, unit, event.id, event.data)
        return False

    def _is_redelivered(self, work: OpenTransaction, unit: Unit, id: str, data: bytes) -> bool:
        """Whether an event is one that came before: servers that count anew on each stream repeat ids, and no data by that."""
        before = work.reach.sent.get(hash((id, data))) if work.resumes else None
        if before is None:
            if self._take_note(work, unit, id, data):
                self._note_anomaly(work, unit, "event-id-again", id.encode("utf-8", "replace"))
            return False
        transaction = work.transaction
        transaction.redelivered = appended(transaction.redelivered, unit.frame.number)
        after = work.reach.ids.get(hash(work.resumes))
        if after is not None and work.reach.ids.get(hash(id)) is before:
            if before.stream != after.stream:
                self._note_anomaly(work, unit, "foreign-event", id.encode("utf-8", "replace"))
            elif before is after or before.number < after.number:
                self._note_anomaly(work, unit, "replayed-event", id.encode("utf-8", "replace"))
        return True

    def _take_note(self, work: OpenTransaction, unit: Unit, id: str, data: bytes) -> bool:
        """An event with an id came for the first time. Whether another of the session has the same id.

        A stream that resumes one goes on as that one. There an event that came before may be spelled anew.
        """
        reach, key = work.reach, hash(id)
        after = reach.ids.get(hash(work.resumes)) if work.resumes else None
        sent = SentEvent(work.transaction.number if after is None else after.stream, unit.frame.number)
        if data:
            reach.sent.setdefault(hash((id, data)), sent)
        if key not in reach.ids:
            reach.ids[key] = sent
            return False
        if not data:  # says once more how far the stream is
            return False
        reach.ids[key] = None
        return not work.resumes

    def _announce(self, work: OpenTransaction, event: SseEvent, unit: Unit) -> None:
        """The stream says where to POST: what is POSTed there is answered on it."""
        forwarded, transaction = unit.frame.forwarded, work.transaction
        told = endpoint(event.data or b"")
        uris = [told.uri] if forwarded is None else [told.uri, endpoint(parse(forwarded).data or b"").uri]
        if not told.is_plain:
            self._note_anomaly(work, unit, "endpoint-dialect", event.data or b"")
        if told.uri and origin(self._scopes.resolved(transaction, told.uri)) != origin(self._scopes.url):
            self._note_anomaly(work, unit, "foreign-endpoint", told.uri.encode("utf-8", "replace"))
        if host := _host_behind_user(told.uri):
            self._note_anomaly(work, unit, "endpoint-user", host.encode("utf-8", "replace"))
        if self._correlator.announce(work, uris):
            self._note_anomaly(work, unit, "shared-endpoint", told.uri.encode("utf-8", "replace"))

    def _resource(self, work: OpenTransaction, unit: Unit) -> None:
        """The server says which resource it is: clients take no other than the one that they asked."""
        value = members(unit.frame.data).get("resource")
        resource = "" if value is None else string(value) or ""
        if resource and origin(resource) != origin(self._scopes.url):
            self._note_anomaly(work, unit, "foreign-resource", resource.encode("utf-8", "replace"))

    def _note_anomaly(self, work: OpenTransaction, unit: Unit, name: str, data: bytes) -> None:
        frame, transaction = unit.frame, work.transaction
        anomaly = Anomaly(frame.number, frame.at_ns + self._source.shift_ns, name, data)
        transaction.anomalies = appended(transaction.anomalies, anomaly)

    def _over(self, work: OpenTransaction) -> list[Row]:
        """A transaction ended."""
        self._works.pop(work.transaction.number, None)
        self._row(work)
        return self._with_calls([*work.rows, *self._correlator.close(work)])

    def _with_calls(self, rows: list[Row]) -> list[Row]:
        """`rows`, and the first rows of the calls that change with them."""
        return rows if self._calls is None else [*rows, *self._calls.firsts([row for row in rows if isinstance(row, Exchange)])]

    def _row(self, work: OpenTransaction) -> Sequence[Row]:
        """A transaction whose request carries no message has a row of its own."""
        transaction = work.transaction
        if transaction.request_messages or transaction.row:
            return ()
        transaction.row = self._next_row()
        self._rows.append(transaction)
        return (transaction,)


def _is_unheard_of(work: OpenTransaction) -> bool:
    """Whether no event of its session had the id by which it resumes one. Ids that are not ASCII have no spelling in a head."""
    return work.reach.facts.kind is ScopeKind.SESSION and work.resumes.isascii() and hash(work.resumes) not in work.reach.ids


def _host_behind_user(url: str) -> str:
    """Host and port of a URL that names a user before them; empty if it names none, or is no URL."""
    try:
        _, at_sign, host = urlsplit(url).netloc.rpartition("@")
    except ValueError:
        return ""
    return host if at_sign else ""

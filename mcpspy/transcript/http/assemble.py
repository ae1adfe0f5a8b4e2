"""Records of HTTP to rows: transactions, and the messages in their streams.

A record goes in; the rows that are new or changed come out. `decode` cuts bodies and events, `correlate` pairs their messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from ...records import CLIENT, SERVER, Close, Frame, Intercept, Note, Open
from ...wire.json_spans import members, string
from ...wire.login import is_metadata_path, login_urls
from ...wire.sse import SseEvent, parse
from ..calls.join import CallJoiner
from ..correlator import appended
from ..digests import digest
from ..message import MALFORMED, Place
from ..model import HTTP_REDIRECTS, CaptureInfo, ChannelEvent, Exchange, Row, UnpairedMessage
from .correlate import HttpCorrelator, OpenTransaction
from .decode import (
    MESSAGE,
    BodyReader,
    CompressedEventDecoder,
    EventReader,
    FrameDecoder,
    StreamDecoder,
    Unit,
    body_facts,
    place_message,
    readable,
)
from .head import EVENT_STREAM, LAST_EVENT_ID, Head, next_urls, read_head
from .payloads import DONE, add_note, measure
from .scopes import ScopeState, SentEvent, endpoint, names_server, origin, path_and_query
from .transaction import (
    ANSWER_REFUSED,
    ANSWER_TAKEN,
    DONE_EVENT,
    HALF_CLOSED,
    MAX_INJECTED_BYTES,
    MAX_REFUSAL_BYTES,
    OTHER_EVENT,
    UNREAD,
    AnnouncedEndpoint,
    Anomaly,
    KeepAlives,
    ScopeKind,
    Stream,
    Transaction,
    opened_stream,
    stream_end,
)

if TYPE_CHECKING:
    from ...usual_lines import CloseLine, OpenLine
    from .intercepted import InterceptedUnits

ENDPOINT: Final = "endpoint"
KEEP_ALIVE: Final = "ping"
"""The type of events that some servers send in place of comments."""
_MAX_URLS: Final = 100
"""So many addresses of a document are looked at, and so many targets of metadata: no login has more."""
_HTTP_OK: Final = 200
_SWITCHING_PROTOCOLS: Final = 101
RESPONSE_REFUSED: Final = "response-refused"
"""The topic of a note: what the server sends on a connection cannot be read, from here on."""


class _OpenStream(msgspec.Struct, eq=False, gc=False):
    """A stream that goes on, with its decoder. `opened` is its transaction."""

    stream: Stream
    opened: OpenTransaction
    decoder: StreamDecoder | None
    answers_messages: bool = True
    """False for a response that may carry something else than messages, such as metadata of a login or a refusal."""
    is_metadata: bool = False
    """True for a document of a login."""
    broken: UnpairedMessage | None = None
    """The last message that could not be read; if the stream breaks off, it was cut short."""


class TransactionAssembler:
    """The HTTP traffic of one capture. New rows go into `rows`, numbered by `next_row`.

    `frame`, `close` and `note` return None for records that are not HTTP's. `on_client_name` is called with each name of a
    client, once. With `keeps_frames` streams keep their frames, and with `calls` rows are joined to calls.
    """

    __slots__ = (
        "_calls", "_capture_info", "_correlator", "_half_closed", "_intercepted", "_keeps_frames", "_metadata_targets", "_next_row",
        "_rows", "_scopes", "_streams", "_transactions", "_unread",
    )  # fmt: skip

    def __init__(
        self,
        capture_info: CaptureInfo,
        rows: list[Row],
        next_row: Callable[[], int],
        on_client_name: Callable[[CaptureInfo, str], None],
        calls: CallJoiner | None,
        *,
        keeps_frames: bool,
    ) -> None:
        self._capture_info = capture_info
        self._rows = rows
        self._next_row = next_row
        self._keeps_frames = keeps_frames
        self._calls = calls
        self._correlator = HttpCorrelator(capture_info, next_row, on_client_name)
        self._scopes = self._correlator.scopes
        self._intercepted: InterceptedUnits | None = None
        """The frame that is being taken in, if positions are noted."""
        self._streams: dict[int, _OpenStream] = {}
        self._transactions: dict[int, OpenTransaction] = {}
        """Transactions that go on, by number."""
        self._metadata_targets: set[str] = set()
        """Targets at which a challenge or a redirect said that there is metadata."""
        self._unread: set[int] = set()
        """Connections on which what the server sends is not read any more."""
        self._half_closed: dict[int, OpenTransaction] = {}
        """Those whose client closed its half of the connection, also when they are over, until it is known whether it had left."""

    def open(self, record: Open | OpenLine) -> Sequence[Row]:
        """Take in the beginning of a request or a response."""
        info = self._capture_info
        if not self._scopes.url and info.header is not None:
            self._scopes.url = str(info.header.tapped.get("url", ""))
        stream, head = opened_stream(record, info.shift_ns)
        info.streams[record.stream] = stream
        is_request = record.sender == CLIENT
        is_again = record.stream in self._streams or (is_request and record.transaction in self._transactions)
        rows = self._superseded(record) if is_again else []
        if is_request:
            self._request(record, stream, head)
            return rows
        return [*rows, *self._response(record, stream, head)]

    def frame(self, record: Frame, place: tuple[int, int] | None) -> Sequence[Row] | None:
        """Take in bytes of a stream, and where their line is in the capture's file, if it is long."""
        open_stream = self._streams.get(record.stream)
        if open_stream is None:
            return None
        measure(open_stream.stream, record, self._capture_info.shift_ns, keeps_frame=self._keeps_frames)
        decoder = open_stream.decoder
        if decoder is None:
            return []
        if self._intercepted is not None:
            return self._intercepted_frame(self._intercepted, open_stream, decoder, record)
        units = decoder.feed(record)
        if place is not None and (frames := self._capture_info.frames) is not None:
            place_message(units, record, Place(frames, place))
        return self._units(open_stream, units)

    def intercept(self, record: Intercept) -> tuple[()]:
        """Take in what was done to the next frame. Nothing is complete with that."""
        if self._intercepted is None:
            from .intercepted import InterceptedUnits  # hardly any capture has intercepts

            self._intercepted = InterceptedUnits(self._capture_info)
        self._intercepted.add(record)
        return ()

    def _intercepted_frame(
        self, intercepted: InterceptedUnits, open_stream: _OpenStream, decoder: StreamDecoder, record: Frame
    ) -> list[Row]:
        """Take in a frame of a capture with intercepts, as its receiver saw it."""
        info = self._capture_info
        rows = self._units(open_stream, intercepted.units(record, decoder), intercepted.flaws)
        transaction = open_stream.opened.transaction
        is_ours = intercepted.is_call and transaction.request is not None and transaction.request.injected
        if intercepted.acts or is_ours:
            transaction.intercepted = True
        if intercepted.acts:
            rows += intercepted.mark_requests(open_stream.opened, self._rows)
        events = [ChannelEvent(info.index, act.at_ns + info.shift_ns, act) for act in intercepted.acts]
        self._rows += events
        return [*rows, *events]

    def close(self, record: Close | CloseLine) -> Sequence[Row] | None:
        """Take in the end of a stream."""
        open_stream = self._streams.pop(record.stream, None)
        if open_stream is None:
            began = self._capture_info.streams.get(record.stream)
            return () if began is not None and began.transaction else None
        stream, opened = open_stream.stream, open_stream.opened
        stream.close = stream_end(record)
        shift_ns = self._capture_info.shift_ns
        stream.closed_ns = record.at_ns + shift_ns if shift_ns else record.at_ns
        left = () if open_stream.decoder is None else open_stream.decoder.close()
        rows = self._units(open_stream, left) if left else []
        if open_stream.broken is not None and record.how != "eof" and open_stream.broken.message.raw:
            open_stream.broken.message.reason = "cut short"
            rows.append(open_stream.broken)
        transaction = opened.transaction
        if stream is transaction.request:
            return [*rows, *(self._over(opened) if transaction.over else self._add_row(opened))]
        if stream is not transaction.response:
            return [*rows, *opened.rows]
        if stream.body_bytes and not transaction.response_messages and (coding := body_facts(stream.head)[2]):
            self._mark_unread(opened, stream.record, stream.at_ns, f"it has {coding}")
        is_early = transaction.request is not None and transaction.request.close is None
        return [*rows, *(opened.rows if is_early else self._over(opened))]  # a 401 may come before the request's body

    def note(self, record: Note) -> Sequence[Row] | None:
        """Take in the tap's note about a transaction that goes on."""
        number = record.extra.get("transaction")
        if record.topic == RESPONSE_REFUSED:
            self._refuse(record, number)
        if not isinstance(number, int):
            return None
        opened = self._transactions.get(number) or self._half_closed.get(number)
        if opened is None:
            return None
        is_over = add_note(opened.transaction, record, self._capture_info.shift_ns)
        if record.topic == HALF_CLOSED:
            self._half_closed[number] = opened
            self._correlator.leave(opened)
        elif record.topic in (ANSWER_TAKEN, ANSWER_REFUSED):
            self._half_closed.pop(number, None)
            if record.topic == ANSWER_TAKEN:
                self._correlator.stay(opened)
        return self._over(opened) if is_over else opened.rows

    def _refuse(self, record: Note, number: object) -> None:
        """Take in that what the server sends on a connection is not read from here on, and why; it is said of one transaction."""
        connection, at_ns = record.extra.get("connection"), record.at_ns + self._capture_info.shift_ns
        if isinstance(connection, int):
            self._unread.add(connection)
        for opened in self._transactions.values():
            if opened.transaction.number == number or opened.transaction.connection == connection:
                reason = record.text.partition("; what follows")[0] if opened.transaction.number == number else ""
                self._mark_unread(opened, record.number, at_ns, reason)

    def _mark_unread(self, opened: OpenTransaction, number: int, at_ns: int, reason: str) -> None:
        transaction, scope = opened.transaction, opened.transaction.scope
        transaction.anomalies = appended(
            transaction.anomalies, Anomaly(number, at_ns, UNREAD, reason.encode("utf-8", "replace"))
        )
        if transaction.method == "GET" and not scope.is_one_transaction:
            scope.unread = True

    def damage(self, at_ns: int) -> None:
        """Note that records are missing here, at this time: the next frame of each stream may lack its beginning, or its middle."""
        for open_stream in self._streams.values():
            if open_stream.decoder is not None:
                open_stream.decoder.damaged = True
        for opened in (*self._transactions.values(), *self._correlator.broken_off):
            opened.note_gap(at_ns)

    def end(self) -> Sequence[Row]:
        """End all streams and transactions."""
        rows: list[Row] = []
        for open_stream in self._streams.values():
            rows += [] if open_stream.decoder is None else self._units(open_stream, open_stream.decoder.close())
        going_on = (*self._transactions.values(), *(open_stream.opened for open_stream in self._streams.values()))
        for opened in {id(opened): opened for opened in going_on}.values():
            self._add_row(opened)
            opened.mark_unread()
            rows += opened.rows
        self._streams.clear()
        self._transactions.clear()
        return self._with_calls([*rows, *self._correlator.end()])

    # Streams

    def _superseded(self, record: Open | OpenLine) -> list[Row]:
        """End what had these numbers before, which happens in damaged captures only; return the rows that changed."""
        open_stream = self._streams.get(record.stream)
        superseded = [] if open_stream is None else [open_stream.opened]
        if record.sender == CLIENT and record.transaction in self._transactions:
            superseded.append(self._transactions[record.transaction])
        for opened in superseded:
            self._add_row(opened)
            transaction = opened.transaction
            if self._transactions.get(transaction.number) is opened:
                del self._transactions[transaction.number]
            for stream in transaction.streams:
                if (known := self._streams.get(stream.number)) and known.opened is opened:
                    del self._streams[stream.number]
        return [row for opened in superseded for row in opened.rows]

    def _request(self, record: Open | OpenLine, stream: Stream, head: Head) -> None:
        opened = self._begin(record, stream, self._scopes.of_request(head.target, head), head)
        opened.transaction.request = stream
        decoder = FrameDecoder(BodyReader(self._capture_info, CLIENT, head, answers=head.method == "POST"))
        self._streams[record.stream] = _OpenStream(stream, opened, decoder)

    def _response(self, record: Open | OpenLine, stream: Stream, head: Head) -> Sequence[Row]:
        opened = self._transactions.get(record.transaction)
        if opened is None:
            opened = self._begin(record, stream, self._scopes.single_transaction(), Head(""))
        transaction, status = opened.transaction, head.status
        if 0 < status < _HTTP_OK and status != _SWITCHING_PROTOCOLS:
            transaction.interim = appended(transaction.interim, stream)
            self._streams[record.stream] = _OpenStream(stream, opened, None)
            return ()
        if transaction.response is not None:  # in damaged captures only
            self._streams.pop(transaction.response.number, None)
        transaction.response, transaction.status = stream, status
        if status == _SWITCHING_PROTOCOLS:
            self._unread.add(transaction.connection)
            self._mark_unread(opened, record.number, stream.at_ns, f"it switched to {head.get('upgrade')}")
        is_stream = record.framing == "sse" or head.media_type == EVENT_STREAM
        self._correlator.begin_response(opened, head, is_stream=is_stream)
        decoder: StreamDecoder
        if not is_stream:
            decoder = FrameDecoder(BodyReader(self._capture_info, SERVER, head, answers=transaction.request_messages > 0))
        elif record.framing == "sse":
            decoder = FrameDecoder(EventReader(self._capture_info))
        else:
            decoder = CompressedEventDecoder(self._capture_info, head.get("content-encoding"))
        is_metadata = self._is_metadata(transaction)
        is_usual = 0 < status < HTTP_REDIRECTS and transaction.request_messages and not (stream.injected or is_metadata)
        self._streams[record.stream] = _OpenStream(
            stream, opened, decoder, answers_messages=bool(is_usual), is_metadata=is_metadata and not is_stream
        )
        if (status >= HTTP_REDIRECTS or head.get("link")) and not stream.injected:
            sent = set(next_urls(head if stream.forwarded is None else read_head(stream.forwarded)))
            for field, url in next_urls(head):
                if (field, url) in sent:  # not where mcpspy itself sends a browser for a login
                    self._check_url(opened, record, url)
                if field == "www-authenticate" or (field == "location" and is_metadata):
                    self._expect_metadata(transaction, url)
        return opened.rows

    def _is_metadata(self, transaction: Transaction) -> bool:
        """Return whether a response is a document of a login: it is where these belong, or something led the client to it."""
        is_named = transaction.method == "GET" and transaction.target in self._metadata_targets
        return is_named or is_metadata_path(transaction.target.encode("utf-8", "replace"))

    def _expect_metadata(self, transaction: Transaction, uri: str) -> None:
        url = self._scopes.resolve(transaction, uri)
        if names_server(url, self._scopes.url) and len(self._metadata_targets) < _MAX_URLS:
            self._metadata_targets.add(path_and_query(url))

    def _begin(self, record: Open | OpenLine, stream: Stream, state: ScopeState, head: Head) -> OpenTransaction:
        number = record.transaction
        transaction = Transaction(
            self._capture_info.index, number, record.connection, state.scope, stream.at_ns, head.method, head.target
        )
        opened = OpenTransaction(transaction, state, head.get(LAST_EVENT_ID))
        self._capture_info.transactions[number] = transaction
        self._transactions[number] = opened
        if record.connection in self._unread:
            self._mark_unread(opened, record.number, stream.at_ns, "")
        if self._correlator.begin(opened, head):
            anomaly = Anomaly(record.number, stream.at_ns, "ambiguous-resume", opened.resumes.encode("utf-8", "replace"))
            transaction.anomalies = appended(transaction.anomalies, anomaly)
        elif opened.resumes and _resumes_unknown_event(opened):
            anomaly = Anomaly(record.number, stream.at_ns, "unknown-event", opened.resumes.encode("utf-8", "replace"))
            transaction.anomalies = appended(transaction.anomalies, anomaly)
        return opened

    # The content of streams

    def _units(self, open_stream: _OpenStream, units: Sequence[Unit], flaws: Sequence[str] = ()) -> list[Row]:
        """Take in what is in a stream; `flaws` mark its messages."""
        rows: list[Row] = []
        sender, opened = open_stream.stream.sender, open_stream.opened
        for unit in units:
            if unit.anomaly and sender == SERVER:
                self._add_anomaly(opened, unit, unit.anomaly, _about(open_stream.stream, unit))
            if unit.event is not None and self._came_before(open_stream, unit.event, unit):
                continue
            if not open_stream.answers_messages:
                self._take_document(open_stream, unit)
            for message in unit.messages:
                if unit.damaged and message.kind is MALFORMED:
                    message.flaws = (*message.flaws, "damaged")
                if flaws:
                    message.flaws = (*message.flaws, *flaws)
                changed = self._correlator.feed(opened, message)
                for row in changed:
                    if isinstance(row, UnpairedMessage):
                        self._rows.append(row)
                        if message.kind is MALFORMED:
                            open_stream.broken = row
                    elif row.request is message:
                        self._rows.append(row)
                rows += changed
                calls = self._calls
                if calls is not None and (self._capture_info.calls or calls.may_begin(message)):
                    rows += [first for row in changed if (first := calls.feed(row, message)) is not None]
                message.leave()
        return rows

    def _take_document(self, open_stream: _OpenStream, unit: Unit) -> None:
        """Take in what is no message in a response: why it refused, a document of a login, what mcpspy itself wrote."""
        stream, opened = open_stream.stream, open_stream.opened
        transaction = opened.transaction
        if transaction.status >= HTTP_REDIRECTS and not transaction.refusal:
            transaction.refusal = readable(unit.frame.data, stream.head.get("content-encoding"))[:MAX_REFUSAL_BYTES]
        if open_stream.is_metadata or _answers_registration(open_stream, unit):
            self._check_document(opened, unit, stream.head)
        is_intercept = self._intercepted is not None and unit.frame.injected  # whose answer is no refusal
        if stream.injected and unit.frame.data and not is_intercept:
            self._add_anomaly(opened, unit, "injected", unit.frame.data[:MAX_INJECTED_BYTES])

    def _came_before(self, open_stream: _OpenStream, event: SseEvent, unit: Unit) -> bool:
        """Take in an event. Return whether it came before in this session, and is sent again because a client resumed the stream."""
        stream, opened = open_stream.stream, open_stream.opened
        if event.comments or event.type == KEEP_ALIVE:
            self._add_keep_alives(stream, unit, event)
        if event.id is not None:
            stream.last_event_id = event.id
        if not event.data:
            if event.id:
                self._add_event(opened, unit, event.id, b"")
            return False
        stream.events += 1
        if event.type == ENDPOINT:
            self._announce(opened, event, unit)
        elif event.data.strip() == DONE:
            self._add_anomaly(opened, unit, DONE_EVENT, event.data)
        elif event.type != MESSAGE and b'"jsonrpc"' in event.data:
            self._add_anomaly(opened, unit, "message-in-other-event", event.type.encode("utf-8", "replace"))
        elif event.type not in (MESSAGE, KEEP_ALIVE):
            self._add_other_event(opened, unit, f"{event.type}: {event.text}".encode()[:MAX_REFUSAL_BYTES])
        elif event.id and unit.messages:
            return self._is_redelivered(opened, unit, event.id, event.data)
        return False

    def _add_keep_alives(self, stream: Stream, unit: Unit, event: SseEvent) -> None:
        """Count the comments of an event, and the event itself if it only keeps the stream open. Those in a row are kept as one."""
        stream.comments += len(event.comments)
        is_beat = event.type == KEEP_ALIVE and bool(event.data)
        number, at_ns = unit.frame.number, unit.frame.at_ns + self._capture_info.shift_ns
        if not stream.keep_alives or stream.keep_alives[-1].events != stream.events:
            stream.keep_alives = appended(stream.keep_alives, KeepAlives(number, at_ns, at_ns, 0, 0))
        row = stream.keep_alives[-1]
        row.number, row.last_ns = number, at_ns
        row.count += len(event.comments) + is_beat
        row.events = stream.events + is_beat

    def _add_other_event(self, opened: OpenTransaction, unit: Unit, words: bytes) -> None:
        """Note an event of another type, unless the last one was equal: a heartbeat would fill the memory."""
        anomalies = opened.transaction.anomalies
        if not anomalies or (anomalies[-1].name, anomalies[-1].data) != (OTHER_EVENT, words):
            self._add_anomaly(opened, unit, OTHER_EVENT, words)

    def _is_redelivered(self, opened: OpenTransaction, unit: Unit, id: str, data: bytes) -> bool:
        """Return whether an event came before. Id and data count: a server that numbers each stream anew repeats ids only."""
        before = opened.state.events.get(digest(id, data)) if opened.resumes else None
        if before is None:
            if self._add_event(opened, unit, id, data):
                self._add_anomaly(opened, unit, "event-id-again", id.encode("utf-8", "replace"))
            return False
        transaction = opened.transaction
        transaction.redelivered = appended(transaction.redelivered, unit.frame.number)
        after = opened.state.event_ids.get(digest(opened.resumes))
        if after is not None and opened.state.event_ids.get(digest(id)) is before:
            if before.stream != after.stream:
                self._add_anomaly(opened, unit, "foreign-event", id.encode("utf-8", "replace"))
            elif before is after or before.number < after.number:
                self._add_anomaly(opened, unit, "replayed-event", id.encode("utf-8", "replace"))
        return True

    def _add_event(self, opened: OpenTransaction, unit: Unit, id: str, data: bytes) -> bool:
        """Note an event with an id that comes for the first time. Return whether another event of the session has the same id.

        A stream that resumes another counts as that one. On it, an event that came before may be spelled in another way.
        """
        state, key = opened.state, digest(id)
        after = state.event_ids.get(digest(opened.resumes)) if opened.resumes else None
        event = SentEvent(opened.transaction.number if after is None else after.stream, unit.frame.number)
        if data:
            state.events.setdefault(digest(id, data), event)
        if key not in state.event_ids:
            state.event_ids[key] = event
            return False
        if not data:  # it only repeats the position of the stream
            return False
        state.event_ids[key] = None
        return not opened.resumes

    def _announce(self, opened: OpenTransaction, event: SseEvent, unit: Unit) -> None:
        """Take in an `endpoint` event: what is POSTed there is answered on this stream."""
        forwarded, transaction = unit.frame.forwarded, opened.transaction
        announced = endpoint(event.data or b"")
        uris = [announced.uri] if forwarded is None else [announced.uri, endpoint(parse(forwarded).data or b"").uri]
        target = path_and_query(self._scopes.resolve(transaction, announced.uri)) if announced.uri else ""
        if target and transaction.response is not None and transaction.response.endpoint is None:
            at_ns = unit.frame.at_ns + self._capture_info.shift_ns
            transaction.response.endpoint = AnnouncedEndpoint(unit.frame.number, at_ns, target)
        if not announced.is_plain:
            self._add_anomaly(opened, unit, "endpoint-dialect", event.data or b"")
        if announced.uri and origin(self._scopes.resolve(transaction, announced.uri)) != origin(self._scopes.url):
            self._add_anomaly(opened, unit, "foreign-endpoint", announced.uri.encode("utf-8", "replace"))
        if host := _host_after_user(announced.uri):
            self._add_anomaly(opened, unit, "endpoint-user", host.encode("utf-8", "replace"))
        else:
            self._check_url(opened, unit.frame, uris[-1])
        if self._correlator.announce(opened, uris):
            self._add_anomaly(opened, unit, "shared-endpoint", announced.uri.encode("utf-8", "replace"))

    def _check_document(self, opened: OpenTransaction, unit: Unit, head: Head) -> None:
        """Check the names in a document of a login: clients accept only the resource and the issuer that they asked."""
        encoding = head.get("content-encoding")
        document = readable(unit.frame.data, encoding)
        resource = string(members(document).get("resource", b"")) or ""
        if resource and origin(resource) != origin(self._scopes.url):
            self._add_anomaly(opened, unit, "foreign-resource", resource.encode("utf-8", "replace"))
        if opened.transaction.status >= HTTP_REDIRECTS:
            return
        is_coded = bool(encoding)
        is_unreadable = is_coded and unit.frame.data and not unit.damaged and (body_facts(head)[2] or not document)
        if is_unreadable and "json" in head.media_type and not members(document) and self._passes_tap(opened, is_coded=True):
            self._add_anomaly(opened, unit, "unread-metadata", encoding.encode("utf-8", "replace"))
        for url, is_endpoint in islice(dict.fromkeys(login_urls(unit.frame.forwarded or document)), _MAX_URLS):
            self._check_url(opened, unit.frame, url, is_coded=is_coded, is_endpoint=is_endpoint)

    def _check_url(
        self,
        opened: OpenTransaction,
        record: Frame | Open | OpenLine,
        url: str,
        *,
        is_coded: bool = False,
        is_endpoint: bool = True,
    ) -> None:
        """Note a URL that leads a client past the tap, which was told another address of the server."""
        if names_server(url, self._scopes.url, is_endpoint=is_endpoint) and self._passes_tap(opened, is_coded=is_coded):
            at_ns = record.at_ns + self._capture_info.shift_ns
            anomaly = Anomaly(record.number, at_ns, "unrewritten-address", url.encode("utf-8", "replace"))
            opened.transaction.anomalies = appended(opened.transaction.anomalies, anomaly)

    def _passes_tap(self, opened: OpenTransaction, *, is_coded: bool) -> bool:
        """Return whether a client was told the tap's address, and not the server's: then what names the server is rewritten."""
        request = opened.transaction.request
        if request is None or not (request.forwarded or is_coded):
            return False
        return origin(f"http://{request.head.get('host')}") != origin(self._scopes.url)

    def _add_anomaly(self, opened: OpenTransaction, unit: Unit, name: str, data: bytes) -> None:
        frame, transaction = unit.frame, opened.transaction
        anomaly = Anomaly(frame.number, frame.at_ns + self._capture_info.shift_ns, name, data)
        transaction.anomalies = appended(transaction.anomalies, anomaly)

    def _over(self, opened: OpenTransaction) -> list[Row]:
        """End a transaction."""
        self._transactions.pop(opened.transaction.number, None)
        self._add_row(opened)
        opened.mark_unread()
        return self._with_calls([*opened.rows, *self._correlator.close(opened)])

    def _with_calls(self, rows: list[Row]) -> list[Row]:
        """Return `rows`, and the first rows of the calls that change with them."""
        return rows if self._calls is None else [*rows, *self._calls.firsts([row for row in rows if isinstance(row, Exchange)])]

    def _add_row(self, opened: OpenTransaction) -> Sequence[Row]:
        """Give a transaction a row of its own if its request carries no message; return it if it is new."""
        transaction = opened.transaction
        if transaction.request_messages or transaction.row:
            return ()
        transaction.row = self._next_row()
        self._rows.append(transaction)
        return (transaction,)


def _resumes_unknown_event(opened: OpenTransaction) -> bool:
    """Return whether no event of its session has the id that it resumes. An id that is not ASCII has no spelling in a head."""
    state, id = opened.state, opened.resumes
    return state.scope.kind is ScopeKind.SESSION and id.isascii() and digest(id) not in state.event_ids


def _answers_registration(open_stream: _OpenStream, unit: Unit) -> bool:
    transaction = open_stream.opened.transaction
    if transaction.method != "POST" or transaction.request_messages or unit.event or unit.messages:
        return False
    return b'"registration_client_uri"' in readable(unit.frame.data, open_stream.stream.head.get("content-encoding"))


def _about(stream: Stream, unit: Unit) -> bytes:
    """Return the bytes that an anomaly of a body is about: the beginning of the body, or the name of its encoding."""
    if unit.anomaly == "not-encoded":
        return stream.head.get("content-encoding").encode("utf-8", "replace")
    return unit.frame.data[:MAX_REFUSAL_BYTES]


def _host_after_user(url: str) -> str:
    """Return host and port of a URL with a user in front of them; empty if it names no user, or is no URL."""
    from urllib.parse import urlsplit  # slow to import

    try:
        _, at_sign, host = urlsplit(url).netloc.rpartition("@")
    except ValueError:
        return ""
    return host if at_sign else ""

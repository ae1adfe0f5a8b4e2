"""One HTTP request to a live server and its response, on a connection of its own, recorded as by a tap."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ...records import CLIENT, SERVER, Frame
from ...wire.body import body_framing
from ...wire.encodings import decode_body
from ...wire.http import Responses
from ...wire.http_body import Body, BodyEnd, IncompleteMessage, OpaqueBytes, RefusedBytes
from ...wire.http_head import ResponseHead
from ...wire.sse import SseEvent, parse
from ..http.opaque import OpaqueStreams
from ..http.recorder import StreamRecorder, note
from .partials import Partials
from .protocol import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...records import Record, Sink
    from ..http.recorder import Numbers


class Receiver(Protocol):
    """Takes the response to a request: its final head, then its events or its body, then its end."""

    def on_head(self, head: ResponseHead) -> None:
        """Take the final head."""

    def on_event(self, event: SseEvent) -> None:
        """Take one whole event of a stream."""

    def on_body(self, body: bytes) -> None:
        """Take the whole body, decompressed. Not called if it is empty."""

    def on_end(self, why: str) -> None:
        """Take the end; `why` is empty if the response is complete. Not called for a request that we left."""


class RequestContext(Protocol):
    """The transport that sends a request: its clock, its sink, and the requests under way."""

    numbers: Numbers
    sink: Sink
    holds: bool
    """Whether responses are not read for now."""
    open: set[OutgoingRequest]

    @property
    def now_ns(self) -> Callable[[], int]:
        """Returns the nanoseconds since the capture began."""


class OutgoingRequest(asyncio.Protocol):
    """A request, which is sent once it has a connection, and its response. `head` is the head of the final response."""

    def __init__(self, context: RequestContext, method: str, head: bytes, body: bytes, receiver: Receiver) -> None:
        self._context = context
        self._method = method.encode()
        self._request_head = head
        self._request_body = body
        self._receiver = receiver
        self._transport: asyncio.Transport | None = None
        self._responses = Responses()
        self._response: StreamRecorder | None = None
        self._partials: Partials | None = None
        self._opaque: OpaqueStreams | None = None
        self._number = 0
        self._connection = 0
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._is_first_event = True
        self._is_over = False
        self._is_left = False
        self.head: ResponseHead | None = None

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Record the request, then send it."""
        assert isinstance(transport, asyncio.Transport)
        context = self._context
        context.open.add(self)
        self._transport = transport
        self._number, self._connection = context.numbers.transaction(), context.numbers.connection()
        self._opaque = OpaqueStreams(context.numbers, self._connection)
        request = StreamRecorder(context.numbers.stream(), CLIENT, "body")
        now_ns = context.now_ns()
        body = self._request_body
        opening = request.open(now_ns, self._request_head, transaction=self._number, connection=self._connection, injected=True)
        records: list[Record] = [opening, *request.feed(Body(body, body), now_ns), *request.close(now_ns, CLIENT, "eof")]
        for record in records:
            if isinstance(record, Frame):
                record.rare["injected"] = True
        context.sink(records)
        self._responses.expect(self._method)
        transport.write(self._request_head + body)
        if context.holds:
            transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        now_ns = self._context.now_ns()
        for piece in self._responses.feed(data):
            if self._is_over:
                return
            match piece:
                case ResponseHead():
                    self._on_head(piece, now_ns)
                case Body():
                    self._on_body(piece, now_ns)
                case BodyEnd():
                    self._on_end(piece, now_ns, "eof")
                case RefusedBytes() | OpaqueBytes():
                    self._refuse(piece, now_ns)

    def connection_lost(self, exc: Exception | None) -> None:
        """Record and report the end: the server has closed the connection, or it broke."""
        if self._is_over:
            return
        now_ns = self._context.now_ns()
        how = "eof" if exc is None else "reset"
        why = "it closed the connection before its response" if exc is None else "the connection was reset"
        records: list[Record] = []
        for piece in self._responses.close():
            if isinstance(piece, BodyEnd):
                self._on_end(piece, now_ns, how)
                return
            if isinstance(piece, IncompleteMessage) and self._response is not None:
                why = "the response was cut short" if exc is None else why
                broken = "abort" if how == "eof" else how
                records += self._response.close(now_ns, SERVER, broken, missing_bytes=piece.missing_bytes)
                self._response = None
            elif isinstance(piece, IncompleteMessage | RefusedBytes) and self._opaque is not None:
                records += self._opaque.feed(SERVER, piece.raw, now_ns)
        if self.head is None:
            records.append(note(now_ns, "left", why, self._connection, self._number, by=SERVER))
        self._finish(records, now_ns, SERVER, how)
        self._receiver.on_end(why)

    # Called by the transport and the receiver

    def leave(self) -> None:
        """Close the connection, whatever is still to come. The receiver is not called any more."""
        self._is_left = True
        if self._is_over:
            return
        now_ns = self._context.now_ns()
        records: list[Record] = []
        if self.head is None:
            text = "client closed the connection before the response came"
            records.append(note(now_ns, "left", text, self._connection, self._number, by=CLIENT))
        elif self._response is not None:
            records += self._response.close(now_ns, CLIENT, "broken")
        self._finish(records, now_ns, CLIENT, "broken")
        if self._transport is not None:
            self._transport.abort()

    def hold(self, *, holds: bool) -> None:
        """Stop reading, or go on."""
        if self._transport is not None and not self._transport.is_closing():
            if holds:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    # The response

    def _on_head(self, head: ResponseHead, now_ns: int) -> None:
        framing = body_framing(head.value(b"content-type"), head.value(b"content-encoding"))
        response = StreamRecorder(self._context.numbers.stream(), SERVER, framing)
        opening: list[Record] = [response.open(now_ns, head.raw, transaction=self._number, connection=self._connection)]
        if head.is_interim:
            self._context.sink([*opening, *response.close(now_ns, SERVER, "eof")])
            return
        self._context.sink(opening)
        self._response = response
        self._partials = Partials(response, self._context.sink, self._context.now_ns)
        self.head = head
        self._receiver.on_head(head)

    def _on_body(self, body: Body, now_ns: int) -> None:
        if self._response is None:
            return
        records = self._response.feed(body, now_ns)
        if self._partials is not None:
            self._partials.look()
        frames = _frames(records)
        if records:
            self._context.sink(records)
        self._collect(frames)

    def _on_end(self, end: BodyEnd, now_ns: int, how: str) -> None:
        """Take the end of a response. An interim one has an end too."""
        if self._response is None or self.head is None:
            return
        records = self._response.close(now_ns, SERVER, how, trailers=end.trailers)
        frames = _frames(records)
        self._finish(records, now_ns, SERVER, how)
        self._collect(frames)
        why = "" if how == "eof" else "the connection was reset"
        if self._response.framing != "sse" and not why:
            why = self._report_body()
        if self._transport is not None:
            self._transport.close()
        self._receiver.on_end(why)

    def _refuse(self, piece: RefusedBytes | OpaqueBytes, now_ns: int) -> None:
        """Give up: the server does not speak HTTP, or changes to another protocol."""
        assert self._opaque is not None
        why = (
            f"its response is not valid HTTP: {piece.reason}"
            if isinstance(piece, RefusedBytes)
            else "it changed to another protocol"
        )
        records: list[Record] = [note(now_ns, "response-refused", why, self._connection, self._number)]
        if self._response is not None:
            records += self._response.close(now_ns, CLIENT, "abort")
        records += self._opaque.feed(SERVER, piece.raw, now_ns)
        self._finish(records, now_ns, CLIENT, "abort")
        if self._transport is not None:
            self._transport.abort()
        self._receiver.on_end(why)

    def _finish(self, records: list[Record], now_ns: int, by: str, how: str) -> None:
        self._is_over = True
        self._context.open.discard(self)
        if self._partials is not None:
            self._partials.close()
        if self._opaque is not None:
            records += self._opaque.close(now_ns, by, how)
        self._context.sink(records)

    def _collect(self, frames: Sequence[tuple[bytes, bool]]) -> None:
        """Collect the parts of the body or of an event, and report each whole event."""
        for data, is_part in frames:
            self._parts_bytes += len(data)
            if self._parts_bytes <= MAX_MESSAGE_BYTES:
                self._parts.append(data)
            if self._response is not None and self._response.framing == "sse" and not is_part and not self._is_left:
                self._report_event()

    def _report_event(self) -> None:
        event, length = b"".join(self._parts), self._parts_bytes
        self._parts, self._parts_bytes = [], 0
        if length > MAX_MESSAGE_BYTES:
            text = f"an event of more than {MAX_MESSAGE_BYTES} bytes, which is recorded and not heard"
            self._context.sink((note(self._context.now_ns(), "too-long", text, self._connection, self._number),))
            return
        parsed = parse(event, is_first=self._is_first_event)
        self._is_first_event = False
        if parsed.is_terminated:
            self._receiver.on_event(parsed)

    def _report_body(self) -> str:
        """Report the body. Returns why it cannot be read; empty if it can."""
        assert self.head is not None
        if self._parts_bytes > MAX_MESSAGE_BYTES:
            return f"its body is longer than {MAX_MESSAGE_BYTES} bytes"
        body = b"".join(self._parts)
        try:
            body = decode_body(body, self.head.value(b"content-encoding") or b"")
        except ValueError as error:  # we accept no encoding
            return f"its body cannot be read: {error}"
        if body:
            self._receiver.on_body(body)
        return ""


def _frames(records: Sequence[Record]) -> list[tuple[bytes, bool]]:
    """Return the data of the frames, and whether each is a part, before a sink that redacts changes the records."""
    return [(record.data, record.part) for record in records if isinstance(record, Frame)]

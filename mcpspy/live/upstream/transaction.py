"""One HTTP request to a live server and what comes for it, on a connection of its own, recorded as a tap records it.

Refuses to decide what follows from a response: whoever asked does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ...records import CLIENT, SERVER, Frame
from ...wire.body import body_framing
from ...wire.encodings import decoded
from ...wire.http import Responses
from ...wire.http_body import Body, BodyEnd, IncompleteMessage, OpaqueBytes, RefusedBytes
from ...wire.http_head import ResponseHead
from ...wire.sse import SseEvent, parse
from ..http.opaque import OpaqueStreams
from ..http.recorder import StreamRecorder, note
from .partials import Partials
from .protocol import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from ...records import Record
    from .http import HttpTransport


class Receiver(Protocol):
    """Whoever asked: is told the response's final head, then its events, or its body, and in the end how it ended."""

    def answered(self, head: ResponseHead) -> None: ...

    def event(self, event: SseEvent) -> None:
        """One whole event of a stream."""

    def body(self, body: bytes) -> None:
        """The whole body, decompressed. There may be none."""

    def over(self, why: str) -> None:
        """Nothing more comes; `why` is empty where the response came to its end. Not called for one that we left."""


class OutgoingRequest(asyncio.Protocol):
    """A request, which is sent once there is a connection, and what comes for it. `head` is that of the final response."""

    def __init__(self, wire: HttpTransport, method: str, head: bytes, body: bytes, receiver: Receiver) -> None:
        self._wire = wire
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

    # What asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Record the request, then send it."""
        assert isinstance(transport, asyncio.Transport)
        wire = self._wire
        wire.open.add(self)
        self._transport = transport
        self._number, self._connection = wire.numbers.transaction(), wire.numbers.connection()
        self._opaque = OpaqueStreams(wire.numbers, self._connection)
        request = StreamRecorder(wire.numbers.stream(), CLIENT, "body")
        now_ns = wire.now_ns()
        body = self._request_body
        opened = request.open(now_ns, self._request_head, transaction=self._number, connection=self._connection, injected=True)
        records: list[Record] = [opened, *request.feed(Body(body, body), now_ns), *request.close(now_ns, CLIENT, "eof")]
        for record in records:
            if isinstance(record, Frame):
                record.rare["injected"] = True
        wire.sink(records)
        self._responses.expect(self._method)
        transport.write(self._request_head + body)
        if wire.holds:
            transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        now_ns = self._wire.now_ns()
        for piece in self._responses.feed(data):
            if self._is_over:
                return
            match piece:
                case ResponseHead():
                    self._answered(piece, now_ns)
                case Body():
                    self._took(piece, now_ns)
                case BodyEnd():
                    self._ended(piece, now_ns, "eof")
                case RefusedBytes() | OpaqueBytes():
                    self._refuse(piece, now_ns)

    def connection_lost(self, exc: Exception | None) -> None:
        """The server has closed the connection, or it broke."""
        if self._is_over:
            return
        now_ns = self._wire.now_ns()
        how = "eof" if exc is None else "reset"
        why = "it closed the connection before its response" if exc is None else "the connection was reset"
        records: list[Record] = []
        for piece in self._responses.close():
            if isinstance(piece, BodyEnd):
                self._ended(piece, now_ns, how)
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
        self._receiver.over(why)

    # What we do

    def leave(self) -> None:
        """Close the connection, whatever is still to come. The receiver is told nothing more."""
        self._is_left = True
        if self._is_over:
            return
        now_ns = self._wire.now_ns()
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
        """Read nothing more, or read on."""
        if self._transport is not None and not self._transport.is_closing():
            if holds:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    # The response

    def _answered(self, head: ResponseHead, now_ns: int) -> None:
        framed = body_framing(head.value(b"content-type"), head.value(b"content-encoding"))
        response = StreamRecorder(self._wire.numbers.stream(), SERVER, framed)
        opened: list[Record] = [response.open(now_ns, head.raw, transaction=self._number, connection=self._connection)]
        if head.is_interim:
            self._wire.sink([*opened, *response.close(now_ns, SERVER, "eof")])
            return
        self._wire.sink(opened)
        self._response = response
        self._partials = Partials(response, self._wire.sink, self._wire.now_ns)
        self.head = head
        self._receiver.answered(head)

    def _took(self, body: Body, now_ns: int) -> None:
        if self._response is None:
            return
        records = self._response.feed(body, now_ns)
        if self._partials is not None:
            self._partials.look()
        frames = _frames(records)
        if records:
            self._wire.sink(records)
        self._hear(frames)

    def _ended(self, end: BodyEnd, now_ns: int, how: str) -> None:
        """The response is whole. An interim one has an end too."""
        if self._response is None or self.head is None:
            return
        records = self._response.close(now_ns, SERVER, how, trailers=end.trailers)
        frames = _frames(records)
        self._finish(records, now_ns, SERVER, how)
        self._hear(frames)
        why = "" if how == "eof" else "the connection was reset"
        if self._response.framing != "sse" and not why:
            why = self._tell_body()
        if self._transport is not None:
            self._transport.close()
        self._receiver.over(why)

    def _refuse(self, piece: RefusedBytes | OpaqueBytes, now_ns: int) -> None:
        """The server speaks no HTTP, or something else from here on."""
        assert self._opaque is not None
        why = (
            f"its response is no sound HTTP: {piece.reason}"
            if isinstance(piece, RefusedBytes)
            else "it went on in another protocol"
        )
        records: list[Record] = [note(now_ns, "response-refused", why, self._connection, self._number)]
        if self._response is not None:
            records += self._response.close(now_ns, CLIENT, "abort")
        records += self._opaque.feed(SERVER, piece.raw, now_ns)
        self._finish(records, now_ns, CLIENT, "abort")
        if self._transport is not None:
            self._transport.abort()
        self._receiver.over(why)

    def _finish(self, records: list[Record], now_ns: int, by: str, how: str) -> None:
        self._is_over = True
        self._wire.open.discard(self)
        if self._partials is not None:
            self._partials.close()
        if self._opaque is not None:
            records += self._opaque.close(now_ns, by, how)
        self._wire.sink(records)

    def _hear(self, frames: Sequence[tuple[bytes, bool]]) -> None:
        """Gather the parts of the body, or of an event, and tell each event that is whole."""
        for data, is_part in frames:
            self._parts_bytes += len(data)
            if self._parts_bytes <= MAX_MESSAGE_BYTES:
                self._parts.append(data)
            if self._response is not None and self._response.framing == "sse" and not is_part and not self._is_left:
                self._tell_event()

    def _tell_event(self) -> None:
        event, length = b"".join(self._parts), self._parts_bytes
        self._parts, self._parts_bytes = [], 0
        if length > MAX_MESSAGE_BYTES:
            text = f"an event of more than {MAX_MESSAGE_BYTES} bytes, which is recorded and not heard"
            self._wire.sink((note(self._wire.now_ns(), "too-long", text, self._connection, self._number),))
            return
        said = parse(event, is_first=self._is_first_event)
        self._is_first_event = False
        if said.is_terminated:
            self._receiver.event(said)

    def _tell_body(self) -> str:
        """Hand on the body. Why it cannot be read, where it cannot."""
        assert self.head is not None
        if self._parts_bytes > MAX_MESSAGE_BYTES:
            return f"its body is longer than {MAX_MESSAGE_BYTES} bytes"
        body = b"".join(self._parts)
        try:
            body = decoded(body, self.head.value(b"content-encoding") or b"")
        except ValueError as error:  # it was asked for none
            return f"its body cannot be read: {error}"
        if body:
            self._receiver.body(body)
        return ""


def _frames(records: Sequence[Record]) -> list[tuple[bytes, bool]]:
    """What is to be heard of records, and whether it is a part: a sink that redacts writes pseudonyms into the records themselves."""
    return [(one.data, one.part) for one in records if isinstance(one, Frame)]

"""Requests to a live server over HTTP, each on a connection of its own, and their responses, recorded as by a tap.

So nothing is sent twice: on a connection that was kept, nobody could tell whether the server got the request before it closed.
Redirects, cookies, compression and proxies are left to the caller.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NotRequired, Protocol, TypedDict

from ...errors import UpstreamError
from ...records import CLIENT, SERVER, Frame, Note, Record, Sink
from ...wire.encodings import decode_body
from ...wire.http import HttpMessages
from ...wire.http_body import Body, BodyEnd, IncompleteMessage, OpaqueBytes, RefusedBytes, body_framing
from ...wire.http_head import ResponseHead, with_value
from ...wire.sse import SseEvent, parse
from ..http.listener import after_origin, origin
from ..http.recorder import Numbers, OpaqueStreams, StreamRecorder, note
from .partials import Partials
from .protocol import MAX_MESSAGE_BYTES

CONNECT_S = 30.0
"""Time in which a server has to accept a connection, including its name and its TLS."""

FRESH_S = 1.0
"""Longest wait of the connection made by `reach` for the first request."""


class UnreachableError(Exception):
    """No connection could be made; the message gives the reason, as a phrase."""


class Receiver(Protocol):
    """A receiver of the response to a request: its final head, then its events or its body, then its end."""

    def on_head(self, head: ResponseHead) -> None:
        """Take the final head."""

    def on_event(self, event: SseEvent) -> None:
        """Take one whole event of a stream."""

    def on_body(self, body: bytes) -> None:
        """Take the whole body, decompressed. Not called if it is empty."""

    def on_end(self, why: str) -> None:
        """Take the end; `why` is empty if the response is complete. Not called for a request that we left."""


class HttpOptions(TypedDict):
    """The keyword arguments of `HttpTransport`, which the clients over HTTP take and pass on."""

    sink: Sink
    now_ns: Callable[[], int]
    headers: NotRequired[Sequence[tuple[bytes, bytes]]]
    tls: NotRequired[ssl.SSLContext | None]
    numbers: NotRequired[Numbers | None]


class HttpTransport:
    """The server at `url`, how to connect to it, and the sink for its records.

    `headers` are put into every request, in place of fields of the same names. `numbers` are those of a capture that has records of
    another client too.
    """

    def __init__(
        self,
        url: str,
        *,
        sink: Sink,
        now_ns: Callable[[], int],
        headers: Sequence[tuple[bytes, bytes]] = (),
        tls: ssl.SSLContext | None = None,
        numbers: Numbers | None = None,
    ) -> None:
        server = origin(url)
        if server is None:
            raise UpstreamError(
                url, "this is not the URL of a server", "It begins with http:// or https://, then comes the host"
            )
        self.url = url
        self.origin = server
        self.target = target_of(url)
        self.sink = sink
        self.now_ns = now_ns
        self.numbers = numbers or Numbers()
        self._headers = tuple(headers)
        self._tls = tls or ssl.create_default_context() if server.scheme == "https" else None
        self._held: tuple[asyncio.Transport, float] | None = None
        self._has_noted_tls = False
        self.holds = False
        self.open: set[OutgoingRequest] = set()
        """The requests under way."""

    async def reach(self) -> None:
        """Connect to the server, and keep the connection for the next request. Raises: UpstreamError: if it cannot be reached."""
        try:
            transport = await self.connect(asyncio.Protocol)
        except UnreachableError as error:
            raise UpstreamError(
                self.url, f"it cannot be reached: {error}", "Is the server running, and is this its address?"
            ) from error
        self._held = transport, asyncio.get_running_loop().time()

    async def ask(
        self,
        method: str,
        fields: Sequence[tuple[bytes, bytes]],
        body: bytes,
        receiver: Receiver,
        *,
        target: str = "",
    ) -> OutgoingRequest:
        """Send a request, once. Raises: UnreachableError: if nothing was sent."""
        first_lines = f"{method} {target or self.target} HTTP/1.1\r\nHost: {self.origin.host_field}\r\n"
        head = b"".join(
            [first_lines.encode(), b"User-Agent: mcpspy\r\n", *(b"%b: %b\r\n" % field for field in fields), b"\r\n"]
        )
        for name, value in self._headers:
            head = with_value(head, name, value)
        request = OutgoingRequest(self, method, head, body, receiver)
        held, self._held = self._held, None
        if held is not None and not held[0].is_closing() and asyncio.get_running_loop().time() - held[1] < FRESH_S:
            held[0].set_protocol(request)
            request.connection_made(held[0])
        else:
            if held is not None:
                held[0].abort()
            await self.connect(lambda: request)
        return request

    def hold(self, *, holds: bool) -> None:
        """Stop reading all responses, or go on."""
        self.holds = holds
        for request in self.open:
            request.hold(holds=holds)

    def close(self) -> None:
        """Leave everything under way."""
        for request in list(self.open):
            request.leave()
        if self._held is not None:
            self._held[0].abort()
            self._held = None

    async def connect(self, make: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """Connect to the first of the server's addresses that accepts. Raises: UnreachableError."""
        host, port = self.origin.authority.host, self.origin.authority.port
        loop = asyncio.get_running_loop()
        reasons: list[str] = []
        try:
            async with asyncio.timeout(CONNECT_S):
                infos = await loop.getaddrinfo(host, port, type=1)
                for address in dict.fromkeys(str(info[4][0]) for info in infos):
                    name = host if self._tls is not None else None
                    try:
                        transport, _ = await loop.create_connection(make, address, port, ssl=self._tls, server_hostname=name)
                    except OSError as error:
                        reasons.append(_reason(error))
                    else:
                        self._note_tls(transport)
                        return transport
        except TimeoutError:
            reasons.append(f"no connection within {CONNECT_S:.0f} s")
        except (OSError, UnicodeError) as error:  # from the name
            reasons.append(_reason(error))
        raise UnreachableError("; ".join(dict.fromkeys(reasons)))

    def _note_tls(self, transport: asyncio.Transport) -> None:
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and not self._has_noted_tls:
            self._has_noted_tls = True
            cipher = tls.cipher()
            self.sink(
                (Note(at_ns=self.now_ns(), topic="tls", text=f"{tls.version()}, {cipher[0] if cipher else 'no cipher'}"),)
            )


class OutgoingRequest(asyncio.Protocol):
    """A request, which is sent once it has a connection, and its response. `head` is the head of the final response."""

    def __init__(self, owner: HttpTransport, method: str, head: bytes, body: bytes, receiver: Receiver) -> None:
        self._owner = owner
        self._method = method.encode()
        self._request_head = head
        self._request_body = body
        self._receiver = receiver
        self._transport: asyncio.Transport | None = None
        self._responses = HttpMessages.of_responses()
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
        owner = self._owner
        owner.open.add(self)
        self._transport = transport
        self._number, self._connection = owner.numbers.transaction(), owner.numbers.connection()
        self._opaque = OpaqueStreams(owner.numbers, self._connection)
        request = StreamRecorder(owner.numbers.stream(), CLIENT, "body")
        now_ns = owner.now_ns()
        body = self._request_body
        opening = request.open(now_ns, self._request_head, transaction=self._number, connection=self._connection, injected=True)
        records: list[Record] = [opening, *request.feed(Body(body, body), now_ns), *request.close(now_ns, CLIENT, "eof")]
        for record in records:
            if isinstance(record, Frame):
                record.rare["injected"] = True
        owner.sink(records)
        self._responses.expect(self._method)
        transport.write(self._request_head + body)
        if owner.holds:
            transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        now_ns = self._owner.now_ns()
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
        now_ns = self._owner.now_ns()
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
        now_ns = self._owner.now_ns()
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
        response = StreamRecorder(self._owner.numbers.stream(), SERVER, framing)
        opening: list[Record] = [response.open(now_ns, head.raw, transaction=self._number, connection=self._connection)]
        if head.is_interim:
            self._owner.sink([*opening, *response.close(now_ns, SERVER, "eof")])
            return
        self._owner.sink(opening)
        self._response = response
        self._partials = Partials(response, self._owner.sink, self._owner.now_ns)
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
            self._owner.sink(records)
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
        self._owner.open.discard(self)
        if self._partials is not None:
            self._partials.close()
        if self._opaque is not None:
            records += self._opaque.close(now_ns, by, how)
        self._owner.sink(records)

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
            self._owner.sink((note(self._owner.now_ns(), "too-long", text, self._connection, self._number),))
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


def target_of(url: str) -> str:
    """Return path and query of a URL, as a request line has them."""
    path = after_origin(url).partition("#")[0]
    return path if path.startswith("/") else f"/{path}"


def _reason(error: Exception) -> str:
    """Say why no connection could be made, in the system's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    code = error.errno if isinstance(error, OSError) else None
    with suppress(ValueError, OverflowError):
        if code is not None and code > 0:
            return os.strerror(code)
    return getattr(error, "strerror", None) or str(error)


def _frames(records: Sequence[Record]) -> list[tuple[bytes, bool]]:
    """Return the data of the frames, and whether each is a part, before a sink that redacts changes the records."""
    return [(record.data, record.part) for record in records if isinstance(record, Frame)]

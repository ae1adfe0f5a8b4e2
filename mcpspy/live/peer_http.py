"""One HTTP request to a live server and its response, on a connection of its own, recorded as a tap records it.

So nothing can be sent twice: a connection that was kept could turn out to be closed, and to whom then belongs the request? Refuses
redirects, cookies, compression and proxies: whoever asks decides what follows from a response.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from ..errors import PeerError
from ..records import CLIENT, SERVER, Frame, Note
from ..wire.body import framing
from ..wire.codings import decoded
from ..wire.http import Responses
from ..wire.http_body import Body, End, Incomplete, Opaque, Refused
from ..wire.http_fields import with_value
from ..wire.http_head import ResponseHead
from ..wire.sse import Event, parse
from .authority import after_origin, origin
from .opaque import Opaque as OpaqueStreams
from .peer import MAX_MESSAGE_BYTES
from .recording import Numbers, Recorded, note

if TYPE_CHECKING:
    from ..records import Record, Sink

CONNECT_S = 30.0
"""How long a server may take to accept a connection, its name and its TLS included."""

FRESH_S = 1.0
"""So long the connection by which a server was reached may wait for the first request."""


class UnreachableError(Exception):
    """No connection could be made; the message says why, in a phrase."""


class Receiver(Protocol):
    """Whoever asked: is told the response's final head, then its events, or its body, and in the end how it ended."""

    def answered(self, head: ResponseHead) -> None: ...

    def event(self, event: Event) -> None:
        """One whole event of a stream."""

    def body(self, body: bytes) -> None:
        """The whole body, decompressed. There may be none."""

    def over(self, why: str) -> None:
        """Nothing more comes; `why` is empty where the response came to its end. Not called for one that we left."""


class Wire:
    """The way to the server at `url`: where it is, how it is spoken to, and what is recorded of it.

    `headers` are put into every request, in place of what stands there. `numbers` may be shared by all that goes into one capture.
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
        found = origin(url)
        if found is None:
            raise PeerError(url, "this is not the URL of a server", "It begins with http:// or https://, then comes the host")
        self.url = url
        self.origin = found
        self.target = target_of(url)
        self.sink = sink
        self.now_ns = now_ns
        self.numbers = numbers or Numbers()
        self._headers = tuple(headers)
        self._tls = tls or ssl.create_default_context() if found.scheme == "https" else None
        self._held: tuple[asyncio.Transport, float] | None = None
        self._has_told_tls = False
        self.open: set[Transaction] = set()
        """What is under way."""

    async def reach(self) -> None:
        """See whether the server can be reached; the connection is kept for what is asked next. Raises: PeerError."""
        try:
            transport = await self._connected(asyncio.Protocol)
        except UnreachableError as error:
            raise PeerError(
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
    ) -> Transaction:
        """Send a request, once. Raises: UnreachableError: if nothing was sent."""
        begun = f"{method} {target or self.target} HTTP/1.1\r\nHost: {self.origin.host_field}\r\n"
        head = b"".join([begun.encode(), b"User-Agent: mcpspy\r\n", *(b"%b: %b\r\n" % field for field in fields), b"\r\n"])
        for name, value in self._headers:
            head = with_value(head, name, value)
        transaction = Transaction(self, method, head, body, receiver)
        held, self._held = self._held, None
        if held is not None and not held[0].is_closing() and asyncio.get_running_loop().time() - held[1] < FRESH_S:
            held[0].set_protocol(transaction)
            transaction.connection_made(held[0])
        else:
            if held is not None:
                held[0].abort()
            await self._connected(lambda: transaction)
        return transaction

    def close(self) -> None:
        """Leave whatever is under way."""
        for transaction in list(self.open):
            transaction.leave()
        if self._held is not None:
            self._held[0].abort()
            self._held = None

    async def _connected(self, make: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """A connection, to the first of the server's addresses that accepts one."""
        host, port = self.origin.authority.host, self.origin.authority.port
        loop = asyncio.get_running_loop()
        reasons: list[str] = []
        try:
            async with asyncio.timeout(CONNECT_S):
                found = await loop.getaddrinfo(host, port, type=1)
                for address in dict.fromkeys(str(one[4][0]) for one in found):
                    name = host if self._tls is not None else None
                    try:
                        transport, _ = await loop.create_connection(make, address, port, ssl=self._tls, server_hostname=name)
                    except OSError as error:
                        reasons.append(_reason(error))
                    else:
                        self._tell_tls(transport)
                        return transport
        except TimeoutError:
            reasons.append(f"no connection within {CONNECT_S:.0f} s")
        except (OSError, UnicodeError) as error:  # of the name
            reasons.append(_reason(error))
        raise UnreachableError("; ".join(dict.fromkeys(reasons)))

    def _tell_tls(self, transport: asyncio.Transport) -> None:
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and not self._has_told_tls:
            self._has_told_tls = True
            cipher = tls.cipher()
            self.sink(
                (Note(at_ns=self.now_ns(), topic="tls", text=f"{tls.version()}, {cipher[0] if cipher else 'no cipher'}"),)
            )


class Transaction(asyncio.Protocol):
    """A request, which is sent once there is a connection, and what comes for it. `head` is that of the final response."""

    def __init__(self, wire: Wire, method: str, head: bytes, body: bytes, receiver: Receiver) -> None:
        self._wire = wire
        self._method = method.encode()
        self._request_head = head
        self._request_body = body
        self._receiver = receiver
        self._transport: asyncio.Transport | None = None
        self._responses = Responses()
        self._response: Recorded | None = None
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
        request = Recorded(wire.numbers.stream(), CLIENT, "body")
        now_ns = wire.now_ns()
        body = self._request_body
        opened = request.begun(now_ns, self._request_head, transaction=self._number, connection=self._connection, forged=True)
        records: list[Record] = [opened, *request.took(Body(body, body), now_ns), *request.ended(now_ns, CLIENT, "eof")]
        for record in records:
            if isinstance(record, Frame):
                record.rare["forged"] = True
        wire.sink(records)
        self._responses.expect(self._method)
        transport.write(self._request_head + body)

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
                case End():
                    self._ended(piece, now_ns, "eof")
                case Refused() | Opaque():
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
            if isinstance(piece, End):
                self._ended(piece, now_ns, how)
                return
            if isinstance(piece, Incomplete) and self._response is not None:
                why = "the response was cut short" if exc is None else why
                broken = "abort" if how == "eof" else how
                records += self._response.ended(now_ns, SERVER, broken, missing_bytes=piece.missing_bytes)
                self._response = None
            elif isinstance(piece, Incomplete | Refused) and self._opaque is not None:
                records += self._opaque.took(SERVER, piece.raw, now_ns)
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
            records += self._response.ended(now_ns, CLIENT, "broken")
        self._finish(records, now_ns, CLIENT, "broken")
        if self._transport is not None:
            self._transport.abort()

    # The response

    def _answered(self, head: ResponseHead, now_ns: int) -> None:
        framed = framing(head.value(b"content-type"), head.value(b"content-encoding"))
        response = Recorded(self._wire.numbers.stream(), SERVER, framed)
        opened: list[Record] = [response.begun(now_ns, head.raw, transaction=self._number, connection=self._connection)]
        if head.is_interim:
            self._wire.sink([*opened, *response.ended(now_ns, SERVER, "eof")])
            return
        self._wire.sink(opened)
        self._response = response
        self.head = head
        self._receiver.answered(head)

    def _took(self, body: Body, now_ns: int) -> None:
        if self._response is None:
            return
        records = self._response.took(body, now_ns)
        frames = _frames(records)
        if records:
            self._wire.sink(records)
        self._hear(frames)

    def _ended(self, end: End, now_ns: int, how: str) -> None:
        """The response is whole. An interim one has an end too."""
        if self._response is None or self.head is None:
            return
        records = self._response.ended(now_ns, SERVER, how, trailers=end.trailers)
        frames = _frames(records)
        self._finish(records, now_ns, SERVER, how)
        self._hear(frames)
        why = "" if how == "eof" else "the connection was reset"
        if self._response.framing != "sse" and not why:
            why = self._tell_body()
        if self._transport is not None:
            self._transport.close()
        self._receiver.over(why)

    def _refuse(self, piece: Refused | Opaque, now_ns: int) -> None:
        """The server speaks no HTTP, or something else from here on."""
        assert self._opaque is not None
        why = (
            f"its response is no sound HTTP: {piece.reason}" if isinstance(piece, Refused) else "it went on in another protocol"
        )
        records: list[Record] = [note(now_ns, "response-refused", why, self._connection, self._number)]
        if self._response is not None:
            records += self._response.ended(now_ns, CLIENT, "abort")
        records += self._opaque.took(SERVER, piece.raw, now_ns)
        self._finish(records, now_ns, CLIENT, "abort")
        if self._transport is not None:
            self._transport.abort()
        self._receiver.over(why)

    def _finish(self, records: list[Record], now_ns: int, by: str, how: str) -> None:
        self._is_over = True
        self._wire.open.discard(self)
        if self._opaque is not None:
            records += self._opaque.closed(now_ns, by, how)
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


def target_of(url: str) -> str:
    """What a request line says for this URL."""
    path = after_origin(url).partition("#")[0]
    return path if path.startswith("/") else f"/{path}"


def _reason(error: Exception) -> str:
    """Why no connection could be made, in the system's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    code = error.errno if isinstance(error, OSError) else None
    with suppress(ValueError, OverflowError):
        if code is not None and code > 0:
            return os.strerror(code)
    return getattr(error, "strerror", None) or str(error)

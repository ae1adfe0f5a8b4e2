"""One connection of a client to a mock over HTTP: it cuts requests out of what the client sends, and writes and records responses.

What a mock plays is recorded as the server's; what mcpspy says in its own name has an injected head.

It serves one request at a time: what a client sends after it waits. Records are those of a tap, with heads as they were on the wire.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, Protocol, cast

from ....records import CLIENT, MCPSPY, SERVER, Close, Frame, Open, Record, Sink
from ....replay.mock.scheduled_send import LiveServerBytes
from ....wire.http import HttpMessages, Piece
from ....wire.http_body import BlankLines, Body, BodyEnd, IncompleteMessage, OpaqueBytes, RefusedBytes, body_framing
from ....wire.http_head import RequestHead
from ...http.listener import HostCheck, Refusal
from ...http.recorder import Numbers, OpaqueStreams, StreamRecorder, half_closed, note
from ...http.timers import LINGER_S, REQUEST_S

MAX_BODY_BYTES: Final = 64 << 20
"""A longer request is refused. Servers on the SDKs take 4 MiB; those on stdio have no limit, and a mock serves them too."""

MAX_WAITING_BYTES: Final = 1 << 18
"""Bytes of further requests that are read while one is answered."""


Fields = list[tuple[str, str]]

COMMENT: Final = b": keep-alive\n\n"
WITHOUT_BODY: Final = (204, 304)
_KNOWN: Final = frozenset(HTTPStatus)


class Serving(Protocol):
    """The mock that answers requests, and what its connections share."""

    numbers: Numbers
    host_check: HostCheck
    sink: Sink
    connections: set[Connection]

    def now_ns(self) -> int:
        """Return the nanoseconds since the capture began."""

    def answer(self, request: Request, response: Response) -> None:
        """Answer a whole request; the response may be written now or later."""


class Connection(asyncio.Protocol):
    """One connection of a client. `number` counts connections; `client` is for `serving` to remember whose it is."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.number = serving.numbers.connection()
        self.client: object | None = None
        self.is_full = False
        self.numbers = serving.numbers
        self.now_ns = serving.now_ns
        self._transport: asyncio.Transport
        self._requests = HttpMessages.of_requests()
        self._pieces: deque[Piece] = deque()
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._records: list[Record] = []
        self._opaque = OpaqueStreams(serving.numbers, self.number)
        self._head: RequestHead | None = None
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._request: StreamRecorder | None = None
        self._response: Response | None = None
        self._is_going_on = False
        self._is_over = False
        self._has_client_ended = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def knows_chunks(self) -> bool:
        return self._head is not None and self._head.version != b"HTTP/1.0"

    @property
    def is_head_only(self) -> bool:
        return self._head is not None and self._head.method == b"HEAD"

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.serving.connections.add(self)

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._response is not None or self._pieces:
            self._held.append(data)
            self._held_bytes += len(data)
            if self._held_bytes > MAX_WAITING_BYTES:
                self._transport.pause_reading()
            return
        self._pieces.extend(self._requests.feed(data))
        self._go_on()
        self._flush()
        self._watch_time()

    def eof_received(self) -> bool:
        """Take a client that closes its half for gone, unless the response outlasts that."""
        if self._response is not None and self._response.outlasts_request:
            self._has_client_ended = True
            if not self._response.has_begun:
                self._records.append(half_closed(self.now_ns(), self.number, self._transaction))
                self._flush()
            return True
        self._record_end(CLIENT, "eof")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None or isinstance(exc, OSError):
            self._record_end(CLIENT, "eof" if exc is None else "reset")
        else:  # a fault of our own
            self._record_end(MCPSPY, "abort")
        self.serving.connections.discard(self)
        self.client = None

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        if self._response is not None:
            self._response.on_drained()

    # Requests

    def _go_on(self) -> None:
        """Take requests in order, up to one whose response is not written at once."""
        if self._is_going_on:
            return
        self._is_going_on = True
        try:
            while self._response is None and not self._is_over:
                if not self._pieces:
                    if not self._held:
                        break
                    data, self._held, self._held_bytes = b"".join(self._held), [], 0
                    self._transport.resume_reading()
                    self._pieces.extend(self._requests.feed(data))
                    continue
                self._take(self._pieces.popleft())
        finally:
            self._is_going_on = False

    def _take(self, piece: Piece) -> None:
        now_ns = self.now_ns()
        match piece:
            case RequestHead():
                self._begin(piece, now_ns)
            case Body() if self._request is not None:
                self._records += self._request.feed(piece, now_ns)
                self._body.append(piece.payload)
                self._body_bytes += len(piece.payload)
                if self._body_bytes > MAX_BODY_BYTES:
                    self._refuse(Refusal(status=413, reason=f"a request may have {MAX_BODY_BYTES >> 20} MiB"))
            case BodyEnd() if self._request is not None and self._head is not None:
                self._records += self._request.close(now_ns, CLIENT, "eof", trailers=piece.trailers)
                request = Request(self._head, b"".join(self._body), self)
                self._request, self._body, self._body_bytes = None, [], 0
                assert self._response is None
                self._response = response = self._new_response()
                self.serving.answer(request, response)
            case RefusedBytes():
                self._records += self._opaque.feed(CLIENT, piece.raw, now_ns)
                self._refuse(Refusal(status=400, reason=piece.reason))
            case OpaqueBytes():
                self._records += self._opaque.feed(CLIENT, piece.raw, now_ns)
            case BlankLines() | _:
                pass

    def _begin(self, head: RequestHead, now_ns: int) -> None:
        numbers = self.numbers
        self._head = head
        self._transaction = numbers.transaction()
        self._request = StreamRecorder(
            numbers.stream(), CLIENT, body_framing(head.value(b"content-type"), head.value(b"content-encoding"))
        )
        self._records.append(self._request.open(now_ns, head.raw, transaction=self._transaction, connection=self.number))
        refusal = self.serving.host_check.refusal(head)
        if refusal is not None:
            self._refuse(refusal)
        elif (head.value(b"expect") or b"").lower() == b"100-continue":
            self._interim()

    def _interim(self) -> None:
        """Ask the client for the body that it holds back (100 Continue)."""
        raw = b"HTTP/1.1 100 Continue\r\n\r\n"
        now_ns = self.now_ns()
        interim = StreamRecorder(self.numbers.stream(), SERVER, "body")
        opening = interim.open(now_ns, raw, transaction=self._transaction, connection=self.number)
        self.send([opening, *interim.close(now_ns, SERVER, "eof")], raw)

    def _new_response(self) -> Response:
        head = self._head
        wants = b"" if head is None else (head.value(b"connection") or b"").lower()
        return Response(self, self._transaction, keeps=self.knows_chunks and b"close" not in wants)

    def _refuse(self, refusal: Refusal) -> None:
        """Answer in mcpspy's own name, and close: nothing more is read."""
        if self._head is None:  # no request has begun
            self._transaction = self.numbers.transaction()
        now_ns = self.now_ns()
        if self._request is not None:
            self._records += self._request.close(now_ns, MCPSPY, "abort")
            self._request = None
        self._pieces.clear()
        self._response = Response(self, self._transaction, keeps=False)
        self._response.refuse(refusal.status, refusal.reason)

    def _watch_time(self) -> None:
        """Restart the timer of a request that has begun."""
        has_begun = self._response is None and (self._request is not None or self._requests.is_within_head)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if has_begun and not self._is_over:
            reason = f"the request did not go on for {REQUEST_S:.0f} s"
            self._timer = asyncio.get_running_loop().call_later(REQUEST_S, self._refuse, Refusal(status=408, reason=reason))

    # Responses

    def send(self, records: Sequence[Record], data: bytes) -> None:
        """Record, and send."""
        self._records += records
        self._flush()
        self._transport.write(data)

    def end_response(self, *, keeps: bool) -> None:
        """Go on after a response that is complete; without `keeps` the connection is closed."""
        self._response = self._head = None
        if not keeps:
            self._is_over = True
            self._records += self._opaque.close(self.now_ns(), MCPSPY, "eof")
            self._flush()
            self._leave()
            return
        self._go_on()
        self._flush()
        if self._has_client_ended and self._response is None:
            self._transport.close()

    def _leave(self) -> None:
        """Close after a while, and drop what the client still sends: a reset could take the response with it."""
        if self._transport.can_write_eof():
            self._transport.write_eof()
        asyncio.get_running_loop().call_later(LINGER_S, self._transport.close)

    def keep_alive(self, now_ns: int, silent_ns: int) -> None:
        """Write a comment to a client that waits, if it got nothing for so long."""
        if self._response is not None:
            self._response.keep_alive(now_ns, silent_ns)

    def abort(self, by: str) -> None:
        """Close at once, ended by `by`."""
        self._record_end(by, "abort")
        self._transport.abort()

    def cut(self, by: str) -> None:
        """Close, ended by `by`, once all that was written has been taken."""
        self._record_end(by, "abort")
        self._transport.close()

    def _record_end(self, by: str, how: str) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._has_client_ended:
            by, how = CLIENT, "eof"  # it ended first; a reset only says that it takes no more
        now_ns = self.now_ns()
        if self._timer is not None:
            self._timer.cancel()
        response, self._response = self._response, None
        for piece in self._requests.close():
            if isinstance(piece, IncompleteMessage) and self._request is not None:
                broken = "abort" if how == "eof" else how
                self._records += self._request.close(now_ns, by, broken, missing_bytes=piece.missing_bytes)
                self._request = None
            elif isinstance(piece, IncompleteMessage | RefusedBytes):
                self._records += self._opaque.feed(CLIENT, piece.raw, now_ns)
        if response is not None:
            self._records += response.close(by, how)
        self._records += self._opaque.close(now_ns, by, how)
        self._flush()
        if response is not None:
            response.on_left()

    def _flush(self) -> None:
        if self._records:
            records, self._records = self._records, []
            self.serving.sink(records)


class Request:
    """A whole request, and the `connection` that it came on."""

    __slots__ = ("body", "connection", "head")

    def __init__(self, head: RequestHead, body: bytes, connection: Connection) -> None:
        self.head = head
        self.body = body
        self.connection = connection

    @property
    def method(self) -> str:
        return self.head.method.decode("latin-1")

    @property
    def target(self) -> str:
        """Path and query."""
        return self.head.target.decode("latin-1")

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def value(self, name: bytes) -> str:
        """Return the value of a field, named in lower case; empty if there is none."""
        return (self.head.value(name) or b"").decode("latin-1")


class Response:
    """The response to the transaction `number`: written whole, or begun and given events until its `end`.

    `on_left` is called if the client leaves before its end, `on_drained` when it reads again after `is_full`. A response that
    `outlasts_request` is also written to a client that has closed its half of the connection: it may wait, or have left, which the
    first write to it shows.
    """

    __slots__ = (
        "_connection",
        "_is_chunked",
        "_keeps",
        "_stream",
        "_sent_ns",
        "has_begun",
        "is_open",
        "number",
        "on_drained",
        "on_left",
        "outlasts_request",
    )

    def __init__(self, connection: Connection, number: int, *, keeps: bool) -> None:
        self._connection = connection
        self._stream = -1
        self._is_chunked = False
        self._keeps = keeps
        self._sent_ns = 0
        self.number = number
        self.has_begun = False
        self.is_open = True
        self.outlasts_request = False
        self.on_left: Callable[[], None] = ignore
        self.on_drained: Callable[[], None] = ignore

    @property
    def is_full(self) -> bool:
        """True if the client is behind with reading."""
        return self._connection.is_full

    def whole(
        self, status: int, fields: Fields, body: bytes = b"", *, reason: str | None = None, injected: bool = False
    ) -> None:
        """Write the whole response. `injected` means that it is mcpspy's own, and no part of what is played."""
        if status in WITHOUT_BODY:
            body = b""
        else:
            fields = [*fields, ("Content-Length", str(len(body)))]
        raw = head(status, fields, keeps=self._keeps, reason=reason)
        connection = self._connection
        now_ns = connection.now_ns()
        if connection.is_head_only:
            body = b""
        records = [self._open(now_ns, raw, "body", injected=injected)]
        if body:
            records.append(_frame(self._stream, now_ns, body))
        records.append(Close(at_ns=now_ns, stream=self._stream, by=MCPSPY if injected else SERVER, how="eof"))
        self.is_open = False
        connection.send(records, raw + body)
        connection.end_response(keeps=self._keeps)

    def refuse(self, status: int, reason: str, *fields: tuple[str, str]) -> None:
        """Refuse the request in mcpspy's own name."""
        all_fields = [("Content-Type", "text/plain; charset=utf-8"), *fields]
        self.whole(status, all_fields, f"mcpspy: {reason}\n".encode(), injected=True)

    def begin(
        self,
        status: int,
        fields: Fields,
        events: Sequence[bytes] = (),
        *,
        framing: str = "sse",
        reason: str | None = None,
    ) -> None:
        """Write the head of a stream, and its first events; `framing` is not `sse` for a body that is no stream of events."""
        self._is_chunked = self._connection.knows_chunks
        self._keeps = self._keeps and self._is_chunked
        coding = [("Transfer-Encoding", "chunked")] if self._is_chunked else []
        raw = head(status, [*fields, *coding], keeps=self._keeps, reason=reason)
        records = [self._open(self._connection.now_ns(), raw, framing)]
        data = [raw]
        self._add(events, records, data)
        self._connection.send(records, b"".join(data))

    def send(self, *events: bytes) -> None:
        """Write events, each in a chunk of its own."""
        records: list[Record] = []
        data: list[bytes] = []
        self._add(events, records, data)
        self._connection.send(records, b"".join(data))

    def keep_alive(self, now_ns: int, silent_ns: int) -> None:
        """Write a comment on a stream that was silent so long: clients give up silent streams."""
        if self.has_begun and self.is_open and not self.is_full and now_ns - self._sent_ns >= silent_ns:
            self.send(COMMENT)

    def end(self, *events: bytes) -> None:
        """Write the last events of a stream, and its end."""
        records: list[Record] = []
        data: list[bytes] = []
        self._add(events, records, data)
        if self._is_chunked:
            data.append(b"0\r\n\r\n")
        records.append(Close(at_ns=self._connection.now_ns(), stream=self._stream, by=SERVER, how="eof"))
        self.is_open = False
        self._connection.send(records, b"".join(data))
        self._connection.end_response(keeps=self._keeps)

    def break_off(self) -> None:
        """Close the connection at once, without an end, as if the server's process had gone."""
        self._connection.abort(SERVER)

    def cut_off(self) -> None:
        """Close the connection without an end, once the client has read what was written."""
        self._connection.cut(SERVER)

    def close(self, by: str, how: str) -> list[Record]:
        """Return the records of a response whose connection is gone, ended by `by`."""
        self.is_open = False
        now_ns = self._connection.now_ns()
        if self.has_begun:
            broken = how if how != "eof" else "broken" if by == CLIENT else "abort"
            return [Close(at_ns=now_ns, stream=self._stream, by=by, how=broken)]
        text = f"{by} closed the connection before the response came"
        return [note(now_ns, "left", text, self._connection.number, self.number, by=by)]

    def _open(self, now_ns: int, raw: bytes, framing: str, *, injected: bool = False) -> Record:
        self.has_begun = True
        self._stream = self._connection.numbers.stream()
        return Open(
            at_ns=now_ns,
            stream=self._stream,
            sender=SERVER,
            name="response",
            framing=framing,
            connection=self._connection.number,
            transaction=self.number,
            head=raw,
            injected=injected,
        )

    def _add(self, events: Sequence[bytes], records: list[Record], data: list[bytes]) -> None:
        now_ns = self._sent_ns = self._connection.now_ns()
        for event in events:
            if self._is_chunked:
                records.append(_frame(self._stream, now_ns, event, chunks=(len(event),)))
                data.append(b"%x\r\n%b\r\n" % (len(event), event))
            else:
                records.append(_frame(self._stream, now_ns, event))
                data.append(event)


def _frame(stream: int, now_ns: int, data: bytes, **facts: Any) -> Frame:
    """Make a frame of what is written: a live server's bytes are its own, all others are injected."""
    if not isinstance(data, LiveServerBytes):
        facts["injected"] = True
    return Frame(stream, now_ns, now_ns, data, **facts)


def head(status: int, fields: Fields, *, keeps: bool, reason: str | None = None) -> bytes:
    """Write the head of a response; `keeps` means that the connection stays open. Without a `reason` it gets the usual one."""
    if reason is None:
        reason = HTTPStatus(status).phrase if status in _KNOWN else ""
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in fields)]
    if not keeps:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def ignore() -> None:
    """Do nothing: a callback that nobody needs."""

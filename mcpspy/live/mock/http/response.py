"""A whole request to a mock over HTTP, and its response: written, and recorded as by a tap.

What a mock plays is recorded as the server's; what mcpspy says in its own name has an injected head.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

from ....records import CLIENT, MCPSPY, SERVER, Close, Frame, Open
from ....replay.mock.scheduled_send import LiveServerBytes
from ...http.recorder import note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ....records import Record
    from ....wire.http_head import RequestHead
    from ...http.recorder import Numbers

Fields = list[tuple[str, str]]

COMMENT: Final = b": keep-alive\n\n"
WITHOUT_BODY: Final = (204, 304)
_KNOWN: Final = frozenset(HTTPStatus)


class ClientConnection(Protocol):
    """The connection that a request came on and a response is written on."""

    number: int
    client: object | None
    """The client that it belongs to, for the mock to remember."""
    is_full: bool
    """Whether the client is behind with reading."""
    numbers: Numbers
    now_ns: Callable[[], int]

    @property
    def knows_chunks(self) -> bool:
        """True if the client can read a chunked response."""

    @property
    def is_head_only(self) -> bool:
        """True if the response has no body: the request is a HEAD."""

    def send(self, records: Sequence[Record], data: bytes) -> None:
        """Record, and send."""

    def end_response(self, *, keeps: bool) -> None:
        """Go on after a response that is complete; without `keeps` the connection is closed."""

    def abort(self, by: str) -> None:
        """Close at once, ended by `by`."""

    def cut(self, by: str) -> None:
        """Close, ended by `by`, once all that was written has been taken."""


class Request:
    """A whole request, and the `connection` that it came on."""

    __slots__ = ("body", "connection", "head")

    def __init__(self, head: RequestHead, body: bytes, connection: ClientConnection) -> None:
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

    `on_left` is called if the client leaves before its end, `on_drained` when it reads again after `is_full`.
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
    )

    def __init__(self, connection: ClientConnection, number: int, *, keeps: bool) -> None:
        self._connection = connection
        self._stream = -1
        self._is_chunked = False
        self._keeps = keeps
        self._sent_ns = 0
        self.number = number
        self.has_begun = False
        self.is_open = True
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

"""A request to a mock over HTTP, whole, and the response to it: written, and recorded as a tap would have recorded it.

Refuses to know what is said. What the mock plays is the server's; what mcpspy says in its own name has an injected head.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from ....records import CLIENT, MCPSPY, SERVER, Close, Frame, Open
from ....replay.mock.scheduled_send import LiveServerBytes
from ...http.recorder import note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ....records import Record
    from ....wire.http_head import RequestHead
    from .connection import Connection

Fields = list[tuple[str, str]]

COMMENT: Final = b": keep-alive\n\n"
WITHOUT_BODY: Final = (204, 304)
_KNOWN: Final = frozenset(HTTPStatus)


class Request:
    """A whole request. `connection` is the one that it came on."""

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
        """The value of a field, given in lower case; empty if there is none."""
        return (self.head.value(name) or b"").decode("latin-1")


class Response:
    """The response to the transaction `number`: written whole, or begun and told events until its `end`.

    `left` is called if the client leaves before its end, `drained` when it takes more again after `is_full`.
    """

    __slots__ = (
        "_connection",
        "_is_chunked",
        "_keeps",
        "_stream",
        "_told_ns",
        "drained",
        "has_begun",
        "is_open",
        "left",
        "number",
    )

    def __init__(self, connection: Connection, number: int, *, keeps: bool) -> None:
        self._connection = connection
        self._stream = -1
        self._is_chunked = False
        self._keeps = keeps
        self._told_ns = 0
        self.number = number
        self.has_begun = False
        self.is_open = True
        self.left: Callable[[], None] = _nothing
        self.drained: Callable[[], None] = _nothing

    @property
    def is_full(self) -> bool:
        """Whether the client is behind with reading."""
        return self._connection.is_full

    def whole(
        self, status: int, fields: Fields, body: bytes = b"", *, reason: str | None = None, injected: bool = False
    ) -> None:
        """All of it at once. `injected` says that it is mcpspy's own, and no part of what is played."""
        if status in WITHOUT_BODY:
            body = b""
        else:
            fields = [*fields, ("Content-Length", str(len(body)))]
        raw = head(status, fields, self._keeps, reason)
        connection = self._connection
        now_ns = connection.serving.now_ns()
        if connection.is_head_only:
            body = b""
        records = [self._opened(now_ns, raw, "body", injected=injected)]
        if body:
            records.append(_frame(self._stream, now_ns, body))
        records.append(Close(at_ns=now_ns, stream=self._stream, by=MCPSPY if injected else SERVER, how="eof"))
        self.is_open = False
        connection.say(records, raw + body)
        connection.answered(keeps=self._keeps)

    def begin(
        self,
        status: int,
        fields: Fields,
        events: Sequence[bytes] = (),
        *,
        framing: str = "sse",
        reason: str | None = None,
    ) -> None:
        """The head of a stream of events, and what comes with it; `framing` is another for what is no such stream."""
        self._is_chunked = self._connection.knows_chunks
        self._keeps = self._keeps and self._is_chunked
        coding = [("Transfer-Encoding", "chunked")] if self._is_chunked else []
        raw = head(status, [*fields, *coding], self._keeps, reason)
        records = [self._opened(self._connection.serving.now_ns(), raw, framing)]
        data = [raw]
        self._add(events, records, data)
        self._connection.say(records, b"".join(data))

    def tell(self, *events: bytes) -> None:
        """Events, each in a chunk of its own."""
        records: list[Record] = []
        data: list[bytes] = []
        self._add(events, records, data)
        self._connection.say(records, b"".join(data))

    def keep_alive(self, now_ns: int, silent_ns: int) -> None:
        """Say a comment on a stream that was silent so long: clients give up what they hear nothing of."""
        if self.has_begun and self.is_open and not self.is_full and now_ns - self._told_ns >= silent_ns:
            self.tell(COMMENT)

    def end(self, *events: bytes) -> None:
        """The end of a stream, and the events before it."""
        records: list[Record] = []
        data: list[bytes] = []
        self._add(events, records, data)
        if self._is_chunked:
            data.append(b"0\r\n\r\n")
        records.append(Close(at_ns=self._connection.serving.now_ns(), stream=self._stream, by=SERVER, how="eof"))
        self.is_open = False
        self._connection.say(records, b"".join(data))
        self._connection.answered(keeps=self._keeps)

    def break_off(self) -> None:
        """Close the connection without an end, as the process behind it has gone."""
        self._connection.abort(SERVER)

    def cut_off(self) -> None:
        """Close the connection without an end, once the client has taken what was said."""
        self._connection.cut(SERVER)

    def lost(self, by: str, how: str) -> list[Record]:
        """The connection is gone, ended by `by`: what is to be recorded of this."""
        self.is_open = False
        now_ns = self._connection.serving.now_ns()
        if self.has_begun:
            broken = how if how != "eof" else "broken" if by == CLIENT else "abort"
            return [Close(at_ns=now_ns, stream=self._stream, by=by, how=broken)]
        text = f"{by} closed the connection before the response came"
        return [note(now_ns, "left", text, self._connection.number, self.number, by=by)]

    def _opened(self, now_ns: int, raw: bytes, framing: str, *, injected: bool = False) -> Record:
        self.has_begun = True
        self._stream = self._connection.serving.numbers.stream()
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
        now_ns = self._told_ns = self._connection.serving.now_ns()
        for event in events:
            if self._is_chunked:
                records.append(_frame(self._stream, now_ns, event, chunks=(len(event),)))
                data.append(b"%x\r\n%b\r\n" % (len(event), event))
            else:
                records.append(_frame(self._stream, now_ns, event))
                data.append(event)


def _frame(stream: int, now_ns: int, data: bytes, **facts: Any) -> Frame:
    """What a live server said is its own, everything else is injected."""
    if not isinstance(data, LiveServerBytes):
        facts["injected"] = True
    return Frame(stream, now_ns, now_ns, data, **facts)


def head(status: int, fields: Fields, keeps: bool, reason: str | None = None) -> bytes:  # noqa: FBT001 - what a head says last
    """The head of a response; `keeps` says that the connection goes on. Without a `reason` it has the usual one."""
    if reason is None:
        reason = HTTPStatus(status).phrase if status in _KNOWN else ""
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in fields)]
    if not keeps:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def _nothing() -> None:
    """What happens when nobody waits for it."""

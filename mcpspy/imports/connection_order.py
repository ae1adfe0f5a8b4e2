"""Records of several connections without times: those of each in, one list out, in an order that their messages allow.

An answer comes after what it answers, also on another connection; a session, an endpoint and an event are named before they are used:

    connection 1   GET /sse, endpoint /m?id=51               result 0                     result 1
    connection 2               POST /m?id=51 initialize 0, 202         POST tools/list 1, 202

What a server sends on its own, such as progress, comes after what is before it on its stream, and shortly before the answer that
follows there. Of all that may come next, the server's goes first. So a client that waits for its answers is read as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Final, TypeAlias

import msgspec

from ..records import CLIENT, Close, Frame, Note, Open, Record
from ..transcript.http.scopes import endpoint, path_and_query
from ..wire.http_fields import first_value
from ..wire.sse import SseEvents, parse

_Key: TypeAlias = tuple[str, bytes]

_SERVERS: Final = 0
_CLIENTS: Final = 1
_LAST: Final = 2
"""The order among connections that may go on. Last is what nothing shows a place for, and the end of a session."""

_STREAM: Final[_Key] = ("stream", b"")
"""The stream that a GET without a session opens: over HTTP+SSE, requests are answered there."""

_NO_RAW: Final = msgspec.Raw(b"")


class _OrderedMeta(msgspec.Struct):
    token: msgspec.Raw = msgspec.field(name="progressToken", default=_NO_RAW)


class _OrderedParams(msgspec.Struct):
    meta: _OrderedMeta | None = msgspec.field(name="_meta", default=None)
    token: msgspec.Raw = msgspec.field(name="progressToken", default=_NO_RAW)


class _OrderedMessage(msgspec.Struct):
    """The members of a message on which the order depends."""

    id: msgspec.Raw = _NO_RAW
    method: str | None = None
    params: _OrderedParams | None = None


_decode = msgspec.json.Decoder(list[_OrderedMessage] | _OrderedMessage).decode


class _Step:
    """A record, with what has to come before it, and what may come after it. An answer takes one of the requests with its id."""

    __slots__ = ("gives", "is_servers", "needs", "record", "stream", "takes")

    def __init__(self, record: Record, *, is_servers: bool) -> None:
        self.record = record
        self.is_servers = is_servers
        self.stream: int | None = getattr(record, "stream", None)
        self.needs: list[_Key] = []
        self.takes: list[_Key] = []
        self.gives: list[_Key] = []


def in_order(connections: Iterable[Sequence[Record]]) -> list[Record]:
    """Return the records of all connections, their streams and transactions numbered anew."""
    return _numbered(_Merge([_steps(records) for records in connections]).records())


class _Merge:
    """The connections that may go on, by their order, and those that wait, by what they wait for."""

    def __init__(self, connections: list[list[_Step]]) -> None:
        self._connections = connections
        self._places = [0] * len(connections)
        self._given: dict[_Key, int] = {}
        self._known = {key for steps in connections for step in steps for key in step.gives}
        self._ready: list[tuple[int, int]] = []
        self._waiting: dict[_Key, list[int]] = {}
        self._waits: dict[int, _Key] = {}

    def records(self) -> Iterator[Record]:
        for connection in range(len(self._connections)):
            self._look(connection)
        while self._ready or self._waits:
            if self._ready:
                _, connection = heappop(self._ready)
            else:  # what it waits for is not in the file, or comes later on a connection that waits too
                connection = min(self._waits)
                del self._waits[connection]
            yield from self._go_on(connection)
            self._look(connection)

    def _go_on(self, connection: int) -> Iterator[Record]:
        """Yield the next record of a connection, and those of the same stream that need nothing."""
        steps = self._connections[connection]
        stream = steps[self._places[connection]].stream
        while True:
            step = steps[self._places[connection]]
            self._places[connection] += 1
            for key in step.takes:
                self._given[key] = self._given.get(key, 0) - 1
            for key in step.gives:
                self._given[key] = self._given.get(key, 0) + 1
                for other in self._waiting.pop(key, ()):
                    if self._waits.get(other) == key:
                        del self._waits[other]
                        self._look(other)
            yield step.record
            if self._places[connection] == len(steps):
                return
            following = steps[self._places[connection]]
            if following.stream != stream or following.needs or following.takes or following.gives:
                return

    def _look(self, connection: int) -> None:
        """Find out whether a connection may go on, and what it waits for."""
        if self._places[connection] == len(self._connections[connection]):
            return
        step = self._connections[connection][self._places[connection]]
        for key in (*step.takes, *step.needs):
            if key in self._known and self._given.get(key, 0) < 1:
                self._waits[connection] = key
                self._waiting.setdefault(key, []).append(connection)
                return
        record = step.record
        is_loose = step.is_servers and isinstance(record, Frame) and not (step.takes or step.needs or step.gives)
        is_loose = is_loose or (isinstance(record, Open) and record.head.startswith(b"DELETE "))
        heappush(self._ready, (_LAST if is_loose else _SERVERS if step.is_servers else _CLIENTS, connection))


def _steps(records: Sequence[Record]) -> list[_Step]:
    """Return the steps of one connection."""
    senders: dict[int, Open] = {}
    requests: dict[int, bytes] = {}
    steps = []
    for record in records:
        if isinstance(record, Open):
            senders[record.stream] = record
            requests.setdefault(record.transaction, record.head)
        opened = senders.get(getattr(record, "stream", -1))
        step = _Step(record, is_servers=opened is not None and opened.sender != CLIENT)
        steps.append(step)
        if isinstance(record, Open):
            _add_head(step, record, requests[record.transaction])
        elif isinstance(record, Frame) and opened is not None:
            _add_messages(step, record, opened)
    following: list[_Key] = []  # what the next answer on the connection needs
    for step in reversed(steps):
        if step.takes:
            following = step.takes
        elif step.is_servers and isinstance(step.record, Frame) and b'"method"' in step.record.data:
            step.needs += following
    return steps


def _add_head(step: _Step, record: Open, asked: bytes) -> None:
    """Note what a head needs or gives; `asked` is the head of the request that a response answers."""
    lowered = record.head.lower()
    session = first_value(record.head, lowered, b"mcp-session-id")
    if record.sender != CLIENT:
        step.gives += [("session", session)] if session else []
        if asked.startswith(b"GET ") and record.framing == SseEvents.name and b"\r\nmcp-session-id:" not in asked.lower():
            step.gives.append(_STREAM)
        return
    step.needs += [("session", session)] if session else []
    step.needs.append(("endpoint", record.head.partition(b" ")[2].partition(b" ")[0]))
    if (event := first_value(record.head, lowered, b"last-event-id")) is not None:
        step.needs.append(("event", event))
    if record.head.startswith(b"POST ") and not session:
        step.needs.append(_STREAM)


def _add_messages(step: _Step, record: Frame, opened: Open) -> None:
    data = record.data
    if opened.framing == SseEvents.name:
        event = parse(data)
        data = event.data or b""
        if event.id:
            step.gives.append(("event", event.id.encode()))
        if event.type == "endpoint":
            step.gives.append(("endpoint", path_and_query(endpoint(data).uri).encode()))
    own, other = ("client", "server") if opened.sender == CLIENT else ("server", "client")
    for message in _messages(data):
        id = bytes(message.id)
        token = b"" if message.params is None else bytes(message.params.token)
        if message.method is None:
            step.takes += [(other, id)] if id else []
        elif id:
            step.gives.append((own, id))
        if message.params is not None and message.params.meta is not None and (begun := bytes(message.params.meta.token)):
            step.gives.append((f"{own}'s progress", begun))
        if token:
            step.needs.append((f"{other}'s progress", token))


def _messages(data: bytes) -> list[_OrderedMessage]:
    if b'"jsonrpc"' not in data:
        return []
    try:
        messages = _decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return []
    return messages if isinstance(messages, list) else [messages]


def _numbered(records: Iterable[Record]) -> list[Record]:
    """Number streams and transactions in the order in which they come now."""
    streams: dict[int, int] = {}
    transactions: dict[int, int] = {}
    made = []
    for record in records:
        if isinstance(record, Open | Frame | Close):
            record.stream = streams.setdefault(record.stream, len(streams))
        if isinstance(record, Open):
            record.transaction = transactions.setdefault(record.transaction, len(transactions) + 1)
        elif isinstance(record, Note) and "transaction" in record.extra:
            number = record.extra["transaction"]
            record.extra["transaction"] = transactions.setdefault(number, len(transactions) + 1)
        made.append(record)
    return made

"""Connections of an HTTP scene, from byte loggers and from a capture, in one form to compare.

Cuts connections into messages by itself, with nothing of mcpspy's: it is the referee. It takes well-formed HTTP/1.1 with
Content-Length or chunks, as real servers send it, and bodies that were cut short.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mcpspy.records import CLIENT, SERVER, Close, Frame, Note, Open, Record

if TYPE_CHECKING:
    from mcpspy.records import Side

MARK = b"\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A request or a response: its head and its body, without chunk sizes. `is_whole`: its end came too."""

    head: bytes
    body: bytes
    is_whole: bool

    def __str__(self) -> str:
        first, rest = self.head.partition(b"\r\n")[::2]
        ends = "" if self.is_whole else ", cut short"
        return f"{first.decode('latin-1')} ({zlib.crc32(rest):08x}; {len(self.body)} bytes, {zlib.crc32(self.body):08x}{ends})"


@dataclass(slots=True, kw_only=True)
class Connection:
    """Requests and responses on one connection, in order.

    `client_left`: it was the client that ended it. `given_up`: how many responses it left before, which a capture has to say.
    """

    requests: list[Message] = field(default_factory=list)
    responses: list[Message] = field(default_factory=list)
    client_left: bool = False
    given_up: int = 0

    def __str__(self) -> str:
        return " | ".join([*map(str, self.requests), *map(str, self.responses), *(["the client left"] * self.client_left)])


def logged(folder: Path) -> list[Connection]:
    """Read the connections of a TCP logger that carried anything."""
    kept = [(path, path.with_suffix(".server"), path.with_suffix(".ends")) for path in sorted(folder.glob("*.client"))]
    connections = [
        Connection(
            requests=cut(sent.read_bytes()),
            responses=cut(got.read_bytes()),
            client_left=ends.read_bytes().startswith(b"client "),
        )
        for sent, got, ends in kept
    ]
    return [connection for connection in connections if connection.requests or connection.responses]


def cut(data: bytes) -> list[Message]:
    """Cut one direction of a connection into messages."""
    messages = []
    while data:
        head, mark, data = data.partition(MARK)
        body, is_whole, data = _body(head.lower(), data)
        messages.append(Message(head=head + mark, body=body, is_whole=bool(mark) and is_whole))
    return messages


def _body(fields: bytes, data: bytes) -> tuple[bytes, bool, bytes]:
    """Return the body that these lower-case fields announce, whether all of it is there, and the bytes after it."""
    if b"\r\ntransfer-encoding: chunked" in fields:
        return _dechunked(data)
    length = int(fields.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0] or 0)
    return data[:length], len(data) >= length, data[length:]


def _dechunked(data: bytes) -> tuple[bytes, bool, bytes]:
    body = b""
    while data:
        size, mark, data = data.partition(b"\r\n")
        length = int(size or b"0", 16)
        if mark and not length:
            assert data.startswith(b"\r\n"), "a server with trailers"
            return body, True, data[2:]
        body, data = body + data[:length], data[length + 2 :]
    return body, False, b""


def recorded(records: Sequence[Record], end: Side) -> list[Connection]:
    """Read the connections of a capture, at the client's end or at the server's.

    A stream is there as it came at its sender's end, and as it was sent on at the other.
    """
    opened = {record.stream: record for record in records if isinstance(record, Open)}
    whole = {record.stream for record in records if isinstance(record, Close) and record.how == "eof"}
    bodies: dict[int, bytes] = defaultdict(bytes)
    connections: dict[int, Connection] = defaultdict(Connection)
    for record in records:
        if isinstance(record, Frame):
            is_sent_on = record.forwarded is not None and opened[record.stream].sender != end
            bodies[record.stream] += (record.forwarded or b"") if is_sent_on else record.data
    for record in records:
        match record:
            case Open():
                head = record.head if record.forwarded is None or record.sender == end else record.forwarded
                message = Message(head=head, body=bodies[record.stream], is_whole=record.stream in whole)
                connection = connections[record.connection]
                (connection.requests if record.sender == CLIENT else connection.responses).append(message)
            case Note(topic="left", extra={"by": "client", "connection": number}):
                connections[number].client_left = True
                connections[number].given_up += 1
            case Close(by="client") if opened[record.stream].sender == SERVER:
                connections[opened[record.stream].connection].client_left = True
    return list(connections.values())


def opening(records: Sequence[Record]) -> str:
    """Return the method of the first message that a client sent."""
    connections = recorded(records, CLIENT)
    method: str = next(
        json.loads(sent.body)["method"] for connection in connections for sent in connection.requests if sent.body
    )
    return method


def disagreements(folder: Path, records: Sequence[Record]) -> list[str]:
    """List the connections on which a capture and a logger disagree: FOLDER/outer and FOLDER/inner are on either side of mcpspy.

    Each of these connections agrees with none at the other place. If there is none of them, each request reached the server once,
    and each response reached the client, unless the client had left.
    """
    outer, inner = logged(folder / "outer"), logged(folder / "inner")
    client_end, server_end = recorded(records, CLIENT), recorded(records, SERVER)
    assert outer, "nothing passed"
    lonely = (
        *unmatched(outer, client_end, _agree_at_the_client, "the client's wire", "the capture, at the client's end"),
        *unmatched(server_end, inner, _agree_at_the_server, "the capture, at the server's end", "the server's wire"),
    )
    return [f"{place}: {connection}" for place, connection in lonely]


def _agree_at_the_client(wire: Connection, capture: Connection) -> bool:
    """Check that all recorded responses reached the client, unless it had left; and that it had left if the capture says so."""
    knows_better = capture.client_left and not wire.client_left
    return not knows_better and _agree(wire, capture, client_left=wire.client_left)


def _agree_at_the_server(capture: Connection, wire: Connection) -> bool:
    """Check that all that the server sent was recorded, except for responses that the capture counts as given up."""
    missing = len(wire.responses) - len(capture.responses)
    return missing <= capture.given_up and _agree(capture, wire, client_left=capture.client_left)


def _agree(nearer: Connection, farther: Connection, *, client_left: bool) -> bool:
    """Check that two places saw the same; if the client left, the place nearer to it may have fewer responses."""
    if nearer.requests != farther.requests:
        return False
    return nearer.responses == farther.responses or (client_left and _is_beginning(nearer.responses, farther.responses))


def _is_beginning(some: Sequence[Message], more: Sequence[Message]) -> bool:
    """Check that one place saw the beginning of what the other saw."""
    if list(more[: len(some)]) == list(some):
        return True
    last, whole = some[-1], more[len(some) - 1] if len(some) == len(more) else None
    return (
        whole is not None
        and some[:-1] == more[:-1]
        and not last.is_whole
        and (whole.head + whole.body).startswith(last.head + last.body)
    )


def unmatched(
    left: Sequence[Connection],
    right: Sequence[Connection],
    agree: Callable[[Connection, Connection], bool],
    *places: str,
) -> Iterable[tuple[str, Connection]]:
    """Pair as many connections as agree, and yield the others with the name of their place."""
    partner: dict[int, int] = {}

    def paired(place: int, tried: set[int]) -> bool:
        for other in range(len(right)):
            if other not in tried and agree(left[place], right[other]):
                tried.add(other)
                if other not in partner or paired(partner[other], tried):
                    partner[other] = place
                    return True
        return False

    alone = [left[place] for place in range(len(left)) if not paired(place, set())]
    yield from ((places[0], place) for place in alone)
    yield from ((places[1], right[other]) for other in range(len(right)) if other not in partner)

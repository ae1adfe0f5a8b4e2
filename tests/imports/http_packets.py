"""Packets of what a tap captured over HTTP: the segments between the tap and the server that would have been captured beside it.

What mcpspy itself answered went to the client alone: of a capture that has such an answer, the packets are those to the client.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from mcpspy.records import CLIENT, CLIENT_PROCESSES, Close, Frame, Header, Note, Open, Record, connection_ports
from tests.imports.packet_files import ACK, FIN, PUSH, RST, SYN, Sent, pcapng

SEGMENT_BYTES = 1448
HOST = re.compile(rb"(\r\nhost: ?)[^\r]*", re.IGNORECASE)
LENGTH = re.compile(rb"\r\ncontent-length: ?(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: ?chunked", re.IGNORECASE)
OTHER = {"client": "server", "server": "client"}


def packets_of(records: Sequence[Record]) -> bytes:
    """Return a pcapng of the traffic of which a tap made these records."""
    traffic = _Traffic(records)
    for record in records:
        traffic.add(record)
    segments = sorted((sent for connection in traffic.connections.values() for sent in connection.segments), key=_time_ns)
    return pcapng(segments)


def _time_ns(sent: Sent) -> int:
    assert sent.at_ns is not None
    return sent.at_ns


@dataclass
class _Connection:
    """The segments of one connection, from the `port` of its client."""

    port: int
    segments: list[Sent] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=lambda: {"client": 0, "server": 0})
    ended: dict[str, None] = field(default_factory=dict)

    def begin(self, at_ns: int) -> None:
        for side, flags in (("client", SYN), ("server", SYN | ACK)):
            self.segments.append(Sent(side, -1, b"", flags, 0, at_ns, self.port))

    def say(self, side: str, data: bytes, at_ns: int, first_ns: int | None = None) -> None:
        """Send bytes: the first of them at `first_ns`, the last at `at_ns`."""
        begun = len(data) > 1 and first_ns is not None and first_ns < at_ns
        cuts = [0, *range(1 if begun else SEGMENT_BYTES, len(data), SEGMENT_BYTES), len(data)]
        for begin, end in pairwise(cuts):
            if begin < end:
                due_ns = first_ns if begun and not begin else at_ns
                place, other = self.sent[side], self.sent[OTHER[side]]
                self.segments.append(Sent(side, place, data[begin:end], PUSH | ACK, other, due_ns, self.port))
                self.sent[side] += end - begin

    def finish(self, side: str, how: str, at_ns: int) -> None:
        """End one direction; by a reset both."""
        if side not in self.ended or how == "reset":
            flags = RST if how == "reset" else FIN | ACK
            place, other = self.sent[side], self.sent[OTHER[side]]
            self.segments.append(Sent(side, place, b"", flags, other, at_ns, self.port))
            self.ended |= {side: None} if how != "reset" else {"client": None, "server": None}


@dataclass
class _Stream:
    """A request or a response, and what of its body was said."""

    connection: _Connection
    sender: str
    is_chunked: bool
    is_until_close: bool
    has_sizes: bool
    left: int = 0
    """So many bytes of the last chunk are still to come."""

    def framed(self, data: bytes, sizes: Iterable[int]) -> bytes:
        """Return the bytes of a frame as they are on the wire, in chunks of these sizes."""
        if not self.is_chunked:
            return data
        if not self.has_sizes:
            return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        pieces, at, due = [], 0, list(sizes)
        if self.left:
            due.pop(0)
        while at < len(data):
            if not self.left:
                self.left = due.pop(0)
                pieces.append(b"%x\r\n" % self.left)
            part = data[at : at + self.left]
            pieces.append(part)
            at, self.left = at + len(part), self.left - len(part)
            if not self.left:
                pieces.append(b"\r\n")
        return b"".join(pieces)


class _Traffic:
    """The connections of a capture, filled by its records."""

    def __init__(self, records: Sequence[Record]) -> None:
        header = records[0]
        assert isinstance(header, Header)
        self.begin_ns = header.wall_ns
        self.is_of_client = any(isinstance(record, Open) and record.injected for record in records)
        url = str(header.tapped.get("listen" if self.is_of_client else "url"))
        self.host = url.partition("://")[2].partition("/")[0].encode()
        self.connections: dict[int, _Connection] = {}
        self.ports: dict[int, int] = {}
        self.streams: dict[int, _Stream] = {}
        self.transactions: dict[int, _Connection] = {}
        self.bodies: dict[int, list[Frame]] = {}
        self.closes: dict[int, Close] = {}
        for record in records:
            if isinstance(record, Frame):
                self.bodies.setdefault(record.stream, []).append(record)
            elif isinstance(record, Close):
                self.closes[record.stream] = record
            elif isinstance(record, Note) and record.topic == CLIENT_PROCESSES:
                self.ports |= connection_ports(record)

    def add(self, record: Record) -> None:
        """Send what this record has."""
        at_ns = self.begin_ns + getattr(record, "at_ns", 0)
        if isinstance(record, Open):
            self._open(record, at_ns)
        elif isinstance(record, Frame):
            stream = self.streams[record.stream]
            data = stream.framed(self._passed(record, stream.sender), record.chunks)
            stream.connection.say(stream.sender, data, at_ns, self.begin_ns + record.first_ns)
        elif isinstance(record, Close):
            self._close(record, at_ns)
        elif isinstance(record, Note) and record.topic in ("left", "half-closed", "answer-refused"):
            connection = self.transactions[record.extra["transaction"]]
            by = record.extra["by"]
            connection.finish(by, "reset" if record.topic == "answer-refused" else "eof", at_ns)
            if record.topic == "left":
                connection.finish(OTHER[by], "eof", at_ns)

    def _passed(self, record: Frame, sender: str) -> bytes:
        """Return what was on the wire that is looked at."""
        is_before = (sender == CLIENT) is self.is_of_client
        return record.data if is_before or record.forwarded is None else record.forwarded

    def _open(self, record: Open, at_ns: int) -> None:
        connection = self.connections.get(record.connection)
        if connection is None or connection.ended:
            port = self.ports.get(record.connection, 40_000 + record.connection)
            known = connection.segments if connection is not None else []
            connection = self.connections[record.connection] = _Connection(port, known)
            connection.begin(at_ns)
        self.transactions[record.transaction] = connection
        head = self._head(record)
        frames = self.bodies.get(record.stream, [])
        is_chunked = CHUNKED.search(head) is not None
        is_final = record.sender != CLIENT and not head.startswith(b"HTTP/1.1 1")
        has_body = bool(frames) or record.framing == "sse"
        is_until_close = is_final and not is_chunked and LENGTH.search(head) is None and has_body
        has_sizes = is_chunked and not any(frame.redacted or frame.forwarded for frame in frames)
        self.streams[record.stream] = _Stream(connection, record.sender, is_chunked, is_until_close, has_sizes)
        connection.say(record.sender, head, at_ns)

    def _head(self, record: Open) -> bytes:
        """Return a head as the server, or the client, saw it; with the length that its body has here."""
        is_before = (record.sender == CLIENT) is self.is_of_client
        head = record.head if is_before or record.forwarded is None else record.forwarded
        if record.sender == CLIENT:
            head = HOST.sub(rb"\g<1>" + self.host, head)
        frames = self.bodies.get(record.stream, [])
        size = sum(len(self._passed(frame, record.sender)) for frame in frames)
        close = self.closes.get(record.stream)
        is_whole = close is not None and close.how == "eof" and "missing_bytes" not in close.extra
        if frames and is_whole and (length := LENGTH.search(head)) is not None and int(length[1]) != size:
            return head[: length.start(1)] + b"%d" % size + head[length.end(1) :]
        return head

    def _close(self, record: Close, at_ns: int) -> None:
        stream = self.streams[record.stream]
        if record.by == stream.sender and record.how == "eof":
            if stream.is_chunked:
                trailers = str(record.extra.get("trailers", "")).encode("latin-1")
                stream.connection.say(stream.sender, b"0\r\n%b\r\n" % trailers, at_ns)
            elif stream.is_until_close:
                stream.connection.finish(stream.sender, "eof", at_ns)
        elif record.by != "mcpspy":
            stream.connection.finish(record.by, record.how, at_ns)
            if record.how != "reset":
                stream.connection.finish(OTHER[record.by], "eof", at_ns)

"""Packet captures: bytes of a pcap or pcapng in, records of one session for each server out.

Connections are put together from segments, and read by `http_streams`. A server is an address and a port; one of which
nothing looks like MCP or a call of a model gets no capture.

Segments come out of order, twice, and overlapping. Bytes that came first count, as most systems take them. A hole is declared
when the other side acknowledged what comes after it and went on, when too much waits behind it, or at the end: then the file
lost it.

    next = 100:  [100..110] → out; [130..140] waits; [105..130] → out 110..130, then 130..140
"""

from __future__ import annotations

from heapq import heappop, heappush
from ipaddress import ip_address
from typing import Final

import msgspec

from ..records import CLIENT, CLIENT_PROCESSES, OTHER_SIDE, SERVER, End, Frame, Gap, Note, Record, Side
from .http_streams import Counters, HttpConnection, StreamMakerClass
from .packets import ACK, FIN, RST, SYN, PacketReader, TcpSegment, ends_of
from .session import MAX_NS, NOTE_TOPIC
from .source import EXACT, MISSING, SessionRecord, Source, header

MAX_HELD_RECORDS: Final = 20_000
MAX_HELD_BYTES: Final = 1 << 24
"""So much is kept of a server until something looks like MCP."""

LOOK_NS: Final = 1_000_000_000
"""So often is looked for what waits for its end."""

MAX_CONNECTIONS: Final = 10_000
"""The most connections that are open at the same time; more than this end the one that was quiet longest."""

Endpoint = tuple[bytes, int]

_OTHER: Final[dict[str, str]] = {
    "TLS": "{count} of TLS: record what it carries with mcpspy proxy, or follow its HTTP stream in Wireshark",
    "HTTP/2": "{count} of HTTP/2, which mcpspy does not read",
    "no HTTP": "{count} of other protocols",
    "one side": "{count} with the packets of one side alone: capture both directions",
}

MAX_WAITING_BYTES: Final = 1 << 22
MAX_WAITING: Final = 4096
"""So much waits for a segment that is missing; then it is lost."""

REORDERED_NS: Final = 100_000_000
"""A file may have a segment so much later than its acknowledgement: packets of several queues and processors are not in order."""

_WRAP: Final = 1 << 32


class _Server:
    """The connections to one address and port, and the records that wait until it is known to speak MCP."""

    __slots__ = (
        "begin_ns", "counters", "endpoint", "held", "held_bytes", "is_begun", "is_dropped", "is_heard", "last_ns", "model", "session",
    )  # fmt: skip

    def __init__(self, endpoint: Endpoint, begin_ns: int, *, is_begun: bool) -> None:
        self.endpoint = endpoint
        self.is_begun = is_begun  # the file has the beginning of its first connection
        self.begin_ns = begin_ns
        self.last_ns = 0
        self.counters = Counters()
        self.held: list[Record] = []
        self.held_bytes = 0
        self.session: int | None = None
        self.is_dropped = False
        self.is_heard = False
        self.model: HttpConnection | None = None
        """A connection that has a call of a model, while nothing looks like MCP."""


class _Connection(msgspec.Struct):
    """A connection: its two directions, and what is read on it."""

    server: _Server
    http: HttpConnection
    client: Endpoint
    to_server: TcpDirection
    to_client: TcpDirection
    ended_by: Side | None = None
    said: set[Side] = set()
    """The sides whose bytes are in the file."""


class _Route(msgspec.Struct, frozen=True):
    """The connection to which segments from one end to the other belong, their sender, and both directions as it sees them."""

    connection: _Connection
    side: Side
    own: TcpDirection
    other: TcpDirection

    def wants_acknowledgement(self) -> bool:
        """Return whether anything depends on what the sender has received. Mostly not, and every other packet only says that."""
        return bool(self.other.waiting) or self.connection.http.is_answered_late


class PacketImporter:
    """Records from the bytes of a packet capture, cut anywhere. `feed` and `close` return them after the number of their session."""

    __slots__ = (
        "_connections", "_look_ns", "_make", "_others", "_packets", "_routes", "_servers", "_sessions", "_source", "_unsettled",
    )  # fmt: skip

    def __init__(self, source: Source, make: StreamMakerClass) -> None:
        self._source = source
        self._make = make
        self._packets = PacketReader()
        self._connections: dict[tuple[Endpoint, Endpoint], _Connection] = {}
        self._routes: dict[bytes, _Route] = {}
        self._servers: dict[Endpoint, _Server] = {}
        self._sessions = 0
        self._others: dict[str, int] = {}
        self._unsettled: dict[int, _Connection] = {}  # by identity, those on which something may wait for its end
        self._look_ns = 0

    def feed(self, data: bytes) -> list[SessionRecord]:
        records: list[SessionRecord] = []
        routes = self._routes
        for segment in self._packets.feed(data):
            if segment.at_ns >= self._look_ns:
                self._look(segment.at_ns, records)
            route = routes.get(segment.ends)
            if route is None or segment.payload or segment.flags != ACK or segment.missing or route.wants_acknowledgement():
                self._segment(segment, route, records)
        return records

    def close(self) -> list[SessionRecord]:
        self._packets.close()
        records: list[SessionRecord] = []
        for connection in list(self._connections.values()):
            self._end(connection, 0, None, "", records)
        self._connections.clear()
        texts = self.passed_over()
        for server in self._servers.values():
            if server.model is not None:
                self._begin(server, server.model, records)
            if server.session is not None:
                lacks = [
                    self._packets.broken_off,
                    "" if server.is_heard else "the file does not have the packets of the server",
                ]
                for why in filter(None, lacks):
                    gap = Gap(at_ns=server.last_ns, since_ns=server.last_ns, frames=1, bytes=0, why=why)
                    records.append((server.session, gap))
                records += [(server.session, Note(at_ns=server.last_ns, topic=NOTE_TOPIC, text=text)) for text in texts]
                end = End(at_ns=server.last_ns, bytes=0, frames=0, why="end of the packet capture")
                records.append((server.session, end))
        return records

    def _look(self, at_ns: int, records: list[SessionRecord]) -> None:
        """Record what has waited too long for its end."""
        self._look_ns = at_ns + LOOK_NS
        for key, connection in list(self._unsettled.items()):
            server = connection.server
            partials = connection.http.overdue(max(server.last_ns, at_ns - server.begin_ns))
            if partials:
                self._keep(connection, partials, records)
            elif partials is None:
                del self._unsettled[key]

    def passed_over(self) -> list[str]:
        """Say what the file has that is not read."""
        packets = (f"{count} packet{'s' * (count > 1)}: {why}" for why, count in self._packets.counts.items())
        connections = (
            _OTHER[why].format(count=f"{count} connection{'s' * (count > 1)}") for why, count in self._others.items()
        )
        return [f"not read: {text}" for text in (*packets, *connections)]

    def _segment(self, segment: TcpSegment, route: _Route | None, records: list[SessionRecord]) -> None:
        flags, payload = segment.flags, segment.payload
        if route is None or flags & SYN:
            self._connect(segment, records)
            route = self._routes.get(segment.ends)
            if route is None:
                return
        connection, side, own, other = route.connection, route.side, route.own, route.other
        http = connection.http
        if http.is_answered_late and side == CLIENT and (flags & RST or other.is_acknowledged(segment.acknowledged)):
            made = http.take(self._now_ns(connection, segment.at_ns), is_taken=not flags & RST)
            self._keep(connection, made, records)
        if (
            other.waiting
            and flags & ACK
            and (lost := other.acknowledge(segment.at_ns, segment.acknowledged, goes_on=bool(payload)))
        ):
            self._read(connection, OTHER_SIDE[side], lost, records)
        if flags & SYN:
            own.begin((segment.sequence + 1) % (1 << 32))
        elif segment.missing:
            stretches = own.feed(segment.at_ns, segment.frame, segment.sequence, payload, segment.missing)
            self._read(connection, side, stretches, records)
        elif payload:
            self._read(connection, side, own.feed(segment.at_ns, segment.frame, segment.sequence, payload), records)
        if flags & (FIN | RST):
            self._finish(connection, segment, side, records)

    def _connect(self, segment: TcpSegment, records: list[SessionRecord]) -> None:
        """Take note of a new connection if a segment begins one, or has the first bytes that are in the file."""
        source, target = segment.source, segment.target
        known = self._connections.get((source, target)) or self._connections.get((target, source))
        is_start = segment.flags & (SYN | ACK) == SYN
        if known is not None and not (is_start and known.to_server.is_begun and known.ended_by is not None):
            return
        if known is None and not segment.payload and not segment.flags & SYN:
            return
        is_answer = segment.flags & (SYN | ACK) == SYN | ACK or (
            not is_start and (segment.payload.startswith(b"HTTP/1.") or source in self._servers)
        )
        client, server = (target, source) if is_answer else (source, target)
        kept = self._servers.get(server)
        if kept is None:
            kept = self._servers[server] = _Server(server, segment.at_ns, is_begun=bool(segment.flags & SYN))
        kept.counters.connection += 1
        http = HttpConnection(kept.counters.connection, kept.counters, self._make, is_begun=bool(segment.flags & SYN))
        self._connections.pop((server, client), None)
        self._connections.pop((client, server), None)
        ports = Note(at_ns=kept.last_ns, topic=CLIENT_PROCESSES, text="", extra={"ports": [[http.number, client[1]]]})
        self._hold(kept, [ports], records)
        to_server, to_client = TcpDirection(), TcpDirection()
        made = self._connections[client, server] = _Connection(kept, http, client, to_server, to_client)
        self._routes[ends_of(server, client)] = _Route(made, SERVER, to_client, to_server)
        self._routes[ends_of(client, server)] = _Route(made, CLIENT, to_server, to_client)
        if len(self._connections) > MAX_CONNECTIONS:
            client, server = next(iter(self._connections))
            del self._connections[client, server]
            self._routes.pop(ends_of(client, server))
            self._routes.pop(ends_of(server, client), None)  # nobody but a forger connects an end to itself

    def _read(self, connection: _Connection, side: Side, stretches: list[_Stretch], records: list[SessionRecord]) -> None:
        for stretch in stretches:
            if stretch.lost:
                made = connection.http.lose(self._now_ns(connection, stretch.at_ns), stretch.lost, side)
                _name_packet(made, stretch.frame)
                self._keep(connection, made, records)
            else:
                self._take(connection, side, stretch.at_ns, stretch.frame, stretch.data, records)

    def _take(
        self, connection: _Connection, side: Side, at_ns: int, packet: int, data: bytes, records: list[SessionRecord]
    ) -> None:
        """Take the next bytes of one side, and the packet that completed them."""
        http = connection.http
        connection.said.add(side)
        connection.server.is_heard = connection.server.is_heard or side == SERVER
        made = (http.client if side == CLIENT else http.server)(self._now_ns(connection, at_ns), data)
        if made:
            _name_packet(made, packet)
            self._keep(connection, made, records)
        self._unsettled[id(connection)] = connection

    def _finish(self, connection: _Connection, segment: TcpSegment, side: Side, records: list[SessionRecord]) -> None:
        """Take a FIN or a RST. The first side that ends the connection has ended what is under way."""
        is_first = connection.ended_by is None
        by = connection.ended_by = connection.ended_by or side
        direction = connection.to_server if side == CLIENT else connection.to_client
        if rest := direction.close() if segment.flags & RST else []:
            self._read(connection, side, rest, records)
        how = "reset" if segment.flags & RST and (is_first or by == SERVER) else "eof"  # else it only says that it took no more
        if side == SERVER or segment.flags & RST:
            self._end(connection, segment.at_ns, by, how, records)
        elif is_first:
            self._keep(connection, connection.http.half_close(self._now_ns(connection, segment.at_ns)), records)

    def _now_ns(self, connection: _Connection, at_ns: int) -> int:
        """Return a time since the session began, and not before that of its last record."""
        server = connection.server
        now_ns = at_ns - server.begin_ns
        if not server.last_ns <= now_ns <= MAX_NS:
            now_ns = max(server.last_ns, min(MAX_NS, now_ns))
        server.last_ns = now_ns
        return now_ns

    def _end(self, connection: _Connection, at_ns: int, by: Side | None, how: str, records: list[SessionRecord]) -> None:
        for side, direction in ((CLIENT, connection.to_server), (SERVER, connection.to_client)):
            if rest := direction.close():
                self._read(connection, side, rest, records)
        self._unsettled.pop(id(connection), None)
        made = connection.http.end(self._now_ns(connection, at_ns), by or connection.ended_by, how or "eof")
        if made:
            self._keep(connection, made, records)
        http = connection.http
        if http.why_not in ("", "no HTTP") and (connection.said == {SERVER} or (http.why_not and len(connection.said) == 1)):
            http.why_not = "one side"
        if http.why_not and not http.is_mcp:
            self._others[http.why_not] = self._others.get(http.why_not, 0) + 1
            http.why_not = ""
            connection.said.clear()

    def _keep(self, connection: _Connection, made: list[Record], records: list[SessionRecord]) -> None:
        """Return records, or hold them until their server is known to speak MCP."""
        server = connection.server
        if server.session is None and connection.http.is_mcp:
            self._begin(server, connection.http, records)
        elif server.session is None and connection.http.is_model:
            server.model = connection.http
        self._hold(server, made, records)

    def _begin(self, server: _Server, http: HttpConnection, records: list[SessionRecord]) -> None:
        """Begin the session of a server, and return what was held of it."""
        server.session, server.model = self._sessions, None
        self._sessions += 1
        records += [(server.session, record) for record in (self._header(server, http), *server.held)]
        server.held = []

    def _hold(self, server: _Server, made: list[Record], records: list[SessionRecord]) -> None:
        if server.session is not None:
            records += [(server.session, record) for record in made]
        elif not server.is_dropped:
            server.held += made
            server.held_bytes += sum(len(getattr(record, "data", b"")) for record in made)
            if len(server.held) <= MAX_HELD_RECORDS and server.held_bytes <= MAX_HELD_BYTES:
                return
            if server.model is not None:
                self._begin(server, server.model, records)
            else:
                server.held, server.is_dropped = [], True

    def _header(self, server: _Server, http: HttpConnection) -> Record:
        packed, port = server.endpoint
        host = str(ip_address(packed))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        name, path = http.server_named(address)
        facts = {
            "bytes": EXACT, "senders": EXACT, "times": EXACT, "ends": EXACT, "noise": EXACT, "heads": EXACT,
            "beginning": EXACT if server.is_begun else MISSING, "process": MISSING,
        }  # fmt: skip
        return header(
            self._source, server.session or 0, label=name, wall_ns=server.begin_ns, facts=facts,
            tapped={"transport": "http", "url": f"http://{name}{path}"} | ({} if http.is_mcp else {"leg": "model"}), address=address,
        )  # fmt: skip


def _name_packet(made: list[Record], packet: int) -> None:
    for record in made:
        if isinstance(record, Frame):
            record.rare["extra"] = {"packet": packet}


class _Stretch(msgspec.Struct, frozen=True, gc=False):
    """Bytes in order, with the time and the frame that completed them; or `lost` bytes that the capture does not have."""

    at_ns: int
    frame: int
    data: bytes
    lost: int = 0


class TcpDirection:
    """The bytes of one side, in order. Positions count from its first byte, without the wrap of TCP's numbers."""

    __slots__ = ("_acknowledged_ns", "_begins", "_next", "_waiting_bytes", "last_ns", "waiting")

    def __init__(self) -> None:
        self._next: int | None = None
        self._acknowledged_ns: int | None = None
        """The time at which something was acknowledged that has not come yet."""
        self.waiting: dict[int, tuple[int, int, bytes, int]] = {}
        """Segments that wait for one before them, by the position of their first byte."""
        self._begins: list[int] = []  # a heap of the positions of those that wait
        self._waiting_bytes = 0
        self.last_ns = 0

    @property
    def is_begun(self) -> bool:
        """True if the number of the next byte is known."""
        return self._next is not None

    def begin(self, sequence: int) -> None:
        """Take note of the number of the first byte."""
        self._next = sequence + _WRAP

    def feed(self, at_ns: int, frame: int, sequence: int, data: bytes, missing: int = 0) -> list[_Stretch]:
        """Take a segment with payload; `missing` bytes at its end are not in the file."""
        if self._next is None:
            self.begin(sequence)
        assert self._next is not None
        begin = self._position(sequence)
        if begin > self._next:
            self._wait(begin, at_ns, frame, data, missing)
            if self._waiting_bytes > MAX_WAITING_BYTES or len(self.waiting) > MAX_WAITING:
                return self._skip(at_ns)
            return []
        stretches = self._take(begin, at_ns, frame, data, missing)
        return [*stretches, *self._release(at_ns)] if self.waiting else stretches

    def is_acknowledged(self, acknowledged: int) -> bool:
        """Return whether the other side has received everything, by the number that it acknowledges."""
        return self._next is not None and self._position(acknowledged) >= self._next

    def acknowledge(self, at_ns: int, acknowledged: int, *, goes_on: bool = True) -> list[_Stretch]:
        """Take note of what the other side has received: what is missing before that is not in the capture."""
        stretches: list[_Stretch] = []
        while self.waiting and self._next is not None and self._next < self._position(acknowledged) > self._begins[0]:
            self._acknowledged_ns = at_ns if self._acknowledged_ns is None else self._acknowledged_ns
            if not goes_on and at_ns - self._acknowledged_ns < REORDERED_NS:
                break
            stretches += self._skip(self._acknowledged_ns)
        return stretches

    def close(self) -> list[_Stretch]:
        """Return all that waits, with the holes before it."""
        stretches: list[_Stretch] = []
        while self.waiting:
            stretches += self._skip(self.last_ns)
        return stretches

    def _position(self, sequence: int) -> int:
        """Return the position of a number of TCP's: the one that is nearest to the next byte."""
        assert self._next is not None
        distance = (sequence - self._next) % _WRAP
        return self._next + (distance if distance < _WRAP // 2 else distance - _WRAP)

    def _take(self, begin: int, at_ns: int, frame: int, data: bytes, missing: int) -> list[_Stretch]:
        assert self._next is not None
        known = self._next - begin
        stretches: list[_Stretch] = []
        self.last_ns = max(self.last_ns, at_ns)
        if known < len(data):
            stretches.append(_Stretch(at_ns, frame, data[known:] if known else data))
            self._next = begin + len(data)
        if missing and begin + len(data) + missing > self._next:
            lost = begin + len(data) + missing - self._next
            stretches.append(_Stretch(at_ns, frame, b"", lost))
            self._next += lost
        return stretches

    def _wait(self, begin: int, at_ns: int, frame: int, data: bytes, missing: int) -> None:
        known = self.waiting.get(begin)
        if known is None or len(known[2]) < len(data):
            if known is None:
                heappush(self._begins, begin)
            self._waiting_bytes += len(data) - (len(known[2]) if known else 0)
            self.waiting[begin] = (at_ns, frame, data, missing)
        self.last_ns = max(self.last_ns, at_ns)

    def _release(self, at_ns: int) -> list[_Stretch]:
        """Return what no longer waits for anything."""
        assert self._next is not None
        stretches: list[_Stretch] = []
        while self._begins and self._begins[0] <= self._next:
            begin = heappop(self._begins)
            came_ns, frame, data, missing = self.waiting.pop(begin)
            self._waiting_bytes -= len(data)
            stretches += self._take(begin, max(came_ns, at_ns), frame, data, missing)
        self._acknowledged_ns = self._acknowledged_ns if self.waiting else None
        return stretches

    def _skip(self, at_ns: int) -> list[_Stretch]:
        """Give up the bytes that are missing before the first segment that waits."""
        assert self._next is not None
        first = self._begins[0]
        lost, self._next = first - self._next, first
        return [_Stretch(at_ns, 0, b"", lost), *self._release(at_ns)]

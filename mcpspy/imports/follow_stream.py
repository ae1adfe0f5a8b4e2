"""Dumps of followed streams: a file in, records of one session for each server out.

Without times only the messages tell how connections went side by side. Who ended a connection is in no dump.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from ..records import CLIENT, CLIENT_PROCESSES, SERVER, End, Frame, Gap, Note, Record, Side
from .connection_order import in_order
from .http_streams import Counters, HttpConnection, StreamMakerClass
from .plain_http import PlainHttp, is_plain_http
from .session import NOTE_TOPIC
from .source import EXACT, MISSING, RECONSTRUCTED, SessionRecord, Source, header
from .stream_dumps import DumpPiece, StreamDump, is_stream_dump, stream_dumps
from .whole_file import WholeFileImporter

_PROTOCOLS: Final = ("tcp", "tls", "http")
_DOTS: Final = "the dump has a dot in place of each byte that is not ASCII"
_HALF: Final = "the dump has requests or answers alone: what went over other connections of the session is not in it"
_REFUSAL: Final = re.compile(rb"HTTP/1\.[01] [45]")
_RUN_OF_DOTS: Final = b".."  # a character that is not ASCII has two bytes or more
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding:[^\r]*chunked[^\r]*", re.IGNORECASE)
_CODED: Final = re.compile(rb"\r\n(?:content-encoding|content-length):[^\r]*", re.IGNORECASE)
_EVENTS: Final = re.compile(rb"\r\ncontent-type: *text/event-stream", re.IGNORECASE)


def is_followed(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is the dump of a followed stream."""
    return is_stream_dump(head) or is_plain_http(head)


class _SidedPiece(msgspec.Struct):
    """Bytes of one side on one connection."""

    connection: int
    side: Side
    data: bytes
    at_ns: int | None = None
    packet: int = 0


class FollowImporter(WholeFileImporter):
    """Records from the bytes of such a dump; each after the number of its session."""

    __slots__ = ("_make",)

    MAX_FILE_BYTES = 1 << 26  # a dump takes five times its size
    TOO_LARGE = "a dump of more than 64 MiB; import the packet capture itself"

    def __init__(self, source: Source, make: StreamMakerClass) -> None:
        super().__init__(source)
        self._make = make

    def close(self) -> list[SessionRecord]:
        if (whole := self._whole()) is None:
            return []
        data = bytes(whole)
        if is_stream_dump(data[: 1 << 20]):
            return self._dumps(stream_dumps(data))
        plain = PlainHttp(data)
        if plain.passed_over:
            self._count("a line that is no HTTP", plain.passed_over)
        pieces = [_SidedPiece(piece.connection, CLIENT if piece.is_client else SERVER, piece.data) for piece in plain.pieces]
        return self._session(0, pieces, [], "plain")

    def _dumps(self, dumps: list[StreamDump]) -> list[SessionRecord]:
        kept = [dump for dump in dumps if dump.protocol in _PROTOCOLS]
        if len(kept) < len(dumps):
            self._count("a followed stream of another protocol than TCP, TLS or HTTP", len(dumps) - len(kept))
        sessions: dict[object, list[StreamDump]] = {}
        for number, dump in enumerate(kept):
            is_timed = all(piece.at_ns is not None for piece in dump.pieces)
            server = tuple(dump.peers[1:])
            sessions.setdefault((dump.protocol, dump.form, is_timed, server) if server else number, []).append(dump)
        records: list[SessionRecord] = []
        number = 0
        for group in sessions.values():
            pieces = [piece for connection, dump in enumerate(group, 1) for piece in _pieces(connection, dump)]
            if all(piece.at_ns is not None for piece in pieces):
                pieces.sort(key=lambda piece: piece.at_ns or 0)
            form = "http" if group[0].protocol == "http" else group[0].form
            scheme = "https" if group[0].protocol == "tls" else "http"
            made = self._session(number, pieces, [dump.peers for dump in group], form, scheme)
            number += bool(made)
            records += made
        return records

    def _session(
        self, number: int, pieces: list[_SidedPiece], peers: list[list[tuple[str, int]]], form: str, scheme: str = "http"
    ) -> list[SessionRecord]:
        """Return the records of a session; nothing if it does not look like MCP."""
        has_times = bool(pieces) and all(piece.at_ns is not None for piece in pieces)
        is_apart = not has_times and form != "plain"
        begin_ns = pieces[0].at_ns if has_times and pieces[0].at_ns is not None else self._source.wall_ns
        connections, read = self._read(pieces, begin_ns if has_times else None, is_apart=is_apart)
        speaker = next((connection for connection in connections if connection.is_mcp), None)
        if speaker is None:
            return []
        ports: list[Record] = [
            Note(at_ns=0, topic=CLIENT_PROCESSES, text="", extra={"ports": [[connection, ends[0][1]]]})
            for connection, ends in enumerate(peers, 1)
            if ends and ends[0][1]
        ]
        records = [*ports, *read]
        at_ns = read[-1].at_ns if read else 0
        address = _address(peers)
        name, path = speaker.server_named(address)
        head = header(
            self._source, number, label=name, wall_ns=begin_ns, facts=_facts(form, pieces, has_times=has_times, is_apart=is_apart),
            tapped={"transport": "http", "url": f"{scheme}://{name or 'unknown'}{path}"}, address=address,
        )  # fmt: skip
        if (is_apart or len(connections) == 1) and _is_half(pieces):
            records.append(Gap(at_ns=at_ns, since_ns=0, frames=1, bytes=0, why=_HALF))
        texts = [*self.passed_over(), *([_DOTS] if form == "ascii" else [])]
        records += [Note(at_ns=at_ns, topic=NOTE_TOPIC, text=text) for text in texts]
        end = End(at_ns=at_ns, bytes=0, frames=0, why="end of the followed stream")
        return [(number, record) for record in (head, *records, end)]

    def _read(
        self, pieces: list[_SidedPiece], begin_ns: int | None, *, is_apart: bool
    ) -> tuple[list[HttpConnection], list[Record]]:
        """Return the connections, and their records. `begin_ns` is the time of the first piece; None: there are no times.

        Pieces of connections that are `is_apart` are not in the order of time.
        """
        counters = Counters()
        connections: dict[int, HttpConnection] = {}
        by_connection: dict[int, list[Record]] = {}
        at_ns = 0
        for piece in pieces:
            if begin_ns is not None:
                at_ns = max(at_ns, (piece.at_ns or begin_ns) - begin_ns)
            connection = connections.get(piece.connection)
            if connection is None:
                connection = HttpConnection(piece.connection, counters, self._make, is_begun=True)
                connections[piece.connection] = connection
            made = (connection.client if piece.side == CLIENT else connection.server)(at_ns, piece.data)
            for record in made:
                if piece.packet and isinstance(record, Frame):
                    record.rare["extra"] = {"packet": piece.packet}
            by_connection.setdefault(piece.connection if is_apart else 0, []).extend(made)
        for number, connection in connections.items():
            by_connection[number if is_apart else 0] += connection.rest(at_ns)
        records = in_order(by_connection.values()) if is_apart else by_connection.get(0, [])
        return list(connections.values()), records


def _facts(form: str, pieces: list[_SidedPiece], *, has_times: bool, is_apart: bool) -> dict[str, str]:
    exact = EXACT if form in ("hex", "raw", "yaml") else RECONSTRUCTED
    has_text = form in ("hex", "raw", "yaml") or not any(_RUN_OF_DOTS in piece.data for piece in pieces)
    has_others = not is_apart and len({piece.connection for piece in pieces}) > 1
    return {
        "bytes": exact if has_text else MISSING, "connections": EXACT if has_others else MISSING,
        "senders": RECONSTRUCTED if form == "plain" else EXACT, "times": RECONSTRUCTED if has_times else MISSING,
        "ends": MISSING, "noise": EXACT, "process": MISSING, "heads": exact, "beginning": EXACT if _begins(pieces) else MISSING,
    }  # fmt: skip


def _pieces(connection: int, dump: StreamDump) -> Iterable[_SidedPiece]:
    """Yield the pieces of a dump, each with its side: a server is who begins with a response."""
    pieces = _with_chunks(dump.pieces) if dump.protocol == "http" else dump.pieces
    first = pieces[0] if pieces else None
    client = first.peer if first is not None and not first.data.startswith(b"HTTP/1.") else 1
    for piece in pieces:
        yield _SidedPiece(connection, CLIENT if piece.peer == client else SERVER, piece.data, piece.at_ns, piece.packet)


def _with_chunks(pieces: list[DumpPiece]) -> list[DumpPiece]:
    """Return what Wireshark shows of HTTP, decoded and without chunks, as HTTP: each piece of a body becomes a chunk."""
    made: list[DumpPiece] = []
    chunked: dict[int, bool] = {}  # by peer whose body is open: whether it ends with the next head
    for piece in pieces:
        data = piece.data
        if data.startswith(b"HTTP/1.") or b" HTTP/1." in data.partition(b"\r\n")[0]:
            if chunked.pop(piece.peer, None) is not None:
                made.append(DumpPiece(piece.peer, b"0\r\n\r\n", piece.at_ns, piece.packet))
            head, blank, body = data.partition(b"\r\n\r\n")
            if _CHUNKED.search(head) is not None or b"\r\ncontent-encoding:" in head.lower():
                head = _CHUNKED.sub(b"", _CODED.sub(b"", head)) + b"\r\nTransfer-Encoding: chunked"
                chunked[piece.peer] = _EVENTS.search(head) is None
            data = head + blank + (_chunk(body) if piece.peer in chunked else body)
        elif piece.peer in chunked:
            data = _chunk(data)
        made.append(DumpPiece(piece.peer, data, piece.at_ns, piece.packet))
    made += [DumpPiece(peer, b"0\r\n\r\n", made[-1].at_ns) for peer, is_whole in chunked.items() if is_whole]
    return made


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def _begins(pieces: list[_SidedPiece]) -> bool:
    first = next((piece.data for piece in pieces if piece.side == CLIENT and b'"jsonrpc"' in piece.data), b"")
    return b'"initialize"' in first or b"server/discover" in first


def _is_half(pieces: list[_SidedPiece]) -> bool:
    """Return whether a connection is missing: requests are answered there, or answers asked."""
    messages = [piece for piece in pieces if b'"jsonrpc"' in piece.data]
    if any(piece.side == SERVER and _REFUSAL.match(piece.data) for piece in pieces):
        return False  # an error of HTTP is an answer
    return len({piece.side for piece in messages}) == 1 and any(b'"id"' in piece.data for piece in messages)


def _address(peers: list[list[tuple[str, int]]]) -> str:
    """Return address and port of the server, if the dump has them."""
    ends = peers[0] if peers else []
    if len(ends) < 2 or not ends[1][1]:
        return ""
    host, port = ends[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

r"""Texts of "Follow stream", as Wireshark's window saves them and tshark prints them: a file in, the pieces that each peer sent out.

    Follow: tcp,ascii                      YAML, hex dumps, raw hex and ASCII of tshark say of each piece who sent it:
    Node 0: 127.0.0.1:49652                ASCII and hex by the tab before the server's, YAML by `peer: 1`.
    Node 1: 127.0.0.1:8000
    4
    GET
    \t17
    HTTP/1.1 200 OK\r\n

The window's ASCII has nothing but the text: `plain_http` reads it. Only YAML has times and the numbers of packets.
Source: the pages of tshark(1) and of Wireshark's user guide about following streams, and what tshark 4.0 prints.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Final

import msgspec

_HEADER: Final = re.compile(
    rb"^={20,}\r?\nFollow: (\w+),([\w-]+)\r?\nFilter: (?:\w+\.stream eq (\d{1,9}))?[^\n]*\n"
    rb"Node 0: ([^\n]*)\nNode 1: ([^\n]*)\n",
    re.MULTILINE,
)
_FOOTER: Final = re.compile(rb"^={20,}\r?$", re.MULTILINE)
_YAML: Final = re.compile(rb"^(?:peers:\r?\n  - peer: 0|# Packet \d+\r?\npeer[01]_\d+: !!binary)", re.MULTILINE)
_YAML_LINE: Final = re.compile(
    rb"(?P<peers>peers:)|\s+host: (?P<host>\S+)|\s+port: (?P<port>\d+)"
    rb"|(?:  - packet:|# Packet) (?P<packet>\d{1,9})|    peer: (?P<peer>[01])"
    rb"|    timestamp: (?P<seconds>\d{1,10})(?:\.(?P<part>\d{1,9}))?|(?:    data|peer(?P<old>[01])_\d+): !!binary \|"
)
_HEX_LINE: Final = re.compile(rb"([ \t]*)[0-9A-Fa-f]{8}  ((?:[0-9a-f]{2}  ?){1,15}[0-9a-f]{2}|[0-9a-f]{2})(?: |\r|$)")
_HEX_HEAD: Final = re.compile(rb"\s*0{8}  (?:[0-9a-f]{2} ){7}")
_SIZE_LINE: Final = re.compile(rb"(\t?)(\d{1,9})\r?\n")
_RAW_LINE: Final = re.compile(rb"(\t?)((?:[0-9a-f]{2})+)\r?")
_NEXT_PIECE: Final = re.compile(rb"\r?\n(?:\t?\d{1,9}\r?\n|={20,})")


class DumpPiece(msgspec.Struct):
    """Bytes that one peer sent; peer 0 is the one that the dump names first. `at_ns` is Unix time, None if the dump has no times."""

    peer: int
    data: bytes
    at_ns: int | None = None
    packet: int = 0


class StreamDump(msgspec.Struct):
    """The dump of one connection: `form` is that of its text, `protocol` the layer that was followed. `peers` are hosts and ports.

    `stream` is its number, in the order in which connections began; tshark prints the last one first.
    """

    form: str
    protocol: str
    peers: list[tuple[str, int]]
    pieces: list[DumpPiece]
    stream: int = 0


def is_stream_dump(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is such a dump, but for ASCII of the window."""
    begin = head[:4096]
    if _HEADER.search(begin) is not None or (_YAML.search(begin) is not None and b"!!binary" in head):
        return True
    if _HEX_HEAD.match(begin) is None:
        return False
    data = b"".join(piece.data for piece in _hex_pieces(begin))
    return b" HTTP/1." in data or data.startswith(b"HTTP/1.")


def stream_dumps(data: bytes) -> list[StreamDump]:
    """Return the dumps of a file."""
    if (header := _HEADER.search(data)) is not None:
        return sorted(_tshark_dumps(data, header), key=lambda dump: dump.stream)
    if _YAML.search(data[:4096]) is not None:
        return list(_yaml_dumps(data))
    return [StreamDump("hex", "tcp", [], list(_hex_pieces(data)))]


def _tshark_dumps(data: bytes, header: re.Match[bytes] | None) -> Iterator[StreamDump]:
    while header is not None:
        protocol, form = header[1].decode(), header[2].decode()
        peers = [_endpoint(header[4]), _endpoint(header[5])]
        dump = StreamDump(form, protocol, peers, [], int(header[3] or 0))
        end = header.end()
        if form == "ascii":
            end = _ascii_pieces(data, end, dump.pieces)
        else:
            footer = _FOOTER.search(data, end)
            text = data[end : footer.start() if footer is not None else len(data)]
            dump.pieces += _hex_pieces(text) if form == "hex" else _raw_pieces(text) if form == "raw" else ()
        yield dump
        header = _HEADER.search(data, end)


def _endpoint(text: bytes) -> tuple[str, int]:
    host, _, port = text.decode("utf-8", "replace").strip().rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() else 0


def _hex_pieces(data: bytes) -> Iterator[DumpPiece]:
    """Yield what lines of a hex dump have; consecutive lines of one peer are one piece."""
    peer, held = 0, bytearray()
    for line in data.split(b"\n"):
        if (matched := _HEX_LINE.match(line)) is None:
            continue
        sender = 1 if matched[1] else 0
        if sender != peer and held:
            yield DumpPiece(peer, bytes(held))
            held.clear()
        peer = sender
        held += bytes.fromhex(matched[2].decode())
    if held:
        yield DumpPiece(peer, bytes(held))


def _raw_pieces(data: bytes) -> Iterator[DumpPiece]:
    for line in data.split(b"\n"):
        if (matched := _RAW_LINE.fullmatch(line)) is not None:
            yield DumpPiece(1 if matched[1] else 0, bytes.fromhex(matched[2].decode()))


def _ascii_pieces(data: bytes, at: int, pieces: list[DumpPiece]) -> int:
    """Add the pieces of tshark's ASCII, which are preceded by their size; return their end. An editor may have removed each CR."""
    while (size := _SIZE_LINE.match(data, at)) is not None:
        begin, count = size.end(), int(size[2])
        end = min(begin + count, len(data))
        text = data[begin:end]
        if _NEXT_PIECE.match(data, end) is None and (stop := _end_without_cr(data, begin, count)) is not None:
            text = data[begin:stop].replace(b"\n", b"\r\n", count - (stop - begin))
            end = stop
        pieces.append(DumpPiece(1 if size[1] else 0, text))
        at = end + (2 if data.startswith(b"\r\n", end) else 1)
    return min(at, len(data))


def _end_without_cr(data: bytes, begin: int, count: int) -> int | None:
    """Return where a piece of `count` bytes ends that has lost the CR of some lines; None if it does not look so."""
    lost, at = 0, data.find(b"\n", begin)
    while at >= 0 and at - begin <= count:
        if at - begin + lost >= count and _NEXT_PIECE.match(data, at) is not None:
            return at
        lost += 1
        at = data.find(b"\n", at + 1)
    return None


def _yaml_dumps(data: bytes) -> Iterator[StreamDump]:
    """Yield the dump of each connection. Only the lines that Wireshark writes are read, not any YAML."""
    dump, piece, encoded = StreamDump("yaml", "tcp", [], []), DumpPiece(0, b""), list[bytes]()
    packet, is_data = 0, False
    for line in [*data.split(b"\n"), b"peers:"]:
        if is_data and line.startswith(b" ") and b":" not in line:
            encoded.append(line.strip())
            continue
        if is_data:
            piece.data, is_data, encoded = _decoded(b"".join(encoded)), False, []
            dump.pieces.append(piece)
            piece = DumpPiece(0, b"", None, packet)
        matched = _YAML_LINE.match(line)
        if matched is None:
            continue
        if matched["peers"]:
            if dump.pieces:
                yield dump
            dump = StreamDump("yaml", "tcp", [], [])
        elif matched["host"]:
            dump.peers.append((matched["host"].decode("utf-8", "replace"), 0))
        elif matched["port"] and dump.peers:
            dump.peers[-1] = dump.peers[-1][0], int(matched["port"][:9])
        elif matched["packet"]:
            packet = int(matched["packet"])
            piece = DumpPiece(0, b"", None, packet)
        elif matched["peer"]:
            piece.peer = int(matched["peer"])
        elif matched["seconds"]:
            # printed from a double, which is exact to the microsecond
            part = round(int((matched["part"] or b"0").ljust(9, b"0")) / 1000) * 1000
            piece.at_ns = int(matched["seconds"]) * 1_000_000_000 + part
        elif b"!!binary" in line:
            is_data = True
            piece.peer = int(matched["old"]) if matched["old"] else piece.peer


def _decoded(text: bytes) -> bytes:
    try:
        return b64decode(text + b"=" * (-len(text) % 4))
    except ValueError:
        return b""

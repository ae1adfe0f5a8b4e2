r"""Format 1 of the capture file: a record in, its line of JSON out. docs/capture.md is the specification.

    {"n":7,"at_ns":1234567,"kind":"frame","stream":0,"text":"{\"jsonrpc\":…}\n","crc":"1a2b3c4d"}

The JSON is written by hand, with the standard library's C escaper: importing `json` would cost 6 ms of somebody's editor start-up,
and a frame's line is made on the data path (as fast as orjson there, without its import of 19 ms).
"""

from __future__ import annotations

from _json import encode_basestring as _quoted  # `json.encoder` re-exports it, and imports `re` on the way
from binascii import b2a_base64, crc32

from ...compiled import compiled
from ...plain_lines import LARGE_BYTES, joined, message_lines, text_pieces
from ...records import (
    Close,
    End,
    Exit,
    Frame,
    Gap,
    Header,
    Intercept,
    Note,
    Open,
    Partial,
    Spawn,
    Stall,
    Unknown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...records import Record

FORMAT = 1
"""The version that this mcpspy writes. It changes when an older reader would misread a capture, not with releases."""

MIN_READER = 1
"""The oldest reader that can read captures written now."""

_KNOWN_HEADS = 256
_KNOWN_HEAD_LENGTH = 1 << 13
_known_heads: dict[tuple[bytes, bytes | None], str] = {}
_known_spans: dict[tuple[Any, ...], str] = {}

_CRC_BYTES = len(b',"crc":"12345678"}\n')

_message_lines = compiled(message_lines)


def header_line(header: Header) -> bytes:
    """Write the first line of a capture."""
    fields = {
        "mcpspy": header.format,
        "min_reader": header.min_reader,
        "id": header.capture_id,
        "wall_ns": header.wall_ns,
        "monotonic_ns": header.monotonic_ns,
        "boot_id": header.boot_id,
        "pid": header.pid,
        "start": header.start,
        "parent": header.parent,
        "cwd": header.cwd,
        "tapped": header.tapped,
        "label": header.label,
        "redaction": header.redaction,
        "version": header.mcpspy_version,
        **header.extra,
    }
    return _sealed(_json(fields)[:-1])


def _event_line(number: int, stream: int, at_ns: int, data: bytes, chunks: Sequence[int]) -> bytes:
    """Write the line of a whole frame below `LARGE_BYTES` that came in one read, in these chunks. Raises: UnicodeDecodeError."""
    head = f'{{"n":{number},"at_ns":{at_ns},"kind":"frame","stream":{stream},"text":'
    body = f'{head}{_quoted(data.decode())},"chunks":[{",".join(map(str, chunks))}]'.encode()
    return b'%b,"crc":"%08x"}\n' % (body, crc32(body))


def _whole_line(number: int, frame: Frame) -> bytes:
    """Write the line of a frame that came whole in one read. Raises: UnicodeDecodeError, OverflowError."""
    return _message_lines(number, frame.stream, frame.at_ns, "", [frame.data], "", False)


def _packet_line(number: int, frame: Frame, chunks: Sequence[int], packet: Any) -> bytes:
    """Write the line of a whole frame that came in one packet of a packet capture: as most there. Raises: UnicodeDecodeError."""
    body = _whole_line(number, frame)[:-_CRC_BYTES] + _packet_members(chunks, packet)
    return b'%b,"crc":"%08x"}\n' % (body, crc32(body))


def _packet_members(chunks: Sequence[int], packet: Any) -> bytes:
    sizes = f',"chunks":[{",".join(map(str, chunks))}]' if chunks else ""
    return f'{sizes},"packet":{_json(packet)}'.encode("utf-8", "backslashreplace")


def frame_line(number: int, frame: Frame) -> bytes:
    """Write a frame record's line."""
    data, rare = frame.data, frame.rare
    if frame.first_ns == frame.at_ns and not frame.part:
        try:
            if not rare:
                return _whole_line(number, frame)
            extra, chunks = rare.get("extra"), rare.get("chunks", ())
            if extra is not None and len(extra) == 1 and len(rare) == 1 + bool(chunks) and "packet" in extra:
                return _packet_line(number, frame, chunks, extra["packet"])
            if len(data) < LARGE_BYTES and len(rare) == 1 and chunks:
                return _event_line(number, frame.stream, frame.at_ns, data, chunks)
        except (UnicodeDecodeError, OverflowError):  # the latter for a number that no tap writes, as one below 0
            pass
    head = f'{{"n":{number},"at_ns":{frame.at_ns},"kind":"frame","stream":{frame.stream}'
    if frame.first_ns != frame.at_ns:
        head += f',"first_ns":{frame.first_ns}'
    if frame.part:
        head += ',"part":true'
    pieces = [head.encode(), *_data_member(data)]
    if frame.rare:
        pieces.append(_rare_frame_members(frame))
    return joined(pieces)


def record_line(number: int, record: Record) -> bytes:
    """Write the line of any record but a header."""
    match record:
        case Open():
            return open_line(number, record)
        case Close():
            return close_line(number, record)
        case Frame():
            return frame_line(number, record)
        case Partial():
            members = {"stream": record.stream, "first_ns": record.first_ns, **_payload(record.data)}
            length = record.length if record.length != len(record.data) else None
            return _line(number, "partial", record, {**members, "length": length})
        case Stall():
            incomplete, lasted_ns = record.incomplete_bytes or None, record.lasted_ns
            members = {"stream": record.stream, "waiting_bytes": record.waiting_bytes, "incomplete_bytes": incomplete}
            return _line(number, "stall", record, {**members, "lasted_ns": lasted_ns})
        case Spawn():
            return _line(number, "spawn", record, {"pid": record.pid, "start": record.start})
        case Exit():
            members = {"pid": record.pid, "code": record.code, "signal": record.signal, "error": record.error or None}
            return _line(number, "exit", record, {**members, "descendants": list(record.descendants) or None})
        case Gap():
            members = {"since_ns": record.since_ns, "frames": record.frames, "bytes": record.bytes, "why": record.why}
            return _line(number, "gap", record, {**members, "missing": record.missing or None})
        case Note():
            return _line(number, "note", record, {"topic": record.topic, "text": record.text})
        case Intercept():
            frame = record.frame if record.frame > 0 else number - record.frame
            members = {"frame": frame, "text": record.text, "action": record.action, "sent": record.sent}
            return _line(number, "intercept", record, {**members, "until_ns": record.until_ns, "seed": record.seed})
        case End():
            members = {"frames": record.frames, "bytes": record.bytes, "messages": record.messages, "gaps": record.gaps or None}
            return _line(number, "end", record, {**members, "why": record.why or None})
        case Unknown():
            return _line(number, record.kind, record, {})
    raise TypeError(f"a {type(record).__name__} is never written as a record")


def _line(number: int, kind: str, record: Any, members: dict[str, Any]) -> bytes:
    fields = {"n": number, "at_ns": record.at_ns, "kind": kind}
    fields.update((name, value) for name, value in members.items() if value is not None)
    fields.update(record.extra)
    return _sealed(_json(fields)[:-1])


def _sealed(body: str) -> bytes:
    """Add its CRC as last member to `body`, an object's text without its closing brace."""
    encoded = body.encode("utf-8", "backslashreplace")
    return b'%b,"crc":"%08x"}\n' % (encoded, crc32(encoded))


class OpenTemplate:
    """The line of an `open` record that comes again and again, rendered but for its numbers, its time, and the body's length.

    `length` are the digits of Content-Length in the record's heads, or empty if there are none. Raises: ValueError: if they are not
    in each head once.
    """

    __slots__ = ("_before", "_parts")

    def __init__(self, record: Open, length: str) -> None:
        self._before = f'{_described(record)},"connection":'
        self._parts = [_heads(record.head, record.forwarded) + _redacted(record)]
        if length:
            count = 1 if record.forwarded is None else 2
            self._parts = _parted(self._parts[0], f"{length}\\r\\n", count)

    def opening(self, connection: int, transaction: int, length: str) -> str:
        """Return what is special about one record."""
        return f'{self._before}{connection},"transaction":{transaction}{length.join(self._parts)}'


def _parted(heads: str, length: str, count: int) -> list[str]:
    """Cut rendered heads where their Content-Length is, which is so often there."""
    for name in (r"\r\nContent-Length: ", r"\r\ncontent-length: "):
        first, *rest = heads.split(name + length)
        if len(rest) == count:
            line_end = length.lstrip("0123456789")
            *others, last = rest
            return [first + name, *(line_end + part + name for part in others), line_end + last]
    raise ValueError("the length is not in each head once")


def open_line(number: int, record: Open) -> bytes:
    """Write an open record's line. A request makes an HTTP tap write two, and two closes: 3 µs each, 11 if made from a dict."""
    body = f'{{"n":{number},"at_ns":{record.at_ns},"kind":"open","stream":{record.stream}{_described(record)}'
    if record.connection:
        body += f',"connection":{record.connection}'
    if record.transaction:
        body += f',"transaction":{record.transaction}'
    if record.head or record.forwarded is not None:
        body += _heads(record.head, record.forwarded)
    body += _redacted(record)
    if record.injected:
        body += ',"injected":true'
    if record.extra:
        body += "," + _json(record.extra)[1:-1]
    return _sealed(body)


def close_line(number: int, record: Close) -> bytes:
    """Write a close record's line."""
    body = (
        f'{{"n":{number},"at_ns":{record.at_ns},"kind":"close","stream":{record.stream}'
        f',"by":{_quoted(record.by)},"how":{_quoted(record.how)}'
    )
    if record.extra:
        body += "," + _json(record.extra)[1:-1]
    return _sealed(body)


def _described(record: Open) -> str:
    return f',"sender":"{record.sender}","name":{_quoted(record.name)},"framing":{_quoted(record.framing)}'


def _redacted(record: Open) -> str:
    return _spans(record.redacted) if record.redacted else ""


def _spans(redacted: tuple[Any, ...]) -> str:
    """Write the member `redacted`. It is remembered: the heads of one client hide the same fields."""
    member = _known_spans.get(redacted)
    if member is None:
        if len(_known_spans) >= _KNOWN_HEADS:
            _known_spans.clear()
        member = _known_spans[redacted] = f',"redacted":{_json([list(span) for span in redacted])}'
    return member


def _heads(head: bytes, forwarded: bytes | None) -> str:
    """Write the members of a head and of the head that was sent on. They are remembered: an HTTP tap sees the same heads often."""
    key = (head, forwarded)
    members = _known_heads.get(key)
    if members is None:
        members = _bytes_member("head", head) if head else ""
        if forwarded is not None:
            members += _bytes_member("forwarded", forwarded)
        if len(_known_heads) >= _KNOWN_HEADS:
            _known_heads.clear()
        if len(members) <= _KNOWN_HEAD_LENGTH:
            _known_heads[key] = members
    return members


def _bytes_member(name: str, data: bytes) -> str:
    try:
        return f',"{name}":{_quoted(data.decode())}'
    except UnicodeDecodeError:
        return f',"{name}_base64":"{b2a_base64(data, newline=False).decode()}"'


def _payload(data: bytes, *, text: str = "text", base64: str = "base64") -> dict[str, Any]:
    try:
        return {text: data.decode()}
    except UnicodeDecodeError:
        return {base64: b2a_base64(data, newline=False).decode()}


def _data_member(data: bytes) -> list[bytes]:
    """Write `,"text":…`, or `,"base64":…` if the bytes are no UTF-8, in pieces."""
    try:
        return [b',"text":', *text_pieces(data)]
    except UnicodeDecodeError:
        return [b',"base64":"', b2a_base64(data, newline=False), b'"']


def _rare_frame_members(frame: Frame) -> bytes:
    rare = frame.rare
    extra, chunks = rare.get("extra"), rare.get("chunks", ())
    if extra and len(extra) == 1 and "packet" in extra and len(rare) == 1 + bool(chunks):
        return _packet_members(chunks, extra["packet"])  # of a packet capture, as every frame there
    members: dict[str, Any] = {}
    if "length" in frame.rare:
        members = {"length": frame.length, "sha256": frame.sha256}
    if frame.chunks:
        members["chunks"] = list(frame.chunks)
    if frame.injected:
        members["injected"] = True
    if frame.forwarded is not None:
        members.update(_payload(frame.forwarded, text="forwarded", base64="forwarded_base64"))
    if frame.redacted:
        members["redacted"] = [list(span) for span in frame.redacted]
    members.update(frame.extra)
    return ("," + _json(members)[1:-1]).encode("utf-8", "backslashreplace") if members else b""


def _json(value: Any) -> str:
    """Write JSON of the values in records: dicts with string keys, lists, strings, integers, booleans, None."""
    if isinstance(value, str):
        return _quoted(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(str(name))}:{_json(inner)}" for name, inner in value.items()) + "}"
    return "[" + ",".join(map(_json, value)) + "]"

r"""Format 1 of the capture file: records to their lines of JSON, and back. docs/capture.md is the specification.

    {"n":7,"at_ns":1234567,"kind":"frame","stream":0,"text":"{\"jsonrpc\":…}\n","crc":"1a2b3c4d"}

The JSON is written by hand, with the standard library's C escaper: importing `json` would cost 6 ms of somebody's editor start-up,
and a frame's line is made on the data path (as fast as orjson there, without its import of 19 ms).
"""

from __future__ import annotations

from _json import encode_basestring as _quoted  # `json.encoder` re-exports it, and imports `re` on the way
from binascii import a2b_base64, b2a_base64, crc32

from ...compiled import compiled
from ...plain_lines import LARGE_BYTES, joined, message_lines, text_pieces
from ...records import (
    MAX_NUMBER,
    Close,
    Damage,
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
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

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

_Member: TypeAlias = "tuple[str, type, Any, bool]"

_MEMBERS: dict[str, tuple[Callable[..., Any], tuple[_Member, ...]]] = {
    "stall": (
        Stall,
        (
            ("stream", int, ..., True),
            ("waiting_bytes", int, ..., True),
            ("incomplete_bytes", int, 0, False),
            ("lasted_ns", int, None, False),
        ),
    ),
    "close": (Close, (("stream", int, ..., True), ("by", str, ..., True), ("how", str, ..., True))),
    "spawn": (Spawn, (("pid", int, ..., True), ("start", int, 0, True))),
    "exit": (
        Exit,
        (
            ("pid", int, ..., True),
            ("code", int, None, False),
            ("signal", str, None, False),
            ("error", str, "", False),
            ("descendants", list, (), False),
        ),
    ),
    "gap": (
        Gap,
        (
            ("since_ns", int, ..., True),
            ("frames", int, ..., True),
            ("bytes", int, ..., True),
            ("why", str, ..., True),
            ("missing", int, 0, False),
        ),
    ),
    "note": (Note, (("topic", str, ..., True), ("text", str, ..., True))),
    "intercept": (
        Intercept,
        (
            ("frame", int, ..., True),
            ("text", str, ..., True),
            ("action", str, ..., True),
            ("sent", str, "unchanged", True),
            ("until_ns", int, None, False),
            ("seed", int, 0, True),
        ),
    ),
    "end": (
        End,
        (
            ("frames", int, ..., True),
            ("bytes", int, ..., True),
            ("messages", int, 0, True),
            ("gaps", int, 0, False),
            ("why", str, "", False),
        ),
    ),
}
"""By kind, the class of a record and its members in their order: name, type, value where it is missing (`...`: it may not be), and
whether it is written with that value too. Frames, opens and partials have bytes, which are written as text or in base64."""


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
        case Header() | Damage():
            raise TypeError(f"a {type(record).__name__} is never written as a record")
        case Unknown():
            members: dict[str, Any] = {"kind": record.kind}
        case Partial():
            length = {} if record.length == len(record.data) else {"length": record.length}
            members = {
                "kind": "partial",
                "stream": record.stream,
                "first_ns": record.first_ns,
                **_payload(record.data),
                **length,
            }
        case _:
            members = {"kind": type(record).__name__.lower()}
            for name, _, default, is_always in _MEMBERS[members["kind"]][1]:
                value = getattr(record, name)
                if is_always or value != default:
                    members[name] = value
            if isinstance(record, Intercept) and record.frame <= 0:
                members["frame"] = number - record.frame
    return _sealed(_json({"n": number, "at_ns": record.at_ns, **members, **record.extra})[:-1])


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


# --- Lines to records ---


def header_from(fields: dict[str, Any]) -> Header:
    """Make the header whose members are `fields`.

    Raises: KeyError, TypeError, ValueError: if a member is missing or has another type.
    """
    rest = _Members(fields, has_any_numbers=True)  # nothing is counted from them, and without a header nothing can be read
    return Header(
        format=rest.take("mcpspy", int),
        min_reader=rest.take("min_reader", int),
        capture_id=rest.take("id", str),
        wall_ns=rest.take("wall_ns", int),
        monotonic_ns=rest.take("monotonic_ns", int),
        boot_id=rest.take("boot_id", str, ""),
        pid=rest.take("pid", int, 0),
        start=rest.take("start", int, 0),
        parent=rest.take("parent", dict, {}),
        cwd=rest.take("cwd", str, ""),
        tapped=rest.take("tapped", dict, {}),
        label=rest.take("label", str, ""),
        redaction=rest.take("redaction", str, ""),
        mcpspy_version=rest.take("version", str, ""),
        extra=rest.left(),
    )


def record_from(fields: dict[str, Any]) -> Record:
    """Make the record whose members are `fields`; those that this version does not know stay in its `extra`.

    Raises: KeyError, TypeError, ValueError, OverflowError: if a member that its kind needs is missing or has another type.
    """
    rest = _Members(fields)
    number, at_ns, kind = rest.take("n", int), rest.take("at_ns", int), rest.take("kind", str)
    if kind == "frame":
        return _frame(rest, number, at_ns)
    record: Any
    if kind == "open":
        record = _open(rest, at_ns)
    elif kind == "partial":
        stream, first_ns = rest.take("stream", int), rest.take("first_ns", int, at_ns)
        record = Partial(
            at_ns=at_ns, stream=stream, first_ns=first_ns, data=rest.payload(), length=rest.take("length", int, None)
        )
    elif kind in _MEMBERS:
        make, members = _MEMBERS[kind]
        values = {name: rest.take(name, of, at_ns if name == "since_ns" else default) for name, of, default, _ in members}
        record = make(at_ns=at_ns, **values)
        if isinstance(record, Exit):
            record.descendants = tuple(dict(process) for process in record.descendants)
    else:
        record = Unknown(at_ns=at_ns, kind=kind)
    record.number = number
    record.extra = rest.left()
    result: Record = record
    return result


class _Members:
    """The members of one line, taken one by one; the rest is `extra`. With `has_any_numbers` no number is too large."""

    __slots__ = ("_fields", "_has_any_numbers")

    def __init__(self, fields: dict[str, Any], *, has_any_numbers: bool = False) -> None:
        self._has_any_numbers = has_any_numbers
        self._fields = dict(fields)
        self._fields.pop("crc", None)

    def take(self, name: str, kind: type, default: Any = ...) -> Any:
        if default is not ... and self._fields.get(name) is None:
            self._fields.pop(name, None)
            return default
        value = self._fields.pop(name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TypeError(f"{name} is not of type {kind.__name__}")
        return _bounded(value) if kind is int and not self._has_any_numbers else value

    def payload(self, text: str = "text", base64: str = "base64", default: Any = ...) -> Any:
        if text in self._fields:
            return str(self.take(text, str)).encode("utf-8", "surrogatepass")
        if base64 in self._fields:
            return a2b_base64(self.take(base64, str), strict_mode=True)
        if default is ...:
            raise KeyError(text)
        return default

    def ranges(self) -> tuple[tuple[int, int, str], ...]:
        redacted = self.take("redacted", list, [])
        return tuple((_bounded(offset), _bounded(length), str(kind)) for offset, length, kind in redacted)

    def left(self) -> dict[str, Any]:
        return self._fields


def _bounded(value: Any) -> int:
    """Return an integer. Raises: ValueError: if it is larger than any that was recorded, and than what readers can count with."""
    number = int(value)
    if not -MAX_NUMBER <= number <= MAX_NUMBER:
        raise ValueError("a number is too large")
    return number


def _frame(rest: _Members, number: int, at_ns: int) -> Frame:
    length = rest.take("length", int, None)
    stream, first_ns = rest.take("stream", int), rest.take("first_ns", int, at_ns)
    data, part = rest.payload(default=... if length is None else b""), rest.take("part", bool, False)
    rare = {
        "length": length,
        "sha256": rest.take("sha256", str, ""),
        "chunks": tuple(map(_bounded, rest.take("chunks", list, []))),
        "injected": rest.take("injected", bool, False),
        "redacted": rest.ranges(),
    }
    rare = {name: value for name, value in rare.items() if value or (name == "length" and value is not None)}
    forwarded = rest.payload("forwarded", "forwarded_base64", None)
    if forwarded is not None:
        rare["forwarded"] = forwarded
    if rest.left():
        rare["extra"] = rest.left()
    return Frame(stream, at_ns, first_ns, data, part, number, **rare)


def _open(rest: _Members, at_ns: int) -> Open:
    sender, framing = rest.take("sender", str), rest.take("framing", str)
    if sender not in ("client", "server"):
        raise ValueError(f"sender is {sender}")
    return Open(
        at_ns=at_ns,
        stream=rest.take("stream", int),
        sender=sender,
        name=rest.take("name", str),
        framing=framing,
        connection=rest.take("connection", int, 0),
        transaction=rest.take("transaction", int, 0),
        head=rest.payload("head", "head_base64", b""),
        forwarded=rest.payload("forwarded", "forwarded_base64", None),
        redacted=rest.ranges(),
        injected=rest.take("injected", bool, False),
    )

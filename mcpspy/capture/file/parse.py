"""Fields of a capture's line → a record, the inverse of `format`, for every kind of record; and the lines that records are on.

Members that this version does not know stay in the record's `extra`, and so do all members of an unknown kind. The reader turns what
raises here into damage.
"""

from binascii import a2b_base64
from collections.abc import Callable, Container
from os import PathLike, fspath
from typing import Any, TypeAlias

from ...lazy_pattern import lazy_pattern
from ...records import (
    MAX_NUMBER,
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
    Record,
    Spawn,
    Stall,
    Unknown,
)

_PIECE_BYTES = 1 << 16

_number = lazy_pattern(rb'\s*\{\s*"n"\s*:\s*(\d{1,18})\b')


def lines_of(path: str | PathLike[str], numbers: Container[int]) -> dict[int, int]:
    """Find the line of each of these records, the first line being 1; records that are not there are left out. Raises: OSError.

    Record 7 is on line 8, unless lines were lost or added. The lines are not checked: the reader does that.
    """
    lines: dict[int, int] = {}
    line_number, is_begin = 0, True
    with open(fspath(path), "rb") as file:
        while piece := file.readline(_PIECE_BYTES):  # a damaged line may be of any length
            line_number += is_begin
            match = _number.match(piece, 0, 64) if is_begin else None
            if match is not None and (number := int(match[1])) in numbers:
                lines.setdefault(number, line_number)
            is_begin = piece.endswith(b"\n")
    return lines


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
    """Make the record whose members are `fields`.

    Raises: KeyError, TypeError, ValueError, OverflowError: if a member that its kind needs is missing or has another type.
    """
    rest = _Members(fields)
    number, at_ns, kind = rest.take("n", int), rest.take("at_ns", int), rest.take("kind", str)
    if kind == "frame":
        return _frame(rest, number, at_ns)
    if kind == "open":
        record: _Simple = _open(rest, at_ns)
    elif kind in _SIMPLE:
        record = _SIMPLE[kind](rest, at_ns)
    else:
        record = Unknown(at_ns=at_ns, kind=kind)
    record.number = number
    record.extra = rest.left()
    return record


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


def _partial(rest: _Members, at_ns: int) -> Partial:
    stream, first_ns = rest.take("stream", int), rest.take("first_ns", int, at_ns)
    return Partial(at_ns=at_ns, stream=stream, first_ns=first_ns, data=rest.payload(), length=rest.take("length", int, None))


def _stall(rest: _Members, at_ns: int) -> Stall:
    return Stall(
        at_ns=at_ns,
        stream=rest.take("stream", int),
        waiting_bytes=rest.take("waiting_bytes", int),
        incomplete_bytes=rest.take("incomplete_bytes", int, 0),
        lasted_ns=rest.take("lasted_ns", int, None),
    )


def _close(rest: _Members, at_ns: int) -> Close:
    return Close(at_ns=at_ns, stream=rest.take("stream", int), by=rest.take("by", str), how=rest.take("how", str))


def _spawn(rest: _Members, at_ns: int) -> Spawn:
    return Spawn(at_ns=at_ns, pid=rest.take("pid", int), start=rest.take("start", int, 0))


def _exit(rest: _Members, at_ns: int) -> Exit:
    return Exit(
        at_ns=at_ns,
        pid=rest.take("pid", int),
        code=rest.take("code", int, None),
        signal=rest.take("signal", str, None),
        error=rest.take("error", str, ""),
        descendants=tuple(dict(process) for process in rest.take("descendants", list, [])),
    )


def _gap(rest: _Members, at_ns: int) -> Gap:
    return Gap(
        at_ns=at_ns,
        since_ns=rest.take("since_ns", int, at_ns),
        frames=rest.take("frames", int),
        bytes=rest.take("bytes", int),
        why=rest.take("why", str),
        missing=rest.take("missing", int, 0),
    )


def _note(rest: _Members, at_ns: int) -> Note:
    return Note(at_ns=at_ns, topic=rest.take("topic", str), text=rest.take("text", str))


def _intercept(rest: _Members, at_ns: int) -> Intercept:
    return Intercept(
        at_ns=at_ns,
        frame=rest.take("frame", int),
        text=rest.take("text", str),
        action=rest.take("action", str),
        sent=rest.take("sent", str, "unchanged"),
        until_ns=rest.take("until_ns", int, None),
        seed=rest.take("seed", int, 0),
    )


def _end(rest: _Members, at_ns: int) -> End:
    return End(
        at_ns=at_ns,
        frames=rest.take("frames", int),
        bytes=rest.take("bytes", int),
        messages=rest.take("messages", int, 0),
        gaps=rest.take("gaps", int, 0),
        why=rest.take("why", str, ""),
    )


_Simple: TypeAlias = Open | Partial | Stall | Close | Spawn | Exit | Gap | Note | Intercept | End | Unknown

_SIMPLE: dict[str, Callable[[_Members, int], _Simple]] = {
    "partial": _partial,
    "stall": _stall,
    "close": _close,
    "spawn": _spawn,
    "exit": _exit,
    "gap": _gap,
    "note": _note,
    "intercept": _intercept,
    "end": _end,
}

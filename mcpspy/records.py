"""Records of what a tap saw, one class for each kind: the words that taps, captures and transcripts share.

How records are stored (`capture/`) and what they mean (`transcript/`) is not known here.

The classes are plain and slotted, and `_record` adds their methods: the tap makes one per frame and is on the start-up path of
somebody's editor, where importing `dataclasses` costs 11 ms and `enum` 4 (CPython 3.11, `-X importtime`).
Times are integers: `at_ns` is nanoseconds on the monotonic clock since the capture began. `number` is the record's place in
its capture, 0 for the header, and -1 until a writer or a reader has given it one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal, TypeAlias

    Side: TypeAlias = Literal["client", "server"]
    Redaction: TypeAlias = tuple[int, int, str]
    Extra: TypeAlias = dict[str, Any] | None

CLIENT: Side = "client"
SERVER: Side = "server"
MCPSPY = "mcpspy"


def _record(cls: type) -> type:
    """Give a slotted class `__eq__` and `__repr__` over its slots, as `dataclass` would, without its import."""
    slots: tuple[str, ...] = cls.__slots__  # type: ignore[attr-defined]  # only slotted classes come here

    def __eq__(self: object, other: object) -> bool:
        if other.__class__ is not cls:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in slots)

    def __repr__(self: object) -> str:
        return f"{cls.__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in slots)})"

    cls.__eq__ = __eq__  # type: ignore[assignment,method-assign]  # that is the point
    cls.__repr__ = __repr__  # type: ignore[assignment,method-assign]
    cls.__hash__ = None  # type: ignore[assignment]
    return cls


@_record
class Header:
    """The first line of a capture: what recorded what, when, and with which redaction.

    `wall_ns` (Unix time) and `monotonic_ns` were read at one instant; every `at_ns` counts from there. `parent` is
    `{"pid", "name", "start"}` of the process that started the tap, the key of a recording; `start` of a process is its start
    time as the system counts it, for comparison only. `tapped` is `{"transport": "stdio", "argv": […], "env": [names]}` or
    `{"transport": "http", "url": …, "listen": …}`, redacted. `redaction` is `credentials` or `none`.
    """

    __slots__ = (
        "boot_id", "capture_id", "cwd", "format", "label", "min_reader", "mcpspy_version", "monotonic_ns", "number", "parent",
        "pid", "redaction", "start", "tapped", "wall_ns", "extra",
    )  # fmt: skip

    at_ns = 0

    def __init__(
        self,
        *,
        capture_id: str,
        wall_ns: int,
        monotonic_ns: int,
        pid: int,
        tapped: dict[str, Any],
        boot_id: str = "",
        start: int = 0,
        parent: dict[str, Any] | None = None,
        cwd: str = "",
        label: str = "",
        redaction: str = "credentials",
        mcpspy_version: str = "",
        format: int = 1,
        min_reader: int = 1,
        number: int = 0,
        extra: Extra = None,
    ) -> None:
        self.capture_id, self.wall_ns, self.monotonic_ns, self.pid = capture_id, wall_ns, monotonic_ns, pid
        self.tapped, self.boot_id, self.start, self.parent, self.cwd = tapped, boot_id, start, parent or {}, cwd
        self.label, self.redaction, self.mcpspy_version, self.format = label, redaction, mcpspy_version, format
        self.min_reader, self.number, self.extra = min_reader, number, extra or {}


@_record
class Open:
    """The start of a stream. `stream` is its number in this capture; `sender` is the side whose bytes it carries.

    stdio: `name` is `stdin`, `stdout` or `stderr`, framing `lines`. HTTP: `name` is `request` or `response`; `head` is the
    raw head including its empty line; `connection` and `transaction` count from 1; `forwarded` is the head that was sent on, if
    it differs; `redacted` lists `(offset, length, kind)` in `head`. `injected` says that mcpspy itself wrote the stream.
    """

    __slots__ = (
        "at_ns", "connection", "injected", "forwarded", "framing", "head", "name", "number", "redacted", "sender", "stream",
        "transaction", "extra",
    )  # fmt: skip

    def __init__(
        self,
        *,
        at_ns: int,
        stream: int,
        sender: Side,
        name: str,
        framing: str = "lines",
        connection: int = 0,
        transaction: int = 0,
        head: bytes = b"",
        forwarded: bytes | None = None,
        redacted: tuple[Redaction, ...] = (),
        injected: bool = False,
        number: int = -1,
        extra: Extra = None,
    ) -> None:
        self.at_ns, self.stream, self.name, self.connection = at_ns, stream, name, connection
        self.transaction, self.head, self.forwarded, self.redacted = transaction, head, forwarded, redacted
        self.injected, self.number, self.extra = injected, number, extra or {}
        self.sender: Side = sender
        self.framing = framing


@_record
class Frame:
    """One complete unit of a stream, including its terminator, or one part of it.

    `at_ns` is the time when its last byte was read, `first_ns` that of its first byte. `part` says that more of the same frame
    follows in the next frame record of this stream; the last record of a frame has `part` false.

    Facts that hardly any frame has are in `rare`, and are read through the properties: `chunks` are the sizes of the HTTP/1.1
    chunks that it came in; `forwarded` is what was sent on, if that differs from `data`; `redacted` lists `(offset, length, kind)`
    in `data`; past `--max-size`, `data` is empty, and `length` and `sha256` describe what it was.

    One is made for every message that passes, so it sets seven slots and not thirteen: 0.28 µs instead of 0.45 (CPython 3.11).
    """

    __slots__ = ("at_ns", "data", "first_ns", "number", "part", "rare", "stream")

    def __init__(
        self,
        stream: int,
        at_ns: int,
        first_ns: int,
        data: bytes,
        part: bool = False,  # noqa: FBT001, FBT002  # by position costs less, once per message
        number: int = -1,
        **rare: Any,
    ) -> None:
        self.stream = stream
        self.at_ns = at_ns
        self.first_ns = first_ns
        self.data = data
        self.part = part
        self.number = number
        self.rare = rare

    @property
    def length(self) -> int:
        """The number of bytes that the frame had on the wire."""
        length: int = self.rare.get("length", len(self.data))
        return length

    @property
    def sha256(self) -> str:
        """The hex digest of bytes that were not kept; empty if they were kept."""
        sha256: str = self.rare.get("sha256", "")
        return sha256

    @property
    def chunks(self) -> tuple[int, ...]:
        chunks: tuple[int, ...] = self.rare.get("chunks", ())
        return chunks

    @property
    def forwarded(self) -> bytes | None:
        forwarded: bytes | None = self.rare.get("forwarded")
        return forwarded

    @property
    def redacted(self) -> tuple[Redaction, ...]:
        redacted: tuple[Redaction, ...] = self.rare.get("redacted", ())
        return redacted

    @property
    def injected(self) -> bool:
        """True if mcpspy itself wrote it."""
        injected: bool = self.rare.get("injected", False)
        return injected

    @property
    def extra(self) -> dict[str, Any]:
        """Members that this version does not know."""
        extra: dict[str, Any] = self.rare.get("extra", {})
        return extra


@_record
class Partial:
    """Bytes that have waited 5 s for the end of their frame. They come again in the frame, if that ever ends.

    Past `--max-size`, `data` is empty, and `length` says how many bytes there were.
    """

    __slots__ = ("at_ns", "data", "first_ns", "length", "number", "stream", "extra")

    def __init__(
        self,
        *,
        at_ns: int,
        stream: int,
        first_ns: int,
        data: bytes,
        length: int | None = None,
        number: int = -1,
        extra: Extra = None,
    ) -> None:
        self.at_ns, self.stream, self.first_ns, self.data = at_ns, stream, first_ns, data
        self.length, self.number, self.extra = len(data) if length is None else length, number, extra or {}


@_record
class Stall:
    """A write that blocked: the reader of `stream` stopped reading. `lasted_ns` is None while it lasts."""

    __slots__ = ("at_ns", "lasted_ns", "number", "stream", "waiting_bytes", "extra")

    def __init__(
        self,
        *,
        at_ns: int,
        stream: int,
        waiting_bytes: int,
        lasted_ns: int | None = None,
        number: int = -1,
        extra: Extra = None,
    ) -> None:
        self.at_ns, self.stream, self.waiting_bytes, self.lasted_ns = at_ns, stream, waiting_bytes, lasted_ns
        self.number, self.extra = number, extra or {}


@_record
class Close:
    """The end of a stream. `by` is `client`, `server` or `mcpspy`; `how` is `eof`, `broken` (nobody reads it), `reset` or `abort`."""

    __slots__ = ("at_ns", "by", "how", "number", "stream", "extra")

    def __init__(self, *, at_ns: int, stream: int, by: str, how: str, number: int = -1, extra: Extra = None) -> None:
        self.at_ns, self.stream, self.by, self.how, self.number = at_ns, stream, by, how, number
        self.extra = extra or {}


@_record
class Spawn:
    """The start of the server's process. `start` is its start time as the system counts it."""

    __slots__ = ("at_ns", "number", "pid", "start", "extra")

    def __init__(self, *, at_ns: int, pid: int, start: int = 0, number: int = -1, extra: Extra = None) -> None:
        self.at_ns, self.pid, self.start, self.number, self.extra = at_ns, pid, start, number, extra or {}


@_record
class Exit:
    """The end of the server's process: with `code`, or by `signal` (its name), or it never started (`error` says why).

    `descendants` are the processes it started that are still alive, each `{"pid", "name"}`.
    """

    __slots__ = ("at_ns", "code", "descendants", "error", "number", "pid", "signal", "extra")

    def __init__(
        self,
        *,
        at_ns: int,
        pid: int,
        code: int | None = None,
        signal: str | None = None,
        error: str = "",
        descendants: tuple[dict[str, Any], ...] = (),
        number: int = -1,
        extra: Extra = None,
    ) -> None:
        self.at_ns, self.pid, self.code, self.signal, self.error = at_ns, pid, code, signal, error
        self.descendants, self.number, self.extra = descendants, number, extra or {}


@_record
class Gap:
    """A time in which recording failed: how many frames and payload bytes passed unrecorded, and why. Traffic went on.

    A repaired capture has a gap instead of the records that were left out; `missing` counts the numbers before its own that are gone.
    """

    __slots__ = ("at_ns", "bytes", "frames", "missing", "number", "since_ns", "why", "extra")

    def __init__(
        self,
        *,
        at_ns: int,
        since_ns: int,
        frames: int,
        bytes: int,
        why: str,
        missing: int = 0,
        number: int = -1,
        extra: Extra = None,
    ) -> None:
        self.at_ns, self.since_ns, self.frames, self.bytes, self.why = at_ns, since_ns, frames, bytes, why
        self.missing, self.number, self.extra = missing, number, extra or {}


@_record
class Note:
    """An event at the tap that is no traffic. `topic` is stable and kebab-case (`signal`, `escalation`, `max-size`, …)."""

    __slots__ = ("at_ns", "number", "text", "topic", "extra")

    def __init__(self, *, at_ns: int, topic: str, text: str, number: int = -1, extra: Extra = None) -> None:
        self.at_ns, self.topic, self.text, self.number, self.extra = at_ns, topic, text, number, extra or {}


@_record
class End:
    """The last record of a complete capture, with counts by which a reader knows that nothing is missing.

    `frames` counts frame records, `bytes` is the size of the file before this line. `messages` counts the frames of all streams
    but stderr, however many parts they have, and `gaps` the gap records: lists of captures show them without reading the file.
    """

    __slots__ = ("at_ns", "bytes", "frames", "gaps", "messages", "number", "why", "extra")

    def __init__(
        self,
        *,
        at_ns: int,
        frames: int,
        bytes: int,
        messages: int = 0,
        gaps: int = 0,
        why: str = "",
        number: int = -1,
        extra: Extra = None,
    ) -> None:
        self.at_ns, self.frames, self.bytes, self.messages, self.gaps = at_ns, frames, bytes, messages, gaps
        self.why, self.number, self.extra = why, number, extra or {}


@_record
class Damage:
    """A line that a reader cannot use; never written. `line` counts from 1, `offset` is its first byte in the file.

    `reason` is stable: `torn` (the last line has no end), `crc`, `json`, `shape`, `number` (records are missing before this one),
    `edited` (no CRC: edited by hand; the record itself follows).
    """

    __slots__ = ("at_ns", "data", "line", "number", "offset", "reason", "text")

    def __init__(
        self, *, at_ns: int, line: int, offset: int, reason: str, text: str, data: bytes = b"", number: int = -1
    ) -> None:
        self.at_ns, self.line, self.offset, self.reason, self.text, self.data = at_ns, line, offset, reason, text, data
        self.number = number


@_record
class Unknown:
    """A record of a kind that this version does not know: kept whole, and skipped."""

    __slots__ = ("at_ns", "kind", "number", "extra")

    def __init__(self, *, at_ns: int, kind: str, number: int = -1, extra: Extra = None) -> None:
        self.at_ns, self.kind, self.number, self.extra = at_ns, kind, number, extra or {}


Record: TypeAlias = Header | Open | Frame | Partial | Stall | Close | Spawn | Exit | Gap | Note | End | Damage | Unknown

if TYPE_CHECKING:
    Sink: TypeAlias = Callable[[Sequence[Record]], None]
    """Takes the records that one read completed, in order; a tap calls it before it forwards the last byte of them.

    A sink may also have the methods `frame(stream, at_ns, data)` and `frames(stream, at_ns, frames)`, a shorter way for the most
    frequent case: whole lines of stdin or stdout, come in one read. A frame object and its place in a list cost 0.5 µs, a
    tenth of what a tap adds to a message. So too `event(stream, at_ns, data)` and
    `events(before, stream, at_ns, events)`, for events of SSE that came in an HTTP chunk each; the latter takes the records before
    them too.
    """

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
    from typing import Any, Literal, TypeAlias, TypeVar, dataclass_transform

    T = TypeVar("T")
else:

    def dataclass_transform(**_options: object) -> Any:
        """Do nothing: only type checkers need it."""
        return lambda decorator: decorator


# Aliases are texts, so that modules can import them like classes, and this one need not import `typing`.
Side: TypeAlias = "Literal['client', 'server']"
Redaction: TypeAlias = tuple[int, int, str]

CLIENT: Side = "client"
SERVER: Side = "server"
MCPSPY = "mcpspy"
OTHER_SIDE: dict[Side, Side] = {CLIENT: SERVER, SERVER: CLIENT}

MAX_NUMBER = 1 << 62
"""The largest number, size or time that a record has, or the smallest if negative: as a time it is 146 years."""

PSEUDONYM_PREFIX = "redacted-"
PSEUDONYM_DIGITS = 12
"""Hex digits of a pseudonym: 48 bits, so that of 500 stores with a million secrets each, one has two equal pseudonyms."""

PSEUDONYM_PATTERN = f"{PSEUDONYM_PREFIX}[0-9a-f]{{{PSEUDONYM_DIGITS}}}"
"""A regular expression for what a record has in place of a secret."""

_CREDENTIAL_WORD = "(?:[Tt]oken|TOKEN|[Kk]ey|KEY|[Ss]ecret|SECRET|[Pp]assword|PASSWORD)"
PLACEHOLDER_PATTERN = (
    r"\$?\{(?:env:|input:)?[A-Za-z_][A-Za-z0-9_-]{0,63}\}"
    r"|[*•]{3,64}"
    r"|\$?\{\{ ?[A-Za-z_][A-Za-z0-9_.-]{0,63} ?\}\}"
    rf"|\$[A-Z][A-Z0-9_]{{0,63}}_{_CREDENTIAL_WORD}|%[A-Z][A-Z0-9_]{{0,63}}_{_CREDENTIAL_WORD}%"
    rf"|<(?:[A-Za-z]{{1,20}}[ _-]){{0,4}}{_CREDENTIAL_WORD}(?:[ _-](?:here|HERE))?>"
    rf"|(?:your|Your|YOUR)[_-](?:[A-Za-z]{{1,20}}[_-]){{0,4}}{_CREDENTIAL_WORD}(?:[_-](?:here|HERE))?"
    r"|undefined|null|None|\[object Object\]"
)
"""A regular expression for a text that programs send where a credential was not filled in; it is no secret."""

_EMPTY: dict[str, Any] = {}
"""Stands for a dictionary of its own that each record gets."""


def _compared(cls: type[T]) -> type[T]:
    """Give a slotted class `__eq__` and `__repr__` over its slots, as `dataclass` would, without its import."""
    slots: tuple[str, ...] = cls.__slots__  # type: ignore[attr-defined]  # only slotted classes come here

    def __eq__(self: object, other: object) -> bool:
        if other.__class__ is not cls:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in slots)

    def __repr__(self: object) -> str:
        return f"{cls.__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in slots)})"

    cls.__eq__ = __eq__  # type: ignore[method-assign]  # that is the point
    cls.__repr__ = __repr__  # type: ignore[method-assign]
    cls.__hash__ = None  # type: ignore[assignment]
    return cls


@dataclass_transform(kw_only_default=True)
def _record(cls: type[T]) -> type[T]:
    """Make a slotted class of one that declares its fields, in the order of JSON, as a `dataclass` does."""
    fields = tuple(cls.__annotations__)
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    defaults = {name: body.pop(name) for name in fields if name in body}
    required = set(fields) - set(defaults)

    def __init__(self: object, **values: Any) -> None:
        if not required <= values.keys():
            raise TypeError(f"{cls.__name__} lacks {', '.join(sorted(required - values.keys()))}")
        for name, value in (defaults | values).items():
            setattr(self, name, value if value is not _EMPTY else {})

    return _compared(type(cls.__name__, (), body | {"__slots__": fields, "__init__": __init__}))


@_record
class Header:
    """The first line of a capture: what recorded what, when, and with which redaction.

    `wall_ns` (Unix time) and `monotonic_ns` were read at one instant; every `at_ns` counts from there. `parent` is
    `{"pid", "name", "start"}` of the process that started the tap, the key of a recording; `start` of a process is its start
    time as the system counts it, for comparison only. `tapped` is `{"transport": "stdio", "argv": […], "env": [names]}` or
    `{"transport": "http", "url": …, "listen": …}`, redacted. `redaction` is `credentials` or `none`.
    """

    boot_id: str = ""
    capture_id: str
    cwd: str = ""
    format: int = 1
    label: str = ""
    min_reader: int = 1
    mcpspy_version: str = ""
    monotonic_ns: int
    number: int = 0
    parent: dict[str, Any] = _EMPTY
    pid: int
    redaction: str = "credentials"
    start: int = 0
    tapped: dict[str, Any]
    wall_ns: int
    extra: dict[str, Any] = _EMPTY

    at_ns = 0


@_compared
class Open:
    """The start of a stream. `stream` is its number in this capture; `sender` is the side whose bytes it carries.

    stdio: `name` is `stdin`, `stdout` or `stderr`, framing `lines`. HTTP: `name` is `request` or `response`; `head` is the
    raw head including its empty line; `connection` and `transaction` count from 1; `forwarded` is the head that was sent on, if
    it differs; `redacted` lists `(offset, length, kind)` in `head`. `injected` says that mcpspy itself wrote the stream.

    A transaction over HTTP makes two, so it has a constructor of its own: 0.6 µs instead of 4.7 (CPython 3.11).
    """

    __slots__ = (
        "at_ns",
        "connection",
        "injected",
        "forwarded",
        "framing",
        "head",
        "name",
        "number",
        "redacted",
        "sender",
        "stream",
        "transaction",
        "extra",
    )

    def __init__(
        self,
        *,
        at_ns: int,
        name: str,
        sender: Side,
        stream: int,
        connection: int = 0,
        injected: bool = False,
        forwarded: bytes | None = None,
        framing: str = "lines",
        head: bytes = b"",
        number: int = -1,
        redacted: tuple[Redaction, ...] = (),
        transaction: int = 0,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.at_ns = at_ns
        self.connection = connection
        self.injected = injected
        self.forwarded = forwarded
        self.framing = framing
        self.head = head
        self.name = name
        self.number = number
        self.redacted = redacted
        self.sender = sender
        self.stream = stream
        self.transaction = transaction
        self.extra = extra or {}


@_compared
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


@_compared
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
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.at_ns, self.stream, self.first_ns, self.data, self.number = at_ns, stream, first_ns, data, number
        self.length, self.extra = len(data) if length is None else length, extra or {}


@_record
class Stall:
    """A write that blocked: the reader of `stream` stopped reading. `lasted_ns` is None while it lasts.

    `incomplete_bytes` is how much of its last frame, whose end did not come yet, was received; 0 if there is none, or over HTTP.
    """

    at_ns: int
    lasted_ns: int | None = None
    number: int = -1
    stream: int
    waiting_bytes: int
    incomplete_bytes: int = 0
    extra: dict[str, Any] = _EMPTY


@_compared
class Close:
    """The end of a stream. `by` is `client`, `server` or `mcpspy`; `how` is `eof`, `broken` (nobody reads it), `reset` or `abort`."""

    __slots__ = ("at_ns", "by", "how", "number", "stream", "extra")

    def __init__(
        self,
        *,
        at_ns: int,
        by: str,
        how: str,
        stream: int,
        number: int = -1,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.at_ns = at_ns
        self.by = by
        self.how = how
        self.number = number
        self.stream = stream
        self.extra = extra or {}


@_record
class Spawn:
    """The start of the server's process. `start` is its start time as the system counts it."""

    at_ns: int
    number: int = -1
    pid: int
    start: int = 0
    extra: dict[str, Any] = _EMPTY


@_record
class Exit:
    """The end of the server's process: with `code`, or by `signal` (its name), or it never started (`error` says why).

    `descendants` are the processes it started that are still alive, each `{"pid", "name"}`.
    """

    at_ns: int
    code: int | None = None
    descendants: tuple[dict[str, Any], ...] = ()
    error: str = ""
    number: int = -1
    pid: int
    signal: str | None = None
    extra: dict[str, Any] = _EMPTY


@_record
class Gap:
    """A time in which recording failed: how many frames and payload bytes passed unrecorded, and why. Traffic went on.

    A repaired capture has a gap instead of the records that were left out; `missing` counts the numbers before its own that are gone.
    """

    at_ns: int
    bytes: int
    frames: int
    missing: int = 0
    number: int = -1
    since_ns: int
    why: str
    extra: dict[str, Any] = _EMPTY

    @property
    def was_recorded(self) -> bool:
        """True if these records were in the file, and others cut or damaged it."""
        return self.why.startswith(_HARMS)


_HARMS = ("repaired", "the file was removed", "another program", "a line that could not be read", "records were missing")


@_record
class Note:
    """An event at the tap that is no traffic. `topic` is stable and kebab-case (`signal`, `escalation`, `max-size`, …)."""

    at_ns: int
    number: int = -1
    text: str
    topic: str
    extra: dict[str, Any] = _EMPTY


RESTART = "restart"
"""The topic of notes about restarts of a server under a live client, and the text of intercepts that a restart made."""

BESIDE = "beside"
"""The member of an `open` record of a stream between mcpspy and a server that has not taken over: the client knows nothing of it."""

CLIENT_PROCESSES = "client-processes"
"""The topic of a note that says which processes have which HTTP connections."""


def connection_processes(note: Note) -> dict[int, tuple[int, int]]:
    """Return pid and start of the process of each connection that such a note names. Empty if it is not as a tap writes it."""
    owners: dict[int, tuple[int, int]] = {}
    starts = {process["pid"]: process["start"] for process in noted_processes(note)}
    connections = note.extra.get("connections")
    for entry in connections if isinstance(connections, list) else ():
        match entry:
            case [int(pid), *numbers] if pid in starts:
                owners.update((number, (pid, starts[pid])) for number in numbers if isinstance(number, int))
    return owners


def connection_ports(note: Note) -> dict[int, int]:
    """Return the port of the client's end of each connection that such a note names."""
    ports = note.extra.get("ports")
    pairs = (pair for pair in ports if isinstance(pair, list) and len(pair) == 2) if isinstance(ports, list) else ()
    return {connection: port for connection, port in pairs if isinstance(connection, int) and isinstance(port, int)}


def noted_processes(note: Note) -> list[dict[str, Any]]:
    """Return the processes that such a note lists, each with `pid`, `start`, `first_ns` and `last_ns`."""
    processes = note.extra.get("processes")
    return list(filter(_is_process, processes)) if isinstance(processes, list) else []


def _is_process(process: Any) -> bool:
    names = ("pid", "start", "first_ns", "last_ns")
    return isinstance(process, dict) and all(isinstance(process.get(name), int) for name in names)


@_record
class Intercept:
    """An intercept that acted on the next frame record, whose number is `frame`; minus n, until it is written, for the nth after it.

    `text` is the intercept, `action` what it did in words. `sent` says what the receiver got: `unchanged`, `changed` (the frame's
    `forwarded`) or `nothing`. `until_ns` is when it is to be sent, if it was delayed. `seed` is that of the capture's random choices.
    """

    action: str
    at_ns: int
    frame: int = -1
    number: int = -1
    seed: int = 0
    sent: str = "unchanged"
    text: str
    until_ns: int | None = None
    extra: dict[str, Any] = _EMPTY


@_record
class End:
    """The last record of a complete capture, with counts by which a reader knows that nothing is missing.

    `frames` counts frame records, `bytes` is the size of the file before this line. `messages` counts the frames of all streams
    but stderr, however many parts they have, and `gaps` the gap records: lists of captures show them without reading the file.
    """

    at_ns: int
    bytes: int
    frames: int
    gaps: int = 0
    messages: int = 0
    number: int = -1
    why: str = ""
    extra: dict[str, Any] = _EMPTY


@_record
class Damage:
    """A line that a reader cannot use; never written. `line` counts from 1, `offset` is its first byte in the file.

    `reason` is stable: `torn` (the last line has no end), `crc`, `json`, `shape`, `number` (records are missing before the next one,
    or it comes too late; with `data`: the line was read before), `edited` (no CRC: edited by hand; the record itself follows).
    """

    at_ns: int
    data: bytes = b""
    line: int
    number: int = -1
    offset: int
    reason: str
    text: str

    @property
    def is_repeated(self) -> bool:
        """True for a line that was read before, byte for byte: nothing is missing, and no record follows."""
        return self.reason == "number" and bool(self.data)


@_record
class Unknown:
    """A record of a kind that this version does not know: kept whole, and skipped."""

    at_ns: int
    kind: str
    number: int = -1
    extra: dict[str, Any] = _EMPTY


Record: TypeAlias = (
    Header | Open | Frame | Partial | Stall | Close | Spawn | Exit | Gap | Note | Intercept | End | Damage | Unknown
)

Sink: TypeAlias = "Callable[[Sequence[Record]], None]"
"""Takes the records that one read completed, in order; a tap calls it before it forwards the last byte of them.

A sink may also have the methods `frame(stream, at_ns, data)` and `frames(stream, at_ns, frames)`, a shorter way for the most
frequent case: whole lines of stdin or stdout, come in one read. A frame object and its place in a list cost 0.5 µs, a
tenth of what a tap adds to a message. So too `event(stream, at_ns, data)`, if
the word `endpoint` is not in it, for a redacting sink does not look into it; and
`events(before, stream, at_ns, events)`, for events of SSE that came in an HTTP chunk each; the latter takes the records before
them too. And `template(record, length)` with `message(…)`, for the usual messages of HTTP: see `live/http/usual.py`;
and `pass_event(…)`, for events that come one by one: see `live/http/steady.py`.
"""

RelayEvent: TypeAlias = "Callable[[int, int, int, int, int, int], tuple[bytes, bytes, int, int] | None]"
"""Reads, records and sends on an event: see `live.http.steady.relay_event`."""

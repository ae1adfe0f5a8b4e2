r"""Lines of strace's output in, the calls that read or wrote something out, and the ends of processes.

    4711  1745130721.123456 read(0<pipe:[81]>, "{\"jsonrpc\":\"2.0\",…}\n", 65536) = 58 <0.000012>

A call that waited while another thread made one stands on two lines, `<unfinished ...>` and `resumed`. Source: strace(1).

What is read is there when the call ends, and what is written when the call begins: strace may notice the end of a write only after
the other side has reacted. So that is the order of `InOrder`.
"""

from __future__ import annotations

import re
from heapq import heappop, heappush
from typing import Final, TypeAlias

import msgspec

MAX_UNFINISHED: Final = 1024
"""The most calls of different threads that are under way at the same time."""

MAX_WAITING: Final = 4096
"""So many calls wait for the end of a write that began before them; it may never come."""

_LINE: Final = re.compile(
    rb"(?:\[pid +(\d+)\] +|(\d+) +)?(?:([1-8]?\d{9})\.(\d{6,9}) +|\d\d:\d\d:\d\d(?:\.\d+)? +| *\+?\d+\.\d{6,9} +)?(.*)"
)
_BEGIN: Final = re.compile(
    rb"(read|write|readv|writev|preadv2?|pwritev2?|recvfrom|sendto|recvmsg|sendmsg)\((\d+)(<(?:->|[^>])*+>)?, "
)
_RESULT: Final = re.compile(rb".*\) += (-?\d+)(?: |$)")
_RESUMED: Final = re.compile(rb"<\.\.\. (\w+) resumed>,?\s*(.*)$")
_STRING: Final = re.compile(rb'"((?:[^"\\]|\\.)*+)"(\.\.\.)?')
_PIECE: Final = re.compile(rb'iov_base="((?:[^"\\]|\\.)*+)"(\.\.\.)?')
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-f]{2}|[0-7]{1,3}|.)")
_TOOK: Final = re.compile(rb"(\d{1,7})\.(\d{6,9})>\s*$")
_EXITED: Final = re.compile(rb"\+\+\+ exited with (\d+) \+\+\+")
_KILLED: Final = re.compile(rb"\+\+\+ killed by (SIG\w+)")
_LETTERS: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b"b": b"\b", b"a": b"\a"}
_UNFINISHED: Final = b"<unfinished ...>"
_DETACHED: Final = b"<detached ...>"
_ONE_STRING: Final = (b"read", b"write", b"recvfrom", b"sendto")
_READS: Final = (b"read", b"pread", b"recv")
_WRITES: Final = (b"write", b"pwrite", b"send")


class SystemCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that read or wrote `count` bytes, and as many of them as strace kept. A read of no bytes is the end of what it reads."""

    pid: bytes
    """The number of the thread; empty if strace named none."""
    wall_ns: int | None
    """The time at which a read ended, as far as strace tells it, or a write began."""
    place: int
    """The position of that moment: a time, or the number of a line."""
    is_read: bool
    descriptor: int
    """-1 for a read of which strace saw only the end."""
    target: bytes = b""
    """The name of the descriptor, as `-y` gives it, such as `<pipe:[81]>`; else empty."""
    text: bytes = b""
    """The bytes as strace spelled them; `plain` reads that."""
    count: int = 0
    is_over: bool = True
    """False for a write that was still under way when the output ended, of `count` bytes."""
    has_end: bool = True
    """False for a read of which only the beginning has a time."""


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a thread or process: exactly one of `code` and `signal` is given."""

    pid: bytes
    wall_ns: int | None
    place: int
    code: int | None
    signal: str | None


StraceEvent: TypeAlias = SystemCall | ProcessEnd


class StraceLines:
    """The reader of lines of strace's output, one after another. `close` returns the writes that were under way at its end."""

    __slots__ = ("_unfinished", "now")

    def __init__(self) -> None:
        self._unfinished: dict[bytes, tuple[int | None, int, bytes]] = {}
        self.now = 0
        """The place of the last line."""

    def event(self, line: bytes) -> StraceEvent | None:
        """Return what a line tells, also the beginning of a write; None if it tells nothing of interest."""
        matched = _LINE.match(line)
        if matched is None:
            return None
        pid = matched[1] or matched[2] or b""
        wall_ns = int(matched[3]) * 1_000_000_000 + int(matched[4].ljust(9, b"0")) if matched[3] else None
        self.now = self.now + 1 if wall_ns is None else wall_ns
        text = matched[5]
        if text.endswith((_UNFINISHED, _DETACHED)):
            if len(self._unfinished) < MAX_UNFINISHED:
                self._unfinished[pid] = wall_ns, self.now, text[: text.rindex(b"<")].rstrip()
            return _begun(pid, wall_ns, self.now, text)
        if text.startswith(b"+++"):
            return _process_end(pid, wall_ns, self.now, text)
        if (resumed := _RESUMED.match(text)) is not None:
            return self._resumed(pid, wall_ns, resumed)
        took_ns = None
        if wall_ns is not None and line.endswith(b">") and (took := _TOOK.match(line, line.rfind(b"<") + 1)) is not None:
            took_ns = int(took[1]) * 1_000_000_000 + int(took[2].ljust(9, b"0"))
        return _call(pid, wall_ns, self.now, text, took_ns)

    def first_open(self) -> int | None:
        """Return the place of the first write that is under way; None if none is."""
        return min((place for _, place, text in self._unfinished.values() if text.startswith(_WRITES)), default=None)

    def close(self, last_line: bytes = b"") -> list[SystemCall]:
        """Return the writes that were under way when the output ended; its last line may be the beginning of one."""
        matched = _LINE.match(last_line)
        if matched is not None and last_line:
            self._unfinished[matched[1] or matched[2] or b""] = None, self.now, matched[5]
        begun = [_begun(pid, *call) for pid, call in self._unfinished.items()]
        self._unfinished.clear()
        return [call for call in begun if call is not None]

    def _resumed(self, pid: bytes, wall_ns: int | None, resumed: re.Match[bytes]) -> SystemCall | None:
        began_ns, place, begun = self._unfinished.pop(pid, (None, 0, b""))
        name, rest = resumed.groups()
        if not begun and name == b"read" and rest.startswith((b'"{', b'"[')):
            call = _call(pid, wall_ns, self.now, b"read(0, " + rest)  # it waited already when strace came
            return call if call is None else msgspec.structs.replace(call, descriptor=-1)
        if not begun.startswith(name + b"("):
            return None
        text = begun + (b" " if begun.endswith((b"(", b",")) else b", ") + rest
        return _call(pid, began_ns, place, text) if name.startswith(_WRITES) else _call(pid, wall_ns, self.now, text, 0)


class InOrder:
    """Events of a file that is whole, in the order of their places. `lines` has just read the line of the event."""

    __slots__ = ("_count", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, StraceEvent]] = []
        self._count = 0

    def feed(self, event: StraceEvent, lines: StraceLines) -> list[StraceEvent]:
        """Return the events before which nothing can come any more."""
        self._count += 1
        heappush(self._waiting, (event.place, self._count, event))
        first_open = lines.first_open()
        limit = lines.now if first_open is None else min(first_open, lines.now)
        events = []
        while self._waiting and (self._waiting[0][0] <= limit or len(self._waiting) > MAX_WAITING):
            events.append(heappop(self._waiting)[2])
        return events

    def close(self) -> list[StraceEvent]:
        """Return all other events."""
        events = [event for _, _, event in sorted(self._waiting)]
        self._waiting.clear()
        return events


def _process_end(pid: bytes, wall_ns: int | None, place: int, text: bytes) -> ProcessEnd | None:
    if (exited := _EXITED.match(text)) is not None:
        return ProcessEnd(pid=pid, wall_ns=wall_ns, place=place, code=int(exited[1]), signal=None)
    if (killed := _KILLED.match(text)) is not None:
        return ProcessEnd(pid=pid, wall_ns=wall_ns, place=place, code=None, signal=killed[1].decode())
    return None


def _call(pid: bytes, wall_ns: int | None, place: int, text: bytes, took_ns: int | None = None) -> SystemCall | None:
    """Return the call that a line tells; None if it failed, or is none that counts here."""
    begin = _BEGIN.match(text)
    result = _RESULT.match(text, begin.end()) if begin is not None else None
    if begin is None or result is None or result[1].startswith(b"-"):
        return None
    is_read = begin[1].startswith(_READS)
    if is_read and wall_ns is not None and took_ns:
        wall_ns += took_ns
        place = wall_ns
    return SystemCall(
        pid=pid,
        wall_ns=wall_ns,
        place=place,
        is_read=is_read,
        descriptor=int(begin[2]),
        target=begin[3] or b"",
        text=_spelled(begin[1], text, begin.end()),
        count=int(result[1]),
        has_end=not is_read or took_ns is not None,
    )


def _begun(pid: bytes, wall_ns: int | None, place: int, text: bytes) -> SystemCall | None:
    """Return the write whose beginning this is; None if it is none of whole bytes."""
    begin = _BEGIN.match(text)
    if begin is None or begin[1].startswith(_READS):
        return None
    spelled = _spelled(begin[1], text, begin.end())
    if not spelled:
        return None
    return SystemCall(
        pid=pid,
        wall_ns=wall_ns,
        place=place,
        is_read=False,
        descriptor=int(begin[2]),
        target=begin[3] or b"",
        text=spelled,
        count=len(plain(spelled)),
        is_over=False,
    )


def _spelled(name: bytes, text: bytes, at: int) -> bytes:
    """Return the bytes of a call's strings, as strace spelled them, up to the first that it cut."""
    if name in _ONE_STRING:
        string = _STRING.match(text, at)
        return string[1] if string is not None else b""
    pieces = []
    for piece in _PIECE.finditer(text, at):
        pieces.append(piece[1])
        if piece[2] is not None:
            break
    return b"".join(pieces)


def plain(text: bytes) -> bytes:
    """Return the bytes of a string of C."""
    return _ESCAPE.sub(_unescaped, text) if b"\\" in text else text


def _unescaped(match: re.Match[bytes]) -> bytes:
    sign = match[1]
    if sign[:1] == b"x" and len(sign) == 3:
        return bytes((int(sign[1:], 16),))
    if sign[:1] in b"01234567":
        return bytes((int(sign, 8) & 255,))
    return _LETTERS.get(sign, sign)

r"""The output of strace of a stdio server: bytes in, records of its session out.

    strace -f -ttt -T -y -e trace=read,write,readv,writev,recvfrom,sendto,close,exit_group -s 1000000 -o FILE -p PID

    4711  1745130721.123456 read(0<pipe:[81]>, "{\"jsonrpc\":\"2.0\",…}\n", 65536) = 58 <0.000012>

Descriptors 0, 1 and 2 are the server's standard streams. With `-y` only those are read that are the same pipes as those of the first
process that uses them; without, those of all processes. Source: strace(1).
"""

from __future__ import annotations

import re
from typing import Final

from ..records import CLIENT, SERVER
from ..wire.lines import Lines
from .session import STDERR, STDIN, STDOUT, StdioSession
from .source import EXACT, MISSING, RECONSTRUCTED, SessionRecord, Source
from .text_lines import WholeLines

MAX_EARLY: Final = 1000
MAX_UNFINISHED: Final = 1024
"""The most calls of different threads that are under way at the same time."""

_LINE: Final = re.compile(rb"(?:(\d+) +)?(?:(\d{9,11})\.(\d{6,9}) +|\d\d:\d\d:\d\d(?:\.\d+)? +)?(.*)")
_CALL: Final = re.compile(
    rb"(read|write|readv|writev|pread64|pwrite64|recvfrom|sendto|recvmsg|sendmsg)\((\d+)(<[^>]*>)?, (.*)\) += (-?\d+)(?: |$)"
)
_UNFINISHED: Final = re.compile(rb"((\w+)\(.*?),?\s*<unfinished \.\.\.>$")
_RESUMED: Final = re.compile(rb"<\.\.\. (\w+) resumed>,?\s*(.*)$")
_STRING: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"(\.\.\.)?')
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-f]{2}|[0-7]{1,3}|.)")
_TOOK: Final = re.compile(rb"<(\d+)\.(\d{6,9})>\s*$")
_EXITED: Final = re.compile(rb"\+\+\+ exited with (\d+) \+\+\+")
_KILLED: Final = re.compile(rb"\+\+\+ killed by (SIG\w+)")
_LETTERS: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b"b": b"\b", b"a": b"\a"}
_READS: Final = (b"read", b"readv", b"pread64", b"recvfrom", b"recvmsg")
_LOOKS_SO: Final = re.compile(
    rb"^(?:\d+ +)?(?:[\d:.]+ +)?(?:read|write|readv|writev|recvfrom|sendto)\(\d+(?:<[^>\n]*>)?, ", re.MULTILINE
)


def is_strace(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is strace's."""
    return _LOOKS_SO.search(head) is not None


class StraceImporter:
    """Records from the bytes of strace's output, cut anywhere, after the number of their session, which is always 0."""

    __slots__ = (
        "_early",
        "_ended",
        "_framings",
        "_has_durations",
        "_last_ns",
        "_lines",
        "_pid",
        "_pipes",
        "_session",
        "_source",
        "_unfinished",
    )

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines = WholeLines()
        self._framings = {stream: Lines() for stream in (STDIN, STDOUT, STDERR)}
        self._pipes: dict[int, bytes] = {}
        self._unfinished: dict[bytes, bytes] = {}
        self._session: StdioSession | None = None
        self._pid = b""
        self._has_durations = False
        self._early: list[tuple[int | None, bytes]] = []  # written to stderr before the first message
        self._ended = False
        self._last_ns: int | None = None

    def feed(self, data: bytes) -> list[SessionRecord]:
        return [record for line in self._lines.feed(data) for record in self._line(line)]

    def close(self) -> list[SessionRecord]:
        records = [record for line in self._lines.close() for record in self._line(line)]
        if self._session is not None:
            for stream, framing in self._framings.items():
                for rest in framing.close():
                    records += self._session.frame(self._last_ns, stream, rest)
            records += self._session.end("end of strace's output", notes=self.passed_over())
        return records

    def passed_over(self) -> list[str]:
        """Say what the file has that is not read. Gaps in the capture say what strace left out."""
        return self._lines.left_out()

    def _line(self, line: bytes) -> list[SessionRecord]:
        matched = _LINE.match(line)
        if matched is None:
            return []
        pid, seconds, part, call = matched.groups()
        pid = pid or b""
        wall_ns = int(seconds) * 1_000_000_000 + int(part.ljust(9, b"0")) if seconds else None
        self._last_ns = wall_ns or self._last_ns
        is_resumed = False
        if (unfinished := _UNFINISHED.match(call)) is not None:
            if len(self._unfinished) < MAX_UNFINISHED:
                self._unfinished[pid] = unfinished[1]
            return []
        if (resumed := _RESUMED.match(call)) is not None:
            begun = self._unfinished.pop(pid, b"")
            if not begun and resumed[1] == b"read" and resumed[2].startswith((b'"{', b'"[')):
                begun = b"read(0" + self._pipes.get(STDIN, b"")  # it waited already when strace came
            if not begun.startswith(resumed[1] + b"("):
                return []
            is_resumed = True
            call = begun + (b"" if begun.endswith((b"(", b", ")) else b", ") + resumed[2]
        if call.startswith(b"+++"):
            return self._exit(pid, wall_ns, call)
        if (done := _CALL.match(call)) is not None and int(done[5]) >= 0 and int(done[2]) <= STDERR:
            took = _TOOK.search(line)
            if wall_ns is not None and took is not None and not is_resumed:
                self._has_durations = True
                wall_ns += int(took[1]) * 1_000_000_000 + int(took[2].ljust(9, b"0"))
            return self._bytes(pid, wall_ns, done)
        return []

    def _bytes(self, pid: bytes, wall_ns: int | None, call: re.Match[bytes]) -> list[SessionRecord]:
        """Take what a call read or wrote."""
        stream, pipe, count = int(call[2]), call[3] or b"", int(call[5])
        if (call[1] in _READS) is not (stream == STDIN):
            return []
        if self._pipes.setdefault(stream, pipe) != pipe:
            return []
        self._pid = self._pid or pid
        if not count:
            if stream != STDIN or self._session is None:
                return []
            return self._session.close_stream(wall_ns, STDIN, CLIENT)
        strings = _STRING.findall(call[4])
        data = b"".join(map(_plain, (text for text, _ in strings)))[:count]
        if self._session is None:
            if stream == STDERR and len(self._early) < MAX_EARLY:
                self._early.append((wall_ns, data))
            if stream == STDERR or not data.lstrip().startswith((b"{", b"[")):
                return []  # until the first message: strace may have come within one
            begins = b'"initialize"' in data or b"server/discover" in data
            first_ns = self._early[0][0] if self._early else wall_ns
            self._session = StdioSession(self._source, 0, label="", wall_ns=first_ns, facts=self._facts(wall_ns, begins=begins))
        if len(data) < count:
            why = "strace kept only the beginning of what was read or written; call it with -s 1000000"
            self._framings[stream] = Lines()
            return self._session.gap(wall_ns, count - len(data), why)
        early, self._early = self._early, []
        reads = [*((came_ns, STDERR, written) for came_ns, written in early), (wall_ns, stream, data)]
        return [record for read in reads for record in self._frames(self._session, *read)]

    def _frames(self, session: StdioSession, wall_ns: int | None, stream: int, data: bytes) -> list[SessionRecord]:
        framing, records = self._framings[stream], []
        for piece in framing.feed(data):
            records += session.frame(wall_ns, stream, piece, is_part=framing.is_part and not piece.endswith(b"\n"))
        return records

    def _exit(self, pid: bytes, wall_ns: int | None, text: bytes) -> list[SessionRecord]:
        """Take the end of the process whose streams these are."""
        if self._session is None or self._ended or pid != self._pid:
            return []
        exited, killed = _EXITED.match(text), _KILLED.match(text)
        if exited is None and killed is None:
            return []
        self._ended = True
        code = int(exited[1]) if exited is not None else None
        signal = killed[1].decode() if killed is not None else None
        records = self._session.close_stream(wall_ns, STDOUT, SERVER)
        return [*records, *self._session.exit(wall_ns, int(pid or b"0"), code, signal)]

    def _facts(self, wall_ns: int | None, *, begins: bool) -> dict[str, str]:
        """Return the facts. The time of a call is that of its beginning, so that of a read says nothing without its duration."""
        times = EXACT if self._has_durations else RECONSTRUCTED
        return {
            "bytes": EXACT,
            "senders": EXACT,
            "times": MISSING if wall_ns is None else times,
            "ends": RECONSTRUCTED,
            "noise": EXACT,
            "process": RECONSTRUCTED,
            "connections": EXACT,
            "beginning": EXACT if begins else MISSING,
        }


def _plain(text: bytes) -> bytes:
    """Return the bytes of a string of C."""
    return _ESCAPE.sub(_unescaped, text) if b"\\" in text else text


def _unescaped(match: re.Match[bytes]) -> bytes:
    sign = match[1]
    if sign[:1] == b"x" and len(sign) == 3:
        return bytes((int(sign[1:], 16),))
    if sign[:1] in b"01234567":
        return bytes((int(sign, 8) & 255,))
    return _LETTERS.get(sign, sign)

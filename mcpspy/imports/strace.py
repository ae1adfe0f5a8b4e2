r"""The output of strace of a stdio server: bytes in, records of its session out.

    strace -f -ttt -T -y -e trace=read,write,readv,writev,recvfrom,sendto,recvmsg,sendmsg -s 1000000 -o FILE -p PID

`strace_calls` reads its lines, and `strace_streams` tells which calls are on the server's standard streams.
"""

from __future__ import annotations

import re
from typing import Final

from ..records import CLIENT, SERVER
from ..wire.lines import Lines
from .session import STDERR, STDIN, STDOUT, StdioSession
from .source import EXACT, MISSING, RECONSTRUCTED, SessionRecord, Source
from .strace_calls import InOrder, ProcessEnd, StraceEvent, StraceLines, SystemCall, plain
from .strace_streams import StandardStreams
from .text_lines import WholeLines

MAX_EARLY: Final = 1000

CUT: Final = "strace kept only the beginning of what was read or written; call it with -s 1000000"
UNDER_WAY: Final = "the server was still writing this when strace's output ended: the client may have it, or not"
ONE_THREAD: Final = "strace named no threads, and others may have read and written too: use -f, or strace-log-merge after -ff"

_LOOKS_SO: Final = re.compile(
    rb"^(?:\[pid +\d+\] +|\d+ +)?(?:[\d:.]+ +)?(?:read|write|readv|writev|recvfrom|sendto|recvmsg|sendmsg)\(\d+(?:<[^\n]*?>)?, ",
    re.MULTILINE,
)


def is_strace(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is strace's."""
    return _LOOKS_SO.search(head) is not None


class StraceImporter:
    """Records from the bytes of strace's output, cut anywhere, after the number of their session, which is always 0."""

    __slots__ = (
        "_alive",
        "_calls",
        "_early",
        "_end",
        "_framings",
        "_has_ended",
        "_last_ns",
        "_lines",
        "_names_threads",
        "_order",
        "_session",
        "_source",
        "_streams",
        "_threads",
    )

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines = WholeLines()
        self._calls = StraceLines()
        self._streams = StandardStreams()
        self._framings = {stream: Lines() for stream in (STDIN, STDOUT, STDERR)}
        self._session: StdioSession | None = None
        self._threads: set[int] = set()  # those that read messages or wrote some
        self._alive: set[int] = set()
        self._end: ProcessEnd | None = None
        self._has_ended = False
        self._names_threads = False
        self._early: list[SystemCall] = []  # written to stderr before the first message
        self._last_ns: int | None = None
        self._order = InOrder()

    def feed(self, data: bytes) -> list[SessionRecord]:
        return [record for line in self._lines.feed(data) for record in self._line(line)]

    def close(self) -> list[SessionRecord]:
        last = b"".join(self._lines.close())
        records = self._line(last)
        records += [record for event in self._order.close() for record in self._event(event)]
        under_way = self._calls.close(last)
        if self._session is None:
            return records
        for stream, framing in self._framings.items():
            for rest in framing.close():
                records += self._session.frame(self._last_ns, stream, rest)
        for call in under_way:
            for stream, _ in self._streams.take(call):
                if stream == STDOUT:
                    records += self._session.gap(self._last_ns, call.count, UNDER_WAY)
        records += self._exit(self._session, self._end)
        return [*records, *self._session.end("end of strace's output", notes=self.passed_over())]

    def passed_over(self) -> list[str]:
        """Say what the file has that is not read. Gaps in the capture say what strace left out."""
        one_thread = [] if self._names_threads else [ONE_THREAD]
        return [*self._lines.left_out(), *self._streams.passed_over(), *one_thread]

    def _line(self, line: bytes) -> list[SessionRecord]:
        event = self._calls.event(line)
        if event is None:
            return []
        if isinstance(event, SystemCall):
            self._names_threads = self._names_threads or bool(event.pid)
            if not event.is_over:
                self._streams.begin(event)
                return []
        if not self._source.sha256:
            return self._event(event)  # of a file that grows each line counts at once
        return [record for ready in self._order.feed(event, self._calls) for record in self._event(ready)]

    def _event(self, event: StraceEvent) -> list[SessionRecord]:
        self._last_ns = event.wall_ns or self._last_ns
        if isinstance(event, ProcessEnd):
            return self._process_end(event)
        return [record for stream, call in self._streams.take(event) for record in self._bytes(stream, call)]

    def _bytes(self, stream: int, call: SystemCall) -> list[SessionRecord]:
        """Take what a call read or wrote on a standard stream."""
        if stream != STDERR and call.pid:
            self._threads.add(int(call.pid))
            self._alive.add(int(call.pid))
        if not call.count:
            is_end = stream == STDIN and self._session is not None
            return self._session.close_stream(call.wall_ns, STDIN, CLIENT) if is_end and self._session is not None else []
        if self._session is None:
            if stream == STDERR:
                if len(self._early) < MAX_EARLY:
                    self._early.append(call)
                return []
            first_ns = self._early[0].wall_ns if self._early else call.wall_ns
            self._session = StdioSession(self._source, 0, label="", wall_ns=first_ns, facts=_facts(call))
        early, self._early = self._early, []
        records = [record for before in early for record in self._frames(self._session, STDERR, before)]
        return [*records, *self._frames(self._session, stream, call)]

    def _frames(self, session: StdioSession, stream: int, call: SystemCall) -> list[SessionRecord]:
        data = plain(call.text)[: call.count]
        if len(data) < call.count:
            self._framings[stream] = Lines()
            return session.gap(call.wall_ns, call.count - len(data), CUT)
        framing, records = self._framings[stream], []
        for piece in framing.feed(data):
            records += session.frame(call.wall_ns, stream, piece, is_part=framing.is_part and not piece.endswith(b"\n"))
        return records

    def _process_end(self, end: ProcessEnd) -> list[SessionRecord]:
        """Take the end of a thread. The last of those that used the streams is the process, or another one with a lower number is.

        A thread ends with 0 while its process goes on, so that a last one that ends so is kept until `close`.
        """
        number = int(end.pid or b"0")
        if self._session is None or self._has_ended or not self._may_be_process(number):
            return []
        self._alive.discard(number)
        if self._alive and (end.signal is None or number not in self._threads):
            return []
        if end.signal is None and end.code == 0 and number in self._threads:
            self._end = end
            return []
        return self._exit(self._session, end)

    def _may_be_process(self, number: int) -> bool:
        return not self._threads or number in self._threads or number < min(self._threads)

    def _exit(self, session: StdioSession, end: ProcessEnd | None) -> list[SessionRecord]:
        """Take the end of the process."""
        if end is None or self._has_ended:
            return []
        self._has_ended = True
        records = session.close_stream(end.wall_ns, STDOUT, SERVER)
        return [*records, *session.exit(end.wall_ns, int(end.pid or b"0"), end.code, end.signal)]


def _facts(first: SystemCall) -> dict[str, str]:
    """Return the facts. The time of a call is that of its beginning, so that of a read says nothing without its duration."""
    begins = any(word in first.text for word in (b'initialize\\"', b"server/discover"))
    times = EXACT if first.has_end else RECONSTRUCTED
    return {
        "bytes": EXACT,
        "senders": EXACT,
        "times": MISSING if first.wall_ns is None else times,
        "ends": RECONSTRUCTED,
        "noise": EXACT,
        "process": RECONSTRUCTED,
        "connections": EXACT if first.pid else MISSING,
        "beginning": EXACT if begins else MISSING,
    }

"""Records in, lines appended to a capture: one `write` per batch of records, and no exception reaches the traffic.

Records that cannot be written are counted, and a `gap` record says so as soon as writing works again. If a line was written in part,
the rest is kept and written first, so that the file needs no repair. Records carry their time; the clock is read to time the writes.
The disk is in the path of a message: while a write hangs, the messages that come wait. Where writes take most of the time, recording
pauses instead.
"""

from __future__ import annotations

import os
import sys
from stat import S_ISREG
from time import monotonic_ns

from ...compiled import compiled
from ...plain_lines import message_lines
from ...platform.files import read_at
from ...platform.files import sync as sync_file
from ...records import Close, End, Frame, Gap, Note, Open, Partial
from .format import OpenTemplate, close_line, frame_line, open_line, record_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ...records import Record, RelayEvent

_SHORT = "the disk took only a part"
_FULL = "the store is at its quota with what is being recorded: from here on payloads are kept as length and SHA-256"

SLOW_NS = 1_000_000_000  # a write that takes longer is reported
TIMED_NS = SLOW_NS // 2  # shorter ones do not count for a pause: a busy machine makes many of them look long
WINDOW_NS, PAUSE_NS = (
    30_000_000_000,
    10_000_000_000,
)  # where writes take more than half of the one, recording pauses for the other
COMPLAINT_NS = 60_000_000_000  # between two complaints about slow writes; each of them has a note
_TAIL_BYTES = 32

_LINES: dict[type, Callable[[int, Any], bytes]] = {Frame: frame_line, Open: open_line, Close: close_line}
"""The kinds of records that come with every message; the others are rare."""

_write = os.write  # looked up once: it is called for every message
_clock_ns = monotonic_ns
_message_lines = compiled(message_lines)


class Writer:
    """A sink that appends to the capture open at descriptor `fd`.

    `header_line` goes first, with the first batch, which may be empty. `max_bytes` bounds the file: past it frames keep their
    length and SHA-256 but not their bytes (0: no bound). `complain` is called with one line when recording fails for the first
    time, when writes are slow, and when others have harmed the file. `later` is called with `sync` after the first write since the
    last sync; it decides when to call `sync`. Writes are timed if the monotonic time is given at which `at_ns` was 0, as `begin_ns`.
    With its `path`, others' harm to the file is noticed at each sync.
    """

    __slots__ = (
        "_begin_ns", "_complain", "_complain_ns", "_fd", "_gap", "_gaps", "_harm", "_header_line", "_late_ns", "_logs", "_max_bytes",
        "_news", "_others", "_over", "_owed", "_path", "_plain", "_resume_ns", "_silent", "_size", "_slow", "_spares", "_streams",
        "_tail", "_unsynced", "_until", "_why_paused", "failed", "later", "number",
    )  # fmt: skip

    def __init__(
        self,
        fd: int,
        header_line: bytes,
        *,
        max_bytes: int = 0,
        complain: Callable[[str], None] = lambda line: None,
        later: Callable[[Callable[[], None]], None] = lambda sync: None,
        begin_ns: int | None = None,
        path: str = "",
    ) -> None:
        self._fd = fd
        self._owed = self._header_line = header_line
        self._path = path
        self._tail = (0, header_line)  # the last bytes at the last look, and their place
        self._harm = 0  # the size of the file before others removed or cut it; set by the thread that looks
        self._streams: dict[int, Open | tuple[int, str]] = {}  # those that are open, which a new file has to name again
        self._begin_ns = begin_ns or 0
        self._late_ns = sys.maxsize if begin_ns is None else begin_ns + TIMED_NS  # what a write ends after, less its `at_ns`
        self._slow: list[tuple[int, int]] = []  # when long writes ended, and how long they took
        self._resume_ns = self._complain_ns = 0  # when a pause ends; when slow writes may be complained of again
        self._why_paused = ""
        self._max_bytes = max_bytes
        self._complain = complain
        self.later = later
        self._gap: Gap | None = None
        self._over = False
        self._spares = False  # as if over, until there is room in the store again; as `_news` set by another thread
        self._news: list[tuple[str, str]] = []  # topics and texts of notes that go before the next records
        self._plain = False  # nothing owed, no gap, not over: records go as they come
        self._size = 0  # bytes written here but those of `frame` and `frames`, which never write where there is a bound
        self._unsynced = False  # something was written since the last sync, and the next one is ordered
        self._until = 0  # below this number a frame is written and counted, and nothing else is looked at
        self._others = 0  # records that are no frames
        self._silent = 0  # frames that are no message's last: parts, and the server's stderr
        self._gaps = 0
        self._logs: set[int] = set()  # the streams that are a server's stderr
        self.number = 1
        self.failed = False

    def frame(self, stream: int, at_ns: int, data: bytes) -> None:
        """Append a whole frame that came in one read. Not for stderr."""
        self.events((), stream, at_ns, [data], False)

    def event(self, stream: int, at_ns: int, data: bytes) -> None:
        """Append a whole event of SSE that came as one HTTP chunk."""
        self.events((), stream, at_ns, [data])

    def pass_event(
        self, relay_event: RelayEvent, stream: int, at_ns: int, source: int, target: int
    ) -> tuple[bytes, bool] | None:
        """Append an event, as `event` does, that `relay_event` reads from the socket `source` and sends to the socket `target`.

        It is written before it is sent. Returns None if all was done; else what was read, or the rest of it that is to be sent, and
        whether it is recorded: if not, nothing was done with it.
        """
        number = self.number
        left = relay_event(number, stream, at_ns, source, self._fd if number < self._until else -1, target)
        if left is None:
            self.number = number + 1
            if _clock_ns() > at_ns + self._late_ns:
                self._took_long(at_ns)
            return None
        data, event, written, sent = left
        if not event or written <= 0:
            return data, False
        line = _message_lines(number, stream, at_ns, "", [event], "", True)
        if written == len(line):
            self.number = number + 1
        else:
            self._short(_frames(stream, at_ns, [event], True), line, written, _SHORT)
        return data[max(sent, 0) :], True

    def events(self, before: Sequence[Record], stream: int, at_ns: int, events: list[bytes], is_sse: bool = True) -> None:  # noqa: FBT001, FBT002
        """Append records and, after them, events of the same read in a chunk each, or whole frames: in a third of a call's time."""
        number = self.number
        if number < self._until:
            lines = []
            try:
                for record in before:
                    lines.append(_LINES.get(record.__class__, record_line)(number, record))
                    number += 1
                lines.append(_message_lines(number, stream, at_ns, "", events, "", is_sse))
                data = b"".join(lines)
                written = _write(self._fd, data)
            except (UnicodeDecodeError, OSError):
                pass
            else:
                if written == len(data):
                    if before:
                        self._took(before, 0)
                    self.number += len(events)
                    if _clock_ns() > at_ns + self._late_ns:
                        self._took_long(at_ns)
                    return
                self._short((*before, *_frames(stream, at_ns, events, is_sse)), data, written, _SHORT)
                return
        self((*before, *_frames(stream, at_ns, events, is_sse)))

    def template(self, record: Open, length: str) -> OpenTemplate | None:
        """Render an `open` record for `message`, or return None if it cannot be; see `OpenTemplate`."""
        try:
            return OpenTemplate(record, length)
        except ValueError:
            return None

    def message(self, transaction: int, stream: int, at_ns: int, opening: str, data: bytes, by: str, is_sse: bool) -> bool:  # noqa: FBT001
        """Append `open`, frame and `close` of one stream, each if there is one, or nothing at all: then return False.

        As a call with these records, in a third of the time. `opening` is from a template, and `by` closed the stream in good order.
        If it `is_sse`, the data is an event that came as one HTTP chunk.
        """
        number = self.number
        if number >= self._until:
            return False
        try:
            lines = _message_lines(number, stream, at_ns, opening, [data] if data else [], by, is_sse)
            written = _write(self._fd, lines)
        except (UnicodeDecodeError, OSError):
            return False
        if written == len(lines):
            others = bool(opening) + bool(by)
            self.number = number + others + bool(data)
            self._others += others
            if not by and opening:
                self._streams[stream] = at_ns, opening
            elif by and not opening:
                self._streams.pop(stream, None)
            if _clock_ns() > at_ns + self._late_ns:
                self._took_long(at_ns)
        else:
            records = _message_records(stream, at_ns, opening, data, by)
            self._short(records, lines, written, _SHORT)
        return True

    def frames(self, stream: int, at_ns: int, frames: list[bytes]) -> None:
        """Append several whole frames of one read. Not for stderr."""
        self.events((), stream, at_ns, frames, False)

    def __call__(self, records: Sequence[Record]) -> None:
        """Append `records` with one write. A failure is remembered and reported once, never raised."""
        begun_ns = _clock_ns()
        if begun_ns < self._resume_ns:
            self._lose(records if self._gap is None else [self._gap, *records], self._why_paused)
            return
        if self._harm:
            try:
                self._mend(records[0].at_ns if records else 0)
            except OSError as error:
                lost = records if self._gap is None else [self._gap, *records]
                self._short(lost, b"", 0, f"no new file can be made: {error.strerror or error}")
                return
        if not self._plain or self._spares or self._news:
            records = self._amended(records)
        number = self.number
        lines = [self._owed] if self._owed else []  # one line alone is joined without a copy
        for record in records:
            lines.append(_LINES.get(record.__class__, record_line)(number, record))
            number += 1
        data = b"".join(lines)
        try:
            written = _write(self._fd, data)
        except OSError as error:
            self._short(records, data, 0, error.strerror or str(error))
            return
        if written != len(data):
            self._short(records, data, written, _SHORT)
            return
        if not self._plain:
            self._owed, self._gap, self._plain = b"", None, not self._over
        self._took(records, written)
        if self._plain and not self._max_bytes and not self._spares and not self._harm:
            self._until = sys.maxsize
        at_ns = begun_ns - self._begin_ns
        if self._resume_ns or _clock_ns() > at_ns + self._late_ns:
            self._took_long(at_ns)
        if not self._unsynced:  # checked last: a sync that ended meanwhile, in its own thread, has reset `_until`
            self._unsynced = True
            self.later(self.sync)

    def close(self, at_ns: int, why: str = "") -> None:
        """Write the `end` record, wait for the disk, and close the descriptor."""
        self._resume_ns = 0
        self._look()
        self(())  # a gap that is due, so that it is counted
        messages = self.frame_count - self._silent
        counts = End(at_ns=at_ns, frames=self.frame_count, bytes=self.file_bytes, messages=messages, gaps=self._gaps, why=why)
        self((counts,))
        self.later = lambda sync: None
        self.sync()
        fd, self._fd = self._fd, -1  # a sync that is still due must not meet another file's descriptor
        try:
            os.close(fd)
        except OSError:
            pass

    def sync(self) -> None:
        """Wait until all is on disk. Errors are left to the next write, which fails too."""
        self._until, self._unsynced = 0, False
        try:
            sync_file(self._fd)
        except (OSError, ValueError):  # the latter where the capture has been closed meanwhile
            pass
        self._look()

    def _look(self) -> None:
        """Notice that the file was removed, or that what was in it at the last look is not there any more."""
        if self._owed or self._harm or not self._path:
            return
        offset, tail = self._tail
        try:
            facts = os.fstat(self._fd)
            if not S_ISREG(facts.st_mode):
                return
            is_cut = read_at(self._fd, len(tail), offset) != tail
            at = max(0, facts.st_size - _TAIL_BYTES)
            self._tail = at, read_at(self._fd, _TAIL_BYTES, at)
        except OSError:
            return  # it has been closed
        if is_cut or not facts.st_nlink:
            what = "cut by another program; the records cut off are lost" if facts.st_nlink else "removed; a new one is made"
            line = f"mcpspy: {self._path}, which is being recorded, was {what}"
            self._harm, self._until = offset + len(tail), 0
            self._complain(line)

    @property
    def file_bytes(self) -> int:
        """The size of the capture; 0 if that is unknown."""
        try:
            return os.fstat(self._fd).st_size
        except OSError:
            return 0

    def keep_payloads(self, keeps: bool) -> None:  # noqa: FBT001 - the name says what it is
        """Set whether frames keep their bytes, from about now on. For the quota of the store; called by the thread that syncs.

        A record that the other thread writes at this moment may undo this for up to a second, until the next sync.
        """
        if keeps is not self._spares:
            return
        self._spares = not keeps
        self._news.append(("quota", "there is room again: payloads are kept" if keeps else _FULL))
        self._until = 0

    @property
    def frame_count(self) -> int:
        """The number of frame records that were written."""
        return self.number - 1 - self._others

    def _took(self, records: Sequence[Record], written: int) -> None:
        """Count records that are in the file now."""
        self.number += len(records)
        for record in records:
            if isinstance(record, Frame):
                if record.part or record.stream in self._logs:
                    self._silent += 1
                continue
            self._others += 1
            if isinstance(record, Gap):
                self._gaps += 1
            elif isinstance(record, Open):
                self._streams[record.stream] = record
                if record.name == "stderr":
                    self._logs.add(record.stream)
            elif isinstance(record, Close):
                self._streams.pop(record.stream, None)
        self._size += written
        if self._max_bytes and self._size > self._max_bytes and not self._over:
            self._over, self._plain = True, False
            text = f"--max-size {self._max_bytes} is reached: from here on payloads are kept as length and SHA-256"
            self((Note(at_ns=records[-1].at_ns if records else 0, topic="max-size", text=text),))

    def _amended(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return `records` with a due gap before them, and without payloads past the size bound."""
        amended = [_without_payload(record) for record in records] if self._over or self._spares else list(records)
        if self._news and records:
            news, self._news = self._news, []
            amended[:0] = [Note(at_ns=records[0].at_ns, topic=topic, text=text) for topic, text in news]
        if self._gap is not None:
            self._gap.at_ns = records[0].at_ns if records else self._gap.at_ns
            amended.insert(0, self._gap)
        return amended

    def _short(self, records: Sequence[Record], data: bytes, written: int, why: str) -> None:
        """Remember what a partial or failed write left out."""
        owed_bytes, begun, rest = len(self._owed), 0, self._owed[written:]
        if written >= owed_bytes:
            begun = data.count(b"\n", owed_bytes, written)  # lines in the file: whole, or in part, their rest being owed
            if written > owed_bytes and not data.endswith(b"\n", 0, written):
                rest = data[written : data.index(b"\n", written) + 1]
                begun += 1
        kept = records[:begun]
        self._owed, self._plain, self._until = rest, False, 0
        self._lose(records[len(kept) :], why)
        self._took(kept, written)
        if not self.failed:
            self.failed = True
            self._complain(f"mcpspy: recording stopped ({why}); traffic goes on unrecorded")

    def _mend(self, at_ns: int) -> None:
        """Go on in a file that can be read, after others have harmed ours. Raises: OSError: if none can be made."""
        from .mending import mended  # which hardly any tap needs

        lost = Gap(at_ns=at_ns, since_ns=0, frames=self.frame_count, bytes=self._harm, why="")
        new = mended(self._fd, self._path, self._header_line, self._streams, self.number, lost)
        self._harm, self._tail, self._plain = 0, (0, self._header_line), False
        if new is None:
            self._news.append(("cut", "another program cut this file: records before this one are missing"))
            return
        path, self._owed, frames, self._silent = new
        if path != self._path:
            self._path = path
            self._complain(f"mcpspy: recording to {path}")
        self._others, self._gaps = self.number - 1 - frames, 1
        if not os.fstat(self._fd).st_nlink:
            self._path = ""  # this file system does not count names: no file on it ever looks as if it were there

    def _took_long(self, at_ns: int) -> None:
        """Report that a write that began at `at_ns` took long, and pause if that is the rule. End a pause after one that did not."""
        now_ns = _clock_ns()
        end_ns = now_ns - self._begin_ns
        took_ns = end_ns - at_ns
        self._slow = [slow for slow in self._slow if slow[0] > end_ns - WINDOW_NS] + [(end_ns, took_ns)]
        if took_ns > SLOW_NS:
            text = f"a write to the store took {took_ns / 1e9:.1f} s, and messages waited for it"
            self._news.append(("slow-store", text))
            self._until = 0
            if now_ns >= self._complain_ns:
                self._complain_ns = now_ns + COMPLAINT_NS
                self._complain(f"mcpspy: {text}")
        elif self._resume_ns:
            self._slow, self._resume_ns = [], 0
        total_ns = sum(took for _, took in self._slow)
        if self._resume_ns or total_ns > WINDOW_NS // 2:
            self._why_paused = f"writes to the store took {min(total_ns, WINDOW_NS) / 1e9:.0f} of the last 30 s"
            if not self._resume_ns:
                self._complain(f"mcpspy: recording pauses ({self._why_paused}); mcpspy tries again every 10 s; traffic goes on")
            self._resume_ns, self._until, self._plain = now_ns + PAUSE_NS, 0, False

    def _lose(self, lost: Sequence[Record], why: str) -> None:
        """Start or lengthen the gap by `lost`, whose first member may be the gap that could not be written."""
        gap: Gap | None = None
        for record in lost:
            if record.__class__ is Gap:
                gap = record
                continue
            if gap is None:
                gap = Gap(at_ns=record.at_ns, since_ns=record.at_ns, frames=0, bytes=0, why=why)
            if record.__class__ is Frame:
                gap.frames += 1
                gap.bytes += record.length
        self._gap = gap


def _message_records(stream: int, at_ns: int, opening: str, data: bytes, by: str) -> list[Record]:
    """Make records for counting what was lost of a message."""
    records: list[Record] = [Open(at_ns=at_ns, name="", sender="client", stream=stream)] if opening else []
    if data:
        records.append(Frame(stream, at_ns, at_ns, data))
    if by:
        records.append(Close(at_ns=at_ns, by=by, how="eof", stream=stream))
    return records


def _frames(stream: int, at_ns: int, frames: list[bytes], is_sse: bool) -> list[Frame]:  # noqa: FBT001
    if is_sse:
        return [Frame(stream, at_ns, at_ns, data, chunks=(len(data),)) for data in frames]
    return [Frame(stream, at_ns, at_ns, data) for data in frames]


def _without_payload(record: Record) -> Record:
    """Return `record` with the length and digest of its bytes instead of them."""
    if isinstance(record, Partial):
        return Partial(at_ns=record.at_ns, stream=record.stream, first_ns=record.first_ns, data=b"", length=record.length)
    if not isinstance(record, Frame):
        return record
    from hashlib import sha256  # 3 ms to import, and hardly ever wanted

    rare = {name: record.rare[name] for name in ("chunks", "injected", "extra") if name in record.rare}
    digest = sha256(record.data).hexdigest()
    return Frame(record.stream, record.at_ns, record.first_ns, b"", record.part, length=len(record.data), sha256=digest, **rare)

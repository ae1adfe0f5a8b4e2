"""Records in, lines appended to a capture: one `write` per batch of records, and no exception reaches the traffic.

Records that cannot be written are counted, and a `gap` record says so as soon as writing works again. If a line was written in part,
the rest is kept and written first, so that the file needs no repair. No clock is read: records carry their time.
"""

from __future__ import annotations

import os
import sys

from ...compiled import compiled
from ...plain_lines import message_lines
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

_LINES: dict[type, Callable[[int, Any], bytes]] = {Frame: frame_line, Open: open_line, Close: close_line}
"""The kinds of records that come with every message; the others are rare."""

_write = os.write  # looked up once: it is called for every message
_message_lines = compiled(message_lines)


class Writer:
    """A sink that appends to the capture open at descriptor `fd`.

    `header_line` goes first, with the first batch, which may be empty. `max_bytes` bounds the file: past it frames keep their
    length and SHA-256 but not their bytes (0: no bound). `complain` is called with one line when recording fails for the first
    time. `later` is called with `sync` after the first write since the last sync; it decides when to call `sync`.
    """

    __slots__ = (
        "_complain", "_fd", "_gap", "_gaps", "_logs", "_max_bytes", "_news", "_others", "_over", "_owed", "_plain", "_silent",
        "_size", "_spares", "_unsynced", "_until", "failed", "later",
        "number",
    )  # fmt: skip

    def __init__(
        self,
        fd: int,
        header_line: bytes,
        *,
        max_bytes: int = 0,
        complain: Callable[[str], None] = lambda line: None,
        later: Callable[[Callable[[], None]], None] = lambda sync: None,
    ) -> None:
        self._fd = fd
        self._owed = header_line
        self._max_bytes = max_bytes
        self._complain = complain
        self.later = later
        self._gap: Gap | None = None
        self._over = False
        self._spares = False  # as if over, until there is room in the store again; as `_news` set by another thread
        self._news = ""  # text of a note that goes before the next records
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
        """Append a whole frame that came in one read: as a call with one plain `Frame`, in half the time. Not for stderr."""
        number = self.number
        if number < self._until:
            try:
                line = _message_lines(number, stream, at_ns, "", [data], "", False)
                written = _write(self._fd, line)
            except (UnicodeDecodeError, OSError):
                pass  # `__call__` handles it
            else:
                if written == len(line):
                    self.number = number + 1
                else:
                    self._short((Frame(stream, at_ns, at_ns, data),), line, written, _SHORT)
                return
        self((Frame(stream, at_ns, at_ns, data),))

    def event(self, stream: int, at_ns: int, data: bytes) -> None:
        """Append a whole event of SSE that came as one HTTP chunk: as a call with such a `Frame`, in half the time."""
        number = self.number
        if number < self._until:
            try:
                line = _message_lines(number, stream, at_ns, "", [data], "", True)
                written = _write(self._fd, line)
            except (UnicodeDecodeError, OSError):
                pass
            else:
                if written == len(line):
                    self.number = number + 1
                else:
                    self._short((Frame(stream, at_ns, at_ns, data, chunks=(len(data),)),), line, written, _SHORT)
                return
        self((Frame(stream, at_ns, at_ns, data, chunks=(len(data),)),))

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
            return None
        data, event, written, sent = left
        if not event or written <= 0:
            return data, False
        line = _message_lines(number, stream, at_ns, "", [event], "", True)
        if written == len(line):
            self.number = number + 1
        else:
            self._short(_chunked(stream, at_ns, [event]), line, written, _SHORT)
        return data[max(sent, 0) :], True

    def events(self, before: Sequence[Record], stream: int, at_ns: int, events: list[bytes]) -> None:
        """Append records and, after them, events of the same read in a chunk each: in a third of a frame's time."""
        number = self.number
        if number < self._until:
            lines = []
            try:
                for record in before:
                    lines.append(_LINES.get(record.__class__, record_line)(number, record))
                    number += 1
                lines.append(_message_lines(number, stream, at_ns, "", events, "", True))
                data = b"".join(lines)
                written = _write(self._fd, data)
            except (UnicodeDecodeError, OSError):
                pass
            else:
                if written == len(data):
                    self._took(before, 0)
                    self.number += len(events)
                    return
                self._short((*before, *_chunked(stream, at_ns, events)), data, written, _SHORT)
                return
        self((*before, *_chunked(stream, at_ns, events)))

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
        else:
            records = _message_records(stream, at_ns, opening, data, by)
            self._short(records, lines, written, _SHORT)
        return True

    def frames(self, stream: int, at_ns: int, frames: list[bytes]) -> None:
        """Append several whole frames of one read. Not for stderr."""
        number = self.number
        if number < self._until:
            try:
                lines = _message_lines(number, stream, at_ns, "", frames, "", False)
                written = _write(self._fd, lines)
            except (UnicodeDecodeError, OSError):
                pass
            else:
                if written == len(lines):
                    self.number = number + len(frames)
                else:
                    self._short([Frame(stream, at_ns, at_ns, data) for data in frames], lines, written, _SHORT)
                return
        self([Frame(stream, at_ns, at_ns, data) for data in frames])

    def __call__(self, records: Sequence[Record]) -> None:
        """Append `records` with one write. A failure is remembered and reported once, never raised."""
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
        if self._plain and not self._max_bytes and not self._spares:
            self._until = sys.maxsize
        if not self._unsynced:  # checked last: a sync that ended meanwhile, in its own thread, has reset `_until`
            self._unsynced = True
            self.later(self.sync)

    def close(self, at_ns: int, why: str = "") -> None:
        """Write the `end` record, wait for the disk, and close the descriptor."""
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
        self._news = "there is room again: payloads are kept" if keeps else _FULL
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
            elif isinstance(record, Open) and record.name == "stderr":
                self._logs.add(record.stream)
        self._size += written
        if self._max_bytes and self._size > self._max_bytes and not self._over:
            self._over, self._plain = True, False
            text = f"--max-size {self._max_bytes} is reached: from here on payloads are kept as length and SHA-256"
            self((Note(at_ns=records[-1].at_ns if records else 0, topic="max-size", text=text),))

    def _amended(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return `records` with a due gap before them, and without payloads past the size bound."""
        amended = [_without_payload(record) for record in records] if self._over or self._spares else list(records)
        if self._news and records:
            amended.insert(0, Note(at_ns=records[0].at_ns, topic="quota", text=self._news))
            self._news = ""
        if self._gap is not None:
            self._gap.at_ns = records[0].at_ns if records else self._gap.at_ns
            amended.insert(0, self._gap)
        return amended

    def _short(self, records: Sequence[Record], data: bytes, written: int, why: str) -> None:
        """Remember what a partial or failed write left out."""
        begun = data.count(b"\n", 0, written)  # lines in the file: whole, or in part, their rest being owed
        if written and not data.endswith(b"\n", 0, written):
            rest = data[written : data.index(b"\n", written) + 1]
            begun += 1
        else:
            rest = self._owed if not written else b""
        kept = records[: max(0, begun - 1) if self._owed else begun]
        self._owed, self._plain, self._until = rest, False, 0
        self._lose(records[len(kept) :], why)
        self._took(kept, written)
        if not self.failed:
            self.failed = True
            self._complain(f"mcpspy: recording stopped ({why}); traffic goes on unrecorded")

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


def _chunked(stream: int, at_ns: int, events: list[bytes]) -> list[Frame]:
    return [Frame(stream, at_ns, at_ns, data, chunks=(len(data),)) for data in events]


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

"""Verification of a capture: a file in; out whether it is intact, and if not, what was lost and where. The file is not changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO

from ...records import Damage, End, Frame, Gap, Header, Record
from ..store.folder import is_live
from .reader import CHUNK_BYTES, Reader

MAX_PROBLEMS = 1_000
"""So many problems are kept; more are counted."""


class Status(StrEnum):
    """State of a capture: complete; something not recorded or cut off; or something damaged."""

    INTACT = "intact"
    INCOMPLETE = "incomplete"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong, or worth knowing (then `status` is intact). `line` counts from 1, `offset` is its first byte."""

    status: Status
    reason: str
    text: str
    line: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsableLine:
    """A line of the file that can be used: its bytes are `file[offset:end]`."""

    offset: int
    end: int
    record: Record
    lost: int = 0
    """The number of records that are missing right before this one."""

    lost_bytes: int = 0
    """The number of bytes of unusable lines right before this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The result. `records` and `frames` count what can be used; `left_out_lines` and `left_out_bytes` count what cannot."""

    path: str
    size_bytes: int
    live: bool
    header: Header | None
    end: End | None
    records: int
    frames: int
    problems: tuple[Problem, ...]
    more_problems: int
    left_out_lines: int
    left_out_bytes: int
    status: Status


def verify(path: str, progress: Callable[[int], None] | None = None) -> Summary:
    """Read the capture at `path` from its first byte to its last. `progress` gets the number of further bytes read.

    Raises: CaptureError: if it is no capture, or needs a newer mcpspy. OSError: if it cannot be read.
    """
    live = is_live(path)
    with open(path, "rb") as file:
        return verify_file(file, path, progress, live=live)


def verify_file(file: BinaryIO, name: str, progress: Callable[[int], None] | None = None, *, live: bool = False) -> Summary:
    """Do the same for an open file, which is read to its end. Raises: CaptureError, OSError."""
    inspector = Inspector(name)
    for line in usable_lines(inspector, file, live=live):
        if progress is not None:
            progress(line.end - line.offset)
    return inspector.summary(name, live=live)


def usable_lines(inspector: Inspector, file: BinaryIO, *, live: bool = False) -> Iterator[UsableLine]:
    """Yield the lines of the file that can be used, while `inspector` takes note of the others. Raises: CaptureError, OSError."""
    while piece := file.readline(CHUNK_BYTES):
        yield from inspector.feed(piece)
    yield from inspector.close(live=live)


class Inspector:
    """A reader of a capture, in pieces that end at its newlines at the latest, that finds what is wrong and which lines can be used.

    `feed` and `close` return the usable line that was completed, if any. `lost` and `lost_bytes` count what is unusable after it.
    `as_written` is true while nothing was edited, damaged or lost: then there must be as many frames as the `end` record counts.
    """

    def __init__(self, path: str) -> None:
        self._reader = Reader(path)
        self._pending: list[Record] = []
        self._offset = 0
        self._begin = 0  # of the line that is being read
        self._line = 0
        self._next = 1
        self._problems: list[Problem] = []
        self._more = 0
        self._left_out = (0, 0)
        self.as_written = True
        self.lost = 0
        self.lost_bytes = 0
        self.header: Header | None = None
        self.end: End | None = None
        self.records = 0
        self.frames = 0
        self.status = Status.INTACT

    def feed(self, piece: bytes) -> list[UsableLine]:
        """Take the next bytes of the file, which have no newline but at their end."""
        self._pending += self._reader.feed(piece)
        self._offset += len(piece)
        return self._line_ended() if piece.endswith(b"\n") else []

    def close(self, *, live: bool) -> list[UsableLine]:
        """Take the end of the file. `live`: a tap writes it, so missing records may still come."""
        self._pending += self._reader.close()
        lines = self._line_ended() if self._pending or self._offset > self._begin else []
        if self.end is None:
            killed = "there is no end record: the tap was killed, or the rest was cut off"
            self._found(Status.INCOMPLETE, "end", "a tap still records into it" if live else killed, self._offset)
        return lines

    def summary(self, path: str, *, live: bool) -> Summary:
        """Return the result."""
        return Summary(
            path=path,
            size_bytes=self._offset,
            live=live,
            header=self.header,
            end=self.end,
            records=self.records,
            frames=self.frames,
            problems=tuple(self._problems),
            more_problems=self._more,
            left_out_lines=self._left_out[0],
            left_out_bytes=self._left_out[1],
            status=self.status,
        )

    def _line_ended(self) -> list[UsableLine]:
        self._line += 1
        records, self._pending = self._pending, []
        begin, self._begin = self._begin, self._offset
        usable: Record | None = None
        counts = True
        for record in records:
            if not isinstance(record, Damage):
                usable, counts = record, False
            elif record.is_repeated:
                counts = False
                self._found(Status.DAMAGED, "number" if self.end is None else "end", record.text, begin)
            elif record.reason != "number":  # missing records are counted here, each of them
                self._found(_STATUS.get(record.reason, Status.DAMAGED), record.reason, record.text, begin)
        if usable is None or not self._in_place(usable, begin):
            self._leave_out(self._offset - begin, counts=counts and self._offset - begin > 1)
            return []
        line = UsableLine(
            offset=begin, end=self._offset, record=usable, lost=self._missing(usable, begin), lost_bytes=self.lost_bytes
        )
        self.lost = self.lost_bytes = 0
        self._count(usable, begin)
        return [line]

    def _in_place(self, record: Record, begin: int) -> bool:
        """Return false for a record that is out of place: it came before, or the capture has ended."""
        if isinstance(record, Header):
            return True
        if self.end is not None:
            self._found(Status.DAMAGED, "end", f"record {record.number} comes after the end record", begin)
        elif record.number < self._next:
            self._found(Status.DAMAGED, "number", f"record {record.number} is out of order", begin)
        else:
            return True
        return False

    def _leave_out(self, size_bytes: int, *, counts: bool) -> None:
        self.as_written = False
        self._left_out = self._left_out[0] + 1, self._left_out[1] + size_bytes
        if counts and self.end is None and self._line > 1:
            self.lost += 1
            self.lost_bytes += size_bytes

    def _missing(self, record: Record, begin: int) -> int:
        """Count the numbers that are missing before `record`, and report them."""
        if isinstance(record, Header):
            return 0
        missing = record.number - self._next - (record.missing if isinstance(record, Gap) else 0)
        if missing > 0:
            self.as_written = False
            which = f"record {self._next} is" if missing == 1 else f"records {self._next} to {self._next + missing - 1} are"
            self._found(Status.DAMAGED, "number", f"{which} missing", begin)
        return max(0, missing)

    def _count(self, record: Record, begin: int) -> None:
        match record:
            case Header():
                self.header = record
                return
            case Frame():
                self.frames += 1
            case Gap():
                lost = f"{record.frames} frames, {record.bytes} bytes"
                self._found(
                    Status.INCOMPLETE,
                    "gap",
                    f"{lost} are {'lost' if record.was_recorded else 'not recorded'}: {record.why}",
                    begin,
                )
            case End():
                self.end = record
                if self.as_written and record.frames != self.frames:
                    text = f"the end record counts {record.frames} frames; there are {self.frames}"
                    self._found(Status.DAMAGED, "end", text, begin)
        self.records += 1
        self._next = record.number + 1

    def _found(self, status: Status, reason: str, text: str, offset: int) -> None:
        if reason == "edited":
            self.as_written = False
        if _WORSE.index(status) > _WORSE.index(self.status):
            self.status = status
        if len(self._problems) == MAX_PROBLEMS:
            self._more += 1
            return
        self._problems.append(Problem(status=status, reason=reason, text=text, line=self._line, offset=offset))


_WORSE = (Status.INTACT, Status.INCOMPLETE, Status.DAMAGED)
_STATUS = {"torn": Status.INCOMPLETE, "edited": Status.INTACT}
"""The state of a capture by the reason of a damage record; for every other reason it is damaged."""

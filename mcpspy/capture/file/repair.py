"""A damaged capture in, a new file with its sound lines out. The old file is not changed, and no file is overwritten.

Sound lines are copied byte for byte, numbers included. Where records are missing, a `gap` record takes their place, with the number
of the last of them, so that the new file reads without damage. The `end` record is copied if nothing was left out before it;
otherwise a new one counts what is there. A capture without an `end` record gets none.
"""

import os
from dataclasses import dataclass
from typing import BinaryIO

from ...errors import RepairError
from ...platform.files import BINARY
from ...records import End, Gap, Header, Record
from ..store.catalog import entry
from ..store.folder import EXTENSION
from .format import header_line, record_line
from .reader import CHUNK_BYTES, RecordCounts, seal_holds
from .verify import Inspector, UsableLine, usable_lines

WHY = "repaired"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairResult:
    """The result of a repair: how many lines were copied, and how many records are marked as missing."""

    path: str
    lines: int
    missing: int


def repair(path: str, out: str) -> RepairResult:
    """Copy the sound lines of the capture at `path` into a new file `out`.

    Raises: RepairError: if `out` exists, or no line is sound. CaptureError: if `path` is no capture. OSError: if `path` cannot be
    read, or `out` cannot be written.
    """
    try:
        target = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600)
    except FileExistsError as error:
        raise RepairError(f"{out} exists; name a file that does not") from error
    try:
        with open(path, "rb") as source, open(path, "rb") as lines, open(target, "wb") as file:
            inspector = Inspector(path)
            copy = _Copy(inspector, source, file)
            for line in usable_lines(inspector, lines):
                copy.take(line)
            copy.finish()
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(out)
        raise
    if not copy.lines:
        os.unlink(out)
        raise RepairError(f"nothing in {path} is sound, so nothing was written; record the session again")
    return RepairResult(path=out, lines=copy.lines, missing=copy.missing)


class _Copy:
    """The new file: `take` the usable lines one by one, then `finish`."""

    def __init__(self, inspector: Inspector, source: BinaryIO, file: BinaryIO) -> None:
        self._inspector = inspector
        self._source = source
        self._file = file
        self._read_to = 0  # where the next line begins if nothing is left out
        self._changed = False
        self._headed = False
        self._number = 0
        self._at_ns = 0
        self._counts = RecordCounts()
        self.lines = 0
        self.missing = 0

    def take(self, line: UsableLine) -> None:
        """Copy a usable line, and mark records that are missing before it."""
        self._changed |= line.offset != self._read_to
        self._read_to = line.end
        self.lines += 1
        record = line.record
        if isinstance(record, Header):
            self._copy_header(line, record)
            return
        self._make_header()
        if line.lost:
            gap_missing = record.missing if isinstance(record, Gap) else 0
            self._mark(record.number - 1 - gap_missing, line.lost, line.lost_bytes, record.at_ns)
        if isinstance(record, End) and (self._changed or self._miscounts(record)):
            self._file.write(record_line(record.number, self._end(record)))
        else:
            self._copy(line)
        self._count(record)

    def finish(self) -> None:
        """Mark records that are missing at the end of a capture without an `end` record."""
        lost = self._inspector.lost
        if lost:
            self._make_header()
            self._mark(self._number + lost, lost, self._inspector.lost_bytes, self._at_ns)

    def _miscounts(self, end: End) -> bool:
        return self._inspector.as_written and end.frames != self._counts.frames

    def _copy(self, line: UsableLine) -> None:
        self._source.seek(line.offset)
        left = line.end - line.offset
        last = b""
        while left and (piece := self._source.read(min(left, CHUNK_BYTES))):
            self._file.write(piece)
            left -= len(piece)
            last = piece
        if not last.endswith(b"\n"):
            self._file.write(b"\n")

    def _copy_header(self, line: UsableLine, header: Header) -> None:
        self._source.seek(line.offset)
        if seal_holds(self._source.read(line.end - line.offset).rstrip(b"\n")) is False:
            self._changed = True
            self._file.write(header_line(header))
        else:
            self._copy(line)
        self._headed = True

    def _make_header(self) -> None:
        """Write a new header with what is known, if the old one is lost."""
        if self._headed:
            return
        self._headed = self._changed = True
        path = str(self._source.name)
        capture = entry(path)
        begin_ns = capture.begin_ns - capture.last_ns if capture else 0
        label = os.path.basename(path).removesuffix(EXTENSION)
        extra = {WHY: "the header was lost"}
        self._file.write(
            header_line(
                Header(
                    capture_id="", wall_ns=begin_ns, monotonic_ns=0, pid=0, tapped={}, label=label, redaction="", extra=extra
                )
            )
        )

    def _mark(self, number: int, lost: int, lost_bytes: int, at_ns: int) -> None:
        """Put a gap in the place of `lost` records, the last of which was `number`."""
        why = f"{WHY}: unusable lines were left out" if lost_bytes else f"{WHY}: records were missing"
        gap = Gap(at_ns=at_ns, since_ns=self._at_ns, frames=lost, bytes=lost_bytes, why=why, missing=lost - 1)
        self._file.write(record_line(number, gap))
        self._changed = True
        self._counts.gaps += 1
        self.missing += lost

    def _end(self, old: End) -> End:
        self._file.flush()
        size_bytes = os.fstat(self._file.fileno()).st_size
        counts = self._counts
        return End(at_ns=old.at_ns, frames=counts.frames, bytes=size_bytes, messages=counts.messages, gaps=counts.gaps, why=WHY)

    def _count(self, record: Record) -> None:
        self._number = record.number
        self._at_ns = record.at_ns
        self._counts.feed(record)

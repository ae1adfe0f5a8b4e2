"""Bytes of a capture in, records out: a capture of any released version, whole or while it grows, however damaged.

A line that cannot be used becomes a `Damage` record in its place, and reading goes on with the next. The only exception is
`CaptureError`, and only for the header.
"""

from __future__ import annotations

import json
import sys
from array import array
from binascii import crc32
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from operator import itemgetter
from os import PathLike, fspath
from typing import Any, BinaryIO, Final, TypeAlias

import msgspec

from ...errors import CaptureError
from ...lazy_pattern import lazy_pattern
from ...records import Damage, Frame, Gap, Open, Record
from ...usual_lines import USUAL_LINES, FrameLine, UsualLine, decode_line, decode_lines
from .format import FORMAT, header_from, record_from
from .frames import FrameFile, frame_file

RecordOrLine: TypeAlias = Record | UsualLine
"""A record, or the usual line that it is on."""

CHUNK_BYTES = 1 << 20

_BATCH_BYTES = 1 << 17
"""So much of a file is read and cut into lines at once: what fits into the processor's cache is read a third faster than 1 MiB."""

MAX_LINE_BYTES = 1 << 26
"""Longer lines are damage. A frame is written in parts of 1 MiB, which escaping makes 6 MiB at most."""

LONG_BYTES = 1 << 10
"""Of a line that is longer, the record knows where it is. Shorter ones weigh little more than what would have to be kept of them."""

_CRC_MEMBER = b',"crc":"'
_CRC_BYTES = len(',"crc":"01234567"}')
_END_BYTES = _CRC_BYTES + len("\n")
_body_of = itemgetter(slice(-_END_BYTES))
_seal_of = itemgetter(slice(-_END_BYTES, None))


UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)

_decode_any = msgspec.json.Decoder().decode


def read(path: str | PathLike[str]) -> CaptureRecords:
    """Return an iterator over the records of the capture at `path`, its header first.

    Damaged lines come as `Damage` records. An empty file, or one that ends within its header, yields one `Damage` and no header.
    Raises: CaptureError: if the file is no capture, or needs a newer mcpspy. OSError: if it cannot be read.
    """
    name = fspath(path)
    return CaptureRecords(lambda: open(name, "rb"), name, frames=frame_file(name))


class CaptureRecords:
    """The records of one capture, to be taken once: one by one, or as `batches`, which transcripts are made of.

    Its file is opened once, when the first record is taken: a FIFO that is closed has lost its writer.
    `name` is that in errors; `progress` gets the number of further bytes read; in `frames`, if there is one, transcripts leave the
    bytes of messages.
    """

    __slots__ = ("_name", "_open", "_progress", "_records", "frames")

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[BinaryIO]],
        name: str,
        progress: Callable[[int], None] | None = None,
        *,
        frames: FrameFile | None = None,
    ) -> None:
        self.frames = frames
        self._open = opened
        self._name = name
        self._progress = progress
        self._records: Iterator[Record] | None = None

    def batches(self) -> Iterator[list[RecordOrLine]]:
        """Return the records of some bytes at a time, usual ones as the lines that they are on. Raises: CaptureError; OSError."""
        return _batches(self._open, Reader(self._name), self._progress)

    def __iter__(self) -> Iterator[Record]:
        if self._records is None:
            self._records = (
                record.record() if isinstance(record, USUAL_LINES) else record for batch in self.batches() for record in batch
            )
        return self._records

    def __next__(self) -> Record:
        return next(iter(self))


def _batches(  # knows no CaptureRecords: then a file of which only the header is taken is closed at once, by no garbage collector
    make: Callable[[], AbstractContextManager[BinaryIO]],
    reader: Reader,
    progress: Callable[[int], None] | None,
) -> Iterator[list[RecordOrLine]]:
    with make() as file:
        while chunk := file.read(_BATCH_BYTES):
            yield reader.feed_lines(chunk)
            if progress is not None:
                progress(len(chunk))
    yield [*reader.close()]


def _is_sealed(line: bytes) -> bool:
    """Return whether a line ends with its CRC."""
    return line.endswith(b',"crc":"%08x"}' % crc32(line[:-_CRC_BYTES]))


def seals(lines: list[bytes]) -> bytes:
    """Return the CRCs, four bytes each, with which lines of JSON objects, each with its newline, end; empty if one does not hold."""
    crcs = array("I", map(crc32, map(_body_of, lines)))
    if sys.byteorder == "little":
        crcs.byteswap()
    packed = crcs.tobytes()
    spelled = packed.hex(",", 4).encode().replace(b",", b'"}\n' + _CRC_MEMBER)
    return packed if b"".join(map(_seal_of, lines)) == _CRC_MEMBER + spelled + b'"}\n' else b""


def _seal(line: bytes) -> bytes:
    """Return the CRC of a sound line (without its newline), also of one that has none."""
    sealed = line[:-_CRC_BYTES] if line[-_CRC_BYTES:-10] == _CRC_MEMBER else line
    return crc32(sealed).to_bytes(4, "big")


def seal_holds(line: bytes) -> bool | None:
    """Return whether `line` (without its newline) matches its CRC; None if it has none: it was edited by hand."""
    if line[-_CRC_BYTES:-10] != _CRC_MEMBER:
        return None
    return line[-10:-2] == b"%08x" % crc32(memoryview(line)[:-_CRC_BYTES])


def sound_record(line: bytes) -> Record | None:
    """Return the record on `line` (without its newline) if it is whole, sealed and usable, else None. For the end of a file."""
    if not seal_holds(line):
        return None
    try:
        return decode_line(line).record()  # 2 µs, where the other way takes 8
    except UNREADABLE:
        pass
    try:
        return record_from(_object(line))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None


class Reader:
    """Records from the bytes of a capture, cut anywhere. `file` is the name in errors.

    `feed` returns the records that the bytes complete; `close` reports what is torn or missing at the end. Both raise
    CaptureError, for the header line alone.
    """

    __slots__ = (
        "_at_ns", "_file", "_held", "_held_bytes", "_known", "_line", "_lost", "_next", "_offset", "_seals",
        "_skipping", "_started", "_unread",
    )  # fmt: skip

    def __init__(self, file: str = "<capture>") -> None:
        self._file = file
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._skipping = False  # inside a line that is too long
        self._line = self._offset = 0
        self._started = False
        self._at_ns = 0
        self._next = 1
        self._unread = 0  # damaged lines since the last sound record: so many numbers may be missing without another word
        self._lost = range(0)  # the numbers that were missing last
        self._seals = bytearray()  # the CRCs of sound lines, and in `_known` those that a line was looked for among
        self._known: set[int] = set()

    def feed(self, data: bytes) -> list[Record]:
        """Return the records that `data`, the next bytes of the file, completes."""
        return [record.record() if isinstance(record, USUAL_LINES) else record for record in self.feed_lines(data)]

    def feed_lines(self, data: bytes) -> list[RecordOrLine]:
        """Do the same, with usual lines in place of their records."""
        records: list[RecordOrLine] = []
        end = data.rfind(b"\n") + 1
        if end:
            block = b"".join((*self._held, data[:end])) if self._held else data[:end]
            self._held, self._held_bytes = [], 0
            if block.find(b"\n") == len(block) - 1:  # a line alone, as lines come while a capture grows
                self._read_lines([block[:-1]], records)
            elif (usual := self._usual_records(block)) is not None:
                records += usual
            else:
                self._read_lines(block[:-1].split(b"\n"), records)
        if end < len(data):
            records += self._hold(data[end:])
        return records

    def _usual_records(self, block: bytes) -> Sequence[RecordOrLine] | None:
        """Return the records of a block in which all lines are usual and have the numbers that are due; None for others."""
        if not self._started or self._skipping:
            return None
        try:
            usual = decode_lines(block)
        except UNREADABLE:
            return None
        lines = BytesIO(block).readlines()  # which takes half the time of `split`
        due = self._next + len(lines)
        if [line.number for line in usual] != list(range(self._next, due)) or not (crcs := seals(lines)):
            return None
        if not self._place(usual, lines):
            return None
        self._seals += crcs
        self._line += len(lines)
        self._offset += len(block)
        self._next, self._at_ns, self._unread = due, usual[-1].at_ns, 0
        return usual

    def _read_lines(self, lines: list[bytes], records: list[RecordOrLine]) -> None:
        """Read lines one by one: usual ones here, and those that are damaged or not usual in `_read_line`."""
        for line in lines:
            self._line += 1
            record = self._usual_record(line)
            if record is None:
                records += self._read_line(line)
            else:
                records.append(record)
                self._seals += _seal(line)
                self._next, self._at_ns, self._unread = record.number + 1, record.at_ns, 0
            self._offset += len(line) + 1

    def _usual_record(self, line: bytes) -> UsualLine | None:
        if not self._started or self._skipping or not _is_sealed(line):
            return None
        try:
            usual = decode_line(line)
        except UNREADABLE:
            return None
        return usual if usual.number == self._next and self._place([usual], [line]) else None

    def _place(self, records: Sequence[UsualLine], lines: Sequence[bytes]) -> bool:
        """Let the records of long lines know where these are. Return whether no line says that itself."""
        offset = self._offset
        for record, line in zip(records, lines, strict=True):
            if isinstance(record, FrameLine):
                if record.place is not None:
                    return False
                if len(line) > LONG_BYTES:
                    record.place = offset, len(line.rstrip(b"\n"))
            offset += len(line)
        return True

    def close(self) -> list[Record]:
        """Return the records of the end of the file: a last line without its end, a header that never came."""
        torn = b"".join(self._held)
        self._held, self._held_bytes = [], 0
        self._line += 1
        records: list[Record] = []
        if torn and _is_whole(torn):
            records += self._read_line(torn)
            records.append(self._damage("torn", "the last line lacks its line end, and nothing else", b""))
        elif self._started:
            if torn:
                records.append(self._damage("torn", "the last line has no end", torn))
        elif torn.startswith(_FIRST_BYTES) or _FIRST_BYTES.startswith(torn):
            records.append(self._damage("torn", "the header is torn" if torn else "the file is empty", torn))
        else:
            raise CaptureError(self._file, 1, _NOT_A_CAPTURE)
        return records

    def _hold(self, rest: bytes) -> list[Record]:
        """Keep the beginning of a line until its end comes."""
        if not self._started and not self._held and rest[:1] not in _FIRST_SIGNS:
            raise CaptureError(self._file, 1, _NOT_A_CAPTURE)
        if self._held_bytes + len(rest) <= MAX_LINE_BYTES and not self._skipping:
            self._held.append(rest)
            self._held_bytes += len(rest)
            return []
        if not self._started:
            raise CaptureError(self._file, 1, _NOT_A_CAPTURE)
        records: list[Record] = []
        if not self._skipping:
            self._skipping = True
            self._line += 1
            text = f"the line is longer than {MAX_LINE_BYTES >> 20} MiB"
            records.append(self._damage("json", text, b"".join(self._held[:2])[:LONG_LINE_KEPT_BYTES]))
            self._line -= 1
        self._offset += self._held_bytes + len(rest)
        self._held, self._held_bytes = [], 0
        return records

    def _read_line(self, line: bytes) -> list[Record]:
        """Return the record on a line of any kind, and what is wrong with it."""
        if self._skipping:
            self._skipping = False  # the rest of a line that was damage already
            return []
        if not self._started:
            self._started = True
            if line.startswith(FIRST_BYTES_OF_RECORDS):
                return [self._damage("shape", "the header is missing", b""), *self._read_line(line)]
            records = self._header(line)
            self._unread = 0
            return records
        intact = seal_holds(line)
        if intact is False:
            return [self._damage("crc", "the line does not match its CRC", line)]
        try:
            fields = _object(line)
        except (ValueError, RecursionError):
            return [self._damage("json", "the line is not a JSON object", line)]
        try:
            record = record_from(fields)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            return [self._damage("shape", f"the record lacks what its kind needs ({error})", line)]
        if record.number < self._next and self._is_known(line):
            text = f"record {record.number} comes again"
            return [Damage(at_ns=self._at_ns, line=self._line, offset=self._offset, reason="number", text=text, data=line)]
        edited = [] if intact else [self._damage("edited", "the line has no CRC: it was edited by hand", b"")]
        wrong = self._wrong_number(record)
        self._seals += _seal(line)
        if record.number not in self._lost:
            self._next = record.number + 1
        self._at_ns = record.at_ns
        self._unread = 0
        return [*edited, *wrong, record]

    def _wrong_number(self, record: Record) -> list[Damage]:
        """Report records that are missing before `record`, or a number that comes too late."""
        missing = record.number - self._next - (record.missing if isinstance(record, Gap) else 0)
        if record.number < self._next:
            return [self._damage("number", f"record {record.number} is out of order", b"")]
        self._lost = range(self._next, record.number)
        if missing > self._unread:
            return [self._damage("number", f"records {self._next} to {record.number - 1} are missing", b"")]
        return []

    def _is_known(self, line: bytes) -> bool:
        """Return whether a line came before, byte for byte as far as its CRC tells."""
        self._known.update(array("I", bytes(self._seals)))
        self._seals.clear()
        return int.from_bytes(_seal(line), sys.byteorder) in self._known

    def _header(self, line: bytes) -> list[Record]:
        """Return the header, and damage that says what is wrong with it. The records after a damaged header can still be read."""
        intact = seal_holds(line)
        sealed = intact is not None
        try:
            fields = _object(line)
            version, needs = fields["mcpspy"], fields["min_reader"]
            if not isinstance(version, int) or not isinstance(needs, int):
                raise TypeError("mcpspy and min_reader are integers")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if sealed or line.startswith(_FIRST_BYTES):
                return [self._damage("crc" if sealed else "json", "the header is damaged", line)]
            raise CaptureError(self._file, 1, _NOT_A_CAPTURE) from error
        if needs > FORMAT and (intact or not sealed):
            reason = f"this capture has format {version}, which this mcpspy cannot read: update mcpspy"
            raise CaptureError(self._file, 1, reason)
        try:
            header = header_from(fields)
        except (KeyError, TypeError, ValueError) as error:
            if sealed and not intact:
                return [self._damage("crc", "the header is damaged", line)]
            raise CaptureError(
                self._file, 1, f"the header lacks what a header needs ({error}); record the session again"
            ) from error
        if not sealed:
            return [header, self._damage("edited", "the header has no CRC: it was edited by hand", b"")]
        if not intact:
            return [header, self._damage("crc", "the header does not match its CRC", b"")]
        return [header]

    def _damage(self, reason: str, text: str, data: bytes) -> Damage:
        if data:
            self._unread += 1
        return Damage(at_ns=self._at_ns, line=self._line, offset=self._offset, reason=reason, text=text, data=data)


LONG_LINE_KEPT_BYTES = 1 << 10
"""The number of bytes that the damage record of a line that is too long has."""

_FIRST_BYTES = b'{"mcpspy"'
FIRST_BYTES_OF_RECORDS = b'{"n":'
_FIRST_SIGNS = (b"{", b" ", b"\t", b"\r", b"\xef")  # of a header, edited by hand perhaps, or with a byte order mark
_NOT_A_CAPTURE = "this is not an mcpspy capture; captures are made by mcpspy run"


def _is_whole(line: bytes) -> bool:
    """Return whether a line is a complete JSON object: a line that lost its beginning or its end is none."""
    try:
        _object(line)
    except (ValueError, RecursionError):
        return False
    return True


def _object(line: bytes) -> dict[str, Any]:
    """Return the JSON object on `line`. Values that the fast decoder refuses (large numbers, lone surrogates) go to `json`."""
    try:
        value = _decode_any(line)
    except UNREADABLE:
        value = json.loads(line.decode("utf-8-sig"), parse_constant=_refused)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


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


class RecordCounts:
    """Counts of records, as an `end` record has them. `messages` are complete frames, but for the server's stderr."""

    __slots__ = ("frames", "gaps", "logs", "messages")

    def __init__(self) -> None:
        self.frames = self.messages = self.gaps = 0
        self.logs: set[int] = set()
        """The streams of the server's stderr."""

    def feed(self, record: Record) -> None:
        """Take the next record."""
        match record:
            case Frame():
                self.frames += 1
                self.messages += not record.part and record.stream not in self.logs
            case Open(name="stderr"):
                self.logs.add(record.stream)
            case Gap():
                self.gaps += 1

    def add(self, frames: int, of_logs: int, gaps: int) -> None:
        """Add frames, of which `of_logs` are of the server's stderr, and gaps. None of the frames is a part."""
        self.frames += frames
        self.messages += frames - of_logs
        self.gaps += gaps

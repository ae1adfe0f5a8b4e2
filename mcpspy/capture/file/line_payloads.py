"""The payloads of the frames of a capture that was just read, read again from its file on request, by the numbers of their records.

Only the places of blocks of lines are kept: a few bytes for a hundred lines.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

import msgspec

from ...errors import CaptureError
from ...platform.files import read_at
from ...records import Frame, Record
from ...usual_lines import FrameLine, decode_line, decode_lines

_RECENT: Final = 16
"""The payloads of so many blocks are kept: an answer is often found some blocks after its request."""

_BLOCK_LINES: Final = 256
"""Lines that are noted one by one make blocks of so many."""

_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)


class LinePayloads:
    """The payloads of the capture that is open at `fd`, which is closed with it. `name` is that in errors.

    The reader calls `add` for the lines that it has read. `record_of` makes a record of a line of any kind, None of a damaged one.
    """

    __slots__ = (
        "_counts",
        "_fd",
        "_firsts",
        "_lines",
        "_mtime_ns",
        "_name",
        "_near",
        "_next",
        "_offsets",
        "_recent",
        "_record_of",
        "_sizes",
        "is_regular",
    )

    def __init__(self, fd: int, name: str, record_of: Callable[[bytes], Record | None]) -> None:
        self._fd = fd
        self._name = name
        self._record_of = record_of
        self._mtime_ns = os.fstat(fd).st_mtime_ns
        self._firsts = array("Q")
        self._counts = array("I")
        self._offsets = array("Q")
        self._sizes = array("Q")
        self._next = 0
        self._recent: dict[int, list[bytes]] = {}
        """By block the payloads of its records."""
        self._near: tuple[int, list[bytes]] = (0, [])
        """The number of the first record of the block that was taken last, and its payloads."""
        self._lines: tuple[int, list[bytes]] = (-1, [])
        """The last block whose lines were taken, and these."""
        self.is_regular = True
        """False once a number has come again: then a record is not known by its number alone."""

    def __del__(self) -> None:
        os.close(self._fd)

    def add(self, first: int, count: int, offset: int, size: int) -> None:
        """Note where the lines of so many records are. Numbers that come again are not noted."""
        if first < self._next:
            self.is_regular = False
            return
        if count == 1 and self._counts and self._counts[-1] < _BLOCK_LINES and self._is_next(first, offset):
            self._counts[-1] += 1
            self._sizes[-1] += 1 + size
            self._next = first + 1
            return
        self._firsts.append(first)
        self._counts.append(count)
        self._offsets.append(offset)
        self._sizes.append(size)
        self._next = first + count

    def _is_next(self, first: int, offset: int) -> bool:
        return first == self._next and offset == self._offsets[-1] + self._sizes[-1] + 1

    def position(self, number: int, part: bytes) -> int:
        """Return where in the payload of record `number` this part of it begins; -1 if it cannot be read again as such."""
        block = self._block_of(number)
        return -1 if block < 0 else self.payload(number).find(part)

    def _block_of(self, number: int) -> int:
        """Return the block that has a record; -1 if none has."""
        block = bisect_right(self._firsts, number) - 1
        return block if block >= 0 and number - self._firsts[block] < self._counts[block] else -1

    def record(self, number: int) -> Record | None:
        """Read a record; None if it cannot be read again. Raises: what `payload` raises."""
        block = self._block_of(number)
        if block < 0:
            return None
        known, lines = self._lines
        if known != block or len(lines) < self._counts[block]:
            lines = self._data(block).split(b"\n")
            self._lines = block, lines
        record = self._record_of(lines[number - self._firsts[block]])
        return record if record is not None and record.number == number else None

    def payload(self, number: int) -> bytes:
        """Read the payload of a record. Raises: CaptureError: if the file was changed; OSError."""
        first, payloads = self._near
        if not 0 <= number - first < len(payloads):
            block = bisect_right(self._firsts, number) - 1
            known = self._recent.get(block)
            if known is None or len(known) < self._counts[block]:  # the last block grows while it is read
                if len(self._recent) == _RECENT:
                    del self._recent[next(iter(self._recent))]
                known = self._recent[block] = self._read(block)
            first, payloads = self._near = self._firsts[block], known
        return payloads[number - first]

    def _read(self, block: int) -> list[bytes]:
        payloads = self._payloads(self._data(block))
        if len(payloads) != self._counts[block]:
            raise self._changed(block)
        return payloads

    def _data(self, block: int) -> bytes:
        size = self._sizes[block]
        data = read_at(self._fd, size, self._offsets[block])
        if len(data) != size or os.fstat(self._fd).st_mtime_ns != self._mtime_ns:
            raise self._changed(block)
        return data

    def _changed(self, block: int) -> CaptureError:
        return CaptureError(self._name, self._firsts[block] + 1, "the file was changed while it was read")

    def _payloads(self, data: bytes) -> list[bytes]:
        """Return the payloads of lines; empty for those that are no frames."""
        try:
            return [line.text.encode() if isinstance(line, FrameLine) else b"" for line in decode_lines(data)]
        except _UNREADABLE:
            return [self._payload(line) for line in data.split(b"\n")]

    def _payload(self, line: bytes) -> bytes:
        try:
            usual = decode_line(line)
        except _UNREADABLE:
            record = self._record_of(line)
            return record.data if isinstance(record, Frame) else b""
        return usual.text.encode() if isinstance(usual, FrameLine) else b""

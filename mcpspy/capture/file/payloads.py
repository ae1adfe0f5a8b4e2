"""Records and payloads of a capture at known offsets, read when somebody asks for them.

Each line is checked as the reader checks it, so that an offset into a file that was changed yields an error and no wrong bytes.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from typing import Final

from ...errors import CaptureError
from ...platform.files import read_at, read_into
from ...records import Frame, Record
from .format import text_member
from .reader import MAX_LINE_BYTES, sound_frame, sound_record

_WINDOW_BYTES: Final = 1 << 18
"""So many bytes are read at once: rows that are next to each other are shown one after the other."""

_SEARCHED_BYTES: Final = 1 << 20
_MAX_HITS: Final = 1 << 20


class Payloads:
    """The lines of the capture that is open at `fd`, which is closed with it. `name` is that in errors."""

    __slots__ = ("_begin", "_fd", "_name", "_window")

    def __init__(self, fd: int, name: str) -> None:
        self._fd = fd
        self._name = name
        self._begin = 0
        self._window = b""

    def __del__(self) -> None:
        os.close(self._fd)

    def record(self, offset: int, number: int) -> Record:
        """Return the record `number`, whose line begins at `offset`. Raises: CaptureError: if it does not any more; OSError."""
        record = sound_record(self.line(offset))
        if record is None or record.number != number:
            raise CaptureError(self._name, number + 1, "the file was changed while it was read")
        return record

    def data(self, offset: int, number: int) -> bytes:
        """Return the bytes of the frame that is this record. Raises: what `record` raises."""
        data = sound_frame(self.line(offset), number)
        if data is None:
            record = self.record(offset, number)
            data = record.data if isinstance(record, Frame) else b""
        return data

    def line(self, offset: int) -> bytes:
        """Return the line at `offset`, without its end. Raises: OSError."""
        at = offset - self._begin
        end = self._window.find(b"\n", at) if 0 <= at < len(self._window) else -1
        if end < 0:
            self._begin, at, wanted = offset, 0, _WINDOW_BYTES
            self._window = read_at(self._fd, wanted, offset)
            while (end := self._window.find(b"\n")) < 0 and len(self._window) == wanted <= MAX_LINE_BYTES:
                wanted *= 4
                self._window = read_at(self._fd, wanted, offset)
        return self._window[at : end if end >= 0 else None]

    def offsets(self, texts: Sequence[bytes]) -> Sequence[int] | None:
        """Return where in the file one of these texts is, as taps write it, in order; of hits that are close together one.

        None for texts of which taps write no letters, and if there are too many. Raises: OSError.
        """
        found = array("Q")
        for text in texts:
            needle = text_member(text)
            if not needle or len(needle) > _SEARCHED_BYTES or not self._search(needle, found):
                return None
        return found if len(texts) == 1 else sorted(found)

    def _search(self, needle: bytes, found: array[int]) -> bool:
        """Add the offsets of a text, one for each line at least. Return False if there are too many."""
        buffer, overlap, begin = bytearray(_SEARCHED_BYTES), len(needle) - 1, 0
        view = memoryview(buffer)
        while (count := read_into(self._fd, view, begin)) > overlap:
            at = buffer.find(needle, 0, count)
            while at >= 0:
                found.append(begin + at)
                line_end = buffer.find(b"\n", at, count)
                at = buffer.find(needle, line_end, count) if line_end >= 0 else -1
            if len(found) > _MAX_HITS:
                return False
            begin += count - overlap
        return True

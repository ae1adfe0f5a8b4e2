"""The bytes of frames, read from a capture when somebody looks at them."""

import os
from binascii import crc32
from collections.abc import Callable
from stat import S_ISREG
from threading import Lock
from typing import Final

import msgspec

from ...errors import CaptureError
from ...platform.files import BINARY
from ...usual_lines import FrameLine, UsualLine, decode_line

LARGE_BYTES = 20_000_000
"""Of a capture from this size on, long messages are left in the file. Others keep no file open."""

_HELD: Final = 4
"""A request and its answer, and those before them, which rules look at together."""

_CRC_BYTES: Final = len(',"crc":"01234567"}')


class FrameFile:
    """The file of a capture, which stays open: one that is removed can still be read. The last few frames that were read are held."""

    __slots__ = ("_fd", "_held", "_lock", "_name")

    def __init__(self, fd: int, name: str) -> None:
        self._fd = fd
        self._name = name
        self._held: dict[tuple[int, int], bytes] = {}
        self._lock = Lock()

    def data(self, number: int, place: tuple[int, int]) -> bytes:
        """Return the bytes of the frame on the line at this place. Raises: CaptureError: if the line is not what it was."""
        held = self._held.get(place)
        if held is not None:
            return held
        line = self._read(*place)
        if not isinstance(line, FrameLine) or line.number != number:
            raise CaptureError(self._name, number + 1, "it was changed since it was read; run the command again")
        if len(self._held) >= _HELD:
            self._held.clear()
        data = self._held[place] = line.text.encode()
        return data

    def _read(self, offset: int, length: int) -> UsualLine | None:
        """Read a line; None if it is not sound."""
        with self._lock:
            os.lseek(self._fd, offset, os.SEEK_SET)
            line = os.read(self._fd, length)
        try:
            record = decode_line(line)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return record if record.crc == f"{crc32(line[:-_CRC_BYTES]):08x}" else None

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self._fd)


def frame_file(path: str, *, grows: bool = False) -> FrameFile | None:
    """Open a capture that is large, or `grows`, for the bytes of its messages; None for others, and for what is no file."""
    try:
        status = os.stat(path)  # first: a FIFO that is opened and closed again loses its writer
        if S_ISREG(status.st_mode) and (grows or status.st_size >= LARGE_BYTES):
            return FrameFile(os.open(path, os.O_RDONLY | BINARY), path)
    except OSError:
        pass
    return None

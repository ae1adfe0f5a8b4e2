"""The bytes of frames, read from a capture when somebody looks at them."""

import os
from binascii import crc32
from stat import S_ISREG
from typing import Final

import msgspec

from ...errors import CaptureError
from ...usual_lines import FrameLine, UsualLine, decode_line

LARGE_BYTES = 20_000_000
"""Of a capture from this size on, long messages are left in the file. Of others they are kept."""

_MOST_HELD: Final = 4
"""A request and its answer, and those before them, which rules look at together."""

_CRC_BYTES: Final = len(',"crc":"01234567"}')


class FrameFile:
    """The file of a capture. It is opened for each look, and the last few frames are held."""

    __slots__ = ("_held", "_path")

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path)
        self._held: dict[tuple[int, int], bytes] = {}

    def data(self, number: int, place: tuple[int, int]) -> bytes:
        """Return the bytes of the frame on the line at this offset, of this length.

        Raises: CaptureError: if the line is not what it was, or the file is gone.
        """
        held = self._held.get(place)
        if held is not None:
            return held
        line = self._read(*place)
        if not isinstance(line, FrameLine) or line.number != number:
            raise CaptureError(self._path, number + 1, "it was changed or removed since it was read; run the command again")
        if len(self._held) >= _MOST_HELD:
            self._held.clear()
        data = self._held[place] = line.text.encode()
        return data

    def _read(self, offset: int, length: int) -> UsualLine | None:
        """Read a line; None if it is not sound."""
        try:
            with open(self._path, "rb", buffering=0) as file:
                file.seek(offset)
                line = file.read(length)
            record = decode_line(line)
        except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return record if record.crc == f"{crc32(line[:-_CRC_BYTES]):08x}" else None


def frame_file(path: str) -> FrameFile | None:
    """Return the file of a large capture, in which its messages are left; None for others, and for what is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return FrameFile(path) if S_ISREG(status.st_mode) and status.st_size >= LARGE_BYTES else None

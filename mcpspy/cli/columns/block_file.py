"""A file for the packed rows of a capture whose columns are written: so an export of any size takes little memory.

It has no name, and is gone with the process. It is in the store, which is private, because it has captured text.
"""

from __future__ import annotations

import os
from errno import ENOSPC
from struct import Struct
from tempfile import TemporaryFile
from typing import IO

from ...capture.store.folder import home_folder

_PLACE = Struct("<QI")


class BlockFile:
    """Blocks in a file, which is made for the first of them. It is a `BlockPlace` of `transcript.packing.block_compression`."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._end = 0

    def add(self, block: bytes) -> bytes:
        """Write a block. Return its place and size. Raises: OSError."""
        if self._file is None:
            self._file = _new_file()
        self._file.seek(self._end)
        if self._file.write(block) != len(block):
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        place = _PLACE.pack(self._end, len(block))
        self._end += len(block)
        return place

    def get(self, name: bytes) -> bytes:
        """Read the block at this place. Raises: OSError."""
        begin, size = _PLACE.unpack(name)
        if self._file is None:
            raise OSError("this file has no blocks")
        self._file.seek(begin)
        return self._file.read(size)

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _new_file() -> IO[bytes]:
    """Make a file in the store, or if that cannot be, where the system has such files."""
    try:
        os.makedirs(home_folder(), 0o700, exist_ok=True)
        return TemporaryFile(dir=home_folder(), buffering=0)
    except OSError:
        return TemporaryFile(buffering=0)

"""A temporary file for the packed rows of a capture, so that writing the columns of a large one takes little memory.

It has no name, and disappears with the process. It contains captured text, so it is in the store, which is private.
"""

from __future__ import annotations

import os
from errno import ENOSPC
from struct import Struct
from tempfile import TemporaryFile
from typing import IO

from ...capture.store.folder import home_folder

_NAME = Struct("<QI")
"""The offset of a block, and its size."""


class BlockFile:
    """Blocks in a file, which is made for the first of them. It is a `BlockPlace` of `transcript.packing.block_compression`."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._end = 0

    def add(self, block: bytes) -> bytes:
        """Write a block. Return its name. Raises: OSError."""
        if self._file is None:
            self._file = _new_file()
        self._file.seek(self._end)
        if self._file.write(block) != len(block):
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        name = _NAME.pack(self._end, len(block))
        self._end += len(block)
        return name

    def get(self, name: bytes) -> bytes:
        """Read the block with this name. Raises: OSError."""
        begin, size = _NAME.unpack(name)
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
    """Make a file in the store, or in the system's folder for temporary files if the store cannot be written."""
    try:
        os.makedirs(home_folder(), 0o700, exist_ok=True)
        return TemporaryFile(dir=home_folder(), buffering=0)
    except OSError:
        return TemporaryFile(buffering=0)

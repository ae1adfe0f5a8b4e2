"""The code that columns depend on, as a word that changes with it: the rows and findings of a capture may change with any rule."""

from __future__ import annotations

import os
import sys
from binascii import crc32
from collections.abc import Iterator
from typing import Final

import click

_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_ROOMS: Final = (
    "", "capture/file", "columns", "transcript", "views/text", "views/timeline", "wire",
)  # fmt: skip
"""Those that make columns of a capture."""


def code_word() -> str:
    """Return a word for the code as it is installed here, with the packages beside it: some decode what others cannot.

    Files are compared by their status and not read, which takes 3 ms and not 20: no content changes without the time of change.
    """
    packages = os.stat(os.path.dirname(os.path.dirname(click.__file__))).st_mtime_ns
    files = sorted(status for room in _ROOMS for status in _statuses(os.path.join(_PACKAGE, room), deep=bool(room)))
    return f"{crc32(repr((sys.version, packages, files)).encode()):08x}"


def _statuses(folder: str, *, deep: bool) -> Iterator[tuple[str, int, int, int]]:
    """Yield name, size, inode and time of change of each file in a folder, and with `deep` in those below it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if deep and entry.name != "__pycache__":
                    yield from _statuses(entry.path, deep=True)
            else:
                facts = entry.stat()
                yield entry.path, facts.st_size, facts.st_ino, facts.st_ctime_ns

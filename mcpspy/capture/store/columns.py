"""The columns that the store keeps beside its captures for `mcpspy query`: the names of their files, and how they go.

Here are names only: `mcpspy.columns` writes and reads the files. A tap that makes room removes them with their capture.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import NamedTuple

from .folder import home_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...records import Header

FILE_EXTENSION = ".parquet"
UNDATED = "1970-01-01"
"""The date of captures without a header, and of those whose time no calendar has."""

UNFINISHED_S = 3_600
"""An unfinished file that nobody has written to for so long is of an export that was killed."""

_MAX_ID_LETTERS = 64
_LAST_NS = 253_402_300_800_000_000_000
"""The year 10,000."""


class ColumnKey(NamedTuple):
    """The name that the columns of a capture have in each table, and their date, as in `2026-11-27`."""

    capture_id: str
    date: str


def columns_folder() -> str:
    """Return the folder of the store's columns."""
    return os.path.join(home_folder(), "columns")


def column_key(header: Header | None, file: str) -> ColumnKey:
    """Return the key of a capture with this header, in the file of this name.

    An id that does not serve as the name of a file is replaced by a digest, and so is that of a file without a header.
    """
    if header is None:
        return ColumnKey(f"file-{_digest(file)}", UNDATED)
    name = header.capture_id
    letters = name.replace("-", "").replace("_", "")
    if not (letters.isascii() and letters.isalnum() and len(name) <= _MAX_ID_LETTERS and name[0] not in "-_"):
        name = f"id-{_digest(name)}"
    is_dated = 0 <= header.wall_ns < _LAST_NS
    date = time.strftime("%Y-%m-%d", time.gmtime(header.wall_ns // 1_000_000_000)) if is_dated else UNDATED
    return ColumnKey(name, date)


def column_path(folder: str, table: str, key: ColumnKey) -> str:
    """Return the path of the file of one table and capture in a folder of columns."""
    return os.path.join(folder, table, f"date={key.date}", key.capture_id + FILE_EXTENSION)


def remove_columns(folder: str, key: ColumnKey) -> None:
    """Remove the columns of a capture from a folder, if there are any. Raises: OSError."""
    for table in os.listdir(folder) if os.path.isdir(folder) else ():
        try:
            os.unlink(column_path(folder, table, key))
        except (FileNotFoundError, NotADirectoryError):
            continue


def remove_unfinished(folder: str) -> None:
    """Remove unfinished files of exports that were killed: those that nobody has written to for an hour."""
    from glob import escape, iglob  # a tap does without it

    for name in ("known.json.*", os.path.join("*", "date=*", f"*{FILE_EXTENSION}.*")):
        for path in iglob(os.path.join(escape(folder), name)):
            with suppress(OSError):
                if path.rpartition(".")[2].isdecimal() and os.stat(path).st_mtime < time.time() - UNFINISHED_S:
                    os.unlink(path)


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]

"""The files that are read for a WHAT: a message about FIFOs, which wait until somebody writes to them, and imported files.

Standard input may be such a file too.
"""

from __future__ import annotations

import os
from stat import S_ISFIFO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from typing import BinaryIO


def announced(paths: Iterable[str]) -> tuple[str, ...]:
    """Return these paths, with captures in place of files that can be imported, and say on stderr which of them are FIFOs.

    The FIFO of a shell's `<(…)` has its writer already. Raises: ImportFileError: if a file cannot be imported after all.
    """
    paths = tuple(paths)
    if not all(map(begins_as_capture, paths)):
        from .converting import captures_of

        made = {path: captures_of(path) for path in paths}
        _SOURCES.update((capture, path) for path, captures in made.items() for capture in captures)
        paths = tuple(capture for captures in made.values() for capture in captures)
    from ..platform.system import is_process_file

    for path in paths:
        if not is_process_file(path) and os.path.exists(path) and S_ISFIFO(os.stat(path).st_mode):
            from .new_capture import report

            report(f"mcpspy: {path} is a FIFO: waiting until somebody writes to it")
    return paths


_SOURCES: dict[str, str] = {}
"""Files that were imported, by the temporary captures that were made of them."""


def named_file(path: str) -> str:
    """Return the file that the user named: for a temporary capture the file that was imported."""
    return _SOURCES.get(path, path)


def opened_stdin() -> AbstractContextManager[BinaryIO]:
    """Return standard input, or the capture made of it. Raises: ImportFileError: if that is more than one; OSError."""
    import sys
    from contextlib import nullcontext
    from io import BufferedReader

    file = sys.stdin.buffer
    assert isinstance(file, BufferedReader)
    head = file.peek(len(_FIRST_BYTES))[: len(_FIRST_BYTES)]
    if _FIRST_BYTES.startswith(head):
        return nullcontext(file)
    from .converting import capture_of_stdin

    return capture_of_stdin()


def begins_as_capture(path: str) -> bool:
    """Return whether a file begins as captures do, or cannot be looked at; an empty one if its name is that of a capture.

    One that has lost its header begins with a record, or with the rest of a line and then a record.
    """
    if not os.path.isfile(path):
        return True
    try:
        with open(path, "rb") as file:
            first = file.read(len(_FIRST_BYTES))
            if first not in (_FIRST_BYTES, b""):
                head = b"\n" + first + file.read(_HEAD_BYTES)
                return b'\n{"n":' in head and b',"at_ns":' in head
    except OSError:
        return True  # which is reported when it is read
    return first == _FIRST_BYTES or (not first and path.endswith(".mcpspy"))


_FIRST_BYTES = b'{"mcpspy"'
_HEAD_BYTES = 1 << 16

"""The files that are read for a WHAT: a message about FIFOs, which wait until somebody writes to them, and imported files."""

from __future__ import annotations

import os
from stat import S_ISFIFO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def announced(paths: Iterable[str]) -> tuple[str, ...]:
    """Return these paths, with captures in place of files that can be imported, and say on stderr which of them are FIFOs.

    The FIFO of a shell's `<(…)` has its writer already. Raises: ImportFileError: if a file cannot be imported after all.
    """
    paths = tuple(paths)
    if not all(map(begins_as_capture, paths)):
        from .importing.in_place import captures_of

        paths = captures_of(paths)
    for path in paths:
        if not path.startswith(("/dev/", "/proc/")) and os.path.exists(path) and S_ISFIFO(os.stat(path).st_mode):
            from .new_capture import report

            report(f"mcpspy: {path} is a FIFO: waiting until somebody writes to it")
    return paths


def begins_as_capture(path: str) -> bool:
    """Return whether a file begins as captures do, or cannot be looked at."""
    if not os.path.isfile(path):
        return True
    try:
        with open(path, "rb") as file:
            first = file.read(len(_FIRST_BYTES))
    except OSError:
        return True  # which is reported when it is read
    return not first or first == _FIRST_BYTES


_FIRST_BYTES = b'{"mcpspy"'

"""A message about captures that are FIFOs: reading one waits until somebody writes to it."""

from __future__ import annotations

import os
from stat import S_ISFIFO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def announced(paths: Iterable[str]) -> tuple[str, ...]:
    """Return these paths, and say on stderr which of them are FIFOs. That of a shell's `<(…)` has its writer already."""
    paths = tuple(paths)
    for path in paths:
        if not path.startswith(("/dev/", "/proc/")) and os.path.exists(path) and S_ISFIFO(os.stat(path).st_mode):
            from .new_capture import report

            report(f"mcpspy: {path} is a FIFO: waiting until somebody writes to it")
    return paths

"""The operating system that this is, for what is written or found elsewhere on each: paths, names of programs, services."""

import os
import sys
from typing import Final

NAME: Final[str] = sys.platform
"""`linux`, `darwin` (macOS) or `win32` (Windows)."""

HAS_SYSTEMD: Final = NAME.startswith("linux")
PROGRAM_SUFFIX: Final = ".exe" if NAME == "win32" else ""


def runs(pid: int) -> bool:
    """Return whether a process exists; true on Windows, where the question would end it."""
    if NAME == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def is_process_file(path: str) -> bool:
    """Return whether a path names a descriptor of a process, as a shell's `<(…)` does."""
    return path.startswith(("/dev/", "/proc/"))

"""The operating system that this is, for what is written or found elsewhere on each: paths, names of programs, services."""

import os
import sys
from typing import Final

NAME: Final[str] = sys.platform
"""`linux`, `darwin` (macOS) or `win32` (Windows)."""

HAS_SYSTEMD: Final = NAME.startswith("linux")
PROGRAM_SUFFIX: Final = ".exe" if NAME == "win32" else ""

CLIENT_VARIABLES: Final = (
    ("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE")
    if NAME == "win32"
    else ("HOME", "LOGNAME", "SHELL", "TERM", "USER")
)
"""The variables that the official SDKs' clients give to a server, besides PATH."""


def client_path() -> str:
    """Return the PATH of a client with a window."""
    root = os.environ.get("SYSTEMROOT", r"C:\Windows")
    return f"{root}\\System32;{root}" if NAME == "win32" else "/usr/bin:/bin"


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


def be_nice(by: int) -> None:
    """Let others have the processor first, where there is such a call. Raises: OSError."""
    if NAME != "win32":
        os.nice(by)


def is_process_file(path: str) -> bool:
    """Return whether a path names a descriptor of a process, as a shell's `<(…)` does."""
    return path.startswith(("/dev/", "/proc/"))

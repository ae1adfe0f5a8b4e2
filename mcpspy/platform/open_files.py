"""The number of files and sockets that this process may have open at once."""

import os
import socket
import sys
from typing import Final

_OPEN_MAX: Final = 10_240
"""OPEN_MAX of macOS, which refuses a higher number, also where it says that there is no limit."""


def most_open_files() -> float:
    """Return the number that may be open now."""
    if sys.platform == "win32":
        return 512  # what select takes there
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return float("inf") if most == resource.RLIM_INFINITY else most


def allow_many_open_files() -> None:
    """Raise the number to what the system allows: the default is 1,024 on Linux, and 256 on macOS."""
    if sys.platform == "win32":
        return
    import resource

    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most
    if sys.platform == "darwin" and (most == resource.RLIM_INFINITY or most > _OPEN_MAX):
        wanted = now if now != resource.RLIM_INFINITY and now > _OPEN_MAX else _OPEN_MAX
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def open_files(listener: socket.socket) -> int:
    """Return how many are open now, or a little more. On Windows sockets alone count, and select's: the listener and the waker."""
    if sys.platform == "win32":
        return 2
    lowest_free = os.dup(listener.fileno())
    os.close(lowest_free)
    return lowest_free

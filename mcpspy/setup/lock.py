"""One mcpspy at a time changes clients' files: what two of them do at once must not undo each other."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import SetupError

FILE = "setup.lock"


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Wait until no other mcpspy with this folder of its own is at it. Raises: SetupError: if nothing can be kept there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(folder / FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SetupError(str(folder), f"nothing was changed: no backup can be kept there ({error.strerror})") from error
    try:
        _lock(fd)
        yield
    finally:
        os.close(fd)


def _lock(fd: int) -> None:
    try:
        from fcntl import LOCK_EX, flock
    except ImportError:  # Windows
        return
    try:
        flock(fd, LOCK_EX)
    except OSError:  # a file system without locks
        pass

"""Files that belong to one user, locks, and the user's home folder.

This is on the tap's start-up path, so what it needs is imported when it is needed.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Python opens descriptors close-on-exec by itself. Windows has no O_NONBLOCK and no O_NOFOLLOW, the others have no O_BINARY.
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
NONBLOCK = getattr(os, "O_NONBLOCK", 0)
BINARY = getattr(os, "O_BINARY", 0)

OTHERS = 0 if sys.platform == "win32" else 0o077
"""The rights of everybody but the owner. On Windows the modes of a file say nothing: it has the rights of its folder."""

CAN_REMOVE_OPEN_FILES = sys.platform != "win32"

_LOCKED_AT = 1 << 42
"""The byte that is locked on Windows, where nobody can read what is locked: far behind the end of every file."""


def lock(fd: int) -> None:
    """Wait for the lock of an open file, and hold it until the descriptor is closed. Raises: OSError: a file system without locks."""
    if sys.platform == "win32":
        while not _lock_byte(fd, waits=True):
            pass
        return
    from fcntl import LOCK_EX, flock

    flock(fd, LOCK_EX)


def try_to_lock(fd: int, *, shared: bool = False) -> None:
    """Take the lock of an open file, until the descriptor is closed.

    Raises: BlockingIOError: if somebody else holds it, unless both do so `shared`. OSError: a file system without locks.
    """
    if sys.platform == "win32":  # which has no shared ones there: who looks gives the lock back in microseconds
        if not _lock_byte(fd):
            raise BlockingIOError
        return
    from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock

    flock(fd, (LOCK_SH if shared else LOCK_EX) | LOCK_NB)


def belongs_to_us(facts: os.stat_result) -> bool:
    """Return whether a file or folder belongs to the user who runs this process."""
    return sys.platform == "win32" or facts.st_uid == os.geteuid()


def is_superuser() -> bool:
    """Return whether this process may do what it likes with others' files."""
    return sys.platform != "win32" and os.geteuid() == 0


def sync(fd: int) -> None:
    """Wait until the bytes of a file are on the disk. Raises: OSError."""
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(fd)


def read_at(fd: int, size: int, offset: int) -> bytes:
    """Read bytes of a file at an offset. Windows, which has no such call, moves its position. Raises: OSError."""
    if sys.platform == "win32":
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, size)
    return os.pread(fd, size, offset)


def restore_owner(file: str | os.PathLike[str], before: os.stat_result) -> None:
    """Give a file the owner and group of the one that it replaces, as when root edits a user's file. Raises: OSError."""
    if sys.platform == "win32":
        return
    now = os.stat(file)
    if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
        os.chown(file, before.st_uid, before.st_gid)


def user_home() -> str:
    """Return the user's home folder: `HOME`, or that of the system's list of users; on Windows `USERPROFILE` alone.

    The SDKs' clients give a server `USERPROFILE`, `APPDATA` and `LOCALAPPDATA` there, and little else. The last lies in the home too.
    """
    if sys.platform == "win32":
        return (
            os.environ.get("USERPROFILE") or os.environ.get("HOMEDRIVE", "") + os.environ.get("HOMEPATH", "") or _above_data()
        )
    home = os.environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    from pwd import getpwuid

    try:
        return getpwuid(os.getuid()).pw_dir
    except KeyError:  # a container's user without an entry
        return "/"


def boot_id() -> str:
    """Return the id of the system's start, in which process ids are unique; empty where there is none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def _above_data() -> str:
    """Return the home folder that the folder for data of programs lies in: `AppData`, `Local`; else a folder that does not exist."""
    return os.path.dirname(os.path.dirname(os.environ.get("LOCALAPPDATA") or os.environ.get("APPDATA") or "/"))


def _lock_byte(fd: int, *, waits: bool = False) -> bool:
    """Lock the byte that Windows locks for us; return whether that was done. Waits at most ten seconds."""
    import msvcrt

    windows: Any = msvcrt  # whose functions the types have on Windows alone
    position = os.lseek(fd, 0, os.SEEK_CUR)
    os.lseek(fd, _LOCKED_AT, os.SEEK_SET)
    try:
        windows.locking(fd, windows.LK_LOCK if waits else windows.LK_NBLCK, 1)
    except OSError:
        return False
    finally:
        os.lseek(fd, position, os.SEEK_SET)
    return True

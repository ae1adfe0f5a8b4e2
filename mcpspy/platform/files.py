"""Files that belong to one user, locks, and the user's home folder.

This is on the tap's start-up path, so what it needs is imported when it is needed.
"""

from __future__ import annotations

import os

# Python opens descriptors close-on-exec by itself. Windows has no O_NONBLOCK and no O_NOFOLLOW, the others have no O_BINARY.
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
NONBLOCK = getattr(os, "O_NONBLOCK", 0)
BINARY = getattr(os, "O_BINARY", 0)


def lock(fd: int) -> None:
    """Wait for the lock of an open file, and hold it until the descriptor is closed. Raises: OSError: a file system without locks."""
    from fcntl import LOCK_EX, flock

    flock(fd, LOCK_EX)


def try_to_lock(fd: int, *, shared: bool = False) -> None:
    """Take the lock of an open file, until the descriptor is closed.

    Raises: BlockingIOError: if somebody else holds it, unless both do so `shared`. OSError: a file system without locks.
    """
    from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock

    flock(fd, (LOCK_SH if shared else LOCK_EX) | LOCK_NB)


def belongs_to_us(facts: os.stat_result) -> bool:
    """Return whether a file or folder belongs to the user who runs this process."""
    return facts.st_uid == os.geteuid()


def is_superuser() -> bool:
    """Return whether this process may do what it likes with others' files."""
    return os.geteuid() == 0


def sync(fd: int) -> None:
    """Wait until the bytes of a file are on the disk. Raises: OSError."""
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(fd)


def restore_owner(file: str | os.PathLike[str], before: os.stat_result) -> None:
    """Give a file the owner and group of the one that it replaces, as when root edits a user's file. Raises: OSError."""
    now = os.stat(file)
    if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
        os.chown(file, before.st_uid, before.st_gid)


def user_home() -> str:
    """Return the user's home folder: `HOME`, or that of the system's list of users."""
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

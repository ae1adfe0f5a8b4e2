"""Where captures lie, and how a new one begins: the store's folder, its key, unique names, and the lock of a live capture.

The tap's start-up path comes through here, so it imports `os` and what Python has loaded already; `catalog` looks at what
the store holds. Refuses to read captures, and to change anything that exists.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from .label import default_label

__all__ = ["EXTENSION", "captures_folder", "create", "default_label", "home_folder", "is_live", "key", "lock"]

EXTENSION = ".mcpspy"

KEY_BYTES = 32

MAX_NAMES = 10_000
"""How many names are tried for one capture. So many taps do not start in one second with one pid."""

LOCK_ATTEMPTS = 50
"""Who asks whether a fresh capture is live holds its lock for microseconds: so often, 1 ms apart, its writer tries again."""

_LABEL_LETTERS = 48

# Python opens descriptors close-on-exec by itself. Windows has no O_NONBLOCK, the others have no O_BINARY.
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)


def home_folder() -> str:
    """The folder of everything mcpspy keeps: `MCPSPY_HOME`, else `.mcpspy` in the home directory.

    Found from the home directory alone: clients start servers with `HOME LOGNAME PATH SHELL TERM USER` and little else, so
    a store that depended on other variables would be written in one place and read in another.
    """
    named = os.environ.get("MCPSPY_HOME")
    return os.path.abspath(named) if named else os.path.join(_user_home(), ".mcpspy")


def captures_folder() -> str:
    """The folder where captures lie that were not given a file of their own."""
    return os.path.join(home_folder(), "captures")


def key() -> bytes:
    """The store's key for pseudonyms, made on first use. A store that cannot keep one yields a key for this process alone."""
    try:
        return _kept_key(os.path.join(home_folder(), "key"))
    except OSError:
        return os.urandom(KEY_BYTES)


def create(path: str | None, label: str, *, wall_ns: int) -> tuple[int, str]:
    """Open a new capture for appending and lock it. Returns the descriptor and the path it got.

    Without `path` the capture lies in the store, under its start time in UTC, `label` and our pid. A `path` that exists is
    left alone, and the capture gets the next free of `FILE-2`, `FILE-3`, …; a device or a FIFO is opened as it is.
    Raises: OSError: if no file can be made there, or another mcpspy records into that FIFO.
    """
    if path is None:
        folder = captures_folder()
        _make_private(home_folder())
        _make_private(folder)
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(wall_ns // 1_000_000_000))
        path = os.path.join(folder, f"{moment}-{_file_part(label)}-{os.getpid()}{EXTENSION}")
    elif _is_channel(path):
        return _open_channel(path), path
    return _open_new(path)


def lock(fd: int) -> None:
    """Mark the capture open at `fd` as live, until the descriptor is closed: by us, or by the system when we are killed.

    Raises: BlockingIOError: if another process records into the same file.
    """
    from fcntl import LOCK_EX, LOCK_NB, flock

    for attempt in range(LOCK_ATTEMPTS):
        try:
            flock(fd, LOCK_EX | LOCK_NB)
            return
        except BlockingIOError:
            if attempt == LOCK_ATTEMPTS - 1:
                raise
            time.sleep(0.001)


def is_live(path: str) -> bool:
    """True while a tap records into the capture at `path`. False too where it cannot be opened."""
    from fcntl import LOCK_NB, LOCK_SH, flock

    try:
        fd = os.open(path, os.O_RDONLY | _NONBLOCK)
    except OSError:
        return False
    try:
        flock(fd, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(fd)
    return False


def _user_home() -> str:
    home = os.environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    from pwd import getpwuid

    try:
        return getpwuid(os.getuid()).pw_dir
    except KeyError:  # a container's user without an entry
        return "/"


def _kept_key(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            found = file.read(KEY_BYTES)
        if len(found) == KEY_BYTES:
            return found
    except FileNotFoundError:
        _make_private(os.path.dirname(path))
    return _made_key(path)


def _made_key(path: str) -> bytes:
    """The key in the file at `path`, written if need be: taps that start together take turns, and the first one's counts."""
    from fcntl import LOCK_EX, flock

    fd = os.open(path, os.O_RDWR | os.O_CREAT | _BINARY, 0o600)
    try:
        flock(fd, LOCK_EX)
        found = os.read(fd, KEY_BYTES)
        if len(found) == KEY_BYTES:
            return found
        made = os.urandom(KEY_BYTES)
        os.lseek(fd, 0, os.SEEK_SET)
        if os.write(fd, made) != KEY_BYTES:
            raise OSError(f"{path}: the disk took only a part of the key")
        return made
    finally:
        os.close(fd)


def _make_private(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(folder, 0o700, exist_ok=True)


def _file_part(label: str) -> str:
    """`label` as a part of a file's name: letters, digits, `.`, `_` and `-`, and never empty."""
    safe = "".join(one if one.isalnum() or one in "._-" else "-" for one in label[:_LABEL_LETTERS])
    return safe.strip(".-") or "server"


def _open_new(path: str) -> tuple[int, str]:
    stem, extension = os.path.splitext(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | _BINARY
    for count in range(1, MAX_NAMES):
        name = path if count == 1 else f"{stem}-{count}{extension}"
        try:
            fd = os.open(name, flags, 0o600)
        except FileExistsError:
            if os.path.isdir(name):
                raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", name) from None
            if os.path.exists(name) and not os.path.isfile(name):
                raise OSError(errno.EINVAL, "this is no file, but a socket or a disk", name) from None
            continue
        _try_to_lock(fd)
        return fd, name
    raise FileExistsError(errno.EEXIST, f"{MAX_NAMES - 1} captures of this name exist", path)


def _is_channel(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _open_channel(path: str) -> int:
    """A device or a FIFO, never blocking: a FIFO that nobody reads must not hold up the traffic, it makes a gap."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | _NONBLOCK)
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return fd
    try:
        lock(fd)
    except BlockingIOError as error:
        os.close(fd)
        raise BlockingIOError(error.errno, "another mcpspy records into it", path) from None
    return fd


def _try_to_lock(fd: int) -> None:
    """Lock a file of our own making; without locks (some network file systems) it is only not seen to be live."""
    try:
        lock(fd)
    except OSError:
        pass

"""The store's folder: where captures are kept, the key of the store, unique names for new captures, the lock of a live capture.

This is on the tap's start-up path, so it imports `os` and modules that Python has loaded already. Existing captures are neither read
nor changed here; `catalog` lists them.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from ...platform.files import BINARY, NOFOLLOW, NONBLOCK, OTHERS, belongs_to_us, boot_id, is_superuser, try_to_lock, user_home
from ...platform.files import lock as wait_for_lock
from .label import default_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "EXTENSION",
    "INDEX_EXTENSION",
    "boot_id",
    "captures_folder",
    "create",
    "create_again",
    "default_label",
    "home_folder",
    "is_live",
    "key",
    "live_folder",
    "lock",
]

EXTENSION = ".mcpspy"

INDEX_EXTENSION = ".idx"
"""Was the end of the names of index files, which versions before 0.9.0 kept beside large captures."""

KEY_BYTES = 32

MAX_NAMES = 10_000
"""Limit of the names that are tried for one capture. So many taps do not start in one second with one pid."""

LOCK_ATTEMPTS = 50
"""Attempts of a writer to lock its new capture, 1 ms apart: `is_live` holds the lock for microseconds."""

_LABEL_LETTERS = 48


def home_folder() -> str:
    """Return the folder of everything that mcpspy keeps: `MCPSPY_HOME`, otherwise `.mcpspy` in the home directory.

    It depends on the home directory alone: clients start servers with `HOME LOGNAME PATH SHELL TERM USER` and little else, so a
    store that depended on other variables would be written in one place and read in another.
    """
    named = os.environ.get("MCPSPY_HOME")
    return os.path.abspath(named) if named else os.path.join(user_home(), ".mcpspy")


def captures_folder() -> str:
    """Return the folder of captures that were not given a file of their own."""
    return os.path.join(home_folder(), "captures")


def live_folder() -> str:
    """Return the folder of the control sockets of running taps."""
    return os.path.join(home_folder(), "live")


def key() -> bytes:
    """Return the store's key for pseudonyms, made on first use. If the store cannot keep it, the key is for this process only."""
    try:
        return _kept_key(os.path.join(home_folder(), "key"))
    except OSError:
        return os.urandom(KEY_BYTES)


def create(
    path: str | None, label: str, *, wall_ns: int, complain: Callable[[str], None] = lambda line: None
) -> tuple[int, str]:
    """Open a new capture for appending and lock it. Return the descriptor and the path of the capture.

    Without `path` the capture goes into the store, named by its start time in UTC, `label` and our pid. A file `path` that exists is
    left alone, and the capture gets the next free name of `FILE-2`, `FILE-3`, …; a device or a FIFO is opened as it is.
    `complain` is called with one line if others can reach a folder of the store that is not ours to change.
    Raises: OSError: if no file can be made there, or another mcpspy records into that FIFO.
    """
    if path is None:
        folder = captures_folder()
        _make_private(home_folder())
        _make_private(folder)
        exposed = _exposed(home_folder(), is_ours=not os.environ.get("MCPSPY_HOME")), _exposed(folder, is_ours=True)
        if any(exposed):
            complain(exposed[0] or exposed[1])
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(wall_ns // 1_000_000_000))
        path = os.path.join(folder, f"{moment}-{_file_part(label)}-{os.getpid()}{EXTENSION}")
    elif _is_channel(path):
        return _open_channel(path), path
    return _open_new(path)


def create_again(path: str) -> tuple[int, str]:
    """Open a new capture in the place of one that was removed. Return the descriptor and its path, which is another if that is taken.

    The store's folders are made again too; one that the user named is not. Raises: OSError.
    """
    if os.path.dirname(path) == captures_folder():
        _make_private(home_folder())
        _make_private(captures_folder())
    return _open_new(path)


def lock(fd: int) -> None:
    """Mark the capture open at `fd` as live, until the descriptor is closed: by us, or by the system when we are killed.

    Raises: BlockingIOError: if another process records into the same file.
    """
    for attempt in range(LOCK_ATTEMPTS):
        try:
            try_to_lock(fd)
            return
        except BlockingIOError:
            if attempt == LOCK_ATTEMPTS - 1:
                raise
            time.sleep(0.001)


def is_live(path: str) -> bool:
    """Return whether a tap records into the capture at `path` now. False too if it cannot be opened, and for a FIFO.

    A FIFO is not opened: its writer, who waits for a reader, would write what nobody reads.
    """
    try:
        if stat.S_ISFIFO(os.stat(path).st_mode):
            return False
        fd = os.open(path, os.O_RDONLY | NONBLOCK)
    except OSError:
        return False
    try:
        try_to_lock(fd, shared=True)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(fd)
    return False


def _kept_key(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | NOFOLLOW | NONBLOCK | BINARY)
    except FileNotFoundError:
        _make_private(os.path.dirname(path))
        return _made_key(path)
    try:
        _check_owner(fd, path)
        kept = os.read(fd, KEY_BYTES)
    finally:
        os.close(fd)
    return kept if len(kept) == KEY_BYTES else _made_key(path)


def _check_owner(fd: int, path: str) -> None:
    """Make the key private.

    Raises: PermissionError: if another user has made it, who could check guesses of secrets with it; or if it is a FIFO or the like.
    """
    facts = os.fstat(fd)
    if not stat.S_ISREG(facts.st_mode):
        raise PermissionError(errno.EPERM, "the key is no file; remove it", path)
    if belongs_to_us(facts):
        if facts.st_mode & OTHERS:
            os.fchmod(fd, 0o600)
    elif not is_superuser():
        raise PermissionError(errno.EPERM, "the key belongs to another user; set MCPSPY_HOME to a folder of your own", path)


def _made_key(path: str) -> bytes:
    """Read the key in the file at `path`, or write a new one: taps that start together take turns, and the first key counts."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | NOFOLLOW | NONBLOCK | BINARY, 0o600)
    try:
        _check_owner(fd, path)
        wait_for_lock(fd)
        kept = os.read(fd, KEY_BYTES)
        if len(kept) == KEY_BYTES:
            return kept
        new = os.urandom(KEY_BYTES)
        os.lseek(fd, 0, os.SEEK_SET)
        if os.write(fd, new) != KEY_BYTES:
            raise OSError(f"{path}: the disk took only a part of the key; make room on it")
        return new
    finally:
        os.close(fd)


def _make_private(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(folder, 0o700, exist_ok=True)


def _exposed(folder: str, *, is_ours: bool) -> str:
    """Make a folder that `is_ours` private again. Return one line if others can reach another folder, or a link's; else nothing."""
    try:
        facts = os.stat(folder)
        if not belongs_to_us(facts):
            return f"mcpspy: {folder} belongs to another user, who can read and change what is recorded there"
        if not facts.st_mode & OTHERS:
            return ""
        if is_ours and not os.path.islink(folder):
            os.chmod(folder, 0o700)
            return ""
    except OSError:
        return ""  # no capture can be made there, which is reported
    return f"mcpspy: other users can open {folder}, where mcpspy records; if only you need it: chmod 700 {folder}"


def _file_part(label: str) -> str:
    """Make `label` a part of a file's name: letters, digits, `.`, `_` and `-`, and never empty."""
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in label[:_LABEL_LETTERS])
    return safe.strip(".-") or "server"


def _open_new(path: str) -> tuple[int, str]:
    stem, extension = os.path.splitext(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | NOFOLLOW | BINARY
    for count in range(1, MAX_NAMES):
        name = path if count == 1 else f"{stem}-{count}{extension}"
        try:
            fd = os.open(name, flags, 0o600)
        except FileExistsError:
            if os.path.isdir(name):
                raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", name) from None
            if os.path.exists(name) and not os.path.isfile(name):
                raise OSError(errno.EINVAL, "this is no file, but a socket or a disk; name a file", name) from None
            continue
        _try_to_lock(fd)
        return fd, name
    raise FileExistsError(errno.EEXIST, f"{MAX_NAMES - 1} captures of this name exist; choose another name", path)


def _is_channel(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _open_channel(path: str) -> int:
    """Open a device or a FIFO, never blocking: a FIFO that nobody reads must not hold up the traffic, it makes a gap."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | NONBLOCK)
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return fd
    try:
        lock(fd)
    except BlockingIOError as error:
        os.close(fd)
        raise BlockingIOError(error.errno, "another mcpspy records into it; name another", path) from None
    return fd


def _try_to_lock(fd: int) -> None:
    """Lock a file that we have made; on file systems without locks (some network ones) it just does not count as live."""
    try:
        lock(fd)
    except OSError:
        pass

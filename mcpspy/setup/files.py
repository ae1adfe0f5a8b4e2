"""Reads, copies and replaces a configuration file: the copy first, then one rename, never over a change by another program.

Killed at any instant, it leaves the old file or the new one, whole; what else it leaves is private, and the next one removes it.
"""

import glob
import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import SetupError
from ..platform.files import BINARY, NONBLOCK, restore_owner
from ..platform.system import runs

NO_FILE = "is not a regular file; move it away"
MAX_FILE_BYTES = 64_000_000

ANY_WRITER = 0o222
"""The bits of a mode that allow writing. root may write without them, but somebody removed them on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A file as it was read. `target` is its path with links resolved."""

    file: Path
    target: Path
    data: bytes
    status: os.stat_result

    @property
    def text(self) -> str:
        """Its text, byte order mark included. Raises: SetupError."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise SetupError(str(self.file), f"is not UTF-8 (byte {error.start}); save it as UTF-8") from error


def read(file: Path) -> Snapshot | None:
    """Read a file; None if there is none. Raises: SetupError."""
    target = Path(os.path.realpath(file))
    try:
        with open(target, "rb", opener=_without_waiting) as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SetupError(str(file), NO_FILE)
            data = opened.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError as error:
        raise SetupError(str(file), NO_FILE) from error
    except OSError as error:
        raise SetupError(
            str(file), f"cannot be read: {error.strerror}; make it readable, or choose other clients with --client"
        ) from error
    if len(data) > MAX_FILE_BYTES:
        raise SetupError(str(file), f"has more than {MAX_FILE_BYTES} bytes; change it by hand")
    return Snapshot(file=file, target=target, data=data, status=status)


def _without_waiting(file: str, flags: int) -> int:
    """Open a file; a FIFO without waiting for its writer."""
    return os.open(file, flags | NONBLOCK)


def keep(snapshot: Snapshot, folder: Path) -> Path:
    """Keep a private copy in `folder`, which is created if needed; equal copies are kept once. Raises: SetupError."""
    content = hashlib.sha256(snapshot.data).hexdigest()[:12]
    kept = folder / f"{_kept_name(snapshot.target)}-{content}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (kept.exists() and kept.read_bytes() == snapshot.data):
            write_through(kept, snapshot.data, 0o600)
    except OSError as error:
        reason = f"was not changed: no backup could be made ({error.strerror}); make {folder} writable"
        raise SetupError(str(snapshot.file), reason) from error
    return kept


def copies(target: Path, folder: Path) -> list[Path]:
    """List the copies in `folder` of the file at `target`, the newest first."""
    pattern = f"{glob.escape(_kept_name(target))}-*"
    try:
        return sorted(folder.glob(pattern), key=lambda copy: copy.stat().st_mtime_ns, reverse=True)
    except OSError:
        return []


def replace(snapshot: Snapshot, text: str) -> None:
    """Replace the file's content, keeping its mode and owner, if it did not change since it was read. Raises: SetupError."""
    file, mode = str(snapshot.file), stat.S_IMODE(snapshot.status.st_mode)
    if not mode & ANY_WRITER or not os.access(snapshot.target, os.W_OK):
        raise SetupError(file, "was not changed: it is read-only; make it writable first, or change it by hand")
    if snapshot.status.st_nlink > 1:
        raise SetupError(
            file, "was not changed: it has a second name (a hard link), which would keep the old content; change it by hand"
        )
    if not os.access(snapshot.target.parent, os.W_OK | os.X_OK):
        folder = snapshot.target.parent
        reason = (
            f"was not changed: the new file is written into {folder} first; make that folder writable, or change it by hand"
        )
        raise SetupError(file, reason)
    try:
        write_through(snapshot.target, text.encode("utf-8"), mode, over=snapshot)
    except OSError as error:
        raise SetupError(file, f"was not changed: {error.strerror}; try again, or change it by hand") from error


def _kept_name(target: Path) -> str:
    return f"{target.name}-{hashlib.sha256(os.fsencode(target)).hexdigest()[:8]}"


def write_own(file: Path, data: bytes) -> None:
    """Write a private file of ours, whole or not at all. Raises: SetupError."""
    try:
        write_through(file, data, 0o600)
    except OSError as error:
        raise SetupError(str(file), f"cannot be written: {error.strerror}; make its folder writable") from error


def write_through(target: Path, data: bytes, mode: int, *, over: Snapshot | None = None) -> None:
    """Write a new file beside `target`, sync it to the disk, and rename it. Raises: OSError; SetupError: if `over` has changed.

    It gets its mode last: until it has its name, only its owner can read it, also if we are killed.
    """
    remove_leftovers(target.parent, target.name)
    beside = target.with_name(f".{target.name}.mcpspy-{os.getpid()}-{os.urandom(4).hex()}")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600)
    try:
        with os.fdopen(fd, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        if over is not None:
            restore_owner(beside, over.status)
            if target.read_bytes() != over.data:
                raise SetupError(str(over.file), "was not changed: another program wrote to it meanwhile; try again")
        os.replace(beside, target)
        with suppress(OSError):  # a file system without modes
            os.chmod(target, mode)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove unfinished files that a killed mcpspy left beside the file `name`, or if it is empty, beside any file."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for left in names:
        begin, mark, end = left.rpartition(".mcpspy-")
        pid = end.partition("-")[0]
        is_ours = begin == f".{name}" if name else begin.startswith(".")
        if mark and is_ours and pid.isdecimal() and not runs(int(pid)):
            with suppress(OSError):
                os.unlink(folder / left)


def _sync_folder(folder: Path) -> None:
    try:
        fd = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(fd)
    except OSError:
        pass
    finally:
        os.close(fd)

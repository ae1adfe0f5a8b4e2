"""A configuration file read, kept and replaced: backup first, then one rename, and never over what somebody else wrote meanwhile.

Killed at any instant, it leaves the old file or the new one, whole.
"""

import glob
import hashlib
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from ..errors import SetupError

MAX_FILE_BYTES = 64_000_000

ANY_WRITER = 0o222
"""The bits of a mode that let anybody write. root may all the same; but who took them away meant something by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A file as it was read. `target` is where it lies, once links have been followed."""

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
            raise SetupError(str(self.file), f"is not UTF-8 (byte {error.start}); save it as that") from error


def read(file: Path) -> Snapshot | None:
    """The file as it is; None if there is none. Raises: SetupError."""
    target = Path(os.path.realpath(file))
    try:
        with open(target, "rb", opener=_at_once) as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SetupError(str(file), "is no ordinary file; move it away")
            data = opened.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SetupError(str(file), f"cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise SetupError(str(file), f"has more than {MAX_FILE_BYTES} bytes")
    return Snapshot(file=file, target=target, data=data, status=status)


def _at_once(file: str, flags: int) -> int:
    """A FIFO would have us wait for its writer."""
    return os.open(file, flags | getattr(os, "O_NONBLOCK", 0))


def keep(snapshot: Snapshot, folder: Path) -> Path:
    """A private copy in `folder`, which is made; the same content is kept once. Raises: SetupError."""
    content = hashlib.sha256(snapshot.data).hexdigest()[:12]
    kept = folder / f"{_kept_name(snapshot.target)}-{content}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (kept.exists() and kept.read_bytes() == snapshot.data):
            _write_through(kept, snapshot.data, 0o600)
    except OSError as error:
        raise SetupError(str(snapshot.file), f"was not changed: no backup could be made ({error.strerror})") from error
    return kept


def copies(target: Path, folder: Path) -> list[Path]:
    """The copies in `folder` of the file that lies at `target`, the newest first."""
    try:
        return sorted(folder.glob(f"{glob.escape(_kept_name(target))}-*"), key=lambda one: one.stat().st_mtime_ns, reverse=True)
    except OSError:
        return []


def replace(snapshot: Snapshot, text: str) -> None:
    """Put `text` in the file's place, with its mode and owner, if it still is what was read. Raises: SetupError."""
    file, mode = str(snapshot.file), stat.S_IMODE(snapshot.status.st_mode)
    if not mode & ANY_WRITER or not os.access(snapshot.target, os.W_OK):
        raise SetupError(file, "was not changed: it is read-only; make it writable first, or change it by hand")
    if snapshot.status.st_nlink > 1:
        raise SetupError(
            file, "was not changed: it has a second name (a hard link), which would be left behind; change it by hand"
        )
    if not os.access(snapshot.target.parent, os.W_OK | os.X_OK):
        folder = snapshot.target.parent
        raise SetupError(
            file, f"was not changed: you may not write in its folder, {folder}, where the new file is put together"
        )
    try:
        _write_through(snapshot.target, text.encode("utf-8"), mode, over=snapshot)
    except OSError as error:
        raise SetupError(file, f"was not changed: {error.strerror}") from error


def _kept_name(target: Path) -> str:
    return f"{target.name}-{hashlib.sha256(os.fsencode(target)).hexdigest()[:8]}"


def write_own(file: Path, data: bytes) -> None:
    """Write a private file of ours, whole or not at all. Raises: SetupError."""
    try:
        _write_through(file, data, 0o600)
    except OSError as error:
        raise SetupError(str(file), f"cannot be written: {error.strerror}") from error


def _write_through(target: Path, data: bytes, mode: int, *, over: Snapshot | None = None) -> None:
    """Write beside `target`, to the disk, and rename."""
    _clear(target)
    beside = target.with_name(f".{target.name}.mcpspy-{os.getpid()}-{os.urandom(4).hex()}")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(fd, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        os.chmod(beside, mode)
        if over is not None:
            _give(beside, over.status)
            if target.read_bytes() != over.data:
                raise SetupError(str(over.file), "was not changed: somebody else wrote to it meanwhile; try again")
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _clear(target: Path) -> None:
    """Take away what was left beside `target` by one of us that was killed."""
    begin = f".{target.name}.mcpspy-"
    for name in os.listdir(target.parent):
        pid = name.removeprefix(begin).partition("-")[0]
        if name.startswith(begin) and pid.isdecimal() and not _runs(int(pid)):
            target.with_name(name).unlink(missing_ok=True)


def _runs(pid: int) -> bool:
    """Whether there is such a process; where that cannot be asked without ending it, there is."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _give(file: Path, status: os.stat_result) -> None:
    """Leave it to whom it belonged, as when root edits a user's file."""
    if sys.platform == "win32":
        return
    if (status.st_uid, status.st_gid) != (os.geteuid(), file.stat().st_gid):
        os.chown(file, status.st_uid, status.st_gid)


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

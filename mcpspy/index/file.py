"""The file of an index: sections of bytes, and a last line of JSON that says where they are and which capture they are of.

Whatever is wrong with it, there is no index: nothing here raises for the content of a file. docs/index-file.md describes it.
"""

from __future__ import annotations

import json
import os
import stat
import time
from binascii import crc32
from dataclasses import dataclass
from typing import Any, Final, Self

from ..capture.store.folder import INDEX_EXTENSION
from ..platform.files import BINARY, NOFOLLOW, NONBLOCK, OTHERS, belongs_to_us, read_at

FORMAT: Final = 2
FIRST_LINE: Final = b"mcpspy-index\n"

_END_BYTES: Final = 4096
"""Of so many bytes at both ends of a capture the identity has a CRC; the last line of an index is no longer."""

_ABANDONED_S: Final = 3600
"""Nobody writes an index any more that has not grown for so long."""

_CRC_BYTES: Final = len(',"crc":"01234567"}')


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Facts by which a capture is known to be the one that was indexed, and unchanged."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    head: int
    tail: int


def identity(path: str) -> Identity | None:
    """Return the identity of the capture at `path`; None if it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | NOFOLLOW | BINARY)
    except OSError:
        return None
    try:
        return identity_of(fd)
    except OSError:
        return None
    finally:
        os.close(fd)


def whole_lines(path: str) -> Identity | None:
    """Return the identity of the whole lines of the capture at `path`, to which others are being added; None as above."""
    try:
        fd = os.open(path, os.O_RDONLY | NOFOLLOW | BINARY)
    except OSError:
        return None
    try:
        size = os.fstat(fd).st_size
        end = -1
        while (
            size > 0 and (end := read_at(fd, _END_BYTES, begin := max(0, size - _END_BYTES)).rfind(b"\n", 0, size - begin)) < 0
        ):
            size = begin
        return identity_of(fd, begin + end + 1) if end >= 0 else None
    except OSError:
        return None
    finally:
        os.close(fd)


def identity_of(fd: int, size: int | None = None) -> Identity:
    """Return the identity of the capture that is open at `fd`, or of so many bytes of it. Raises: OSError."""
    facts = os.fstat(fd)
    size = facts.st_size if size is None else size
    last = max(0, size - _END_BYTES)
    return Identity(
        size=size,
        mtime_ns=facts.st_mtime_ns,
        ctime_ns=facts.st_ctime_ns,
        inode=facts.st_ino,
        head=crc32(read_at(fd, min(size, _END_BYTES), 0)),
        tail=crc32(read_at(fd, size - last, last)),
    )


def has_grown(before: Identity, fd: int) -> bool:
    """Return whether the capture that is open at `fd` begins with all of what it was, as far as its ends tell. Raises: OSError."""
    if os.fstat(fd).st_size <= before.size:
        return identity_of(fd) == before
    now = identity_of(fd, before.size)
    return (now.inode, now.head, now.tail) == (before.inode, before.head, before.tail)


def is_still(path: str, before: Identity, *, closed: bool) -> bool:
    """Return whether the capture at `path` is what it was; unless it is `closed`, it may have grown. Raises: OSError."""
    if closed:
        return identity(path) == before
    fd = os.open(path, os.O_RDONLY | NOFOLLOW | BINARY)
    try:
        return has_grown(before, fd)
    finally:
        os.close(fd)


class IndexWriter:
    """Writer of a new index beside a capture: `section` appends, `finish` puts it in the place of an older one.

    What is not finished when its context ends is removed, also if the user interrupts it.
    `more` is what its name has after that of an index, if it is a file of its own beside it.
    Raises: OSError: if the folder takes no file.
    """

    __slots__ = ("_fd", "_offset", "_path", "_sections", "_temporary")

    def __init__(self, capture: str, more: str = "") -> None:
        self._path = capture + INDEX_EXTENSION + more
        self._temporary = f"{self._path}.{os.getpid()}"
        _remove_unfinished(self._path)
        self._fd = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW | BINARY, 0o600)
        self._offset = 0
        self._sections: dict[str, tuple[int, int, int]] = {}

    def __enter__(self) -> Self:
        try:
            self.append(FIRST_LINE)
        except OSError:
            self._discard()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._temporary:
            self._discard()

    @property
    def offset(self) -> int:
        """The number of bytes written."""
        return self._offset

    def append(self, data: bytes) -> None:
        """Append bytes that are no section of their own. Raises: OSError."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]
        self._offset += len(data)

    def section(self, name: str, data: bytes) -> None:
        """Append a section. Raises: OSError."""
        self._sections[name] = (self._offset, len(data), crc32(data))
        self.append(data)

    def finish(self, of: Identity, version: str) -> None:
        """Write the last line, and take the place of an older index. Raises: OSError."""
        line = _last_line(of, version, self._sections)
        self.append(line)
        os.close(self._fd)  # first: Windows moves no file that is open
        self._fd = -1
        os.replace(self._temporary, self._path)
        self._temporary = ""

    def _discard(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        _unlink(self._temporary)


def _remove_unfinished(path: str) -> None:
    """Remove what processes have left that were killed while they wrote this index, one with our number among them."""
    folder, name = os.path.split(path)
    with os.scandir(folder or os.curdir) as entries:
        for entry in entries:
            before, _, number = entry.name.rpartition(".")
            if before == name and number.isdecimal() and (int(number) == os.getpid() or _is_abandoned(entry)):
                _unlink(entry.path)


def _is_abandoned(entry: os.DirEntry[str]) -> bool:
    return entry.stat(follow_symlinks=False).st_mtime < time.time() - _ABANDONED_S


def _unlink(path: str) -> None:
    """Remove a file, unless it is gone: a tap that makes room removes indexes."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _last_line(of: Identity, version: str, sections: dict[str, tuple[int, int, int]]) -> bytes:
    capture = {name: getattr(of, name) for name in Identity.__slots__}
    text = json.dumps({"mcpspy_index": FORMAT, "version": version, "capture": capture, "sections": sections})
    line = b"\n" + text[:-1].encode()
    return line + b',"crc":"%08x"}\n' % crc32(line[1:])


class IndexFile:
    """The index that is open at `fd`, which is closed with it. `section` reads a section."""

    __slots__ = ("_fd", "sections")

    def __init__(self, fd: int, sections: dict[str, Any]) -> None:
        self._fd = fd
        self.sections = sections

    def __del__(self) -> None:
        os.close(self._fd)

    def section(self, name: str) -> bytes:
        """Read a section. Raises: ValueError: if it is missing or damaged."""
        try:
            offset, length, crc = self.sections[name]
            data = read_at(self._fd, length, offset)
        except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
            raise ValueError(f"section {name} cannot be read") from error
        if len(data) != length or crc32(data) != crc:
            raise ValueError(f"section {name} is damaged")
        return data

    def piece(self, begin: int, end: int, crc: int) -> bytes:
        """Read bytes that are no section. Raises: ValueError: if they are damaged."""
        try:
            data = read_at(self._fd, max(0, end - begin), begin)
        except (OSError, OverflowError) as error:
            raise ValueError("a block cannot be read") from error
        if len(data) != end - begin or crc32(data) != crc:
            raise ValueError("a block is damaged")
        return data


def open_index(capture: str, of: Identity, version: str, more: str = "") -> IndexFile | None:
    """Open the index of the capture at this path; None if there is none of this identity, made by this version, and ours alone."""
    opened = _opened(capture + INDEX_EXTENSION + more, version)
    return None if opened is None or opened[1] != of else opened[0]


def open_older_index(capture: str, fd: int, version: str) -> tuple[IndexFile, Identity] | None:
    """Open the index of a capture, open at `fd`, that may have grown since. Return it with what the capture was; None: as above.

    After the version may be a word for the findings. Raises: OSError.
    """
    opened = _opened(capture + INDEX_EXTENSION, version, exact=False)
    return opened if opened is not None and has_grown(opened[1], fd) else None


def _opened(path: str, version: str, *, exact: bool = True) -> tuple[IndexFile, Identity] | None:
    try:
        fd = os.open(path, os.O_RDONLY | NOFOLLOW | NONBLOCK | BINARY)  # of a pipe with this name nobody waits for a writer
    except OSError:
        return None
    index = IndexFile(fd, {})
    try:
        about = _about(fd)
        is_ours = about is not None and about["mcpspy_index"] == FORMAT
        if about is None or not is_ours or (about["version"] if exact else about["version"][: len(version)]) != version:
            return None
        index.sections.update(about["sections"])
        return index, Identity(**about["capture"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _about(fd: int) -> dict[str, Any] | None:
    """Return what the last line says; None if it is not ours. Raises: what a hostile file makes it."""
    facts = os.fstat(fd)
    if not stat.S_ISREG(facts.st_mode) or not belongs_to_us(facts) or facts.st_mode & OTHERS:
        return None
    end = read_at(fd, _END_BYTES, max(0, facts.st_size - _END_BYTES))
    line = end[end.rfind(b"\n", 0, -1) + 1 : -1]
    if line[-10:-2] != b"%08x" % crc32(line[:-_CRC_BYTES]):
        return None
    about = json.loads(line)
    return about if isinstance(about, dict) else None

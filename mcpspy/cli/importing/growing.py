"""A log that grows: imported as it is written, by `mcpspy import --follow`; and shown, by `mcpspy show -f LOG`.

To show one, a second mcpspy imports it into a temporary store, and the captures there are followed as those of a tap are.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import rmtree
from typing import BinaryIO

from ...errors import ImportFileError
from ...imports.formats import HEAD_BYTES, recognized
from ...platform.watch import Watch
from ...views.text.escape import safe_text
from .convert import CaptureFiles
from .open_source import CHUNK_BYTES, can_be_imported, open_source

CAUGHT_UP = "caught up"
"""The line on standard output after which only new lines are imported."""


class _Interrupt:
    """Ctrl-C: it ends a wait at once, and work only when that is done, so that no line is lost that came before."""

    __slots__ = ("is_waiting", "is_wanted")

    def __init__(self) -> None:
        self.is_waiting = self.is_wanted = False

    def __call__(self, number: int, frame: object) -> None:
        self.is_wanted = True
        if self.is_waiting:
            raise KeyboardInterrupt

    def waited(self, watch: Watch) -> bool:
        """Wait for the file to grow. Return False if the user ended it."""
        try:
            self.is_waiting = True
            if not self.is_wanted:
                watch.wait()
        except KeyboardInterrupt:
            pass
        finally:
            self.is_waiting = False
        return not self.is_wanted


class _WatchedFile:
    """The file that a name stands for, which may become another one, as when a log is rotated."""

    __slots__ = ("_inode", "_watch", "path")

    def __init__(self, path: str, watch: Watch) -> None:
        self.path = path
        self._watch = watch
        self._inode: tuple[int, int] | None = None
        watch.add(os.path.dirname(os.path.abspath(path)))  # where another file may take its place

    def look(self) -> bool:
        """Watch the file that has the name now. Return False if there is none."""
        inode = _inode(self.path)
        if inode != self._inode:
            self._inode = inode
            self._watch.remove(self.path)
            self._watch.add(self.path)
        return inode is not None

    def is_replaced(self, file: BinaryIO) -> bool:
        """Return whether another file has the name, or the file is shorter than what was read of it."""
        named = _inode(self.path)  # without any, it may have another name, and grow until there is a new one
        own = os.fstat(file.fileno())
        return named not in (None, (own.st_dev, own.st_ino)) or own.st_size < file.tell()


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def import_growing(
    path: str, named: str | None, files: CaptureFiles, caught_up: Callable[[], None], complain: Callable[[str], None]
) -> None:
    """Import a file as it grows, and what takes its place, until the user ends it. Raises: OSError; ImportFileError."""
    watch, interrupt = Watch(reader_fd=1), _Interrupt()
    place = _WatchedFile(path, watch)
    place.look()
    former = signal.signal(signal.SIGINT, interrupt)
    watch.wake_by_signals()
    try:
        if named is None and not _has_begun(path):
            complain(
                f"mcpspy: {safe_text(path)}: nothing in it is in a format that mcpspy reads yet; waiting for what is added"
            )
            caught_up()
            caught_up = _nothing
        while True:
            while not (place.look() and (named is not None or _has_begun(path))):
                if not interrupt.waited(watch):
                    return
            if not _import_until_replaced(place, named, watch, interrupt, files, caught_up):
                return
            caught_up = _nothing
    finally:
        signal.signal(signal.SIGINT, former)
        watch.close()


def _import_until_replaced(
    place: _WatchedFile,
    named: str | None,
    watch: Watch,
    interrupt: _Interrupt,
    files: CaptureFiles,
    caught_up: Callable[[], None],
) -> bool:
    """Import a file until another one takes its place, or it begins anew. Return False if the user ended it before."""
    source = open_source(place.path, named, grows=True)
    goes_on = True
    with source.file:
        try:
            while True:
                is_over = not goes_on or place.is_replaced(source.file)
                while chunk := source.file.read(CHUNK_BYTES):
                    files.take(source.importer.feed(chunk))
                caught_up()
                caught_up = _nothing
                if is_over:
                    return goes_on
                goes_on = interrupt.waited(watch)
        finally:
            files.take(source.importer.close())


def _has_begun(path: str) -> bool:
    """Return whether the format of a file can be told, or that it has none: a text may get its first message yet."""
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    is_text = b"\0" not in head and not head.startswith(b'{"mcpspy"')
    return recognized(head) is not None or len(head) == HEAD_BYTES or not is_text


def _nothing() -> None:
    pass


@contextmanager
def followed_log(whats: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the WHATs to follow: for a log that can be imported those of a temporary store, into which it is imported as it grows.

    Raises: ImportFileError.
    """
    logs = [what for what in whats if os.path.isfile(what) and (can_be_imported(what, grows=True) or not _has_begun(what))]
    if not logs:
        yield whats
        return
    if len(whats) > 1:
        raise ImportFileError(logs[0], "a log that is followed is followed alone; name it without others")
    home = tempfile.mkdtemp(prefix="mcpspy-follow-")
    kept = os.environ.get("MCPSPY_HOME")
    os.environ["MCPSPY_HOME"] = home
    importer = subprocess.Popen(
        [sys.executable, "-P", "-m", "mcpspy", "import", "--follow", logs[0]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert importer.stdout is not None
        for line in importer.stdout:
            if line.strip() == CAUGHT_UP:
                break
        else:
            raise ImportFileError(logs[0], "it could not be imported; see the message above")
        yield ()
    finally:
        importer.terminate()
        importer.wait()
        if kept is None:
            del os.environ["MCPSPY_HOME"]
        else:
            os.environ["MCPSPY_HOME"] = kept
        rmtree(home, ignore_errors=True)

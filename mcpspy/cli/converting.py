"""Files that something else recorded, converted to captures: one for each session, in the store, where the user says, or temporary.

The format of a file is told by its content. A log that grows is converted as it is written, by `mcpspy import --follow`; and
shown, by `mcpspy show -f LOG`.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from shutil import rmtree
from typing import TYPE_CHECKING, BinaryIO, Final

from .. import __version__
from ..capture.file.format import header_line
from ..capture.file.writer import Writer
from ..capture.redaction.redactor import Redactor
from ..capture.redaction.sink import RedactingSink
from ..capture.store.address import STDIN
from ..capture.store.folder import create, key
from ..errors import ImportFileError
from ..imports.formats import FORMATS, HEAD_BYTES, Importer, ImportFormat, recognized, unreadable, without_messages
from ..imports.source import Source
from ..live.http.recorder import StreamRecorder
from ..platform.watch import Watch
from ..records import End, Header, Record
from ..views.text.escape import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..imports.source import SessionRecord

_CHUNK_BYTES = 1 << 18

STDOUT: Final = "-"
_URLS: Final = ("url", "listen")

CAUGHT_UP = "caught up"
"""The line on standard output after which only new lines are imported."""


@dataclass(frozen=True, slots=True)
class _OpenedSource:
    """A file at its first byte, its format and its importer."""

    file: BinaryIO
    format: ImportFormat
    importer: Importer
    head: bytes
    is_named: bool

    def nothing(self, path: str) -> ImportFileError:
        """Return the error of a file in which there is no session."""
        passed_over = "".join(f". {text}" for text in self.importer.passed_over())
        if self.is_named and recognized(self.head) is None:
            words = f"read as {self.format.title}, no session of MCP is in it{passed_over}. If it is something else, leave --as away"
        else:
            words = f"{self.format.title}, but no session of MCP is in it{passed_over}. mcpspy import --help says what is read"
        return ImportFileError(path, words)

    def chunks(self) -> Callable[[], bytes]:
        """Return a function that reads the next bytes."""
        return lambda: self.file.read(_CHUNK_BYTES)


def open_source(path: str, named: str | None = None, *, grows: bool = False, copy: BinaryIO | None = None) -> _OpenedSource:
    """Open a file, or standard input, of which there may be a `copy`. `named` is the format that the user named.

    One that `grows` has no digest.

    Raises: ImportFileError: if it is in no format that can be imported. OSError.
    """
    file: BinaryIO
    if path == STDIN:
        file, wall_ns, name = copy or _spooled(sys.stdin.buffer), time.time_ns(), STDIN
        file.seek(0)
    else:
        file = open(path, "rb")  # noqa: SIM115 - the caller reads it
        wall_ns, name = os.fstat(file.fileno()).st_mtime_ns, path
    head = file.read(HEAD_BYTES)
    file.seek(0)
    chosen = _format(name, head, named)
    if grows and not chosen.grows:
        raise ImportFileError(name, f"{chosen.title} is read whole; leave out --follow")
    size_bytes, digest = (0, "") if grows else _digest(file)
    source = Source(name=name, format=chosen.name, wall_ns=wall_ns, size_bytes=size_bytes, sha256=digest)
    return _OpenedSource(file, chosen, chosen.importer(source, StreamRecorder), head, named is not None)


def _can_be_imported(path: str, *, grows: bool = False) -> bool:
    """Return whether a file can be imported. Raises: ImportFileError: if it is of a known kind that cannot; OSError.

    One that `grows` may get its first message yet.
    """
    with open(path, "rb") as file:
        return _is_format(path, file.read(HEAD_BYTES), grows=grows)


def _is_format(name: str, head: bytes, *, grows: bool = False) -> bool:
    """Do the same for a file that begins with these bytes."""
    is_read = recognized(head) is not None
    if not is_read and (what := unreadable(head) or ("" if grows or len(head) == HEAD_BYTES else without_messages(head))):
        raise ImportFileError(name, what)
    return is_read


def _format(name: str, head: bytes, named: str | None) -> ImportFormat:
    if head.startswith(b'{"mcpspy"'):
        raise ImportFileError(name, "this is a capture already; look at it with mcpspy show")
    chosen = recognized(head)
    if named is not None:
        wanted = next(candidate for candidate in FORMATS if candidate.name == named)
        if chosen not in (None, wanted):
            raise ImportFileError(
                name, f"this is {chosen.title}, not {wanted.title}; leave --as away, or say --as {chosen.name}"
            )
        return wanted
    if chosen is None:
        _is_format(name, head)
        what = "it is empty" if not head else f"nothing in its first {HEAD_BYTES >> 20} MiB is in a format that mcpspy reads"
        raise ImportFileError(name, f"{what}; mcpspy import --help lists the formats, and --as names one")
    return chosen


def _digest(file: BinaryIO) -> tuple[int, str]:
    digest, size_bytes = sha256(), 0
    while chunk := file.read(1 << 20):
        digest.update(chunk)
        size_bytes += len(chunk)
    file.seek(0)
    return size_bytes, digest.hexdigest()


def _spooled(file: BinaryIO) -> BinaryIO:
    """Store a stream, which can be read only once, in a temporary file."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - for as long as we run
    while chunk := file.read(1 << 20):
        copy.write(chunk)
    copy.seek(0)
    return copy


@dataclass(frozen=True, slots=True)
class ImportedCapture:
    """A capture that was made."""

    path: str
    header: Header


class _Session:
    """The capture of one session, while it is written."""

    __slots__ = ("capture", "sink", "writer")

    def __init__(self, capture: ImportedCapture, writer: Writer, sink: Callable[[Sequence[Record]], None]) -> None:
        self.capture = capture
        self.writer = writer
        self.sink = sink


class CaptureFiles:
    """Captures of the sessions of one importer, in the store, or in the file `out` and beside it (`-` is standard output)."""

    __slots__ = ("_complain", "_out", "_redact", "_redactor", "_sessions", "captures")

    def __init__(
        self, out: str | None, *, redact: str = "credentials", complain: Callable[[str], None] = lambda line: None
    ) -> None:
        self._out = out
        self._redact = redact
        self._redactor = Redactor(key()) if redact == "credentials" else None
        self._complain = complain
        self._sessions: dict[int, _Session] = {}
        self.captures: list[ImportedCapture] = []

    def take(self, records: Sequence[SessionRecord]) -> None:
        """Write records. Raises: OSError; ImportFileError."""
        batches: dict[int, list[Record]] = {}
        last, batch = -1, list[Record]()
        for number, record in records:
            if isinstance(record, Header):
                self._begin(number, record)
            elif isinstance(record, End):
                self._write(number, batches.pop(number, []))
                self._end(number, record)
                last = -1
            else:
                if number != last:
                    last, batch = number, batches.setdefault(number, [])
                batch.append(record)
        for number, batch in batches.items():
            self._write(number, batch)

    def close(self) -> None:
        """Close what has no end yet: an interrupted import leaves incomplete captures."""
        self._sessions.clear()

    def _begin(self, number: int, header: Header) -> None:
        header.redaction, header.mcpspy_version = self._redact, __version__
        if self._redactor is not None:
            header.tapped.update({name: self._redactor.url(header.tapped[name]) for name in _URLS if name in header.tapped})
        if self._out == STDOUT:
            if self.captures:
                raise ImportFileError(
                    "standard output", "there is more than one session, and a capture has one; name a file with -o"
                )
            fd, path = os.dup(1), STDOUT
        else:
            fd, path = create(self._free_name(), header.label, wall_ns=header.wall_ns, complain=self._complain)
        writer = Writer(fd, header_line(header), complain=self._complain)
        writer(())  # the header, which readers wait for
        sink = writer if self._redactor is None else RedactingSink(writer, self._redactor)
        capture = ImportedCapture(path, header)
        self.captures.append(capture)
        self._sessions[number] = _Session(capture, writer, sink)

    def _free_name(self) -> str | None:
        """Return the name of the next capture: of one of many, without a look at the names of all before it."""
        if self._out is None or not self.captures or not os.path.isfile(self._out):
            return self._out
        stem, extension = os.path.splitext(self._out)
        name = f"{stem}-{len(self.captures) + 1}{extension}"
        return self._out if os.path.exists(name) else name

    def _write(self, number: int, batch: list[Record]) -> None:
        if batch:
            self._sessions[number].sink(batch)

    def _end(self, number: int, end: End) -> None:
        session = self._sessions.pop(number)
        session.writer.close(end.at_ns, end.why)
        if session.writer.failed:
            raise OSError(f"{session.capture.path}: the capture could not be written whole")


def copy_all(importer: Importer, chunks: Callable[[], bytes], files: CaptureFiles) -> None:
    """Import everything that `chunks` returns, up to an empty one. Raises: OSError; ImportFileError."""
    gc.disable()  # an import makes no cycles: to look for them takes two fifths of the time of a large HAR
    try:
        while chunk := chunks():
            files.take(importer.feed(chunk))
        files.take(importer.close())
    finally:
        gc.enable()


def captures_of(path: str) -> tuple[str, ...]:
    """Return the captures made of a file, or the path if it cannot be imported. Raises: ImportFileError; OSError."""
    if not os.path.isfile(path) or not _can_be_imported(path):
        return (path,)  # if it is no capture, its reader says so
    return _imported(os.path.abspath(path), path)


def capture_of_stdin() -> BinaryIO:
    """Return the capture made of standard input, or a copy of standard input if it cannot be imported.

    Raises: ImportFileError: if it has several sessions; OSError.
    """
    copy = _spooled(sys.stdin.buffer)
    if not _is_format("standard input", copy.read(HEAD_BYTES)):
        copy.seek(0)
        return copy  # its reader says that it is no capture
    source = open_source(STDIN, copy=copy)
    files = _made(source, STDIN, "stdin")
    if len(files) > 1:
        raise ImportFileError(
            "standard input", f"{len(files)} sessions are in it, and this shows one; write it to a file, and name that"
        )
    return open(files[0], "rb")


@cache
def _imported(_absolute: str, path: str) -> tuple[str, ...]:
    """Import a file, once for a command that names it twice."""
    return _made(open_source(path), path, os.path.basename(path))


def _made(source: _OpenedSource, path: str, name: str) -> tuple[str, ...]:
    files = CaptureFiles(os.path.join(_folder(), f"{name}.mcpspy"))
    with source.file:
        copy_all(source.importer, source.chunks(), files)
    if not files.captures:
        raise source.nothing(path)
    return tuple(capture.path for capture in files.captures)


@cache
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="mcpspy-import-")
    atexit.register(rmtree, folder, ignore_errors=True)
    return folder


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
                while chunk := source.file.read(_CHUNK_BYTES):
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
    logs = [what for what in whats if os.path.isfile(what) and (_can_be_imported(what, grows=True) or not _has_begun(what))]
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

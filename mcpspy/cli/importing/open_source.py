"""A file that is to be imported: opened, hashed, and its format told by its content."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import BinaryIO

from ...capture.store.address import STDIN
from ...errors import ImportFileError
from ...imports.formats import FORMATS, HEAD_BYTES, Importer, ImportFormat, recognized
from ...imports.source import Source
from ...imports.unreadable import unreadable, without_messages
from ...live.http.recorder import StreamRecorder

CHUNK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class OpenedSource:
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
        return lambda: self.file.read(CHUNK_BYTES)


def open_source(path: str, named: str | None = None, *, grows: bool = False, copy: BinaryIO | None = None) -> OpenedSource:
    """Open a file, or standard input, of which there may be a `copy`. `named` is the format that the user named.

    One that `grows` has no digest.

    Raises: ImportFileError: if it is in no format that can be imported. OSError.
    """
    file: BinaryIO
    if path == STDIN:
        file, wall_ns, name = copy or spooled(sys.stdin.buffer), time.time_ns(), STDIN
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
    return OpenedSource(file, chosen, chosen.importer(source, StreamRecorder), head, named is not None)


def can_be_imported(path: str, *, grows: bool = False) -> bool:
    """Return whether a file can be imported. Raises: ImportFileError: if it is of a known kind that cannot; OSError.

    One that `grows` may get its first message yet.
    """
    with open(path, "rb") as file:
        return is_format(path, file.read(HEAD_BYTES), grows=grows)


def is_format(name: str, head: bytes, *, grows: bool = False) -> bool:
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
        is_format(name, head)
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


def spooled(file: BinaryIO) -> BinaryIO:
    """Store a stream, which can be read only once, in a temporary file."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - for as long as we run
    while chunk := file.read(1 << 20):
        copy.write(chunk)
    copy.seek(0)
    return copy

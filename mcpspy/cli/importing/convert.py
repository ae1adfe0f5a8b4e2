"""Captures from the records of an importer: one file for each session, in the store or where the user says."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ... import __version__
from ...capture.file.format import header_line
from ...capture.file.writer import Writer
from ...capture.redaction.redactor import Redactor
from ...capture.redaction.sink import RedactingSink
from ...capture.store.folder import create, key
from ...errors import ImportFileError
from ...records import End, Header, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...imports.formats import Importer
    from ...imports.source import SessionRecord

STDOUT: Final = "-"
_URLS: Final = ("url", "listen")


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

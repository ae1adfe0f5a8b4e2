"""The captures that `mcpspy tui` shows: read whole, or read as they grow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

from ...capture.store.address import STDIN
from ...capture.store.folder import EXTENSION, captures_folder, is_live
from ...transcript.findings.run import findings
from ...transcript.hops import forwarded_calls
from ...transcript.model import Numbered, Row, Transcript
from ..fifo import named_file
from ..transcripts import CaptureSelection, GrowingTranscript, transcript_of

if TYPE_CHECKING:
    from ...tui.source import RowSource

SLICE_S: Final = 0.015
"""So long rows are read before the keys have their turn again."""

BATCH_ROWS: Final = 64


class FinishedSource:
    """Captures that nobody records any more."""

    live = False

    def __init__(self, transcript: Transcript, paths: Sequence[str], name: str) -> None:
        self.transcript = transcript
        self.paths = paths
        self.name = name

    def take(self) -> list[Row]:
        """Return nothing: all is there."""
        return []

    def refresh_findings(self) -> None:
        """Do nothing: they were made when the captures were read."""

    def words(self, row: Numbered | None) -> list[str]:
        """Return the words that address a row, or all."""
        return words(self.paths, row)

    def address(self, row: Numbered) -> str:
        """Return the WHAT of a row in the capture that has it."""
        return address(self.paths, self.transcript, row)

    def close(self) -> None:
        """Do nothing: the files are closed."""


class GrowingSource:
    """Captures of which one is still being recorded."""

    def __init__(self, paths: Sequence[str], name: str) -> None:
        self.name = name
        self._growing = GrowingTranscript(keeps_frames=True)
        for path in paths:
            self._growing.add(path)
        self._rest: Iterator[Row] = iter(())

    @property
    def transcript(self) -> Transcript:
        """The transcript so far."""
        return self._growing.transcript

    @property
    def live(self) -> bool:
        """True if it may still grow."""
        return self._growing.live

    @property
    def paths(self) -> list[str]:
        """The files."""
        return [tail.path for tail in self._growing.tails]

    def join(self, path: str) -> None:
        """Add a capture, unless it is one of them."""
        if path not in self.paths:
            self._growing.add(path)

    def take(self) -> list[Row]:
        """Read for a few milliseconds at most."""
        until = monotonic() + SLICE_S
        rows: list[Row] = []
        for row in self._rest:
            rows.append(row)
            if len(rows) % BATCH_ROWS == 0 and monotonic() > until:
                return rows
        self._rest = self._growing.take()
        for row in self._rest:
            rows.append(row)
            if len(rows) % BATCH_ROWS == 0 and monotonic() > until:
                break
        return rows

    def refresh_findings(self) -> None:
        """Look for findings in all rows so far."""
        transcript = self._growing.transcript
        if len(transcript.captures) > 1:
            transcript.hops = forwarded_calls(transcript)
        transcript.findings = findings(transcript)

    def words(self, row: Numbered | None) -> list[str]:
        """Return the words that address a row, or all."""
        return words(self.paths, row)

    def address(self, row: Numbered) -> str:
        """Return the WHAT of a row in the capture that has it."""
        return address(self.paths, self.transcript, row)

    def close(self) -> None:
        """Close the files."""
        self._growing.close()


def source_of(selection: CaptureSelection, name: str = "") -> RowSource:
    """Open captures: those that grow to be followed, others whole. Raises: CaptureError; OSError."""
    if any(path != STDIN and is_live(path) for path in selection.paths):
        return GrowingSource(selection.paths, name)
    transcript, _ = transcript_of(selection, keeps_frames=True)
    return FinishedSource(transcript, selection.paths, name)


def words(paths: Sequence[str], row: Numbered | None) -> list[str]:
    """Name captures for a command line: those of the store by their names there, others by their paths; and a row of them."""
    folder = captures_folder()
    names = [
        os.path.basename(path).removesuffix(EXTENSION) if os.path.dirname(path) == folder else path
        for path in map(named_file, paths)
    ]
    if row is None:
        return names
    return [f"{names[0]}:{row.row}"] if len(names) == 1 else [*names, f":{row.row}"]


def address(paths: Sequence[str], transcript: Transcript, row: Numbered) -> str:
    """Return the WHAT of a row in the capture that has it, where its number is another one if several captures are shown."""
    path = paths[row.capture]
    if path == STDIN:
        return ""
    number = row.row
    if len(paths) > 1:
        before = (other for other in transcript.rows if isinstance(other, Numbered) and other.row <= row.row)
        number = sum(other.capture == row.capture for other in before)
    return f"{os.path.abspath(named_file(path))}:{number}"

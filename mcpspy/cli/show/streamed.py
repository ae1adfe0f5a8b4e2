"""`show` of a large capture on a terminal: rows as they are read, and below them what only the whole capture shows.

The summary and the findings need every record, and of a capture of 300 MB nobody wants to wait for its last one to see its first.
So they come last here, and rows have no mark of findings.
"""

import os
from collections.abc import Iterator, Sequence

from ...transcript.http.transaction import Transaction
from ...transcript.model import Exchange, ModelCall, Row, Transcript
from ...transcript.transcribe import Transcriber
from ...views.text.columns import Lanes
from ...views.text.line import Line, fitted
from ...views.text.units import size
from ...views.timeline.details import Detail, row_detail
from ...views.timeline.findings import finding_lines
from ...views.timeline.summary import capture_line, capture_lines, summary
from ...views.timeline.timeline import Timeline, timeline_columns
from ..credential_search import CredentialSearch
from ..progress import ReadingProgress
from ..screen import Screen
from ..transcripts import records_of

MEASURED_ROWS = 100
MEASURED_BYTES = 4_000_000
"""So many rows are read before the first is shown, for the widths of the columns, but no more than so many bytes."""

WAITING_ROWS = 1_000
"""A row that has not ended is shown before this many later ones, or else when it ends."""


def show_streamed(path: str, screen: Screen, *, stderr: bool, detail: Detail | None) -> Transcript:
    """Print the timeline of a capture as it is read; return its transcript.

    Raises: CaptureError; OSError.
    """
    transcriber = Transcriber(credentials=CredentialSearch())
    progress = ReadingProgress(os.path.getsize(path), is_shown=False)
    transcript, queue = transcriber.transcript, EndedRows(transcriber.transcript.rows)
    machine: Timeline | None = None
    records = records_of(path, progress)
    transcriber.leave_payloads(records.frames)
    for batch in records.batches():
        transcriber.feed_lines(batch)
        done_bytes = progress.done_bytes
        if machine is None and done_bytes and (len(transcript.rows) >= MEASURED_ROWS or done_bytes >= MEASURED_BYTES):
            machine = _begin(transcript, screen, progress, stderr=stderr, detail=detail)
        if machine is not None:
            screen.lines(_lines(machine, transcript, queue.take()))
    transcriber.close()
    machine = machine or _begin(transcript, screen, progress, stderr=stderr, detail=detail)
    screen.lines(_lines(machine, transcript, queue.rest()))
    screen.lines(_ending(machine, transcript, screen.width))
    return transcript


class EndedRows:
    """Rows in the order in which they began, each when it has ended. One that takes long lets others pass."""

    __slots__ = ("_late", "_next", "_rows")

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._next = 0
        self._late: list[Row] = []

    def take(self) -> list[Row]:
        """Return the rows that can be shown by now."""
        rows, known = [row for row in self._late if _has_ended(row)], len(self._rows)
        if rows:
            self._late = [row for row in self._late if not _has_ended(row)]
        while self._next < known:
            row = self._rows[self._next]
            if _has_ended(row):
                rows.append(row)
            elif known - self._next > WAITING_ROWS:
                self._late.append(row)
            else:
                break
            self._next += 1
        return rows

    def rest(self) -> list[Row]:
        """Return all other rows: nothing comes any more."""
        rows = [*self._late, *self._rows[self._next :]]
        self._late, self._next = [], len(self._rows)
        return rows


def _has_ended(row: Row) -> bool:
    match row:
        case Exchange():
            return row.over or row.cancelled is not None
        case Transaction():
            return row.over
        case ModelCall():
            return row.transaction.over
    return True


def _begin(
    transcript: Transcript, screen: Screen, progress: ReadingProgress, *, stderr: bool, detail: Detail | None
) -> Timeline:
    """Print the head of the timeline, with columns that are wide enough for rows as those that are known."""
    width, lanes = screen.width, Lanes(transcript.captures)
    shown_detail = row_detail(width, detail)
    shape = timeline_columns(transcript.rows, lanes, width, shown_detail, share=progress.share)
    screen.lines(fitted(capture_line(info), width) for info in transcript.captures if info.header is not None)
    note = f"  {size(progress.total_bytes)}: its rows as they are read, then its summary"
    screen.lines([fitted([(note, "dim")], width), [], fitted(shape.header(), width)])
    return Timeline(shape, lanes, detail=shown_detail, stderr=stderr)


def _lines(machine: Timeline, transcript: Transcript, rows: Sequence[Row]) -> Iterator[Line]:
    if not machine.lanes.knows(transcript.captures):
        machine.lanes = Lanes(transcript.captures)
    for row in rows:
        yield from machine.feed(row)


def _ending(machine: Timeline, transcript: Transcript, width: int | None) -> Iterator[Line]:
    """Yield what is known at the end: findings, then the summary and the phases of the server, where the user looks."""
    yield from machine.close()
    if transcript.findings:
        yield []
        yield from (fitted(line, width) for line in finding_lines(transcript, width=width))
    yield []
    yield from summary(transcript, width=width)
    for line in capture_lines(transcript, width=width):
        yield fitted(line, width)

"""Rows as the lines of a list: one line each, drawn as the timeline draws them, with timers on those that wait."""

from __future__ import annotations

import time
from typing import Final

from ..records import Close, End, Frame, Record
from ..transcript.model import CaptureInfo, ChannelEvent, Exchange, Log, ModelCall, Numbered, Row
from ..views.text.columns import Lanes, columns
from ..views.text.escape import decoded, one_line
from ..views.text.line import Line
from ..views.timeline.details import Detail, has_room, row_detail
from ..views.timeline.timeline import EXPECTED_WORDS_CELLS, Timeline, timeline_columns
from .shown_rows import ShownRows

MEASURED_ROWS: Final = 5_000
"""Columns fit the rows if they are no more than this, else they have the usual widths, as they have while rows come."""

FRAME_LETTERS: Final = 200

EXPECTED_ROWS: Final = 999
EXPECTED_NS: Final = 999 * 1_000_000_000
EXPECTED_ID_CELLS: Final = 4
EXPECTED_PARAMS_CELLS: Final = 72


class RowLines:
    """The model of the list of rows. `seen` is the number of rows that were there when the user last looked at the end."""

    def __init__(self, shown: ShownRows, *, live: bool) -> None:
        self.shown = shown
        self.live = live
        self.seen = len(shown)
        self._timelines: dict[int, Timeline] = {}
        """By width; made again when servers or findings are new."""

    def __len__(self) -> int:
        return len(self.shown)

    def forget(self) -> None:
        """Lay the lines out anew: servers or findings are new."""
        self._timelines.clear()

    def mark(self, at: int) -> str:
        """Mark what came since the user looked."""
        return "●" if at >= self.seen and self.shown.condition is None else ""

    def line(self, at: int, width: int) -> Line:
        """Draw a row."""
        row = self.shown.row(at)
        if row is None:
            return []
        machine = self._timeline(width)
        info = self.shown.transcript.captures[row.capture]
        if is_pending(row, info) and isinstance(row, Exchange | ModelCall):
            now_ns = present_ns(info)
            return machine.pending(row, row.at_ns if now_ns is None else now_ns)
        lines = machine.feed(row)
        machine.pause()
        if lines:
            return lines[0]
        return machine.left_out(row, _words(row.record)) if isinstance(row, ChannelEvent) else []

    def title(self, width: int) -> Line:
        """Return the titles of the columns."""
        return self._timeline(width).columns.header()

    def _timeline(self, width: int) -> Timeline:
        machine = self._timelines.get(width)
        transcript = self.shown.transcript
        if machine is not None and machine.lanes.knows(transcript.captures):
            return machine
        lanes, detail, rows = Lanes(transcript.captures), row_detail(width, None), transcript.rows
        if not self.live and len(rows) <= MEASURED_ROWS:
            shape = timeline_columns(rows, lanes, width, detail)
        else:
            with_params = detail is not Detail.NAMES and has_room(width)
            shape = columns(
                width=width,
                last_row=max(EXPECTED_ROWS, len(rows)),
                last_ns=max([EXPECTED_NS, *(info.last_ns + info.shift_ns for info in transcript.captures)]),
                longest_id=EXPECTED_ID_CELLS,
                lanes=lanes.names,
                lane_role=lanes.role,
                longest_words=EXPECTED_PARAMS_CELLS if with_params else EXPECTED_WORDS_CELLS,
                with_params=with_params,
            )
        flagged = frozenset(row for finding in transcript.findings for row in finding.rows)
        self._timelines = {width: Timeline(shape, lanes, detail=detail, fold=False, flagged=flagged)}
        return self._timelines[width]


def _words(record: Record) -> str:
    """Say what is recorded in an event of which a timeline says nothing."""
    match record:
        case Frame():  # as the handshake with a new server
            return f"by mcpspy: {one_line(decoded(record.data or b'').strip(), FRAME_LETTERS)}"
        case Close():
            return f"{one_line(record.by)} closed a stream"
        case End():
            return "the recording ended"
        case _:
            return type(record).__name__.lower()


def is_pending(row: Row, info: CaptureInfo) -> bool:
    """Return whether a call still waits, in a capture that is recorded."""
    if info.closed:
        return False
    if isinstance(row, Exchange):
        return row.response is None and row.cancelled is None and not row.over
    return isinstance(row, ModelCall) and not row.transaction.over


def present_ns(info: CaptureInfo) -> int | None:
    """Return the present on the transcript's clock; None for a capture without a header."""
    return None if info.header is None else time.time_ns() - info.header.wall_ns + info.shift_ns


def row_name(row: Row) -> str:
    """Name a row in a sentence: by its number, if it has one."""
    if isinstance(row, Numbered):
        return f"row {row.row}"
    return "a line of stderr" if isinstance(row, Log) else "an event"

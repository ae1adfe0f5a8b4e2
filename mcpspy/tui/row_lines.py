"""The rows that are shown, all or those that a filter lets through, as the lines of a list.

A row is drawn as the timeline draws it, with timers on those that wait.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

from ..records import Close, End, Frame, Record
from ..transcript.model import CaptureInfo, ChannelEvent, Exchange, Log, ModelCall, Numbered, Row, Transcript
from ..views.text.columns import Lanes, columns
from ..views.text.escape import decoded, one_line
from ..views.text.line import Line
from ..views.timeline.details import Detail, has_room, row_detail
from ..views.timeline.timeline import EXPECTED_WORDS_CELLS, Timeline, timeline_columns

if TYPE_CHECKING:
    from ..transcript.filter.filter import FilterMatcher
    from ..transcript.filter.grammar import Filter

MEASURED_ROWS: Final = 5_000
"""Columns fit the rows if they are no more than this, else they have the usual widths, as they have while rows come."""

FRAME_LETTERS: Final = 200

EXPECTED_ROWS: Final = 999
EXPECTED_NS: Final = 999 * 1_000_000_000
EXPECTED_ID_CELLS: Final = 4
EXPECTED_PARAMS_CELLS: Final = 72

WORK_S: Final = 0.015
"""So long rows are tested before the keys have their turn again."""

TRIES: Final = 50


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


class ShownRows:
    """Positions to rows, and rows to positions."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.condition: Filter | None = None
        self._some: list[Row] | None = None
        self._matcher: FilterMatcher | None = None
        self._rest: Iterator[Row | None] = iter(())
        """The rows that the filter has not seen yet."""
        self._keys: set[int] = set()

    def __len__(self) -> int:
        return len(self.transcript.rows) if self._some is None else len(self._some)

    def row(self, at: int) -> Row | None:
        """Return the row at a position; None if there is none."""
        if not 0 <= at < len(self):
            return None
        if self._some is None:
            return self.transcript.rows[at]
        return self._some[at]

    def choose(self, condition: Filter | None) -> None:
        """Show the rows that a filter lets through, as `work` finds them; with None all."""
        self.condition = condition
        self._keys, self._rest = set(), iter(())
        self._matcher = None
        self._some = None
        if condition is not None:
            from ..transcript.filter.filter import FilterMatcher, tested

            self._some = []
            self._matcher = FilterMatcher(condition, self.transcript)
            self._rest = tested(condition, self.transcript)

    def work(self, least: int = 0, seconds: float = WORK_S) -> bool:
        """Test more rows for a short time, or until so many match. Returns whether some are left."""
        if self._some is None:
            return False
        until = monotonic() + seconds
        for tries, row in enumerate(self._rest):
            if row is not None:
                self._put(row)
            if tries % TRIES == 0 and monotonic() > until and len(self._some) >= least:
                return True
        return False

    def feed(self, rows: Iterable[Row]) -> None:
        """Take rows that are new or have changed."""
        if self._some is not None and self._matcher is not None:
            for row in rows:
                if id(row) not in self._keys and self._matcher.matches(row):
                    self._put(row)

    def _put(self, row: Row) -> None:
        """Take a row that matches, where it belongs by its time."""
        assert self._some is not None
        if id(row) not in self._keys:
            self._keys.add(id(row))
            at = len(self._some)
            while at and self._some[at - 1].at_ns > row.at_ns:
                at -= 1
            self._some.insert(at, row)

    def position(self, row: Row) -> int | None:
        """Return the position of a row; None if it is not shown."""
        rows = self.transcript.rows if self._some is None else self._some
        return next((at for at, other in enumerate(rows) if other is row), None)

    def nearest(self, row: Row) -> int:
        """Return the position of a row, or of the first one shown that began after it, or of the last."""
        at = self.position(row)
        if at is not None:
            return at
        rows = self.transcript.rows if self._some is None else self._some
        return min(bisect_left(rows, row_time(row), key=row_time), max(len(self) - 1, 0))


def row_time(row: Row) -> int:
    """Return the time at which a row began."""
    return row.at_ns


def slowest(transcript: Transcript, most: int) -> Sequence[Row]:
    """Return the rows that took longest, the slowest first."""
    from ..views.timeline.ordering import Order, in_order

    return in_order(transcript.rows, transcript.captures, Order.TOOK)[:most]

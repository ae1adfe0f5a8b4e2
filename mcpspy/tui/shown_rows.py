"""The rows that are shown: all of a transcript, or those that a filter lets through."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

from ..transcript.model import Row, Transcript

if TYPE_CHECKING:
    from ..transcript.filter.filter import FilterMatcher
    from ..transcript.filter.grammar import Filter

WORK_S: Final = 0.015
"""So long rows are tested before the keys have their turn again."""

TRIES: Final = 50


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

"""What `--filter` does to a live view: a row appears when it first matches."""

import click

from ...transcript.filter.filter import FilterMatcher
from ...transcript.filter.grammar import Filter
from ...transcript.model import Numbered, Row
from ...views.text.filter_lines import matching_line
from ...views.text.line import Line
from .follow import Followed, Output


class Sieve:
    """A filter at work on what is followed: it knows which rows have appeared."""

    __slots__ = ("_ended", "_matchers", "_shown", "_wanted")

    def __init__(self, wanted: Filter) -> None:
        if "rule" in wanted.keys:
            raise click.UsageError("rule: asks for findings, which are made when all has been read: leave out -f.")
        self._wanted = wanted
        self._matchers: dict[Followed, FilterMatcher] = {}
        self._shown: set[tuple[Followed, int]] = set()
        self._ended: set[tuple[Followed, int]] = set()
        """Rows that had ended before they matched."""

    def passes(self, followed: Followed, row: Row, *, ended: bool) -> bool | None:
        """Whether a row that passes has ended; None for one that does not pass. One that has passed once always does."""
        if not isinstance(row, Numbered):
            return ended if self._matches(followed, row) else None
        key = followed, row.row
        if key in self._shown:
            return ended
        if not self._matches(followed, row):
            if ended:
                self._ended.add(key)
            return None
        self._shown.add(key)
        return ended or key in self._ended

    def has_passed(self, followed: Followed, row: Numbered) -> bool:
        """Whether a row has passed."""
        return (followed, row.row) in self._shown

    def line(self, all_followed: list[Followed]) -> Line:
        """How many rows have passed, of how many."""
        rows = sum(isinstance(row, Numbered) for one in all_followed for row in one.growing.transcript.rows)
        return matching_line(self._wanted, len(self._shown), rows)

    def _matches(self, followed: Followed, row: Row) -> bool:
        matcher = self._matchers.get(followed)
        if matcher is None:
            matcher = self._matchers[followed] = FilterMatcher(self._wanted, followed.growing.transcript)
        return matcher.matches(row)


class FilteredOut:
    """An output that gets the rows that match. One appears when it first matches, and stays whatever becomes of it."""

    __slots__ = ("_output", "_sieve")

    def __init__(self, output: Output, sieve: Sieve) -> None:
        self._output = output
        self._sieve = sieve

    @property
    def redraw_s(self) -> float | None:
        """As the output wants it."""
        return self._output.redraw_s

    def row(self, followed: Followed, row: Row, *, ended: bool) -> None:
        """Pass on a row that matches, or has matched."""
        has_ended = self._sieve.passes(followed, row, ended=ended)
        if has_ended is not None:
            self._output.row(followed, row, ended=has_ended)

    def rest(self, all_followed: list[Followed]) -> None:
        """Nothing more for now."""
        self._output.rest(all_followed)

    def close(self, all_followed: list[Followed]) -> None:
        """The user has seen enough."""
        self._output.close(all_followed)

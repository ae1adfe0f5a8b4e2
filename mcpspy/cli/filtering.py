"""The option `--filter` of the verbs that look, and what it does to a live view."""

from collections.abc import Callable
from typing import TypeVar

import click

from ..errors import FilterError
from ..transcript.filter import Filter, Filtered, Matcher, filtered
from ..transcript.model import Numbered, Row, Transcript
from ..views.escape import safe_text
from ..views.filter_lines import filter_line, matching_line, pointed
from ..views.line import Line, plain
from .follow import Followed, Output
from .screen import say

F = TypeVar("F", bound=Callable[..., object])

FALLBACK_CELLS = 80
"""How wide an expression is shown that cannot be read, where nobody knows how wide stderr is."""


def filter_option(command: F) -> F:
    """Give a command `--filter`; it comes in as `filters`, to be read by `filter_of` before anything else is."""
    option = click.option(
        "-F",
        "--filter",
        "filters",
        metavar="EXPR",
        multiple=True,
        help="Only rows that match, as in -F 'tool:search* dur>2s' (`mcpspy help filter`). Of several, all have to match.",
    )
    return option(command)


def passed(wanted: Filter | None, transcript: Transcript, rows: list[Row]) -> list[Row]:
    """What of `rows` a filter lets through, all where there is none. Where nothing passes, it says so."""
    if wanted is None:
        return rows
    found = filtered(wanted, transcript, rows)
    if not found.rows:
        say_nothing_matches(found)
    return found.rows


def say_nothing_matches(found: Filtered) -> None:
    """Say it to whoever waits for rows."""
    say(f"mcpspy: {plain(filter_line(found))}")


def explain(error: FilterError) -> None:
    """Say what is wrong with a filter, and point at it."""
    say(f"mcpspy: {safe_text(str(error))}")
    for line in pointed(error.expression, error.column, FALLBACK_CELLS):
        say(f"  {line}")


class Sieve:
    """A filter at work on what is followed: it knows which rows have appeared."""

    __slots__ = ("_ended", "_matchers", "_shown", "_wanted")

    def __init__(self, wanted: Filter) -> None:
        if "rule" in wanted.keys:
            raise click.UsageError("rule: asks for findings, which are made when all has been read: leave out -f.")
        self._wanted = wanted
        self._matchers: dict[Followed, Matcher] = {}
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
            matcher = self._matchers[followed] = Matcher(self._wanted, followed.growing.transcript)
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

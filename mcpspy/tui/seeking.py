"""The row that a key goes to: the next with a finding, the next that waits, the next that matches, one by its number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ..transcript.model import Exchange, Numbered, Row, Transcript
from .row_lines import ShownRows

if TYPE_CHECKING:
    from ..transcript.filter.grammar import Filter

MAX_LOOKED_AT: Final = 20_000
"""So many rows before a call are looked at for one like it."""


def read_filter(text: str) -> Filter | None:
    """Read a filter; None for blanks. Raises: FilterError."""
    from ..transcript.filter.filter import filter_of  # with all findings, which the first screen does not wait for

    return filter_of([text]) if text.strip() else None


def number_of(row: Row | None) -> int:
    """Return the number of a row; 0 for one without a number."""
    return row.row if isinstance(row, Numbered) else 0


def beyond(numbers: Sequence[int], number: int, direction: int) -> int | None:
    """Return the next of these numbers in a direction, from the other end after the last; None if there are none."""
    ordered = sorted(numbers)
    if not ordered:
        return None
    if direction > 0:
        return next((other for other in ordered if other > number), ordered[0])
    return next((other for other in reversed(ordered) if other < number), ordered[-1])


def with_finding(transcript: Transcript, number: int, direction: int) -> int | None:
    """Return the number of the next row that a finding is about."""
    return beyond(list({row for finding in transcript.findings for row in finding.rows}), number, direction)


def finding_titles(transcript: Transcript, number: int) -> list[str]:
    """Return what the findings about a row say."""
    return [finding.what for finding in transcript.findings if number in finding.rows]


def pending(transcript: Transcript, number: int) -> int | None:
    """Return the number of the next call that waits for its answer, or never got one."""
    from ..transcript.filter.filter import filter_rows

    condition = read_filter("status:pending or status:unanswered")
    assert condition is not None
    rows = filter_rows(condition, transcript, transcript.rows).rows
    return beyond([row.row for row in rows if isinstance(row, Numbered)], number, 1)


def matching(shown: ShownRows, condition: Filter, at: int, direction: int) -> int | None:
    """Return the position of the next row that matches; from the other end after the last. None if there is none."""
    from ..transcript.filter.filter import FilterMatcher

    test: Callable[[Row], bool] = FilterMatcher(condition, shown.transcript).matches
    count = len(shown)
    for step in range(1, count + 1):
        position = (at + direction * step) % count
        row = shown.row(position)
        if row is not None and test(row):
            return position
    return None


def previous_like(transcript: Transcript, row: Exchange) -> Exchange | None:
    """Return the call before this one that has the same method and target; None if there is none nearby."""
    at = ShownRows(transcript).position(row) or 0
    for position in range(at - 1, max(at - MAX_LOOKED_AT, 0) - 1, -1):
        other = transcript.rows[position]
        if isinstance(other, Exchange) and (other.capture, other.method, other.target) == (row.capture, row.method, row.target):
            return other
    return None

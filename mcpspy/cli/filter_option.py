"""The option `--filter`. What filters is imported when the option is given: it takes 20 ms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from .capture_options import Option
from .screen import say

if TYPE_CHECKING:
    from ..errors import FilterError
    from ..transcript.filter.grammar import Filter
    from ..transcript.filter.result import FilterResult
    from ..transcript.model import Row, Transcript

F = TypeVar("F", bound=Callable[..., object])

FILTER: Final = Option(
    "filter",
    "EXPR",
    "Only rows that match, as in -F 'tool:search* dur>2s' (`mcpspy help filter`). Repeated: rows that match all.",
    repeats=True,
    letter="F",
    parameter="filters",
)

FALLBACK_CELLS = 80
"""The width of a faulty expression on stderr, which may have no width of its own."""


def filter_option(command: F) -> F:
    """Give a command `--filter`; its values come in as `filters`. Read them with `combined_filter` before anything else."""
    import click

    option = click.option(FILTER.parameter, *FILTER.spellings, metavar=FILTER.metavar, multiple=True, help=FILTER.help)
    return option(command)


def combined_filter(filters: tuple[str, ...]) -> Filter | None:
    """Make one filter of all expressions; None if there are none. Raises: FilterError."""
    if not filters:
        return None
    from ..transcript.filter.filter import filter_of

    return filter_of(filters)


def filter_rows(condition: Filter, transcript: Transcript, rows: Sequence[Row]) -> FilterResult:
    """Apply a filter to rows."""
    from ..transcript.filter.filter import filter_rows

    return filter_rows(condition, transcript, rows)


def matching_rows(condition: Filter | None, transcript: Transcript, rows: list[Row]) -> list[Row]:
    """Select the rows that match; without a filter all. If none matches, stderr says so."""
    if condition is None:
        return rows
    result = filter_rows(condition, transcript, rows)
    if not result.rows:
        report_no_match(result)
    return result.rows


def report_no_match(result: FilterResult) -> None:
    """Say on stderr that no row matches."""
    from ..views.text.filter_lines import filter_line
    from ..views.text.line import plain

    say(f"mcpspy: {plain(filter_line(result))}")


def explain(error: FilterError) -> None:
    """Say on stderr what is wrong with a filter, and point at it, unless its URLs are shown without their logins."""
    from ..views.text.escape import safe_text, without_logins
    from ..views.text.filter_lines import caret_lines

    say(f"mcpspy: {safe_text(without_logins(str(error)))}")
    if without_logins(error.expression) == error.expression:
        for line in caret_lines(error.expression, error.column, FALLBACK_CELLS):
            say(f"  {line}")

"""The option `--filter` of the verbs that look. Where it is not given nothing is imported that filters: 20 ms of each look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from ..views.text.escape import safe_text
from ..views.text.filter_lines import caret_lines, filter_line
from ..views.text.line import plain
from .screen import say

if TYPE_CHECKING:
    from ..errors import FilterError
    from ..transcript.filter.filter import Filter
    from ..transcript.filter.result import FilterResult
    from ..transcript.model import Row, Transcript

F = TypeVar("F", bound=Callable[..., object])

FALLBACK_CELLS = 80
"""How wide an expression is shown that cannot be read, where nobody knows how wide stderr is."""


def filter_option(command: F) -> F:
    """Give a command `--filter`; it comes in as `filters`, to be read by `wanted_of` before anything else is."""
    option = click.option(
        "-F",
        "--filter",
        "filters",
        metavar="EXPR",
        multiple=True,
        help="Only rows that match, as in -F 'tool:search* dur>2s' (`mcpspy help filter`). Of several, all have to match.",
    )
    return option(command)


def wanted_of(filters: tuple[str, ...]) -> Filter | None:
    """What all of `filters` let through; None if there are none. Raises: FilterError."""
    if not filters:
        return None
    from ..transcript.filter.filter import filter_of

    return filter_of(filters)


def filtered(wanted: Filter, transcript: Transcript, rows: Sequence[Row]) -> FilterResult:
    """What of `rows` a filter lets through."""
    from ..transcript.filter.filter import filter_rows

    return filter_rows(wanted, transcript, rows)


def passed(wanted: Filter | None, transcript: Transcript, rows: list[Row]) -> list[Row]:
    """What of `rows` a filter lets through, all where there is none. Where nothing passes, it says so."""
    if wanted is None:
        return rows
    found = filtered(wanted, transcript, rows)
    if not found.rows:
        say_nothing_matches(found)
    return found.rows


def say_nothing_matches(found: FilterResult) -> None:
    """Say it to whoever waits for rows."""
    say(f"mcpspy: {plain(filter_line(found))}")


def explain(error: FilterError) -> None:
    """Say what is wrong with a filter, and point at it."""
    say(f"mcpspy: {safe_text(str(error))}")
    for line in caret_lines(error.expression, error.column, FALLBACK_CELLS):
        say(f"  {line}")

"""A miss as lines for a terminal: the request, the nearest match, the differences, the rule that rejects it, and what to do.

The lines are not fitted to a width, because a mock's stderr is often a client's log file. Captured text in them is made harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Final

from ...replay.mock.miss import Miss, difference_text, request_name
from ..text.escape import safe_text

if TYPE_CHECKING:
    from ...replay.compare.difference import Difference

MAX_SHOWN: Final = 5
"""The most differences shown, each on a line."""

COLUMNS: Final = 80
"""Long values are cut so that a difference is at most this wide, if its path allows it."""

MIN_LETTERS: Final = 16


def miss_lines(miss: Miss, *, who: str = "mcpspy mock: ", advice: Sequence[str] | None = None) -> list[str]:
    """Return the lines of a miss: the first names the request, the others are indented.

    `advice` are the options that would let it match; with None, those of `mcpspy mock`.
    """
    lines = [f"{who}{request_name(miss.request)} {miss.reason}"]
    if miss.nearest is not None:
        lines.append(f"  nearest  row {miss.nearest.row}{', ' if miss.name_of_nearest else ''}{miss.name_of_nearest}")
    differences = miss.differences
    if differences:
        shown = [_difference(difference) for difference in differences.listed[:MAX_SHOWN]]
        lines += [f"{'  differs  ' if at == 0 else '           '}{text}" for at, text in enumerate(shown)]
        if differences.count > len(shown):
            lines.append(f"           and in {differences.count - len(shown)} more places")
    if miss.refused_by.startswith("--"):
        lines.append(f"  refused  by {miss.refused_by}")
    options = miss.advice if advice is None else advice
    lines += [f"{'  accept   with ' if at == 0 else '             or '}{option}" for at, option in enumerate(options)]
    if miss.played is not None:
        lines.append(f"  played   row {miss.played.row} anyway")
    if miss.siblings:
        lines.append(f"  serve    {' '.join(map(quote, miss.siblings))} too: its client started the server more than once")
    return [safe_text(line) for line in lines]


def _difference(difference: Difference) -> str:
    around = len("  differs  ") + len(difference.path) + len(": … ≠ …")
    return difference_text(difference, max(MIN_LETTERS, (COLUMNS - around) // 2 - len("…")))

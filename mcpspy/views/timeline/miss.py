"""A miss for a person at a terminal: what was asked, what comes nearest, where it differs, by which rule it is refused, what to do.

Its lines are as long as they are: a mock's stderr is often a client's log file. Captured text in them is made harmless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...replay.mock.miss import difference_text, request_name
from ..text.escape import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...replay.compare.difference import Difference
    from ...replay.mock.miss import Miss

MAX_SHOWN: Final = 5
"""So many differences are shown, each on a line."""

COLUMNS: Final = 80
"""Of long values so much is shown that a difference is no wider than a terminal, if its path allows it."""

MIN_LETTERS: Final = 16


def miss_lines(miss: Miss, *, who: str = "mcpspy mock: ", advice: Sequence[str] | None = None) -> list[str]:
    """The lines: the first says what was missed, those below it are indented.

    `advice` is what lets it match; where that is None, the options of a mock.
    """
    lines = [f"{who}{request_name(miss.request)} {miss.reason}"]
    if miss.nearest is not None:
        lines.append(f"  nearest  row {miss.nearest.row}{', ' if miss.name_of_nearest else ''}{miss.name_of_nearest}")
    differences = miss.differences
    if differences:
        places = [_place(one) for one in differences.listed[:MAX_SHOWN]]
        lines += [f"{'  differs  ' if at == 0 else '           '}{place}" for at, place in enumerate(places)]
        if differences.count > len(places):
            lines.append(f"           and in {differences.count - len(places)} more places")
    if miss.refused_by.startswith("--"):
        lines.append(f"  refused  by {miss.refused_by}")
    ways = miss.advice if advice is None else advice
    lines += [f"{'  accept   with ' if at == 0 else '             or '}{way}" for at, way in enumerate(ways)]
    if miss.played is not None:
        lines.append(f"  played   row {miss.played.row} all the same")
    return [safe_text(line) for line in lines]


def _place(one: Difference) -> str:
    around = len("  differs  ") + len(one.path) + len(": … ≠ …")
    return difference_text(one, max(MIN_LETTERS, (COLUMNS - around) // 2 - len("…")))

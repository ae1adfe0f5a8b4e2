"""Positions in an SVG diagram, in pixels: lanes as far apart as their texts need, steps below one another.

Characters count as cells of one width, and the printer enforces that width, so that nothing overlaps in any font.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ..text.cells import cells
from ..text.units import seconds
from .diagram import Arrow, Aside, Diagram, flat

CELL_PX: Final = 7.2
"""The width of a character in a monospaced font of 12 px."""

ROW_PX: Final = 26
LINE_PX: Final = 15
"""The height of a line of a payload."""

TITLE_PX: Final = 30
HEAD_PX: Final = 34
MARGIN_PX: Final = 16
GROUP_PX: Final = 22
"""The height of a fragment's title."""

MIN_GAP_PX: Final = 120
MAX_GAP_PX: Final = 620
"""The largest distance of two lanes, however long their texts."""

ROOM_BESIDES_TEXT_PX: Final = 28
CLEAR_PX: Final = 12
"""The distance of a text from the lanes beside it, both sides together."""


class SvgPlaces:
    """Horizontal positions of lanes. `times_px` is the width of the column of times at the left."""

    __slots__ = ("_at", "times_px", "width_px")

    def __init__(self, layout: Diagram) -> None:
        ids = [participant.id for participant in layout.participants]
        names = [cells(participant.name) * CELL_PX + 24 for participant in layout.participants]
        gaps = _gaps(layout, ids, names)
        self.times_px = cells(seconds(layout.last_ns)) * CELL_PX + 2 * MARGIN_PX
        at = self.times_px + max((names[0] if names else 0) / 2, 40)
        self._at: dict[str, float] = {}
        for number, id in enumerate(ids):
            self._at[id] = at
            at += gaps[number] if number < len(gaps) else 0
        last = names[-1] if names else 0
        self.width_px = max(at + max(last / 2, 40) + MARGIN_PX, cells(layout.title) * CELL_PX + 2 * MARGIN_PX)

    def of(self, id: str) -> float:
        """Return the position of a lane's middle, from the left."""
        return self._at[id]

    @property
    def left(self) -> float:
        """The position of the first lane."""
        return min(self._at.values(), default=self.times_px)

    @property
    def right(self) -> float:
        """The position of the last lane."""
        return max(self._at.values(), default=self.times_px)

    def between(self, start: float, end: float, px: float) -> tuple[float, bool]:
        """Place a text of `px` pixels between two lanes. Returns its middle, and whether it is clear of the lanes between.

        It is centred between the two neighbours that are furthest apart, if it fits: then the texts of one direction form a column.
        """
        on_the_way = sorted(at for at in self._at.values() if min(start, end) <= at <= max(start, end))
        gaps = list(pairwise(on_the_way))
        if len(gaps) < 2:
            return (start + end) / 2, True
        first, last = max(gaps, key=lambda gap: gap[1] - gap[0])
        is_clear = last - first >= px + CLEAR_PX
        return ((first + last) / 2 if is_clear else (start + end) / 2), is_clear


def room_cells(px: float) -> int:
    """Count the characters that fit."""
    return max(1, int(px / CELL_PX))


def _gaps(layout: Diagram, ids: Sequence[str], names: Sequence[float]) -> list[float]:
    """Compute the distances of neighbours from their names and the texts between them, within bounds."""
    gaps = [max(MIN_GAP_PX, (names[at] + names[at + 1]) / 2 + 16) for at in range(len(ids) - 1)]
    number = {id: at for at, id in enumerate(ids)}
    for step in flat(layout.steps):
        if isinstance(step, Aside) and gaps:
            at = number[step.at]
            beside = at - 1 if at else 0
            gaps[beside] = max(gaps[beside], _needed(step.text))
        elif isinstance(step, Arrow):
            first, last = sorted((number[step.start], number[step.end]))
            missing = max(map(_needed, (step.text, *step.details))) - sum(gaps[first:last])
            if first < last and missing > 0:
                gaps[last - 1] += missing
    return [min(gap, MAX_GAP_PX) for gap in gaps]


def _needed(text: str) -> float:
    return cells(text) * CELL_PX + ROOM_BESIDES_TEXT_PX

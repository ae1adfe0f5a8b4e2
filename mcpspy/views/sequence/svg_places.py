"""Where things stand in an SVG diagram, in pixels: lanes as far apart as their words need, steps below one another.

Letters are counted as cells of one width, which the printer enforces, so that nothing overlaps whatever the font. Refuses to print.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ..text.cells import cells
from ..text.units import seconds
from .model import Arrow, Aside, Diagram, flat

CELL_PX: Final = 7.2
"""The width of a letter of a monospaced font of 12 px."""

ROW_PX: Final = 26
LINE_PX: Final = 15
"""The height of a line of a payload."""

TITLE_PX: Final = 30
HEAD_PX: Final = 34
MARGIN_PX: Final = 16
GROUP_PX: Final = 22
"""The height of a group's title."""

MIN_GAP_PX: Final = 120
MAX_GAP_PX: Final = 620
"""Lanes stand no further apart, however long their words."""

ROOM_BESIDES_TEXT_PX: Final = 28
CLEAR_PX: Final = 12
"""So far is a text from the lanes beside it, on both sides together."""


class Places:
    """The places of lanes. `times_px` is the width of the column of times at the left."""

    __slots__ = ("_at", "times_px", "width_px")

    def __init__(self, layout: Diagram) -> None:
        ids = [one.id for one in layout.participants]
        names = [cells(one.name) * CELL_PX + 24 for one in layout.participants]
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
        """The place of a lane's middle, from the left."""
        return self._at[id]

    @property
    def left(self) -> float:
        """Where the first lane stands."""
        return min(self._at.values(), default=self.times_px)

    @property
    def right(self) -> float:
        """Where the last one stands."""
        return max(self._at.values(), default=self.times_px)

    def between(self, start: float, end: float, px: float) -> tuple[float, bool]:
        """The middle of a text of so many pixels on the way from one lane to another, and whether it is clear of those between.

        It stands between the two neighbours that are furthest apart, if there is room: then all words on one way stand in a column.
        """
        on_the_way = sorted(at for at in self._at.values() if min(start, end) <= at <= max(start, end))
        gaps = list(pairwise(on_the_way))
        if len(gaps) < 2:
            return (start + end) / 2, True
        one, other = max(gaps, key=lambda gap: gap[1] - gap[0])
        is_clear = other - one >= px + CLEAR_PX
        return ((one + other) / 2 if is_clear else (start + end) / 2), is_clear


def room_cells(px: float) -> int:
    """So many letters have room there."""
    return max(1, int(px / CELL_PX))


def _gaps(layout: Diagram, ids: Sequence[str], names: Sequence[float]) -> list[float]:
    """The distances of neighbours: as wide as names and words between them need, within bounds."""
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

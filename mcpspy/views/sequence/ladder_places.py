"""Distances between the lifelines of a ladder, in cells: neighbours with longer texts between them are further apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..text.cells import cells, cut
from ..text.escape import safe_text
from .diagram import Arrow, Diagram, flat

MAX_SPAN_CELLS: Final = 84
"""The largest distance of two neighbours, however wide the screen."""

MIN_SPAN_CELLS: Final = 6

ROOM_BESIDES_TEXT: Final = 5
"""In an arrow: a line and a blank before the text; a blank, a line and the head after it."""

_BETWEEN_NAMES: Final = 2


def spans(layout: Diagram, room_cells: int) -> list[int]:
    """Compute the distances of neighbours, from the left, within `room_cells` unless lanes would touch."""
    count = len(layout.participants) - 1
    if count < 1:
        return []
    even = max(MIN_SPAN_CELLS, min(MAX_SPAN_CELLS, room_cells // count))
    whole = [safe_text(participant.name) for participant in layout.participants]
    least = [max(MIN_SPAN_CELLS, _beside(whole, at)) for at in range(count)]
    needs = _needs(layout, least)
    return [even] * count if max(needs) <= even else _dealt(least, needs, even * count)


def names(layout: Diagram, gaps: Sequence[int]) -> list[str]:
    """Place the names above the lanes: the first starts at its lane, the last ends at its lane, the others are centred."""
    whole = [safe_text(participant.name) for participant in layout.participants]
    room = [max(map(cells, whole), default=0)] * len(whole)
    for at, gap in enumerate(gaps):
        if _beside(whole, at) > gap:
            for number in (at, at + 1):
                side = max(1, (gap - _BETWEEN_NAMES) // 2)
                room[number] = min(room[number], side if number in (0, len(whole) - 1) else 2 * side)
    return [cut(name, limit) for name, limit in zip(whole, room, strict=True)]


def _beside(whole: Sequence[str], at: int) -> int:
    """Compute how much of the gap between two lanes their names take."""
    first = cells(whole[at]) if at == 0 else cells(whole[at]) // 2 + 1
    second = cells(whole[at + 1]) if at + 2 == len(whole) else cells(whole[at + 1]) // 2
    return first + second + _BETWEEN_NAMES


def _needs(layout: Diagram, least: Sequence[int]) -> list[int]:
    """Compute how much room the texts between neighbours want. `least` is what their names take."""
    number = {participant.id: at for at, participant in enumerate(layout.participants)}
    needs = list(least)
    past: list[tuple[int, int, int]] = []
    for step in flat(layout.steps):
        if isinstance(step, Arrow) and step.start != step.end:
            first, last = sorted((number[step.start], number[step.end]))
            past.append((last - first, first, cells(step.text) + ROOM_BESIDES_TEXT + 1))
    for count, first, need in sorted(past):  # those past other lanes last: they have the room of all
        missing = need - sum(needs[first : first + count])
        needs[first + count - 1] += max(0, missing)
    return [min(need, MAX_SPAN_CELLS) for need in needs]


def _dealt(least: Sequence[int], needs: Sequence[int], room: int) -> list[int]:
    """Distribute the room: first what names take, then what each gap needs or an equal share of it, then the rest for all."""
    if sum(least) >= room:
        return [max(MIN_SPAN_CELLS, room // len(least))] * len(least)
    more = [need - width for need, width in zip(needs, least, strict=True)]
    left = room - sum(least)
    dealt = [width + extra * min(left, sum(more)) // max(1, sum(more)) for width, extra in zip(least, more, strict=True)]
    return [width + (room - sum(dealt)) // len(dealt) for width in dealt]

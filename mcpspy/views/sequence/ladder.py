"""A sequence diagram drawn with characters: a lifeline per participant, time running down, an arrow per message.

It fits its width, counting wide characters as two cells. Text that does not fit into its arrow is drawn beside it, and cut last.
Only titles are wrapped.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from ..text.cells import cells, cut, padded_left, wrapped
from ..text.escape import safe_text
from ..text.line import Line
from ..text.units import counted, seconds
from .diagram import Activations, Arrow, ArrowKind, Aside, Diagram, Fragment, FragmentKind, OmittedMessages, Step, flat

MAX_SPAN_CELLS: Final = 84
"""The largest distance of two neighbours, however wide the screen."""

MIN_SPAN_CELLS: Final = 6

ROOM_BESIDES_TEXT: Final = 5
"""In an arrow: a line and a blank before the text; a blank, a line and the head after it."""

_BETWEEN_NAMES: Final = 2

MAX_TITLE_LINES: Final = 4

NO_TIME_CELLS = 44
"""Below this width the times are left out."""

LIFELINE = "│"
BUSY = "┃"
"""The lifeline of a participant that is working on something."""

BODIES = {
    ArrowKind.REQUEST: "─",
    ArrowKind.RESPONSE: "╌",
    ArrowKind.NOTIFICATION: "─",
    ArrowKind.CANCELLATION: "─",
    ArrowKind.LOST: "╌",
}
HEADS = {
    ArrowKind.REQUEST: "►◄",
    ArrowKind.RESPONSE: "►◄",
    ArrowKind.NOTIFICATION: "><",
    ArrowKind.CANCELLATION: "××",
    ArrowKind.LOST: "××",
}
"""The heads of arrows to the right and to the left."""


def ladder(layout: Diagram, *, width: int) -> Iterator[Line]:
    """Draw the lines of the diagram, in at most `width` cells unless lanes would touch."""
    places = LadderPlaces(layout, width)
    if layout.title:
        yield [(cut(safe_text(layout.title), width), "strong")]
    yield places.titles(layout)
    yield from _steps(layout.steps, places)


def _steps(steps: Sequence[Step], places: "LadderPlaces") -> Iterator[Line]:
    for step in steps:
        match step:
            case Arrow():
                yield places.arrow(step)
                yield from (places.detail(step, text) for text in step.details)
            case Aside():
                yield places.aside(step)
            case OmittedMessages():
                yield places.between(f"… {counted(step.count, 'more message')}", "dim")
            case Fragment(kind=FragmentKind.LOOP):
                yield from places.title("┌ ", step.title, "dim")
                yield from _steps(step.steps, places)
                yield places.between("└", "dim")
            case Fragment():
                yield from places.title("▾ ", step.title, "strong")
                yield from _steps(step.steps, places)


class LadderPlaces:
    """Columns of the lifelines, and which participants are working."""

    __slots__ = ("_at", "_bars", "_gaps", "_margin", "_width")

    def __init__(self, layout: Diagram, width: int) -> None:
        self._bars = Activations()
        self._margin = max(8, len(seconds(layout.last_ns))) + 2 if layout.has_times and width >= NO_TIME_CELLS else 0
        self._gaps = spans(layout, width - self._margin - 1)
        places = accumulate(self._gaps, initial=self._margin)
        self._at = {participant.id: place for participant, place in zip(layout.participants, places, strict=False)}
        self._width = max(self._at.values(), default=0) + 1

    def titles(self, layout: Diagram) -> Line:
        """Draw the names, each above its lifeline."""
        canvas = _Canvas(self._width)
        places = list(self._at.values())
        for number, name in enumerate(names(layout, self._gaps)):
            start = places[number] - cells(name) // 2
            if number == 0:
                start = places[0]
            elif number == len(places) - 1:
                start = places[number] - cells(name) + 1
            canvas.put(max(start, 0), name, "strong")
        return canvas.line()

    def arrow(self, step: Arrow) -> Line:
        """Draw a message."""
        canvas = self._lifelines(step.at_ns)
        self._bars.closes(step)
        self._bars.opens(step)
        start, end = self._at[step.start], self._at[step.end]
        left, right = min(start, end), max(start, end)
        body, heads = BODIES[step.kind], HEADS[step.kind]
        style = "dim" if step.kind is ArrowKind.NOTIFICATION else ""
        canvas.put(left + 1, body * (right - left - 1), style or "dim")
        canvas.put(*((right - 1, heads[0], style) if start < end else (left + 1, heads[1], style)))
        canvas.put(start, "├" if start < end else "┤", "dim")
        room = right - left - 1 - ROOM_BESIDES_TEXT
        beside = self._width - right - 2
        if cells(step.text) <= room or beside <= room:
            canvas.put(left + 3, f" {cut(step.text, room)} ", step.style or style)
        else:
            canvas.put(right + 1, f" {cut(step.text, beside - 1)} ", step.style or style)
        return canvas.line()

    def aside(self, step: Aside) -> Line:
        """Draw a note on a lifeline, on the side with more room."""
        canvas = self._lifelines(step.at_ns)
        place = self._at[step.at]
        before, behind = place - self._margin - 3, self._width - place - 3
        if before > behind:
            text = cut(step.text, before)
            canvas.put(place - cells(text) - 2, f" {text} ", step.style)
        else:
            canvas.put(place + 1, f" {cut(step.text, behind)} ", step.style)
        canvas.put(place, "●", step.style)
        self._bars.closes(step)
        return canvas.line()

    def detail(self, step: Arrow, text: str) -> Line:
        """Draw a line of a payload below its arrow."""
        canvas = self._lifelines(None)
        left = min(self._at[step.start], self._at[step.end])
        canvas.put(left + 4, cut(text, max(1, self._width - left - 6)), "dim")
        return canvas.line()

    def title(self, sign: str, text: str, style: str) -> Iterator[Line]:
        """Draw the title of a fragment, on several lines if it is long."""
        for number, line in enumerate(wrapped(text, self._width - self._margin - 6, MAX_TITLE_LINES)):
            yield self.between(f"{'  ' if number else sign}{line}", style)

    def between(self, text: str, style: str) -> Line:
        """Draw a text between the lines of messages."""
        canvas = self._lifelines(None)
        canvas.put(self._margin + 2, cut(text, max(1, self._width - self._margin - 4)), style)
        return canvas.line()

    def _lifelines(self, at_ns: int | None) -> "_Canvas":
        canvas = _Canvas(self._width)
        if self._margin and at_ns is not None:
            canvas.put(0, padded_left(seconds(at_ns), self._margin - 2), "dim")
        for id, place in self._at.items():
            canvas.put(place, BUSY if self._bars.open[id] else LIFELINE, "dim")
        return canvas


class _Canvas:
    """One line of cells that can be overwritten. A wide character fills two cells: itself and an empty one."""

    __slots__ = ("_cells", "_styles")

    def __init__(self, width: int) -> None:
        self._cells = [" "] * width
        self._styles = [""] * width

    def put(self, at: int, text: str, style: str) -> None:
        """Write `text` from cell `at` on. Characters outside the line are left out."""
        if text.isascii() or cells(text) == len(text):
            parts = list(text)
        else:
            parts = []
            for sign in text:
                if cells(sign) == 0 and parts:
                    parts[-1] += sign
                else:
                    parts += [sign, *[""] * (cells(sign) - 1)]
        parts = parts[: max(0, len(self._cells) - at)]
        self._cells[at : at + len(parts)] = parts
        self._styles[at : at + len(parts)] = [style] * len(parts)

    def line(self) -> Line:
        line: Line = []
        begin = 0
        for at in range(1, len(self._cells) + 1):
            if at == len(self._cells) or self._styles[at] != self._styles[begin]:
                line.append(("".join(self._cells[begin:at]), self._styles[begin]))
                begin = at
        return line


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

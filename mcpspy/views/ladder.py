"""A sequence diagram drawn with characters: a lifeline per participant, time going down, an arrow per message.

Fits into its width, whatever the letters' own; what has no room inside its arrow stands beside it, and is cut last. Refuses to wrap.
"""

from collections.abc import Iterator

from .cells import cells, cut, padded_left
from .diagram import Arrow, ArrowKind, Aside, Diagram
from .escape import safe_text
from .line import Line
from .units import seconds

MAX_SPAN_CELLS = 84
"""Two neighbours stand no further apart than this, however wide the screen."""

MIN_SPAN_CELLS = 6
NO_TIME_CELLS = 44
"""Below this width times are left out."""

LIFELINE = "│"
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
"""The head of an arrow to the right, and of one to the left."""

_ROOM_BESIDES_TEXT = 5
"""In an arrow: a line and a blank before the text, a blank, a line and the head behind it."""


def ladder(layout: Diagram, *, width: int) -> Iterator[Line]:
    """The lines of the diagram, in at most `width` cells unless lanes would touch."""
    places = _Places(layout, width)
    yield places.titles(layout)
    for step in layout.steps:
        yield places.arrow(step) if isinstance(step, Arrow) else places.aside(step)


class _Places:
    """Where the lifelines stand."""

    __slots__ = ("_at", "_margin", "_width")

    def __init__(self, layout: Diagram, width: int) -> None:
        last_ns = max((step.at_ns for step in layout.steps), default=0)
        self._margin = max(8, len(seconds(last_ns))) + 2 if width >= NO_TIME_CELLS else 0
        count = len(layout.participants)
        span = MAX_SPAN_CELLS
        if count > 1:
            span = max(MIN_SPAN_CELLS, min(MAX_SPAN_CELLS, (width - self._margin - 1) // (count - 1)))
        self._at = {one.id: self._margin + number * span for number, one in enumerate(layout.participants)}
        self._width = max(self._at.values(), default=0) + 1

    def titles(self, layout: Diagram) -> Line:
        """The names, each over its lifeline: the first begins there, the last ends there, the others stand in the middle."""
        canvas = _Canvas(self._width)
        places = list(self._at.values())
        room = places[1] - places[0] - 2 if len(places) > 1 else self._width
        for number, participant in enumerate(layout.participants):
            limit = room if number in (0, len(places) - 1) else room - 2
            name = cut(safe_text(participant.name), max(1, limit // (2 if len(places) == 2 else 1)))
            start = places[number] - cells(name) // 2
            if number == 0:
                start = places[0]
            elif number == len(places) - 1:
                start = places[number] - cells(name) + 1
            canvas.put(max(start, 0), name, "strong")
        return canvas.line()

    def arrow(self, step: Arrow) -> Line:
        """A message on its way."""
        canvas = self._lifelines(step.at_ns)
        start, end = self._at[step.start], self._at[step.end]
        left, right = min(start, end), max(start, end)
        body, heads = BODIES[step.kind], HEADS[step.kind]
        style = "dim" if step.kind is ArrowKind.NOTIFICATION else ""
        canvas.put(left + 1, body * (right - left - 1), style or "dim")
        canvas.put(*((right - 1, heads[0], style) if start < end else (left + 1, heads[1], style)))
        canvas.put(start, "├" if start < end else "┤", "dim")
        room = right - left - 1 - _ROOM_BESIDES_TEXT
        beside = self._width - right - 2
        if cells(step.text) <= room or beside <= room:
            canvas.put(left + 3, f" {cut(step.text, room)} ", step.style or style)
        else:
            canvas.put(right + 1, f" {cut(step.text, beside - 1)} ", step.style or style)
        return canvas.line()

    def aside(self, step: Aside) -> Line:
        """Something that happened on a lifeline, told on the side that has more room."""
        canvas = self._lifelines(step.at_ns)
        place = self._at[step.at]
        before, behind = place - self._margin - 3, self._width - place - 3
        if before > behind:
            text = cut(step.text, before)
            canvas.put(place - cells(text) - 2, f" {text} ", step.style)
        else:
            canvas.put(place + 1, f" {cut(step.text, behind)} ", step.style)
        canvas.put(place, "●", step.style)
        return canvas.line()

    def _lifelines(self, at_ns: int) -> "_Canvas":
        canvas = _Canvas(self._width)
        if self._margin:
            canvas.put(0, padded_left(seconds(at_ns), self._margin - 2), "dim")
        for place in self._at.values():
            canvas.put(place, LIFELINE, "dim")
        return canvas


class _Canvas:
    """One line of cells, to be written over. A wide character fills two: itself, and nothing."""

    __slots__ = ("_cells", "_styles")

    def __init__(self, width: int) -> None:
        self._cells = [" "] * width
        self._styles = [""] * width

    def put(self, at: int, text: str, style: str) -> None:
        """Write `text` from cell `at` on; what would stand outside is left out."""
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

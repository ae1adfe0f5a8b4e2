"""A sequence diagram as one SVG file that loads nothing, runs nothing, and follows the light or dark scheme of the screen.

Captured text is text and nothing else. Each message is a group with the number of its row. Long text is cut; the tooltip
has all of it. Characters count as cells of one width, and the file enforces that width, so that nothing overlaps in any font.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from ..text.cells import cells, cut, wrapped
from ..text.escape import xml_text
from ..text.units import counted, seconds
from .diagram import Activations, Arrow, ArrowKind, Aside, Diagram, Fragment, FragmentKind, OmittedMessages, Step, flat

CELL_PX: Final = 7.2
"""The width of a character in a monospaced font of 12 px."""

ROW_PX: Final = 26
LINE_PX: Final = 15
"""The height of a line of a payload."""

TITLE_PX: Final = 30
HEAD_PX: Final = 34
MARGIN_PX: Final = 16
GROUP_PX: Final = 22
"""The height of a fragment's title of one line."""

MAX_TITLE_LINES: Final = 4

MIN_GAP_PX: Final = 120
MAX_GAP_PX: Final = 620
"""The largest distance of two lanes, however long their texts."""

ROOM_BESIDES_TEXT_PX: Final = 28
CLEAR_PX: Final = 12
"""The distance of a text from the lanes beside it, both sides together."""

_LIGHT: Final = {
    "paper": "#ffffff", "ink": "#1f2328", "dim": "#59636e", "line": "#b6bec7", "band": "#f3f5f7", "bar": "#dbe4ee",
    "bad": "#b3261e", "warn": "#8a5a00", "wait": "#0b6e99", "good": "#1a7f37",
}  # fmt: skip
_DARK: Final = {
    "paper": "#0d1117", "ink": "#e6edf3", "dim": "#9aa4af", "line": "#4b5561", "band": "#161b22", "bar": "#2b3947",
    "bad": "#ff8a80", "warn": "#e3b341", "wait": "#6cc7ec", "good": "#56d364",
}  # fmt: skip

_COLOURS: Final = """\
.paper, .note { fill: PAPER; } text, .tip { fill: INK; } .arrow { stroke: INK; } .time, .dim, .phase, .detail { fill: DIM; }
.news { stroke: DIM; } .lane, .head, .bar, .loop, .note { stroke: LINE; } .head, .band { fill: BAND; } .bar { fill: BAR; }
.over { stroke: BAND; } .bad { fill: BAD; } .warn { fill: WARN; } .wait { fill: WAIT; } .good { fill: GOOD; }
"""

_SHAPES: Final = """\
text { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre; }
.name, .title { font-weight: bold; } .title { font-size: 14px; } .arrow, .loop { fill: none; } .loop { stroke-dasharray: 2 3; }
.tip { stroke: none; } .over { stroke-width: 4px; paint-order: stroke; } .back { stroke-dasharray: 5 4; }
"""


def _coloured(palette: dict[str, str]) -> str:
    return re.sub(r"\b[A-Z]+\b", lambda word: palette[word[0].lower()], _COLOURS)


STYLE: Final = f"{_SHAPES}{_coloured(_LIGHT)}@media (prefers-color-scheme: dark) {{\n{_coloured(_DARK)}}}\n"
"""Every colour is written out, because some readers of SVG do not know variables."""

BAR_PX: Final = 8
TIP_PX: Final = 8

_BODIES: Final = {
    ArrowKind.REQUEST: "arrow",
    ArrowKind.RESPONSE: "arrow back",
    ArrowKind.NOTIFICATION: "arrow news",
    ArrowKind.CANCELLATION: "arrow",
    ArrowKind.LOST: "arrow back",
}
_STYLES: Final = {"bad": "bad", "warn": "warn", "wait": "wait", "good": "good", "dim": "dim"}


def svg(layout: Diagram) -> Iterator[str]:
    """Print the lines of the file."""
    sheet = _Sheet(layout)
    sheet.draw(layout.steps)
    sheet.close()
    width, height = sheet.places.width_px, sheet.y + MARGIN_PX
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
        f' role="img" aria-label="{xml_text(layout.title or "Sequence diagram")}">'
    )
    yield f"<style>{STYLE}</style>"
    yield '<rect class="paper" width="100%" height="100%"/>'
    yield from sheet.below
    yield from sheet.lanes(layout)
    yield from sheet.bars
    yield from sheet.lines
    yield "</svg>"


class _Sheet:
    """A drawing in progress: `below` the lanes, `bars` on them, `lines` above. `y` is the position of the next step."""

    __slots__ = ("_bars", "_begun", "_has_times", "_top", "bars", "below", "lines", "places", "y")

    def __init__(self, layout: Diagram) -> None:
        self.places = SvgPlaces(layout)
        self._has_times = layout.has_times
        self.below: list[str] = []
        self.bars: list[str] = []
        self.lines: list[str] = []
        self._bars = Activations()
        self._begun: dict[str, list[float]] = {}
        """The start of each open activation, by lane."""
        self.y: float = MARGIN_PX
        if layout.title:
            self.lines.append(_text(MARGIN_PX, self.y + 14, layout.title, "title", is_sized=False))
            self.y += TITLE_PX
        self._top = self.y
        self.y += HEAD_PX + 6

    def lanes(self, layout: Diagram) -> Iterator[str]:
        """Draw the lanes, from their heads to the end."""
        for participant in layout.participants:
            at, width = self.places.of(participant.id), cells(participant.name) * CELL_PX + 20
            yield f'<line class="lane" x1="{at:.1f}" y1="{self._top + 24:.1f}" x2="{at:.1f}" y2="{self.y:.1f}"/>'
            yield f'<rect class="head" x="{at - width / 2:.1f}" y="{self._top:.1f}" width="{width:.1f}" height="24" rx="4"/>'
            yield _text(at, self._top + 16, participant.name, "name", anchor="middle")

    def draw(self, steps: Sequence[Step]) -> None:
        """Draw steps below one another."""
        for step in steps:
            match step:
                case Arrow():
                    self._arrow(step)
                case Aside():
                    self._aside(step)
                case OmittedMessages():
                    self.lines.append(
                        _text(self.places.left + 10, self.y + 16, f"… {counted(step.count, 'more message')}", "dim")
                    )
                    self.y += ROW_PX
                case Fragment():
                    self._group(step)

    def close(self) -> None:
        """End the activations that are open."""
        for lane in self._bars.close():
            self._bar(lane)

    def _group(self, step: Fragment) -> None:
        begin, place = self.y, len(self.below)  # below what is drawn inside
        is_loop = step.kind is FragmentKind.LOOP
        inset = 14 if is_loop else 6
        left, right = self.places.left - 40 + inset, self.places.right + 40 - inset
        if not is_loop:
            left, right = MARGIN_PX / 2, self.places.width_px - MARGIN_PX / 2
        words = f"loop {step.title}" if is_loop else step.title
        room = room_cells(min(right, self.places.width_px - MARGIN_PX) - self.places.left - 18)
        for line in wrapped(words, room, MAX_TITLE_LINES):
            self.lines.append(_text(self.places.left + 10, self.y + 15, line, "phase over"))
            self.y += LINE_PX
        self.y += GROUP_PX - LINE_PX
        self.draw(step.steps)
        kind = "loop" if is_loop else "band"
        box = f'x="{left:.1f}" y="{begin + 1:.1f}" width="{right - left:.1f}" height="{self.y - begin - 2:.1f}" rx="4"'
        self.below.insert(place, f'<rect class="{kind}" {box}/>')
        self.y += 4

    def _arrow(self, step: Arrow) -> None:
        start, end = self.places.of(step.start), self.places.of(step.end)
        y = self.y + ROW_PX - 6
        way = 1 if end >= start else -1
        room = room_cells(abs(end - start) - ROOM_BESIDES_TEXT_PX + 8)
        shown = cut(step.text, room)
        self._begin(step)
        from_bar, to_bar = start + way * BAR_PX / 2, end - way * BAR_PX / 2
        self.lines.append(f'<path class="{_BODIES[step.kind]}" d="M{from_bar:.1f} {y:.1f}H{to_bar:.1f}"/>')
        self.lines.append(_tip(step.kind, to_bar, y, way))
        middle, is_clear = self.places.between(start, end, cells(shown) * CELL_PX)
        style = _STYLES.get(step.style, "") if is_clear else f"{_STYLES.get(step.style, '')} over".strip()
        self.lines.append(_text(middle, y - 5, shown, style, anchor="middle"))
        self.y += ROW_PX
        for text in step.details:
            inner = text.lstrip(" ")
            indent = len(text) - len(inner)  # which is no text: blanks at its beginning not everybody keeps
            x = min(start, end) + 14 + indent * CELL_PX
            self.lines.append(_text(x, self.y + 11, cut(inner, max(1, room - indent)), "detail"))
            self.y += LINE_PX
        self.lines.append("</g>")
        if lane := self._bars.opens(step):
            self._begun.setdefault(lane, []).append(y)
        if lane := self._bars.closes(step):
            self._bar(lane, y)

    def _aside(self, step: Aside) -> None:
        at = self.places.of(step.at)
        is_left = at > self.places.left
        room = room_cells((at - self.places.left if is_left else self.places.width_px - at) - 24)
        shown = cut(step.text, room)
        width = cells(shown) * CELL_PX + 12
        x = at - width - 6 if is_left else at + 6
        self._begin(step)
        self.lines.append(f'<circle class="tip" cx="{at:.1f}" cy="{self.y + 12:.1f}" r="3"/>')
        self.lines.append(f'<rect class="note" x="{x:.1f}" y="{self.y + 2:.1f}" width="{width:.1f}" height="20" rx="3"/>')
        self.lines.append(_text(x + 6, self.y + 16, shown, _STYLES.get(step.style, "")))
        self.lines.append("</g>")
        self.y += ROW_PX
        if lane := self._bars.closes(step):
            self._bar(lane)

    def _begin(self, step: Arrow | Aside) -> None:
        """Begin the group of a message, with its tooltip and its time."""
        at = seconds(step.at_ns)
        if not self._has_times:
            self.lines.append(f"<g><title>{xml_text(step.text)}</title>")
            return
        self.lines.append(f'<g data-row="{step.row}"><title>{xml_text(f"{at} {step.text}")}</title>')
        self.lines.append(_text(self.places.times_px - MARGIN_PX, self.y + ROW_PX - 8, at, "time", anchor="end"))

    def _bar(self, lane: str, end: float | None = None) -> None:
        """Draw the latest activation of this lane, down to `end` or to here."""
        begun = self._begun[lane]
        begin = begun.pop()
        x = self.places.of(lane) - BAR_PX / 2 + 3 * len(begun)
        height = max(2.0, (self.y if end is None else end) - begin)
        self.bars.append(f'<rect class="bar" x="{x:.1f}" y="{begin:.1f}" width="{BAR_PX}" height="{height:.1f}"/>')


def _text(x: float, y: float, text: str, style: str, *, anchor: str = "start", is_sized: bool = True) -> str:
    length = f' textLength="{cells(text) * CELL_PX:.1f}" lengthAdjust="spacingAndGlyphs"' if is_sized and text else ""
    name = f' class="{style}"' if style else ""
    where = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{name}{where}{length}>{xml_text(text)}</text>'


def _tip(kind: ArrowKind, x: float, y: float, way: int) -> str:
    """Draw the head of an arrow: filled for requests and responses, open for notifications, a cross if cancelled or lost."""
    back = x - way * TIP_PX
    match kind:
        case ArrowKind.CANCELLATION | ArrowKind.LOST:
            return f'<path class="arrow" d="M{back:.1f} {y - 4:.1f}L{x:.1f} {y + 4:.1f}M{back:.1f} {y + 4:.1f}L{x:.1f} {y - 4:.1f}"/>'
        case ArrowKind.NOTIFICATION:
            return f'<path class="arrow news" d="M{back:.1f} {y - 4:.1f}L{x:.1f} {y:.1f}L{back:.1f} {y + 4:.1f}"/>'
        case _:
            return f'<path class="tip" d="M{back:.1f} {y - 4:.1f}L{x:.1f} {y:.1f}L{back:.1f} {y + 4:.1f}Z"/>'


class SvgPlaces:
    """Horizontal positions of lanes, as far apart as their texts need. `times_px` is the width of the column of times at the left."""

    __slots__ = ("_at", "times_px", "width_px")

    def __init__(self, layout: Diagram) -> None:
        ids = [participant.id for participant in layout.participants]
        names = [cells(participant.name) * CELL_PX + 24 for participant in layout.participants]
        gaps = _gaps(layout, ids, names)
        self.times_px = cells(seconds(layout.last_ns)) * CELL_PX + 2 * MARGIN_PX if layout.has_times else MARGIN_PX
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

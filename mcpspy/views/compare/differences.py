"""Differences of JSON values for people: a path, what stood there, what stands there now; what is long is cut where it differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ...replay.json.canonical import spelled
from ..text.cells import wrapped
from ..text.escape import safe_text
from ..text.line import Line, fitted, line_cells
from ..text.units import counted

if TYPE_CHECKING:
    from ...replay.compare.difference import Difference, Differences

VALUE_LETTERS: Final = 160
"""So much of a value is shown where nothing says how wide a line may be."""

MIN_VALUE_LETTERS: Final = 24

SHOWN: Final = 12
"""So many differences of one thing are shown; JSON has more."""


def difference_lines(found: Differences, *, indent: int, width: int | None) -> Iterator[Line]:
    """A line for each difference, or three where one is too short; below them how many are left out."""
    for one in found.listed[:SHOWN]:
        yield from _lines(one, " " * indent, width)
    more = found.count - min(len(found.listed), SHOWN)
    if more:
        yield fitted([(" " * indent, ""), (f"… {counted(more, 'more difference')}", "dim")], width)


def _lines(one: Difference, indent: str, width: int | None) -> Iterator[Line]:
    room = VALUE_LETTERS if width is None else max(width - len(indent) - 4, MIN_VALUE_LETTERS)
    line: Line = [(indent, ""), *_line(one, room)]
    if width is None or line_cells(line) <= width:
        yield line
        return
    yield fitted([(indent, ""), (safe_text(one.path), "key")], width)
    before, after = _values(one, room)
    for sign, text, style in (("- ", before, "bad"), ("+ ", after, "good")):
        if text:
            yield fitted([(f"{indent}  {sign}", style), (text, style)], width)


def _line(one: Difference, letters: int) -> Line:
    before, after = _values(one, letters)
    line: Line = [(safe_text(one.path), "key")]
    if one.how == "added":
        return [*line, (" added: ", ""), (after, "good")]
    if one.how == "removed":
        return [*line, (" removed: ", ""), (before, "bad")]
    return [*line, (": ", ""), (before, "bad"), (" ≠ ", ""), (after, "good")]


def _values(one: Difference, letters: int) -> tuple[str, str]:
    """Both values, safe; empty for the one that is not there."""
    begin = 0
    if isinstance(one.before, str) and isinstance(one.after, str) and max(len(one.before), len(one.after)) > letters:
        begin = max(0, _common(one.before, one.after) - letters // 4)
    before = "" if one.how == "added" else _shortened(one.before, begin, letters)
    return before, "" if one.how == "removed" else _shortened(one.after, begin, letters)


def _shortened(value: Any, begin: int, letters: int) -> str:
    if isinstance(value, str):
        text, end = value[begin : begin + letters], begin + letters < len(value)
        return safe_text(f"{'…' if begin else ''}{spelled(text)}{'…' if end else ''}")
    text = spelled(value)
    return safe_text(text if len(text) <= letters else text[:letters] + "…")


def _common(one: str, other: str) -> int:
    """How many letters two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def note_lines(text: str, *, indent: int, width: int | None) -> Iterator[Line]:
    """A safe sentence of ours below what it is about."""
    for part in [text] if width is None else wrapped(text, max(width - indent, MIN_VALUE_LETTERS), 3):
        yield fitted([(" " * indent, ""), (part, "dim")], width)

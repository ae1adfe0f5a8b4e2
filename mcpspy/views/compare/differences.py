"""Differences of JSON values as lines: the path, the value before, the value after. A long value is cut around the difference."""

from collections.abc import Iterator
from typing import Any, Final

from ...replay.compare.difference import Difference, Differences
from ...replay.json.canonical import readable_json
from ..page.text_runs import alike
from ..text.cells import wrapped
from ..text.escape import safe_text
from ..text.line import Line, fitted, line_cells
from ..text.units import counted

VALUE_LETTERS: Final = 160
"""The most letters of a value shown where the width is unbounded."""

MIN_VALUE_LETTERS: Final = 24

SHOWN: Final = 12
"""The most differences of one thing that are shown; the JSON output has more."""


def difference_lines(differences: Differences, *, indent: int, width: int | None) -> Iterator[Line]:
    """Yield a line for each difference, or three where it does not fit, and below them the number of differences left out."""
    for difference in differences.listed[:SHOWN]:
        yield from _lines(difference, " " * indent, width)
    more = differences.count - min(len(differences.listed), SHOWN)
    if more:
        yield fitted([(" " * indent, ""), (f"… {counted(more, 'more difference')}", "dim")], width)


def _lines(difference: Difference, indent: str, width: int | None) -> Iterator[Line]:
    room = VALUE_LETTERS if width is None else max(width - len(indent) - 4, MIN_VALUE_LETTERS)
    line: Line = [(indent, ""), *_line(difference, room)]
    if width is None or line_cells(line) <= width:
        yield line
        return
    yield fitted([(indent, ""), (safe_text(difference.path), "key")], width)
    before, after = _values(difference, room)
    for sign, text, style in (("- ", before, "bad"), ("+ ", after, "good")):
        if text:
            yield fitted([(f"{indent}  {sign}", style), (text, style)], width)


def _line(difference: Difference, letters: int) -> Line:
    before, after = _values(difference, letters)
    line: Line = [(safe_text(difference.path), "key")]
    if difference.how == "added":
        return [*line, (" added: ", ""), (after, "good")]
    if difference.how == "removed":
        return [*line, (" removed: ", ""), (before, "bad")]
    return [*line, (": ", ""), (before, "bad"), (" ≠ ", ""), (after, "good")]


def _values(difference: Difference, letters: int) -> tuple[str, str]:
    """Return both values, safe; empty for a value that does not exist."""
    begin = 0
    old, new = difference.before, difference.after
    if isinstance(old, str) and isinstance(new, str) and max(len(old), len(new)) > letters:
        begin = max(0, alike(old, new) - letters // 4)
    before = "" if difference.how == "added" else _shortened(difference.before, begin, letters)
    return before, "" if difference.how == "removed" else _shortened(difference.after, begin, letters)


def _shortened(value: Any, begin: int, letters: int) -> str:
    if isinstance(value, str):
        text, end = value[begin : begin + letters], begin + letters < len(value)
        return safe_text(f"{'…' if begin else ''}{readable_json(text)}{'…' if end else ''}")
    text = readable_json(value)
    return safe_text(text if len(text) <= letters else text[:letters] + "…")


def note_lines(text: str, *, indent: int, width: int | None) -> Iterator[Line]:
    """Yield a safe sentence of ours, indented."""
    for part in [text] if width is None else wrapped(text, max(width - indent, MIN_VALUE_LETTERS), 3):
        yield fitted([(" " * indent, ""), (part, "dim")], width)

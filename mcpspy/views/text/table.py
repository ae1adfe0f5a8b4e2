"""Figures in columns, under their names: on a narrow screen columns give way, the least needed first, and nothing wraps.

The first column is text and has what room is left; what stands in it is safe already. Refuses to know what the figures mean.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .cells import cells, cut, padded, padded_left
from .line import Line, Piece, fitted

GAP = "  "

MIN_NAME_CELLS = 24
"""So much of the first column is shown before another column is."""


class Column(NamedTuple):
    """A column's name, and how early it gives way: 0 never, of the others the highest first. `words` stand on its left."""

    name: str
    gives_way: int = 0
    words: bool = False


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[Piece]], width: int | None) -> Iterator[Line]:
    """The names and the rows, each a piece for every column, in `width` cells; None: as wide as they want."""
    shown = fitting(columns, rows, width)
    sizes = [max(cells(columns[at].name), *(cells(row[at][0]) for row in rows)) for at in shown]
    if width is not None:
        others = sum(sizes[1:]) + len(GAP) * (len(shown) - 1)
        sizes[0] = max(min(sizes[0], width - others), 1)
    yield _line(columns, shown, sizes, [(one.name, "dim") for one in columns], width)
    for row in rows:
        yield _line(columns, shown, sizes, row, width)


def fitting(columns: Sequence[Column], rows: Sequence[Sequence[Piece]], width: int | None) -> list[int]:
    """The columns there is room for, by their index."""
    sizes = [max(cells(one.name), *(cells(row[at][0]) for row in rows)) for at, one in enumerate(columns)]
    shown = [at for at in range(len(columns)) if at == 0 or any(row[at][0] for row in rows)]
    if width is None:
        return shown
    least = min(sizes[0], MIN_NAME_CELLS)
    while least + sum(sizes[at] + len(GAP) for at in shown[1:]) > width:
        first = max(shown, key=lambda at: (columns[at].gives_way, at))
        if not columns[first].gives_way:
            break
        shown.remove(first)
    return shown


def _line(columns: Sequence[Column], shown: list[int], sizes: list[int], row: Sequence[Piece], width: int | None) -> Line:
    line: Line = []
    for place, (at, room) in enumerate(zip(shown, sizes, strict=True)):
        text, style = row[at]
        if place:
            line.append((GAP, ""))
        is_text = place == 0 or columns[at].words
        line.append((padded(cut(text, room), room) if is_text else padded_left(text, room), style))
    return fitted(line, width)

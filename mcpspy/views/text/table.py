"""Tables of figures under column titles. On a narrow screen columns are dropped, the least needed first, and nothing wraps.

The first column is text and takes the room that is left; its texts are safe already.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .cells import cells, cut, padded, padded_left
from .line import Line, Piece, fitted

GAP = "  "

MIN_NAME_CELLS = 24
"""The cells that the first column gets before any other column is shown."""


class Column(NamedTuple):
    """A column's title, and when it is dropped: the highest `gives_way` first, 0 never. `words` aligns it to the left."""

    name: str
    gives_way: int = 0
    words: bool = False


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[Piece]], width: int | None) -> Iterator[Line]:
    """Yield the titles and the rows in `width` cells; with None, as wide as they are. A row has a piece for every column."""
    shown = fitting_columns(columns, rows, width)
    sizes = [max(cells(columns[at].name), *(cells(row[at][0]) for row in rows)) for at in shown]
    if width is not None:
        others = sum(sizes[1:]) + len(GAP) * (len(shown) - 1)
        sizes[0] = max(min(sizes[0], width - others), 1)
    yield _line(columns, shown, sizes, [(column.name, "dim") for column in columns], width)
    for row in rows:
        yield _line(columns, shown, sizes, row, width)


def fitting_columns(columns: Sequence[Column], rows: Sequence[Sequence[Piece]], width: int | None) -> list[int]:
    """Return the indices of the columns that fit."""
    sizes = [max(cells(column.name), *(cells(row[at][0]) for row in rows)) for at, column in enumerate(columns)]
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
    for position, (at, room) in enumerate(zip(shown, sizes, strict=True)):
        text, style = row[at]
        if position:
            line.append((GAP, ""))
        is_text = position == 0 or columns[at].words
        line.append((padded(cut(text, room), room) if is_text else padded_left(text, room), style))
    return fitted(line, width)

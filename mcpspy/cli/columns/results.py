"""Results of queries as text and as Parquet."""

from __future__ import annotations

import csv
import io
from base64 import b64encode
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from ...views.text.cells import cells, cut, padded, padded_left
from ...views.text.escape import safe_text
from ...views.text.json_text import SCHEMA, as_json
from ..screen import Screen

if TYPE_CHECKING:
    from ...columns.database import QueryResult

GAP: Final = "  "
MEASURED_ROWS: Final = 1_000
"""The widths of columns are those of so many rows; later ones may be wider."""
MAX_CELLS: Final = 60
"""A value is cut there on a terminal."""

LEAST_ROUNDED: Final = 0.1
_NUMBERS: Final = ("INT", "DOUBLE", "FLOAT", "DECIMAL")


def table_texts(result: QueryResult, screen: Screen | None) -> Iterator[str]:
    """Yield lines with aligned columns; on a terminal long values are cut."""
    names = [safe_text(column.name) for column in result.columns]
    is_cut = screen is not None and screen.terminal
    right = [any(word in column.type.upper() for word in _NUMBERS) and "[" not in column.type for column in result.columns]
    rows = (_words(row, MAX_CELLS if is_cut else None) for row in result.rows())
    first = [row for row, _ in zip(rows, range(MEASURED_ROWS), strict=False)]
    widths = [max(cells(name), *(cells(row[at]) for row in first)) if first else cells(name) for at, name in enumerate(names)]
    yield _line(names, widths, right, screen)
    for row in first:
        yield _line(row, widths, right, screen)
    for row in rows:
        yield _line(row, widths, right, screen)


def _words(row: tuple[Any, ...], most: int | None) -> list[str]:
    words = [safe_text(_rounded(value)) for value in row]
    return words if most is None else [cut(word, most) for word in words]


def _line(words: list[str], widths: list[int], right: list[bool], screen: Screen | None) -> str:
    padding = [padded_left if is_right else padded for is_right in right]
    text = GAP.join(pad(word, width) for pad, word, width in zip(padding, words, widths, strict=True)).rstrip()
    return f"{text if screen is None else screen.letters(text)}\n"


def csv_lines(result: QueryResult) -> Iterator[str]:
    """Yield lines of CSV, the first of them with the names."""
    yield _csv([column.name for column in result.columns])
    for row in result.rows():
        yield _csv([_text(value) for value in row])


def _csv(words: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(words)
    return line.getvalue()


def json_pieces(result: QueryResult) -> Iterator[str]:
    """Yield the text of one object: the columns, and each row as a list on a line of its own."""
    columns = [{"name": column.name, "type": column.type} for column in result.columns]
    yield as_json({"schema": SCHEMA, "columns": columns})[:-1] + ',"rows":['
    between = "\n"
    for row in result.rows():
        yield between + as_json([_plain(value) for value in row])
        between = ",\n"
    yield "]}\n"


def _rounded(value: Any) -> str:
    """Return a value as text, with three digits after the point where that shows anything."""
    plain = _plain(value)
    is_rounded = isinstance(plain, float) and abs(plain) >= LEAST_ROUNDED
    return f"{plain:.3f}".rstrip("0").rstrip(".") if is_rounded else _text(value)


def _text(value: Any) -> str:
    plain = _plain(value)
    if plain is None:
        return ""
    return plain if isinstance(plain, str) else as_json(plain)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it. Times are UTC, in ISO 8601."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value - value == 0 else str(value)
        case Decimal():
            return float(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case bytes():
            return b64encode(value).decode()
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return str(value)

"""Results of queries as text and as Parquet.

A file is replaced in one step, so that a query that fails leaves an older result as it was.
"""

from __future__ import annotations

import csv
import io
import os
import stat
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date, datetime
from decimal import Decimal
from itertools import chain, islice
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

LEAST_CELLS: Final = 12
"""A column of texts is not made narrower than this to fit on a terminal."""

LEAST_ROUNDED: Final = 0.1
_NUMBERS: Final = ("INT", "DOUBLE", "FLOAT", "DECIMAL")
_TIMES: Final = ("TIME", "DATE")


def table_texts(result: QueryResult, screen: Screen | None) -> Iterator[str]:
    """Yield lines with aligned columns; on a terminal long texts are cut, and those of the widest columns until a line fits."""
    right = [_is_of(column.type, _NUMBERS) for column in result.columns]
    are_texts = [not _is_of(column.type, _NUMBERS + _TIMES) for column in result.columns]
    rows = chain([[column.name for column in result.columns]], (map(_rounded, row) for row in result.rows()))
    lines = ([safe_text(word) for word in row] for row in rows)
    first = list(islice(lines, MEASURED_ROWS))
    widths = [max(map(cells, column)) for column in zip(*first, strict=True)]
    limits: list[int | None] = [None] * len(widths)
    if screen is not None and screen.terminal and screen.width is not None:
        widths = _fitted(widths, are_texts, screen.width)
        limits = [width if is_text else None for width, is_text in zip(widths, are_texts, strict=True)]
    for line in chain(first, lines):
        words = [word if limit is None else cut(word, limit) for word, limit in zip(line, limits, strict=True)]
        yield _line(words, widths, right, screen)


def _is_of(column_type: str, words: tuple[str, ...]) -> bool:
    name = column_type.upper().partition("(")[0]
    return any(word in name for word in words) and "[" not in column_type


def _fitted(widths: list[int], are_texts: list[bool], width: int) -> list[int]:
    """Make the widest columns of texts narrower until a line fits, or until all have the least width."""
    texts = [column for column, is_text in zip(widths, are_texts, strict=True) if is_text]
    left = width - len(GAP) * (len(widths) - 1) - (sum(widths) - sum(texts))
    most = min(MAX_CELLS, max(texts, default=LEAST_CELLS))
    while most > LEAST_CELLS and sum(min(column, most) for column in texts) > left:
        most -= 1
    return [min(column, most) if is_text else column for column, is_text in zip(widths, are_texts, strict=True)]


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
    """Return a value as text, with three digits after the point, or with three significant digits if it is small."""
    plain = _plain(value)
    if not isinstance(plain, float) or not plain:
        return _text(value)
    return f"{plain:.3f}".rstrip("0").rstrip(".") if abs(plain) >= LEAST_ROUNDED else f"{plain:.3g}"


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


@contextmanager
def replaced(path: str | None) -> Iterator[str | None]:
    """Yield where to write what is to be at `path`: beside it, if that can be. None, for standard output, stays None.

    Raises: OSError: if it cannot be written.
    """
    if path is None or not _can_be_replaced(path):
        yield path
        return
    target = os.path.realpath(path)
    temporary = f"{target}.{os.getpid()}"
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666))
        with suppress(FileNotFoundError):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        if error.errno is None or error.filename not in (temporary, None):
            raise
        raise OSError(error.errno, os.strerror(error.errno), path) from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _can_be_replaced(path: str) -> bool:
    """Return whether a path names a file that can be replaced, or none yet: no device, and no file in a folder of others."""
    return not os.path.exists(path) or (os.path.isfile(path) and os.access(os.path.dirname(os.path.realpath(path)), os.W_OK))

"""What is said of a filter beside the rows that it lets through: how many match, and where one cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...transcript.model import Log
from .cells import cells, cut
from .escape import safe_text
from .units import counted

if TYPE_CHECKING:
    from ...transcript.filter.filter import Filter
    from ...transcript.filter.result import FilterResult
    from .line import Line


def filter_line(found: FilterResult) -> Line:
    """`17 of 1,234 rows match tool:search*`, and how many lines of stderr."""
    logs = sum(1 for row in found.rows if isinstance(row, Log))
    return matching_line(found.filter, found.matching, found.total, logs)


def matching_line(wanted: Filter, matching: int, of: int, logs: int = 0) -> Line:
    """The same, of numbers that were counted elsewhere."""
    also = f" and {counted(logs, 'line')} of stderr" if logs else ""
    verb = "matches" if 1 in (matching, of) and not logs else "match"
    return [(f"{matching:,} of {counted(of, 'row')}{also} {verb} ", "strong"), (safe_text(str(wanted)), "")]


def caret_lines(expression: str, column: int, width: int) -> list[str]:
    """`expression` and a caret below this column, the first being 1, in at most `width` cells."""
    before, after = safe_text(expression[: column - 1]), safe_text(expression[column - 1 : column - 1 + width])
    if cells(before) > width // 2:
        before = "…" + before[-(width // 4) :]
    return [cut(before + after, width), " " * cells(before) + "^"]

"""Lines about a filter: how many rows match it, and where an expression cannot be parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...transcript.model import Log
from .cells import cells, cut
from .escape import safe_text, without_logins
from .line import Line
from .units import counted

if TYPE_CHECKING:
    from ...transcript.filter.grammar import Filter
    from ...transcript.filter.result import FilterResult


def filter_line(filtered: FilterResult) -> Line:
    """Return `17 of 1,234 rows match tool:search*`, with the number of matching lines of stderr."""
    logs = sum(1 for row in filtered.rows if isinstance(row, Log))
    return matching_line(filtered.filter, filtered.matching, filtered.total, logs)


def matching_line(wanted: Filter, matching: int, of: int, logs: int = 0) -> Line:
    """Return the same line from numbers that were counted elsewhere."""
    and_logs = f" and {counted(logs, 'line')} of stderr" if logs else ""
    verb = "matches" if 1 in (matching, of) and not logs else "match"
    return [(f"{matching:,} of {counted(of, 'row')}{and_logs} {verb} ", "strong"), (safe_text(without_logins(str(wanted))), "")]


def caret_lines(expression: str, column: int, width: int) -> list[str]:
    """Return `expression` and a caret below `column` (the first is 1), both in at most `width` cells."""
    before, after = safe_text(expression[: column - 1]), safe_text(expression[column - 1 : column - 1 + width])
    if cells(before) > width // 2:
        before = "…" + before[-(width // 4) :]
    return [cut(before + after, width), " " * cells(before) + "^"]

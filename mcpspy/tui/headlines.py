"""The lines above the lists: what is shown, the titles of columns and tabs, the name of a row. And how the lists share the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..transcript.model import Numbered, Row, Transcript
from ..views.text.escape import one_line, safe_text
from ..views.text.line import Line, joined
from ..views.text.units import counted
from ..views.timeline.exchange import row_lines
from .row_lines import RowLines, row_name
from .tabs import TABS

if TYPE_CHECKING:
    from .source import RowSource

BESIDE_CELLS: Final = 150
"""From this width on, the detail is beside the rows and not below them."""

LEAST_LINES: Final = 4
FIRST_LINES: Final = 20

HORIZONTAL, VERTICAL = "─", "│"
"""The signs that are drawn between the lists."""

_BETWEEN = (" · ", "dim")


class Shares(NamedTuple):
    """The detail `is_beside` the rows, or below them, where rows and titles have `rows_height` lines."""

    is_beside: bool
    rows_height: int


def shares(width: int, height: int, count: int) -> Shares:
    """Give rows above the detail no more lines than they need, and half of the screen at most."""
    return Shares(width >= BESIDE_CELLS, max(min(count + 1, height // 2 - 1), LEAST_LINES))


def first_cursor(source: RowSource, rows: RowLines, number: int = 0) -> int:
    """Return the position of the row with this number; without one, that of the row to begin with.

    This is the newest row while they come, else the first one with a number, which is among the first lines or not worth a search.
    """
    row = source.transcript.row(number) if number else None
    at = None if row is None else rows.shown.position(row)
    if at is not None:
        return at
    if source.live:
        return max(len(rows) - 1, 0)
    positions = range(min(len(rows), FIRST_LINES))
    return next((at for at in positions if isinstance(rows.shown.row(at), Numbered)), 0)


def summary_line(source: RowSource, rows: RowLines, filter_text: str = "") -> Line:
    """Say what is shown: servers and client, how many rows, what is new."""
    transcript, shown = source.transcript, rows.shown
    sign: Line = [("● ", "bad")] if source.live else []
    servers = ", ".join(dict.fromkeys(info.server for info in transcript.captures)) or "nothing yet"
    clients = ", ".join(dict.fromkeys(name for info in transcript.captures for name in info.clients))
    parts: list[Line] = [[*sign, (one_line(servers), "strong"), (f" ← {one_line(clients)}", "")]]
    total = len(transcript.rows)
    if shown.condition is None:
        parts.append([(counted(total, "line"), "")])
    else:
        parts.append([(f"{len(shown):,} of {counted(total, 'line')} match {safe_text(filter_text)}", "wait")])
    if transcript.findings:
        parts.append([(counted(len(transcript.findings), "finding"), "warn")])
    new = len(shown) - rows.seen
    if new > 0 and shown.condition is None:
        parts.append([(f"{new:,} new: End", "wait")])
    return joined(parts, _BETWEEN)


def title_line(rows: RowLines, width: int) -> Line:
    """Return the titles of the columns of rows."""
    return [("  ", ""), *rows.title(width)] if len(rows) else []


def row_line(transcript: Transcript, row: Row | None, width: int) -> Line:
    """Name the row that is shown in detail, and say what came of it."""
    if row is None:
        return []
    name: Line = [(row_name(row), "strong")]
    return next(iter(row_lines(transcript, row, width=width)), name) if isinstance(row, Numbered) else name


def tab_line(tab: int) -> list[tuple[Line, str]]:
    """Return the titles of the tabs, each with the style of it all."""
    return [
        ([(f" {title} ", "strong" if at == tab else "dim")], "reverse" if at == tab else "")
        for at, (title, _) in enumerate(TABS)
    ]

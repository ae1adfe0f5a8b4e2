"""The first screen, drawn without Textual, whose import and start take longer than all before them.

It is the screen that Textual draws later, cell by cell, so that nothing moves when it does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.color import ColorSystem
from rich.segment import Segment

from ..views.text.line import Line
from .drawing import EmptyLines, Letters, LineModel, ListWindow, segments_of
from .headlines import HORIZONTAL, VERTICAL, first_cursor, row_line, shares, summary_line, tab_line, title_line
from .keys import footer
from .row_lines import RowLines, ShownRows
from .tabs import TABS

if TYPE_CHECKING:
    from .source import RowSource

LEAST: Final = 40, 12
"""The smallest screen that gets one."""

Segments = Sequence[Segment]


def first_frame(source: RowSource, letters: Letters, size: tuple[int, int], number: int = 0) -> list[Segments]:
    """Return the lines of the screen that first shows a source, with the cursor on a row; none for a screen that is too small."""
    width, height = size
    if width < LEAST[0] or height < LEAST[1]:
        return []
    source.take()
    rows = RowLines(ShownRows(source.transcript), live=source.live)
    cursor = first_cursor(source, rows, number)
    is_beside, rows_height = shares(width, height, len(rows))
    above = segments_of(summary_line(source, rows), width, letters, "bold")
    below = segments_of(footer(), width, letters)
    if is_beside:
        left = _rows(rows, cursor, letters, (width - 1) // 2, height - 2)
        right = _detail(source, rows, cursor, letters, width - 1 - (width - 1) // 2, height - 2)
        between = segments_of([(VERTICAL, "dim")], 1, letters)
        lists: list[Segments] = [[*ours, *between, *theirs] for ours, theirs in zip(left, right, strict=True)]
    else:
        between = segments_of([(HORIZONTAL * width, "dim")], width, letters)
        upper = _rows(rows, cursor, letters, width, rows_height)
        lists = [*upper, between, *_detail(source, rows, cursor, letters, width, height - 3 - rows_height)]
    return [above, *lists, below]


def _rows(rows: RowLines, cursor: int, letters: Letters, width: int, height: int) -> list[Segments]:
    window = ListWindow(rows, cursor, 0, width, height - 1).revealed()
    return [segments_of(title_line(rows, window.line_cells), width, letters), *_list(window, letters, has_focus=True)]


def _detail(source: RowSource, rows: RowLines, cursor: int, letters: Letters, width: int, height: int) -> list[Segments]:
    transcript, row = source.transcript, rows.shown.row(cursor)
    window = ListWindow(EmptyLines(), 0, 0, width, height - 2)
    content: LineModel = window.model if row is None else TABS[0].content(transcript, row, window.line_cells)
    tabs: list[Segment] = [] if row is None else [part for line, extra in tab_line(0) for part in _whole(line, letters, extra)]
    used = sum(segment.cell_length for segment in tabs)
    return [
        segments_of(row_line(transcript, row, width), width, letters),
        [*tabs, *segments_of([], width - used, letters)],
        *_list(window._replace(model=content), letters, has_focus=False),
    ]


def _whole(line: Line, letters: Letters, extra: str) -> Segments:
    return segments_of(line, sum(len(text) for text, _ in line), letters, extra)


def _list(window: ListWindow, letters: Letters, *, has_focus: bool) -> list[Segments]:
    return [window.segments(y, letters, has_focus=has_focus) for y in range(window.height)]


def drawn(lines: Sequence[Segments]) -> str:
    """Return the escape sequences that draw the lines from the top of a terminal; without colours if the user wants none."""
    has_colours = not os.environ.get("NO_COLOR")
    texts = ("".join(_styled(segment, has_colours=has_colours) for segment in line) for line in lines)
    return "".join(f"\x1b[{y};1H{text}" for y, text in enumerate(texts, 1))


def _styled(segment: Segment, *, has_colours: bool) -> str:
    if segment.style is None:
        return segment.text
    style = segment.style if has_colours else segment.style.without_color
    return style.render(segment.text, color_system=ColorSystem.STANDARD)

"""Lines of the views as segments of rich, and the lines of a list: a mark, the line of the model, and a scrollbar.

No text is read as markup, and the colours are the terminal's own 16. Nothing scrolls here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple, Protocol, TypeAlias

from rich.segment import Segment
from rich.style import Style

from ..views.text.cells import ELLIPSIS, cells
from ..views.text.line import PALETTE, PLAIN_LETTERS, Line, fitted

Letters: TypeAlias = Callable[[str], str]
"""Replaces the characters that the terminal lacks."""


CUT: Final = "~"
"""The end of a line that does not fit, where a terminal lacks the ellipsis: one cell, as that has."""

MARK_CELLS: Final = 2
"""The cells before a line, which show the cursor."""

BAR_CELLS: Final = 1
"""The cells after it, which show the scrollbar."""


def all_letters(text: str) -> str:
    """Replace nothing."""
    return text


def ascii_letters(text: str) -> str:
    """Spell all of a text in ASCII: our characters by similar ones, captured ones by their escapes."""
    return text.translate(PLAIN_LETTERS).encode("ascii", "backslashreplace").decode("ascii")


@cache
def _style(name: str, extra: str) -> Style:
    return Style.parse(f"{PALETTE[name]} {extra}".strip() or "none")


def segments_of(line: Line, width: int, letters: Letters, extra: str = "") -> list[Segment]:
    """Draw `line` in exactly `width` cells. `extra` is a style of the whole line, in rich's words."""
    if letters is not all_letters:
        line = [(letters(text), style) for text, style in line]
    fit = fitted(line, width) if width > 0 else []
    if letters is not all_letters:
        fit = [(text.replace(ELLIPSIS, CUT), style) for text, style in fit]
    rest = max(width, 0) - sum(cells(text) for text, _ in fit)
    segments = [Segment(text, _style(style, extra)) for text, style in fit]
    return [*segments, Segment(" " * rest, _style("", extra))] if rest else segments


class LineModel(Protocol):
    """Lines by their positions."""

    def __len__(self) -> int: ...

    def line(self, at: int, width: int) -> Line:
        """Make a line in at most `width` cells."""

    def mark(self, at: int) -> str:
        """Return a sign to show before a line, or an empty text."""


class EmptyLines:
    """No lines."""

    def __len__(self) -> int:
        return 0

    def line(self, at: int, width: int) -> Line:
        """Return nothing: there is none."""
        return []

    def mark(self, at: int) -> str:
        """Return nothing."""
        return ""


class ListWindow(NamedTuple):
    """The lines of a model that are on the screen, from the line `top` on."""

    model: LineModel
    cursor: int
    top: int
    width: int
    height: int

    @property
    def line_cells(self) -> int:
        """The cells that a line may take."""
        return max(self.width - MARK_CELLS - BAR_CELLS, 1)

    def revealed(self) -> ListWindow:
        """Return the window scrolled so that the cursor is in it."""
        return self._replace(top=max(min(self.top, self.cursor), self.cursor - self.height + 1))

    def segments(self, y: int, letters: Letters, *, has_focus: bool) -> list[Segment]:
        """Draw a line of the screen."""
        at = self.top + y
        is_cursor = at == self.cursor
        line: Line = []
        if at < len(self.model):
            mark = "►" if is_cursor else self.model.mark(at)
            line = [(f"{mark or ' '} ", "strong" if is_cursor else "wait"), *self.model.line(at, self.line_cells)]
        extra = "reverse" if is_cursor and has_focus and line else ""
        return [
            *segments_of(line, self.width - BAR_CELLS, letters, extra),
            *segments_of(self._bar(y), BAR_CELLS, letters),
        ]

    def _bar(self, y: int) -> Line:
        """Return a cell of the scrollbar: none if all lines are on the screen."""
        count = len(self.model)
        if count <= self.height:
            return []
        size = max(self.height * self.height // count, 1)
        begin = round(self.top * (self.height - size) / (count - self.height))
        return [("┃", "") if begin <= y < begin + size else ("│", "dim")]

"""Lines of the views as strips of cells for Textual. No text is read as markup, and the colours are the terminal's own 16."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from ..views.text.line import PALETTE, PLAIN_LETTERS, Line, fitted

Letters: TypeAlias = Callable[[str], str]
"""Replaces the characters that the terminal lacks."""


def all_letters(text: str) -> str:
    """Replace nothing."""
    return text


def ascii_letters(text: str) -> str:
    """Spell all of a text in ASCII: our characters by similar ones, captured ones by their escapes."""
    return text.translate(PLAIN_LETTERS).encode("ascii", "backslashreplace").decode("ascii")


@cache
def _style(name: str, extra: str) -> Style:
    return Style.parse(f"{PALETTE[name]} {extra}".strip() or "none")


def strip_of(line: Line, width: int, letters: Letters, extra: str = "") -> Strip:
    """Draw `line` in exactly `width` cells. `extra` is a style of the whole line, in rich's words."""
    if letters is not all_letters:
        line = [(letters(text), style) for text, style in line]
    fit = fitted(line, width) if width > 0 else []
    strip = Strip([Segment(text, _style(style, extra)) for text, style in fit])
    return strip.adjust_cell_length(max(width, 0), _style("", extra))


def text_of(line: Line, letters: Letters) -> Text:
    """Return `line` as text of rich, in which nothing is markup."""
    return Text.assemble(*((letters(text), PALETTE[style]) for text, style in line), no_wrap=True, overflow="ellipsis", end="")

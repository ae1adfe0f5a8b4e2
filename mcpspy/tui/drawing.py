"""Lines of the views as segments of rich. No text is read as markup, and the colours are the terminal's own 16."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from rich.segment import Segment
from rich.style import Style

from ..views.text.cells import ELLIPSIS, cells
from ..views.text.line import PALETTE, PLAIN_LETTERS, Line, fitted

Letters: TypeAlias = Callable[[str], str]
"""Replaces the characters that the terminal lacks."""


CUT: Final = "~"
"""The end of a line that does not fit, where a terminal lacks the ellipsis: one cell, as that has."""


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

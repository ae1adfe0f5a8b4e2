"""A line of output, independent of where it goes: pieces of text, each with the name of a style.

A pipe gets the `plain` text, a terminal the same text in the colours of the palette. The texts in a line are safe already.
"""

from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

from ...lazy_pattern import lazy_pattern
from .cells import ELLIPSIS, are_narrow, cells, cut

_words = lazy_pattern(r" *[^ ]+| +")

Piece: TypeAlias = tuple[str, str]
"""Text, and the name of its style in PALETTE; an empty name is plain text."""

Line: TypeAlias = list[Piece]

PALETTE = {
    "": "",
    "dim": "dim",
    "strong": "bold",
    "good": "green",
    "bad": "red",
    "warn": "yellow",
    "wait": "cyan",
    "key": "cyan",
    "string": "green",
    "literal": "magenta",
    "lane0": "cyan",
    "lane1": "magenta",
    "lane2": "blue",
    "lane3": "green",
    "lane4": "bright_cyan",
    "lane5": "bright_magenta",
}
"""The styles, in rich's words: red for failures, yellow for warnings, cyan for what is pending, dim for what matters less."""

LANE_STYLES = 6

PLAIN_LETTERS = str.maketrans(
    {
        "→": ">", "←": "<", "·": "-", "…": "...", "×": "x", "✓": "+", "✗": "!", "⚑": "!", "│": "|", "├": "|", "┤": "|", "─": "-",
        "╌": ".", "►": ">", "◄": "<", "●": "*", "○": "o", "µ": "u", "≠": "!=", "≥": ">", "▾": "v", "▸": ">", "┃": "#",
    }
)  # fmt: skip
"""Replacements for our characters in an encoding without them. Captured text is escaped there by `backslashreplace`."""


def lane_style(index: int) -> str:
    """Return the style of the lane with this index. The colours repeat after the last one."""
    return f"lane{index % LANE_STYLES}"


def plain(line: Line) -> str:
    """Return the text of `line` without blanks at its end."""
    return "".join([text for text, _ in line]).rstrip()


def coloured(line: Line) -> str:
    """Return the text of `line` with the escape sequences of its styles. It holds no other escape sequences."""
    codes = _codes()
    parts: list[str] = []
    for text, style in line:
        before, after = codes[style]
        parts.append(f"{before}{text}{after}" if before else text)
    return "".join(parts).rstrip(" ")


@cache
def _codes() -> dict[str, tuple[str, str]]:
    """Return the escape sequences before and after a text of each style, in the 16 standard colours, which users can configure."""
    from rich.color import ColorSystem  # 20 ms, which a pipe need not wait for (CPython 3.11)
    from rich.style import Style

    codes: dict[str, tuple[str, str]] = {}
    for name, words in PALETTE.items():
        before, _, after = Style.parse(words).render("·", color_system=ColorSystem.STANDARD).partition("·")
        codes[name] = before, after
    return codes


def line_cells(line: Line) -> int:
    """Return the number of cells that `line` takes."""
    return cells("".join([text for text, _ in line]))


def fitted(line: Line, limit: int | None) -> Line:
    """Cut `line` with `…` to at most `limit` cells; None means no limit."""
    if limit is None:
        return line
    whole = "".join([text for text, _ in line])
    if whole.isascii() or are_narrow(whole):
        excess = len(whole) - limit
        if excess <= 0:
            return line
        last, style = line[-1]
        if len(last) > excess:  # most lines are too long by their last piece
            return [*line[:-1], (last[: -excess - 1].rstrip() + ELLIPSIS, style)]
    elif cells(whole) <= limit:
        return line
    left = limit
    fit: Line = []
    for text, style in line:
        taken = cells(text)
        if taken >= left:
            # A piece that fills the line exactly is cut too, because more pieces follow it.
            fit.append((cut(text + " ", left) if taken == left else cut(text, left), style))
            break
        fit.append((text, style))
        left -= taken
    return fit


def broken(line: Line, limit: int | None) -> list[Line]:
    """Break `line` at spaces into lines of at most `limit` cells, indented by two more; a longer word stays whole.

    None means no limit.
    """
    if limit is None or line_cells(line) <= limit:
        return [line]
    whole = plain(line)
    indent = " " * (len(whole) - len(whole.lstrip(" ")) + 2)
    lines: list[Line] = [[]]
    for word, style in [(word, style) for text, style in line for word in _words.findall(text)]:
        taken = line_cells(lines[-1])
        is_full = taken + cells(word) > limit and plain(lines[-1]).strip() != ""
        if is_full:
            lines.append([])
        lines[-1].append((indent + word.lstrip(" ") if is_full else word, style))
    return lines


def joined(parts: Iterable[Line], between: Piece) -> Line:
    """Join several lines into one, with `between` between them."""
    line: Line = []
    for part in parts:
        if line:
            line.append(between)
        line.extend(part)
    return line

"""A line of output before anyone knows where it goes: pieces of text, each with the name of a style.

A pipe gets `plain` text fast, a terminal the same text in the colours of the palette. The texts in a line are safe already.
Refuses to know the terminal.
"""

from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

from .cells import cells, cut

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
"""What each style looks like, in rich's words. Red failed, yellow wants an eye, cyan waits; dim is there if you look for it."""

LANE_STYLES = 6


def lane_style(index: int) -> str:
    """The style of the server lane with this index: its own colour, again from the start after the last."""
    return f"lane{index % LANE_STYLES}"


def plain(line: Line) -> str:
    """The text of `line` without blanks at its end."""
    return "".join([text for text, _ in line]).rstrip()


def coloured(line: Line) -> str:
    """The text of `line` with the escape sequences of its styles: ours are the only ones in it."""
    codes = _codes()
    parts: list[str] = []
    for text, style in line:
        before, after = codes[style]
        parts.append(f"{before}{text}{after}" if before else text)
    return "".join(parts).rstrip(" ")


@cache
def _codes() -> dict[str, tuple[str, str]]:
    """What goes before and behind a text of each style: the 16 colours that every terminal has, as its user set them."""
    from rich.color import ColorSystem  # 20 ms, which a pipe need not wait for (CPython 3.11)
    from rich.style import Style

    found: dict[str, tuple[str, str]] = {}
    for name, words in PALETTE.items():
        before, _, after = Style.parse(words).render("·", color_system=ColorSystem.STANDARD).partition("·")
        found[name] = before, after
    return found


def line_cells(line: Line) -> int:
    """How many cells `line` takes."""
    return sum(cells(text) for text, _ in line)


def fitted(line: Line, limit: int | None) -> Line:
    """`line` in at most `limit` cells, cut with `…` where it is longer. No limit where that is None."""
    if limit is None or line_cells(line) <= limit:
        return line
    left = limit
    fit: Line = []
    for text, style in line:
        taken = cells(text)
        if taken >= left:
            # The piece that fills the line is cut as if more followed, because it does.
            fit.append((cut(text + " ", left) if taken == left else cut(text, left), style))
            break
        fit.append((text, style))
        left -= taken
    return fit


def joined(parts: Iterable[Line], between: Piece) -> Line:
    """One line out of several, with `between` between them."""
    line: Line = []
    for part in parts:
        if line:
            line.append(between)
        line.extend(part)
    return line

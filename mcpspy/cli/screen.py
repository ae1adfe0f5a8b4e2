"""Standard output as it is: a terminal or a pipe, how wide, whether in colour, and which letters it can take.

Data goes here; words for people go to stderr, and hints only where somebody watches.
"""

import os
import sys
from collections.abc import Iterable

import click

from ..views.text.line import Line, coloured, plain

LINES_PER_WRITE = 500

PLAIN_LETTERS = str.maketrans(
    {
        "→": ">", "←": "<", "·": "-", "…": "...", "×": "x", "✓": "+", "✗": "!", "⚑": "!", "│": "|", "├": "|", "┤": "|", "─": "-",
        "╌": ".", "►": ">", "◄": "<", "●": "*", "○": "o", "µ": "u", "≠": "!=",
    }
)  # fmt: skip
"""Ours, for an encoding that lacks them. What is captured is spelled out by `backslashreplace` there."""


class Screen:
    """How to print on standard output. `width` is in cells; None: a pipe, which takes lines of any length."""

    __slots__ = ("_colour", "_plain_letters", "terminal", "width")

    def __init__(self) -> None:
        self.terminal = _is_terminal()
        self.width = _width(terminal=self.terminal)
        self._colour = self.redraws or (bool(os.environ.get("FORCE_COLOR")) and not os.environ.get("NO_COLOR"))
        self._plain_letters = not _takes_our_letters()
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")

    @property
    def redraws(self) -> bool:
        """Whether what was printed can be written over, and in colour."""
        return self.terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("dumb", "unknown", "")

    def measure(self) -> None:
        """Look again how wide it is."""
        self.width = _width(terminal=self.terminal)

    def text(self, line: Line) -> str:
        """`line` as it will be printed."""
        return self.letters(coloured(line) if self._colour else plain(line))

    def letters(self, text: str) -> str:
        """`text` in letters that the encoding of standard output has."""
        return text.translate(PLAIN_LETTERS) if self._plain_letters else text

    def lines(self, lines: Iterable[Line]) -> None:
        """Print lines, many at a time."""
        held: list[str] = []
        for line in lines:
            held.append(self.text(line))
            if len(held) == LINES_PER_WRITE:
                self.texts(held)
                held = []
        self.texts(held)

    def texts(self, texts: Iterable[str]) -> None:
        """Print texts, each on a line of its own."""
        held = list(texts)
        if held:
            sys.stdout.write("\n".join(held) + "\n")

    def advise(self, line: Line) -> None:
        """Say something to whoever watches: nothing where nobody does."""
        if self.terminal:
            sys.stdout.flush()
            click.echo(self.text(line), err=True)


def width() -> int | None:
    """How many cells a line on stdout may take; None where it is a pipe, which takes any."""
    return _width(terminal=_is_terminal())


def show_lines(lines: Iterable[Line]) -> None:
    """Write `lines` to stdout, in colour where that is seen."""
    Screen().lines(lines)


def say(words: str) -> None:
    """Write words for a person to stderr."""
    sys.stdout.flush()
    click.echo(words, err=True)


def _is_terminal() -> bool:
    try:
        return sys.stdout.isatty()
    except (AttributeError, ValueError):  # there is no standard output, or it is closed
        return False


def _width(*, terminal: bool) -> int | None:
    """What `COLUMNS` says; else as wide as the terminal is."""
    named = os.environ.get("COLUMNS", "")
    if named.isascii() and named.isdecimal() and int(named[:6]) > 0:
        return int(named[:6])
    if not terminal:
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _takes_our_letters() -> bool:
    try:
        "→…×│╌►●✓".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True

"""Standard output: whether it is a terminal or a pipe, its width, colours and characters.

Data goes to stdout. Messages for people go to stderr, and hints only if stdout is a terminal.
"""

import os
import sys
from collections.abc import Iterable

from ..views.text.line import PLAIN_LETTERS, Line, broken, coloured, plain

LINES_PER_WRITE = 500


class Screen:
    """Printing to standard output. `width` is in cells; None for a pipe, which takes lines of any length."""

    __slots__ = ("_colour", "_plain_letters", "terminal", "width")

    def __init__(self) -> None:
        self.terminal = _is_terminal()
        self.width = _width(terminal=self.terminal)
        self._colour = self.redraws or (bool(os.environ.get("FORCE_COLOR")) and not os.environ.get("NO_COLOR"))
        self._plain_letters = not takes_our_letters()
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")

    @property
    def redraws(self) -> bool:
        """True if printed lines can be overwritten, and coloured."""
        return self.terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("dumb", "unknown", "")

    def measure(self) -> None:
        """Read the width again, as the terminal may have been resized."""
        self.width = _width(terminal=self.terminal)

    def text(self, line: Line) -> str:
        """Write a line as it is printed, with colours if the screen has them."""
        return self.letters(coloured(line) if self._colour else plain(line))

    def letters(self, text: str) -> str:
        """Replace the characters that the encoding of standard output lacks."""
        return text.translate(PLAIN_LETTERS) if self._plain_letters else text

    def lines(self, lines: Iterable[Line]) -> None:
        """Print lines."""
        batch: list[str] = []
        for line in lines:
            batch.append(self.text(line))
            if len(batch) == LINES_PER_WRITE:
                self.texts(batch)
                batch = []
        self.texts(batch)

    def broken(self, lines: Iterable[Line]) -> None:
        """Print lines, those that are too long for the terminal on several."""
        self.lines(part for line in lines for part in broken(line, self.width))

    def texts(self, texts: Iterable[str]) -> None:
        """Print texts, each on its own line."""
        batch = list(texts)
        if batch:
            sys.stdout.write("\n".join(batch) + "\n")

    def advise(self, line: Line) -> None:
        """Print a hint to stderr if stdout is a terminal."""
        if self.terminal:
            sys.stdout.flush()
            text = self.text(line) if sys.stderr.isatty() else self.letters(plain(line))
            sys.stderr.write(f"{text}\n")


def say(text: str) -> None:
    """Write a message for a person to stderr."""
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")


def _is_terminal() -> bool:
    try:
        return sys.stdout.isatty()
    except (AttributeError, ValueError):  # there is no standard output, or it is closed
        return False


def _width(*, terminal: bool) -> int | None:
    """Return the width that `COLUMNS` has, else that of the terminal."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdecimal() and int(columns[:6]) > 0:
        return int(columns[:6])
    if not terminal:
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def takes_our_letters() -> bool:
    """Return whether the encoding of standard output has the characters that our views use."""
    try:
        "→…×│╌►●✓".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True

"""Lines of a view as the model of a list: they are taken from the view when somebody scrolls to them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from ..views.text.escape import safe_text
from ..views.text.line import Line, plain

FIRST_LINES: Final = 500


class TakenLines:
    """Lines of which some are taken; `grow` takes more when the last are looked at."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._rest = iter(lines)
        self._lines = list(islice(self._rest, FIRST_LINES))
        self.hits: list[int] = []

    def __len__(self) -> int:
        return len(self._lines)

    def grow(self, at: int) -> bool:
        """Take more lines if `at` is among the last ones. Returns whether there were any."""
        before = len(self._lines)
        if at + FIRST_LINES // 2 >= before:
            self._lines += islice(self._rest, FIRST_LINES)
        return len(self._lines) > before

    def line(self, at: int, width: int) -> Line:
        """Return a line."""
        return self._lines[at]

    def mark(self, at: int) -> str:
        """Mark what was found."""
        return "●" if at in self.hits else ""

    def search(self, text: str) -> int:
        """Find the lines with a text, in upper or lower case. Returns their number."""
        self._lines += self._rest
        wanted = safe_text(text).lower()
        self.hits = [at for at, line in enumerate(self._lines) if wanted and wanted in plain(line).lower()]
        return len(self.hits)

    def reveal(self, hit: int) -> int:
        """Return the position of a hit."""
        return self.hits[hit]

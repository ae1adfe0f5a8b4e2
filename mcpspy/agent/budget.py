"""Texts cut to a budget of tokens: what fits, and the cursor of the next page."""

from collections.abc import Iterator, Sequence
from typing import Final

from ..errors import AgentToolError
from ..transcript.stats.tokens import estimated_tokens

DEFAULT_TOKENS: Final = 2_000
LEAST_TOKENS: Final = 200
MOST_TOKENS: Final = 50_000

MAX_QUOTED: Final = 200
"""So many letters of an argument are repeated."""

MAX_LINE_LETTERS: Final = 4_000
"""A longer line is broken, so that a page can end within it."""


class Page:
    """A page of numbered items. Add items while they fit: the first always does, so every page makes progress."""

    def __init__(self, max_tokens: int) -> None:
        self._left = max_tokens
        self.texts: list[str] = []

    def add(self, text: str) -> bool:
        """Add the text of an item. Returns False, and leaves it out, if it does not fit."""
        cost = tokens(text)
        if self.texts and cost > self._left:
            return False
        self._left -= cost
        self.texts.append(text)
        return True


def tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return estimated_tokens(text.encode("utf-8", "surrogatepass")) + 1


def page_of(lines: Sequence[str], first: int, max_tokens: int) -> tuple[list[str], int | None]:
    """Return the lines from `first` on that fit, and the number of the next line; None if no line is left."""
    page = Page(max_tokens)
    for line in lines[first:]:
        if not page.add(line):
            return page.texts, first + len(page.texts)
    return page.texts, None


def short_lines(text: str) -> Iterator[str]:
    """Break a text into lines of a bounded length. No character is lost: a broken line goes on in the next."""
    for line in text.split("\n"):
        for start in range(0, max(len(line), 1), MAX_LINE_LETTERS):
            yield line[start : start + MAX_LINE_LETTERS]


def cursor_number(cursor: str) -> int:
    """Read a cursor. Raises: AgentToolError: if it is none of ours."""
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 12):
        raise AgentToolError("This is no cursor", "Pass the next_cursor of the previous page.", cursor[:MAX_QUOTED])
    return int(cursor)

"""Text measured in terminal cells: cut, padded, chopped. CJK and emoji take two cells, combining marks none.

Takes text that has been made safe: what a terminal obeys has no width. Refuses to know about lines and colours.
"""

from rich.cells import cell_len, chop_cells, set_cell_size

ELLIPSIS = "…"

MIN_CHOP_CELLS = 2
"""A wide character must fit on a line."""

_LETTERS_PER_CELL = 8
"""So many characters of a text are looked at for each cell it may take. The rest cannot show, unless marks pile up."""


def cells(text: str) -> int:
    """How many cells `text` takes."""
    return len(text) if text.isascii() else cell_len(text)


def cut(text: str, limit: int) -> str:
    """`text` in at most `limit` cells, its end replaced by `…` where it does not fit."""
    if limit <= 0:
        return ""
    looked_at = text[: limit * _LETTERS_PER_CELL]
    if len(looked_at) == len(text) and cells(text) <= limit:
        return text
    return set_cell_size(looked_at, limit - 1).rstrip() + ELLIPSIS


def padded(text: str, size: int) -> str:
    """`text` with blanks behind it, `size` cells in all; longer text stays as it is."""
    return text + " " * (size - cells(text))


def padded_left(text: str, size: int) -> str:
    """`text` with blanks before it, `size` cells in all; longer text stays as it is."""
    return " " * (size - cells(text)) + text


def chopped(text: str, limit: int) -> list[str]:
    """`text` in pieces of at most `limit` cells each (at least two); joined, they are the text. Never empty."""
    limit = max(limit, MIN_CHOP_CELLS)
    if text.isascii():
        return [text[at : at + limit] for at in range(0, len(text), limit)] or [""]
    pieces = chop_cells(text, limit)
    held = sum(map(len, pieces))
    if held < len(text):  # chop_cells forgets a last piece without width
        pieces.append(text[held:])
    return pieces or [""]


def wrapped(text: str, limit: int, lines: int) -> list[str]:
    """`text` broken at blanks into at most `lines` lines of `limit` cells; the last one is cut where more would follow."""
    found: list[str] = []
    rest = text
    while rest and len(found) < lines - 1 and cells(rest) > limit:
        head = chopped(rest[: limit * _LETTERS_PER_CELL], limit)[0]
        blank = head.rfind(" ")
        if blank > 0 and rest[len(head) : len(head) + 1] != " ":
            head = head[:blank]
        found.append(head.rstrip())
        rest = rest[len(head) :].lstrip()
    if rest or not found:
        found.append(cut(rest, limit))
    return found

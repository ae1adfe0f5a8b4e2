"""Text measured in terminal cells: cut, padded, chopped, wrapped. CJK and emoji take two cells, combining marks none.

Takes text that has been made safe, because control characters have no width. Does not know lines and colours.
"""

from ...lazy_pattern import lazy_pattern

ELLIPSIS = "…"

MIN_CHOP_CELLS = 2
"""A wide character must fit on a line."""

_LETTERS_PER_CELL = 8
"""The number of characters looked at for each cell that a text may take. The rest is not visible, unless combining marks pile up."""


_narrow = lazy_pattern(r"[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u2010-\u2027\u2190-\u2193\u2264\u2265\u2691\u2713]*+")
"""Characters of one cell each: Latin, Greek and Cyrillic, quotation marks, the ellipsis, arrows, the signs of a summary.

A text of them needs no table. rich takes 10 µs for 100 letters with an ellipsis among them, this 0.4 (CPython 3.11).
"""


def are_narrow(text: str) -> bool:
    """Return whether each character of `text` is visible and takes one cell. Not all such texts are recognized."""
    return _narrow.fullmatch(text) is not None


def cells(text: str) -> int:
    """Return the number of cells that `text` takes."""
    if text.isascii() or _narrow.fullmatch(text):
        return len(text)
    from rich.cells import cell_len  # tables of all characters, which takes 3 ms: most texts need none

    return cell_len(text)


def cut(text: str, limit: int) -> str:
    """Cut `text` to at most `limit` cells. Where it does not fit, its end becomes `…`."""
    if limit <= 0:
        return ""
    beginning = text[: limit * _LETTERS_PER_CELL]
    if len(beginning) == len(text) and cells(text) <= limit:
        return text
    if beginning.isascii() or _narrow.fullmatch(beginning):
        return beginning[: limit - 1].rstrip() + ELLIPSIS
    from rich.cells import set_cell_size

    return set_cell_size(beginning, limit - 1).rstrip() + ELLIPSIS


def padded(text: str, size: int) -> str:
    """Pad `text` on the right to `size` cells; longer text stays as it is."""
    return text + " " * (size - cells(text))


def padded_left(text: str, size: int) -> str:
    """Pad `text` on the left to `size` cells; longer text stays as it is."""
    return " " * (size - cells(text)) + text


def chopped(text: str, limit: int) -> list[str]:
    """Divide `text` into pieces of at most `limit` cells each (at least two). Joined, they are the text. Never empty."""
    limit = max(limit, MIN_CHOP_CELLS)
    if text.isascii():
        return [text[at : at + limit] for at in range(0, len(text), limit)] or [""]
    from rich.cells import chop_cells

    pieces = chop_cells(text, limit)
    length = sum(map(len, pieces))
    if length < len(text):  # chop_cells forgets a last piece without width
        pieces.append(text[length:])
    return pieces or [""]


def wrapped(text: str, limit: int | None, lines: int) -> list[str]:
    """Break `text` at spaces into at most `lines` lines of `limit` cells (at least one; None: all of it on one line).

    The last line is cut if more would follow.
    """
    if limit is None:
        return [text]
    limit = max(limit, 1)
    broken: list[str] = []
    rest = text
    while rest and len(broken) < lines - 1 and cells(rest) > limit:
        head = chopped(rest[: limit * _LETTERS_PER_CELL], limit)[0]
        space = head.rfind(" ")
        if space > 0 and rest[len(head) : len(head) + 1] != " ":
            head = head[:space]
        broken.append(head.rstrip())
        rest = rest[len(head) :].lstrip()
    if rest or not broken:
        broken.append(cut(rest, limit))
    return broken

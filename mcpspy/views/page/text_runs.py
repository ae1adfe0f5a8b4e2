"""A text as its difference from an earlier text: runs of the earlier one, and the new text between them.

Each prompt of a conversation contains the one before it, so a page with whole prompts would grow with the square of the turns.
The pieces, joined, are the text again, whatever it is.
"""

from collections.abc import Iterable, Iterator
from itertools import accumulate, groupby, pairwise
from typing import Final, TypeGuard

from ...lazy_pattern import lazy_pattern

MIN_RUN_LETTERS: Final = 40
"""A shorter run is stored as new text, because its bounds take as much room."""

MAX_WORD_LETTERS: Final = 100
"""A run keeps this distance from new text, or the distance to the next space: the page searches new text only."""

_parts: Final = lazy_pattern(r'(?=\{\s*")')
"""Positions where a JSON object may begin, as each turn does. Clients leave out turns in the middle, and mark others."""

Piece = str | tuple[int, int]
"""New text, or start and end in the earlier text, in UTF-16 units as scripts count them."""


def text_runs(text: str, before: str) -> list[Piece]:
    """Split `text` into pieces relative to `before`."""
    head = alike(text, before)
    tail = alike(text[head:], before[head:], backward=True)
    pieces: list[Piece] = [(0, head)]
    pieces += _between(text[head : len(text) - tail], before[head : len(before) - tail], head)
    pieces.append((len(before) - tail, len(before)))
    return _counted_in_utf16(list(_merged(pieces, before)), before)


def alike(text: str, other: str, *, backward: bool = False) -> int:
    """Count the equal characters at the beginning, or at the end. Halves are compared, so the work is linear."""
    same, differ = 0, min(len(text), len(other)) + 1
    while differ - same > 1:
        middle = (same + differ) // 2
        if backward:
            is_same = text[len(text) - middle : len(text) - same] == other[len(other) - middle : len(other) - same]
        else:
            is_same = text[same:middle] == other[same:middle]
        same, differ = (middle, differ) if is_same else (same, middle)
    return same


def _between(text: str, before: str, shift: int) -> Iterator[Piece]:
    """Split texts that share neither beginning nor end; `shift` is the position of `before` in the earlier text."""
    if not before or not text:
        yield text
        return
    parts = _parts.split(before)
    known = dict(zip(parts, accumulate(map(len, parts), initial=shift), strict=False))
    for part in _parts.split(text):
        at = known.get(part)
        yield part if at is None else (at, at + len(part))


def _merged(pieces: Iterable[Piece], before: str) -> Iterator[Piece]:
    """Join runs that follow one another, and new texts; a run that is too short becomes new text."""
    runs = (part for piece in _long_runs(pieces) for part in _at_words(piece, before))
    shown = (before[slice(*run)] if _is_short(run) else run for run in runs)
    for is_new, some in groupby(shown, lambda piece: isinstance(piece, str)):
        if not is_new:
            yield from some
        elif new := "".join(map(str, some)):
            yield new


def _long_runs(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Join adjacent pieces, and drop empty ones."""
    run: tuple[int, int] | None = None
    for piece in pieces:
        if run is not None and not isinstance(piece, str) and piece[0] == run[1]:
            run = (run[0], piece[1])
            continue
        if run is not None:
            yield run
        run = None if isinstance(piece, str) else piece
        if isinstance(piece, str) and piece:
            yield piece
    if run is not None:
        yield run


def _at_words(piece: Piece, before: str) -> Iterator[Piece]:
    """Shorten a run to word boundaries; the cut ends become new text."""
    if isinstance(piece, str) or _is_short(piece):
        yield piece
        return
    begin, end = piece
    inner = begin if begin == 0 else before.find(" ", begin, begin + MAX_WORD_LETTERS)
    inner = min(end, begin + MAX_WORD_LETTERS) if inner < 0 else inner
    outer = end if end == len(before) else before.rfind(" ", max(inner, end - MAX_WORD_LETTERS), end)
    outer = max(inner, end - MAX_WORD_LETTERS) if outer < 0 else outer
    yield before[begin:inner]
    yield (inner, outer)
    yield before[outer:end]


def _is_short(piece: Piece) -> TypeGuard[tuple[int, int]]:
    return not isinstance(piece, str) and piece[1] - piece[0] < MIN_RUN_LETTERS


def _counted_in_utf16(pieces: list[Piece], before: str) -> list[Piece]:
    """Convert the bounds of runs from characters to UTF-16 units."""
    if _units(before) == len(before):
        return pieces
    bounds = sorted({at for piece in pieces if not isinstance(piece, str) for at in piece})
    lengths = (_units(before[begin:end]) for begin, end in pairwise([0, *bounds]))
    known = dict(zip(bounds, accumulate(lengths), strict=True))
    return [piece if isinstance(piece, str) else (known[piece[0]], known[piece[1]]) for piece in pieces]


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2

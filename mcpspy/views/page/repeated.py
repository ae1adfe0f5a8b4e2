"""A text told by what it repeats of one before it: runs of that one, and what is new between them.

Each prompt of a conversation holds the one before it, so that a page with all of them whole grows with the square of the turns.
Whatever the texts are, the pieces put together are the text again. Refuses to know what it means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate, groupby, pairwise
from typing import Final, TypeGuard

MIN_RUN_LETTERS: Final = 40
"""A shorter run is told as new, for its bounds take as much."""

MAX_WORD_LETTERS: Final = 100
"""A run keeps off so far from what is new, or as far as the next space: the page looks for words in what is new alone."""

_parts: Final = re.compile(r'(?=\{\s*")').split
"""At whatever may begin an object of JSON, as each turn is one: clients leave out turns in the middle, and mark others."""

Piece = str | tuple[int, int]
"""What is new, or from where to where in the text before: in the units of UTF-16, as scripts count letters."""


def repeated(text: str, before: str) -> list[Piece]:
    """The pieces of `text`, beside `before`."""
    head = _alike(text, before)
    tail = _alike(text[head:], before[head:], backward=True)
    pieces: list[Piece] = [(0, head)]
    pieces += _between(text[head : len(text) - tail], before[head : len(before) - tail], head)
    pieces.append((len(before) - tail, len(before)))
    return _counted_in_utf16(list(_merged(pieces, before)), before)


def _alike(one: str, other: str, *, backward: bool = False) -> int:
    """So many letters are the same at the beginning, or at the end. The halves that are compared add up to the whole."""
    same, differ = 0, min(len(one), len(other)) + 1
    while differ - same > 1:
        middle = (same + differ) // 2
        if backward:
            is_same = one[len(one) - middle : len(one) - same] == other[len(other) - middle : len(other) - same]
        else:
            is_same = one[same:middle] == other[same:middle]
        same, differ = (middle, differ) if is_same else (same, middle)
    return same


def _between(text: str, before: str, shift: int) -> Iterator[Piece]:
    """The pieces of what has neither beginning nor end in common; `before` stands `shift` letters from where it begins."""
    if not before or not text:
        yield text
        return
    parts = _parts(before)
    known = dict(zip(parts, accumulate(map(len, parts), initial=shift), strict=False))
    for part in _parts(text):
        at = known.get(part)
        yield part if at is None else (at, at + len(part))


def _merged(pieces: Iterable[Piece], before: str) -> Iterator[Piece]:
    """Runs that follow one another as one, and so what is new; a run that is too short is new."""
    runs = (part for one in _long_runs(pieces) for part in _at_words(one, before))
    told = (before[slice(*one)] if _is_short(one) else one for one in runs)
    for is_new, some in groupby(told, lambda one: isinstance(one, str)):
        if not is_new:
            yield from some
        elif new := "".join(map(str, some)):
            yield new


def _long_runs(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """As long as they can be; what is empty is left out."""
    run: tuple[int, int] | None = None
    for one in pieces:
        if run is not None and not isinstance(one, str) and one[0] == run[1]:
            run = (run[0], one[1])
            continue
        if run is not None:
            yield run
        run = None if isinstance(one, str) else one
        if isinstance(one, str) and one:
            yield one
    if run is not None:
        yield run


def _at_words(one: Piece, before: str) -> Iterator[Piece]:
    """A run, and as new what of it may belong to a word that goes on beyond it."""
    if isinstance(one, str) or _is_short(one):
        yield one
        return
    begin, end = one
    inner = begin if begin == 0 else before.find(" ", begin, begin + MAX_WORD_LETTERS)
    inner = min(end, begin + MAX_WORD_LETTERS) if inner < 0 else inner
    outer = end if end == len(before) else before.rfind(" ", max(inner, end - MAX_WORD_LETTERS), end)
    outer = max(inner, end - MAX_WORD_LETTERS) if outer < 0 else outer
    yield before[begin:inner]
    yield (inner, outer)
    yield before[outer:end]


def _is_short(one: Piece) -> TypeGuard[tuple[int, int]]:
    return not isinstance(one, str) and one[1] - one[0] < MIN_RUN_LETTERS


def _counted_in_utf16(pieces: list[Piece], before: str) -> list[Piece]:
    """The bounds of runs, which are in letters here, where a letter may take two units there."""
    if _units(before) == len(before):
        return pieces
    bounds = sorted({at for one in pieces if not isinstance(one, str) for at in one})
    lengths = (_units(before[begin:end]) for begin, end in pairwise([0, *bounds]))
    known = dict(zip(bounds, accumulate(lengths), strict=True))
    return [one if isinstance(one, str) else (known[one[0]], known[one[1]]) for one in pieces]


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2

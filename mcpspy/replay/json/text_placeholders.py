"""Where in a live text the value stands that stood in a recorded one, as in `Opened 8f3a9c01` and `Opened 77de0123`.

Goes by the line that it stands in, whose other words are the same but for those with digits. Refuses to choose: what fits in two
places is in none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

MAX_LINE_LETTERS: Final = 4096
"""In longer lines nothing is looked for."""

_WORD: Final = "[0-9A-Za-z_-]+"
_words = re.compile(rf"({_WORD})").split
_is_word = re.compile(_WORD).fullmatch
_has_digit = re.compile("[0-9]").search
_has_letter = re.compile(r"[^\W\d_]").search


def hole(recorded: str, live: str, start: int, end: int) -> str | None:
    """What stands in `live` where `recorded` has its letters from `start` to `end`; None where that cannot be told."""
    value = recorded[start:end]
    begin = recorded.rfind("\n", 0, start) + 1
    over = recorded.find("\n", end)
    before, after = recorded[begin:start], recorded[end : len(recorded) if over < 0 else over].rstrip("\r")
    if "\n" in value or len(before) + len(value) + len(after) > MAX_LINE_LETTERS:
        return None
    group = f"({_WORD})" if _is_word(value) else r"(\S+?)"
    whole = re.compile(_before(before) + group + _after(after)).fullmatch
    nth = sum(1 for _ in _found(whole, recorded[:begin].split("\n")))
    count = sum(1 for _ in _found(whole, recorded.split("\n")))
    fitting = list(_found(whole, live.split("\n")))
    if fitting:
        return fitting[nth] if len(fitting) == count else None
    return _by_its_beginning(before, _WORD if _is_word(value) else r"\S+", recorded, live)


def _by_its_beginning(before: str, value: str, recorded: str, live: str) -> str | None:
    """The value behind the same beginning of a line, if no other line has that, then or now."""
    if not _has_letter(before):
        return None
    begins = re.compile(f"{_before(before)}({value})").match
    if len(list(_found(begins, recorded.split("\n")))) != 1:
        return None
    fitting = list(_found(begins, live.split("\n")))
    return fitting[0] if len(fitting) == 1 else None


def _found(fits: Callable[[str], re.Match[str] | None], lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if len(line) <= MAX_LINE_LETTERS and (found := fits(line.rstrip("\r"))):
            yield found[1]


def _before(text: str) -> str:
    """A pattern for what stands before a value: words with digits are any words, but for a piece of the word that the value is in."""
    pieces = _words(text)
    return _pattern(pieces, kept=len(pieces) - 2 if pieces[-1] == "" else -1)


def _after(text: str) -> str:
    """The same for what stands behind it."""
    pieces = _words(text)
    return _pattern(pieces, kept=1 if pieces[0] == "" else -1)


def _pattern(pieces: list[str], kept: int) -> str:
    """Pieces are words at odd places, and what is between them at even ones."""
    return "".join(_WORD if at % 2 and at != kept and _has_digit(one) else re.escape(one) for at, one in enumerate(pieces))

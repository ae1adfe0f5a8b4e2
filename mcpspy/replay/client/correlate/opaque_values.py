"""What in a text looks as if a program had made it up: ids, hashes, keys, pseudonyms. Names, dates, versions and numbers do not.

Only such a value is taken for the same where it turns up again: "1" and "true" turn up everywhere. Refuses to be sure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

MIN_LETTERS: Final = 8
"""Shorter than the eight digits that a UUID begins with, values repeat by chance."""

MIN_DIGITS: Final = 12
"""Fewer digits are a number, a date or the seconds since 1970."""

MIN_CHANGES: Final = 3
"""So often letters and digits follow on each other in what is made of both at random; in `report2026` once."""

_words = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z_-]*[0-9A-Za-z])?=*").finditer
_parts = re.compile(r"[0-9A-Za-z]+").finditer
_pseudonym = re.compile(r"redacted-[0-9a-f]{12}").fullmatch
_uuid = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch
_hex = re.compile(r"(?=.*[0-9])(?=.*[A-Fa-f])[0-9A-Fa-f]+").fullmatch
_changes = re.compile(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])").findall


class Span(NamedTuple):
    """A stretch of a text, from its first character to the one behind its last."""

    start: int
    end: int
    text: str


def is_made_up(word: str) -> bool:
    """Whether one word, as `words` cuts them, looks made up."""
    if len(word) < MIN_LETTERS or not any(map(str.isdigit, word)):
        return False
    if word.isdigit():
        return len(word) >= MIN_DIGITS
    if _pseudonym(word) or _uuid(word):
        return True
    return any(_is_random(part[0]) for part in _parts(word))


def words(text: str) -> Iterator[Span]:
    """The made-up words of a text in order, each followed by the parts of it that are made up too: `8f3a9c01` of `run-8f3a9c01`."""
    for found in _words(text):
        word = found[0]
        if not is_made_up(word):
            continue
        yield Span(found.start(), found.end(), word)
        for part in _parts(word):
            if part[0] != word and _is_random(part[0]):
                at = found.start() + part.start()
                yield Span(at, at + len(part[0]), part[0])


def _is_random(part: str) -> bool:
    """Whether letters and digits without a sign between them were thrown together."""
    if len(part) < MIN_LETTERS:
        return False
    if part.isdigit():
        return len(part) >= MIN_DIGITS
    return bool(_hex(part)) or len(_changes(part)) >= MIN_CHANGES

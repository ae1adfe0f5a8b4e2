"""Values that are known to be secret: collected first, then sought in every text, as edits that replace them.

A secret that was recognized in one place is replaced in every other. Work is linear in the text, however many values there are.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ..lazy_pattern import lazy_pattern
from ..wire.edits import Edit
from .encodings import base64_of

SHORTEST: Final = 6
"""Shorter values are replaced only where a name or a path makes them secret: elsewhere they would be ordinary words."""

SHORTEST_INSIDE: Final = 12
"""Shorter ones are not sought within longer words."""

ENOUGH: Final = 20
"""A value of this length needs no digit to differ from a word."""

MAX_VALUES: Final = 50_000
MAX_BYTES: Final = 1 << 26
"""So many values are sought, and so many bytes of them; other values are replaced only where they were recognized."""

_BEGINNING: Final = 4
_WORD: Final = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
_MAX_BASE64: Final = 12
"""A longer value in base64 is found in the text that the base64 spells."""


def is_telling(value: bytes) -> bool:
    """Return whether a value differs from ordinary words wherever it is."""
    if len(value) < SHORTEST:
        return False
    if len(value) >= ENOUGH:
        return True
    return (
        any(letter in b"0123456789" for letter in value)
        or not value.replace(b"-", b"").replace(b"_", b"").replace(b"/", b"").isalpha()
    )


_is_number = lazy_pattern(rb"-?[0-9][0-9.eE+-]*")


class KnownValues:
    """The values: `add` them, then `close`, then call `edits`."""

    def __init__(self, pseudonym: Callable[[bytes], bytes]) -> None:
        self._make_pseudonym = pseudonym
        self._values: dict[bytes, str] = {}
        self._bytes = 0
        self._words: set[bytes] = set()
        self._spellings: list[bytes] = []
        """All in order, so that those with which a text begins are found in few steps: tokens of a service begin alike."""
        self._found_as: dict[bytes, tuple[bytes, str, bytes]] = {}
        """For each its pseudonym, its kind, and the longest other one that it begins with, if any."""
        self._search: Callable[[bytes, int], re.Match[bytes] | None] | None = None
        self._longest = 0
        self._longest_with: dict[bytes, int] = {}
        """The length of the longest one with each beginning."""
        self.has_numbers = False
        """True if one of them could be a JSON number."""
        self.left_out = 0
        """The number of values past the limits."""

    def __contains__(self, value: bytes) -> bool:
        return value in self._values

    def __bool__(self) -> bool:
        return self._search is not None

    @property
    def count(self) -> int:
        """The number of values, also of those past the limits."""
        return len(self._values) + self.left_out

    def add(self, value: bytes, kind: str = "value", *, telling: bool = False) -> None:
        """Add a value that is secret; `telling` says that it is sought however ordinary it looks."""
        if value in self._values or not (telling or is_telling(value)):
            return
        if len(self._values) >= MAX_VALUES or self._bytes + len(value) > MAX_BYTES:
            self.left_out += 1
            return
        self._values[value] = kind
        self._bytes += len(value)

    def except_for(self, words: Iterable[bytes]) -> None:
        """Exclude words of the protocol, which are never secret by themselves."""
        self._words.update(words)

    def close(self) -> None:
        """Prepare the search: no more values will come."""
        for word in self._words:
            self._values.pop(word, None)
        self.has_numbers = any(_is_number.fullmatch(value) for value in self._values)
        replacements: dict[bytes, tuple[bytes, str]] = {}
        for value, kind in self._values.items():
            for spelling, new in self._spelled(value):
                replacements.setdefault(spelling, (new, kind))
        self._spellings = sorted(replacements)
        shorter = b""
        for spelling in self._spellings:
            while shorter and not spelling.startswith(shorter):
                shorter = self._found_as[shorter][2]
            self._found_as[spelling] = (*replacements[spelling], shorter)
            shorter = spelling
            beginning = spelling[:_BEGINNING]
            self._longest_with[beginning] = max(self._longest_with.get(beginning, 0), len(spelling))
        self._longest = max(self._longest_with.values(), default=0)
        self._search = re.compile(_tree(sorted(self._longest_with)), re.DOTALL).search if self._spellings else None

    def edits(self, data: bytes) -> Iterator[Edit]:
        """Yield an edit for each value in a text; of values that begin at one offset the longest."""
        if self._search is None:
            return
        at = 0
        while match := self._search(data, at):
            at = match.start()
            for spelling in self._begun_with(data[at : at + self._longest_with[match[0]]]):
                if _stands_alone(data, at, at + len(spelling)):
                    new, kind, _ = self._found_as[spelling]
                    yield Edit(at, at + len(spelling), new, kind)
                    at += len(spelling) - 1
                    break
            at += 1

    def _begun_with(self, text: bytes) -> Iterator[bytes]:
        """Yield the spellings that a text begins with, the longest first. The last one in order up to `text` begins with them all."""
        place = bisect_right(self._spellings, text)
        spelling = self._spellings[place - 1] if place else b""
        while spelling:
            if text.startswith(spelling):
                yield spelling
            spelling = self._found_as[spelling][2]

    def begun_at(self, data: bytes) -> int | None:
        """Return the offset of a value whose first four bytes or more end a text that was cut off; None if there is none."""
        if self._search is None:
            return None
        at = max(len(data) - self._longest, 0)
        while match := self._search(data, at):
            at = match.start()
            place = bisect_left(self._spellings, data[at:])
            spelling = self._spellings[place] if place < len(self._spellings) else b""
            if spelling.startswith(data[at:]) and match[0].startswith(spelling[:_BEGINNING]):
                return at
            at += 1
        return None

    def _spelled(self, value: bytes) -> Iterator[tuple[bytes, bytes]]:
        new = self._make_pseudonym(value)
        yield value, new
        if b" " in value:  # in a query and a form
            yield value.replace(b" ", b"+"), new
        if len(value) <= _MAX_BASE64:
            again = next(iter(sorted(base64_of(new))))
            yield from ((spelling, again) for spelling in sorted(base64_of(value)))


def _stands_alone(data: bytes, start: int, end: int) -> bool:
    """Return whether a short value is no part of a longer word."""
    if end - start >= SHORTEST_INSIDE:
        return True
    before = start and data[start] in _WORD and data[start - 1] in _WORD
    return not before and not (end < len(data) and data[end - 1] in _WORD and data[end] in _WORD)


def _tree(beginnings: list[bytes]) -> bytes:
    """Make a pattern that matches any of these byte by byte: a list of alternatives would be tried one after the other."""
    if beginnings == [b""]:
        return b""
    branches: dict[int, list[bytes]] = {}
    for beginning in beginnings:
        if beginning:
            branches.setdefault(beginning[0], []).append(beginning[1:])
    inner = b"|".join(re.escape(bytes((first,))) + _tree(rest) for first, rest in branches.items())
    ends = b"|" if b"" in beginnings else b""
    return b"(?:" + inner + ends + b")"

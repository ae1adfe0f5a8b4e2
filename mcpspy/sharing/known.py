"""Values that are known to be secret: collected first, then sought in every text, as edits that replace them.

A secret that was recognized in one place is replaced in every other. Work is linear in the text, however many values there are.
"""

import re
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
        self._spellings: dict[bytes, list[tuple[bytes, bytes, str]]] = {}
        self._search: Callable[[bytes, int], re.Match[bytes] | None] | None = None
        self._longest = 0
        self.has_numbers = False
        """True if one of them could be a JSON number."""
        self.left_out = 0
        """The number of values past the limits."""

    def __contains__(self, value: bytes) -> bool:
        return value in self._values

    def __bool__(self) -> bool:
        return self._search is not None

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
        spellings: dict[bytes, list[tuple[bytes, bytes, str]]] = {}
        for value, kind in self._values.items():
            for spelling, new in self._spelled(value):
                spellings.setdefault(spelling[:_BEGINNING], []).append((spelling, new, kind))
        for group in spellings.values():
            group.sort(key=lambda spelling: -len(spelling[0]))
        self._spellings = spellings
        self._longest = max((len(group[0][0]) for group in spellings.values()), default=0)
        self._search = re.compile(_tree(sorted(spellings)), re.DOTALL).search if spellings else None

    def edits(self, data: bytes) -> Iterator[Edit]:
        """Yield an edit for each value in a text; of values that begin at one offset the longest."""
        if self._search is None:
            return
        at = 0
        while match := self._search(data, at):
            at = match.start()
            for spelling, new, kind in self._beginning_with(match[0]):
                if data.startswith(spelling, at) and _stands_alone(data, at, at + len(spelling)):
                    yield Edit(at, at + len(spelling), new, kind)
                    at += len(spelling) - 1
                    break
            at += 1

    def _beginning_with(self, beginning: bytes) -> Iterator[tuple[bytes, bytes, str]]:
        for length in range(len(beginning), 0, -1):  # a shorter one is a value that has no more letters
            yield from self._spellings.get(beginning[:length], ())

    def begun_at(self, data: bytes) -> int | None:
        """Return the offset of a value whose first four bytes or more end a text that was cut off; None if there is none."""
        if self._search is None:
            return None
        at = max(len(data) - self._longest, 0)
        while match := self._search(data, at):
            at = match.start()
            if any(spelling.startswith(data[at:]) for spelling, _, _ in self._beginning_with(match[0])):
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

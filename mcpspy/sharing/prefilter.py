"""A fast test that most texts pass: nothing in them is secret, so they need not be taken apart.

In a text that passes, a `SecretFinder` finds nothing; in a text that does not pass, it may find nothing too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from ..wire.json_spans import is_json
from .encodings import JSON, runs
from .patterns import HINTS, token_spans

if TYPE_CHECKING:
    from .known import KnownValues
    from .names import SecretNames

MAX_REMEMBERED: Final = 50_000
"""So many names, words and texts are remembered; after that, new ones are looked at each time."""

_SIGNS: Final = (b"=", b"@", b"redacted-")
"""Texts with parameters, forms, mail addresses or pseudonyms have one of these."""

_VALUES: Final = {b"value", b"values"}
"""Members whose value is secret if the member beside them says so."""

_hint = re.compile(b"|".join((*HINTS, b"basic"))).search
_percent = re.compile(rb"%[0-9a-fA-F]{2}").search
_names = re.compile(rb'"(?=([^"]*)"[ \t\r\n]*+:)').findall
"""The bytes between one quote and the next, before a colon: a name, wherever strings begin."""

_without_names = re.compile(rb'"[\w.-]*"[ \t\r\n]*+:').sub
_long_words = re.compile(rb"[A-Za-z0-9+/_.-]{13,}+").findall
"""Tokens that are known by their looks are no shorter, and neither is anything that is taken for base64."""

_ESCAPED: Final = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)++)"([ \t\r\n]*+:)?')
"""A string that has escapes. In JSON no backslash is outside of strings, so no match begins at the end of another string."""
_escaped, _escaped_out = _ESCAPED.findall, _ESCAPED.sub

_MAX_LAYERS: Final = 4

_LONGEST: Final = 256
"""Longer words are not remembered: they seldom come again."""


class Prefilter:
    """A test of texts: true if a `SecretFinder` that goes by names and looks alone would find nothing."""

    __slots__ = ("_is_personal", "_known", "_harmless_names", "_harmless_words", "_texts")

    def __init__(self, names: SecretNames, known: KnownValues, *, personal: bool) -> None:
        self._is_personal = personal
        self._known = known
        self._texts: set[int] = set()
        """Hashes of texts in which nothing is secret by itself: most texts are tested twice."""
        self._harmless_names = _HarmlessWords(lambda name: names.member(name) is None and names.assigned(name) is None)
        self._harmless_words = _HarmlessWords(_is_harmless_word)

    def __call__(self, data: bytes) -> bool:
        code = hash(data)
        if code in self._texts:
            return not self._known or self._holds(_spelled_out(data), self._knows_none)
        if not self._holds(_spelled_out(data), self._has_none):
            return False
        if len(self._texts) < MAX_REMEMBERED:
            self._texts.add(code)
        return True

    def _holds(self, texts: list[bytes] | None, is_so: Callable[[bytes], bool]) -> bool:
        if texts is None:
            return False
        for text in texts:  # noqa: SIM110 - called for each text there is, and nearly always with one
            if not is_so(text):
                return False
        return True

    def _knows_none(self, text: bytes) -> bool:
        return next(self._known.edits(text), None) is None

    def _has_none(self, text: bytes) -> bool:
        """Tell whether nothing in a text without escapes is secret by its name, by its looks, or as a known value."""
        for sign in _SIGNS:
            if sign in text:
                return False
        small = text.lower()
        if self._is_personal and (b"/home/" in small or b"/users/" in small):
            return False
        if _hint(small) is not None and _hint(_without_names(b"", small)) is not None:
            return False
        names = _names(text)
        return (
            not _VALUES.intersection(names)
            and self._harmless_names.holds(names)
            and self._harmless_words.holds(_long_words(text))
            and (b"%" not in text or _percent(text) is None)
            and self._knows_none(text)
        )


def _spelled_out(data: bytes, depth: int = 0) -> list[bytes] | None:
    """Return `data` without its strings that have escapes, and the texts that these mean.

    None if an escape is not in a value of JSON, or if texts are nested too deep in texts.
    """
    if b"\\" not in data:
        return [data]
    if depth > _MAX_LAYERS or not is_json(data):
        return None
    texts = [_escaped_out(b'""', data)]
    for string, colon in _escaped(data):
        inner = None if colon else _spelled_out(JSON.read(string), depth + 1)
        if inner is None:
            return None
        texts += inner
    return texts


class _HarmlessWords:
    """Names or words that are harmless, which `is_harmless` tells of a new one; they are remembered."""

    __slots__ = ("_is_harmless", "_known")

    def __init__(self, is_harmless: Callable[[bytes], bool]) -> None:
        self._is_harmless = is_harmless
        self._known: set[bytes] = set()

    def holds(self, words: Iterable[bytes]) -> bool:
        """Tell whether all of these are harmless."""
        new = set(words) - self._known
        for word in new:
            if not self._is_harmless(word):
                return False
            if len(word) <= _LONGEST and len(self._known) < MAX_REMEMBERED:
                self._known.add(word)
        return True


def _is_harmless_word(word: bytes) -> bool:
    return next(token_spans(word), None) is None and next(iter(runs(word)), None) is None

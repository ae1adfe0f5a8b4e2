"""Tells at a glance of most texts that nothing in them is secret, so that they need not be taken apart.

Where it says so, a `SecretFinder` finds nothing; where it does not, there may be nothing all the same. Refuses to say what there
is.
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
"""So many names, words and texts are remembered of each; what is new is looked at again and again then."""

_SIGNS: Final = (b"=", b"@", b"redacted-")
"""One of these is in what has parameters, forms, mail addresses or pseudonyms."""

_VALUES: Final = {b"value", b"values"}
"""Whose secrets the member beside them names."""

_hint = re.compile(b"|".join((*HINTS, b"basic"))).search
_percent = re.compile(rb"%[0-9a-fA-F]{2}").search
_names = re.compile(rb'"(?=([^"]*)"[ \t\r\n]*+:)').findall
"""What stands between one quote and the next, before a colon: a name, wherever strings begin."""

_without_names = re.compile(rb'"[\w.-]*"[ \t\r\n]*+:').sub
_long_words = re.compile(rb"[A-Za-z0-9+/_.-]{13,}+").findall
"""No token that is known by its looks is shorter, and nothing that is taken for base64."""

_ESCAPED: Final = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)++)"([ \t\r\n]*+:)?')
"""A string that has escapes. In what is JSON no backslash is outside of strings, so that none begins at the end of another."""
_escaped, _escaped_out = _ESCAPED.findall, _ESCAPED.sub

_MAX_LAYERS: Final = 4

_LONGEST: Final = 256
"""Longer words do not come again."""


class Prefilter:
    """Says of a text whether a `SecretFinder` that wants no more than names and looks would find nothing in it."""

    __slots__ = ("_is_personal", "_known", "_silent_names", "_silent_words", "_texts")

    def __init__(self, names: SecretNames, known: KnownValues, *, personal: bool) -> None:
        self._is_personal = personal
        self._known = known
        self._texts: set[int] = set()
        """Hashes of texts in which nothing was that is secret by itself: most are asked about twice."""
        self._silent_names = _HarmlessWords(lambda name: names.member(name) is None and names.assigned(name) is None)
        self._silent_words = _HarmlessWords(_is_silent_word)

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
        for one in texts:  # noqa: SIM110 - of each text there is, and nearly always of one
            if not is_so(one):
                return False
        return True

    def _knows_none(self, text: bytes) -> bool:
        return next(self._known.edits(text), None) is None

    def _has_none(self, text: bytes) -> bool:
        """Whether nothing is in a text without escapes that is secret by its name, by its looks, or as known."""
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
            and self._silent_names.holds(names)
            and self._silent_words.holds(_long_words(text))
            and (b"%" not in text or _percent(text) is None)
            and self._knows_none(text)
        )


def _spelled_out(data: bytes, depth: int = 0) -> list[bytes] | None:
    """The texts that `data` says, without escapes: itself but for strings that have some, and what these mean.

    None where an escape is not in the value of a member or item of JSON, or where texts are too deep within texts.
    """
    if b"\\" not in data:
        return [data]
    if depth > _MAX_LAYERS or not is_json(data):
        return None
    found = [_escaped_out(b'""', data)]
    for string, colon in _escaped(data):
        inner = None if colon else _spelled_out(JSON.read(string), depth + 1)
        if inner is None:
            return None
        found += inner
    return found


class _HarmlessWords:
    """Names or words that say nothing, by what asks `is_silent` of one, and remembered."""

    __slots__ = ("_found", "_is_silent")

    def __init__(self, is_silent: Callable[[bytes], bool]) -> None:
        self._is_silent = is_silent
        self._found: set[bytes] = set()

    def holds(self, words: Iterable[bytes]) -> bool:
        """Whether all of these say nothing."""
        new = set(words) - self._found
        for one in new:
            if not self._is_silent(one):
                return False
            if len(one) <= _LONGEST and len(self._found) < MAX_REMEMBERED:
                self._found.add(one)
        return True


def _is_silent_word(word: bytes) -> bool:
    return next(token_spans(word), None) is None and next(iter(runs(word)), None) is None

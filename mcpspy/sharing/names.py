"""Names of members, options and variables that say that their value is a secret. The values are not looked at."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from ..capture.redaction.names import (
    SCHEMES,
    is_oauth_member,
    kind_of,
    kind_of_field,
    kind_of_option,
    kind_of_parameter,
    kind_of_plural,
)
from ..lazy_pattern import lazy_pattern
from .encodings import PERCENT

_MEMBERS: Final = {"auth", "bearer", "requeststate"}
"""Names that mean a secret as a member of JSON, besides those of header fields. Only its server can read `requestState`."""

_words = lazy_pattern(rb"[^\W_]+")
_INPUTS: Final = {b"box", b"edit", b"element", b"field", b"input", b"textbox"}
"""Words after the name of a field of a form."""

_PRESSED: Final = {b"button", b"checkbox", b"forgot", b"link", b"show", b"toggle"}
"""Words that make a field something to press."""

_MAX_NAME_BYTES: Final = 128


class SecretNames:
    """Secret names, and `more` that the user gives, in any spelling of case, `_` and `-`."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._more = {_squashed(name) for name in more}
        self.member = lru_cache(10_000)(self._member)
        """Return the kind of secret that a member of this name holds; None if it holds none."""
        self.assigned = lru_cache(10_000)(self._assigned)
        """Return the same for a name before `=` or `:` in a text: of an option, a variable or a field."""
        self.parameter = lru_cache(10_000)(self._parameter)
        """Return the same for a parameter of a URL or a form."""

        self.label = lru_cache(10_000)(self._label)
        """Return the same for a text that names what is beside it: a head of a column, a field of a form, another member."""
        self.is_plural = lru_cache(10_000)(self._is_plural)
        """Return whether a list or an object of this name holds several secrets."""

    @property
    def has_more(self) -> bool:
        """True if the user gave names."""
        return bool(self._more)

    def is_wanted(self, name: bytes) -> bool:
        """Return whether the user gave this name: then values that are no strings are secrets too."""
        return bool(self._more) and _squashed(_text(name)) in self._more

    def _member(self, name: bytes) -> str | None:
        text = _text(name)
        squashed = _squashed(text)
        if squashed in self._more or squashed in _MEMBERS:
            return "key"
        return _kind_of(text) or ("token" if "-" not in text and is_oauth_member(text) else None)

    def _assigned(self, name: bytes) -> str | None:
        text = _text(name)
        if _squashed(text) in self._more:
            return "key"
        return kind_of_option(text.lstrip("-")) if text.startswith("-") or not _is_field(text) else kind_of_field(text)

    def _label(self, text: bytes) -> str | None:
        kind = self.assigned(text)
        words = _words.findall(text) if kind is None else []
        while words and words[-1].lower() in _INPUTS:
            words.pop()
        if not words or any(word.lower() in _PRESSED for word in words):
            return kind
        name = b"_".join(words)
        is_code = len(words) > 1 and is_oauth_member(_text(name))  # "One-time code"
        return "token" if is_code or name.lower() == b"concealed" else self.assigned(name)

    def _is_plural(self, name: bytes) -> bool:
        text = _text(name)
        return kind_of_plural(text) is not None or _squashed(text) in ("tokens", "credentials")

    def _parameter(self, name: bytes) -> str | None:
        text = _text(PERCENT.read(name))
        return "key" if _squashed(text) in self._more else kind_of_parameter(text)


def is_scheme(word: bytes) -> bool:
    """Return whether a word comes before a credential without being part of it: `Bearer`."""
    return word.lower().decode("latin-1") in SCHEMES


def _is_field(name: str) -> bool:
    """Return whether a name before a value is more likely that of a header field than of anything else."""
    return "-" in name and (name[:2] in ("X-", "x-") or kind_of(name) is not None)


def _kind_of(name: str) -> str | None:
    return kind_of_field(name) if _is_field(name) else kind_of(name)


def _squashed(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _text(name: bytes) -> str:
    return name[:_MAX_NAME_BYTES].decode("utf-8", "replace")

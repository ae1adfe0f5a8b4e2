"""A fast look at many texts together, or at one: whether a `SecretFinder` has to look at them. Nearly all have no secret.

`may_tell` is for payloads from which secrets are learned. It looks at names of members, variables and options, but neither for names
with escapes in them nor into base64, nor at values after a colon in prose. `may_have` is for short texts, and looks for everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from ..lazy_pattern import lazy_pattern
from ..records import PSEUDONYM_PREFIX
from .credentials import may_show
from .patterns import LETTERS_AND_DIGITS, LongWords, SecretNames, has_hint, may_assign

_spaced_names = lazy_pattern(rb'"(?=([^"]{1,128})"[ \t\r\n]++:)')
"""The names of members before blanks and a colon, which hardly anybody writes."""

_NAMES: Final = SecretNames()
_OPTIONS: Final = (b" -p", b'"-p', b" -u", b'"-u')
"""Short options after which, or in which, a password may stand."""

_FEW_DASHES: Final = 32
"""With a dash in so many bytes or more, it takes less time to split a text at them than to search it for pairs."""

_LONGEST_NAME: Final = 128
_PARAMETER_LETTERS: Final = LETTERS_AND_DIGITS + b"_.-%[]"
_VALUE: Final = b"value"
"""The value of what `name` names, in a list of variables or fields."""

_OTHER_SIGNS: Final = (b"\\", b"%", b"@", b"-p", b"--", b'"', b"=", PSEUDONYM_PREFIX.encode())
"""Signs of escapes, of JSON in a text, of mail addresses and passwords, and of earlier pseudonyms."""

_SCHEMES: Final = (b"bearer", b"basic")
_long_words: Final = LongWords(LETTERS_AND_DIGITS + b"+", 20)
"""Words that may be base64 of a text with a secret, or something random."""


def may_tell(data: bytes) -> bool:
    """Return whether a payload, or several together, may tell a secret."""
    names = {piece.rpartition(b'"')[2] for piece in set(data.split(b'":'))}
    if b'" :' in data:
        names.update(_spaced_names.findall(data))
    if any(map(_is_telling, names)) or (_VALUE in names and (may_assign(data) or b"code" in data.lower())):
        return True
    if b"=" in data and (may_assign(data) or any(map(_is_telling_parameter, data.split(b"=")[:-1]))):
        return True
    if (b"@" in data and b"://" in data) or b'"Secret"' in data or (b"[[" in data and has_hint(data.lower())):
        return True
    if b"-" not in data:
        return False
    if data.count(b"-") > len(data) // _FEW_DASHES:
        before_dashes = {pair[:1] for pair in (b"--", b" -", b'"-') if pair in data}
    else:
        before_dashes = {piece[-1:] or b"-" for piece in data.split(b"-")}  # to search for pairs takes longer
    if not before_dashes.isdisjoint((b" ", b'"')) and any(option in data for option in _OPTIONS):
        return True
    return b"-" in before_dashes and b"--" in data and may_assign(data)


@lru_cache(10_000)
def _is_telling(name: bytes) -> bool:
    return len(name) <= _LONGEST_NAME and _NAMES.member(name.rstrip(b"\\")) is not None


def _is_telling_parameter(before: bytes) -> bool:
    """Return whether what is before a `=` ends with the name of a secret parameter, as in a form."""
    name = before[-_LONGEST_NAME:]
    return _NAMES.parameter(name[len(name.rstrip(_PARAMETER_LETTERS)) :]) is not None


def that_may_have(texts: Iterable[bytes]) -> list[bytes]:
    """Return those of some short texts in which a secret may be. Values that are known are not looked for."""
    several = list(texts)
    return [text for text in several if may_have(text)] if several and may_have(b"\n".join(several)) else []


def may_have(data: bytes) -> bool:
    """Return whether a secret may be in a short text, or in several together, apart from values that are known."""
    small = data.lower()
    return (
        any(sign in data for sign in _OTHER_SIGNS)
        or any(scheme in small for scheme in _SCHEMES)
        or has_hint(small)
        or may_show([data])
        or next(_long_words.spans(data), None) is not None
    )

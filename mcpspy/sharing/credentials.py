"""Credentials that a text shows in clear: tokens of well-known services, and private keys. Bytes in, spans out.

Made to look at everything a server sent, in a tenth of the time that reading it takes: a credential is a long word, and long words
are few. Names, ids, documented examples and words with hyphens that only begin like a token are left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from ..lazy_pattern import lazy_pattern
from .patterns import BEGINNINGS, KEY_SIGN, LETTERS_AND_DIGITS, LongWords, SecretSpan, has_digit, token_at

SHORTEST: Final = 20
"""No credential is shorter."""

_long_words: Final = LongWords(LETTERS_AND_DIGITS + b"_-+", SHORTEST)
_PAIRS: Final = frozenset(
    sign[:2] for beginning in BEGINNINGS for sign in (beginning, *(bytes((letter,)) + beginning for letter in b"bfnrt"))
)
"""Two letters that a long word with a token begins with, also after the backslash of an escape in JSON."""
_DOT: Final = ord(".")
_DOTTED: Final = tuple(beginning for beginning in BEGINNINGS if beginning.endswith(b"."))
_MAX_BYTES: Final = 4096
_NEEDS_RANDOM_PIECE: Final = (b"sk", b"rk", b"pypi-", b"tvly-")
_LONGEST_LINE: Final = 256
"""A line of a log may have no more than the head of a private key. In longer texts a line of the key follows the head."""

_IDS: Final = (b"AIDA", b"AROA")
_RANDOM_PIECE: Final = 12
_FEWEST_LETTERS: Final = 8
_pieces = lazy_pattern(rb"[A-Za-z0-9]+")
_key_heads = lazy_pattern(rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_key_line = lazy_pattern(rb"[\r\n \\-]n?[A-Za-z0-9+/]{20}")
_LINES_BYTES: Final = 256
"""A line of the key is at most so far behind its head: headers of PEM and comments may come between."""


def shown_credentials(data: bytes) -> Sequence[SecretSpan]:
    """Return the credentials in a text, which may have JSON's escapes."""
    spans = [*_key_spans(data)] if KEY_SIGN in data else []
    for start in _token_starts(data, _long_words.spans(data)):
        value = token_at(data[start : start + _MAX_BYTES])
        if value is not None and _is_credential(value):
            spans.append(SecretSpan(start, start + len(value), "token", value))
    return spans


def may_show(texts: Sequence[bytes]) -> bool:
    """Return whether any of many texts may show a credential. Most show none, and one look at all together is quick.

    A private key in a text that is longer than a line of a log has long words.
    """
    joined = b"\n".join(texts)
    words = _long_words.spans(joined)
    first = next(words, None)
    if KEY_SIGN in (joined if first is not None else b"\n".join([text for text in texts if len(text) <= _LONGEST_LINE])):
        return True
    return first is not None and next(_token_starts(joined, chain((first,), words)), None) is not None


def _token_starts(data: bytes, words: Iterable[tuple[int, int]]) -> Iterator[int]:
    """Yield where tokens may begin in these long words."""
    for at, _ in words:
        if data[at : at + 2] in _PAIRS or data[at - 1] == _DOT:
            start = _token_start(data, at)
            if start >= 0:
                yield start


def _key_spans(data: bytes) -> Iterator[SecretSpan]:
    """Yield the head of the first private key."""
    for head in _key_heads.finditer(data):
        if len(data) <= _LONGEST_LINE or _key_line.search(data, head.end() - 1, head.end() + _LINES_BYTES):
            yield SecretSpan(*head.span(), "key", head[0])
            return


def _token_start(data: bytes, at: int) -> int:
    """Return where a token begins that has a long word at `at`, before which an escape or a dot may be; -1 if none does."""
    if data.startswith(BEGINNINGS, at):
        return at
    before = data[at - 1 : at]
    if before == b"\\" and data.startswith(BEGINNINGS, at + 1):
        return at + 1
    if before == b".":
        for beginning in _DOTTED:
            if data.endswith(beginning, 0, at):
                return at - len(beginning)
    return -1


def _is_credential(value: bytes) -> bool:
    """Return whether a token gives access to something, as far as its looks tell."""
    if value.startswith(_IDS) or b"EXAMPLE" in value.upper() or len(set(value)) < _FEWEST_LETTERS:
        return False
    if value.startswith(_NEEDS_RANDOM_PIECE):
        return any(len(piece) >= _RANDOM_PIECE and has_digit(piece) for piece in _pieces.findall(value))
    return True

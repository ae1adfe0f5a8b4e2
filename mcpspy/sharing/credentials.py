"""Credentials that a text shows in clear: tokens of well-known services, and private keys. Bytes in, spans out.

Made to look at everything a server sent, in a tenth of the time that reading it takes: a credential is a long word, and long words
are few. Names, ids, documented examples and words with hyphens that only begin like a token are left out.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from ..lazy_pattern import lazy_pattern
from .patterns import BEGINNINGS, KEY_SIGN, LETTERS_AND_DIGITS, LongWords, SecretSpan, has_digit, token_at

SHORTEST: Final = 20
"""No credential is shorter."""

_long_words: Final = LongWords(LETTERS_AND_DIGITS + b"_-+", SHORTEST)
_FIRST_LETTERS: Final = {beginning[0] for beginning in BEGINNINGS}
_BEFORE: Final = b"\\."
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
    for at, _ in _long_words.spans(data):
        start = _token_start(data, at) if data[at] in _FIRST_LETTERS or data[at - 1] in _BEFORE else -1
        value = token_at(data[start : start + _MAX_BYTES]) if start >= 0 else None
        if value is not None and _is_credential(value):
            spans.append(SecretSpan(start, start + len(value), "token", value))
    return spans


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

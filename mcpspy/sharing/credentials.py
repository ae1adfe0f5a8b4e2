"""Credentials that a text shows in clear: tokens of well-known services, and private keys. Bytes in, spans out.

Made to look at everything a server sent, in a tenth of the time that reading it takes: a credential is a long word, and long words
are few. Names, ids, documented examples and words with hyphens that only begin like a token are left out.
"""

import re
from collections.abc import Sequence
from typing import Final

from .patterns import BEGINNINGS, SecretSpan, has_digit, token_at

SHORTEST: Final = 20
"""No credential is shorter."""

_WORDS: Final = bytes(97 if letter < 128 and (chr(letter).isalnum() or letter in b"_-+") else 32 for letter in range(256))
"""Letters of long words become `a`, all others blanks: then one search finds the next long word."""

_LONG: Final = b"a" * SHORTEST
_DOTTED: Final = tuple(beginning for beginning in BEGINNINGS if beginning.endswith(b"."))
_MAX_BYTES: Final = 4096
_NEEDS_RANDOM_PIECE: Final = (b"sk", b"rk", b"pypi-", b"tvly-")
_KEY_HEAD: Final = b"PRIVATE KEY"
_KEY_HEAD_END: Final = b" BLOCK-----"
_HEAD_BYTES: Final = 256
"""The head of a private key is so near before one of the first lines of the key."""

_BREAKS: Final = {b"\n", b"\r", b" ", b"\\"}
"""A line of a key follows one of these, the last before the `n` of JSON."""

_LONGEST_LINE: Final = 256
"""A line of a log that has no more than the head of a private key is shorter. In longer texts the key is a long word."""

_IDS: Final = (b"AIDA", b"AROA")
_RANDOM_PIECE: Final = 12
_FEWEST_LETTERS: Final = 8
_pieces = re.compile(rb"[A-Za-z0-9]+").findall
_key_head = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----").search


def shown_credentials(data: bytes) -> Sequence[SecretSpan]:
    """Return the credentials in a text, which may have JSON's escapes."""
    words = data.translate(_WORDS)
    at = words.find(_LONG)
    key = _key_head(data) if len(data) <= _LONGEST_LINE and _KEY_HEAD in data else None
    spans = [] if key is None else [SecretSpan(*key.span(), "key", key[0])]
    while at >= 0:
        start = _token_start(data, at)
        value = token_at(data[start : start + _MAX_BYTES]) if start >= 0 else None
        if value is not None and _is_credential(value):
            spans.append(SecretSpan(start, start + len(value), "token", value))
        elif (
            key is None
            and data[at - 1 : at] in _BREAKS
            and data.find(_KEY_HEAD, max(at - _HEAD_BYTES, 0), at + len(_KEY_HEAD)) >= 0
        ):
            key = _key_head(data, max(at - _HEAD_BYTES, 0), at + len(_KEY_HEAD_END))
            if key is not None:
                spans.append(SecretSpan(*key.span(), "key", key[0]))
        end = words.find(b" ", at)
        at = words.find(_LONG, end) if end >= 0 else -1
    return spans


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
    """Tell whether a token gives access to something, as far as its looks tell."""
    if value.startswith(_IDS) or b"EXAMPLE" in value.upper() or len(set(value)) < _FEWEST_LETTERS:
        return False
    if value.startswith(_NEEDS_RANDOM_PIECE):
        return any(len(piece) >= _RANDOM_PIECE and has_digit(piece) for piece in _pieces(value))
    return True

"""Credentials that a text shows in clear: tokens of well-known services, and private keys. Bytes in, spans out.

Made to look at everything a server sent, in a tenth of the time that reading it takes: a credential is a long word, and long words
are few. Names, ids, documented examples and words with hyphens that only begin like a token are left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..compiled import compiled
from ..lazy_pattern import lazy_pattern
from .patterns import BEGINNINGS, KEY_SIGN, LETTERS_AND_DIGITS, SecretSpan, has_digit, token_at

SHORTEST: Final = 20
"""No credential is shorter."""

_DOTTED: Final = tuple(beginning for beginning in BEGINNINGS if beginning.endswith(b"."))
_PAIRS: Final = {
    *(sign[:2] for beginning in BEGINNINGS for sign in (beginning, *(bytes((letter,)) + beginning for letter in b"bfnrt"))),
    *(beginning[-2:] for beginning in _DOTTED),
}
"""Two letters that a long word with a token begins with, also after the backslash of an escape in JSON, or two before it."""


def _kinds() -> bytes:
    kinds = bytearray(1 << 16)
    for first, second in _PAIRS:
        kinds[first << 8 | second] = 1
    for letter in LETTERS_AND_DIGITS + b"_-+":
        kinds[letter] = 1
    return bytes(kinds)


KINDS: Final = _kinds()
"""1 at the number of each letter of a word, and at 256 times a letter and the next one if the two are one of `_PAIRS`."""

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
    for start in _token_starts(data, _token_places(data, KINDS, SHORTEST)):
        value = token_at(data[start : start + _MAX_BYTES])
        if value is not None and _is_credential(value):
            spans.append(SecretSpan(start, start + len(value), "token", value))
    return spans


def may_show(texts: Sequence[bytes]) -> bool:
    """Return whether any of many texts may show a credential. Most show none, and one look at all together is quick.

    A private key in a text that is longer than a line of a log has long words.
    """
    joined = b"\n".join(texts)
    places = _token_places(joined, KINDS, SHORTEST)
    if KEY_SIGN in (joined if places else b"\n".join([text for text in texts if len(text) <= _LONGEST_LINE])):
        return True
    return next(_token_starts(joined, places), None) is not None


def _token_starts(data: bytes, places: Iterable[int]) -> Iterator[int]:
    """Yield where tokens may begin in the words at these places."""
    for at in places:
        start = _token_start(data, at)
        if start >= 0:
            yield start


def token_places(data: bytes, kinds: bytes, shortest: int) -> list[int]:
    """Return where the first word of at least `shortest` letters begins, and those whose first two or the two before are a pair.

    `kinds` is not 0 at the number of a letter of a word, and at 256 times the first of a pair and the second.
    """
    long_word = b"\1" * shortest
    marked = data.translate(kinds[:256])
    places = []
    at = first = marked.find(long_word)
    while at >= 0:
        if at == first or kinds[data[at] << 8 | data[at + 1]] or (at >= 2 and kinds[data[at - 2] << 8 | data[at - 1]]):
            places.append(at)
        end = marked.find(0, at)
        at = marked.find(long_word, end) if end >= 0 else -1
    return places


_token_places: Final = compiled(token_places)


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

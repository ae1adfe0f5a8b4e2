"""Texts to estimated numbers of tokens, from their bytes alone: no model, no network, no vocabulary.

Tokenizers put common words into one token, and numbers, signs and other scripts into many. So each class of bytes has a weight of
its own, fitted to two public vocabularies (docs/findings/cost.md says how well). No estimate is exact, because every model counts
in its own way.
"""

from typing import Final

_LOWER: Final = b"abcdefghijklmnopqrstuvwxyz"
_UPPER: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS: Final = b"0123456789"
_SIGNS: Final = bytes(code for code in range(0x21, 0x7F) if not chr(code).isalnum())

_WEIGHTS: Final = (
    (_LOWER, 94),  # a word of six letters is half a token, and the blank before it the other half
    (_UPPER, 547),
    (_DIGITS, 640),
    (_SIGNS, 456),
    (b"\t\r", 816),
)
"""Thousandths of a token for each byte of a class. Bytes of no class (controls, later bytes of a character) count nothing."""

_WEIGHTS_BEYOND_ASCII: Final = (
    (bytes(range(0xC2, 0xE0)), 278),  # first bytes of two: accents, Greek, Cyrillic, Hebrew, Arabic
    (bytes(range(0xE0, 0xF0)), 817),  # of three: Chinese, Japanese, Korean
    (bytes(range(0xF0, 0xF8)), 1500),  # of four: emoji
)

_LINE_FEED: Final = 1384
_BLANK: Final = 771
_PAIR: Final = 243
"""Two blanks in a row: indentation is one token, however deep it is."""


def estimated_tokens(text: bytes) -> int:
    """Return the estimated tokens of a text in UTF-8. For several texts it is the sum, but for rounding."""
    return -(-weight(text) // 1000)


def weight(text: bytes) -> int:
    """Return thousandths of tokens, for sums. One pass over the bytes for each class, in C: about 10 ns a byte (CPython 3.11)."""
    size = len(text)
    pairs = text.count(b"  ")
    total = text.count(b"\n") * _LINE_FEED + pairs * _PAIR + (text.count(b" ") - 2 * pairs) * _BLANK
    for codes, thousandths in _WEIGHTS if text.isascii() else _WEIGHTS + _WEIGHTS_BEYOND_ASCII:
        total += (size - len(text.translate(None, codes))) * thousandths
    return total

"""JSON laid out for reading, from its bytes: numbers, escapes, duplicate keys and order stay exactly as spelled.

Works token by token and never parses, so depth and size cost nothing but output. With a width, long strings are broken, and
Base64 is shown as size and digest; without one, the output is JSON again. Input that is not JSON passes through as tokens.
"""

import re
from base64 import b64decode
from collections.abc import Iterator

from ...lazy_pattern import lazy_pattern
from .cells import MIN_CHOP_CELLS, cells, chopped
from .escape import decoded, json_text
from .line import Line, Piece
from .units import size

INDENT = 2

MAX_INDENT_CELLS = 64
"""Deeper levels are indented no further: 100,000 of them would be 10 GB of spaces."""

MIN_STRING_CELLS = 24
"""The smallest width of a broken string, or half of a small screen, however far right it begins."""

MIN_BASE64_LETTERS = 256
"""A Base64 string of at least this many letters is shown on a screen as the size and the digest of its data."""

DIGEST_LETTERS = 12

_base64 = lazy_pattern(rf'"(data:[\w./+;=-]*;base64,)?((?:[A-Za-z0-9+/]|\\/){{{MIN_BASE64_LETTERS},}}={{0,2}})"')
_tokens = lazy_pattern(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+|"', re.DOTALL)
_MIX = [lazy_pattern(letters) for letters in ("[0-9]", "[A-Z]", "[a-z]")]
_to_line_ends = lazy_pattern(r"[^\\]*(?:\\[^n][^\\]*)*(?:\\n)?", re.DOTALL)


def pretty(raw: bytes, *, width: int | None = None) -> Iterator[Line]:
    """Yield the lines of a payload. `width` in cells; with None, strings are not broken."""
    text = json_text(decoded(raw).removeprefix("\ufeff"))
    max_indent = MAX_INDENT_CELLS if width is None else min(MAX_INDENT_CELLS, width // 3)
    depth = 0
    line: Line = []
    opened = False  # the last word opened an object or an array, which may turn out to be empty
    texts = (match[0] for match in _tokens.finditer(text))
    word = next(texts, None)
    while word is not None:
        after = next(texts, None)
        if word in "]}":
            depth = max(0, depth - 1)
            if not opened:
                yield line
                line = _indented(depth, max_indent)
            line.append((word, "dim"))
            opened = False
        else:
            if opened:
                yield line
                line = _indented(depth, max_indent)
            opened = word in "[{"
            if opened:
                line.append((word, "dim"))
                depth += 1
            elif word == ",":
                line.append((word, "dim"))
                yield line
                line = _indented(depth, max_indent)
            elif word == ":":
                line.append((": ", "dim"))
            else:
                style = ("key" if after == ":" else "string") if word[0] == '"' else "literal"
                if width is not None and len(word) > MIN_BASE64_LETTERS and (summary := _base64_summary(word)):
                    word, style = summary, "dim"
                *full, line = _placed(line, word, style, width)
                yield from full
        word = after
    if line:
        yield line


def broken(text: str, limit: int) -> list[str]:
    """Divide `text` into pieces of at most `limit` cells, after a space where there is one. Joined, they are the text."""
    pieces: list[str] = []
    at, limit = 0, max(limit, MIN_CHOP_CELLS)
    while at < len(text):
        piece = chopped(text[at : at + limit], limit)[0]
        end = at + len(piece)
        if end < len(text) and text[end - 1] != " ":
            space = text.rfind(" ", at + len(piece) // 2, end)
            end = space + 1 or end
        pieces.append(text[at:end])
        at = end
    return pieces


def _base64_summary(word: str) -> str:
    """Return size and digest of a string of Base64; empty for any other."""
    match = _base64.fullmatch(word)
    if match is None:
        return ""
    letters = match[2].replace("\\/", "/")
    if not all(kind.search(letters) for kind in _MIX):
        return ""  # a long run of one kind of letters is a text
    try:
        data = b64decode(letters, validate=True)
    except ValueError:
        return ""
    from hashlib import sha256

    return f"<{match[1] or ''}{size(len(data))} in Base64, sha256 {sha256(data).hexdigest()[:DIGEST_LETTERS]}…>"


def _indented(depth: int, max_indent: int) -> Line:
    return [(" " * min(depth * INDENT, max_indent), "")]


def _placed(line: Line, word: str, style: str, width: int | None) -> list[Line]:
    """Append a word to `line`. A long string continues on more lines, and breaks at its own line ends."""
    if width is None:
        return [[*line, (word, style)]]
    start = sum(cells(text) for text, _ in line)
    room = width - start - 1  # one for the comma
    if cells(word) <= room or word[0] not in '"<':
        return [[*line, (word, style)]]
    least = min(MIN_STRING_CELLS, width // 2)
    if room < least:
        start = min(cells(line[0][0]) + INDENT, width - least)
        room = width - start - 1
        lines, first = [line], False
    else:
        lines, first = [], True
    indent: Piece = (" " * (start + (1 if first else 0)), "")
    for part in _to_line_ends.findall(word):
        for piece in broken(part, room - 1):
            lines.append([*line, (piece, style)] if first else [indent, (piece, style)])
            first = False
    return lines

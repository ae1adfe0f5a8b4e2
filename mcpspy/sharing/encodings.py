r"""Spellings of a text within another: JSON's escapes, percent signs, base64. Edits of the text become edits of its spelling.

    {"text":"say \"pass\u0077ord\""}   →   say "password"   →   an edit of 8 letters becomes an edit of 13 bytes

Nothing raises: an escape that means nothing means itself.
"""

import re
from _json import scanstring  # `json.decoder` has it too, without saying so
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ..lazy_pattern import lazy_pattern
from ..wire.edits import Edit, apply_edits

SHORTEST_BASE64: Final = 16
"""Shorter runs of letters are not taken for base64; values that are known to be secret are sought in shorter ones too."""


class Layer(NamedTuple):
    """One way of spelling: how its escapes begin and look, what an escape means, and how bytes are spelled in it."""

    sign: bytes
    escape: re.Pattern[bytes]
    meaning: Callable[[re.Match[bytes]], bytes]
    spelled: Callable[[bytes], bytes]
    quickly: Callable[[bytes], bytes | None] = lambda data: None
    """Reads the text in a faster way; returns None where that way fails."""

    def read(self, data: bytes) -> bytes:
        """Return the text that `data` spells."""
        if self.sign not in data:
            return data
        text = self.quickly(data)
        return self.escape.sub(self.meaning, data) if text is None else text

    def back(self, data: bytes, edits: Sequence[Edit], offset: int = 0) -> Iterator[Edit]:
        """Turn edits of the text into edits of `data`, which spells it at `offset`. `edits` are settled.

        An edit that begins or ends within the meaning of one escape takes the whole escape.
        """
        escapes = self.escape.finditer(data)
        escape = next(escapes, None)
        raw = text = 0  # after the latest escape that was passed
        offsets: list[int] = []
        for at in (offset for edit in edits for offset in (edit.start, edit.end)):
            while escape is not None:
                start = text + escape.start() - raw
                end = start + len(self.meaning(escape))
                if at < end:
                    break
                raw, text = escape.end(), end
                escape = next(escapes, None)
            if escape is None or at <= text + escape.start() - raw:
                offsets.append(raw + at - text)
            else:
                offsets.append(escape.end() if len(offsets) % 2 else escape.start())
        for edit, start, end in zip(edits, offsets[::2], offsets[1::2], strict=True):
            yield Edit(offset + start, offset + end, self.spelled(edit.new), edit.kind)


# --- JSON ---

_LETTERS: Final = {b'"': b'"', b"\\": b"\\", b"/": b"/", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_PAIR: Final = len(rb"\ud83d\ude00")


def _json_meaning(match: re.Match[bytes]) -> bytes:
    escape = match[0]
    letter = _LETTERS.get(escape[1:])
    if letter is not None:
        return letter
    if len(escape) == _PAIR:
        high, low = int(escape[2:6], 16), int(escape[8:], 16)
        return chr(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF)).encode()
    if len(escape) > len(b"\\u"):
        return chr(int(escape[2:], 16)).encode("utf-8", "surrogatepass")  # noqa: FURB166 - not a prefix that `int` reads
    return escape


def _json_spelled(data: bytes) -> bytes:
    return data.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


def _json_read(data: bytes) -> bytes | None:
    """Read the text with the scanner of the standard library, which takes a tenth of the time."""
    try:
        source = data.decode() + '"'
        text, end = scanstring(source, 0, False)
    except ValueError:
        return None
    return text.encode("utf-8", "surrogatepass") if end == len(source) else None


JSON: Final = Layer(
    b"\\",
    lazy_pattern(
        rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^u]|u)",
        re.DOTALL,
    ),
    _json_meaning,
    _json_spelled,
    _json_read,
)
"""The inside of a string's quotes (RFC 8259, section 7)."""

# --- Percent signs ---

_reserved = lazy_pattern(rb"[^A-Za-z0-9._~-]")

PERCENT: Final = Layer(
    b"%",
    lazy_pattern(rb"%[0-9a-fA-F]{2}"),
    lambda match: bytes((int(match[0][1:], 16),)),
    lambda data: _reserved.sub(lambda match: b"%%%02X" % match[0][0], data),
)
"""RFC 3986, section 2.1."""

# --- Base64 ---

_RUN = lazy_pattern(rb"[A-Za-z0-9+/_-]{%d,}+={0,2}|(?<==\?base64\?)[A-Za-z0-9+/_-]*+={0,2}" % SHORTEST_BASE64)
_PIECES: Final = (
    (lazy_pattern(rb"[/+]"), lazy_pattern(rb"[A-Za-z0-9_-]{%d,}+={0,2}" % SHORTEST_BASE64)),
    (lazy_pattern(rb"[_-]"), lazy_pattern(rb"[A-Za-z0-9+/]{%d,}+={0,2}" % SHORTEST_BASE64)),
)
"""For either alphabet: letters of the other one, which may separate runs, and such runs."""

_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_TO_URL = bytes.maketrans(b"+/", b"-_")
_no_text = lazy_pattern(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Base64Run(NamedTuple):
    """A run of base64 letters that spells a text; `data[start:end]`."""

    start: int
    end: int
    text: bytes
    is_padded: bool
    is_for_urls: bool

    def back(self, edits: Sequence[Edit]) -> Edit:
        """Turn edits of the text into one of the whole run: in base64, other bytes change the spelling of all that follows."""
        new = b2a_base64(apply_edits(self.text, edits), newline=False)
        if not self.is_padded:
            new = new.rstrip(b"=")
        return Edit(self.start, self.end, new.translate(_TO_URL) if self.is_for_urls else new, edits[0].kind)


def runs(data: bytes) -> Iterable[Base64Run]:
    """Yield the runs of base64, standard or for URLs, that spell a text in UTF-8; in paths and in words with hyphens too."""
    for match in _RUN.finditer(data):
        run = _run(data, *match.span())
        if run is not None:
            yield run
            continue
        for separator, runs in _PIECES:
            if separator.search(match[0]) is not None:
                inner = (_run(data, *piece.span()) for piece in runs.finditer(data, *match.span()))
                yield from (piece for piece in inner if piece is not None)


def _run(data: bytes, start: int, end: int) -> Base64Run | None:
    """Read `data[start:end]` as base64; None if it does not spell a text."""
    letters = data[start:end]
    bare = letters.rstrip(b"=")
    is_for_urls = b"-" in bare or b"_" in bare
    if len(bare) % 4 == 1 or (is_for_urls and (b"+" in bare or b"/" in bare)):
        return None
    try:
        text = a2b_base64(bare.translate(_TO_STANDARD) + b"=" * (-len(bare) % 4))
    except Error:
        return None
    if not text or not _is_text(text):
        return None
    return Base64Run(start, end, text, len(letters) % 4 == 0, is_for_urls)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return _no_text.search(data) is None


def base64_of(value: bytes) -> set[bytes]:
    """Spell a value in base64: in either alphabet, with and without padding."""
    plain = b2a_base64(value, newline=False)
    url = plain.translate(_TO_URL)
    return {plain, url, plain.rstrip(b"="), url.rstrip(b"=")}

r"""Spellings of a text within another: JSON's escapes, percent signs, base64. What is found in the text is edited in its spelling.

    {"text":"say \"pass\u0077ord\""}   →   say "password"   →   an edit of eight letters is one of thirteen bytes

Never raises: an escape that means nothing means itself.
"""

from __future__ import annotations

import re
from _json import scanstring  # `json.decoder` has it too, without saying so
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ..wire.edits import Edit, edited

SHORTEST_BASE64: Final = 16
"""So many letters have to follow each other to be taken for base64; what is known to be secret is sought in shorter ones too."""


class Layer(NamedTuple):
    """One way of spelling: what its escapes begin with and look like, what one means, and how bytes are spelled in it."""

    sign: bytes
    escape: re.Pattern[bytes]
    meaning: Callable[[re.Match[bytes]], bytes]
    spelled: Callable[[bytes], bytes]
    quickly: Callable[[bytes], bytes | None] = lambda data: None
    """The text, by a faster way; None where that cannot tell."""

    def read(self, data: bytes) -> bytes:
        """The text that `data` spells."""
        if self.sign not in data:
            return data
        found = self.quickly(data)
        return self.escape.sub(self.meaning, data) if found is None else found

    def back(self, data: bytes, edits: Sequence[Edit], offset: int = 0) -> Iterator[Edit]:
        """Edits of the text as edits of `data`, which spells it; `offset` is where that begins. `edits` are settled.

        An edit that begins or ends within what one escape stands for takes all of it.
        """
        escapes = self.escape.finditer(data)
        escape = next(escapes, None)
        raw = text = 0  # behind the escapes that were passed
        places: list[int] = []
        for at in (place for one in edits for place in (one.start, one.end)):
            while escape is not None:
                start = text + escape.start() - raw
                end = start + len(self.meaning(escape))
                if at < end:
                    break
                raw, text = escape.end(), end
                escape = next(escapes, None)
            if escape is None or at <= text + escape.start() - raw:
                places.append(raw + at - text)
            else:
                places.append(escape.end() if len(places) % 2 else escape.start())
        for one, start, end in zip(edits, places[::2], places[1::2], strict=True):
            yield Edit(offset + start, offset + end, self.spelled(one.new), one.kind)


# --- JSON ---

_LETTERS: Final = {b'"': b'"', b"\\": b"\\", b"/": b"/", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_PAIR: Final = len(rb"\ud83d\ude00")


def _json_meaning(match: re.Match[bytes]) -> bytes:
    found = match[0]
    letter = _LETTERS.get(found[1:])
    if letter is not None:
        return letter
    if len(found) == _PAIR:
        high, low = int(found[2:6], 16), int(found[8:], 16)
        return chr(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF)).encode()
    if len(found) > len(b"\\u"):
        return chr(int(found[2:], 16)).encode("utf-8", "surrogatepass")  # noqa: FURB166 - not a prefix that `int` reads
    return found


def _json_spelled(data: bytes) -> bytes:
    return data.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


def _json_read(data: bytes) -> bytes | None:
    """With the scanner of the standard library, which takes a tenth of the time."""
    try:
        source = data.decode() + '"'
        text, end = scanstring(source, 0, False)
    except ValueError:
        return None
    return text.encode("utf-8", "surrogatepass") if end == len(source) else None


JSON: Final = Layer(
    b"\\",
    re.compile(
        rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^u]|u)",
        re.DOTALL,
    ),
    _json_meaning,
    _json_spelled,
    _json_read,
)
"""What stands between the quotes of a string (RFC 8259, section 7)."""

# --- Percent signs ---

_reserved = re.compile(rb"[^A-Za-z0-9._~-]")

PERCENT: Final = Layer(
    b"%",
    re.compile(rb"%[0-9a-fA-F]{2}"),
    lambda match: bytes((int(match[0][1:], 16),)),
    lambda data: _reserved.sub(lambda match: b"%%%02X" % match[0][0], data),
)
"""RFC 3986, section 2.1."""

# --- Base64 ---

_RUN = re.compile(rb"[A-Za-z0-9+/_-]{%d,}+={0,2}|(?<==\?base64\?)[A-Za-z0-9+/_-]*+={0,2}" % SHORTEST_BASE64)
_PIECES: Final = (
    (re.compile(rb"[/+]").search, re.compile(rb"[A-Za-z0-9_-]{%d,}+={0,2}" % SHORTEST_BASE64).finditer),
    (re.compile(rb"[_-]").search, re.compile(rb"[A-Za-z0-9+/]{%d,}+={0,2}" % SHORTEST_BASE64).finditer),
)
"""What may stand between stretches of either alphabet, being letters of the other; and those stretches."""

_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_TO_URL = bytes.maketrans(b"+/", b"-_")
_no_text = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]").search


class Base64Run(NamedTuple):
    """A stretch of base64 that says a text; `data[start:end]`."""

    start: int
    end: int
    text: bytes
    is_padded: bool
    is_for_urls: bool

    def back(self, edits: Sequence[Edit]) -> Edit:
        """Edits of the text as one of the whole stretch: other bytes before it spell all behind it otherwise."""
        new = b2a_base64(edited(self.text, edits), newline=False)
        if not self.is_padded:
            new = new.rstrip(b"=")
        return Edit(self.start, self.end, new.translate(_TO_URL) if self.is_for_urls else new, edits[0].kind)


def runs(data: bytes) -> Iterable[Base64Run]:
    """The stretches of base64, standard or for URLs, that say a text in UTF-8; in paths and in words with hyphens too."""
    for match in _RUN.finditer(data):
        run = _run(data, *match.span())
        if run is not None:
            yield run
            continue
        for separated, pieces in _PIECES:
            if separated(match[0]) is not None:
                yield from (one for piece in pieces(data, *match.span()) if (one := _run(data, *piece.span())) is not None)


def _run(data: bytes, start: int, end: int) -> Base64Run | None:
    """What `data[start:end]` is as base64; None where it is none that says a text."""
    found = data[start:end]
    bare = found.rstrip(b"=")
    is_for_urls = b"-" in bare or b"_" in bare
    if len(bare) % 4 == 1 or (is_for_urls and (b"+" in bare or b"/" in bare)):
        return None
    try:
        text = a2b_base64(bare.translate(_TO_STANDARD) + b"=" * (-len(bare) % 4))
    except Error:
        return None
    if not text or not _is_text(text):
        return None
    return Base64Run(start, end, text, len(found) % 4 == 0, is_for_urls)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return _no_text(data) is None


def base64_of(value: bytes) -> set[bytes]:
    """How a value by itself is spelled in base64: in either alphabet, with and without what fills it up."""
    plain = b2a_base64(value, newline=False)
    url = plain.translate(_TO_URL)
    return {plain, url, plain.rstrip(b"="), url.rstrip(b"=")}

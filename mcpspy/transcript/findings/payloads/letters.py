"""Letters of a text that were decoded with another encoding, lost, or escaped once too often.

UTF-8 that is read as cp1252 or Latin-1 leaves runs of letters that are UTF-8 again when they are encoded back:

    café  →  63 61 66 c3 a9  →  cafÃ©  →  Ã© is c3 a9  →  é

Hardly a word of any language contains such a run: `é` alone is e9, which is no UTF-8.
"""

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from ....lazy_pattern import lazy_pattern
from ....wire.json_spans import UNREADABLE

_runs = lazy_pattern(r"[^\x00-\x7f]+")
_about_encodings = lazy_pattern(r"mojibake|encod|utf-?8|unicode|latin-?1|cp-?1252|windows-1252|charset|iso-8859", re.IGNORECASE)
_ends_with = lazy_pattern(r"[A-Za-z0-9]*$")
_begins_with = lazy_pattern(r"[A-Za-z0-9]*")
_QUOTATION_MARKS: Final = "«»"
_FEW: Final = 3
"""A text with so many wrong letters is not one that only speaks about them."""

_C1: Final = {**{bytes([code]).decode("latin-1"): code for code in range(0x80, 0xC0)}}
_CP1252: Final = {
    bytes([code]).decode("cp1252"): code for code in range(0x80, 0xA0) if code not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}
_BYTES: Final = {ord(letter): code for letter, code in (_C1 | _CP1252).items()} | {code: code for code in range(0xC0, 0x100)}
"""The byte that each letter was, if cp1252 or Latin-1 was how it was read."""

LOST: Final = "\ufffd"
_has_controls = lazy_pattern(r"[\x00-\x08\x0e-\x1a]")
"""Find a control character that no text has."""
_WORD: Final = 20


class Misreading(NamedTuple):
    """The first wrong word of a text, the same word as it should be, and how many runs of letters are wrong."""

    wrong: str
    right: str
    times: int


def misreading(text: str) -> Misreading | None:
    """Find letters that were decoded with the wrong encoding; None where the text has none, or also has the right ones."""
    wrong: list[tuple[int, int, str]] = []
    for run in _runs.finditer(text):
        right = _reread(run[0])
        is_quoted = len(run[0]) > 1 and run[0][1] in _QUOTATION_MARKS and text[run.start() - 1 : run.start()].isupper()
        if right and not is_quoted:
            wrong.append((run.start(), run.end(), right))
    ends = [0, *(end for _, end, _ in wrong)]
    intact = " ".join(text[end:begin] for end, begin in zip(ends, [*(begin for begin, *_ in wrong), len(text)], strict=True))
    if not wrong or any(right in intact for *_, right in wrong) or (len(wrong) < _FEW and _about_encodings.search(text)):
        return None
    begin, end, right = wrong[0]
    head, tail = _ends_with.search(text[max(0, begin - _WORD) : begin]), _begins_with.match(text[end : end + _WORD])
    around = head[0] if head else "", tail[0] if tail else ""
    return Misreading(text[begin:end].join(around), right.join(around), len(wrong))


def _reread(run: str) -> str:
    """Read a run of letters as the UTF-8 that it was; empty if it was none."""
    try:
        return bytes(map(_BYTES.__getitem__, map(ord, run))).decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        return ""


_lost_word = lazy_pattern(rf"\w*{LOST}[\w{LOST}]*")


class Loss(NamedTuple):
    """Letters that a decoder replaced by U+FFFD: the first with the text around it, and whether all of it seems to be binary."""

    around: str
    word: str
    times: int
    is_binary: bool


def loss(text: str) -> Loss | None:
    """Find replacement characters in the place of letters; None where one stands alone, as in a text about them."""
    count = text.count(LOST)
    found = re.search(rf"\w{LOST}|{LOST}\w|{LOST}{{3}}", text)
    if found is None or (count < _FEW and _about_encodings.search(text)):
        return None
    around = text[max(0, found.start() - _WORD) : found.end() + _WORD].strip()
    word = _lost_word.search(around)
    return Loss(around, around if word is None else word[0], count, _has_controls.search(text) is not None)


_begins_escaped_json = lazy_pattern(r'\s*[\[{]\s*(?:\{\s*)?\\"')
_is_not_only_escaped = lazy_pattern(r'\\(?![nrtu"\\])|[A-Za-z]:\\|["\'`]\\n|\\n["\'`]')
_escaped_letters = lazy_pattern(r"\\u(?!00[01])[0-9a-fA-F]{4}")
_SEVERAL: Final = 3


def escaped(text: str) -> str:
    """Say what in a text was escaped once too often; empty if nothing was. JSON, code and paths have backslashes of their own."""
    if _begins_escaped_json.match(text):
        return "JSON whose quotation marks are escaped again"
    if text.startswith('"') and text.rstrip().endswith('"'):
        return "JSON inside of a JSON string" if any(_json_strings(text)) else ""
    if text.lstrip()[:1] in ("{", "[") or _is_not_only_escaped.search(text):
        return ""
    if "\n" not in text and text.count("\\n") >= _SEVERAL:
        return "line feeds that are written as \\n"
    letters = _escaped_letters.findall(text)
    return f"letters that are written as {letters[0]}" if len(letters) >= _SEVERAL and text.isascii() else ""


def _json_strings(text: str) -> Iterator[str]:
    """Yield the text of a JSON string that holds an object or an array."""
    try:
        inner = json.loads(text)
        if isinstance(inner, str) and inner.lstrip()[:1] in ("{", "["):
            json.loads(inner)
            yield inner
    except UNREADABLE:
        return

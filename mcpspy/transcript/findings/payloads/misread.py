"""Findings about texts that were decoded with the wrong encoding, or escaped twice, at the first message that has them.

UTF-8 that is read as cp1252 or Latin-1 leaves runs of letters that are UTF-8 again when they are encoded back:

    café  →  63 61 66 c3 a9  →  cafÃ©  →  Ã© is c3 a9  →  é

Hardly a word of any language contains such a run: `é` alone is e9, which is no UTF-8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT, SERVER
from ....wire.json_spans import UNREADABLE
from ...definitions import strings
from ...mcp.blocks import listed, member
from ..rule import AGENT, Hit, Severity, hit_in
from ..words import call_name, quoted
from .letter_rules import ESCAPED_TWICE, MISREAD_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...model import Exchange, Message

MAX_LETTERS = 50_000
"""So much of each text is looked at."""

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

_LOST: Final = "\ufffd"
_has_controls = lazy_pattern(r"[\x00-\x08\x0e-\x1a]")
"""Find a control character that no text has."""
_WORD: Final = 20


def misread_texts(exchanges: Iterable[Exchange]) -> Iterator[Hit]:
    """Find such texts in the messages of these exchanges, which are in the order of time."""
    known: set[str] = set()
    for exchange in exchanges:
        request, response = exchange.request, exchange.response
        yield from _in_message(exchange, request, strings(member(request.params, "arguments")), known)
        if response is not None:
            yield from _in_message(exchange, response, strings(response.result), known)
            yield from _escaped(exchange, response, _texts(response.result), SERVER)
        yield from _escaped(exchange, request, [text for _, text in strings(member(request.params, "arguments"))], AGENT)


def _in_message(exchange: Exchange, message: Message, texts: Iterable[tuple[str, str]], known: set[str]) -> Iterator[Hit]:
    """Find the first text with wrong letters that no message before had."""
    for path, whole in texts:
        text = whole[:MAX_LETTERS]
        if text.isascii():
            continue
        wrong = misreading(text)
        if wrong is not None and wrong.wrong not in known:
            known.add(wrong.wrong)
            times = f", and {wrong.times - 1:,} more" if wrong.times > 1 else ""
            what = f"{_place(exchange, message, path)} has {quoted(wrong.wrong)} where {quoted(wrong.right)} is meant{times}."
            yield _hit(exchange, message, what, wrong.times)
            return
        lost = loss(text) if _LOST in text else None
        if lost is not None and lost.word not in known:
            known.add(lost.word)
            what = (
                f"{_place(exchange, message, path)} has U+FFFD in the place of {lost.times:,} "
                f"letter{'s' * (lost.times > 1)}: {quoted(lost.around)}"
                f"{'; it seems to be binary data' if lost.is_binary else ''}."
            )
            yield _hit(exchange, message, what, lost.times)
            return


def _hit(exchange: Exchange, message: Message, what: str, count: int) -> Hit:
    is_sent = message.sender == CLIENT
    blame = (
        "The client: the letters are wrong in its request, and no message before had them."
        if is_sent
        else "The server: the letters are wrong in its response, and no message before had them. Its source may have them so."
    )
    advice = (
        f"Decode as UTF-8 {'what the model and the user write' if is_sent else 'files, databases and what other servers send'}."
    )
    severity = Severity.NOTE if is_sent or count == 1 else None
    group = f"{call_name(exchange)} {message.sender}"
    return hit_in(MISREAD_TEXT, message, exchange.row, what, blame=blame, advice=advice, severity=severity, group=group)


def _escaped(exchange: Exchange, message: Message, texts: Iterable[str], culprit: str) -> Iterator[Hit]:
    """Find the first text of a message that was escaped once too often."""
    for text in texts:
        wrong = escaped(text[:MAX_LETTERS]) if "\\" in text else ""
        if wrong:
            where = "An argument" if message is exchange.request else "A text in the result"
            what = f"{where} of {call_name(exchange)} has {wrong}: {quoted(text)}."
            blame = "" if culprit == SERVER else "The agent: the model behind the client wrote the argument so."
            yield hit_in(
                ESCAPED_TWICE, message, exchange.row, what, culprit=culprit, blame=blame,
                group=f"{call_name(exchange)} {culprit}",
            )  # fmt: skip
            return


def _place(exchange: Exchange, message: Message, path: str) -> str:
    if message is exchange.request:
        return f"The argument {path[1:].lstrip('.')[:80]} of {call_name(exchange)}"
    return f"The result of {call_name(exchange)}" + (f" at {path[:80]}" if exchange.method.endswith("/list") else "")


def _texts(result: Any) -> list[str]:
    """List the texts of content blocks."""
    return [text for block in listed(result, "content") if isinstance(text := block.get("text"), str)]


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


_lost_word = lazy_pattern(rf"\w*{_LOST}[\w{_LOST}]*")


class Loss(NamedTuple):
    """Letters that a decoder replaced by U+FFFD: the first with the text around it, and whether all of it seems to be binary."""

    around: str
    word: str
    times: int
    is_binary: bool


def loss(text: str) -> Loss | None:
    """Find replacement characters in the place of letters; None where one stands alone, as in a text about them."""
    count = text.count(_LOST)
    found = re.search(rf"\w{_LOST}|{_LOST}\w|{_LOST}{{3}}", text)
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

"""Lines of a server's log that quote a message: the same JSON by value, or the same value as Python prints it.

Work is linear in the bytes: only lines with a `{` are read, only messages that one of them may quote are parsed, each once.
Refuses to guess: a quote that was cut short is none, and neither is a value that no message has.
"""

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from ..records import CLIENT
from .model import Exchange, Kind, Log, Message, Row, UnpairedMessage

MAX_LINE_BYTES: Final = 1 << 20
"""Longer lines of a log are not read for quotes."""

MAX_TRIES: Final = 8
"""So many `{` of a line are taken for the beginning of a quote, the first ones."""

LineKey: TypeAlias = tuple[int, int]
"""A line of a log: its capture and its record."""

_Key: TypeAlias = tuple[int, str, str]
"""What a quote and its message have in common before either is compared whole: capture, method, id."""


class LogMatch(NamedTuple):
    """A message that a line of a log quotes, and the row it stands in. `begin` and `end` are where in the line's text the quote is.

    `gap_ns` is how long after the message the line came; what a server sends it often logs before.
    """

    row: int
    message: Message
    gap_ns: int
    begin: int
    end: int


class _Found(NamedTuple):
    """A quote in a line, before it is known what it quotes."""

    log: Log
    key: _Key
    digest: bytes
    begin: int
    end: int


def log_matches(rows: Iterable[Row]) -> dict[LineKey, LogMatch]:
    """The lines among `rows` that quote a message among them, by capture and record."""
    rows = list(rows)
    found = [one for row in rows if isinstance(row, Log) and b"{" in row.raw for one in _in_line(row)]
    if not found:
        return {}
    wanted = {one.key for one in found}
    said: dict[tuple[int, bytes], list[tuple[int, Message]]] = defaultdict(list)
    for number, message in _messages(rows):
        if _key_of(message) in wanted and (digest := _digest_of(message)) is not None:
            said[message.capture, digest].append((number, message))
    for those in said.values():
        those.sort(key=lambda one: one[1].at_ns)
    made: dict[LineKey, LogMatch] = {}
    for one in found:
        quoted = _quoted(one.log, said.get((one.log.capture, one.digest), []))
        if quoted is not None:
            number, message = quoted
            key = one.log.capture, one.log.number
            made.setdefault(key, LogMatch(number, message, one.log.at_ns - message.at_ns, one.begin, one.end))
    return made


def line_text(raw: bytes) -> str:
    """The text of a line of a log in which a quote has its place."""
    return raw.rstrip(b"\r\n").decode("utf-8", "backslashreplace")


def _messages(rows: Iterable[Row]) -> Iterator[tuple[int, Message]]:
    for row in rows:
        if isinstance(row, Exchange):
            yield row.row, row.request
            if row.response is not None:
                yield row.row, row.response
            for one in row.notifications:
                yield row.row, one
            for one in row.more_responses:
                yield row.row, one
        elif isinstance(row, UnpairedMessage) and row.message.kind is not Kind.MALFORMED:
            yield row.row, row.message


def _quoted(log: Log, those: list[tuple[int, Message]]) -> tuple[int, Message] | None:
    """Of equal messages the one that a line quotes: the nearest in time. What the client sent, the server had to read first."""
    after = bisect_right(those, log.at_ns, key=lambda one: one[1].at_ns)
    before = those[after - 1] if after else None
    coming = next((one for one in islice(those, after, after + 1) if one[1].sender != CLIENT), None)
    if before is None or coming is None:
        return before or coming
    return min(before, coming, key=lambda one: abs(one[1].at_ns - log.at_ns))


# --- What is compared: the value, whatever its spelling and the order of its members ---


def _digest(value: Any) -> bytes | None:
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return None
    return blake2b(text.encode(), digest_size=16).digest()


def _number(text: str) -> int | float:
    """`1.0` is `1`, as in every language with one kind of number."""
    number = float(text)
    return int(number) if number.is_integer() else number


def _integer(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:  # more digits than Python converts
        return text


_decoder: Final = json.JSONDecoder(parse_float=_number, parse_int=_integer, strict=False)


def _digest_of(message: Message) -> bytes | None:
    text = message.raw.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    try:
        return _digest(_decoder.decode(text))
    except (ValueError, RecursionError):
        return None


def _key_of(message: Message) -> _Key:
    return message.capture, message.method or "", message.id or ""


def _key(capture: int, value: dict[str, Any]) -> _Key:
    method, id = value.get("method"), value.get("id")
    token = "" if "id" not in value else json.dumps(id, ensure_ascii=False)
    return capture, method if isinstance(method, str) else "", token


# --- Finding it in a line ---


def _in_line(log: Log) -> Iterator[_Found]:
    """The quotes in a line: none, one, or some."""
    if len(log.raw) > MAX_LINE_BYTES:
        return
    text = line_text(log.raw)
    at, gave_up = text.find("{"), False
    for _ in range(MAX_TRIES):
        if at < 0:
            return
        found = _json(text, at)
        if found is None and not gave_up and text.startswith("{'", at):
            found = _printed(text, at)
            gave_up = found is None  # it may have read to the end of the line: once is enough
        value, end = found or (None, at + 1)
        if isinstance(value, dict) and ("jsonrpc" in value or "method" in value or "id" in value):
            digest = _digest(value)
            if digest is not None:
                yield _Found(log, _key(log.capture, value), digest, at, end)
        at = text.find("{", end)


def _json(text: str, at: int) -> tuple[Any, int] | None:
    try:
        return _decoder.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None


_words: Final = re.compile(r"""\s*([{}\[\],:()]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:()'"]+)""", re.DOTALL).match
_escapes: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL).sub
_WORDS: Final = {"True": "true", "False": "false", "None": "null", "(": "[", ")": "]"}
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


def _printed(text: str, at: int) -> tuple[Any, int] | None:
    """A value as Python prints it, and where it ends: `{'id': 1, 'params': None}`."""
    depth, words = 0, []
    while (found := _words(text, at)) is not None:
        word, at = found[1], found.end()
        depth += (word in "{[(") - (word in "}])")
        words.append(json.dumps(_escapes(_letter, word[1:-1])) if word[0] in "'\"" else _WORDS.get(word, word))
        if depth == 0:
            parsed = _json("".join(words), 0)
            return None if parsed is None else (parsed[0], at)
    return None


def _letter(escape: re.Match[str]) -> str:
    letter = escape[1]
    if letter in _LETTERS:
        return _LETTERS[letter]
    if len(letter) > 1 and (code := int(letter[1:], 16)) < 0x110000:
        return chr(code)
    return escape[0]

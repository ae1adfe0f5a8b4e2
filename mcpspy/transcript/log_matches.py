"""Lines of a server's log to the messages that they quote: the same JSON by value, or the same value as Python prints it.

The work is linear in the bytes: only lines with a `{` are read, and only messages that one of them may quote are parsed, each once. A
quotation that was cut short matches nothing.
"""

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from ..lazy_pattern import lazy_pattern
from ..records import CLIENT
from .digests import json_digest
from .model import Exchange, Kind, Log, Message, Row, UnpairedMessage

MAX_LINE_BYTES: Final = 1 << 20
"""The longest line of a log that is searched."""

MAX_TRIES: Final = 8
"""The number of `{` in a line that are tried as the beginning of a quotation, from the first on."""

LineKey: TypeAlias = tuple[int, int]
"""A line of a log: the index of its capture, and its record."""

_Key: TypeAlias = tuple[int, str, str]
"""Capture, method and id, by which quotations and messages are compared before their whole values are."""


class LogMatch(NamedTuple):
    """A message that a line of a log quotes, and its row. `begin` and `end` are the quotation's offsets in the line's text.

    `gap_ns` is the time from the message to the line; negative if the server logs before it sends.
    """

    row: int
    message: Message
    gap_ns: int
    begin: int
    end: int


class _Quotation(NamedTuple):
    """A JSON object in a line, which may be a message."""

    log: Log
    key: _Key
    digest: bytes
    begin: int
    end: int


def log_matches(rows: Iterable[Row]) -> dict[LineKey, LogMatch]:
    """Return the message that each line of a log among `rows` quotes, if it quotes one of `rows`."""
    rows = list(rows)
    quotations = [quotation for row in rows if isinstance(row, Log) and b"{" in row.raw for quotation in _quotations(row)]
    if not quotations:
        return {}
    keys = {quotation.key for quotation in quotations}
    by_digest: dict[tuple[int, bytes], list[tuple[int, Message]]] = defaultdict(list)
    for number, message in _messages(rows):
        if _key_of(message) in keys and (digest := _digest_of(message)) is not None:
            by_digest[message.capture, digest].append((number, message))
    for equal in by_digest.values():
        equal.sort(key=_time)
    matches: dict[LineKey, LogMatch] = {}
    for quotation in quotations:
        log = quotation.log
        nearest = _nearest(log, by_digest.get((log.capture, quotation.digest), []))
        if nearest is not None:
            number, message = nearest
            match = LogMatch(number, message, log.at_ns - message.at_ns, quotation.begin, quotation.end)
            matches.setdefault((log.capture, log.number), match)
    return matches


def line_text(raw: bytes) -> str:
    """Return the text of a line of a log, in which the offsets of a match count."""
    return raw.rstrip(b"\r\n").decode("utf-8", "backslashreplace")


def _messages(rows: Iterable[Row]) -> Iterator[tuple[int, Message]]:
    for row in rows:
        if isinstance(row, Exchange):
            yield row.row, row.request
            if row.response is not None:
                yield row.row, row.response
            for message in row.notifications:
                yield row.row, message
            for message in row.more_responses:
                yield row.row, message
        elif isinstance(row, UnpairedMessage) and row.message.kind is not Kind.MALFORMED:
            yield row.row, row.message


def _nearest(log: Log, equal: list[tuple[int, Message]]) -> tuple[int, Message] | None:
    """Return the nearest in time of equal messages. A server cannot quote what the client sends later."""
    after = bisect_right(equal, log.at_ns, key=_time)
    before = equal[after - 1] if after else None
    coming = next((pair for pair in islice(equal, after, after + 1) if pair[1].sender != CLIENT), None)
    if before is None or coming is None:
        return before or coming
    return min(before, coming, key=lambda pair: abs(pair[1].at_ns - log.at_ns))


def _time(pair: tuple[int, Message]) -> int:
    return pair[1].at_ns


# --- Digests of values, whatever their spelling and the order of their members ---


def _number(text: str) -> int | float:
    """Return `1` for `1.0`, as every language with one kind of number does."""
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
        return json_digest(_decoder.decode(text))
    except (ValueError, RecursionError):
        return None


def _key_of(message: Message) -> _Key:
    return message.capture, message.method or "", message.id or ""


def _key(capture: int, value: dict[str, Any]) -> _Key:
    method, id = value.get("method"), value.get("id")
    id_key = "" if "id" not in value else json.dumps(id, ensure_ascii=False)
    return capture, method if isinstance(method, str) else "", id_key


# --- Quotations in a line ---


def _quotations(log: Log) -> Iterator[_Quotation]:
    """Yield the objects in a line that may be messages."""
    if len(log.raw) > MAX_LINE_BYTES:
        return
    text = line_text(log.raw)
    at, gave_up = text.find("{"), False
    for _ in range(MAX_TRIES):
        if at < 0:
            return
        parsed = _json(text, at)
        if parsed is None and not gave_up and text.startswith("{'", at):
            parsed = _printed(text, at)
            gave_up = parsed is None  # it may have read to the end of the line: once is enough
        value, end = parsed or (None, at + 1)
        if isinstance(value, dict) and ("jsonrpc" in value or "method" in value or "id" in value):
            digest = json_digest(value)
            if digest is not None:
                yield _Quotation(log, _key(log.capture, value), digest, at, end)
        at = text.find("{", end)


def _json(text: str, at: int) -> tuple[Any, int] | None:
    try:
        return _decoder.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None


_words: Final = lazy_pattern(r"""\s*([{}\[\],:()]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:()'"]+)""", re.DOTALL)
_escapes: Final = lazy_pattern(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_WORDS: Final = {"True": "true", "False": "false", "None": "null", "(": "[", ")": "]"}
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


def _printed(text: str, at: int) -> tuple[Any, int] | None:
    """Return a value that Python printed, and where it ends: `{'id': 1, 'params': None}`."""
    depth, words = 0, []
    while (match := _words.match(text, at)) is not None:
        word, at = match[1], match.end()
        depth += (word in "{[(") - (word in "}])")
        words.append(json.dumps(_escapes.sub(_letter, word[1:-1])) if word[0] in "'\"" else _WORDS.get(word, word))
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

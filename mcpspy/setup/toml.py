"""A parser of TOML into values with their positions. `tomllib` reads the text first, so only valid texts are parsed here.

A table may be written under a header, with dotted keys, or within braces; its lines may be in several parts of the file.
"""

import re
import tomllib
from dataclasses import dataclass
from typing import Any

from ..lazy_pattern import lazy_pattern
from .spans import Member, Unreadable, Value, unreadable

BLANK = lazy_pattern(r"(?:[ \t\r\n]++|#[^\r\n]*+)*+")
SPACE = lazy_pattern(r"[ \t]*+")
BARE = lazy_pattern(r"[A-Za-z0-9_-]++")
OTHER = lazy_pattern(r"[^,\]}#\r\n]++")
STRINGS = (
    lazy_pattern(r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}', re.DOTALL),
    lazy_pattern(r"'''(?:[^']|'{1,2}(?!'))*+'{3,5}"),
    lazy_pattern(r'"(?:[^"\\\r\n]|\\.)*+"'),
    lazy_pattern(r"'[^'\r\n]*+'"),
)

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlLine:
    """One `key = value` of a file, and the whole path that it sets. `table_at` is where its table's header begins; -1 without one."""

    path: Path
    member: Member
    table_at: int


def lines(text: str) -> list[TomlLine]:
    """Read every `key = value` outside braces, in order, without those under `[[headers]]`. Raises: Unreadable."""
    begin = 1 if text.startswith("\ufeff") else 0
    _validate(text[begin:])
    read: list[TomlLine] = []
    table: Path | None = ()
    table_at = -1
    arrays: set[Path] = set()
    at = match_end(BLANK, text, begin)
    while at < len(text):
        if text[at] == "[":
            many = text.startswith("[[", at)
            table_at = at
            path, _, at = _key(text, match_end(SPACE, text, at + 1 + many))
            at = match_end(SPACE, text, at) + 1 + many
            if many:
                arrays.add(path)
            table = None if any(path[:n] in arrays for n in range(1, len(path) + 1)) else path
        else:
            member, path = _member(text, at)
            if table is not None:
                read.append(TomlLine(path=table + path, member=member, table_at=table_at))
            at = member.value.end
        at = match_end(BLANK, text, at)
    return read


def _validate(text: str) -> None:
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Unreadable(str(error)) from error


def match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a match at `at` ends; `at` if there is none."""
    match = pattern.match(text, at)
    return match.end() if match else at


def _key(text: str, at: int) -> tuple[Path, int, int]:
    """Read the parts of a key. Returns them, the begin of the last part, and the end."""
    parts: list[str] = []
    while True:
        last = at
        if text[at] in "\"'":
            value = _string(text, at)
            parts.append(value.string)
            at = value.end
        else:
            at = match_end(BARE, text, at)
            parts.append(text[last:at])
        dot = match_end(SPACE, text, at)
        if not text.startswith(".", dot):
            return tuple(parts), last, at
        at = match_end(SPACE, text, dot + 1)


def _member(text: str, start: int) -> tuple[Member, Path]:
    path, last, end = _key(text, start)
    equals = match_end(SPACE, text, end)
    value = _value(text, match_end(SPACE, text, equals + 1))
    return Member(key=path[-1], start=start, value=value, before=text[start:last]), path


def _value(text: str, at: int) -> Value:
    sign = text[at]
    if sign in "\"'":
        return _string(text, at)
    if sign == "[":
        return _array(text, at)
    if sign == "{":
        return _braces(text, at)
    end = match_end(OTHER, text, at)
    return Value(start=at, end=at + len(text[at:end].rstrip()), kind="other")


def _string(text: str, at: int) -> Value:
    for pattern in STRINGS:
        match = pattern.match(text, at)
        if match:
            string: Any = tomllib.loads(f"v = {match[0]}")["v"]
            return Value(start=at, end=match.end(), kind="string", string=string)
    raise unreadable(text, at, "not a TOML string")


def _array(text: str, start: int) -> Value:
    items: list[Value] = []
    at = match_end(BLANK, text, start + 1)
    while text[at] != "]":
        items.append(_value(text, at))
        at = _after(text, items[-1].end)
    return Value(start=start, end=at + 1, kind="array", items=tuple(items))


def _braces(text: str, start: int) -> Value:
    members: list[Member] = []
    at = match_end(BLANK, text, start + 1)
    while text[at] != "}":
        member, path = _member(text, at)
        members.append(nested(member, path))
        at = _after(text, member.value.end)
    return Value(start=start, end=at + 1, kind="object", members=tuple(members))


def nested(member: Member, path: Path) -> Member:
    """Turn a dotted key, or a key below a table, into nested tables."""
    for part in reversed(path[:-1]):
        inner = Value(start=member.start, end=member.value.end, kind="dotted", members=(member,))
        member = Member(key=part, start=member.start, value=inner)
    return member


def _after(text: str, end: int) -> int:
    at = match_end(BLANK, text, end)
    return match_end(BLANK, text, at + 1) if text[at] == "," else at

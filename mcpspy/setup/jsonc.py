"""A parser of JSON with comments and trailing commas, as clients' files have it, into values with their positions.

It accepts what VS Code accepts. Edits add neither comments nor trailing commas, so plain JSON stays plain.

Claude Code keeps megabytes of history in its file. Values that cannot contain servers are skipped with the standard library's
reader, which is in C; only if that fails, they are parsed here. Wrapping a file of 6 MB takes 0.8 s, instead of seven.
"""

import json
import re
from functools import lru_cache

from ..lazy_pattern import lazy_pattern
from .spans import Member, Value, unreadable

BLANK = lazy_pattern(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL)
"""White space and comments."""

STRING = lazy_pattern(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+"')
OTHER = lazy_pattern(r"(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+|true|false|null)(?![\w.+-])")

MAX_DEPTH = 200
"""The deepest nesting of objects and arrays, far more than any configuration has, and far from the end of our stack."""

Keys = tuple[str, ...]
ANY = "*"
"""In keys: every key, as in the projects of Claude Code."""


@lru_cache(maxsize=4)
def parse(text: str, keys: Keys = ()) -> Value:
    """Parse a document; with `keys`, only the values along that path and below it: others get neither members nor items.

    The last results are cached, because wrapping reads a text several times. Raises: Unreadable.
    """
    begin = 1 if text.startswith("\ufeff") else 0
    value = _value(text, _blank(text, begin), 0, keys)
    rest = _blank(text, value.end)
    if rest != len(text):
        raise unreadable(text, rest, "there is more text after the end")
    return value


def _refuse(constant: str) -> None:
    """Reject NaN and Infinity, which Python reads but JSON does not have."""
    raise ValueError(constant)


PLAIN = json.JSONDecoder(parse_constant=_refuse)


def _blank(text: str, at: int) -> int:
    match = BLANK.match(text, at)
    end = match.end() if match else at
    if text.startswith("/*", end):
        raise unreadable(text, end, "a comment is not closed")
    return end


def _value(text: str, at: int, depth: int, keys: Keys) -> Value:
    if depth > MAX_DEPTH:
        raise unreadable(text, at, "nested too deeply")
    sign = text[at : at + 1]
    if sign == "{":
        return _object(text, at, depth, keys)
    if sign == "[":
        return _array(text, at, depth)
    if sign == '"':
        return _string(text, at)
    match = OTHER.match(text, at)
    if not match:
        raise unreadable(text, at, "a value is missing" if at < len(text) else "the file ends too early")
    return Value(start=at, end=match.end(), kind="other")


def _string(text: str, at: int) -> Value:
    match = STRING.match(text, at)
    if not match:
        raise unreadable(text, at, "not a JSON string")
    string = match[0][1:-1] if "\\" not in match[0] else json.loads(match[0])
    return Value(start=at, end=match.end(), kind="string", string=string)


def _object(text: str, start: int, depth: int, keys: Keys) -> Value:
    members: list[Member] = []
    at = _blank(text, start + 1)
    while not text.startswith("}", at):
        if not text.startswith('"', at):
            raise unreadable(text, at, "a key or } is missing")
        key = _string(text, at)
        colon = _blank(text, key.end)
        if not text.startswith(":", colon):
            raise unreadable(text, colon, "a : is missing")
        begin = _blank(text, colon + 1)
        if keys and keys[0] not in (ANY, key.string):
            value = _skipped(text, begin, depth + 1)
        else:
            value = _value(text, begin, depth + 1, keys[1:])
        members.append(Member(key=key.string, start=at, value=value))
        at = _next(text, value.end, "}")
    return Value(start=start, end=at + 1, kind="object", members=tuple(members))


def _array(text: str, start: int, depth: int) -> Value:
    items: list[Value] = []
    at = _blank(text, start + 1)
    while not text.startswith("]", at):
        items.append(_value(text, at, depth + 1, ()))
        at = _next(text, items[-1].end, "]")
    return Value(start=start, end=at + 1, kind="array", items=tuple(items))


def _skipped(text: str, at: int, depth: int) -> Value:
    """Find the end of a value without its members or items."""
    try:
        end = PLAIN.raw_decode(text, at)[1]
    except (ValueError, RecursionError):
        return _value(text, at, depth, ())
    return Value(start=at, end=end, kind="other")


def _next(text: str, end: int, closing: str) -> int:
    """Find the begin of the next member or item, or the closing sign."""
    at = _blank(text, end)
    if text.startswith(",", at):
        return _blank(text, at + 1)
    if text.startswith(closing, at):
        return at
    raise unreadable(text, at, f"a , or {closing} is missing")

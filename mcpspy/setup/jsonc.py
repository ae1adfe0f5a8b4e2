"""JSON as clients' files have it, with comments and trailing commas, read into values that know where they stand.

Whoever wrote plain JSON gets plain JSON back: what is edited never gains a comment or a trailing comma. Refuses what VS Code
would not read either.
"""

import json
import re
from functools import lru_cache

from .spans import Member, Value, unreadable

BLANK = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL)
"""White space and comments."""

STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+"')
OTHER = re.compile(r"(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+|true|false|null)(?![\w.+-])")

MAX_DEPTH = 200
"""Objects and arrays in each other. Nobody's configuration comes near it, and our stack is far from its end."""


@lru_cache(maxsize=2)
def parse(text: str) -> Value:
    """The document. Raises: Unreadable.

    Kept for a while: wrapping reads a text several times, and Claude Code's file may have megabytes of history.
    """
    begin = 1 if text.startswith("\ufeff") else 0
    value = _value(text, _blank(text, begin), 0)
    rest = _blank(text, value.end)
    if rest != len(text):
        raise unreadable(text, rest, "something follows the end")
    return value


def _blank(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    end = found.end() if found else at
    if text.startswith("/*", end):
        raise unreadable(text, end, "a comment without an end")
    return end


def _value(text: str, at: int, depth: int) -> Value:
    if depth > MAX_DEPTH:
        raise unreadable(text, at, "nested too deeply")
    sign = text[at : at + 1]
    if sign == "{":
        return _object(text, at, depth)
    if sign == "[":
        return _array(text, at, depth)
    if sign == '"':
        return _string(text, at)
    found = OTHER.match(text, at)
    if not found:
        raise unreadable(text, at, "a value is missing" if at < len(text) else "the file ends too early")
    return Value(start=at, end=found.end(), kind="other")


def _string(text: str, at: int) -> Value:
    found = STRING.match(text, at)
    if not found:
        raise unreadable(text, at, "not a string of JSON")
    return Value(start=at, end=found.end(), kind="string", string=json.loads(found[0]))


def _object(text: str, start: int, depth: int) -> Value:
    members: list[Member] = []
    at = _blank(text, start + 1)
    while not text.startswith("}", at):
        if not text.startswith('"', at):
            raise unreadable(text, at, "a key or } is missing")
        key = _string(text, at)
        colon = _blank(text, key.end)
        if not text.startswith(":", colon):
            raise unreadable(text, colon, "a : is missing")
        value = _value(text, _blank(text, colon + 1), depth + 1)
        members.append(Member(key=key.string, start=at, value=value))
        at = _next(text, value.end, "}")
    return Value(start=start, end=at + 1, kind="object", members=tuple(members))


def _array(text: str, start: int, depth: int) -> Value:
    items: list[Value] = []
    at = _blank(text, start + 1)
    while not text.startswith("]", at):
        items.append(_value(text, at, depth + 1))
        at = _next(text, items[-1].end, "]")
    return Value(start=start, end=at + 1, kind="array", items=tuple(items))


def _next(text: str, end: int, closing: str) -> int:
    """Where the next member or item begins, or the closing sign stands."""
    at = _blank(text, end)
    if text.startswith(",", at):
        return _blank(text, at + 1)
    if text.startswith(closing, at):
        return at
    raise unreadable(text, at, f"a , or {closing} is missing")

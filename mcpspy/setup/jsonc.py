"""JSON as clients' files have it, with comments and trailing commas, read into values that know where they stand.

Whoever wrote plain JSON gets plain JSON back: what is edited never gains a comment or a trailing comma. Refuses what VS Code
would not read either.

Claude Code keeps megabytes of history in its file: what stands where no server can is passed by with the standard library's reader,
in C, and taken apart only where that does not like it. To wrap a file of 6 MB takes 0.8 s so, all told, and took seven.
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

Keys = tuple[str, ...]
ANY = "*"
"""Among keys: every key, as in the projects of Claude Code."""


@lru_cache(maxsize=4)
def parse(text: str, way: Keys = ()) -> Value:
    """The document; all of it, or what stands on the `way` and behind it: other values then have neither members nor items.

    Kept for a while: wrapping reads a text several times. Raises: Unreadable.
    """
    begin = 1 if text.startswith("\ufeff") else 0
    value = _value(text, _blank(text, begin), 0, way)
    rest = _blank(text, value.end)
    if rest != len(text):
        raise unreadable(text, rest, "something follows the end")
    return value


def _refuse(constant: str) -> None:
    """NaN and Infinity are Python's, not JSON's."""
    raise ValueError(constant)


PLAIN = json.JSONDecoder(parse_constant=_refuse)


def _blank(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    end = found.end() if found else at
    if text.startswith("/*", end):
        raise unreadable(text, end, "a comment without an end")
    return end


def _value(text: str, at: int, depth: int, way: Keys) -> Value:
    if depth > MAX_DEPTH:
        raise unreadable(text, at, "nested too deeply")
    sign = text[at : at + 1]
    if sign == "{":
        return _object(text, at, depth, way)
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
    said = found[0][1:-1] if "\\" not in found[0] else json.loads(found[0])
    return Value(start=at, end=found.end(), kind="string", string=said)


def _object(text: str, start: int, depth: int, way: Keys) -> Value:
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
        if way and way[0] not in (ANY, key.string):
            value = _passed_by(text, begin, depth + 1)
        else:
            value = _value(text, begin, depth + 1, way[1:])
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


def _passed_by(text: str, at: int, depth: int) -> Value:
    """A value of which only the end is looked for."""
    try:
        end = PLAIN.raw_decode(text, at)[1]
    except (ValueError, RecursionError):
        return _value(text, at, depth, ())
    return Value(start=at, end=end, kind="other")


def _next(text: str, end: int, closing: str) -> int:
    """Where the next member or item begins, or the closing sign stands."""
    at = _blank(text, end)
    if text.startswith(",", at):
        return _blank(text, at + 1)
    if text.startswith(closing, at):
        return at
    raise unreadable(text, at, f"a , or {closing} is missing")

"""JSON of a model's API, read without trust: whatever a body or an event holds, the value that was hoped for or an empty one.

Refuses to know what the members mean, and to raise.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any, Final

import msgspec

from ...wire.json_spans import UNREADABLE
from ...wire.jsonrpc import parse

_COMPACT: Final = (",", ":")


def value(data: bytes) -> Any:
    """The JSON in these bytes, integers exact; None for what is none, and for `null`.

    By `json`, which keeps every digit of arguments: 3 µs for a delta, where msgspec takes 0.5 and makes floats of long integers.
    """
    return parse(data)


def members(of: Any) -> dict[str, Any]:
    """An object's members; none of another value."""
    return of if isinstance(of, dict) else {}


def items(of: Any) -> list[Any]:
    """An array's items; none of another value."""
    return of if isinstance(of, list) else []


def string(of: Any) -> str:
    """A string; empty for another value."""
    return of if isinstance(of, str) else ""


def integer(of: Any) -> int | None:
    """An integer; None for another value, a bool among them."""
    return of if isinstance(of, int) and not isinstance(of, bool) else None


def json_text(of: Any) -> str:
    """A value as the shortest JSON."""
    try:
        return msgspec.json.encode(of).decode()
    except (*UNREADABLE, OverflowError):
        pass
    try:
        return json.dumps(of, ensure_ascii=False, separators=_COMPACT)
    except UNREADABLE:
        return ""


def size_bytes(of: Any) -> int:
    """How long that is in UTF-8."""
    return len(json_text(of).encode("utf-8", "surrogatepass"))


def argument_text(of: Any) -> str:
    """Arguments as the APIs give them, JSON in a string; some servers give the object itself."""
    return of if isinstance(of, str) else "" if of is None else json_text(of)


def error_text(of: Any) -> str:
    """What an API says went wrong, as `kind: message`; empty if this says nothing of the kind.

    OpenAI and Anthropic have `{"error": {"type", "message"}}`; their likes also `{"error": "…"}`, `{"message"}` and `{"detail"}`.
    """
    body = members(of)
    said = body.get("error")
    if said is None or said is False:
        return ""
    if isinstance(said, str):
        return said or "an error without a word"
    kind = string(members(said).get("type")) or string(members(said).get("code"))
    text = string(members(said).get("message")) or (json_text(said) if not kind else "")
    return ": ".join(part for part in (kind, text) if part)


def refusal_text(of: Any, body: bytes) -> str:
    """The same of the body of a response with a status of 400 or more, which says it in some way."""
    found = error_text(of) or string(members(of).get("message")) or string(members(of).get("detail"))
    return found or body[:MAX_REFUSAL_BYTES].decode("utf-8", "replace").strip()


MAX_REFUSAL_BYTES: Final = 300
"""So much is told of a refusal that is in no known form, often a page of HTML."""


MAX_EXACT: Final = 2**53
"""Up to here a double is exact: 1.0 and 1 are the same number."""

NOTHING: Final = ("", "null")
"""How APIs spell that there are no arguments, besides an empty object."""


def read(text: str) -> tuple[bool, Any]:
    """Whether a text is JSON, and its value."""
    try:
        return True, json.loads(text, parse_float=_number)
    except (ValueError, RecursionError):
        return False, None


def read_arguments(text: str) -> tuple[bool, Any]:
    """The same of a tool's arguments: none at all are an empty object."""
    return (True, {}) if text.strip() in NOTHING else read(text)


def value_key(text: str) -> bytes:
    """Equal for texts of equal values: neither the order of members counts, nor how a number or a letter is spelled."""
    is_json, value = read_arguments(text)
    if is_json:
        try:
            return _digest(json.dumps(value, sort_keys=True))
        except (ValueError, TypeError, RecursionError):
            pass
    return _digest(f"no JSON: {text}")


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _number(digits: str) -> int | float:
    value = float(digits)
    return int(value) if value.is_integer() and abs(value) < MAX_EXACT else value

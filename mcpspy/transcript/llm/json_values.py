"""JSON of model APIs: read so that nothing raises, and compared by value.

A member that is missing or of another type reads as an empty value. Two texts are equal by value however a client has rewritten them;
a text that is not JSON equals only the same text. What the members mean is left to `chat`, `responses` and `messages`.
"""

import json
from typing import Any, Final

import msgspec

from ...wire.json_spans import UNREADABLE
from ...wire.jsonrpc import parse
from ..digests import digest, json_digest

MAX_REFUSAL_BYTES: Final = 300
"""Bytes shown of an error body in no known form, often a page of HTML."""

MAX_EXACT: Final = 2**53
"""Up to here a double is exact: 1.0 and 1 are the same number."""

NO_ARGUMENTS: Final = ("", "null")
"""Texts by which APIs write that there are no arguments, besides an empty object."""

_COMPACT: Final = (",", ":")


def json_value(data: bytes) -> Any:
    """Parse JSON, keeping integers exact; None for bytes that are not JSON, and for `null`.

    By `json`, which keeps every digit of arguments: 3 µs for a delta, where msgspec takes 0.5 and makes floats of long integers.
    """
    return parse(data)


def members(value: Any) -> dict[str, Any]:
    """Return an object's members; none for a value of another type."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Return an array's items; none for a value of another type."""
    return value if isinstance(value, list) else []


def string(value: Any) -> str:
    """Return a string; an empty one for a value of another type."""
    return value if isinstance(value, str) else ""


def integer(value: Any) -> int | None:
    """Return an integer; None for a value of another type, including a bool."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def json_text(value: Any) -> str:
    """Write a value as the shortest JSON."""
    try:
        return msgspec.json.encode(value).decode()
    except (*UNREADABLE, OverflowError):
        pass
    try:
        return json.dumps(value, ensure_ascii=False, separators=_COMPACT)
    except UNREADABLE:
        return ""


def size_bytes(value: Any) -> int:
    """Measure a value as the shortest JSON in UTF-8."""
    return len(json_text(value).encode("utf-8", "surrogatepass"))


def argument_text(value: Any) -> str:
    """Return a tool's arguments as JSON text, which is how the APIs write them; some servers write the object itself."""
    return value if isinstance(value, str) else "" if value is None else json_text(value)


def error_text(value: Any) -> str:
    """Return the error in a body or an event as `kind: message`; empty if it holds none.

    OpenAI and Anthropic have `{"error": {"type", "message"}}`; other servers also `{"error": "…"}`, `{"message"}` and `{"detail"}`.
    """
    error = members(value).get("error")
    if error is None or error is False:
        return ""
    if isinstance(error, str):
        return error or "an error without a message"
    kind = string(members(error).get("type")) or string(members(error).get("code"))
    text = string(members(error).get("message")) or (json_text(error) if not kind else "")
    return ": ".join(part for part in (kind, text) if part)


def refusal_text(value: Any, body: bytes) -> str:
    """Return the error in the body of a response with a status of 400 or more, which is an error in whatever form."""
    text = error_text(value) or string(members(value).get("message")) or string(members(value).get("detail"))
    return text or body[:MAX_REFUSAL_BYTES].decode("utf-8", "replace").strip()


def read_json(text: str) -> tuple[bool, Any]:
    """Parse a text: True and its value, or False and None if it is not JSON."""
    try:
        return True, json.loads(text, parse_float=_number)
    except (ValueError, RecursionError):
        return False, None


def read_arguments(text: str) -> tuple[bool, Any]:
    """Parse a tool's arguments, as `read_json` does; no arguments at all are an empty object."""
    return (True, {}) if text.strip() in NO_ARGUMENTS else read_json(text)


def value_key(text: str) -> bytes:
    """Digest arguments by value: the order of members does not count, nor how a number or a letter is spelled."""
    is_json, value = read_arguments(text)
    return (json_digest(value) if is_json else None) or digest("no JSON", text)


def _number(digits: str) -> int | float:
    value = float(digits)
    return int(value) if value.is_integer() and abs(value) < MAX_EXACT else value

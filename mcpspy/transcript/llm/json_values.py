"""JSON compared by value: arguments that a client has parsed and written anew are the same all the same.

Refuses to raise: what is no JSON is equal to the same text alone.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any, Final

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

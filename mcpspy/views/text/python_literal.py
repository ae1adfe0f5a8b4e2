"""JSON values as Python literals: captured text made harmless for a module of Python, as `escape` does for other media.

What `ast.literal_eval` reads of a literal equals the value. Refuses what has no literal: NaN, infinities, and nesting too deep for
Python's own parser.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

MAX_DEPTH: Final = 60
"""CPython's parser takes 200 nested brackets; the code around a literal has some too."""

MAX_DIGITS: Final = 4_000
"""CPython refuses integers of more than 4,300."""

INDENT: Final = "    "


def has_literal(value: Any) -> bool:
    """Whether there is a literal for a value."""
    waiting = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > MAX_DEPTH or (isinstance(one, float) and not isfinite(one)):
            return False
        if isinstance(one, int) and one.bit_length() > MAX_DIGITS * 3:
            return False
        if isinstance(one, list | dict):
            waiting.extend((inner, depth + 1) for inner in (one.values() if isinstance(one, dict) else one))
    return True


def literal(value: Any, *, indent: str = "", cells: int = 100, before: int = 0) -> str:
    """The literal of a value that has one. Lines but the first begin with `indent`, and `before` letters stand before that.

    A line is longer than `cells` if it has to be.
    """
    if isinstance(value, str):
        return quoted(value)
    if not isinstance(value, dict | list):
        return repr(value)
    flat = _flat(value)
    if len(indent) + before + len(flat) <= cells or not value:
        return flat
    inner = indent + INDENT
    if isinstance(value, list):
        lines = [literal(one, indent=inner, cells=cells) for one in value]
        return "\n".join(["[", *(f"{inner}{line}," for line in lines), f"{indent}]"])
    members = [f"{quoted(name)}: {literal(one, indent=inner, cells=cells)}" for name, one in value.items()]
    return "\n".join(["{", *(f"{inner}{line}," for line in members), f"{indent}}}"])


def text_literal(text: str, *, indent: str = "", cells: int = 100) -> str:
    """The literal of a text, in brackets and line by line where it has several that do not fit."""
    pieces = text.splitlines(keepends=True)
    if len(pieces) < 2 or len(indent) + len(quoted(text)) <= cells:
        return quoted(text)
    return "\n".join(["(", *(f"{indent}{INDENT}{quoted(one)}" for one in pieces), f"{indent})"])


def quoted(text: str) -> str:
    """A string literal, in double quotes where that takes no backslash more. What is not printable is escaped."""
    made = repr(text)
    return made if made[0] == '"' or '"' in made else f'"{made[1:-1]}"'


def _flat(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_flat, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(name)}: {_flat(one)}" for name, one in value.items()) + "}"
    return repr(value)

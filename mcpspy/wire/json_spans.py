"""Where values stand in the bytes of a JSON message, so that one of them can be exchanged and all others stay as they were written.

Stands on Python's `json` alone, whose scanner says where a value ends; what it cannot read has no places. Refuses to change bytes.
"""

import json
from collections.abc import Sequence
from typing import Final, TypeAlias

from .json_slices import Refusal, end_of_space, skip_value

Place: TypeAlias = tuple[int, int]
"""The first byte of a value, and the byte behind its last."""

_name = json.JSONDecoder().raw_decode


def place(payload: bytes, path: Sequence[str | int]) -> Place | None:
    """Where the value at `path` stands: members by name, of equal names the last, and items by index. None where there is none."""
    # In latin-1 each byte is one character, so offsets in the text are offsets in the bytes.
    text = payload.decode("latin-1")
    at = end_of_space(text, len(_BOM) if text.startswith(_BOM) else 0)
    found: Place | None = at, len(text)
    try:
        for step in path:
            if found is None:
                return None
            found = _member(text, found[0], step) if isinstance(step, str) else _item(text, found[0], step)
    except (*Refusal, IndexError):
        return None
    return found


_BOM: Final = b"\xef\xbb\xbf".decode("latin-1")


def _member(text: str, at: int, wanted: str) -> Place | None:
    """Where the value of a member of the object at `at` stands. Raises: ValueError, IndexError: where it is no sound object."""
    found = None
    if text[at] != "{":
        return None
    at = end_of_space(text, at + 1)
    while text[at] == '"':
        name, at = _name(text, at)
        at = end_of_space(text, at)
        if text[at] != ":":
            raise ValueError(f"no : at {at}")
        start = end_of_space(text, at + 1)
        end = skip_value(text, start)
        if name == wanted:
            found = start, end
        at = end_of_space(text, end)
        if text[at] != ",":
            break
        at = end_of_space(text, at + 1)
    return found


def _item(text: str, at: int, index: int) -> Place | None:
    """Where an item of the array at `at` stands. Raises: ValueError, IndexError: where it is no sound array."""
    if text[at] != "[" or index < 0:
        return None
    at = end_of_space(text, at + 1)
    if text[at] == "]":
        return None
    while True:
        start, end = at, skip_value(text, at)
        at = end_of_space(text, end)
        if index == 0:
            return start, end
        if text[at] != ",":
            return None
        index -= 1
        at = end_of_space(text, at + 1)

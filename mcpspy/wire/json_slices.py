"""Raw slices of JSON: the members of an object and the items of an array, as the bytes they were written in.

Two readers stand behind each function: msgspec, which is fast, and Python's `json`, which takes what msgspec refuses (lone
surrogates, NaN, invalid UTF-8). Numbers are never converted, so that 30 digits stay 30 digits. Refuses to hold values.
"""

import json
import re
from typing import Final, TypeAlias

import msgspec

Slice: TypeAlias = bytes | msgspec.Raw
"""Bytes of one JSON value; the functions of this module take them and give them."""

WHITESPACE: Final = b" \t\n\r"
"""What JSON counts as white space (RFC 8259, section 2): `bytes.strip` alone would take more."""

Refusal: Final = (ValueError, RecursionError)
"""What the readers raise: msgspec's and json's errors and UnicodeDecodeError are ValueErrors."""

_fast_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_fast_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_fast_string = msgspec.json.Decoder(str).decode
_fast_value = msgspec.json.Decoder(msgspec.Raw).decode
_skip = re.compile(r"[ \t\n\r]*").match
_surrogates = re.compile("[\ud800-\udfff]").sub


def members(value: Slice) -> dict[str, Slice]:
    """The members of an object by name, the last of equal names; empty for every other value."""
    try:
        return _fast_members(value)  # type: ignore[return-value]  # Raw is a Slice, and nobody writes into the dict
    except Refusal:
        pass
    try:
        return scanned_members(bytes(value))
    except Refusal:
        return {}


def is_json(value: Slice) -> bool:
    """Whether it is one value of JSON for the fast reader, which takes no NaN and does not look whether strings are UTF-8."""
    try:
        _fast_value(value)
    except Refusal:
        return False
    return True


def string(value: Slice) -> str | None:
    """The string that a value is; None for every other value. Invalid UTF-8 becomes U+FFFD, as in both official SDKs."""
    try:
        return _fast_string(value)
    except Refusal:
        pass
    try:
        found = json.loads(bytes(value).decode("utf-8", "replace"))
    except Refusal:
        return None
    return found if isinstance(found, str) else None


def token(value: Slice) -> str:
    """A value as the text by which it is compared: a string in its shortest spelling, everything else as it was spelled."""
    text = str(value, "utf-8", "replace")
    if "\\" not in text or text[0] != '"':
        return text
    found = string(value)
    return text if found is None else _surrogates(_escape, json.dumps(found, ensure_ascii=False))


def _escape(surrogate: re.Match[str]) -> str:
    return f"\\u{ord(surrogate[0]):04x}"


def items(value: bytes) -> list[Slice]:
    """The items of an array. Raises ValueError or RecursionError where there is none that both readers could read."""
    try:
        return _fast_items(value)  # type: ignore[return-value]  # Raw is a Slice, and nobody writes into the list
    except Refusal:
        return [item for _, item in _scan(value, "[", "]")]


def scanned_members(value: bytes) -> dict[str, Slice]:
    """What `members` gives, by the slow reader alone. Raises ValueError or RecursionError where there is no object."""
    return {string(name) or "": item for name, item in _scan(value, "{", "}")}


def anomalies(value: bytes) -> tuple[str, ...]:
    """What strict readers refuse in a value that the slow reader has read: `nan` (or an infinity), `lone-surrogate`."""
    constants: list[str] = []
    text = value.decode("utf-8", "replace")
    found = json.loads(text, parse_int=str, parse_float=str, parse_constant=constants.append)
    odd = ["nan"] if constants else []
    if _surrogates("", again := json.dumps(found, ensure_ascii=False)) != again:
        odd.append("lone-surrogate")
    return tuple(odd)


class TrailingDataError(ValueError):
    """A value is followed by something that is not white space."""


def check(value: bytes) -> None:
    """Raise what `items` and `scanned_members` would if `value` were one of theirs: for values that are neither."""
    text = value.decode("latin-1")
    _, at = _value(text, end_of_space(text, 0))
    _check_end(text, at)


# In latin-1 each byte is one character and JSON's own characters are where they were, so offsets in the text are offsets in
# the bytes, whatever the bytes inside strings are.
_value = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode


def _scan(value: bytes, opening: str, closing: str) -> list[tuple[bytes, bytes]]:
    """Name and value of each member of an object; of each item of an array, with an empty name."""
    text = value.decode("latin-1")
    at = _expect(text, end_of_space(text, 0), opening)
    found: list[tuple[bytes, bytes]] = []
    if text[at : at + 1] == closing:
        _check_end(text, at + 1)
        return found
    while True:
        name = b""
        if opening == "{":
            _expect(text, at, '"')
            _, end = _value(text, at)
            name = value[at:end]
            at = _expect(text, end_of_space(text, end), ":")
        _, end = _value(text, at)
        found.append((name, value[at:end]))
        at = end_of_space(text, end)
        if text[at : at + 1] == closing:
            _check_end(text, at + 1)
            return found
        at = _expect(text, at, ",")


def skip_value(text: str, at: int) -> int:
    """The offset behind the JSON value at `at` of a text in latin-1. Raises ValueError or RecursionError where there is none."""
    return _value(text, at)[1]


def end_of_space(text: str, at: int) -> int:
    """The offset of the first character from `at` on that is no white space."""
    space = _skip(text, at)
    return at if space is None else space.end()


def _expect(text: str, at: int, character: str) -> int:
    """The offset of what follows `character` and white space."""
    if text[at : at + 1] != character:
        raise ValueError(f"no {character} at {at}")
    return end_of_space(text, at + 1)


def _check_end(text: str, at: int) -> None:
    if end_of_space(text, at) != len(text):
        raise TrailingDataError(f"more after the value, at {at}")

"""Canonical JSON: values as replay compares them, by meaning and not by spelling.

The order of members does not count. Of members with one name the last counts. `1.0` and `1e0` are `1`. Integers are exact; fractions
are the doubles that clients and servers make of them. A digest stands for a value that is nested too deep, so recursive functions
may walk what `read` returns.
"""

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal, NamedTuple

from ...lazy_pattern import lazy_pattern

MAX_LEVELS: Final = 100
"""Python allows a thousand nested calls; honest peers nest a dozen levels at most."""

MAX_DIGITS: Final = 4000
"""By default Python converts at most 4,300 digits to an integer, since that takes quadratic time."""

_EXACT_DOUBLES: Final = 2**53

_brackets = lazy_pattern(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)


class UnrepresentableValue:
    """A value that Python's numbers, lists and dicts cannot hold. Two of the same kind and text are equal.

    A `number` has too many digits; a `constant` is `NaN` or an infinity, which is no JSON. The text of what is nested too `deep`, or
    cannot be read (`bytes`), is its SHA-256. Not a dataclass, which would delay a mock's first answer by 0.6 ms.
    """

    __slots__ = ("kind", "text")

    def __init__(self, kind: Literal["number", "constant", "deep", "bytes"], text: str) -> None:
        self.kind = kind
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnrepresentableValue) and (self.kind, self.text) == (other.kind, other.text)

    def __hash__(self) -> int:
        return hash((self.kind, self.text))

    def __repr__(self) -> str:
        return f"Odd({self.kind!r}, {self.text!r})"


class Reading(NamedTuple):
    """A value, and the names of members that an object in it has more than once."""

    value: Any
    repeated: tuple[str, ...] = ()


def read(raw: bytes) -> Any:
    """Read a value. Never raises."""
    if len(raw) <= MAX_DIGITS and b"\xef\xbb\xbf" not in raw and raw.count(b"[") + raw.count(b"{") <= MAX_LEVELS:
        try:
            return _read_short(raw.decode())
        except ValueError:
            pass
    return reading(raw).value


def reading(raw: bytes) -> Reading:
    """Read a value with its repeated members. Never raises."""
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    if _is_deep(text):
        return Reading(_digest("deep", raw))
    repeated: dict[str, None] = {}

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        by_name = dict(pairs)
        if len(by_name) < len(pairs):
            _note_repeated(pairs, repeated)
        return by_name

    try:
        value = json.loads(text, object_pairs_hook=members, parse_int=_integer, parse_float=_fraction, parse_constant=_constant)
    except ValueError:
        return Reading(_digest("bytes", raw))
    return Reading(value, tuple(repeated))


def canonical(value: Any) -> str:
    """Return a text that is equal for equal values, and for no others. Takes values of `read`."""
    return _write_canonical(value)


def is_same(before: Any, after: Any) -> bool:
    """Return whether two values mean the same. Python's `==` would take `true` for 1."""
    return before is after or (type(before) is type(after) and canonical(before) == canonical(after))


def readable_json(value: Any) -> str:
    """Write a value as JSON for people, in the order of its members. Not escaped, and not shortened."""
    return _write(value)


def embedded_json(text: str) -> Any:
    """Read the object or array that a text holds as JSON; None for any other text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    value = read(text.encode("utf-8", "surrogatepass"))
    return value if isinstance(value, dict | list) else None


def _digest(kind: Literal["deep", "bytes"], raw: bytes) -> UnrepresentableValue:
    from hashlib import sha256

    return UnrepresentableValue(kind, sha256(raw).hexdigest())


def _note_repeated(pairs: list[tuple[str, Any]], repeated: dict[str, None]) -> None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            repeated[name] = None
        seen.add(name)


def _is_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= MAX_LEVELS:
        return False
    level = 0
    for match in _brackets.finditer(text):
        bracket = match[0]
        if bracket in "[{":
            level += 1
            if level > MAX_LEVELS:
                return True
        elif bracket in "]}":
            level -= 1
    return False


def _integer(text: str) -> int | UnrepresentableValue:
    return int(text) if len(text.removeprefix("-")) <= MAX_DIGITS else _large(text)


def _fraction(text: str) -> int | float | UnrepresentableValue:
    number = float(text)
    if abs(number) < _EXACT_DOUBLES:
        return int(number) if number.is_integer() else number
    try:
        exact = Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        return UnrepresentableValue("number", text.lower())
    if exact.adjusted() >= MAX_DIGITS:
        return _large(text)
    return int(exact)  # doubles are too coarse for a fraction of such a number


def _large(text: str) -> UnrepresentableValue:
    """Spell a number of very many digits in one way: its digits and an exponent."""
    sign, digits, exponent = Decimal(text).as_tuple()
    written = "".join(map(str, digits))
    kept = written.rstrip("0")
    return UnrepresentableValue("number", f"{'-' * sign}{kept}e{int(exponent) + len(written) - len(kept)}")


def _constant(name: str) -> UnrepresentableValue:
    return UnrepresentableValue("constant", name)


def _replacement(value: object) -> dict[str, str]:
    """Return what replaces an UnrepresentableValue in canonical text: no peer's member begins like this."""
    assert isinstance(value, UnrepresentableValue)
    return {f"\0{value.kind}": value.text}


def _shown(value: object) -> str:
    assert isinstance(value, UnrepresentableValue)
    return value.text if value.kind in ("number", "constant") else f"<{value.kind}, sha256 {value.text[:12]}…>"


_read_short = json.JSONDecoder(parse_float=_fraction, parse_constant=_constant).decode
"""For texts too short for a number of too many digits: 6 µs for 140 bytes, and the other way takes 14 (CPython 3.11)."""

_write_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_replacement).encode
_write = json.JSONEncoder(ensure_ascii=False, default=_shown).encode

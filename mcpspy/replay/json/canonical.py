"""JSON values as replay compares them: by what they mean, not by how they were spelled.

The order of members counts for nothing, of members with one name the last one holds, `1.0` and `1e0` are `1`. Integers are exact
however long; fractions are the doubles that clients and servers make of them. Refuses to look into values nested too deep: their
digest stands for them. What `read` gives may be walked by functions that call themselves.
"""

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal, NamedTuple

MAX_LEVELS: Final = 100
"""Python allows a thousand calls within each other; no peer that means well nests more than a dozen levels."""

MAX_DIGITS: Final = 4000
"""Python converts no more than 4,300 digits to an integer unasked, since that takes quadratic time."""

_EXACT_DOUBLES: Final = 2**53

_brackets = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL).finditer


class UnrepresentableValue:
    """What JSON can say and Python's numbers, lists and dicts cannot hold: equal texts of one kind are equal values.

    A `number` has too many digits; a `constant` is `NaN` or an infinity, which is no JSON; what is nested too `deep`, or cannot be
    read (`bytes`), goes by its SHA-256. No dataclass, which a mock's first answer would wait 0.6 ms for.
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
    """A value, and the names of members that one object in it has more than once."""

    value: Any
    repeated: tuple[str, ...] = ()


def read(raw: bytes) -> Any:
    """The value that these bytes spell. Never raises."""
    if len(raw) <= MAX_DIGITS and b"\xef\xbb\xbf" not in raw and raw.count(b"[") + raw.count(b"{") <= MAX_LEVELS:
        try:
            return _read_short(raw.decode())
        except ValueError:
            pass
    return reading(raw).value


def reading(raw: bytes) -> Reading:
    """The same, with what is odd about how it was spelled."""
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    if _is_deep(text):
        return Reading(_digest("deep", raw))
    repeated: dict[str, None] = {}

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            _note_repeated(pairs, repeated)
        return made

    try:
        value = json.loads(text, object_pairs_hook=members, parse_int=_integer, parse_float=_fraction, parse_constant=_constant)
    except ValueError:
        return Reading(_digest("bytes", raw))
    return Reading(value, tuple(repeated))


def canonical(value: Any) -> str:
    """The text by which a value that `read` gave is compared: equal for equal values, and for no others."""
    return _write_canonical(value)


def same(before: Any, after: Any) -> bool:
    """Whether two values mean the same. Python's `==` would take `true` for 1."""
    return before is after or (type(before) is type(after) and canonical(before) == canonical(after))


def spelled(value: Any) -> str:
    """A value as JSON for people, in the order of its members. Not safe to be shown, and not shortened."""
    return _write(value)


def embedded(text: str) -> Any:
    """The object or array that a text holds as JSON; None for any other text."""
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
    for found in _brackets(text):
        sign = found[0]
        if sign in "[{":
            level += 1
            if level > MAX_LEVELS:
                return True
        elif sign in "]}":
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
    return int(exact)  # what such a number has behind its point is less than doubles can tell


def _large(text: str) -> UnrepresentableValue:
    """A number of very many digits: they and an exponent, in one spelling."""
    sign, digits, exponent = Decimal(text).as_tuple()
    written = "".join(map(str, digits))
    kept = written.rstrip("0")
    return UnrepresentableValue("number", f"{'-' * sign}{kept}e{int(exponent) + len(written) - len(kept)}")


def _constant(name: str) -> UnrepresentableValue:
    return UnrepresentableValue("constant", name)


def _marked(value: object) -> dict[str, str]:
    """What stands for an Odd in canonical text: no member of a peer's begins so."""
    assert isinstance(value, UnrepresentableValue)
    return {f"\0{value.kind}": value.text}


def _shown(value: object) -> str:
    assert isinstance(value, UnrepresentableValue)
    return value.text if value.kind in ("number", "constant") else f"<{value.kind}, sha256 {value.text[:12]}…>"


_read_short = json.JSONDecoder(parse_float=_fraction, parse_constant=_constant).decode
"""For what is too short to hold a number of too many digits: 6 µs for 140 bytes, where the other way takes 14 (CPython 3.11)."""

_write_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_marked).encode
_write = json.JSONEncoder(ensure_ascii=False, default=_shown).encode

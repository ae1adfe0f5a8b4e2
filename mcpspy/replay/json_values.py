"""JSON values as replay compares them, by meaning and not by spelling: read, walked, and with masks for what was redacted.

The order of members does not count. Of members with one name the last counts. `1.0` and `1e0` are `1`. Integers are exact;
fractions are the doubles that clients and servers make of them. A digest stands for a value that is nested too deep, so
recursive functions may walk what `read` returns. Walks give texts and numbers with the steps to each, and traits, which say
how similar two values are. Texts of content blocks that hold JSON are opened.

The original of a redacted value is unknown here. So a text with a pseudonym, `redacted-` and 12 hex digits, stands for every
text that is the same around it.
"""

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ..json_path import Step
from ..lazy_pattern import lazy_pattern
from ..records import PSEUDONYM_PATTERN
from .compare.ignore import Ignore

MAX_LEVELS: Final = 100
"""Python allows a thousand nested calls; honest peers nest a dozen levels at most."""

MAX_DIGITS: Final = 4000
"""By default Python converts at most 4,300 digits to an integer, since that takes quadratic time."""

_EXACT_DOUBLES: Final = 2**53

_brackets = lazy_pattern(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)

MAX_MASKS: Final = 32
"""The most different masks for one method; further requests are matched with their pseudonyms only."""

_split = lazy_pattern(PSEUDONYM_PATTERN)
_STAND_IN: Final = {"\0redacted": True}
_WHOLE_TEXT: Final = ("", "")
"""The text around a pseudonym that is alone."""

HOLDS_JSON: Final = "text"
"""The member of a content block, or of a resource's contents, whose text is opened."""

MAX_LEAVES: Final = 200
"""The most places of a value whose traits count."""

MAX_WORDS: Final = 50
"""The most words of a text that count."""

Scalar: TypeAlias = str | int | float
Leaf: TypeAlias = tuple[tuple["Step", ...], Scalar]


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


def is_redacted(text: str) -> bool:
    """Return whether a text holds a pseudonym."""
    return len(_split.split(text)) > 1


class RedactedText(NamedTuple):
    """A text with pseudonyms: the steps to it, and the texts before, between and after the pseudonyms."""

    steps: tuple[Step, ...]
    around: tuple[str, ...]


Mask = tuple[RedactedText, ...]
"""The redacted texts of one request, in the order of their steps."""


def mask_of(value: Any) -> Mask:
    """Find the redacted texts of a recorded value."""
    texts: list[RedactedText] = []
    waiting: list[tuple[tuple[Step, ...], Any]] = [((), value)]
    while waiting:
        steps, inner = waiting.pop()
        if isinstance(inner, dict):
            waiting.extend(((*steps, name), member) for name, member in inner.items())
        elif isinstance(inner, list):
            waiting.extend(((*steps, at), item) for at, item in enumerate(inner))
        elif isinstance(inner, str) and len(around := _split.split(inner)) > 1:
            texts.append(RedactedText(steps, tuple(around)))
    return tuple(sorted(texts, key=lambda text: [(isinstance(step, str), step) for step in text.steps]))


def with_stand_ins(value: Any, mask: Mask) -> Any | None:
    """Replace each text that fits the mask by a stand-in; None if one does not fit."""
    for text in mask:
        value = _with_stand_in(value, text.steps, text.around)
        if value is None:
            return None
    return value


def _with_stand_in(value: Any, steps: tuple[Step, ...], around: tuple[str, ...]) -> Any | None:
    if not steps:
        if isinstance(value, int | float) and around == _WHOLE_TEXT:  # a number that was redacted is a text now
            return _STAND_IN
        return _STAND_IN if isinstance(value, str) and _fits(value, around) else None
    first, *rest = steps
    if isinstance(first, str) and isinstance(value, dict) and first in value:
        inner = _with_stand_in(value[first], tuple(rest), around)
        return None if inner is None else {**value, first: inner}
    if isinstance(first, int) and isinstance(value, list) and first < len(value):
        inner = _with_stand_in(value[first], tuple(rest), around)
        return None if inner is None else [*value[:first], inner, *value[first + 1 :]]
    return None


def _fits(text: str, around: tuple[str, ...]) -> bool:
    """Return whether a text begins and ends with the first and last of these texts, and has something between any two of them."""
    first, *between, last = around
    if not text.startswith(first):
        return False
    at = len(first)
    for piece in between:
        start = text.find(piece, at + 1)
        if start < 0:
            return False
        at = start + len(piece)
    return text.endswith(last) and len(text) - len(last) > at


def leaves(value: Any, steps: tuple[Step, ...] = (), *, into_texts: bool = False) -> Iterator[Leaf]:
    """Yield every text and number below `steps`, in order; with `into_texts`, the leaves of JSON in texts in place of these."""
    waiting: list[tuple[tuple[Step, ...], Any]] = [(steps, value)]
    while waiting:
        here, inner = waiting.pop()
        if isinstance(inner, dict):
            waiting.extend(((*here, name), member) for name, member in reversed(inner.items()))
        elif isinstance(inner, list):
            waiting.extend(((*here, at), inner[at]) for at in range(len(inner) - 1, -1, -1))
        elif isinstance(inner, str):
            opened = embedded_json(inner) if into_texts and here[-1:] == (HOLDS_JSON,) and len(here) <= MAX_LEVELS else None
            if opened is None:
                yield here, inner
            else:
                waiting.append((here, opened))
        elif isinstance(inner, int | float) and not isinstance(inner, bool):
            yield here, inner


def named_leaves(value: Any, rules: Ignore) -> Iterator[Leaf]:
    """Yield the texts and numbers at, and below, the paths that rules name."""
    waiting: list[tuple[tuple[Step, ...], Any, Ignore | None]] = [((), value, rules)]
    while waiting:
        here, inner, rest = waiting.pop()
        if rest is None:
            yield from leaves(inner, here, into_texts=True)
            continue
        if not rest:
            continue
        if isinstance(inner, str) and here[-1:] == (HOLDS_JSON,) and len(here) <= MAX_LEVELS:
            inner = embedded_json(inner)
        if isinstance(inner, dict):
            waiting.extend(((*here, name), member, rest.into(name)) for name, member in reversed(inner.items()))
        elif isinstance(inner, list):
            waiting.extend(((*here, at), inner[at], rest.into(at)) for at in range(len(inner) - 1, -1, -1))


def value_at(value: Any, steps: tuple[Step, ...]) -> Any:
    """Return the value at these steps, opening texts that hold JSON; None if there is none."""
    for step in steps:
        if isinstance(value, str):
            value = embedded_json(value)
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def traits(value: Any) -> frozenset[str]:
    """Return the traits of a value: each leaf with its path, the paths alone, and the words of texts. Large values are cut."""
    leaf_traits: set[str] = set()
    waiting: list[tuple[str, Any]] = [("", value)]
    seen = 0
    while waiting and seen < MAX_LEAVES:
        path, inner = waiting.pop()
        seen += 1
        if isinstance(inner, dict):
            waiting.extend((f"{path}.{name}", member) for name, member in inner.items())
        elif isinstance(inner, list):
            waiting.extend((f"{path}[]", item) for item in inner[: MAX_LEAVES - seen])
        else:
            leaf_traits.add(path)
            leaf_traits.add(f"{path}={canonical(inner)}")
            if isinstance(inner, str):
                leaf_traits.update(f"{path}~{word}" for word in inner[: 20 * MAX_WORDS].replace("/", " ").split()[:MAX_WORDS])
    return frozenset(leaf_traits)


def similarity(first: frozenset[str], second: frozenset[str]) -> float:
    """Return how similar the traits of two values are, from 0 (nothing in common) to 1."""
    size = len(first) + len(second)
    return 2 * len(first & second) / size if size else 1.0

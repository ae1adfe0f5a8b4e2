"""The texts and numbers of a JSON value with the steps that lead to each. Takes values of `canonical.read`.

A text of a content block that holds JSON is looked into, as differences do. Refuses truth values and null: they are nobody's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .canonical import MAX_LEVELS, canonical, embedded

if TYPE_CHECKING:
    from ..compare.ignore import Ignore, Step


HOLDS_JSON: Final = "text"
"""The member of a content block, or of a resource's contents, whose text is looked into."""

Scalar: TypeAlias = str | int | float
Leaf: TypeAlias = tuple[tuple["Step", ...], Scalar]


def leaves(value: Any, steps: tuple[Step, ...] = (), *, into_texts: bool = False) -> Iterator[Leaf]:
    """Every text and number below `steps`, in order; with `into_texts` those of JSON in texts instead of the texts."""
    waiting: list[tuple[tuple[Step, ...], Any]] = [(steps, value)]
    while waiting:
        here, one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(((*here, name), inner) for name, inner in reversed(one.items()))
        elif isinstance(one, list):
            waiting.extend(((*here, at), one[at]) for at in range(len(one) - 1, -1, -1))
        elif isinstance(one, str):
            held = embedded(one) if into_texts and here[-1:] == (HOLDS_JSON,) and len(here) <= MAX_LEVELS else None
            if held is None:
                yield here, one
            else:
                waiting.append((here, held))
        elif isinstance(one, int | float) and not isinstance(one, bool):
            yield here, one


def named_leaves(value: Any, rules: Ignore) -> Iterator[Leaf]:
    """The texts and numbers at, and below, the places that rules name."""
    waiting: list[tuple[tuple[Step, ...], Any, Ignore | None]] = [((), value, rules)]
    while waiting:
        here, one, left = waiting.pop()
        if left is None:
            yield from leaves(one, here, into_texts=True)
            continue
        if not left:
            continue
        if isinstance(one, str) and here[-1:] == (HOLDS_JSON,) and len(here) <= MAX_LEVELS:
            one = embedded(one)
        if isinstance(one, dict):
            waiting.extend(((*here, name), inner, left.into(name)) for name, inner in reversed(one.items()))
        elif isinstance(one, list):
            waiting.extend(((*here, at), one[at], left.into(at)) for at in range(len(one) - 1, -1, -1))


def value_at(value: Any, steps: tuple[Step, ...]) -> Any:
    """The value at these steps, texts that hold JSON being looked into; None where there is none."""
    for step in steps:
        if isinstance(value, str):
            value = embedded(value)
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


MAX_LEAVES: Final = 200
"""So many places of a value are looked at."""

MAX_WORDS: Final = 50
"""So many words of a text."""


def traits(value: Any) -> frozenset[str]:
    """What a value is known by: each of its leaves with its path, the places they stand at, and the words of its texts."""
    found: set[str] = set()
    waiting: list[tuple[str, Any]] = [("", value)]
    seen = 0
    while waiting and seen < MAX_LEAVES:
        path, one = waiting.pop()
        seen += 1
        if isinstance(one, dict):
            waiting.extend((f"{path}.{name}", inner) for name, inner in one.items())
        elif isinstance(one, list):
            waiting.extend((f"{path}[]", inner) for inner in one[: MAX_LEAVES - seen])
        else:
            found.add(path)
            found.add(f"{path}={canonical(one)}")
            if isinstance(one, str):
                found.update(f"{path}~{word}" for word in one[: 20 * MAX_WORDS].replace("/", " ").split()[:MAX_WORDS])
    return frozenset(found)


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """From 0, nothing in common, to 1, of the traits of two values."""
    size = len(one) + len(other)
    return 2 * len(one & other) / size if size else 1.0

"""Walks through JSON values: their texts and numbers with the steps to each, and their traits, which say how similar two values are.

Takes values of `canonical.read`. Texts of content blocks that hold JSON are opened.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from ...json_path import Step
from ..compare.ignore import Ignore
from .canonical import MAX_LEVELS, canonical, embedded_json

HOLDS_JSON: Final = "text"
"""The member of a content block, or of a resource's contents, whose text is opened."""

MAX_LEAVES: Final = 200
"""The most places of a value whose traits count."""

MAX_WORDS: Final = 50
"""The most words of a text that count."""

Scalar: TypeAlias = str | int | float
Leaf: TypeAlias = tuple[tuple["Step", ...], Scalar]


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

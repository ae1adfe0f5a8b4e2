"""How like two JSON values are: cheap, to find which of several one is nearest to. Refuses to be exact about large values."""

from __future__ import annotations

from typing import Any, Final

from .canonical import canonical

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


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """From 0, nothing in common, to 1, of the traits of two values."""
    size = len(one) + len(other)
    return 2 * len(one & other) / size if size else 1.0

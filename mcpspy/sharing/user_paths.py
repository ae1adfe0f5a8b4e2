"""Places that the user named by JSON paths, while a value is walked through. Refuses to read paths: it takes what did."""

from __future__ import annotations

from typing import Protocol


class Rules(Protocol):
    """JSON paths, as far as they have come into a value."""

    def into(self, *steps: str | int) -> Rules | None:
        """The same, these steps further in; None where a path ends there."""

    def __bool__(self) -> bool: ...


class Place:
    """How far all paths have come; `taken` says that one of them ends here or further out."""

    __slots__ = ("_rules", "taken")

    def __init__(self, *rules: Rules, taken: bool = False) -> None:
        self._rules = rules
        self.taken = taken

    def into(self, step: str | int) -> Place:
        """The place one step further in."""
        if self.taken or not self._rules:
            return self
        found: list[Rules] = []
        for one in self._rules:
            inner = one.into(step)
            if inner is None:
                return TAKEN
            if inner:
                found.append(inner)
        return Place(*found) if found else NOWHERE

    def joined(self, other: Place) -> Place:
        """What holds for both ways to a place."""
        return TAKEN if self.taken or other.taken else Place(*self._rules, *other._rules)

    def __bool__(self) -> bool:
        return self.taken or bool(self._rules)


NOWHERE = Place()
TAKEN = Place(taken=True)

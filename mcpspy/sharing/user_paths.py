"""JSON paths of the user, followed while a value is walked through: at each value, whether a path ends there or leads further in.

Takes paths that were parsed elsewhere.
"""

from __future__ import annotations

from typing import Protocol


class PathRules(Protocol):
    """Parsed JSON paths, as far as they lead from the current value on."""

    def into(self, *steps: str | int) -> PathRules | None:
        """Return the rules these steps further in; None if a path ends there."""

    def __bool__(self) -> bool: ...


class UserPaths:
    """Position of a value on the way of all paths; `taken` says that a path ends there or further out."""

    __slots__ = ("rules", "taken")

    def __init__(self, *rules: PathRules, taken: bool = False) -> None:
        self.rules = rules
        self.taken = taken

    def into(self, step: str | int) -> UserPaths | None:
        """Return the position one step further in; None if no path leads there."""
        if self.taken:
            return self
        further: list[PathRules] = []
        for rules in self.rules:
            inner = rules.into(step)
            if inner is None:
                return _TAKEN
            if inner:
                further.append(inner)
        return UserPaths(*further) if further else None

    def joined(self, other: UserPaths | None) -> UserPaths:
        """Return the position that two paths lead to."""
        if other is None:
            return self
        return _TAKEN if self.taken or other.taken else UserPaths(*self.rules, *other.rules)


class MessagePaths:
    """Position of a message of JSON-RPC, or of a batch: paths count from its root, and from its params, as those of ignore rules."""

    __slots__ = ("_here", "_is_in_batch", "_root")

    def __init__(self, root: UserPaths, here: UserPaths | None = None, *, is_in_batch: bool = False) -> None:
        self._root = root
        self._here = here if is_in_batch else root
        self._is_in_batch = is_in_batch

    @property
    def taken(self) -> bool:
        """True if a path ends here or further out."""
        return self._here is not None and self._here.taken

    def into(self, step: str | int) -> UserPaths | MessagePaths | None:
        """Return the position one step further in; None if no path leads there."""
        inner = self._here.into(step) if self._here is not None else None
        if isinstance(step, int):
            return inner if self._is_in_batch else MessagePaths(self._root, inner, is_in_batch=True)
        if step == "params":
            return self._root.joined(inner)
        if step in ("result", "error"):
            from_root = self._root.into(step)
            return inner if from_root is None else from_root.joined(inner)
        return inner


_TAKEN = UserPaths(taken=True)

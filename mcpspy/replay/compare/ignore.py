"""Ignore rules: JSON paths to the values that a comparison leaves out, with everything below them.

The root is a call: its params, and its `result` or `error`. So `$.arguments.path` and `$.params.arguments.path` are the same.
One walk checks a value against all rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ...errors import PathError
from ...json_path import Segment, Step, segments_of

MAX_KNOWN: Final = 512
"""The most steps that are cached at one place of the rules."""


class Ignore:
    """Rules at one place of a value: the `segments` that remain of each. It never changes."""

    __slots__ = ("_known", "segments")

    def __init__(self, segments: Iterable[tuple[Segment, ...]] = ()) -> None:
        self.segments = tuple(dict.fromkeys(segments))
        self._known: dict[Step, Ignore | None] = {}
        """The next rules by step: values repeat their names, and each name is checked against the rules once."""

    @classmethod
    def of(cls, paths: Iterable[str]) -> Ignore:
        """Parse these paths. Raises: PathError."""
        return cls(rule for path in paths for rule in _rules(path))

    def __bool__(self) -> bool:
        return bool(self.segments)

    def into(self, *steps: Step) -> Ignore | None:
        """Return the rules these steps further in; None if a rule leaves that place out."""
        here = self
        for step in steps:
            if not here.segments:
                return here
            inner = here._known[step] if step in here._known else here._next(step)
            if inner is None:
                return None
            here = inner
        return here

    def _next(self, step: Step) -> Ignore | None:
        remaining: list[tuple[Segment, ...]] = []
        inner: Ignore | None = self
        for segments in self.segments:
            if segments[0].anywhere:
                remaining.append(segments)
            if segments[0].takes(step):
                if len(segments) == 1:
                    inner = None
                    break
                remaining.append(segments[1:])
        if inner is not None and tuple(remaining) != self.segments:
            inner = Ignore(remaining) if remaining else NOTHING
        if len(self._known) < MAX_KNOWN:
            self._known[step] = inner
        return inner


def _rules(path: str) -> Iterator[tuple[Segment, ...]]:
    """Yield a path, and what it is where the root is the params, and not the message. Raises: PathError."""
    segments, text = segments_of(path), path.strip()
    if len(segments) == 1 and text[0] not in "$.[":
        raise PathError(path, 1, "a bare name is ambiguous", f"Write $.{text} or $..{text}.")
    yield segments
    if segments[0] == Segment("params") and len(segments) > 1:
        yield segments[1:]


NOTHING: Final = Ignore()
"""No rules: everything counts."""


def without_ignored(value: Any, ignore: Ignore) -> Any:
    """Remove what the rules leave out, and objects that are empty then.

    An item of a list becomes null, so that the others keep their index.
    """
    if not ignore:
        return value
    if isinstance(value, dict):
        members: dict[str, Any] = {}
        for name, member in value.items():
            rules = ignore.into(name)
            if rules is None:
                continue
            kept = without_ignored(member, rules)
            if kept != {} or member == {}:
                members[name] = kept
        return members
    if isinstance(value, list):
        items = ((item, ignore.into(at)) for at, item in enumerate(value))
        return [None if rules is None else without_ignored(item, rules) for item, rules in items]
    return value

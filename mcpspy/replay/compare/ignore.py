"""Ignore rules: JSON paths to the values that a comparison leaves out, with everything below them.

    $.result.content[*].text    a member, every item of a list, a member of each
    $..timestamp                a member of that name wherever it stands
    $.list[0]  $['odd name']    the first item; a name in quotes

Source: RFC 9535 (JSONPath). Only child and descendant segments with one name, index or wildcard are allowed, so that one walk
checks a value against all rules. There are no slices, filters, negative indices and lists of selectors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from ...errors import PathError
from ...lazy_pattern import lazy_pattern

Step: TypeAlias = str | int
"""A member's name or an item's index, the first being 0."""


MAX_KNOWN: Final = 512
"""The most steps that are cached at one place of the rules."""


class _Any:
    """Every member and every item."""


ANY: Final = _Any()

_name = lazy_pattern(r"[^\W\d][\w-]*")
_index = lazy_pattern(r"\[\s*(0|[1-9]\d{0,9})\s*\]")
_star = lazy_pattern(r"\[\s*\*\s*\]")
_quoted = lazy_pattern(r"""\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]""", re.DOTALL)
_quotes = lazy_pattern(r"""\\(['"\\])|(")""")


class Segment(NamedTuple):
    """One step of a rule; with `anywhere` any number of other steps may come before it."""

    selector: Step | _Any
    anywhere: bool = False

    def takes(self, step: Step) -> bool:
        """Return whether it selects this step."""
        return self.selector is ANY or (self.selector == step and type(self.selector) is type(step))


def rule_of(path: str) -> tuple[Segment, ...]:
    """Parse a JSON path into the segments of a rule; never none.

    Raises: PathError: with the column, and what can be written there.
    """
    text = path.strip()
    if not text.startswith("$"):
        raise PathError(path, 1, "a path begins with $", f"Write $.{text} or $..{text}." if _name.match(text) else "")
    segments: list[Segment] = []
    at = 1
    while at < len(text):
        segment, at = _segment(text, at)
        segments.append(segment)
    if not segments:
        raise PathError(path, 1, "$ alone leaves nothing to compare", "Name a part of it, as in $.result.content[*].text.")
    return tuple(segments)


def _segment(text: str, at: int) -> tuple[Segment, int]:
    """Parse the segment that begins at `at`; return where the next one begins too."""
    anywhere = text.startswith("..", at)
    dotted = text.startswith(".", at)
    begin = at + (2 if anywhere else 1 if dotted else 0)
    if dotted and text.startswith("*", begin):
        return Segment(ANY, anywhere), begin + 1
    if dotted and (plain := _name.match(text, begin)):
        return Segment(plain[0], anywhere), plain.end()
    if not dotted or anywhere:
        if star := _star.match(text, begin):
            return Segment(ANY, anywhere), star.end()
        if index := _index.match(text, begin):
            return Segment(int(index[1]), anywhere), index.end()
        if quoted := _quoted.match(text, begin):
            name = _unquoted(quoted[1] if quoted[1] is not None else quoted[2])
            if name is not None:
                return Segment(name, anywhere), quoted.end()
    raise PathError(text, begin + 1, "this is not a step of a path", "Write .name, ['a name'], [0], [*] or ..name.")


def _unquoted(text: str) -> str | None:
    """Read a name in quotes, with the escapes of JSON and of both quotes; None if it has other escapes."""
    spelled = _quotes.sub(lambda match: "'" if match[1] == "'" else f"\\{match[1] or match[2]}", text)
    try:
        return str(json.loads(f'"{spelled}"', strict=False))
    except ValueError:
        return None


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
        return cls(rule_of(path) for path in paths)

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

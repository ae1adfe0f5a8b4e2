"""Ignore rules: JSON paths that name the places of a value which a comparison leaves out, with all that is below them.

    $.result.content[*].text    a member, every item of a list, a member of each
    $..timestamp                a member of that name wherever it stands
    $.list[0]  $['odd name']    the first item; a name in quotes

Source: RFC 9535 (JSONPath), of which this takes child and descendant segments with one name, index or wildcard each, so that
holding a value against all rules is one walk. Refuses slices, filters, negative indices and several selectors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from ...errors import PathError

Step: TypeAlias = str | int
"""A member's name or an item's index, the first being 0."""


MAX_KNOWN: Final = 512
"""So many steps are remembered at one place of the rules."""


class _Any:
    """Every member and every item."""


ANY: Final = _Any()

_name = re.compile(r"[^\W\d][\w-]*").match
_index = re.compile(r"\[\s*(0|[1-9]\d{0,9})\s*\]").match
_star = re.compile(r"\[\s*\*\s*\]").match
_quoted = re.compile(r"""\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]""", re.DOTALL).match
_quotes = re.compile(r"""\\(['"\\])|(")""").sub


class Segment(NamedTuple):
    """One step of a rule; `anywhere` says that any number of other steps may come before it."""

    selector: Step | _Any
    anywhere: bool = False

    def takes(self, step: Step) -> bool:
        """Whether this step of a value is one that it means."""
        return self.selector is ANY or (self.selector == step and type(self.selector) is type(step))


def rule_of(path: str) -> tuple[Segment, ...]:
    """The segments of the rule that a JSON path says; never none.

    Raises: PathError: with the column, and what can be written there.
    """
    text = path.strip()
    if not text.startswith("$"):
        raise PathError(path, 1, "a path begins with $", f"Write $.{text} or $..{text}." if _name(text) else "")
    segments: list[Segment] = []
    at = 1
    while at < len(text):
        segment, at = _segment(text, at)
        segments.append(segment)
    if not segments:
        raise PathError(path, 1, "$ alone leaves nothing to compare", "Name a place in it, as in $.result.content[*].text.")
    return tuple(segments)


def _segment(text: str, at: int) -> tuple[Segment, int]:
    """The segment that begins at `at`, and where the next one does."""
    anywhere = text.startswith("..", at)
    dotted = text.startswith(".", at)
    begin = at + (2 if anywhere else 1 if dotted else 0)
    if dotted and text.startswith("*", begin):
        return Segment(ANY, anywhere), begin + 1
    if dotted and (plain := _name(text, begin)):
        return Segment(plain[0], anywhere), plain.end()
    if not dotted or anywhere:
        if star := _star(text, begin):
            return Segment(ANY, anywhere), star.end()
        if index := _index(text, begin):
            return Segment(int(index[1]), anywhere), index.end()
        if quoted := _quoted(text, begin):
            name = _unquoted(quoted[1] if quoted[1] is not None else quoted[2])
            if name is not None:
                return Segment(name, anywhere), quoted.end()
    raise PathError(text, begin + 1, "this is no step of a path", "Write .name, ['a name'], [0], [*] or ..name.")


def _unquoted(text: str) -> str | None:
    """The name in quotes, escapes being those of JSON and both quotes; None where there are others."""
    spelled = _quotes(lambda found: "'" if found[1] == "'" else f"\\{found[1] or found[2]}", text)
    try:
        return str(json.loads(f'"{spelled}"', strict=False))
    except ValueError:
        return None


class Ignore:
    """How far rules have come on the way into a value: the `segments` that each still has before it. What it says never changes."""

    __slots__ = ("_known", "segments")

    def __init__(self, segments: Iterable[tuple[Segment, ...]] = ()) -> None:
        self.segments = tuple(dict.fromkeys(segments))
        self._known: dict[Step, Ignore | None] = {}
        """Where steps lead that were asked for before: values repeat their names, and the rules are held against each but once."""

    @classmethod
    def of(cls, paths: Iterable[str]) -> Ignore:
        """The rules that these paths say. Raises: PathError."""
        return cls(rule_of(path) for path in paths)

    def __bool__(self) -> bool:
        return bool(self.segments)

    def into(self, *steps: Step) -> Ignore | None:
        """The same, these steps further in; None if a rule leaves that place out."""
        here = self
        for step in steps:
            if not here.segments:
                return here
            found = here._known[step] if step in here._known else here._next(step)
            if found is None:
                return None
            here = found
        return here

    def _next(self, step: Step) -> Ignore | None:
        found: list[tuple[Segment, ...]] = []
        made: Ignore | None = self
        for segments in self.segments:
            if segments[0].anywhere:
                found.append(segments)
            if segments[0].takes(step):
                if len(segments) == 1:
                    made = None
                    break
                found.append(segments[1:])
        if made is not None and tuple(found) != self.segments:
            made = Ignore(found) if found else NOTHING
        if len(self._known) < MAX_KNOWN:
            self._known[step] = made
        return made


NOTHING: Final = Ignore()
"""No rules: everything counts."""


def pruned(value: Any, ignore: Ignore) -> Any:
    """A value without what the rules leave out, and without objects of which nothing is left.

    An item of a list that is left out stays as null, so that the others keep their place.
    """
    if not ignore:
        return value
    if isinstance(value, dict):
        made: dict[str, Any] = {}
        for name, one in value.items():
            rules = ignore.into(name)
            if rules is None:
                continue
            kept = pruned(one, rules)
            if kept != {} or one == {}:
                made[name] = kept
        return made
    if isinstance(value, list):
        items = ((one, ignore.into(at)) for at, one in enumerate(value))
        return [None if rules is None else pruned(one, rules) for one, rules in items]
    return value

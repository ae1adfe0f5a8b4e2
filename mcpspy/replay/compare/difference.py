"""Where two JSON values differ, as data: a path, what stood there before, what stands there after.

Lists are aligned by their equal items, so that an item put in between is one difference. Texts that hold JSON, as `content[].text`
of tools often does, are compared by what it means, and paths lead on into it. Takes values of `canonical.read`. Refuses to judge
what a difference is worth, and to shorten values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

from ..json.canonical import MAX_LEVELS, canonical, embedded, same
from .ignore import NOTHING, Ignore, Step, pruned

MAX_LISTED: Final = 50
"""So many differences of two values are listed; past that they are others altogether."""

MAX_ALIGNED: Final = 200
"""Of two lists so many items each, behind what is equal at either end, are aligned; in longer ones place is held against place."""

How: TypeAlias = Literal["changed", "type", "added", "removed"]

_HOLDS_JSON: Final = "text"
"""The member of a content block, or of a resource's contents, whose text is looked into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place where two values differ. `before` is None of what was added, `after` of what was removed.

    A `type` is another kind of value (an object, a list, a text, a number, true or false, null). `steps` lead there from the root.
    """

    steps: tuple[Step, ...]
    how: How
    before: Any = None
    after: Any = None

    @property
    def path(self) -> str:
        """The place as a JSON path: `$.arguments.path`. Not safe to be shown."""
        return path_of(self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """The first differences of two values, and how many there are in all."""

    listed: tuple[Difference, ...] = ()
    count: int = 0

    def __bool__(self) -> bool:
        return self.count > 0

    @property
    def more(self) -> int:
        """How many are not listed."""
        return self.count - len(self.listed)


NO_DIFFERENCES: Final = Differences()


def path_of(steps: Sequence[Step]) -> str:
    """Steps as a JSON path (RFC 9535)."""
    return "$" + "".join(f"[{one}]" if isinstance(one, int) else _spelled(one) for one in steps)


def rule_for(steps: Sequence[Step]) -> str:
    """The ignore rule that leaves out a place, in every item of the lists that it is in."""
    return "$" + "".join("[*]" if isinstance(one, int) else _spelled(one) for one in steps)


def _spelled(name: str) -> str:
    from ...transcript.offers.drift import step  # 16 ms, which a mock need not wait for

    return step(name)


def differences(
    before: Any, after: Any, ignore: Ignore = NOTHING, under: tuple[Step, ...] = (), *, limit: int = MAX_LISTED
) -> Differences:
    """Where two values differ, both standing at `under` of what the rules are about. Linear, but for lists that are aligned."""
    rules = ignore.into(*under)
    if rules is None:
        return Differences()
    found = _differences(before, after, rules, under)
    listed = tuple(islice(found, limit))
    return Differences(listed=listed, count=len(listed) + sum(1 for _ in found))


def joined_differences(parts: Sequence[Differences], *, limit: int = MAX_LISTED) -> Differences:
    """The differences of several pairs of values as those of one."""
    listed = [one for part in parts for one in part.listed]
    return Differences(listed=tuple(listed[:limit]), count=sum(part.count for part in parts))


def _differences(before: Any, after: Any, ignore: Ignore, steps: tuple[Step, ...]) -> Iterator[Difference]:
    """All differences, in the order of the values: what was there before first, what came last."""
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _members(before, after, ignore, steps)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _items(before, after, ignore, steps)
    elif isinstance(before, str) and isinstance(after, str):
        yield from _texts(before, after, ignore, steps)
    elif not same(before, after):
        how: How = "changed" if _kind(before) == _kind(after) else "type"
        yield Difference(steps=steps, how=how, before=before, after=after)


def _members(before: dict[str, Any], after: dict[str, Any], ignore: Ignore, steps: tuple[Step, ...]) -> Iterator[Difference]:
    for name, old in before.items():
        rules = ignore.into(name)
        if rules is None:
            continue
        if name not in after:
            if _is_left(old, rules):
                yield Difference(steps=(*steps, name), how="removed", before=old)
        elif old is not after[name]:
            yield from _differences(old, after[name], rules, (*steps, name))
    for name, new in after.items():
        if name not in before and (rules := ignore.into(name)) is not None and _is_left(new, rules):
            yield Difference(steps=(*steps, name), how="added", after=new)


def _is_left(value: Any, rules: Ignore) -> bool:
    """Whether the rules leave anything of a value."""
    return not rules or value == {} or pruned(value, rules) != {}


def _texts(before: str, after: str, ignore: Ignore, steps: tuple[Step, ...]) -> Iterator[Difference]:
    if before == after:
        return
    if steps and steps[-1] == _HOLDS_JSON and len(steps) <= MAX_LEVELS:  # texts within texts could go on for long
        old, new = embedded(before), embedded(after)
        if old is not None and new is not None:
            yield from _differences(old, new, ignore, steps)
            return
    yield Difference(steps=steps, how="changed", before=before, after=after)


def _items(before: list[Any], after: list[Any], ignore: Ignore, steps: tuple[Step, ...]) -> Iterator[Difference]:
    """Paths name the place in the list as it is after, but of what was removed."""
    for old_at, new_at in _aligned(before, after, ignore):
        at = old_at if new_at is None else new_at
        rules = ignore.into(0 if at is None else at)
        if rules is None or at is None:
            continue
        here = (*steps, at)
        if new_at is None and old_at is not None:
            yield Difference(steps=here, how="removed", before=before[old_at])
        elif old_at is None:
            yield Difference(steps=here, how="added", after=after[at])
        else:
            yield from _differences(before[old_at], after[at], rules, here)


def _aligned(before: list[Any], after: list[Any], ignore: Ignore) -> Iterator[tuple[int | None, int | None]]:
    """Which item answers to which, None for none: pairs that may differ, and items of one list alone. Equal items are left out."""
    old = [_key(one, ignore, at) for at, one in enumerate(before)]
    new = [_key(one, ignore, at) for at, one in enumerate(after)]
    begin, shorter = 0, min(len(old), len(new))
    while begin < shorter and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < shorter - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    last_old, last_new = len(old) - end, len(new) - end
    if max(last_old, last_new) - begin > MAX_ALIGNED:
        yield from _side_by_side(begin, last_old, begin, last_new)
        return
    from difflib import SequenceMatcher  # as above

    matcher = SequenceMatcher(None, old[begin:last_old], new[begin:last_new], autojunk=False)
    for how, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if how != "equal":
            yield from _side_by_side(begin + old_from, begin + old_to, begin + new_from, begin + new_to)


def _side_by_side(old_from: int, old_to: int, new_from: int, new_to: int) -> Iterator[tuple[int | None, int | None]]:
    for at in range(max(old_to - old_from, new_to - new_from)):
        old, new = old_from + at, new_from + at
        yield old if old < old_to else None, new if new < new_to else None


def _key(item: Any, ignore: Ignore, at: int) -> str:
    """The text by which an item is found again: without what the rules leave out, and by the JSON that its text holds."""
    rules = ignore.into(at)
    return "" if rules is None else canonical(_opened(pruned(item, rules), rules))


def _opened(item: Any, rules: Ignore) -> Any:
    """A content block with the JSON that its text holds in the place of that text."""
    if not isinstance(item, dict) or not isinstance(item.get(_HOLDS_JSON), str):
        return item
    held = embedded(item[_HOLDS_JSON])
    inner = rules.into(_HOLDS_JSON)
    return item if held is None or inner is None else {**item, _HOLDS_JSON: [pruned(held, inner)]}


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    kind = getattr(value, "kind", None)
    return kind if isinstance(kind, str) else type(value).__name__

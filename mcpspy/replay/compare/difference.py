"""Differences of two JSON values: for each its path, the value before and the value after.

Lists are aligned by their equal items, so that an inserted item is one difference. Texts that hold JSON, as `content[].text` of tools
often does, are compared as JSON, and paths lead into it. Takes values of `json_values.read`, and never shortens them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

from ...json_path import Step
from ..json_values import HOLDS_JSON, MAX_LEVELS, canonical, embedded_json, is_same
from .ignore import NOTHING, Ignore, without_ignored

MAX_LISTED: Final = 50
"""The most differences of two values that are listed."""

MAX_ALIGNED: Final = 200
"""The most items, between the equal ends of two lists, that are aligned; in longer lists items are compared by index."""

How: TypeAlias = Literal["changed", "type", "added", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place where two values differ. `before` is None for an added value, `after` for a removed one.

    `how` is `type` if the values are of two kinds (object, list, text, number, boolean, null). `steps` lead to them from the root.
    """

    steps: tuple[Step, ...]
    how: How
    before: Any = None
    after: Any = None

    @property
    def path(self) -> str:
        """The JSON path, as `$.arguments.path`. Not escaped."""
        return path_of(self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """The first differences of two values, and the number of all."""

    listed: tuple[Difference, ...] = ()
    count: int = 0

    def __bool__(self) -> bool:
        return self.count > 0

    @property
    def more(self) -> int:
        """The number of those that are not listed."""
        return self.count - len(self.listed)


NO_DIFFERENCES: Final = Differences()


def path_of(steps: Sequence[Step]) -> str:
    """Write steps as a JSON path (RFC 9535)."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else _spelled(step) for step in steps)


def rule_for(steps: Sequence[Step]) -> str:
    """Write the ignore rule that leaves these steps out, in every item of lists on the way."""
    return "$" + "".join("[*]" if isinstance(step, int) else _spelled(step) for step in steps)


def _spelled(name: str) -> str:
    from ...transcript.definitions import step  # 16 ms, which a mock does not need

    return step(name)


def differences(
    before: Any, after: Any, ignore: Ignore = NOTHING, under: tuple[Step, ...] = (), *, limit: int = MAX_LISTED
) -> Differences:
    """Compare two values. Both are at `under` in the value that the rules are about. Linear, except for lists that are aligned."""
    rules = ignore.into(*under)
    if rules is None:
        return Differences()
    every = _differences(before, after, rules, under)
    listed = tuple(islice(every, limit))
    return Differences(listed=listed, count=len(listed) + sum(1 for _ in every))


def _differences(before: Any, after: Any, ignore: Ignore, steps: tuple[Step, ...]) -> Iterator[Difference]:
    """Yield all differences, in the order of the values; added members come last."""
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _members(before, after, ignore, steps)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _items(before, after, ignore, steps)
    elif isinstance(before, str) and isinstance(after, str):
        yield from _texts(before, after, ignore, steps)
    elif not is_same(before, after):
        how: How = "changed" if _kind(before) == _kind(after) else "type"
        yield Difference(steps=steps, how=how, before=before, after=after)


def _members(before: dict[str, Any], after: dict[str, Any], ignore: Ignore, steps: tuple[Step, ...]) -> Iterator[Difference]:
    for name, old in before.items():
        rules = ignore.into(name)
        if rules is None:
            continue
        if name not in after:
            if _counts(old, rules):
                yield Difference(steps=(*steps, name), how="removed", before=old)
        elif old is not after[name]:
            yield from _differences(old, after[name], rules, (*steps, name))
    for name, new in after.items():
        if name not in before and (rules := ignore.into(name)) is not None and _counts(new, rules):
            yield Difference(steps=(*steps, name), how="added", after=new)


def _counts(value: Any, rules: Ignore) -> bool:
    """Return whether the rules leave anything of a value."""
    return not rules or value == {} or without_ignored(value, rules) != {}


def _texts(before: str, after: str, ignore: Ignore, steps: tuple[Step, ...]) -> Iterator[Difference]:
    if before == after:
        return
    if steps and steps[-1] == HOLDS_JSON and len(steps) <= MAX_LEVELS:  # texts within texts could go on for long
        old, new = embedded_json(before), embedded_json(after)
        if old is not None and new is not None:
            yield from _differences(old, new, ignore, steps)
            return
    yield Difference(steps=steps, how="changed", before=before, after=after)


def _items(before: list[Any], after: list[Any], ignore: Ignore, steps: tuple[Step, ...]) -> Iterator[Difference]:
    """Yield the differences of two lists. Paths have the index in the new list, or that of a removed item in the old one."""
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
    """Yield pairs of indices: of items that may differ, and of items of one list only, with None for the other. No equal items."""
    old = [_key(item, ignore, at) for at, item in enumerate(before)]
    new = [_key(item, ignore, at) for at, item in enumerate(after)]
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
    """Return a text that equal items share: without what the rules leave out, and with the JSON that the item's text holds."""
    rules = ignore.into(at)
    return "" if rules is None else canonical(_opened(without_ignored(item, rules), rules))


def _opened(item: Any, rules: Ignore) -> Any:
    """Replace the text of a content block by the JSON that it holds."""
    if not isinstance(item, dict) or not isinstance(item.get(HOLDS_JSON), str):
        return item
    opened = embedded_json(item[HOLDS_JSON])
    inner = rules.into(HOLDS_JSON)
    return item if opened is None or inner is None else {**item, HOLDS_JSON: [without_ignored(opened, inner)]}


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    kind = getattr(value, "kind", None)
    return kind if isinstance(kind, str) else type(value).__name__

"""Where in a live message the value stands that stood at some place of the recorded one.

Lists may have come longer, shorter or in another order: an item is found by the words that it has besides. Refuses to choose between
items that are as like: a wrong id would be worse than none, because it is somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from .canonical import embedded
from .walk import traits

if TYPE_CHECKING:
    from ..compare.ignore import Step


MAX_ITEMS: Final = 200
"""In longer lists an item is where it was, if the list is as long as it was."""

_value = re.compile("[=~](.*)", re.DOTALL).search
_has_digit = re.compile("[0-9]").search


def live_steps(recorded: Any, live: Any, steps: tuple[Step, ...]) -> tuple[Step, ...] | None:
    """The steps that lead in `live` to what stands at `steps` in `recorded`; None where nothing does, or nobody can tell."""
    found: list[Step] = []
    for at, step in enumerate(steps):
        recorded, live = _opened(recorded), _opened(live)
        now: Step | None = None
        if isinstance(step, str):
            now = step if isinstance(recorded, dict) and isinstance(live, dict) and step in recorded and step in live else None
        elif isinstance(recorded, list) and isinstance(live, list) and step < len(recorded):
            now = _item(recorded, live, step, steps[at + 1 :])
        if now is None:
            return None
        recorded, live = recorded[step], live[now]
        found.append(now)
    return tuple(found)


def _opened(value: Any) -> Any:
    """A value, or what it holds as JSON."""
    return embedded(value) if isinstance(value, str) else value


def _item(recorded: list[Any], live: list[Any], wanted: int, rest: tuple[Step, ...]) -> int | None:
    """Which item of the live list is the wanted one of the recorded list."""
    if len(recorded) == len(live) == 1:
        return 0
    if max(len(recorded), len(live)) > MAX_ITEMS:
        return wanted if len(recorded) == len(live) else None
    old = [traits(_without(one, rest)) for one in recorded]
    new = [traits(_without(one, rest)) for one in live]
    exact = _twin(old, new, wanted)
    if exact is not None:
        return exact
    old, new = [_worded(one) for one in old], [_worded(one) for one in new]
    found = _twin(old, new, wanted)
    if found is None and len(old) == len(new) and old[wanted] not in new and len({*old}) == len({*new}) == 1:
        return wanted  # nothing tells them apart but their places
    return found


def _twin(old: list[frozenset[str]], new: list[frozenset[str]], wanted: int) -> int | None:
    """The item that is known by the same, if there are as many of them as there were."""
    twins = [at for at, one in enumerate(old) if one == old[wanted]]
    equal = [at for at, one in enumerate(new) if one == old[wanted]]
    return equal[twins.index(wanted)] if len(twins) == len(equal) else None


def _worded(known: frozenset[str]) -> frozenset[str]:
    """What of it has no digits: times, sizes and ids are others at each run."""
    return frozenset(one for one in known if not ((value := _value(one)) and _has_digit(value[1])))


def _without(item: Any, steps: tuple[Step, ...]) -> Any:
    if not steps:
        return None
    first, *rest = steps
    if isinstance(first, str) and isinstance(item, dict) and first in item:
        return {**item, first: _without(item[first], tuple(rest))}
    if isinstance(first, int) and isinstance(item, list) and first < len(item):
        return [*item[:first], _without(item[first], tuple(rest)), *item[first + 1 :]]
    return item


MAX_LINE_LETTERS: Final = 4096
"""In longer lines nothing is looked for."""

_WORD: Final = "[0-9A-Za-z_-]+"
_words = re.compile(rf"({_WORD})").split
_is_word = re.compile(_WORD).fullmatch
_has_digit = re.compile("[0-9]").search
_has_letter = re.compile(r"[^\W\d_]").search


def live_text(recorded: str, live: str, start: int, end: int) -> str | None:
    """What stands in `live` where `recorded` has its letters from `start` to `end`; None where that cannot be told."""
    value = recorded[start:end]
    begin = recorded.rfind("\n", 0, start) + 1
    over = recorded.find("\n", end)
    before, after = recorded[begin:start], recorded[end : len(recorded) if over < 0 else over].rstrip("\r")
    if "\n" in value or len(before) + len(value) + len(after) > MAX_LINE_LETTERS:
        return None
    group = f"({_WORD})" if _is_word(value) else r"(\S+?)"
    whole = re.compile(_before(before) + group + _after(after)).fullmatch
    nth = sum(1 for _ in _found(whole, recorded[:begin].split("\n")))
    count = sum(1 for _ in _found(whole, recorded.split("\n")))
    fitting = list(_found(whole, live.split("\n")))
    if fitting:
        return fitting[nth] if len(fitting) == count else None
    return _by_its_beginning(before, _WORD if _is_word(value) else r"\S+", recorded, live)


def _by_its_beginning(before: str, value: str, recorded: str, live: str) -> str | None:
    """The value behind the same beginning of a line, if no other line has that, then or now."""
    if not _has_letter(before):
        return None
    begins = re.compile(f"{_before(before)}({value})").match
    if len(list(_found(begins, recorded.split("\n")))) != 1:
        return None
    fitting = list(_found(begins, live.split("\n")))
    return fitting[0] if len(fitting) == 1 else None


def _found(fits: Callable[[str], re.Match[str] | None], lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if len(line) <= MAX_LINE_LETTERS and (found := fits(line.rstrip("\r"))):
            yield found[1]


def _before(text: str) -> str:
    """A pattern for what stands before a value: words with digits are any words, but for a piece of the word that the value is in."""
    pieces = _words(text)
    return _pattern(pieces, kept=len(pieces) - 2 if pieces[-1] == "" else -1)


def _after(text: str) -> str:
    """The same for what stands behind it."""
    pieces = _words(text)
    return _pattern(pieces, kept=1 if pieces[0] == "" else -1)


def _pattern(pieces: list[str], kept: int) -> str:
    """Pieces are words at odd places, and what is between them at even ones."""
    return "".join(_WORD if at % 2 and at != kept and _has_digit(one) else re.escape(one) for at, one in enumerate(pieces))

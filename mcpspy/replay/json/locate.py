"""Place of a value in a live message, found from its place in the recorded message.

In lists an item is found by its other values, since live lists may be longer, shorter or in another order:

    recorded    [{"name": "a", "id": 11}, {"name": "b", "id": 12}]         the value 12 is at [1].id
    live        [{"name": "b", "id": 98}, {"name": "c", "id": 99}]         so the value is at [0].id: 98

In texts a value is found by the rest of its line, in which words with digits may be any words:

    recorded    Opened 8f3a9c01 at 10:22 for you                           the value is the second word
    pattern     Opened (WORD) at WORD:WORD for you
    live        Opened 77de0123 at 11:05 for you                           so the value is 77de0123

If no live line fits, the beginning of the line (`Opened `) has to be enough. Whenever two places fit, no value is taken: a wrong id
would be worse than none, because it belongs to something else.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from ...json_path import Step
from ...lazy_pattern import lazy_pattern
from .canonical import embedded_json
from .walk import traits

MAX_ITEMS: Final = 200
"""In longer lists an item keeps its index, if the list has kept its length."""

MAX_LINE_LETTERS: Final = 4096
"""Longer lines are not searched."""

_WORD: Final = "[0-9A-Za-z_-]+"
_words = lazy_pattern(rf"({_WORD})")
_is_word = lazy_pattern(_WORD)
_has_digit = lazy_pattern("[0-9]")
_has_letter = lazy_pattern(r"[^\W\d_]")
_value = lazy_pattern("[=~](.*)", re.DOTALL)


# In JSON


def live_steps(recorded: Any, live: Any, steps: tuple[Step, ...]) -> tuple[Step, ...] | None:
    """Return the steps in `live` to the value that is at `steps` in `recorded`; None if there is none, or more than one fits."""
    path: list[Step] = []
    for at, step in enumerate(steps):
        recorded, live = _opened(recorded), _opened(live)
        live_step: Step | None = None
        if isinstance(step, str):
            is_member = isinstance(recorded, dict) and isinstance(live, dict) and step in recorded and step in live
            live_step = step if is_member else None
        elif isinstance(recorded, list) and isinstance(live, list) and step < len(recorded):
            live_step = _item(recorded, live, step, steps[at + 1 :])
        if live_step is None:
            return None
        recorded, live = recorded[step], live[live_step]
        path.append(live_step)
    return tuple(path)


def _opened(value: Any) -> Any:
    """Return the JSON that a text holds, else the value itself."""
    return embedded_json(value) if isinstance(value, str) else value


def _item(recorded: list[Any], live: list[Any], wanted: int, rest: tuple[Step, ...]) -> int | None:
    """Find the index in the live list of the item that has the index `wanted` in the recorded list."""
    if len(recorded) == len(live) == 1:
        return 0
    if max(len(recorded), len(live)) > MAX_ITEMS:
        return wanted if len(recorded) == len(live) else None
    old = [traits(_without(item, rest)) for item in recorded]
    new = [traits(_without(item, rest)) for item in live]
    exact = _same_traits(old, new, wanted)
    if exact is not None:
        return exact
    old, new = list(map(_without_digits, old)), list(map(_without_digits, new))
    similar = _same_traits(old, new, wanted)
    if similar is None and len(old) == len(new) and old[wanted] not in new and len({*old}) == len({*new}) == 1:
        return wanted  # only their places distinguish the items
    return similar


def _same_traits(old: list[frozenset[str]], new: list[frozenset[str]], wanted: int) -> int | None:
    """Find the item with the same traits, if there are as many of them as before."""
    recorded = [at for at, item_traits in enumerate(old) if item_traits == old[wanted]]
    live = [at for at, item_traits in enumerate(new) if item_traits == old[wanted]]
    return live[recorded.index(wanted)] if len(recorded) == len(live) else None


def _without_digits(item_traits: frozenset[str]) -> frozenset[str]:
    """Leave out the values with digits: times, sizes and ids differ at each run."""
    return frozenset(trait for trait in item_traits if not ((value := _value.search(trait)) and _has_digit.search(value[1])))


def _without(item: Any, steps: tuple[Step, ...]) -> Any:
    if not steps:
        return None
    first, *rest = steps
    if isinstance(first, str) and isinstance(item, dict) and first in item:
        return {**item, first: _without(item[first], tuple(rest))}
    if isinstance(first, int) and isinstance(item, list) and first < len(item):
        return [*item[:first], _without(item[first], tuple(rest)), *item[first + 1 :]]
    return item


# In texts


def live_text(recorded: str, live: str, start: int, end: int) -> str | None:
    """Return the value in `live` that is `recorded[start:end]` in `recorded`; None if there is none, or more than one fits."""
    value = recorded[start:end]
    line_start = recorded.rfind("\n", 0, start) + 1
    line_end = recorded.find("\n", end)
    before, after = recorded[line_start:start], recorded[end : len(recorded) if line_end < 0 else line_end].rstrip("\r")
    if "\n" in value or len(before) + len(value) + len(after) > MAX_LINE_LETTERS:
        return None
    group = f"({_WORD})" if _is_word.fullmatch(value) else r"(\S+?)"
    whole_line = re.compile(_before(before) + group + _after(after)).fullmatch
    index = sum(1 for _ in _values(whole_line, recorded[:line_start].split("\n")))
    count = sum(1 for _ in _values(whole_line, recorded.split("\n")))
    fitting = list(_values(whole_line, live.split("\n")))
    if fitting:
        return fitting[index] if len(fitting) == count else None
    return _after_beginning(before, _WORD if _is_word.fullmatch(value) else r"\S+", recorded, live)


def _after_beginning(before: str, value: str, recorded: str, live: str) -> str | None:
    """Return the value after the same beginning of a line, if exactly one line begins so in each text."""
    if not _has_letter.search(before):
        return None
    begins = re.compile(f"{_before(before)}({value})").match
    if len(list(_values(begins, recorded.split("\n")))) != 1:
        return None
    fitting = list(_values(begins, live.split("\n")))
    return fitting[0] if len(fitting) == 1 else None


def _values(fits: Callable[[str], re.Match[str] | None], lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if len(line) <= MAX_LINE_LETTERS and (match := fits(line.rstrip("\r"))):
            yield match[1]


def _before(text: str) -> str:
    """Make a pattern for the text before a value. A word with digits is any word, unless it touches the value."""
    pieces = _words.split(text)
    return _pattern(pieces, kept=len(pieces) - 2 if pieces[-1] == "" else -1)


def _after(text: str) -> str:
    """Make a pattern for the text after a value."""
    pieces = _words.split(text)
    return _pattern(pieces, kept=1 if pieces[0] == "" else -1)


def _pattern(pieces: list[str], kept: int) -> str:
    """Make a pattern of pieces: words are at odd indices, the text between them at even ones."""
    return "".join(
        _WORD if at % 2 and at != kept and _has_digit.search(piece) else re.escape(piece) for at, piece in enumerate(pieces)
    )

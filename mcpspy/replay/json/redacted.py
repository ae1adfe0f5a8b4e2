"""Pseudonyms in what was recorded: a question that holds one is asked again with the value that was redacted.

Nobody here knows that value. So a text with `redacted-` and 12 hex digits in it stands for every text that is the same around them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from ..compare.ignore import Step

MAX_MASKS: Final = 32
"""So many shapes of redacted questions of one method are told apart; what is beyond that matches by its pseudonyms alone."""

_split = re.compile(r"redacted-[0-9a-f]{12}").split
_STAND_IN: Final = {"\0redacted": True}
_ALL: Final = ("", "")
"""What is around a pseudonym that is all of a text."""


def is_redacted(text: str) -> bool:
    """Whether a pseudonym stands in it."""
    return len(_split(text)) > 1


class RedactedText(NamedTuple):
    """A text that holds pseudonyms: where it stands, and what is around and between them."""

    steps: tuple[Step, ...]
    around: tuple[str, ...]


Mask = tuple[RedactedText, ...]
"""The holes of one question, in the order of their places."""


def mask_of(value: Any) -> Mask:
    """The holes of a recorded value; none where nothing is redacted."""
    found: list[RedactedText] = []
    waiting: list[tuple[tuple[Step, ...], Any]] = [((), value)]
    while waiting:
        steps, one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(((*steps, name), inner) for name, inner in one.items())
        elif isinstance(one, list):
            waiting.extend(((*steps, at), inner) for at, inner in enumerate(one))
        elif isinstance(one, str) and len(around := _split(one)) > 1:
            found.append(RedactedText(steps, tuple(around)))
    return tuple(sorted(found, key=lambda hole: [(isinstance(step, str), step) for step in hole.steps]))


def masked(value: Any, mask: Mask) -> Any | None:
    """A value with a stand-in for each text that fits a hole; None where one does not."""
    for hole in mask:
        value = _put(value, hole.steps, hole.around)
        if value is None:
            return None
    return value


def _put(value: Any, steps: tuple[Step, ...], around: tuple[str, ...]) -> Any | None:
    if not steps:
        if isinstance(value, int | float) and around == _ALL:  # a number that was redacted is a text now
            return _STAND_IN
        return _STAND_IN if isinstance(value, str) and _fits(value, around) else None
    first, *rest = steps
    if isinstance(first, str) and isinstance(value, dict) and first in value:
        inner = _put(value[first], tuple(rest), around)
        return None if inner is None else {**value, first: inner}
    if isinstance(first, int) and isinstance(value, list) and first < len(value):
        inner = _put(value[first], tuple(rest), around)
        return None if inner is None else [*value[:first], inner, *value[first + 1 :]]
    return None


def _fits(text: str, around: tuple[str, ...]) -> bool:
    """Whether a text has these texts in order, the first at its beginning, the last at its end, and something between any two."""
    first, *between, last = around
    if not text.startswith(first):
        return False
    at = len(first)
    for one in between:
        found = text.find(one, at + 1)
        if found < 0:
            return False
        at = found + len(one)
    return text.endswith(last) and len(text) - len(last) > at

"""Redacted values in recorded requests: a mask of them, so that a client's request with the original value matches.

The original value is unknown here. So a text with a pseudonym, `redacted-` and 12 hex digits, stands for every text that is the same
around it.
"""

from typing import Any, Final, NamedTuple

from ...json_path import Step
from ...lazy_pattern import lazy_pattern
from ...records import PSEUDONYM_PATTERN

MAX_MASKS: Final = 32
"""The most different masks for one method; further requests are matched with their pseudonyms only."""

_split = lazy_pattern(PSEUDONYM_PATTERN)
_STAND_IN: Final = {"\0redacted": True}
_WHOLE_TEXT: Final = ("", "")
"""The text around a pseudonym that is alone."""


def is_redacted(text: str) -> bool:
    """Return whether a text holds a pseudonym."""
    return len(_split.split(text)) > 1


class RedactedText(NamedTuple):
    """A text with pseudonyms: the steps to it, and the texts before, between and after the pseudonyms."""

    steps: tuple[Step, ...]
    around: tuple[str, ...]


Mask = tuple[RedactedText, ...]
"""The redacted texts of one request, in the order of their steps."""


def mask_of(value: Any) -> Mask:
    """Find the redacted texts of a recorded value."""
    texts: list[RedactedText] = []
    waiting: list[tuple[tuple[Step, ...], Any]] = [((), value)]
    while waiting:
        steps, inner = waiting.pop()
        if isinstance(inner, dict):
            waiting.extend(((*steps, name), member) for name, member in inner.items())
        elif isinstance(inner, list):
            waiting.extend(((*steps, at), item) for at, item in enumerate(inner))
        elif isinstance(inner, str) and len(around := _split.split(inner)) > 1:
            texts.append(RedactedText(steps, tuple(around)))
    return tuple(sorted(texts, key=lambda text: [(isinstance(step, str), step) for step in text.steps]))


def with_stand_ins(value: Any, mask: Mask) -> Any | None:
    """Replace each text that fits the mask by a stand-in; None if one does not fit."""
    for text in mask:
        value = _with_stand_in(value, text.steps, text.around)
        if value is None:
            return None
    return value


def _with_stand_in(value: Any, steps: tuple[Step, ...], around: tuple[str, ...]) -> Any | None:
    if not steps:
        if isinstance(value, int | float) and around == _WHOLE_TEXT:  # a number that was redacted is a text now
            return _STAND_IN
        return _STAND_IN if isinstance(value, str) and _fits(value, around) else None
    first, *rest = steps
    if isinstance(first, str) and isinstance(value, dict) and first in value:
        inner = _with_stand_in(value[first], tuple(rest), around)
        return None if inner is None else {**value, first: inner}
    if isinstance(first, int) and isinstance(value, list) and first < len(value):
        inner = _with_stand_in(value[first], tuple(rest), around)
        return None if inner is None else [*value[:first], inner, *value[first + 1 :]]
    return None


def _fits(text: str, around: tuple[str, ...]) -> bool:
    """Return whether a text begins and ends with the first and last of these texts, and has something between any two of them."""
    first, *between, last = around
    if not text.startswith(first):
        return False
    at = len(first)
    for piece in between:
        start = text.find(piece, at + 1)
        if start < 0:
            return False
        at = start + len(piece)
    return text.endswith(last) and len(text) - len(last) > at

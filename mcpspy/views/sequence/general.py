"""Steps without what belongs to one recording alone: row numbers, durations, process ids, ports, sessions, folders of a machine.

For a design document: two recordings of the same session give the same diagram. Texts of a later time of day or of another user's
home folder are found by their form, in captured text too.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from ...lazy_pattern import lazy_pattern
from .diagram import Arrow, ArrowKind, Aside, Fragment, OmittedMessages, Participant, Step

_DURATION: Final = r"\d[\d.]* (?:µs|ms|s|h)\b"
_END: Final = r"\s/\\\"'“”:;,<>()|"
"""Characters that end a part of a path."""

_row: Final = lazy_pattern(r"^\d+(?:–\d+)? ")
_took: Final = lazy_pattern(rf"^([^:]*?) · {_DURATION}")
_first_token: Final = lazy_pattern(rf"(?: ·|:) first token after {_DURATION}")
_after: Final = lazy_pattern(rf":? after {_DURATION}")
_session: Final = lazy_pattern(r"^session \S+ opened$")

_PARTICULARS: Final = [
    (lazy_pattern(r": pid \d+$| \(pid \d+\)"), ""),
    (lazy_pattern(r"([?&]session_?id=)[^&\s]+", re.IGNORECASE), r"\1…"),
    (lazy_pattern(r"\b(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]):\d+"), r"\1"),
    (lazy_pattern(r"\b(port) \d+"), r"\1 …"),
    (
        lazy_pattern(
            rf"(?<![\w.])(?:file://)?/(?:home|Users|root|tmp|private|var|opt|usr|mnt|srv)(?:/[^{_END}]+)*/([^{_END}]+)/?"
        ),
        r"…/\1",
    ),
    (lazy_pattern(rf"\b[A-Za-z]:\\+(?:[^{_END}]+\\+)*([^{_END}]+)"), r"…\\\1"),
    (lazy_pattern(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b[0-9a-f]{32,}\b"), "…"),
    (lazy_pattern(r"\b(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d\b)?"), "…"),
]
"""Process ids, sessions in URLs, ports, folders of this machine, generated ids and times of day, and what stands for them."""


def general(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield `steps` without particulars."""
    for step in steps:
        match step:
            case Fragment():
                yield replace(step, title=_without(step.title), steps=list(general(step.steps)))
            case Arrow():
                yield replace(step, text=_text(step), details=tuple(map(_without, step.details)))
            case Aside():
                yield replace(step, text=_text(step))
            case OmittedMessages():
                yield step


def general_name(participant: Participant) -> Participant:
    """Return a participant without particulars in its name."""
    return replace(participant, name=_without(participant.name))


def _text(step: Arrow | Aside) -> str:
    text = _row.sub("", step.text, count=1) if step.row else step.text
    text = _session.sub("session opened", text)
    kind = step.kind if isinstance(step, Arrow) else None
    if kind is ArrowKind.RESPONSE:
        text = _first_token.sub("", _took.sub(r"\1", text))
    elif kind in (None, ArrowKind.CANCELLATION, ArrowKind.LOST):
        text = _after.sub("", text, count=1)
    return _without(text)


def _without(text: str) -> str:
    for pattern, words in _PARTICULARS:
        text = pattern.sub(words, text)
    return text

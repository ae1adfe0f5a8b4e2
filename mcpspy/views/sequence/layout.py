"""The layout of a sequence diagram: rows as steps in order, grouped, folded, and cut if there are too many.

For a design document, steps can be without what belongs to one recording alone: row numbers, durations, process ids, ports, sessions,
folders of a machine. Two recordings of the same session then give the same diagram. Texts of a later time of day or of another user's
home folder are found by their form, in captured text too.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ...lazy_pattern import lazy_pattern
from ...transcript.model import Row, Transcript
from ..timeline.details import Detail
from .diagram import (
    Arrow,
    ArrowKind,
    Aside,
    Diagram,
    Fragment,
    OmittedMessages,
    Participant,
    Step,
    first_messages,
    flat,
    messages,
)
from .folding import Folder, repeats
from .fragments import grouped
from .lanes import PROXY_ID, USER_ID, DiagramLanes
from .steps import Drawn, Steps

MAX_UNFOLDED: Final = 60
"""Diagrams of more messages are folded, unless the user decides."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Options of a diagram.

    `names` are replacements for lane names. `max_messages` bounds the arrows; None means no bound. `with_proxy` draws mcpspy as a
    lane. `with_http` draws the HTTP requests, statuses and streams that carried the messages. `with_fragments` draws phases, agent
    runs and rounds as fragments. `folds` draws runs of like calls as loops; None does so above `MAX_UNFOLDED` messages, and with
    heartbeats always.
    `with_particulars` draws what belongs to this recording alone: row numbers, times, process ids, ports, folders.
    """

    title: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    detail: Detail = Detail.NAMES
    max_messages: int | None = None
    with_proxy: bool = False
    with_http: bool = False
    with_fragments: bool = True
    folds: bool | None = None
    with_particulars: bool = True


PLAIN = Drawing()


def diagram(transcript: Transcript, rows: Sequence[Row], drawing: Drawing = PLAIN) -> Diagram:
    """Lay out the diagram of `rows`. Participants without a step are left out."""
    lanes = DiagramLanes(transcript, drawing.names, splits=drawing.with_http)
    steps = Steps(transcript, lanes, drawing.detail, with_http=drawing.with_http, with_keep_alives=drawing.with_particulars)
    drawn = _in_order(transcript, rows, steps)
    shown: Sequence[Step] = grouped(drawn, transcript, rows, steps.runs) if drawing.with_fragments else drawn
    if drawing.folds is not False:
        folds_calls = drawing.folds or messages(drawn) > MAX_UNFOLDED
        shown = Folder(transcript, rows, is_timeless=not drawing.with_particulars, folds_calls=folds_calls).folded(shown)
    if drawing.max_messages is not None:
        shown = first_messages(shown, drawing.max_messages)
    if drawing.with_proxy:
        shown = list(_halves(shown))
    used = {lane for step in flat(shown) for lane in _lanes(step)} | {
        end for row in rows[:1] for end in lanes.ends(row, "client")
    }
    participants = lanes.participants(used, with_proxy=drawing.with_proxy)
    if not drawing.with_particulars:
        shown, participants = list(_general(shown)), list(map(_general_name, participants))
    has_times = drawing.with_particulars and any(step.at_ns for step in flat(shown))  # an imported log may have none
    return Diagram(participants=participants, steps=shown, title=drawing.title, has_times=has_times)


def _in_order(transcript: Transcript, rows: Iterable[Row], steps: Steps) -> list[Drawn]:
    numbered: list[tuple[int, int, int, Drawn]] = []
    for row in repeats(transcript, rows):
        capture = row.first.capture if isinstance(row, tuple) else row.capture
        numbered += [(step.at_ns, capture, number, step) for number, step in steps.feed(row)]
    numbered.sort(key=lambda entry: entry[:3])
    return [step for *_, step in numbered]


def _halves(steps: Iterable[Step]) -> Iterator[Step]:
    """Split arrows at mcpspy. An injected message starts there; a message that was not forwarded ends there."""
    for step in steps:
        if isinstance(step, Fragment):
            yield replace(step, steps=list(_halves(step.steps)))
        elif not isinstance(step, Arrow) or USER_ID in (step.start, step.end):
            yield step
        elif step.injected:
            yield replace(step, start=PROXY_ID)
        elif step.stops:
            yield replace(step, end=PROXY_ID, opens="")
        else:
            is_closed_last = step.closes == step.end
            yield replace(step, end=PROXY_ID, opens="", closes="" if is_closed_last else step.closes, details=())
            yield replace(step, start=PROXY_ID, closes=step.closes if is_closed_last else "")


def _lanes(step: Drawn | OmittedMessages) -> tuple[str, ...]:
    match step:
        case Arrow():
            return step.start, step.end
        case Aside():
            return (step.at,)
        case _:
            return ()


def _general(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield `steps` without particulars."""
    for step in steps:
        match step:
            case Fragment():
                yield replace(step, title=_without(step.title), steps=list(_general(step.steps)))
            case Arrow():
                yield replace(step, text=_text(step), details=tuple(map(_without, step.details)))
            case Aside():
                yield replace(step, text=_text(step))
            case OmittedMessages():
                yield step


def _general_name(participant: Participant) -> Participant:
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

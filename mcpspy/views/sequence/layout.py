"""The layout of a sequence diagram: rows as steps in order, grouped, folded, and cut if there are too many."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ...transcript.model import Row, Transcript
from ..timeline.details import Detail
from .diagram import Arrow, Aside, Diagram, Fragment, OmittedMessages, Step, first_messages, flat, messages
from .folding import Folder
from .fragments import grouped
from .general import general, general_name
from .lanes import PROXY_ID, USER_ID, DiagramLanes
from .repeats import repeats
from .steps import Drawn, Steps

MAX_UNFOLDED: Final = 60
"""Diagrams of more messages are folded, unless the user decides."""


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
        shown, participants = list(general(shown)), list(map(general_name, participants))
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

"""The layout of a sequence diagram: rows as steps, in order, cut if there are too many, and grouped."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...transcript.model import Row, Transcript
from ..timeline.details import Detail
from .diagram import Arrow, Aside, Diagram, OmittedMessages
from .fragments import grouped
from .lanes import PROXY_ID, USER_ID, DiagramLanes
from .repeats import repeats
from .steps import Drawn, Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Options of a diagram.

    `names` are replacements for lane names. `max_messages` bounds the arrows; None means no bound. `with_proxy` draws mcpspy as a
    lane. `with_http` draws the HTTP requests, statuses and streams that carried the messages. `with_fragments` draws phases, agent
    runs and rounds as fragments.
    """

    title: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    detail: Detail = Detail.NAMES
    max_messages: int | None = None
    with_proxy: bool = False
    with_http: bool = False
    with_fragments: bool = True


PLAIN = Drawing()


def diagram(transcript: Transcript, rows: Sequence[Row], drawing: Drawing = PLAIN) -> Diagram:
    """Lay out the diagram of `rows`. Participants without a step are left out."""
    lanes = DiagramLanes(transcript, drawing.names, splits=drawing.with_http)
    steps = Steps(transcript, lanes, drawing.detail, with_http=drawing.with_http)
    cut = _cut(_in_order(transcript, rows, steps), drawing.max_messages)
    if drawing.with_proxy:
        cut = [half for step in cut for half in _halves(step)]
    used = {lane for step in cut for lane in _lanes(step)} | {end for row in rows[:1] for end in lanes.ends(row, "client")}
    participants = lanes.participants(used, with_proxy=drawing.with_proxy)
    shown = grouped(cut, transcript, rows, steps.runs) if drawing.with_fragments else cut
    return Diagram(participants=participants, steps=shown, title=drawing.title)


def _in_order(transcript: Transcript, rows: Iterable[Row], steps: Steps) -> list[Drawn]:
    numbered: list[tuple[int, int, int, Drawn]] = []
    for row in repeats(transcript, rows):
        capture = row.first.capture if isinstance(row, tuple) else row.capture
        numbered += [(step.at_ns, capture, number, step) for number, step in steps.feed(row)]
    numbered.sort(key=lambda entry: entry[:3])
    return [step for *_, step in numbered]


def _cut(steps: list[Drawn], max_messages: int | None) -> list[Drawn | OmittedMessages]:
    """Keep the first `max_messages` arrows and the notes between them, the count of the rest, and the last note."""
    arrows = [at for at, step in enumerate(steps) if isinstance(step, Arrow)]
    if max_messages is None or len(arrows) <= max_messages:
        return [*steps]
    at = arrows[max_messages]
    made: list[Drawn | OmittedMessages] = [
        *steps[:at],
        OmittedMessages(at_ns=steps[at].at_ns, count=len(arrows) - max_messages),
    ]
    return [*made, steps[-1]] if isinstance(steps[-1], Aside) else made


def _halves(step: Drawn | OmittedMessages) -> list[Drawn | OmittedMessages]:
    """Split an arrow at mcpspy. An injected message starts there; a message that was not forwarded ends there."""
    if not isinstance(step, Arrow) or USER_ID in (step.start, step.end):
        return [step]
    if step.injected:
        return [replace(step, start=PROXY_ID)]
    if step.stops:
        return [replace(step, end=PROXY_ID, opens="")]
    is_closed_last = step.closes == step.end
    first = replace(step, end=PROXY_ID, opens="", closes="" if is_closed_last else step.closes, details=())
    return [first, replace(step, start=PROXY_ID, closes=step.closes if is_closed_last else "")]


def _lanes(step: Drawn | OmittedMessages) -> tuple[str, ...]:
    match step:
        case Arrow():
            return step.start, step.end
        case Aside():
            return (step.at,)
        case _:
            return ()

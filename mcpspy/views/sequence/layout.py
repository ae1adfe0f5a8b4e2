"""The layout of a sequence diagram: rows as steps, put in order, cut where they are too many, and grouped.

Refuses to know how any of it is spelled: the printers do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .folding import grouped
from .lanes import PROXY_ID, USER_ID, Lanes
from .model import Arrow, Aside, Detail, Diagram, LeftOut
from .repeats import repeats
from .rows import Drawn, Steps

if TYPE_CHECKING:
    from ...transcript.model import Row, Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """How a diagram is wanted.

    `names` are other names for lanes, by those that they have. `max_messages` bounds the arrows, None does not. `is_proxy_shown`
    draws mcpspy as a lane, `is_http_told` the requests, statuses and streams of HTTP that carried the messages; `is_grouped`
    puts phases and rounds into groups.
    """

    title: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    detail: Detail = Detail.NAMES
    max_messages: int | None = None
    is_proxy_shown: bool = False
    is_http_told: bool = False
    is_grouped: bool = True


PLAIN = Drawing()


def diagram(transcript: Transcript, rows: Sequence[Row], drawing: Drawing = PLAIN) -> Diagram:
    """The diagram of `rows`; whoever takes part in none of them is left out."""
    lanes = Lanes(transcript, drawing.names, splits=drawing.is_http_told)
    steps = Steps(transcript, lanes, drawing.detail, is_http_told=drawing.is_http_told)
    cut = _cut(_in_order(transcript, rows, steps), drawing.max_messages)
    if drawing.is_proxy_shown:
        cut = [half for one in cut for half in _halves(one)]
    used = {lane for one in cut for lane in _lanes(one)} | {end for row in rows[:1] for end in lanes.ends(row, "client")}
    participants = lanes.participants(used, is_proxy_shown=drawing.is_proxy_shown)
    shown = grouped(cut, transcript, rows, steps.runs) if drawing.is_grouped else cut
    return Diagram(participants=participants, steps=shown, title=drawing.title)


def _in_order(transcript: Transcript, rows: Iterable[Row], steps: Steps) -> list[Drawn]:
    found: list[tuple[int, int, int, Drawn]] = []
    for row in repeats(transcript, rows):
        capture = row.first.capture if isinstance(row, tuple) else row.capture
        found += [(step.at_ns, capture, number, step) for number, step in steps.feed(row)]
    found.sort(key=lambda one: one[:3])
    return [one[3] for one in found]


def _cut(steps: list[Drawn], max_messages: int | None) -> list[Drawn | LeftOut]:
    """The first so many arrows and what stands between them; how many more there are, and the last thing that happened."""
    arrows = [at for at, one in enumerate(steps) if isinstance(one, Arrow)]
    if max_messages is None or len(arrows) <= max_messages:
        return [*steps]
    at = arrows[max_messages]
    made: list[Drawn | LeftOut] = [*steps[:at], LeftOut(at_ns=steps[at].at_ns, count=len(arrows) - max_messages)]
    return [*made, steps[-1]] if isinstance(steps[-1], Aside) else made


def _halves(step: Drawn | LeftOut) -> list[Drawn | LeftOut]:
    """An arrow by way of mcpspy; what mcpspy itself wrote comes from there."""
    if not isinstance(step, Arrow) or USER_ID in (step.start, step.end):
        return [step]
    if step.injected:
        return [replace(step, start=PROXY_ID)]
    if step.stops:
        return [replace(step, end=PROXY_ID, opens="")]
    is_closed_last = step.closes == step.end
    first = replace(step, end=PROXY_ID, opens="", closes="" if is_closed_last else step.closes, details=())
    return [first, replace(step, start=PROXY_ID, closes=step.closes if is_closed_last else "")]


def _lanes(step: Drawn | LeftOut) -> tuple[str, ...]:
    match step:
        case Arrow():
            return step.start, step.end
        case Aside():
            return (step.at,)
        case _:
            return ()

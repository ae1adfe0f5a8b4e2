"""A sequence diagram before it is drawn: the participants, and the steps between them in order.

All printers (`mermaid`, `plantuml`, `svg`, `ladder`) draw this one layout. Every text is one line that is safe for a terminal;
printers escape it for their medium.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeAlias

TEXT_CELLS: Final = 120
"""Longer texts are cut, because they make a textual diagram unreadable."""


class ArrowKind(StrEnum):
    """Kind of an arrow. Each printer has one spelling for each."""

    REQUEST = "request"
    RESPONSE = "response"
    NOTIFICATION = "notification"
    CANCELLATION = "cancellation"
    LOST = "lost"
    """The response that never came."""


class FragmentKind(StrEnum):
    """Reason why steps are drawn together."""

    PHASE = "phase"
    """The steps belong to one phase of a server's life."""
    RUN = "run"
    """The steps belong to one agent run."""
    LOOP = "loop"
    """The steps are the rounds of one call, or some of calls that are alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """A lane: `id` is generated, `name` is the captured name or the one that the user chose."""

    id: str
    name: str
    is_person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """A message from one participant to another, by their ids. `text` is one safe line; `style` says how good the news is.

    `row` is the number of the row. `opens` is the lane whose activation starts here, `closes` the lane whose activation ends.
    `details` are lines of the payload. `injected`: mcpspy itself wrote the message. `stops`: mcpspy did not forward it.
    """

    at_ns: int
    start: str
    end: str
    kind: ArrowKind
    text: str
    style: str = ""
    row: int = 0
    opens: str = ""
    closes: str = ""
    details: tuple[str, ...] = ()
    injected: bool = False
    stops: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A note at one participant. `text` is one safe line; `closes` as for an arrow."""

    at_ns: int
    at: str
    text: str
    style: str = ""
    row: int = 0
    closes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OmittedMessages:
    """A count of messages that are not drawn."""

    at_ns: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """Steps drawn together under a title; at least one. `folded` messages are only counted in the title."""

    kind: FragmentKind
    title: str
    steps: Sequence[Step]
    folded: int = 0

    @property
    def at_ns(self) -> int:
        """Time of its first step."""
        return self.steps[0].at_ns


Step: TypeAlias = "Arrow | Aside | OmittedMessages | Fragment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """Participants, clients first, and steps by time. `title` may be empty. `has_times` says whether times are drawn."""

    participants: Sequence[Participant]
    steps: Sequence[Step]
    title: str = ""
    has_times: bool = True

    @property
    def outermost(self) -> tuple[str, ...]:
        """The ids of the first and the last participant; one id if there is only one."""
        ids = [participant.id for participant in self.participants]
        return tuple(dict.fromkeys((ids[0], ids[-1]))) if ids else ()

    @property
    def folded(self) -> int:
        """Number of messages that only the titles of loops mention."""
        return messages(self.steps) - sum(isinstance(step, Arrow) for step in flat(self.steps))

    @property
    def last_ns(self) -> int:
        """Time of the last step; 0 without steps."""
        return max((step.at_ns for step in flat(self.steps)), default=0)


@dataclass(slots=True)
class Activations:
    """Activations that are open while a diagram is printed. None is closed that was not opened, and all are closed at the end.

    A lane can have several.
    """

    open: Counter[str] = field(default_factory=Counter)

    def opens(self, step: Arrow) -> str:
        """Return the lane on which this arrow starts an activation, or an empty string."""
        if step.opens:
            self.open[step.opens] += 1
        return step.opens

    def closes(self, step: Arrow | Aside) -> str:
        """Return the lane on which this step ends an activation, or an empty string if none is open."""
        if not self.open[step.closes]:
            return ""
        self.open[step.closes] -= 1
        return step.closes

    def close(self) -> list[str]:
        """End all activations. Returns their lanes, one entry for each."""
        left = list(self.open.elements())
        self.open.clear()
        return left


def messages(steps: Iterable[Step]) -> int:
    """Count the messages that `steps` stand for, drawn or folded."""
    return sum(step.folded + messages(step.steps) if isinstance(step, Fragment) else isinstance(step, Arrow) for step in steps)


def first_messages(steps: Sequence[Step], max_messages: int) -> list[Step]:
    """Keep the first `max_messages` arrows and the notes between them, the count of the rest, and the last note."""
    kept = _beginning(steps, max_messages)
    omitted = messages(steps) - messages(kept)
    if not omitted:
        return [*steps]
    *_, last = flat(steps)
    kept.append(OmittedMessages(at_ns=max((step.at_ns for step in flat(kept)), default=0), count=omitted))
    return [*kept, last] if isinstance(last, Aside) else kept


def _beginning(steps: Sequence[Step], max_messages: int) -> list[Step]:
    """Keep steps up to the arrow after the first `max_messages`. A loop that is cut counts as whole."""
    kept: list[Step] = []
    for step in steps:
        size = sum(isinstance(inner, Arrow) for inner in flat([step]))
        if size <= max_messages:
            kept.append(step)
            max_messages -= size
            continue
        if isinstance(step, Fragment) and (inner := _beginning(step.steps, max_messages)):
            kept.append(replace(step, steps=inner))
        break
    return kept


def flat(steps: Sequence[Step]) -> Iterator[Arrow | Aside | OmittedMessages]:
    """Yield all steps in order, without the fragments around them."""
    for step in steps:
        if isinstance(step, Fragment):
            yield from flat(step.steps)
        else:
            yield step

"""A sequence diagram before anyone draws it: who takes part, and what goes between them in the order in which it went.

One layout for all printers (`mermaid`, `plantuml`, `svg`, `ladder`). Every text is one safe line for a terminal; printers escape it
for their medium. Refuses to know how an arrow is spelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

TEXT_CELLS: Final = 120
"""Longer texts make a diagram in words unreadable, and are cut."""


class ArrowKind(StrEnum):
    """What an arrow stands for; each printer has one spelling for each."""

    REQUEST = "request"
    RESPONSE = "response"
    NOTIFICATION = "notification"
    CANCELLATION = "cancellation"
    LOST = "lost"
    """The response that never came."""


class GroupKind(StrEnum):
    """Why steps stand together."""

    PHASE = "phase"
    """They happened in one phase of a server's life."""
    RUN = "run"
    """They are what it took to answer a user."""
    LOOP = "loop"
    """They are the rounds of one call."""


class Detail(StrEnum):
    """How much is told of each message."""

    NAMES = "names"
    """What it is and about what."""
    PARAMS = "params"
    """And in one line, what was asked and answered."""
    FULL = "full"
    """And the payload, cut where it is long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """A lane: `id` is ours and fixed, `name` is what it is called, as captured or as the user wants it."""

    id: str
    name: str
    is_person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """A message from one participant to another, by their ids. `text` is one safe line; `style` is how good the news is.

    `row` is the number of the row it belongs to. `opens` is the lane that works on something from now on, `closes` the one that is
    done with it. `details` are lines of its payload. `injected`: mcpspy itself wrote it; `stops`: it went no
    further than mcpspy.
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
    """Something that happened at one participant. `text` is one safe line; `closes` as for an arrow."""

    at_ns: int
    at: str
    text: str
    style: str = ""
    row: int = 0
    closes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """So many messages more, which are not drawn."""

    at_ns: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Steps that stand together under a title, never none."""

    kind: GroupKind
    title: str
    steps: Sequence[Step]

    @property
    def at_ns(self) -> int:
        """When its first step was."""
        return self.steps[0].at_ns


Step: TypeAlias = "Arrow | Aside | LeftOut | Group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """Participants, clients first, and steps by time. `title` may be empty."""

    participants: Sequence[Participant]
    steps: Sequence[Step]
    title: str = ""

    @property
    def outermost(self) -> tuple[str, ...]:
        """The ids of the first and the last participant; of one alone once."""
        ids = [one.id for one in self.participants]
        return tuple(dict.fromkeys((ids[0], ids[-1]))) if ids else ()

    @property
    def last_ns(self) -> int:
        """When the last step was."""
        return max((one.at_ns for one in flat(self.steps)), default=0)


@dataclass(slots=True)
class Bars:
    """The bars that are open while a diagram is printed, so that none is closed that was not opened, and all are at the end.

    A lane may have several: it works on several things.
    """

    open: Counter[str] = field(default_factory=Counter)

    def opens(self, step: Arrow) -> str:
        """The lane on which this arrow opens a bar, or nothing."""
        if step.opens:
            self.open[step.opens] += 1
        return step.opens

    def closes(self, step: Arrow | Aside) -> str:
        """The lane on which it closes one, or nothing where none is open."""
        if not self.open[step.closes]:
            return ""
        self.open[step.closes] -= 1
        return step.closes

    def close(self) -> list[str]:
        """The lanes of all that are open, once for each."""
        left = list(self.open.elements())
        self.open.clear()
        return left


def flat(steps: Sequence[Step]) -> Iterator[Arrow | Aside | LeftOut]:
    """All steps in order, without the groups around them."""
    for one in steps:
        if isinstance(one, Group):
            yield from flat(one.steps)
        else:
            yield one

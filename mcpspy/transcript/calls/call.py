"""What one side wanted once, in as many exchanges as it took: rounds with the input that was required, a task with its polls.

A call refers to rows, which know nothing of it: each of them keeps its number. `calls` makes them. Refuses to read payloads.
Source: MCP specification, 2026-07-28: basic/patterns/mrtr, basic/patterns/subscriptions; 2025-11-25: basic/utilities/tasks,
client/elicitation; SEP-2663 for tasks from 2026-07-28 on.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from ..mcp.fields import INPUT_REQUIRED
from ..mcp.methods import LISTEN
from ..model import Exchange, Outcome, UnpairedMessage

if TYPE_CHECKING:
    from ...records import Side

SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"
SUBSCRIPTIONS: Final = frozenset((LISTEN, SUBSCRIBE))


class CallPart(StrEnum):
    """What an exchange is to its call."""

    ROUND = "round"
    """It asks for what the call is about: the first time, or again with the input that was required."""
    POLL = "poll"
    """`tasks/get`."""
    RESULT = "result"
    """`tasks/result`, which may wait until the task has ended."""
    INPUT = "input"
    """`tasks/update`: what a task required."""
    CANCEL = "cancel"
    """`tasks/cancel`."""
    QUESTION = "question"
    """What the side that runs the task asks the other one meanwhile."""
    END = "end"
    """`resources/unsubscribe`."""


ABOUT_TASKS: Final = {
    "tasks/get": CallPart.POLL,
    "tasks/result": CallPart.RESULT,
    "tasks/update": CallPart.INPUT,
    "tasks/cancel": CallPart.CANCEL,
}

_ENDINGS: Final = {"completed": Outcome.OK, "failed": Outcome.ERROR, "cancelled": Outcome.CANCELLED}
"""What became of a task, by the statuses after which nothing changes any more."""


@dataclass(slots=True, eq=False)
class Task:
    """The task that a call became. `status` is the last one told, at `at_ns`; `changes` counts how often it was another one.

    `ttl_ms` and `poll_interval_ms` are what was last said of them; None where nothing was.
    """

    id: str
    status: str = ""
    at_ns: int = 0
    changes: int = 0
    ttl_ms: int | None = None
    poll_interval_ms: int | None = None
    cancelled: bool = False
    """Whether its cancellation was acknowledged, which need not mean that it stopped."""

    def note(self, status: str, at_ns: int) -> None:
        """Its status, as it was told at a time."""
        if status and not self.over:
            self.changes += status != self.status
            self.status, self.at_ns = status, at_ns

    @property
    def over(self) -> bool:
        """Whether its status will not change any more."""
        return self.status in _ENDINGS


@dataclass(slots=True, eq=False)
class Call:
    """What one side wanted once. `exchanges` are all that it took, in the order in which they began; never none.

    `notifications` are those about it: the status of its task, what a subscription brings, the end of an elicitation.
    `wire_ns` is how long its answered exchanges took, added up; `duration_ns` how long it took in all.
    """

    exchanges: list[Exchange]
    rounds: list[Exchange] = field(default_factory=list)
    """Those of them that ask for it. None, if it was asked for before the capture began."""
    polls: list[Exchange] = field(default_factory=list)
    """Those of them that ask how its task stands."""
    notifications: list[UnpairedMessage] = field(default_factory=list)
    task: Task | None = None
    wire_ns: int = 0
    needed_input: Exchange | None = None
    """The last round whose answer was that input is required."""
    elicitations: int = 0
    """To how many URLs it sends the user."""
    completed_elicitations: int = 0
    """How many of these are said to be done with."""
    answered_by: Exchange | None = None
    """The exchange whose answer is the answer to the call."""
    ended_ns: int | None = None
    """When its task ended, or it was unsubscribed."""
    task_failed: bool = False
    """Whether the result that its task says it has says `isError: true`."""

    @property
    def first(self) -> Exchange:
        """What began it."""
        return self.exchanges[0]

    @property
    def last_round(self) -> Exchange:
        """What asked for it last."""
        return self.rounds[-1] if self.rounds else self.exchanges[0]

    @property
    def row(self) -> int:
        """Its number: that of its first row."""
        return self.exchanges[0].row

    @property
    def sender(self) -> Side:
        """The side that wants it."""
        return self.exchanges[0].sender

    @property
    def is_subscription(self) -> bool:
        """Whether it lasts as long as it is wanted."""
        return self.first.method in SUBSCRIPTIONS

    @property
    def needs_input(self) -> bool:
        """Whether it waits for the side that wants it."""
        if self.task is not None:
            return self.task.status == INPUT_REQUIRED
        return self.needed_input is self.last_round

    @property
    def outcome(self) -> Outcome:
        """What became of it so far: pending while input is required, while its task works, while a subscription lasts."""
        if self.answered_by is not None:
            return self.answered_by.outcome
        if self.task is not None:
            ending = _ENDINGS.get(self.task.status, Outcome.CANCELLED if self.task.cancelled else Outcome.PENDING)
            return Outcome.TOOL_ERROR if self.task_failed and ending is Outcome.OK else ending
        if self.ended_ns is not None:
            return Outcome.OK
        return Outcome.PENDING if self.needs_input or self._lasts else self.last_round.outcome

    @property
    def duration_ns(self) -> int | None:
        """From the first request's last byte to the end of the call; None while it goes on."""
        if self.answered_by is not None and self.answered_by.response is not None:
            return self.answered_by.response.at_ns - self.first.at_ns
        if self.ended_ns is not None:
            return self.ended_ns - self.first.at_ns
        took_ns = None if self.outcome is Outcome.PENDING else self.last_round.duration_ns
        return None if took_ns is None else self.last_round.at_ns + took_ns - self.first.at_ns

    def part(self, exchange: Exchange) -> CallPart:
        """What one of its exchanges is to it."""
        if exchange.sender != self.sender:
            return CallPart.QUESTION
        if exchange.method == UNSUBSCRIBE:
            return CallPart.END
        return ABOUT_TASKS.get(exchange.method, CallPart.ROUND)

    def count(self, exchange: Exchange) -> int:
        """The how many-th of its rounds, or of its polls, an exchange is; 0 where it is neither."""
        part = self.part(exchange)
        among = self.rounds if part is CallPart.ROUND else self.polls if part is CallPart.POLL else []
        return bisect_right(among, exchange.row, key=lambda one: one.row)

    @property
    def _lasts(self) -> bool:
        """Whether it is a subscription whose answer is its beginning, not its end, as they were until 2025-11-25."""
        return self.last_round.method == SUBSCRIBE and self.last_round.outcome is Outcome.OK

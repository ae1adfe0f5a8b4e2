"""Calls: several exchanges with one purpose, such as rounds with required input, or a task with its polls.

A call refers to rows, and rows know nothing of calls: each row keeps its number. `join` makes the calls; nothing here reads payloads.
Source: MCP specification, 2026-07-28: basic/patterns/mrtr, basic/patterns/subscriptions; 2025-11-25: basic/utilities/tasks,
client/elicitation; SEP-2663 for tasks from 2026-07-28 on.
"""

from bisect import bisect_right
from enum import StrEnum
from typing import Final

import msgspec

from ...records import Side
from ..exchange import Exchange, UnpairedMessage
from ..mcp.codes import INPUT_REQUIRED
from ..mcp.methods import LISTEN
from ..outcome import Outcome

SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"
SUBSCRIPTIONS: Final = frozenset((LISTEN, SUBSCRIBE))


class CallPart(StrEnum):
    """The part that an exchange has in its call."""

    ROUND = "round"
    """It makes the call: for the first time, or again with the input that was required."""
    POLL = "poll"
    """`tasks/get`."""
    RESULT = "result"
    """`tasks/result`, which may wait until the task has ended."""
    INPUT = "input"
    """`tasks/update`, which brings input that a task required."""
    CANCEL = "cancel"
    """`tasks/cancel`."""
    QUESTION = "question"
    """A request in the other direction, from the side that runs the task."""
    END = "end"
    """`resources/unsubscribe`."""


ABOUT_TASKS: Final = {
    "tasks/get": CallPart.POLL,
    "tasks/result": CallPart.RESULT,
    "tasks/update": CallPart.INPUT,
    "tasks/cancel": CallPart.CANCEL,
}

_ENDINGS: Final = {"completed": Outcome.OK, "failed": Outcome.ERROR, "cancelled": Outcome.CANCELLED}
"""The outcomes of a task, by its final statuses."""


class Task(msgspec.Struct, eq=False):
    """The task that runs a call. `status` is the last one reported, at `at_ns`; `changes` counts how often it changed.

    `ttl_ms` and `poll_interval_ms` are the values last reported; None where none was.
    """

    id: str
    status: str = ""
    at_ns: int = 0
    changes: int = 0
    ttl_ms: int | None = None
    poll_interval_ms: int | None = None
    cancelled: bool = False
    """True if its cancellation was acknowledged, which does not mean that it stopped."""

    @property
    def over(self) -> bool:
        """True once its status is final."""
        return self.status in _ENDINGS


def note_status(task: Task, status: str, at_ns: int) -> None:
    """Take in a status of a task that was reported at a time."""
    if status and not task.over:
        task.changes += status != task.status
        task.status, task.at_ns = status, at_ns


class Call(msgspec.Struct, eq=False):
    """Several exchanges with one purpose. `exchanges` are all of them, in the order in which they began; at least one.

    `notifications` are those about it: the status of its task, updates of a subscription, the end of an elicitation.
    `wire_ns` is the sum of its answered exchanges' durations; `duration_ns` is the time from beginning to end.
    """

    exchanges: list[Exchange]
    rounds: list[Exchange] = []
    """The exchanges that make the call. Empty if it was made before the capture began."""
    polls: list[Exchange] = []
    """The exchanges that ask for the status of its task."""
    notifications: list[UnpairedMessage] = []
    task: Task | None = None
    wire_ns: int = 0
    needed_input: Exchange | None = None
    """The last round that was answered with a request for input."""
    elicitations: int = 0
    """The number of URLs to which it sends the user."""
    completed_elicitations: int = 0
    """The number of these that were reported as complete."""
    answered_by: Exchange | None = None
    """The exchange whose answer is the answer to the call."""
    ended_ns: int | None = None
    """The time at which its task or its subscription ended."""
    task_failed: bool = False
    """True if the task reported a result with `isError: true`."""

    @property
    def first(self) -> Exchange:
        """Its first exchange."""
        return self.exchanges[0]

    @property
    def last_round(self) -> Exchange:
        """Its last round; its first exchange if it has no rounds."""
        return self.rounds[-1] if self.rounds else self.exchanges[0]

    @property
    def row(self) -> int:
        """Its number: that of its first row."""
        return self.exchanges[0].row

    @property
    def sender(self) -> Side:
        """The side that makes the call."""
        return self.exchanges[0].sender

    @property
    def is_subscription(self) -> bool:
        """True if it is a subscription, which lasts until one side ends it."""
        return self.first.method in SUBSCRIPTIONS

    @property
    def needs_input(self) -> bool:
        """True while it waits for input of the side that makes it."""
        if self.task is not None:
            return self.task.status == INPUT_REQUIRED
        return self.needed_input is self.last_round

    @property
    def outcome(self) -> Outcome:
        """The outcome so far: pending while input is required, while its task works, while a subscription lasts."""
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
        """Return the part that one of its exchanges has in it."""
        if exchange.sender != self.sender:
            return CallPart.QUESTION
        if exchange.method == UNSUBSCRIBE:
            return CallPart.END
        return ABOUT_TASKS.get(exchange.method, CallPart.ROUND)

    def count(self, exchange: Exchange) -> int:
        """Return the position of an exchange among the rounds or among the polls, from 1; 0 if it is neither."""
        part = self.part(exchange)
        among = self.rounds if part is CallPart.ROUND else self.polls if part is CallPart.POLL else []
        return bisect_right(among, exchange.row, key=lambda other: other.row)

    @property
    def _lasts(self) -> bool:
        """True for a subscription whose answer is its beginning, not its end, as it was until 2025-11-25."""
        return self.last_round.method == SUBSCRIBE and self.last_round.outcome is Outcome.OK

"""Plan of a recorded client: what it sent, and what it received before each message it sent.

The steps are in the order of the capture: calls that overlapped overlap again, and a call that began after another was answered waits
for that answer. Steps have the times of the capture; live values and clocks are the player's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from ...transcript.mcp.methods import INITIALIZED, OPENINGS
from ...transcript.model import Exchange, Message

POLL: Final = "tasks/get"
_KEYED_BY_TARGET: Final = frozenset({"notifications/resources/updated", "notifications/message"})

MessageKey: TypeAlias = tuple[str, str]
"""The method of a message that the server sends on its own, and its target where that distinguishes messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """The client sends a request, a notification, or what is no JSON-RPC, `gap_ns` after the step before."""

    message: Message
    row: int
    exchange: Exchange | None = None
    gap_ns: int = 0

    @property
    def is_timed(self) -> bool:
        """True if the client's clock decided when to send it: a task that is polled sooner has not got as far."""
        return self.message.method == POLL


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """The client cancels a request, `after_ns` after sending it: by `message`, or by closing the stream of its answer.

    `is_late` says that the answer had already come.
    """

    exchange: Exchange
    message: Message | None
    after_ns: int
    is_late: bool = False
    gap_ns: int = 0

    @property
    def row(self) -> int:
        return self.exchange.row


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedAnswer:
    """The client gets the answer to its request of this row. Without `is_recorded` it waited for one in vain, until it left."""

    row: int
    is_recorded: bool = True
    gap_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedNotification:
    """The server sends a message on its own; `row` is the client's request that it belongs to, else 0."""

    key: MessageKey
    row: int = 0
    gap_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRequest:
    """The server asks, and the client answers its request of this row."""

    key: MessageKey
    row: int
    gap_ns: int = 0


PlanStep: TypeAlias = Send | Cancel | ExpectedAnswer | ExpectedNotification | ExpectedRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsentMessage:
    """A message of the recorded client that is not sent again, and why."""

    row: int
    message: Message
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps of one client. `rows` are those of the client and its server, unpaired messages included.

    `listens` says that it hears what the server sends on its own, over HTTP by a GET.
    """

    steps: tuple[PlanStep, ...]
    rows: frozenset[int] = frozenset()
    left_out: tuple[UnsentMessage, ...] = ()
    listens: bool = True

    @property
    def sends(self) -> list[Send]:
        """The messages it sends, in order."""
        return [step for step in self.steps if isinstance(step, Send)]

    @property
    def requests(self) -> list[Exchange]:
        """Its requests, in order."""
        return [step.exchange for step in self.sends if step.exchange is not None]

    def only(self, rows: Iterable[int], needs: Callable[[int], Iterable[int]] = lambda _: ()) -> Plan:
        """Reduce the plan to these rows, the rows that they need, and the handshake; `needs` returns what one row needs."""
        kept = closure(rows, needs) | {step.row for step in self.sends if is_handshake(step.message)}
        left_out = tuple(unsent for unsent in self.left_out if unsent.row in kept)
        return replace(self, steps=tuple(_steps_of(self.steps, kept)), left_out=left_out)


def message_key(message: Message) -> MessageKey:
    """Return the key of a message that the server sends on its own: never with what the server generates, as a task's id."""
    method = message.method or ""
    return method, (message.target or "") if method in _KEYED_BY_TARGET else ""


def is_handshake(message: Message) -> bool:
    """Return whether sessions begin with it."""
    return message.method in OPENINGS or message.method == INITIALIZED


def closure(rows: Iterable[int], needs: Callable[[int], Iterable[int]]) -> set[int]:
    """Return the rows, what they need, what that needs, and so on."""
    reached: set[int] = set()
    waiting = list(rows)
    while waiting:
        row = waiting.pop()
        if row not in reached:
            reached.add(row)
            waiting.extend(needs(row))
    return reached


def _steps_of(steps: Iterable[PlanStep], rows: set[int]) -> list[PlanStep]:
    """Keep the steps of these rows. What the server sent on its own during other requests is not waited for."""
    kept: list[PlanStep] = []
    open_elsewhere: set[int] = set()
    count = 0
    for step in steps:
        match step:
            case Send() | Cancel() | ExpectedAnswer():
                if step.row in rows:
                    kept.append(step)
                    count = len(kept)
                elif isinstance(step, Send):
                    open_elsewhere |= {step.row} if step.exchange is not None else set()
                else:
                    open_elsewhere.discard(step.row)
            case ExpectedNotification(row=row) if row:
                if row in rows:
                    kept.append(step)
            case _:
                if not open_elsewhere:
                    kept.append(step)
    return kept[:count]

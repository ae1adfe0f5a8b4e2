"""What a recorded client did, as a plan for doing it again: what it sent, and what it had been told before each thing it sent.

One step after the other, in the order of the recording: so calls that overlapped overlap again, and one that began after another
was answered waits for that answer. Refuses to know live values and clocks: steps have the times of the recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from ...transcript.mcp.methods import OPENINGS

if TYPE_CHECKING:
    from ...transcript.model import (
        Exchange,
        Message,
    )

INITIALIZED: Final = "notifications/initialized"
POLL: Final = "tasks/get"
_TOLD_APART: Final = frozenset({"notifications/resources/updated", "notifications/message"})

MessageKey: TypeAlias = tuple[str, str]
"""What the server says on its own is told apart by its method and by what it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """The client sends a request, a notification, or what is no JSON-RPC. `gap_ns` is how long that was after the step before."""

    message: Message
    row: int
    exchange: Exchange | None = None
    gap_ns: int = 0

    @property
    def is_timed(self) -> bool:
        """Whether it was the clock that had the client send it: asked sooner how it stands, a task has got less far."""
        return self.message.method == POLL


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """The client gives a request up, `after_ns` after it had sent it: by `message`, or by closing the stream of its answer.

    `is_late` says that the answer had come already.
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
    """The client has the answer to its request of this row. `is_recorded`: or it has waited for one in vain, until it left."""

    row: int
    is_recorded: bool = True
    gap_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedNotification:
    """The server has said something on its own; `row` is that of the client's request that it belongs to, else 0."""

    key: MessageKey
    row: int = 0
    gap_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRequest:
    """The client has answered the server's request of this row."""

    key: MessageKey
    row: int
    gap_ns: int = 0


PlanStep: TypeAlias = Send | Cancel | ExpectedAnswer | ExpectedNotification | ExpectedRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsentMessage:
    """Something that the recorded client sent and that is not sent again, and why."""

    row: int
    message: Message
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one client did. `rows` are all that it and its server asked, and what they said beside that.

    `listens` says that it would hear what the server says on its own, over HTTP by a GET of its own.
    """

    steps: tuple[PlanStep, ...]
    rows: frozenset[int] = frozenset()
    left_out: tuple[UnsentMessage, ...] = ()
    listens: bool = True

    @property
    def sends(self) -> list[Send]:
        """What it sends, in order."""
        return [step for step in self.steps if isinstance(step, Send)]

    @property
    def requests(self) -> list[Exchange]:
        """Its requests, in order."""
        return [step.exchange for step in self.sends if step.exchange is not None]

    def only(self, rows: Iterable[int], needs: Callable[[int], Iterable[int]] = lambda _: ()) -> Plan:
        """The plan for these rows alone, with the handshake and with what they need: `needs` are the rows that one row needs."""
        kept = _closed(rows, needs) | {step.row for step in self.sends if _is_handshake(step.message)}
        return replace(
            self, steps=tuple(_kept(self.steps, kept)), left_out=tuple(one for one in self.left_out if one.row in kept)
        )


def message_key(message: Message) -> MessageKey:
    """What a thing that the server says on its own is told apart by: never by what it has made up, as a task's id."""
    method = message.method or ""
    return method, (message.target or "") if method in _TOLD_APART else ""


def _is_handshake(message: Message) -> bool:
    return message.method in OPENINGS or message.method == INITIALIZED


def _closed(rows: Iterable[int], needs: Callable[[int], Iterable[int]]) -> set[int]:
    """The rows, what they need, what that needs, and so on."""
    found: set[int] = set()
    waiting = list(rows)
    while waiting:
        row = waiting.pop()
        if row not in found:
            found.add(row)
            waiting.extend(needs(row))
    return found


def _kept(steps: Iterable[PlanStep], rows: set[int]) -> list[PlanStep]:
    """The steps of these rows. What the server said on its own while it was asked something else is not waited for."""
    kept: list[PlanStep] = []
    left_out: set[int] = set()
    last = 0
    for step in steps:
        match step:
            case Send() | Cancel() | ExpectedAnswer():
                if step.row in rows:
                    kept.append(step)
                    last = len(kept)
                elif isinstance(step, Send):
                    left_out |= {step.row} if step.exchange is not None else set()
                else:
                    left_out.discard(step.row)
            case ExpectedNotification(row=row) if row:
                if row in rows:
                    kept.append(step)
            case _:
                if not left_out:
                    kept.append(step)
    return kept[:last]

"""Scheduled sends: what a script tells a mock to send or do, when, and as a part of which reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...transcript.model import Message
from .replies import ExitProcess, RecordedReply, SendMessage

if TYPE_CHECKING:
    from .miss import Miss
    from .templates import CallContext

OF_NO_REQUEST: Final = ("/list_changed", "/updated", "/complete", "/status")
"""The end of notifications that belong to no request: on stdio only their names say so."""

NO_REPLY: Final = RecordedReply()
"""The reply to a request that was never recorded."""


class ReplyState:
    """A reply that is being played, and how far. `id` and `progress_token` are the live request's; empty and None without one.

    `is_repeated` says that it was played before in its `call_context`, `was_played` that it was played in any. `next_step` is the
    index of the next step, and `since_ns` the recorded time that its delay counts from. `request_ids` are the live ids of the
    server's requests by the recorded ones, `unanswered` the rows of those that are not answered yet, and `task_ids` the live ids
    of tasks that the client runs for the server. `cancels` counts how often the client cancelled the request. `is_over` says that
    it cancelled a request that the recorded client did not cancel.
    """

    __slots__ = (
        "call_context", "cancels", "id", "is_over", "is_repeated", "next_step", "progress_token", "reply", "request", "request_ids",
        "since_ns", "task_ids", "unanswered", "was_played",
    )  # fmt: skip

    def __init__(self, reply: RecordedReply, call_context: CallContext, request: Message | None = None) -> None:
        self.reply = reply
        self.call_context = call_context
        self.request = request
        self.since_ns = reply.at_ns
        self.id = "" if request is None else request.id or "null"
        self.progress_token = None if request is None else request.correlation_key
        self.is_repeated = self.was_played = False
        self.next_step = 0
        self.request_ids: dict[str, str] = {}
        self.task_ids: dict[str, str] = {}
        self.unanswered: set[int] = set()
        self.is_over = False
        self.cancels = 0


class LiveServerBytes(bytes):
    """Bytes that a live server sent: all else that a mock sends is injected. A subclass of bytes, to pass wherever bytes do."""

    __slots__ = ()


class UnendedLine(bytes):
    """The last line of a recorded server, which it did not end. It goes out so if it is the last of a mock too."""

    __slots__ = ()


class ScheduledSend:
    """One thing that a mock does `delay_ns` after a message: send the message `data`, or end its process as the recorded one ended.

    `state` is the reply that it is a part of. `step` is the recorded step; None where nothing was recorded, as for the answer to a
    `ping`, or to a miss. `miss` explains the latter, without `data` if somebody else answers. `answers` says that it is the answer
    to the request of `state`. `cancels` is how often that request had been cancelled when this was scheduled.
    """

    __slots__ = ("answers", "cancels", "data", "delay_ns", "exit", "miss", "state", "step")

    def __init__(
        self,
        state: ReplyState,
        data: bytes = b"",
        delay_ns: int = 0,
        *,
        step: SendMessage | None = None,
        answers: bool = False,
        miss: Miss | None = None,
        exit: ExitProcess | None = None,
    ) -> None:
        self.state = state
        self.data = data
        self.delay_ns = delay_ns
        self.step = step
        self.answers = answers
        self.miss = miss
        self.exit = exit
        self.cancels = state.cancels


def in_recorded_order(sends: list[ScheduledSend]) -> list[ScheduledSend]:
    """Sort what follows several messages as it was recorded. What was not recorded stays behind what it follows."""
    at_ns = 0
    times: list[int] = []
    for send in sends:
        recorded = send.step or send.exit
        at_ns = recorded.at_ns if recorded is not None else at_ns
        times.append(at_ns)
    return [sends[index] for index in sorted(range(len(sends)), key=times.__getitem__)]

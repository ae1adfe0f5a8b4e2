"""Scheduled sends that a mock has put off, in the order in which they are due."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from ...replay.mock.scheduled_send import ReplyState, ScheduledSend

Receiver = TypeVar("Receiver")


class PutOffSends(Generic[Receiver]):
    """Sends to receivers. `speed` is how many times faster than recorded they are due, 0 being at once.

    No send of a reply is due before an earlier one of the same reply.
    """

    __slots__ = ("_count", "_due", "_earliest_ns", "_speed")

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._due: list[tuple[int, int, ScheduledSend, Receiver]] = []
        self._count = 0
        self._earliest_ns: dict[ReplyState, int] = {}
        """Due time of the last send of a reply; later sends of it are not due earlier."""

    @property
    def next_ns(self) -> int:
        """The time at which the next send is due; 0 if there is none."""
        return self._due[0][0] if self._due else 0

    def must_wait(self, send: ScheduledSend) -> bool:
        """Return whether a send is not due at once."""
        return bool(self._speed and (send.delay_ns or send.state in self._earliest_ns))

    def add(self, send: ScheduledSend, receiver: Receiver, now_ns: int) -> None:
        """Put off a send that must wait."""
        due_ns = max(now_ns + int(send.delay_ns / self._speed), self._earliest_ns.get(send.state, 0))
        self._earliest_ns[send.state] = due_ns
        self._count += 1
        heappush(self._due, (due_ns, self._count, send, receiver))

    def pop(self, now_ns: int) -> tuple[ScheduledSend, Receiver] | None:
        """Return the next send that is due, and its receiver; None if none is due."""
        if not self._due or self._due[0][0] > now_ns:
            return None
        due_ns, _, send, receiver = heappop(self._due)
        if self._earliest_ns.get(send.state) == due_ns:
            del self._earliest_ns[send.state]
        return send, receiver

    def clear(self) -> None:
        """Drop all sends."""
        self._due.clear()

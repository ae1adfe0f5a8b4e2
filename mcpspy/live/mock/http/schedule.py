"""The scheduled sends of all clients of a mock over HTTP, with one timer for all of them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from ..put_off import PutOffSends

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ....replay.mock.scheduled_send import ScheduledSend
    from .client import LiveClient


class SendSchedule:
    """Has clients send what is due. `speed` is how many times faster than recorded, 0 being at once; `now_ns` is the mock's clock."""

    __slots__ = ("_now_ns", "_put_off", "_timer")

    def __init__(self, speed: float, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._put_off: PutOffSends[LiveClient] = PutOffSends(speed)
        self._timer: asyncio.TimerHandle | None = None

    def play(self, client: LiveClient, sends: Sequence[ScheduledSend]) -> None:
        """Have `client` send what is due at once, and put off the rest."""
        next_ns = self._put_off.next_ns
        waiting = deque(sends)
        while waiting:
            send = waiting.popleft()
            if self._put_off.must_wait(send):
                self._put_off.add(send, client, self._now_ns())
            elif client.script.is_due(send):
                waiting.extend(client.send(send))
        if self._put_off.next_ns not in (0, next_ns):
            self._set_timer()

    def close(self) -> None:
        """Drop what is not due yet."""
        self._put_off.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._put_off.next_ns:
            delay_s = max(0, self._put_off.next_ns - self._now_ns()) / 1e9
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._send_due)

    def _send_due(self) -> None:
        now_ns = self._now_ns()
        try:
            while (due := self._put_off.pop(now_ns)) is not None:
                send, client = due
                if client.script.is_due(send):
                    self.play(client, client.send(send))
        finally:
            self._set_timer()

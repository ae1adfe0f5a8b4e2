"""What a mock over HTTP has to say later: the cues of all its live clients, by when they are due.

One timer for all of them. Refuses to say anything itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ....replay.mock.scheduled_send import ReplyState, ScheduledSend
    from .client import LiveClient


class SendSchedule:
    """`speed` is how many times faster than recorded they are due, 0 being at once. `now_ns` is the mock's clock."""

    __slots__ = ("_count", "_due", "_floors", "_now_ns", "_speed", "_timer")

    def __init__(self, speed: float, now_ns: Callable[[], int]) -> None:
        self._speed = speed
        self._now_ns = now_ns
        self._due: list[tuple[int, int, LiveClient, ScheduledSend]] = []
        self._count = 0
        self._floors: dict[ReplyState, int] = {}
        """When the last cue of a scene is due: none of it comes before."""
        self._timer: asyncio.TimerHandle | None = None

    def play(self, client: LiveClient, cues: Sequence[ScheduledSend]) -> None:
        """Have `client` told what is due at once, and put off the rest."""
        was_due_ns = self._due[0][0] if self._due else 0
        waiting = deque(cues)
        while waiting:
            cue = waiting.popleft()
            if self._speed and (cue.delay_ns or cue.state in self._floors):
                self._put_off(client, cue)
            elif client.script.is_due(cue):
                waiting.extend(client.say(cue))
        if self._due and self._due[0][0] != was_due_ns:
            self._set_timer()

    def close(self) -> None:
        """Nothing more is said."""
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _put_off(self, client: LiveClient, cue: ScheduledSend) -> None:
        due_ns = self._now_ns() + int(cue.delay_ns / self._speed)
        due_ns = self._floors[cue.state] = max(due_ns, self._floors.get(cue.state, 0))
        self._count += 1
        heappush(self._due, (due_ns, self._count, client, cue))

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due:
            delay_s = max(0, self._due[0][0] - self._now_ns()) / 1e9
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._say_due)

    def _say_due(self) -> None:
        now_ns = self._now_ns()
        try:
            while self._due and self._due[0][0] <= now_ns:
                due_ns, _, client, cue = heappop(self._due)
                if self._floors.get(cue.state) == due_ns:
                    del self._floors[cue.state]
                if client.script.is_due(cue):
                    self.play(client, client.say(cue))
        finally:
            self._set_timer()

"""Plays one recorded reply of a model's API on a live response, as fast as is asked for. Refuses to choose which."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...replay.mock.pace import due_ns, hurried

if TYPE_CHECKING:
    from ...records import Framing
    from ...replay.mock.recorded_prompts import Reply
    from .http.response import Response

MAX_AT_ONCE = 256
"""So many events are written in one go; then the client is asked whether it keeps up."""


class Playing:
    """A reply on its way. `speed` is how many times faster than recorded it is said, 0 being at once."""

    __slots__ = ("_begin_s", "_loop", "_next", "_reply", "_response", "_speed", "_timer")

    def __init__(self, reply: Reply, response: Response, speed: float) -> None:
        self._reply = reply
        self._response = response
        self._speed = speed
        self._loop = asyncio.get_running_loop()
        self._begin_s = self._loop.time()
        self._next = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Say what is due now, and the rest when it is."""
        self._response.left = self._left
        self._response.drained = self._go_on
        self._go_on()

    def _left(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _go_on(self) -> None:
        """Say all that is due, as long as the client takes it."""
        if not self._response.is_open or not self._is_due(self._reply.head_ns):
            return
        if not self._reply.is_stream and self._reply.ends == "whole":
            self._say_whole()
            return
        if not self._response.has_begun and self._reply.status:
            fields = list(hurried(self._reply.fields, self._speed))
            framing: Framing = "sse" if self._reply.is_stream else "body"
            self._response.begin(self._reply.status, fields, framing=framing, reason=self._reply.reason)
        parts = self._reply.parts
        while self._next < len(parts):
            if self._response.is_full:
                return  # `drained` goes on
            until = self._next
            while until < len(parts) and until - self._next < MAX_AT_ONCE and self._is_due(parts[until].delay_ns):
                until += 1
            if until == self._next:
                return  # the timer goes on
            due, self._next = parts[self._next : until], until
            self._response.tell(*(one.data for one in due))
        self._end()

    def _say_whole(self) -> None:
        reply = self._reply
        if reply.parts and not self._is_due(reply.parts[-1].delay_ns):
            return
        body = b"".join(one.data for one in reply.parts)
        self._response.whole(reply.status, list(hurried(reply.fields, self._speed)), body, reason=reply.reason)

    def _end(self) -> None:
        if self._reply.ends == "whole":
            self._response.end()
        else:
            self._response.cut_off()

    def _is_due(self, delay_ns: int) -> bool:
        """Whether what was said so long after the question is to be said by now; if not, the timer is set."""
        wait_s = self._begin_s + due_ns(delay_ns, self._speed) / 1e9 - self._loop.time()
        if wait_s <= 0:
            return True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(wait_s, self._go_on)
        return False

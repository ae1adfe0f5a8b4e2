"""How long a client connection is waited for: for the rest of a request, and for its leaving behind a forged answer.

One timer at most, and none between requests. Refuses to know what follows from it: that is a call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

REQUEST_S = 30.0
"""So long a request may take from one read to the next, and its head in all: who dribbles one holds a connection."""

LINGER_S = 2.0
"""So long what a client still sends is thrown away behind a forged answer: closed at once, the answer could be lost by a reset."""


class Patience:
    """The timer of one connection; `expired` is called when a request took too long."""

    __slots__ = ("_expired", "_is_heads", "_timer")

    def __init__(self, expired: Callable[[], None]) -> None:
        self._expired = expired
        self._timer: asyncio.TimerHandle | None = None
        self._is_heads = False

    def watch(self, *, is_head: bool, is_body: bool) -> None:
        """Something came of a request, and more is to come: of its head or of its body, or of neither."""
        if self._timer is not None:
            if is_head and self._is_heads:
                return  # a head has its time as a whole
            self.forget()
        if is_head or is_body:
            self._is_heads = is_head
            self._timer = asyncio.get_running_loop().call_later(REQUEST_S, self._expire)

    def linger(self, leave: Callable[[], None]) -> None:
        """Call `leave` unless the client leaves by itself."""
        self.forget()
        self._timer = asyncio.get_running_loop().call_later(LINGER_S, leave)

    def forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        self._expired()

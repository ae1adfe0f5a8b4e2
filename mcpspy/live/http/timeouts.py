"""How long a client connection is waited for: for the rest of a request, and for its leaving behind an injected answer.

One timer at most, and none is set between requests. Refuses to know what follows from it: that is a call.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .reactor import Reactor, Timer

REQUEST_S = 30.0
"""So long a request may take from one read to the next, and its head in all: who dribbles one holds a connection."""

LINGER_S = 2.0
"""So long what a client still sends is thrown away behind an injected answer: closed at once, the answer could be lost by a reset."""


class Patience:
    """The timer of one connection; `expired` is called when a request took too long.

    What is watched changes with every read, so the timer is left to run, and looks when it wakes how long there still is.
    """

    __slots__ = ("_due_s", "_expired", "_is_heads", "_reactor", "_timer")

    def __init__(self, reactor: Reactor, expired: Callable[[], None]) -> None:
        self._reactor = reactor
        self._expired = expired
        self._timer: Timer | None = None
        self._is_heads = False
        self._due_s = 0.0  # 0: nothing is watched

    def watch(self, *, is_head: bool, is_body: bool) -> None:
        """Something came of a request, and more is to come: of its head or of its body, or of neither."""
        if not is_head and not is_body:
            self._due_s = 0.0
        elif not (is_head and self._is_heads and self._due_s):  # a head has its time as a whole
            self._is_heads = is_head
            self._due_s = monotonic() + REQUEST_S
            if self._timer is None:
                self._timer = self._reactor.later(REQUEST_S, self._look)

    def linger(self, leave: Callable[[], None]) -> None:
        """Call `leave` unless the client leaves by itself."""
        self.forget()
        self._timer = self._reactor.later(LINGER_S, leave)

    def forget(self) -> None:
        """The connection is over: no request of it is waited for any more."""
        self._due_s = 0.0
        self._expired = _nothing  # whose it is refers to us
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        left_s = self._due_s - monotonic()
        if self._due_s and left_s > 0:
            self._timer = self._reactor.later(left_s, self._look)
        elif self._due_s:
            self._due_s = 0.0
            self._expired()


def _nothing() -> None:
    """What expires when nothing does."""

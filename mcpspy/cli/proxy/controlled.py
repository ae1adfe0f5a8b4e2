"""A tap over HTTP in the hands of its controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...live.http.intercepting import give_back, held_by, take_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...intercept.decisions import Intercepts
    from ...live.http.tap import HttpTap
    from ...live.waiting_messages import Decider, HeldMessage
    from ...records import Intercept
    from ..controlling import HeldBy


class HttpHands:
    """A tap over HTTP, as controllers need it."""

    transport = "http"
    takes_calls = False
    restarts = None

    def __init__(self, tap: HttpTap) -> None:
        self._tap = tap

    @property
    def intercepts(self) -> Decider | None:
        return self._tap.intercepts

    def now_ns(self) -> int:
        return self._tap.now_ns()

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        if self._tap.reactor.watches(fd):
            self._tap.reactor.forget(fd)
        self._tap.reactor.watch(fd, events, callback)

    def follow(self) -> None:
        """Do nothing: its server is somebody else's."""

    def forget(self, fd: int) -> None:
        self._tap.reactor.forget(fd)

    def held(self) -> list[tuple[HeldBy, HeldMessage]]:
        return [*held_by(self._tap)]

    def release_those_of(self, handle: int) -> None:
        for direction, item in self.held():
            if item.decision.held_by == handle:
                direction.release(item.number, item.decision.payload)

    def take_over(self, intercepts: Intercepts) -> None:
        take_over(self._tap, intercepts)

    def send_to_server(self, payload: bytes, act: Intercept) -> bool:
        """Send nothing: a session over HTTP is its client's."""
        return False

    def call_when_idle(self, action: Callable[[], None]) -> None:
        action()

    def give_back(self) -> None:
        give_back(self._tap)

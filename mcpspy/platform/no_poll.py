"""The names of poll(2) where there is none, as on Windows: what only reads files waits for nothing there."""

from __future__ import annotations

from time import sleep

POLLIN, POLLOUT, POLLERR, POLLHUP = 1, 4, 8, 16
PIPE_BUF = 512


class poll:  # noqa: N801 - as the C module spells it
    """Descriptors of which no event is ever seen. A wait lasts as long as it may."""

    __slots__ = ()

    def register(self, fd: int, events: int) -> None:
        """Do nothing: the end of a reader shows when we write to it."""

    def modify(self, fd: int, events: int) -> None:
        """Do nothing, likewise."""

    def unregister(self, fd: int) -> None:
        """Do nothing, likewise."""

    def poll(self, timeout_ms: float = 0) -> list[tuple[int, int]]:
        """Wait so long."""
        sleep(timeout_ms / 1000)
        return []

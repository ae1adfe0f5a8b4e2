"""`poll` as Linux has it, on systems where poll(2) is built on kqueue: macOS.

There it reports a hang-up only to who asks for one, may return with nothing before the time is over, and takes no devices but
terminals, of which it says so at once and then nothing about the others.
"""

from __future__ import annotations

import os
import select
from stat import S_ISCHR
from time import monotonic, sleep

LOOK_S = 0.01
"""Time between two looks while something is to be read that nobody asked for: the poll of such a system returns at once then."""


class BsdPoll:
    """Descriptors, and the events that are waited for; an error or a hang-up is always reported."""

    __slots__ = ("_poll", "_ready")

    def __init__(self) -> None:
        self._poll = select.poll()
        self._ready: dict[int, int] = {}
        """Devices that cannot be waited for, as they are always ready."""

    def register(self, fd: int, events: int) -> None:
        if _is_ready_always(fd):
            self._ready[fd] = events & (select.POLLIN | select.POLLOUT)
            return
        self._ready.pop(fd, None)
        self._poll.register(fd, events or select.POLLHUP)

    def modify(self, fd: int, events: int) -> None:
        self.register(fd, events)

    def unregister(self, fd: int) -> None:
        if self._ready.pop(fd, None) is None:
            self._poll.unregister(fd)

    def poll(self, timeout_ms: float | None = None) -> list[tuple[int, int]]:
        """Wait for events, at most so long; without a time, or with a negative one, for ever."""
        devices = [(fd, events) for fd, events in self._ready.items() if events]
        if devices:
            return [*devices, *self._poll.poll(0)]
        if timeout_ms is None or timeout_ms < 0:
            while not (ready := self._poll.poll()):
                sleep(LOOK_S)
            return ready
        until = monotonic() + timeout_ms / 1000
        while not (ready := self._poll.poll(timeout_ms)) and (timeout_ms := (until - monotonic()) * 1000) > 0:
            sleep(min(LOOK_S, timeout_ms / 1000))
        return ready


def _is_ready_always(fd: int) -> bool:
    return S_ISCHR(os.fstat(fd).st_mode) and not os.isatty(fd)

"""`poll` as Linux has it, on systems where poll(2) is built on kqueue: macOS.

There it reports a hang-up only to who asks for one, may return with nothing before the time is over, and takes no devices but
terminals, of which it says so at once and then nothing about the others. Of a socket it reports a hang-up as soon as the other side
has finished writing, though that may still read.
"""

from __future__ import annotations

import os
import select
import socket
from stat import S_ISCHR, S_ISSOCK
from time import monotonic, sleep

LOOK_S = 0.01
"""Time between two looks while something is to be read that nobody asked for: the poll of such a system returns at once then."""


HALF_LOOK_S = 0.5
"""Time between two looks whether a socket still has a reader, whose other side has finished writing."""


class BsdPoll:
    """Descriptors, and the events that are waited for; an error or a hang-up is always reported."""

    __slots__ = ("_half_closed", "_poll", "_ready", "_silent")

    def __init__(self) -> None:
        self._poll = select.poll()
        self._ready: dict[int, int] = {}
        """Devices that cannot be waited for, as they are always ready."""
        self._silent: set[int] = set()
        """Sockets of which only a hang-up is asked."""
        self._half_closed: set[int] = set()
        """Those of them whose other side has finished writing, and reads."""

    def register(self, fd: int, events: int) -> None:
        if _is_ready_always(fd):
            self._ready[fd] = events & (select.POLLIN | select.POLLOUT)
            return
        self._ready.pop(fd, None)
        self._half_closed.discard(fd)
        (self._silent.discard if events or not S_ISSOCK(os.fstat(fd).st_mode) else self._silent.add)(fd)
        self._poll.register(fd, events or select.POLLHUP)

    def modify(self, fd: int, events: int) -> None:
        self.register(fd, events)

    def unregister(self, fd: int) -> None:
        self._silent.discard(fd)
        if fd in self._half_closed:
            self._half_closed.discard(fd)
        elif self._ready.pop(fd, None) is None:
            self._poll.unregister(fd)

    def poll(self, timeout_ms: float | None = None) -> list[tuple[int, int]]:
        """Wait for events, at most so long; without a time, or with a negative one, for ever."""
        devices = [(fd, events) for fd, events in self._ready.items() if events]
        if devices:
            return [*devices, *self._look(0)]
        until = None if timeout_ms is None or timeout_ms < 0 else monotonic() + timeout_ms / 1000
        while True:
            left_s = None if until is None else max(0.0, until - monotonic())
            ready = self._look(left_s)
            if ready or (until is not None and monotonic() >= until):
                return ready
            sleep(LOOK_S if until is None else max(0.0, min(LOOK_S, until - monotonic())))

    def _look(self, timeout_s: float | None) -> list[tuple[int, int]]:
        """Return what is ready now or within this time, or earlier nothing."""
        if self._half_closed:
            timeout_s = HALF_LOOK_S if timeout_s is None else min(timeout_s, HALF_LOOK_S)
        found = self._poll.poll(None if timeout_s is None else timeout_s * 1000)
        ready = [(fd, events) for fd, events in found if fd not in self._silent or not self._is_half_closed(fd)]
        return ready + [(fd, select.POLLHUP) for fd in self._half_closed if not has_reader(fd)]

    def _is_half_closed(self, fd: int) -> bool:
        if not has_reader(fd):
            return False
        self._poll.unregister(fd)  # else it would be reported again at once
        self._half_closed.add(fd)
        return True


def has_reader(fd: int) -> bool:
    """Return whether somebody can still read what is written to a socket."""
    with socket.socket(fileno=os.dup(fd)) as other:
        try:
            other.send(b"")
        except BlockingIOError:
            return True
        except OSError:
            return False
    return True


def _is_ready_always(fd: int) -> bool:
    return S_ISCHR(os.fstat(fd).st_mode) and not os.isatty(fd)

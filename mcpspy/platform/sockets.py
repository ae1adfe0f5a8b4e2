"""Waiting for sockets: by epoll where there is one, else by poll."""

from __future__ import annotations

import select
import socket
import sys
from math import ceil
from time import monotonic

__all__ = ["ENDED", "ERROR", "HANG_UP", "IN", "OUT", "SocketPoll", "was_reset"]

IN = select.POLLIN
OUT = select.POLLOUT
ERROR = select.POLLERR
HANG_UP = select.POLLHUP
_HAS_EPOLL = hasattr(select, "epoll")

ENDED = 0x400
"""An event that never comes. Who waits for it alone learns of a reset, also on a connection whose other side has closed its half.

EPOLLMSG of Linux, whose other events have the values of poll's too.
"""

LOOK_S = 0.25
"""Time between two looks, without epoll, at connections of which only a reset is of interest."""


class PollOfSockets:
    """The part of epoll that a reactor needs, made of poll."""

    __slots__ = ("_poll", "_quiet")

    def __init__(self) -> None:
        self._poll = select.poll()
        self._quiet: dict[int, int] = {}
        """Sockets of which no event is wanted. BSD's poll would report an end that was read again and again as a hang-up."""

    def register(self, fd: int, events: int) -> None:
        if events & (IN | OUT):
            self._quiet.pop(fd, None)
            self._poll.register(fd, events & (IN | OUT))
        else:
            self._quiet[fd] = events

    def modify(self, fd: int, events: int) -> None:
        if fd not in self._quiet and not events & (IN | OUT):
            self._poll.unregister(fd)
        self.register(fd, events)

    def unregister(self, fd: int) -> None:
        if self._quiet.pop(fd, None) is None:
            self._poll.unregister(fd)

    def poll(self, timeout_s: float = -1, max_events: int = -1) -> list[tuple[int, int]]:
        """Wait for events, at most so long; with a negative time for ever."""
        if not any(self._quiet.values()):
            return _told(self._poll.poll(None if timeout_s < 0 else ceil(timeout_s * 1000)))
        until = monotonic() + timeout_s if timeout_s >= 0 else float("inf")
        while True:
            left_s = max(0.0, min(LOOK_S, until - monotonic()))
            ready = _told(self._poll.poll(ceil(left_s * 1000))) + self._lost()
            if ready or monotonic() >= until:
                return ready

    def close(self) -> None:
        """Close nothing: a poll has no descriptor."""

    def _lost(self) -> list[tuple[int, int]]:
        """Return the quiet connections that were reset: those that cannot be written to any more."""
        look = select.poll()
        for fd, events in self._quiet.items():
            if events:
                look.register(fd, OUT)
        return [(fd, events & ~OUT) for fd, events in look.poll(0) if events & (ERROR | HANG_UP)]


def _told(ready: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Tell regular ends from resets, which BSD's poll both reports as hang-ups. To ask for the error removes it."""
    return [
        (fd, _without_hang_up(fd, events) if events & IN and events & (ERROR | HANG_UP) else events) for fd, events in ready
    ]


def _without_hang_up(fd: int, events: int) -> int:
    try:
        connected = socket.socket(fileno=fd)
    except OSError:
        return events  # a pipe
    try:
        is_reset = connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    finally:
        connected.detach()
    return events | ERROR if is_reset else events & ~(ERROR | HANG_UP) or events


if sys.platform.startswith("linux"):
    from select import epoll as SocketPoll  # noqa: N812 - a type that the C module spells so
else:
    SocketPoll = PollOfSockets


def was_reset(events: int, *, is_tls: bool) -> bool:
    """Return whether a connection of which nothing more can be read was reset; `events` were reported with its end.

    Where there is epoll, reading reports it, but not for TLS.
    """
    return bool(events & (ERROR | HANG_UP)) and is_tls if _HAS_EPOLL else bool(events & ERROR)

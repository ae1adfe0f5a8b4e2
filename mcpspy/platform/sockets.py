"""Waiting for sockets: by epoll where there is one, else by poll, on Windows by select. And their options and errors."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import sys
from math import ceil
from time import monotonic, sleep

__all__ = [
    "ENDED",
    "ERROR",
    "HANG_UP",
    "IN",
    "IN_PROGRESS",
    "LINGER_NOT",
    "OUT",
    "SOCKETS_ARE_FILES",
    "SocketPoll",
    "Waker",
    "claim",
    "error_text",
    "was_reset",
]

IN, OUT, ERROR, HANG_UP = 0x1, 0x4, 0x8, 0x10
"""The values of poll's events, which all systems share."""

IN_PROGRESS = (errno.EINPROGRESS, errno.EWOULDBLOCK) if sys.platform == "win32" else (errno.EINPROGRESS,)
"""The codes of `connect_ex` for a connection that is being made."""

LINGER_NOT = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
"""The value of SO_LINGER for a connection that is closed by a reset."""

SOCKETS_ARE_FILES = sys.platform != "win32"
"""True where `os.read` and `os.write` take the number of a socket."""

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


class SelectOfSockets:
    """The part of epoll that a reactor needs, made of select, which takes 512 sockets on Windows: see `most_open_files`.

    A hang-up of one that is not read is not noticed; a connection that could not be made is, as select reports it as exceptional.
    """

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: dict[int, int] = {}

    def register(self, fd: int, events: int) -> None:
        self._events[fd] = events

    def modify(self, fd: int, events: int) -> None:
        self._events[fd] = events

    def unregister(self, fd: int) -> None:
        del self._events[fd]

    def poll(self, timeout_s: float = -1, max_events: int = -1) -> list[tuple[int, int]]:
        """Wait for events, at most so long; with a negative time for ever."""
        ended = [fd for fd, events in self._events.items() if events & (IN | OUT | ENDED) == ENDED]
        if not ended:
            return self._select(None if timeout_s < 0 else timeout_s)
        until = monotonic() + timeout_s if timeout_s >= 0 else float("inf")
        while True:
            ready = self._select(max(0.0, min(LOOK_S, until - monotonic())))
            ready += [(fd, ERROR) for fd in ended if _is_lost(fd)]
            if ready or monotonic() >= until:
                return ready

    def close(self) -> None:
        """Close nothing: select has no descriptor."""

    def _select(self, timeout_s: float | None) -> list[tuple[int, int]]:
        reading = [fd for fd, events in self._events.items() if events & IN]
        writing = [fd for fd, events in self._events.items() if events & OUT]
        if not (reading or writing):  # which Windows refuses
            sleep(LOOK_S if timeout_s is None else timeout_s)
            return []
        found = select.select(reading, writing, writing, timeout_s)
        ready: dict[int, int] = {}
        for fds, event in zip(found, (IN, OUT, OUT | ERROR), strict=True):
            for fd in fds:
                ready[fd] = ready.get(fd, 0) | event
        return list(ready.items())


def _is_lost(fd: int) -> bool:
    """Return whether a connection was reset whose other side has closed its half."""
    connected = socket.socket(fileno=fd)
    try:
        connected.send(b"")  # systems differ in which of the two fails
        connected.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connected.detach()
    return False


class PipeWaker:
    """A pipe that wakes who waits for sockets: a byte that is written to `writing_fd` makes `reading_fd` readable."""

    __slots__ = ("reading_fd", "writing_fd")

    def __init__(self) -> None:
        self.reading_fd, self.writing_fd = os.pipe()
        for fd in (self.reading_fd, self.writing_fd):
            os.set_blocking(fd, False)

    def wake(self) -> None:
        """Make the other end readable. Raises: OSError: it is already, or it is closed."""
        os.write(self.writing_fd, b"\0")

    def empty(self) -> None:
        """Read what was written."""
        os.read(self.reading_fd, _WAKE_BYTES)

    def close(self) -> None:
        """Close both ends; after it, nothing is written to a descriptor that is another file's by then."""
        os.close(self.reading_fd)
        fd, self.writing_fd = self.writing_fd, -1
        os.close(fd)


class SocketWaker:
    """The same made of two sockets, where select takes nothing else."""

    __slots__ = ("_reading", "_writing", "reading_fd", "writing_fd")

    def __init__(self) -> None:
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._writing.setblocking(False)
        self.reading_fd, self.writing_fd = self._reading.fileno(), self._writing.fileno()

    def wake(self) -> None:
        """Make the other end readable. Raises: OSError: it is already, or it is closed."""
        self._writing.send(b"\0")

    def empty(self) -> None:
        """Read what was written."""
        self._reading.recv(_WAKE_BYTES)

    def close(self) -> None:
        """Close both ends."""
        self._reading.close()
        self._writing.close()
        self.writing_fd = -1


_WAKE_BYTES = 1 << 12

if sys.platform == "win32":
    SocketPoll = SelectOfSockets
    Waker = SocketWaker
elif sys.platform.startswith("linux"):
    from select import epoll as SocketPoll  # noqa: N812 - a type that the C module spells so

    Waker = PipeWaker
else:
    SocketPoll = PollOfSockets
    Waker = PipeWaker


def claim(listener: socket.socket) -> None:
    """Have an address that nobody listens at any more be free at once. On Windows it is; there nobody else may share ours."""
    option = getattr(socket, "SO_EXCLUSIVEADDRUSE", 0) if sys.platform == "win32" else socket.SO_REUSEADDR
    if option:
        listener.setsockopt(socket.SOL_SOCKET, option, 1)


def error_text(code: int) -> str:
    """Return the text of an error of a socket: Windows' codes of these have theirs in a table of their own."""
    table: dict[int, str] = getattr(socket, "errorTab", {})
    return table.get(code) or os.strerror(code)


def was_reset(events: int, *, is_tls: bool) -> bool:
    """Return whether a connection of which nothing more can be read was reset; `events` were reported with its end.

    Where there is epoll, reading reports it, but not for TLS.
    """
    return bool(events & (ERROR | HANG_UP)) and is_tls if _HAS_EPOLL else bool(events & ERROR)

"""Waiting for descriptors; writing to them without ever blocking, and closing them, also those that we share with other processes.

A client's end of a pipe is shared with whatever else holds it, so O_NONBLOCK is never set on it: that would break its other
holders. Pipes and terminals are opened anew through /proc; for sockets each call says that it must not block. On Windows all this
is done by pipe_threads.
"""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import partial
    from typing import Final
else:  # the C part alone: `functools` costs 2 ms, and a lambda instead 0.06 µs a call
    from _functools import partial

if sys.platform == "win32":
    from .pipe_threads import PIPE_BUF, POLLERR, POLLHUP, POLLIN, POLLOUT, poll, read
elif sys.platform.startswith("linux"):
    from os import read
    from select import PIPE_BUF, POLLERR, POLLHUP, POLLIN, POLLOUT, poll
else:
    from os import read
    from select import PIPE_BUF, POLLERR, POLLHUP, POLLIN, POLLOUT

    from .bsd_poll import BsdPoll as poll  # noqa: N813 - as the C module spells it

__all__ = [
    "PIPE_BYTES",
    "POLLERR",
    "POLLHUP",
    "POLLIN",
    "POLLOUT",
    "SHOWS_READERS",
    "SURE_BYTES",
    "enlarge",
    "ensure_standard_streams",
    "poll",
    "read",
    "release",
    "rest_of",
    "sender",
    "wake_pipe",
]

PIPE_BYTES = 1 << 20
"""The size that a pipe is given once large messages pass, so that they pass in fewer turns.

Not earlier: a user's pipes share 64 MiB on Linux, which the taps of a few clients would use up (pipe(7), pipe-user-pages-soft).
"""

SHOWS_READERS: Final = sys.platform != "win32"
"""A pipe polls as broken when it has lost its reader, also if nothing is written."""

_F_SETPIPE_SZ = 1031

_never_collected: list[object] = []

SURE_BYTES = PIPE_BUF
"""A pipe that polls as writable takes this much without blocking: 4096 bytes on Linux, 512 on macOS."""


def sender(fd: int) -> Callable[[bytes | memoryview], int]:
    """Return a function that writes to `fd` as much as it takes at once, and returns how many bytes that were.

    The function raises BlockingIOError if `fd` takes nothing, and OSError if it has no reader.
    """
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        return _socket_sender(fd)
    if stat.S_ISREG(mode) or _open_anew(fd) or (fd > 2 and not os.get_blocking(fd)):  # a standard stream has other holders
        return partial(os.write, fd)
    return _careful_sender(fd)


def release(fd: int) -> None:
    """Close `fd` for the other end to see. The number of a standard stream is kept in use, so that no other file gets it."""
    if fd > 2:
        os.close(fd)
        return
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, fd)
    if nowhere != fd:
        os.close(nowhere)


def rest_of(fd: int) -> tuple[bytes, bool]:
    """Read what a pipe holds. Return it, and whether everybody who could write more has gone."""
    readable = poll()
    readable.register(fd, POLLIN)
    data = read(fd, PIPE_BYTES) if readable.poll(0) else b""  # all that a pipe of ours can hold
    if not any(events & POLLHUP for _, events in readable.poll(0)):
        return data, False
    more = read(fd, PIPE_BYTES)  # written meanwhile; some systems report both in the same way
    return data + more, not more


def enlarge(fd: int) -> None:
    """Have the pipe at `fd` hold `PIPE_BYTES`. Linux only; nothing changes if that is refused or `fd` is no pipe."""
    if sys.platform.startswith("linux"):
        from fcntl import fcntl

        try:
            fcntl(fd, _F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # no pipe, or the user's share of pipe memory is used up


def ensure_standard_streams() -> None:
    """Open the null device for each missing standard stream, so that no pipe of ours takes its number."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)


def wake_pipe() -> tuple[int, int]:
    """Return a pipe by which a thread wakes one that polls: where there are pipes that cannot block, a write to a full one fails."""
    ends = os.pipe()
    if sys.platform != "win32":
        for fd in ends:
            os.set_blocking(fd, False)
    return ends


def _socket_sender(fd: int) -> Callable[[bytes | memoryview], int]:
    from _socket import MSG_DONTWAIT, socket  # `socket` imports `enum` and `selectors`: 3 ms

    shared = socket(fileno=fd)
    _never_collected.append(shared)  # that would close the descriptor, which `release` does
    send = shared.send
    return lambda data: send(data, MSG_DONTWAIT)


def _open_anew(fd: int) -> bool:
    """Give `fd` an open file description of our own, non-blocking. Returns False if the system does not allow it."""
    try:
        own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return False
    os.dup2(own, fd, inheritable=fd <= 2)  # a server that is started later would keep it open
    os.close(own)
    return True


def _careful_sender(fd: int) -> Callable[[bytes | memoryview], int]:
    writable = poll()
    writable.register(fd, POLLOUT)

    def send(data: bytes | memoryview) -> int:
        rest = memoryview(data)
        while rest and writable.poll(0):
            try:
                rest = rest[os.write(fd, rest[:SURE_BYTES]) :]
            except OSError:
                if len(rest) == len(data):
                    raise
                break  # which the next call reports
        if len(rest) == len(data):
            raise BlockingIOError
        return len(data) - len(rest)

    return send


if sys.platform == "win32":  # where each pipe has a thread
    from .pipe_threads import release, rest_of, sender

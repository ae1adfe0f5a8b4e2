"""Signals that Windows lacks, as bytes at the descriptor where the others are read: the end of a child, and an alarm.

The numbers are those of Linux, so that captures name them everywhere alike; that of SIGQUIT is SIGBREAK's, which a console sends
for Ctrl+Break and when it is closed.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread
from time import monotonic

SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGCHLD = 1, 2, 21, 9, 10, 12, 14, 15, 17

_NEVER_S = 1e6

_writing_fds: list[int] = []
_due_s: list[float] = []
_set = allocate_lock()


def report_to(fd: int) -> None:
    """Report signals there from now on."""
    _writing_fds[:] = [fd]


def report(number: int) -> None:
    """Report a signal. May be called from any thread."""
    for fd in _writing_fds:
        os.write(fd, bytes((number,)))


def set_alarm(delay_s: float) -> None:
    """Have SIGALRM reported after a delay, in place of an earlier alarm. The first call starts a thread that waits."""
    is_first, _due_s[:] = not _due_s, [monotonic() + delay_s]
    if is_first:
        start_new_thread(_wait, ())
    try:
        _set.release()
    except RuntimeError:
        pass  # the thread has not seen the last alarm yet, and sees this one then


def _wait() -> None:
    while True:
        left_s = min(max(0.0, _due_s[0] - monotonic()), _NEVER_S)
        if not _set.acquire(timeout=left_s) and monotonic() >= _due_s[0]:
            _due_s[:] = [float("inf")]
            report(SIGALRM)

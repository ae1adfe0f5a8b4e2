"""Signals as bytes at a descriptor. Listening begins before the server is started: an earlier signal would kill us unrecorded.

Signals that were ignored when we started stay ignored, for us and for the server: nohup and the like mean both.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # `signal` itself imports `enum`: 4 ms

SIGNAL_NAMES: dict[int, str] = {
    signal.SIGHUP: "SIGHUP",
    signal.SIGINT: "SIGINT",
    signal.SIGQUIT: "SIGQUIT",
    signal.SIGTERM: "SIGTERM",
    signal.SIGUSR1: "SIGUSR1",
    signal.SIGUSR2: "SIGUSR2",
}
"""The signals that are passed on."""


def listen() -> int:
    """Return a descriptor at which the number of each such signal can be read from now on, one byte each."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    for number in SIGNAL_NAMES:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _nothing)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    return read


def listen_to_our_own() -> None:
    """Have SIGCHLD and SIGALRM reported there too, even if our parent ignored or blocked them."""
    for number in (signal.SIGCHLD, signal.SIGALRM):
        signal.signal(number, _nothing)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD, signal.SIGALRM))


def set_alarm(delay_ns: int) -> None:
    """Have SIGALRM reported after a delay, in place of an earlier alarm.

    So a tap waits without a time-out, and a message costs the same whether or not a timer runs.
    """
    signal.setitimer(signal.ITIMER_REAL, max(delay_ns, 1) / 1e9)


def name(number: int) -> str:
    """Return `SIGTERM` for 15."""
    if number in SIGNAL_NAMES:
        return SIGNAL_NAMES[number]
    from signal import Signals  # it imports `enum`, which is worth it only for a rare signal

    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def _nothing(number: int, frame: object) -> None:
    """Do nothing: a handler must exist for the wake-up descriptor to be written, and its reader does the work."""

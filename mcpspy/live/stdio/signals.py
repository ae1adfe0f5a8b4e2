"""Signals as bytes at a descriptor, from before the server is started: one that came earlier would kill us untold.

Refuses to act on any of them. What was ignored when we started stays ignored, for us and for the server: nohup and the like
mean both.
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
    """The descriptor at which the number of each such signal can be read from now on, one byte each."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    for number in SIGNAL_NAMES:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _nothing)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    return read


def listen_to_our_own() -> None:
    """Have the ends of children and our alarm told there as well, whatever whoever started us did to those signals."""
    for number in (signal.SIGCHLD, signal.SIGALRM):
        signal.signal(number, _nothing)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD, signal.SIGALRM))


def set_alarm(delay_ns: int) -> None:
    """Have SIGALRM told after so long, in place of an earlier alarm.

    So a tap needs no time-out when it waits, and while a timer runs a message costs no more than when none does.
    """
    signal.setitimer(signal.ITIMER_REAL, max(delay_ns, 1) / 1e9)


def name(number: int) -> str:
    """`SIGTERM` for 15."""
    if number in SIGNAL_NAMES:
        return SIGNAL_NAMES[number]
    from signal import Signals  # `enum` comes with it, which a server that dies of a rare signal may cost

    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def _nothing(number: int, frame: object) -> None:
    """A handler has to be there for the wake-up descriptor to be written; all is done where that is read."""

"""Signals as bytes at a descriptor. Listening begins before the server is started: an earlier signal would kill us unrecorded.

Signals that were ignored when we started stay ignored, for us and for the server: nohup and the like mean both. Windows has but the
keys of a console; the end of a child and an alarm come from threads there.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from signal import SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2
else:
    import _signal as signal  # `signal` itself imports `enum`: 4 ms

    if sys.platform == "win32":
        from .windows_signals import SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2
    else:
        from _signal import SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2

__all__ = [
    "ENDING",
    "FROM_KEYBOARD",
    "SIGALRM",
    "SIGCHLD",
    "SIGKILL",
    "SIGTERM",
    "listen",
    "listen_to_our_own",
    "name",
    "number",
    "on_end",
    "set_alarm",
]

SIGNAL_NAMES: dict[int, str] = {
    SIGHUP: "SIGHUP",
    SIGINT: "SIGINT",
    SIGQUIT: "SIGBREAK" if sys.platform == "win32" else "SIGQUIT",
    SIGTERM: "SIGTERM",
    SIGUSR1: "SIGUSR1",
    SIGUSR2: "SIGUSR2",
}
"""The signals that are passed on."""

ENDING = (SIGHUP, SIGINT, SIGQUIT, SIGTERM)
FROM_KEYBOARD = (SIGINT, SIGQUIT)

_LISTENED = FROM_KEYBOARD if sys.platform == "win32" else tuple(SIGNAL_NAMES)
"""Nobody can send us another one on Windows: what ends a process there asks nobody."""


def listen() -> int:
    """Return a descriptor at which the number of each such signal can be read from now on, one byte each."""
    read, write = os.pipe()
    if sys.platform == "win32":
        from .windows_signals import report_to

        report_to(write)
    else:
        os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)  # first: a signal that has a handler and comes before this is lost
    for listened in _LISTENED:
        if signal.getsignal(listened) is not signal.SIG_IGN:
            signal.signal(listened, _nothing)
    return read


def listen_to_our_own() -> None:
    """Have SIGCHLD and SIGALRM reported there too, even if our parent ignored or blocked them."""
    if sys.platform == "win32":
        return
    for our_own in (signal.SIGCHLD, signal.SIGALRM):
        signal.signal(our_own, _nothing)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD, signal.SIGALRM))


def set_alarm(delay_ns: int) -> None:
    """Have SIGALRM reported after a delay, in place of an earlier alarm.

    So a tap waits without a time-out, and a message costs the same whether or not a timer runs.
    """
    if sys.platform == "win32":
        from .windows_signals import set_alarm as set_alarm_of_thread

        set_alarm_of_thread(max(delay_ns, 1) / 1e9)
        return
    signal.setitimer(signal.ITIMER_REAL, max(delay_ns, 1) / 1e9)


def on_end(action: object) -> None:
    """Have the signals that end a process call `action`, but those that were ignored when we started, as under nohup."""
    for ending in _LISTENED if sys.platform == "win32" else (SIGINT, SIGTERM, SIGHUP):
        if signal.getsignal(ending) is not signal.SIG_IGN:
            signal.signal(ending, action)  # type: ignore[arg-type]  # a handler, whose type would cost an import


def name(number: int) -> str:
    """Return `SIGTERM` for 15."""
    if number in SIGNAL_NAMES:
        return SIGNAL_NAMES[number]
    from signal import Signals  # it imports `enum`, which is worth it only for a rare signal

    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def number(name: str) -> int:
    """Return 15 for `SIGTERM`; the number of SIGKILL for one that this system lacks."""
    from signal import Signals

    known = {name: number for number, name in SIGNAL_NAMES.items()}
    return known.get(name) or int(getattr(Signals, name, SIGKILL))


def _nothing(number: int, frame: object) -> None:
    """Do nothing: a handler must exist for the wake-up descriptor to be written, and its reader does the work."""

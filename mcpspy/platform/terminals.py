"""The terminal that a process belongs to: its keys, what is drawn on all of it, and how it is put right after the end."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, Final

DRAWING: Final = b"\x1b[?1049h\x1b[?25l\x1b[?7l"
"""The escape sequences that give a program the whole screen, hide the cursor and let no line wrap."""

NO_DRAWING: Final = b"\x1b[?7h\x1b[?1049l\x1b[?25h"
"""Those that give it back."""

NOTHING_ON: Final = (
    b"\x1b[?2026l\x1b[?2048l\x1b[?2004l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l\x1b[?1004l\x1b[<u\x1b[0m"
    + NO_DRAWING
)
"""Those that turn off all that a program may have turned on: reports of mouse, focus, pasting and size, other codes for keys."""


def keys_reach_us() -> bool:
    """Return whether the terminal sends the signals of its keys to our group. A client that draws its own screen turns them off.

    On Windows nothing else sends signals.
    """
    if sys.platform == "win32":
        return True
    import termios

    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(fd) == os.getpgrp() and bool(termios.tcgetattr(fd)[3] & termios.ISIG)
    except (OSError, termios.error):
        return False
    finally:
        os.close(fd)


class DrawnTerminal:
    """The terminal of standard input and output while a first frame is on it: keys that are typed are neither shown nor lost.

    They wait in the terminal for the program that takes it over.
    """

    def __init__(self) -> None:
        self._attributes: list[Any] | None = None

    def draw(self, text: str) -> None:
        """Give the whole screen to `text`. Does nothing on Windows."""
        if sys.platform == "win32":
            return
        import termios

        self._attributes = termios.tcgetattr(0)
        quiet = list(self._attributes)
        quiet[0] &= ~termios.ICRNL
        quiet[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(0, termios.TCSANOW, quiet)
        _write(DRAWING + text.encode())

    def hand_over(self) -> bool:
        """Let another program set the terminal up. Returns whether the screen has been given to it already."""
        is_drawn = self._attributes is not None
        self._give_back_keys()
        return is_drawn

    def close(self) -> None:
        """Put the terminal right, unless it was handed over."""
        if self._attributes is not None:
            self._give_back_keys()
            _write(NO_DRAWING)

    def _give_back_keys(self) -> None:
        if self._attributes is not None:
            _set_attributes(self._attributes)
            self._attributes = None


def _set_attributes(attributes: list[Any]) -> None:
    if sys.platform != "win32":
        import termios

        try:
            termios.tcsetattr(0, termios.TCSANOW, attributes)
        except termios.error:
            pass  # it is gone


def _write(data: bytes) -> None:
    try:
        while data:
            data = data[os.write(2, data) :]
    except OSError:
        pass  # it is gone


def guard() -> int | None:
    """Fork a process that goes on, while this one waits: if the other is killed, this one puts the terminal right.

    Returns, in the new process alone, a descriptor that can be read when the guard was killed. This process ends as the new one
    does. On Windows, which has no fork, nothing happens, and the result is None.
    """
    if sys.platform == "win32":
        return None
    import termios

    attributes = termios.tcgetattr(0)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        return reading
    os.close(reading)
    for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTOU):
        signal.signal(ignored, signal.SIG_IGN)
    for passed in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(passed, lambda number, _frame: os.kill(pid, number))
    status = _end_of(pid)
    if not os.WIFSIGNALED(status):
        os._exit(os.waitstatus_to_exitcode(status))
    _set_attributes(attributes)
    _write(NOTHING_ON)
    ended_by = os.WTERMSIG(status)
    if ended_by != signal.SIGKILL:
        signal.signal(ended_by, signal.SIG_DFL)
    os.kill(os.getpid(), ended_by)
    os._exit(1)


def _end_of(pid: int) -> int:
    """Wait until a process has ended, and stop whenever it stops. Returns its status."""
    assert sys.platform != "win32"
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return status
        os.kill(os.getpid(), signal.SIGSTOP)

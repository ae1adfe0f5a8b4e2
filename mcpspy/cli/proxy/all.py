"""`mcpspy proxy --all`: serve what `mcpspy wrap` has wrapped, and what it wraps meanwhile, until a signal comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...capture.store.folder import home_folder
from ...errors import SetupError
from ...live.watch import Watch
from ...setup.ports import read_places
from ..new_capture import report
from .address import allow_many_connections
from .taps import Manner, Taps

if TYPE_CHECKING:
    from types import FrameType

AGAIN_S = 1.0
"""So often a port that is taken is tried again."""

NOT_SERVED = 4


def serve_all(manner: Manner, *, quiet: bool) -> int:
    """Serve every place. Returns the exit status: 4 if none could be served."""
    folder = Path(home_folder())
    places = read_places(folder)
    if not places.by_port:
        raise click.UsageError("No HTTP server is wrapped. mcpspy wrap wraps them, mcpspy wrap --status says which there are.")
    allow_many_connections()
    taps = Taps(manner)
    stop = Stop()
    watch = Watch(input_fd=stop.fd)
    watch.add(str(folder))
    shown: subprocess.Popen[bytes] | None = None
    try:
        taps.serve(places.by_port.values())
        if not taps.running:
            return NOT_SERVED
        if taps.waiting:
            report("mcpspy: a port that is taken is tried again every second")
        if not quiet and sys.stdout.isatty():
            # -P: not the `mcpspy` of whatever folder this is
            shown = subprocess.Popen([sys.executable, "-P", "-m", "mcpspy", "show", "-f"])
        while not stop.asked and (taps.running or taps.waiting):
            if watch.wait(AGAIN_S if taps.waiting else None):
                stop.heard()
                taps.reap()
                _serve_changed(taps, folder)
            taps.retry()
    finally:
        if shown is not None:
            shown.terminate()
            shown.wait()
        taps.end()
        watch.close()
        stop.close()
    return 0 if stop.asked else NOT_SERVED


def _serve_changed(taps: Taps, folder: Path) -> None:
    try:
        taps.serve(read_places(folder).by_port.values())
    except SetupError as error:
        report(f"mcpspy: {error}")


class Stop:
    """Whether a signal has asked us to end: those that were ignored when we started are not heard, for nohup means it.

    `fd` can be read when a signal has come, of a child too.
    """

    __slots__ = ("_writing", "asked", "fd")

    def __init__(self) -> None:
        self.asked = False
        self.fd, self._writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._ask)

    def heard(self) -> None:
        """Take note of the signals that have come."""
        try:
            os.read(self.fd, 1 << 10)
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Let go."""
        signal.set_wakeup_fd(-1)
        os.close(self.fd)
        os.close(self._writing)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True

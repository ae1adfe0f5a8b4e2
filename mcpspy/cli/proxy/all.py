"""`mcpspy proxy --all`: taps at all reserved ports, also at those that are reserved meanwhile, until a signal comes.

The service that `mcpspy wrap` sets up runs it with sockets that listen already, by the protocol of sd_listen_fds(3); it
serves those, and opens the others itself.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import MutableMapping
from pathlib import Path
from types import FrameType

import click

from ...capture.store.folder import home_folder
from ...errors import SetupError
from ...platform.open_files import allow_many_open_files
from ...platform.watch import Watch
from ...setup.ports import read_reserved_ports
from ..new_capture import report
from .taps import Taps, TapSettings

RETRY_S = 1.0
"""The time between attempts at a port that is taken."""

NOT_SERVED = 4

FIRST_FD = 3


def serve_all(settings: TapSettings, *, quiet: bool) -> int:
    """Serve every reserved port. Returns the exit status: 4 if none could be served."""
    folder = Path(home_folder())
    reserved = read_reserved_ports(folder)
    if not reserved.by_port:
        raise click.UsageError("No HTTP server is wrapped. mcpspy wrap wraps them; mcpspy wrap --status lists the servers.")
    allow_many_open_files()
    taps = Taps(settings, _inherited_listeners(os.environ))
    stop = StopSignal()
    watch = Watch(input_fd=stop.fd)
    watch.add(str(folder))
    live_view: subprocess.Popen[bytes] | None = None
    try:
        taps.serve(reserved.by_port.values())
        if not taps.running:
            return NOT_SERVED
        if taps.waiting:
            report("mcpspy: trying the ports in use again every second")
        if not quiet and sys.stdout.isatty():
            # -P: not a `mcpspy` in the working folder
            live_view = subprocess.Popen([sys.executable, "-P", "-m", "mcpspy", "show", "-f"])
        while not stop.came and (taps.running or taps.waiting):
            if watch.wait(RETRY_S if taps.waiting else None) and not stop.drain():
                taps.reap()
                _serve_changed(taps, folder)
            taps.retry()
    finally:
        if live_view is not None:
            live_view.terminate()
            live_view.wait()
        taps.end()
        watch.close()
        stop.close()
    return 0 if stop.came else NOT_SERVED


def _serve_changed(taps: Taps, folder: Path) -> None:
    try:
        taps.serve(read_reserved_ports(folder).by_port.values())
    except SetupError as error:
        report(f"mcpspy: {error}")


class StopSignal:
    """The signals that end the program. One that was ignored when it started, as with nohup, stays ignored.

    `fd` is readable when a signal has come, also one about a child.
    """

    __slots__ = ("_writing", "came", "fd")

    def __init__(self) -> None:
        self.came = False
        self.fd, self._writing = os.pipe()
        for fd in (self.fd, self._writing):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._stop)

    def drain(self) -> bool:
        """Read the signals that have come. Return whether one is to end the program: the taps may have it too."""
        try:
            os.read(self.fd, 1 << 10)
        except BlockingIOError:
            pass
        return self.came

    def close(self) -> None:
        """Close the descriptors."""
        signal.set_wakeup_fd(-1)
        os.close(self.fd)
        os.close(self._writing)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.came = True


def _inherited_listeners(environ: MutableMapping[str, str]) -> dict[int, socket.socket]:
    """Take the listening TCP sockets that were opened for this process, by port. Later calls, and children, find none.

    The variables are ignored if they are for another process: a child inherits them, but not the meaning of its descriptors.
    """
    pid, count = environ.pop("LISTEN_PID", ""), environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdecimal():
        return {}
    listeners: dict[int, socket.socket] = {}
    for fd in range(FIRST_FD, FIRST_FD + int(count)):
        try:
            os.set_inheritable(fd, False)
            inherited = socket.socket(fileno=fd)
        except OSError:  # not open, or no socket
            continue
        if inherited.family == socket.AF_INET and inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            listeners[inherited.getsockname()[1]] = inherited
        else:
            inherited.detach()
    return listeners

"""`mcpspy proxy --all`: taps at all reserved ports, also at those that are reserved meanwhile, until a signal comes.

Each is in a process of its own, so that servers neither wait for each other nor end each other. The processes are forks of
this one: they start at once and share its modules. When this one ends, in whatever way, they end too. One that ends by
itself, or is killed, is started again.

The service that `mcpspy wrap` sets up runs it with sockets that listen already, by the protocol of sd_listen_fds(3); it
serves those, and opens the others itself.
"""

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from ...capture.redaction.redactor import Redactor
from ...capture.store.folder import home_folder, key
from ...errors import SetupError, TapError
from ...live.http.listener import after_origin, origin
from ...live.http.tap import HttpTap
from ...platform.open_files import allow_many_open_files
from ...platform.sockets import IN
from ...platform.watch import Watch
from ...setup.ports import ReservedPort, read_reserved_ports
from ...setup.wrapping import HOST, local_origin
from ...views.text.escape import safe_text
from ..new_capture import CaptureStart, report
from .listening import open_control, record_tap

STOP_S = 5.0
"""The time that taps have to close their connections."""

POLL_S = 0.02

MAX_ENDS = 5
ENDS_S = 60.0
"""A tap that ends so often within this time is not started again before it is over: each start makes a capture."""

RETRY_S = 1.0
"""The time between attempts at a port that is taken."""

NOT_SERVED = 4

FIRST_FD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TapSettings:
    """The options that all taps share. `tls` makes the context for https servers."""

    redact: str
    max_bytes: int
    tls: Callable[[], ssl.SSLContext]
    has_control: bool


class _Taps:
    """The taps that run, and those that wait for a port that is taken; both by port.

    `listeners` are sockets that listen already. They stay open here, because somebody else goes on listening at them.
    """

    __slots__ = ("_alive", "_ends", "_failed", "_listeners", "_pids", "_reported", "_settings", "running", "waiting")

    def __init__(self, settings: TapSettings, listeners: Mapping[int, socket.socket]) -> None:
        self._listeners = listeners
        self.running: dict[int, ReservedPort] = {}
        self.waiting: dict[int, ReservedPort] = {}
        self._pids: dict[int, int] = {}
        self._settings = settings
        self._alive = os.pipe()
        self._failed: set[ReservedPort] = set()
        self._ends: dict[int, deque[float]] = {}
        self._reported: set[tuple[int, str]] = set()

    def serve(self, ports: Iterable[ReservedPort]) -> None:
        """Start a tap at each port that has none. One whose entry was unwrapped goes on, as its client may still be running."""
        for reserved in ports:
            now = self.running.get(reserved.port)
            if now is not None and now.url != reserved.url:
                os.kill(self._pids[reserved.port], signal.SIGTERM)
                os.waitpid(self._pids[reserved.port], 0)
                del self.running[reserved.port]
            if reserved.port not in self.running and reserved not in self._failed:
                self.waiting[reserved.port] = reserved
        self.retry()

    def retry(self) -> None:
        """Start the taps that wait, if they can: for their port, or because others in their place have ended too often."""
        for reserved in list(self.waiting.values()):
            if self._may_start(reserved.port):
                self._start(reserved)

    def reap(self) -> None:
        """Report the taps that have ended, and let them wait for their next start."""
        for port, reserved in list(self.running.items()):
            pid, status = os.waitpid(self._pids[port], os.WNOHANG)
            if pid:
                del self.running[port]
                self.waiting[port] = reserved
                self._ends.setdefault(port, deque(maxlen=MAX_ENDS)).append(time.monotonic())
                when = "" if self._may_start(port) else f" within {ENDS_S:.0f} s, because it has ended {MAX_ENDS} times"
                _report(reserved, f"its tap ended with status {os.waitstatus_to_exitcode(status)}; it is started again{when}")

    def _may_start(self, port: int) -> bool:
        ends = self._ends.get(port, deque())
        return len(ends) < MAX_ENDS or time.monotonic() - ends[0] > ENDS_S

    def end(self) -> None:
        """End all taps, within a time limit."""
        for fd in self._alive:
            os.close(fd)
        left = [self._pids[port] for port in self.running]
        until = time.monotonic() + STOP_S
        while left and time.monotonic() < until:
            left = [pid for pid in left if not os.waitpid(pid, os.WNOHANG)[0]]
            if left:
                time.sleep(POLL_S)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _start(self, reserved: ReservedPort) -> None:
        reading, writing = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            os.close(reading)
            os.close(self._alive[1])
            _run_tap(reserved, self._settings, self._listeners.get(reserved.port), self._alive[0], writing)
        os.close(writing)
        with open(reading, encoding="utf-8") as pipe:
            message = pipe.read()
        if message == READY:
            self.running[reserved.port] = reserved
            self._pids[reserved.port] = pid
            self.waiting.pop(reserved.port, None)
            _show(reserved)
            return
        os.waitpid(pid, 0)
        self._not_started(reserved, message)

    def _not_started(self, reserved: ReservedPort, message: str) -> None:
        if message.startswith(BUSY):
            self.waiting[reserved.port] = reserved
            message = f"{message.removeprefix(BUSY)}; is there another mcpspy proxy? mcpspy wrap --status shows the service"
        elif reserved.port in self._listeners:
            self.waiting[reserved.port] = reserved
        else:
            self._failed.add(reserved)
            self.waiting.pop(reserved.port, None)
        if (reserved.port, message) not in self._reported:
            self._reported.add((reserved.port, message))
            _report(reserved, message or "its tap could not be started")


READY = "ready"
BUSY = "busy "


def _run_tap(
    reserved: ReservedPort, settings: TapSettings, listener: socket.socket | None, alive: int, started: int
) -> NoReturn:
    """Serve one port until `alive`, a pipe, is closed. Write to the pipe `started` whether that is possible."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        status = _serve(reserved, settings, listener, alive, started)
    except Exception as error:  # noqa: BLE001 - its text may contain a secret, so only its type is reported
        report(f"mcpspy: {safe_text(reserved.label)}: {type(error).__name__}")
    finally:
        os._exit(status)


def _serve(reserved: ReservedPort, settings: TapSettings, inherited: socket.socket | None, alive: int, started: int) -> int:
    upstream = origin(reserved.url)
    if upstream is None:
        _tell(started, "mcpspy cannot forward to its URL")
        return 1
    wall_ns, begin_ns = time.time_ns(), time.monotonic_ns()
    tap = HttpTap(upstream, begin_ns, tls=settings.tls() if upstream.scheme == "https" else None)
    try:
        listener = tap.listen(HOST, reserved.port, inherited)
    except TapError as error:
        reason = str(error.__cause__.strerror) if isinstance(error.__cause__, OSError) else ""
        _tell(started, f"{BUSY}{HOST}:{reserved.port}: {reason}" if reason else str(error))
        return 1
    start = CaptureStart(
        wall_ns=wall_ns,
        begin_ns=begin_ns,
        label=reserved.label,
        file=None,
        redact=settings.redact,
        max_bytes=settings.max_bytes,
        quiet=True,
    )
    writer, path, _ = record_tap(tap, start, reserved.url)
    close_control = open_control(tap, start, path) if writer is not None and settings.has_control else None
    tap.reactor.watch(alive, IN, lambda _: tap.reactor.stop())
    try:
        tap.run(listener, lambda: _tell(started, READY))
    finally:
        if close_control is not None:
            close_control()
        if writer is not None:
            writer.close(tap.now_ns(), "stopped")
    return 0


def _tell(pipe: int, message: str) -> None:
    os.write(pipe, message.encode())
    os.close(pipe)


def _show(reserved: ReservedPort) -> None:
    redactor = Redactor(key())
    own = redactor.url(local_origin(reserved.port) + after_origin(reserved.url))
    click.echo(f"{safe_text(own)}  {safe_text(reserved.label)}  {safe_text(redactor.url(reserved.url))}")
    sys.stdout.flush()


def _report(reserved: ReservedPort, message: str) -> None:
    report(f"mcpspy: {safe_text(reserved.label)}: {safe_text(message)}")


def serve_all(settings: TapSettings, *, quiet: bool) -> int:
    """Serve every reserved port. Returns the exit status: 4 if none could be served."""
    folder = Path(home_folder())
    reserved = read_reserved_ports(folder)
    if not reserved.by_port:
        raise click.UsageError("No HTTP server is wrapped. mcpspy wrap wraps them; mcpspy wrap --status lists the servers.")
    allow_many_open_files()
    taps = _Taps(settings, _inherited_listeners(os.environ))
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


def _serve_changed(taps: _Taps, folder: Path) -> None:
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

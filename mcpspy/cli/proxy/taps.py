"""Taps at places of this machine, each in a process of its own, so that no server waits for another and none ends another.

The processes are copies of this one, which start in a moment and share what is loaded. When this one ends, however it does, they do.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from select import EPOLLIN
from typing import TYPE_CHECKING, NoReturn

import click

from ...capture.redaction.redactor import Redactor
from ...capture.store.folder import key
from ...errors import TapError
from ...live.http.listener import after_origin, origin
from ...live.http.tap import HttpTap
from ...setup.address import HOST, local
from ...views.text.escape import safe_text
from ..new_capture import CaptureStart, report
from .captures import record_to

if TYPE_CHECKING:
    import ssl

    from ...setup.ports import Place

STOP_S = 5.0
"""So long taps may take to close what they have open."""

LOOK_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How all are served: as `mcpspy proxy` serves one. `tls` makes what speaks to https servers."""

    redact: str
    max_bytes: int
    tls: Callable[[], ssl.SSLContext]


class Taps:
    """The taps that run, and the places that wait for their port, both by port."""

    __slots__ = ("_alive", "_failed", "_manner", "_pids", "_told", "running", "waiting")

    def __init__(self, manner: Manner) -> None:
        self.running: dict[int, Place] = {}
        self.waiting: dict[int, Place] = {}
        self._pids: dict[int, int] = {}
        self._manner = manner
        self._alive = os.pipe()
        self._failed: set[Place] = set()
        self._told: set[tuple[int, str]] = set()

    def serve(self, places: Iterable[Place]) -> None:
        """Have a tap at each place. One whose entry is unwrapped meanwhile goes on: its client may still be there."""
        for place in places:
            now = self.running.get(place.port)
            if now is not None and now.url != place.url:
                os.kill(self._pids[place.port], signal.SIGTERM)
                os.waitpid(self._pids[place.port], 0)
                del self.running[place.port]
            if place.port not in self.running and place not in self._failed:
                self._begin(place)

    def retry(self) -> None:
        """Try once more what waits for its port."""
        for place in list(self.waiting.values()):
            self._begin(place)

    def reap(self) -> None:
        """Tell of taps that have ended. They are not begun again: what ended one would end the next."""
        for port, place in list(self.running.items()):
            pid, status = os.waitpid(self._pids[port], os.WNOHANG)
            if pid:
                del self.running[port]
                self._failed.add(place)
                ended = f"its tap ended, with status {os.waitstatus_to_exitcode(status)}"
                _say(place, f"{ended}; the others go on, and mcpspy proxy --all, started anew, serves it again")

    def end(self) -> None:
        """End them all, in a bounded time."""
        for fd in self._alive:
            os.close(fd)
        left = [self._pids[port] for port in self.running]
        until = time.monotonic() + STOP_S
        while left and time.monotonic() < until:
            left = [pid for pid in left if not os.waitpid(pid, os.WNOHANG)[0]]
            if left:
                time.sleep(LOOK_S)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _begin(self, place: Place) -> None:
        reading, writing = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            os.close(reading)
            os.close(self._alive[1])
            _be_a_tap(place, self._manner, self._alive[0], writing)
        os.close(writing)
        with open(reading, encoding="utf-8") as told:
            words = told.read()
        if words == READY:
            self.running[place.port] = place
            self._pids[place.port] = pid
            self.waiting.pop(place.port, None)
            _show(place)
            return
        os.waitpid(pid, 0)
        self._not_begun(place, words)

    def _not_begun(self, place: Place, words: str) -> None:
        if words.startswith(BUSY):
            self.waiting[place.port] = place
            words = f"{words.removeprefix(BUSY)}; is there another mcpspy proxy?"
        else:
            self._failed.add(place)
        if (place.port, words) not in self._told:
            self._told.add((place.port, words))
            _say(place, words or "its tap could not be started")


READY = "ready"
BUSY = "busy "


def _be_a_tap(place: Place, manner: Manner, alive: int, told: int) -> NoReturn:
    """Serve one place until `alive`, a pipe, is closed. Whether we can is written to `told`."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        status = _serve(place, manner, alive, told)
    except Exception as error:  # noqa: BLE001 - what it says may be somebody's secret, so its kind has to do
        report(f"mcpspy: {safe_text(place.label)}: {type(error).__name__}")
    finally:
        os._exit(status)


def _serve(place: Place, manner: Manner, alive: int, told: int) -> int:
    upstream = origin(place.url)
    if upstream is None:
        _tell(told, "its URL is none that a tap can stand before")
        return 1
    wall_ns, begin_ns = time.time_ns(), time.monotonic_ns()
    tap = HttpTap(upstream, begin_ns, tls=manner.tls() if upstream.scheme == "https" else None)
    try:
        listener = tap.listen(HOST, place.port)
    except TapError as error:
        reason = str(error.__cause__.strerror) if isinstance(error.__cause__, OSError) else ""
        _tell(told, f"{BUSY}{HOST}:{place.port}: {reason}" if reason else str(error))
        return 1
    start = CaptureStart(
        wall_ns=wall_ns,
        begin_ns=begin_ns,
        label=place.label,
        file=None,
        redact=manner.redact,
        max_bytes=manner.max_bytes,
        quiet=True,
    )
    writer, _, _ = record_to(tap, start, place.url)
    tap.reactor.watch(alive, EPOLLIN, lambda _: tap.reactor.stop())
    try:
        tap.run(listener, lambda: _tell(told, READY))
    finally:
        if writer is not None:
            writer.close(tap.now_ns(), "stopped")
    return 0


def _tell(told: int, words: str) -> None:
    os.write(told, words.encode())
    os.close(told)


def _show(place: Place) -> None:
    redactor = Redactor(key())
    own = redactor.url(local(place.port) + after_origin(place.url))
    click.echo(f"{safe_text(own)}  {safe_text(place.label)}  {safe_text(redactor.url(place.url))}")
    sys.stdout.flush()


def _say(place: Place, words: str) -> None:
    report(f"mcpspy: {safe_text(place.label)}: {safe_text(words)}")

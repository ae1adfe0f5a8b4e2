"""A stdio tap whose server can be replaced by another: its pumps exchange their ends, and ask where each message goes.

It is an intercepting tap, with or without intercepts. Who decides is given in: see `restarts`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ...platform import signals
from ...platform.descriptors import POLLIN, wake_pipe
from ...platform.processes import pipe_name
from ...records import SERVER, Frame
from .intercepting import InterceptingPump, InterceptingTap, exchanged
from .pump import Pump

if TYPE_CHECKING:
    from typing import Protocol

    from ...platform.processes import ListedProcess, ServerProcess
    from .intercepting import Decide
    from .pump import Readiness
    from .server_ends import Outlet, SourceReader
    from .tap import StdioTap

    class Router(Protocol):
        """The restarts of a tap; see `restarts.Restarts`."""

        def to_server(self, data: bytes, now_ns: int) -> None: ...
        def may_pass(self, now_ns: int) -> bool: ...
        def message_ended(self) -> None: ...
        def server_lost(self) -> bool: ...
        def log_ended(self) -> bool: ...
        def exited(self, pid: int, code: int) -> bool: ...
        def review(self, now_ns: int) -> None: ...
        def on_time(self, now_ns: int) -> None: ...
        def signalled(self, number: int) -> None: ...
        def others(self) -> set[int]: ...

        @property
        def is_full(self) -> bool: ...
        @property
        def is_quiet(self) -> bool: ...
        @property
        def due_ns(self) -> int: ...


class ToServerPump(InterceptingPump):
    """The pump from the client, to whichever server a message is for."""

    __slots__ = ()

    def exchange_target(self, outlet: Outlet) -> None:
        """Exchange what is written to, and what waits for it, with a server that is beside."""
        self._ready.forget(self._target)
        self._ready.forget(outlet.target)
        self._target, outlet.target = outlet.target, self._target
        self._send, outlet.send = outlet.send, self._send
        self._pending, outlet.pending = outlet.pending, self._pending
        outlet.go_on()
        if self._pending:
            self._block(self._pending, self._blocked_ns)
        else:
            self._went_on()

    def pass_on(self, data: bytes, now_ns: int) -> None:
        """Send bytes to the server that has taken over last."""
        super()._transmit(data, now_ns)

    def look_again(self) -> None:
        """Read, or do not, by what waits now."""
        if (self.waiting.is_full or self.router.is_full) and not self.over:
            self._ready.watch(self._source, 0, self._hung_up)
        else:
            self._went_on()

    @property
    def is_within(self) -> bool:
        """True within a message that is too long to be held."""
        return self._is_passing

    def _transmit(self, data: bytes, now_ns: int) -> None:
        if not self._is_passing:
            self.router.to_server(data, now_ns)
        elif self.router.may_pass(now_ns):
            self.pass_on(data, now_ns)

    def _break(self, now_ns: int, unsent_bytes: int = 0) -> None:
        if not self.router.server_lost():
            super()._break(now_ns, unsent_bytes)


class _SourceExchange:
    """The part of a pump that exchanges its source with a reader of a server that is beside."""

    __slots__ = ()

    def exchange_with(self: Any, reader: SourceReader) -> None:
        """Exchange sources, with what was read of an incomplete message."""
        self._ready.forget(self._source)
        self._ready.forget(reader.source)
        self._source, reader.source = reader.source, self._source
        self._lines, reader.lines = reader.lines, self._lines
        self._first_ns, reader.first_ns = reader.first_ns, self._first_ns
        self._partial_recorded, reader.partial_recorded = reader.partial_recorded, self._partial_recorded
        reader.go_on()
        if self._pending:
            self._ready.watch(self._source, 0, self._hung_up)
        else:
            self._ready.watch(self._source, POLLIN, self._readable)
        self._schedule()


class ToClientPump(_SourceExchange, InterceptingPump):
    """The pump to the client, of whatever any server sends."""

    __slots__ = ()

    def exchange_source(self, reader: SourceReader) -> None:
        """Exchange sources with a server that is beside."""
        self._held, reader.held = reader.held, self._held
        self._held_bytes, reader.held_bytes = reader.held_bytes, self._held_bytes
        self.exchange_with(reader)

    def take_message(self, frame: Frame, whole: bytes, decide: Decide) -> None:
        """Take a message of a server that is beside, as one of our own source."""
        decision = decide(SERVER, whole, frame.at_ns)
        if not self._hold(decision, frame, whole):
            self._carry_out(decision, frame, whole)

    @property
    def is_within(self) -> bool:
        """True within a message, of which a part is recorded or sent."""
        return bool(self._held) or self._is_passing

    @property
    def is_blocked(self) -> bool:
        """True while the client does not take what it has got."""
        return bool(self._pending)

    def _whole(self, frame: Frame) -> None:
        super()._whole(frame)
        self.router.message_ended()

    def _end(self, now_ns: int, by: str, how: str) -> None:
        if by != SERVER or not self.router.server_lost():
            super()._end(now_ns, by, how)


class LogPump(_SourceExchange, Pump):
    """The pump of the server's stderr."""

    __slots__ = ("router",)

    router: Router

    def resume(self) -> None:
        super().resume()
        self._frame, self._frames = self._frame_as_record, self._frames_as_records  # its lines are no messages

    def pass_on(self, data: bytes, now_ns: int) -> None:
        """Send bytes of another server's log, behind what waits."""
        self._transmit(data, now_ns)

    def end(self, now_ns: int) -> None:
        """End, as the server has closed its stderr before."""
        if not self.over:
            super()._end(now_ns, SERVER, "eof")

    @property
    def is_blocked(self) -> bool:
        """True while nobody takes what it has."""
        return bool(self._pending)

    def _end(self, now_ns: int, by: str, how: str) -> None:
        if by == SERVER and self.router.log_ended():
            self._ready.forget(self._source)  # it may go on with another source
        else:
            super()._end(now_ns, by, how)


class RestartableTap(InterceptingTap):
    """A stdio tap whose server can be replaced."""

    __slots__ = ()
    stays = True

    router: Router

    def route(self, router: Router, from_client: Decide, from_server: Decide) -> None:
        """Have this decide where messages go, from now on."""
        self.router = router
        if not isinstance(self._stdin, InterceptingPump):
            self.exchange_pumps(InterceptingPump)
            both = self._both()
            for pump, decide, mate in zip(both, (from_client, from_server), reversed(both), strict=True):
                pump.connect(decide, mate, self._do)
            self.begin_within()
        to_server, to_client = self._both()
        to_server.__class__, to_client.__class__ = ToServerPump, ToClientPump
        to_server.ask(from_client, router)
        to_client.ask(from_server, router)
        log = exchanged(self._stderr, LogPump)
        log.router = router
        self._stderr = log
        self._pumps = (self._stdin, self._stdout, self._stderr)

    @property
    def pumps(self) -> tuple[ToServerPump, ToClientPump, LogPump]:
        """The pumps of stdin, stdout and stderr."""
        to_server, to_client, log = self._pumps
        assert isinstance(to_server, ToServerPump)
        assert isinstance(to_client, ToClientPump)
        assert isinstance(log, LogPump)
        return to_server, to_client, log

    @property
    def ready(self) -> Readiness:
        """The descriptors that are watched."""
        return self._ready

    @property
    def is_ending(self) -> bool:
        """True once the client has left, or a signal has come."""
        return self._shutdown.under_way or self._is_signalled or self._client_closed()

    def changed(self) -> None:
        """Have everything looked at, and the alarm set anew."""
        self._on_change()

    def expect(self, child: ServerProcess) -> None:
        """Know the pipes of a server that has been started, and take note of its end; starting it has changed a signal."""
        self._pipes |= {pipe_name(fd) for fd in (child.stdin, child.stdout, child.stderr)}
        signals.listen_to_our_own()
        self._reap()

    def put(self, child: ServerProcess | None, start: int, status: int | None) -> None:
        """Go on with this server; without one, with the status that the last one ended with."""
        self._child = child or self._child
        self._start, self._status = start, status
        self._drain_ns = 0
        self._left = []
        self._queued_ns = None

    def end_without_server(self) -> None:
        """End: the client has left, and no server runs."""
        self._stdout.stop()
        self._stderr.stop()

    def _descendants(self) -> list[ListedProcess]:
        others = self.router.others()
        return [process for process in super()._descendants() if process.pid not in others]

    def _ended(self, pid: int, code: int) -> None:
        if not self.router.exited(pid, code):
            super()._ended(pid, code)

    def _review(self) -> None:
        super()._review()
        self.router.review(self.now_ns())
        while self._changed:  # by what was done now
            self._changed = False
            super()._review()
            self.router.review(self.now_ns())

    def _over(self) -> bool:
        return super()._over() and (self.router.is_quiet or self._shutdown.stage == "given up")

    def _set_alarm(self) -> None:
        super()._set_alarm()
        due_ns = self.router.due_ns
        if due_ns and (not self._alarm_ns or due_ns < self._alarm_ns):
            self._alarm_ns = due_ns
            signals.set_alarm(due_ns - self.now_ns())

    def _on_alarm(self, now_ns: int) -> None:
        super()._on_alarm(now_ns)
        self.router.on_time(now_ns)

    def _forward(self, number: int) -> None:
        super()._forward(number)
        self.router.signalled(number)


def make_restartable(tap: StdioTap, router: Router, from_client: Decide, from_server: Decide) -> RestartableTap:
    """Make a tap, that may run already, one whose server can be replaced."""
    tap.__class__ = RestartableTap
    assert isinstance(tap, RestartableTap)
    tap.route(router, from_client, from_server)
    return tap


def idle_pipes() -> tuple[int, int, int, tuple[int, int, int]]:
    """Return ends of pipes in place of a server's: to write, to read, to read; and their other ends, which nobody uses."""
    stdin_read, stdin = wake_pipe()  # whose ends do not block
    stdout, stdout_write = os.pipe()
    stderr, stderr_write = os.pipe()
    return stdin, stdout, stderr, (stdin_read, stdout_write, stderr_write)

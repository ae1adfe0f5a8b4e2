"""The stdio tap: the server's process and three pumps, in one thread around one `poll`.

It forwards signals, closes for one side what the other side closes, and ensures that neither the server nor what it started outlives
the client.
"""

from __future__ import annotations

import os
from _thread import start_new_thread
from time import monotonic_ns

from ...platform import signals
from ...platform.descriptors import POLLIN, SHOWS_READERS, read
from ...platform.processes import (
    CLIENT_END_IS_REPORTED,
    END_BY,
    KEEPS_ORPHANS,
    ListedProcess,
    client_has_ended,
    descendants,
    end,
    holds_pipe,
    is_in_our_group,
    own_session,
    pipe_name,
    process,
    queued_ns,
    reap,
)
from ...platform.signals import ENDING, FROM_KEYBOARD, SIGALRM, SIGCHLD, SIGKILL, SIGTERM
from ...records import CLIENT, OTHER_SIDE, SERVER, Exit, Note, Open, Spawn
from .pump import Pump, Readiness
from .shutdown import Shutdown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...platform.processes import ServerProcess
    from ...records import Record, Side, Sink

STREAMS: tuple[tuple[int, Side, str], ...] = (0, CLIENT, "stdin"), (1, SERVER, "stdout"), (2, SERVER, "stderr")
"""Number, sender and name of a stdio server's streams, as in every capture."""

DRAIN_NS = 500_000_000
"""Time after the server's exit for which pipes that others still hold are read, and for which processes that it left may end.

The server's own output is there at once. After it, and at a signal to end, nobody waits for them any more.
"""

PUT_OFF_NS = 1_000_000_000
"""From the first byte that is not on disk to the sync: what a power cut may cost. The kernel has every byte at once."""

LOOK_NS = 60_000_000_000
"""Time between two such calls while nothing is recorded: the capture may be removed."""

LATE_NS = 10_000_000_000
"""A server whose first output comes later than this started slowly: whether it had a processor is recorded."""

QUEUED_NS = 1_000_000_000
"""From this time on a wait for a processor before the first output is recorded."""

PARENT_CHECK_NS = 1_000_000_000
"""Time between two checks that the client lives, in the one state in which no descriptor shows it."""

FAR_NS = 86_400_000_000_000
"""A day: time to a check that an alarm comes before."""


class StdioTap:
    """A tap on the server `child`. Its clock began at `begin_ns` of the monotonic one; signals are read from `signals_fd`.

    `run` returns when the server has ended and everything it sent is delivered. It returns our exit status: the server's own, or
    128 + n if signal n ended it. `why` then names the cause of the end.
    """

    __slots__ = (
        "_alarm_ns", "_begin_ns", "_changed", "_child", "_drain_ns", "_is_signalled", "_left", "_met", "_parent", "_parent_ns",
        "_pipes", "_pumps", "_put_off", "_put_off_ns", "_queued_ns", "_ready", "_shutdown", "_signals_fd", "_sink", "_start",
        "_status", "_stderr", "_stdin", "_stdout", "intercepts", "router",
    )  # fmt: skip

    def __init__(self, child: ServerProcess, sink: Sink, begin_ns: int, signals_fd: int) -> None:
        self._child = child
        self._sink = sink
        self._begin_ns = begin_ns
        self._signals_fd = signals_fd
        self._ready = Readiness()
        self._shutdown = Shutdown()
        self._start = 0
        self._status: int | None = None
        self._drain_ns = 0
        self._parent_ns = 0
        self._put_off: Callable[[], None] = _ignore
        self._put_off_ns = 0
        self._alarm_ns = 0
        self._changed = False
        self.intercepts: object = None
        self._met: set[int] = set()
        self._is_signalled = False
        self._left: list[ListedProcess] = []
        self._queued_ns: dict[int, int] | None = None
        self._parent = os.getppid()
        self._pipes = {pipe_name(fd) for fd in (child.stdin, child.stdout, child.stderr)}
        self._stdin = self._pump(0, 0, child.stdin)
        self._stdout = self._pump(1, child.stdout, 1)
        self._stderr = self._pump(2, child.stderr, 2)
        self._pumps = (self._stdin, self._stdout, self._stderr)
        if not KEEPS_ORPHANS:  # else they could not be told from other processes once their parents have ended
            self._stdin.before_end = self._descendants
        self._stdout.before_first(self._on_first_output)

    @property
    def server(self) -> ServerProcess:
        """The server's process."""
        return self._child

    @property
    def why(self) -> str:
        return self._shutdown.why or ("client closed stdin" if self._client_closed() else "server exited")

    def now_ns(self) -> int:
        """Return the nanoseconds since the tap's clock began."""
        return monotonic_ns() - self._begin_ns

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Call `callback` on one of `events` of a descriptor that is no stream of ours."""
        self._ready.watch(fd, events, callback)

    def forget(self, fd: int) -> None:
        """Watch a descriptor no more."""
        self._ready.forget(fd)

    def run(self) -> int:
        signals.listen_to_our_own()
        self._ready.watch(self._signals_fd, POLLIN, self._signalled)
        self._report_start()
        self._reap()  # the server may have ended before we listened
        self._review()
        while not self._over():
            self._set_alarm()
            self._ready.turn()
            if self._changed:
                self._changed = False
                self._review()
        if self._status is not None:
            self._stdin.on_reader_exit()
        for pump in self._pumps:
            pump.stop()
        if self._left and not self._left_running():
            self._sink((descendants_ended(self.now_ns()),))
        return 128 + SIGKILL if self._status is None else self._status

    def _pump(self, stream: int, source: int, target: int) -> Pump:
        return self._new_pump(Pump, stream, source, target)

    def _new_pump(self, kind: type[Pump], stream: int, source: int, target: int) -> Pump:
        _, writer, name = STREAMS[stream]
        return kind(
            stream,
            source,
            target,
            writer=writer,
            reader=OTHER_SIDE[writer],
            sink=self._sink,
            ready=self._ready,
            begin_ns=self._begin_ns,
            on_change=self._on_change,
            is_log=name == "stderr",
        )

    def _report_start(self) -> None:
        now_ns = self.now_ns()
        records: list[Record] = [
            Open(at_ns=now_ns, stream=number, sender=sender, name=name) for number, sender, name in STREAMS
        ]
        started = process(self._child.pid)
        self._start = started.start if started else 0
        records.append(Spawn(at_ns=now_ns, pid=self._child.pid, start=self._start))
        self._sink(records)

    # The end

    def _on_change(self) -> None:
        self._changed = True
        self._ready.interrupted = True

    def _on_first_output(self) -> None:
        now_ns = self.now_ns()
        if now_ns < LATE_NS:
            return
        waited_ns = max(queued_ns(self._child.pid).values(), default=0)
        if waited_ns >= QUEUED_NS:
            text = f"the server waited {waited_ns / 1e9:.1f} s for a processor before its first output"
            self._sink((Note(at_ns=now_ns, topic="late-output", text=text, extra={"waited_ns": waited_ns}),))

    def _review(self) -> None:
        """Act on what has changed."""
        now_ns = self.now_ns()
        if self._queued_ns is None and self._client_closed():
            self._queued_ns = queued_ns(self._child.pid)
        if self._stdin.over or self._stdin.left:
            self._stdout.watch_reader()  # a client that has finished writing may be gone, which nothing else would show
        if self._stdin.broken:
            self._stdin.stop()  # the server closed its stdin: the client sees that as it would without us
        if self._stdout.broken:
            self._stdin.stop()
            self._shutdown.on_client_gone(now_ns)
        no_sign = self._stdin.over and (self._stdout.finished or not SHOWS_READERS)
        if self._status is None and no_sign and not self._shutdown.under_way:
            self._parent_ns = now_ns + PARENT_CHECK_NS  # all is closed, the server lives: no descriptor shows the client
        if self._status is not None and self._wants_end() and self._leftovers():
            self._shutdown.on_leftovers(now_ns)

    def _over(self) -> bool:
        """Return whether the server has ended, all it sent is delivered, and no process is left that should end with it."""
        if self._shutdown.stage == "given up":
            return True
        if self._status is None or not all(pump.over and pump.finished for pump in (self._stdout, self._stderr)):
            return False
        if self._drain_ns and not self._is_signalled and self._left_running():
            return False  # a signal of the system tells that one has ended, and the alarm that the time is over
        return not (self._wants_end() and self._leftovers())

    def _wants_end(self) -> bool:
        return self._shutdown.under_way or self._client_closed()

    def _client_closed(self) -> bool:
        return self._stdin.over and not self._stdin.broken

    def _leftovers(self) -> list[ListedProcess]:
        """Return the processes that should end with the server: all but those with a session and files of their own."""
        session = own_session()
        return [
            process
            for process in self._descendants()
            if process.pid == self._child.pid or process.session == session or holds_pipe(process.pid, self._pipes)
        ]

    def _descendants(self) -> list[ListedProcess]:
        """Return the server and what it started. Older processes are not: a script may have started them, and then become us."""
        return [process for process in descendants(self._child.pid) if process.start >= self._start]

    # Time

    def call_later(self, action: Callable[[], None]) -> None:
        """Call `action` after a second, then every minute, in a thread of its own, because it may wait for the disk.

        Replaces an earlier action.

        The thread lives no longer than the call: a thread that waits would cost every message 0.3 µs.
        """
        self._put_off = action
        self._put_off_ns = self.now_ns() + PUT_OFF_NS
        self._ready.interrupted = True

    def _set_alarm(self) -> None:
        """Set the alarm for what is due next. An alarm that comes too early does no harm."""
        dues = [
            self._shutdown.due_ns,
            self._drain_ns,
            self._parent_ns,
            self._put_off_ns,
            *(pump.due_ns for pump in self._pumps),
        ]
        due_ns = min((due for due in dues if due), default=0)
        if due_ns and (not self._alarm_ns or due_ns < self._alarm_ns):
            self._alarm_ns = due_ns
            signals.set_alarm(due_ns - self.now_ns())

    def _on_alarm(self, now_ns: int) -> None:
        self._alarm_ns = 0
        self._ready.interrupted = True
        for pump in self._pumps:
            if pump.due_ns and now_ns >= pump.due_ns:
                pump.on_time(now_ns)
        if self._drain_ns and now_ns >= self._drain_ns:
            self._drain()
        if self._shutdown.due_ns and now_ns >= self._shutdown.due_ns:
            self._escalate(now_ns)
        if self._parent_ns and (now_ns >= self._parent_ns or CLIENT_END_IS_REPORTED):
            self._check_client(now_ns)
        if self._put_off_ns and now_ns >= self._put_off_ns:
            self._put_off_ns = now_ns + LOOK_NS
            _in_a_thread(self._put_off)

    def _check_client(self, now_ns: int) -> None:
        self._parent_ns = 0
        if self._status is not None:
            return
        if client_has_ended(self._parent):
            self._shutdown.on_client_gone(now_ns)
        else:
            self._parent_ns = now_ns + (FAR_NS if CLIENT_END_IS_REPORTED else PARENT_CHECK_NS)

    def _escalate(self, now_ns: int) -> None:
        name = self._shutdown.due(now_ns)
        self._on_change()
        if not name:
            return
        targets, waited = self._leftovers(), self._waited()
        for target in targets:
            end(target.pid, SIGTERM if name == "SIGTERM" else SIGKILL)
        if targets:
            listed = ", ".join(f"{target.name} ({target.pid})" for target in targets)
            text = f"{END_BY or name} to {listed}: {self._shutdown.why}"
            self._sink((Note(at_ns=now_ns, topic="escalation", text=text, extra=waited),))

    def _drain(self) -> None:
        """Read what the server wrote before it ended, close the pipes that others hold, and record whether these still run."""
        self._drain_ns = 0
        self._stdout.drain()
        self._stderr.drain()
        if running := self._left_running():
            self._sink((descendants_running(self.now_ns(), running),))
            self._left = []

    def _waited(self) -> dict[str, Any]:
        """Return how long the server has waited for a processor since its stdin was closed; empty if it is open, or nobody counts."""
        before = self._queued_ns
        now = queued_ns(self._child.pid) if before and self._status is None else {}
        return {"waited_ns": max(count - before.get(tid, 0) for tid, count in now.items())} if before and now else {}

    # Signals

    def _signalled(self, events: int) -> None:
        for number in read(self._signals_fd, 512):
            if number == SIGCHLD:
                self._reap()
            elif number == SIGALRM:
                self._on_alarm(self.now_ns())
            else:
                self._forward(number)

    def _reap(self) -> None:
        """Collect the exit statuses of the server and of its orphans."""
        while (ended := reap()) is not None:
            pid, code = ended
            self._on_change()
            self._ended(pid, code)

    def _ended(self, pid: int, code: int) -> None:
        if pid == self._child.pid:
            self._child.on_exit()
            self._exited(code)

    def _exited(self, code: int) -> None:
        """Record the end of the server; `code` is less than 0 if a signal ended it."""
        now_ns = self.now_ns()
        self._drain_ns = now_ns + DRAIN_NS
        self._left = self._descendants()
        left = tuple(listed(self._left))
        if code < 0:
            self._status = 128 - code
            self._sink((Exit(at_ns=now_ns, pid=self._child.pid, signal=signals.name(-code), descendants=left),))
        else:
            self._status = code
            self._sink((Exit(at_ns=now_ns, pid=self._child.pid, code=code, descendants=left),))

    def _left_running(self) -> list[ListedProcess]:
        """Return the processes that the server left when it ended and that still run, each by the name that it has now."""
        left = {process.pid for process in self._left}
        return [process for process in self._descendants() if process.pid in left] if left else []

    def _forward(self, number: int) -> None:
        """Forward a signal at once. One that ends a process comes from the client: the server gets the end of its input too."""
        now_ns = self.now_ns()
        name = signals.name(number)
        if number in ENDING:
            self._stdin.before_end()
            self._is_signalled = True
            self._on_change()
        shared = number in FROM_KEYBOARD and _keys_reach_us()
        if shared and not os.isatty(0) and is_in_our_group(self._parent):
            text = f"{name} from the keyboard, which client and server got as well"
            self._sink((Note(at_ns=now_ns, topic="signal", text=text),))
            return
        waited = self._waited()
        if self._status is None and not shared:
            end(self._child.pid, number)
        self._sink((Note(at_ns=now_ns, topic="signal", text=f"{name} received and forwarded", extra=waited),))
        if number in ENDING:
            self._shutdown.on_signal(now_ns, name, again=number in self._met)
            self._met.add(number)
            self._stdin.stop()


def descendants_ended(at_ns: int) -> Note:
    """Return the note that what the server left has ended."""
    return Note(at_ns=at_ns, topic="descendants-ended", text="the processes that the server left have ended")


def descendants_running(at_ns: int, running: list[ListedProcess]) -> Note:
    """Return the note that some of what the server left ran on, to be made half a second after its end."""
    extra = {"descendants": listed(running)}
    return Note(at_ns=at_ns, topic="descendants-running", text="processes that the server left still run", extra=extra)


def listed(processes: list[ListedProcess]) -> list[dict[str, Any]]:
    """Return processes as records list them."""
    return [{"pid": process.pid, "name": process.name} for process in processes]


def _ignore() -> None:
    """Do nothing: the action while there is none."""


def _in_a_thread(action: Callable[[], None]) -> None:
    try:
        start_new_thread(action, ())
    except RuntimeError:
        action()  # no thread is left


def kill_server(child: ServerProcess) -> None:
    """Kill a server that has not been waited for."""
    end(child.pid, SIGKILL)


def _keys_reach_us() -> bool:
    from ...platform.terminals import keys_reach_us

    return keys_reach_us()

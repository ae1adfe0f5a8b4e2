"""Restarts of a stdio server under a client that lives: which server gets a message, and when a server is replaced.

    serving ── asked ─► a new server starts beside the old one, and is given the handshake ─► it takes over
                             │ it fails: the old one goes on                                   the old one ends
    serving ── asked, --stop-first ─► waiting: the old one ends ─► a new one starts ─► it takes over
                                                                     │ it fails: down, until the next restart

A message goes to the server that it belongs to: an answer to the one that asked, a cancellation to the one that was called,
everything else to the one that has taken over last. So no call is sent twice. The records of what mcpspy does here are notes with
the topic `restart`, and streams of their own for what only mcpspy and a new server said to each other.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...platform import signals
from ...platform.processes import end, spawn
from ...platform.signals import SIGKILL, SIGTERM
from ...records import RESTART, Exit, Frame, Note
from ...wire.jsonrpc import cut
from ...wire.lines import one_line
from .handshake import NewServer
from .restart_words import NO_SERVER, error_answer, how_it_ended, list_changed, withdrawn
from .restartable import idle_pipes, make_restartable
from .routes import DOWN, SERVING, WAITING, Routes
from .server_ends import DRAIN_NS, Outlet, ServerEnd, SourceReader
from .session_memory import is_listening, is_opening
from .tap import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...records import Side, Sink
    from .pump import Readiness
    from .tap import StdioTap

START_NS: Final = 30_000_000_000
"""Time for a new server to answer the handshake."""

GRACE_NS: Final = 5_000_000_000
"""Time for the old server to answer what it was asked."""

SOON_NS: Final = 10_000_000
"""Time after which a take-over is tried again that waits for the end of a message."""

MAX_WAITING_BYTES: Final = 1 << 24
MAX_WAITING: Final = 1000
"""So much of the client waits for a new server; then nothing more is read."""

MAX_LOG_BYTES: Final = 4000
"""So much of the end of a new server's stderr is shown if it fails."""


class RestartRequest:
    """A wish for a restart: `by` says whose; with `stops_first` the old server ends before the new one starts."""

    __slots__ = ("by", "stops_first")

    def __init__(self, by: str, *, stops_first: bool) -> None:
        self.by = by
        self.stops_first = stops_first


class Restarts:
    """The restarts of the server of one tap.

    `stays` says that the client is kept when the server ends by itself. `say` tells the user. `state` tells a controller about the
    last restart: its `number`, and `starting`, `done` or `failed` with a `text`.
    """

    def __init__(
        self,
        tap: StdioTap,
        sink: Sink,
        argv: Sequence[str],
        *,
        grace_ns: int = GRACE_NS,
        stays: bool = False,
        say: Callable[[str], object] = str,
    ) -> None:
        self.ready: Readiness
        self.knows_session = True
        self.state: dict[str, Any] = {"number": 0, "state": "none", "text": ""}
        self._sink = sink
        self._argv = argv
        self._grace_ns = grace_ns
        self._stays = stays
        self._say = say
        self._servers = 1
        self._new: NewServer | None = None
        self._wish: RestartRequest | None = None
        self._next_wish: RestartRequest | None = None
        self._late: list[tuple[ServerEnd, Frame, bytes]] = []
        self._again_ns = 0
        self._begun_ns = 0
        self._log_ended = self._has_exited = False
        self.routes = Routes(ServerEnd(1, tap.server), lambda: getattr(tap.intercepts, "decide", None))
        self._tap = make_restartable(tap, self, self.routes.from_client, self.routes.from_current)
        self.ready = self._tap.ready

    def restart(self, by: str, *, stops_first: bool = False) -> None:
        """Restart the server as soon as possible. A wish during a restart is done once after it."""
        wish = RestartRequest(by, stops_first=stops_first)
        if self._tap.is_ending:
            return
        if self._wish is not None:
            self._next_wish = wish
            return
        self._wish = wish
        self._begun_ns = self.now_ns()
        self.state = {"number": self.state["number"] + 1, "state": "starting", "text": ""}
        current = self.routes.current
        self._note(f"restart, asked for by {by}", self._servers + 1, "begin")
        if wish.stops_first and current.pid:
            self.routes.mode = WAITING
            current.deadline_ns = self._begun_ns + self._grace_ns
        else:
            self.routes.mode = SERVING if current.pid else WAITING
            self._start()
        self._tap.changed()

    def knows_since(self, earlier: Iterable[tuple[Side, bytes]]) -> None:
        """Learn what passed before the beginning that was marked."""
        self.knows_session = True
        self.routes.know(self.routes.memory.after(earlier))

    def mark_beginning(self) -> None:
        """Record that messages are known from here on, and those before are not."""
        self.knows_session = False
        self._note("from here on mcpspy remembers what a new server has to know", 1, "follow")

    # Records and words

    def now_ns(self) -> int:
        return self._tap.now_ns()

    def _note(self, text: str, number: int, phase: str, **extra: Any) -> None:
        extra = {"server": number, "phase": phase, **extra}
        self._sink((Note(at_ns=self.now_ns(), topic=RESTART, text=text, extra=extra),))

    # A new server

    def _start(self) -> None:
        """Start a new server, and begin the handshake with it."""
        self._servers += 1
        now_ns = self.now_ns()
        try:
            child = spawn(self._argv)
            failure = child.failure()
        except OSError as error:
            self._failed(f"it could not be started: {error.strerror}")
            return
        server = ServerEnd(self._servers, child)
        server.failure = "" if failure is None else f"it could not be started: {failure.strerror}"
        self._new = new = NewServer(server, self.routes.memory, self._sink, self.now_ns)
        self.routes.beside.append(server)
        server.outlet = Outlet(child.stdin, self.ready)
        server.stdout = SourceReader(server, child.stdout, self, is_log=False)
        server.stderr = SourceReader(server, child.stderr, self, is_log=True)
        server.deadline_ns = now_ns + START_NS
        new.report(now_ns)
        self._tap.expect(child)
        if self._new is new and server.failure:
            server.status, server.exit_ns = 127, now_ns  # it was waited for
            self._failed(server.failure)
        elif self._new is new:
            new.handshake.begin()

    def _hear(self, new: NewServer, frame: Frame, whole: bytes) -> None:
        """Take a message of a new server."""
        if not new.hear(frame, whole):
            self._to_client(new.end, frame, whole)
        elif new.handshake.failure:
            self._failed(new.handshake.failure)
        elif new.is_ready:
            self._tap.changed()

    def _failed(self, reason: str) -> None:
        """Go on without the new server."""
        new, self._new = self._new, None
        wish, self._wish = self._wish, None
        log = ""
        if new is not None:
            log = new.end.log.decode("utf-8", "replace").rstrip("\n")
            new.record_waiting()
            self._end(new.end)
        has_old = bool(self.routes.current.pid)
        text = f"the new server is of no use: {reason}"
        if has_old:
            text += "; the old one goes on"
            if wish is None or not wish.stops_first:
                text += ". If the new one needs a port, a lock or a file that the old one holds: --stop-first"
        else:
            self._go_down()
        self._note(text, self._servers, "failed", log=log)
        self.state = {**self.state, "state": "failed", "text": text, "log": log}
        self._say(f"mcpspy: {text}")
        self._go_on_wishing()

    def _go_down(self) -> None:
        """Answer for a server that there is not."""
        self.routes.mode = DOWN
        waiting, self.routes.waiting = self.routes.waiting, []
        to_server, to_client, _ = self._tap.pumps
        for data in waiting:
            for piece in cut(data):
                if piece.kind == "request" and piece.id is not None:
                    to_client.reply(one_line(error_answer(piece.id, NO_SERVER)), 0, self.now_ns(), None)
        to_server.look_again()

    def _go_on_wishing(self) -> None:
        wish, self._next_wish = self._next_wish, None
        if wish is not None:
            self.restart(wish.by, stops_first=wish.stops_first)

    # The take-over

    def _take_over(self, candidate: NewServer) -> None:
        """Let the new server take over, between two messages."""
        new, handshake = candidate.end, candidate.handshake
        to_server, to_client, _ = self._tap.pumps
        now_ns = self.now_ns()
        if (to_server.is_within or to_client.is_within) and now_ns < new.deadline_ns:
            self._again_ns = now_ns + SOON_NS
            return
        self._new = self._wish = None
        self._again_ns = new.deadline_ns = 0
        changed = handshake.changed()
        handshake.learn()
        old = self.routes.current
        subscriptions = self._move_subscriptions(old, candidate)
        self._exchange(new)
        self.routes.mode = SERVING
        self._tap.put(new.child, new.start, None)
        self._report_taken_over(old, new, changed)
        for frame in new.waiting:
            self._to_client(new, frame, frame.data)
        for method in changed if subscriptions or not self.routes.memory.is_modern else ():
            for payload in list_changed(method, subscriptions):
                to_client.reply(one_line(payload), 0, now_ns, None)
        waiting, self.routes.waiting = self.routes.waiting, []
        for data in waiting:
            self.to_server(data, now_ns)
        if to_server.finished and new.outlet is not None:
            new.outlet.close()
        to_server.look_again()
        if old.pid and not old.has_finished:
            old.deadline_ns = now_ns + self._grace_ns
        self._tap.changed()
        self._go_on_wishing()

    def _report_taken_over(self, old: ServerEnd, new: ServerEnd, changed: Sequence[str]) -> None:
        count = len(old.open)
        open_calls = f"; {count} {'calls are' if count > 1 else 'call is'} still with the old one" if count else ""
        lists = ", ".join(method.split("/")[1] for method in changed)
        text = f"server restarted (pid {new.pid}){f'; changed: {lists}' if lists else ''}{open_calls}"
        self._note(text, new.number, "done", pid=new.pid, waited_ns=self.now_ns() - self._begun_ns)
        self.state = {**self.state, "state": "done", "text": text}
        self._say(f"mcpspy: {text}")

    def _move_subscriptions(self, old: ServerEnd, new: NewServer) -> list[bytes]:
        """Repeat to the new server the requests that stay open (2026-07-28), or with which the client just opens. Return them."""
        moved = {id: request for id, request in old.open.items() if is_listening(request) or is_opening(request)}
        for id, request in moved.items():
            del old.open[id]
            old.refused.add(id)
            new.end.open[id] = request
            new.tell(request)
        return list(moved.values())

    def _exchange(self, new: ServerEnd) -> None:
        """Exchange the ends of the server that serves with those of another."""
        old = self.routes.current
        to_server, to_client, log = self._tap.pumps
        assert new.outlet is not None
        assert new.stdout is not None
        assert new.stderr is not None
        old.outlet, old.stdout, old.stderr, new.outlet, new.stdout, new.stderr = (
            new.outlet,
            new.stdout,
            new.stderr,
            None,
            None,
            None,
        )
        if not to_server.finished:
            to_server.exchange_target(old.outlet)
        else:  # the client has closed its end: nothing more goes that way
            new.outlet, old.outlet = old.outlet, None
        to_client.exchange_source(old.stdout)
        old.stdout.server = old
        if log.over:  # it cannot begin again
            new.stderr, old.stderr = old.stderr, None
        else:
            log.exchange_with(old.stderr)
            old.stderr.server = old
        if new in self.routes.beside:
            self.routes.beside.remove(new)
        self.routes.beside.append(old)
        self.routes.current = new

    # The end of a server

    def _put_none(self) -> ServerEnd:
        """Put nobody in the place of the server that serves. Return that."""
        old, none = self.routes.current, ServerEnd(self._servers, None)
        stdin, stdout, stderr, none.unused = idle_pipes()
        none.outlet = Outlet(stdin, self.ready)
        none.stdout = SourceReader(none, stdout, self, is_log=False)
        none.stderr = SourceReader(none, stderr, self, is_log=True)
        self._exchange(none)
        self._tap.put(None, old.start, 0)
        return old

    def _answer_for(self, server: ServerEnd) -> None:
        """Answer the calls that a server has not answered, and withdraw its own requests: nobody waits any more."""
        server.has_finished = True
        server.deadline_ns = 0
        to_client, now_ns = self._tap.pumps[1], self.now_ns()
        why = f"the server ended ({how_it_ended(server.status)})" if server.is_dead else "the server was restarted"
        for id in server.open:
            answer = error_answer(id, f"mcpspy: {why} before it answered")
            if not self.routes.is_ours(id, answer, now_ns):
                to_client.reply(one_line(answer), 0, now_ns, None)
        server.refused.update(server.open)
        server.open = {}
        for id in self.routes.forget(server):
            to_client.reply(one_line(withdrawn(id)), 0, now_ns, None)

    def _end(self, server: ServerEnd) -> None:
        """Begin the orderly end of a server."""
        self._answer_for(server)
        if server.outlet is not None:
            server.outlet.close()
        server.shutdown.on_client_gone(self.now_ns())
        server.shutdown.why = "restart"
        self._tap.changed()

    def _look_after(self, server: ServerEnd, now_ns: int) -> None:
        """End a server that is beside, when it is time."""
        for reader in server.readers:
            reader.on_time(now_ns)
        is_over = server.stdout is None or server.stdout.over
        if not server.has_finished and (not server.open or is_over or now_ns >= server.deadline_ns):
            self._end(server)
        if server.shutdown.due_ns and now_ns >= server.shutdown.due_ns:
            self._escalate(server, now_ns)
        if server.shutdown.stage != "given up":
            if server.pid and server.status is None:
                return
            if not server.has_said_all and now_ns < server.said_all_ns:
                return
            if not server.has_finished or self._processes(server):
                return
        self._forget(server)

    def _escalate(self, server: ServerEnd, now_ns: int) -> None:
        name = server.shutdown.due(now_ns)
        targets = self._processes(server) if name else []
        for target in targets:
            end(target.pid, SIGTERM if name == "SIGTERM" else SIGKILL)
        if targets:
            names = ", ".join(f"{target.name} ({target.pid})" for target in targets)
            self._note(f"{name} to {names}: restart", server.number, "escalation")

    def _processes(self, server: ServerEnd) -> list[Any]:
        return server.processes([other for other in (self.routes.current, *self.routes.beside) if other is not server])

    def _forget(self, server: ServerEnd) -> None:
        """Forget a server of which nothing is left."""
        self.routes.beside.remove(server)
        for reader in server.readers:
            reader.finish()
        for fd in server.unused:
            os.close(fd)
        self._tap.changed()

    # What the tap asks

    @property
    def is_full(self) -> bool:
        """True if nothing more of the client may wait."""
        waiting = self.routes.waiting
        return len(waiting) >= MAX_WAITING or (bool(waiting) and sum(map(len, waiting)) > MAX_WAITING_BYTES)

    @property
    def is_quiet(self) -> bool:
        """True if no other server runs."""
        return not any(server.pid for server in self.routes.beside)

    @property
    def due_ns(self) -> int:
        dues = (self._again_ns, self.routes.current.deadline_ns, *(server.due_ns for server in self.routes.beside))
        return min((due for due in dues if due), default=0)

    def to_server(self, data: bytes, now_ns: int) -> None:
        """Send a message of the client to the server that it is for, or let it wait."""
        server = self.routes.server_for(data)
        if server is None:
            if self.routes.mode == WAITING:
                self.routes.waiting.append(data)
                self._tap.pumps[0].look_again()
        elif server is self.routes.current and server.outlet is None:
            self._tap.pumps[0].pass_on(data, now_ns)
        elif server.outlet is not None:
            server.outlet.write(data)

    def may_pass(self, now_ns: int) -> bool:
        """Return whether a message may pass that is too long to wait."""
        return self.routes.mode == SERVING

    def message_ended(self) -> None:
        """Pass on what has waited for the end of a message."""
        late, self._late = self._late, []
        for server, frame, whole in late:
            self._to_client(server, frame, whole)

    def server_lost(self) -> bool:
        """Take note that the server has closed a stream. Return whether the client is kept all the same."""
        current = self.routes.current
        if not current.pid:
            return True
        if not self._keeps_client:
            return False
        old = self._put_none()
        old.is_dead = True
        old.deadline_ns = self.now_ns() + DRAIN_NS
        self.routes.mode = WAITING if self._wish is not None else DOWN
        self._tap.changed()
        return True

    @property
    def _keeps_client(self) -> bool:
        if self._tap.is_ending:
            return False
        return self._wish is not None or (self._stays and self.routes.memory.opening is not None)

    def log_ended(self) -> bool:
        """Take note that the server has closed its stderr. Return whether that of another may come."""
        self._log_ended = not (self._tap.is_ending or self._has_exited)
        return self._log_ended

    def exited(self, pid: int, status: int) -> bool:
        """Take note of the end of a process. Return whether it is no matter of the tap's own end."""
        now_ns = self.now_ns()
        current = self.routes.current
        if pid == current.pid:
            current.status, current.exit_ns = status, now_ns
            if not self.server_lost():
                self._has_exited = True
                if self._log_ended:
                    self._tap.pumps[2].end(now_ns)
                return False
        server = next((server for server in (current, *self.routes.beside) if server.pid == pid), None)
        if server is None or server.child is None:
            return False
        server.status, server.exit_ns = status, now_ns
        server.child.on_exit()
        if server.is_dead:
            self._record_death(server, status)
        else:
            self._note(f"server {server.number} has ended ({how_it_ended(status)})", server.number, "ended", pid=pid)
        if self._is_new(server):
            for reader in server.readers:
                reader.finish()
            if self._is_new(server):
                self._failed(server.failure or f"it ended before it had answered ({how_it_ended(status)})")
        return True

    def _is_new(self, server: ServerEnd) -> bool:
        return self._new is not None and self._new.end is server

    def _record_death(self, server: ServerEnd, status: int) -> None:
        signal = signals.name(-status) if status < 0 else None
        code = None if signal else status
        left = tuple(listed(self._processes(server)))
        self._sink((Exit(at_ns=self.now_ns(), pid=server.pid, code=code, signal=signal, descendants=left),))
        if not self.routes.current.pid:
            self._tap.put(None, server.start, 128 - status if status < 0 else status)
        self._say(f"mcpspy: the server has ended ({how_it_ended(status)}); a restart will start it again")

    def review(self, now_ns: int) -> None:
        """Act on what has changed."""
        if self._tap.is_ending:
            self._hurry()
        current = self.routes.current
        is_stopping = self.routes.mode == WAITING and current.pid and self._wish is not None
        if is_stopping and (not current.open or now_ns >= current.deadline_ns):
            self._end(self._put_none())
        for server in list(self.routes.beside):
            if not self._is_new(server):
                self._look_after(server, now_ns)
        current = self.routes.current
        if self.routes.mode == WAITING and self._new is None and self._wish is not None and self.is_quiet and not current.pid:
            self._start()
        if self._new is not None and self._new.is_ready:
            self._take_over(self._new)
        if self._tap.is_ending and not self.routes.current.pid and self._new is None:
            self._tap.end_without_server()

    def _hurry(self) -> None:
        """Let all servers end but the last: the client has left."""
        self._next_wish = None
        if self._new is not None and not self.routes.waiting:
            self._wish = None
            new, self._new = self._new, None
            self._end(new.end)
        for server in self.routes.beside:
            if not self._is_new(server) and not server.has_finished:
                self._end(server)

    def on_time(self, now_ns: int) -> None:
        """Do what is due."""
        candidate = None if self._new is None else self._new.end
        if self._again_ns and now_ns >= self._again_ns:
            self._again_ns = 0
        if candidate is not None:
            for reader in candidate.readers:
                reader.on_time(now_ns)
            if candidate.deadline_ns and now_ns >= candidate.deadline_ns:
                self._failed(f"it did not answer within {START_NS // 1_000_000_000} s")
        self._tap.changed()

    def others(self) -> set[int]:
        """Return the processes of the servers that are beside."""
        return {process.pid for server in self.routes.beside for process in self._processes(server)}

    def signalled(self, number: int) -> None:
        """Pass a signal on to the servers that are beside."""
        for server in self.routes.beside:
            if server.pid and server.status is None:
                end(server.pid, number)

    # What the readers of servers that are beside ask

    def is_blocked(self, *, is_log: bool) -> bool:
        _, to_client, log = self._tap.pumps
        return log.is_blocked if is_log else to_client.is_blocked

    def deliver(self, reader: SourceReader, frame: Frame, whole: bytes) -> None:
        if reader is reader.server.stderr:
            self._sink((frame,))
        elif self._new is not None and reader.server is self._new.end:
            self._hear(self._new, frame, whole)
        elif not whole:
            self._sink((frame,))
        else:
            self._to_client(reader.server, frame, whole)

    def _to_client(self, server: ServerEnd, frame: Frame, whole: bytes) -> None:
        to_client = self._tap.pumps[1]
        if to_client.is_within:
            self._late.append((server, frame, whole))
            return
        frame = Frame(frame.stream, self.now_ns(), frame.first_ns, frame.data)
        to_client.take_message(frame, whole, partial(self.routes.from_server, server))

    def logged(self, server: ServerEnd, data: bytes) -> None:
        self._tap.pumps[2].pass_on(data, self.now_ns())
        if self._is_new(server):
            server.log = (server.log + data)[-MAX_LOG_BYTES:]

    def ended(self, reader: SourceReader) -> None:
        self._tap.changed()

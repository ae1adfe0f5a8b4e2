"""The HTTP tap: a reverse proxy for one upstream. Each client connection gets an upstream connection of its own.

It listens, begins a connection pair for each client, and closes them all at its end. An upstream that is the tap itself is an
error.

The processes that own the clients' sockets join HTTP captures to an agent. They are found for connections from this machine,
on Linux:

    client accepted ──► queue ──► thread: the socket's inode → /proc/*/fd → pid ──► reactor ──► one note for all that were found

A thread looks for the owners, so that no message waits for it. Of a connection that ends before the thread looked, of other
users' processes, and elsewhere than on Linux, the port alone is noted.
"""

from __future__ import annotations

import logging
import signal
import socket
import ssl
from _thread import start_new_thread
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...errors import TapError
from ...platform.native import keep_freed_memory
from ...platform.open_files import most_open_files, open_files
from ...platform.processes import ListedProcess, process
from ...platform.signals import on_end
from ...platform.socket_owners import CAN_FIND_OWNERS, Ends, owners_of
from ...platform.sockets import IN
from ...records import CLIENT_PROCESSES, MCPSPY, Frame, Note, Record, RelayEvent, Sink
from ...wire.http_head import RequestHead, ResponseHead
from .channel import set_options
from .connection_pair import ConnectionPair
from .context import TapContext
from .dial import Dial
from .listener import BACKLOG, REST_S, Authority, HostCheck, HttpOrigin, accept_all, bound_socket
from .reactor import Reactor
from .recorder import Numbers, fault_text, note
from .rewriting import Rewriting
from .transaction import RequestPlan, ResponsePlan
from .usual import KnownHeads

if TYPE_CHECKING:
    from ..waiting_messages import Decider
    from .context import Abortable

_log = logging.getLogger("mcpspy.live")

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

MAX_REMEMBERED = 256
MAX_REMEMBERED_BYTES = 1 << 12
"""Most heads, and the size of the largest, that are kept with their plans; when there are more, all are forgotten."""

SPARE_DESCRIPTORS = 4
"""Descriptors kept free for what takes one for a moment, such as a name lookup."""

GATHER_S: Final = 0.2
"""Time for which a note waits for further connections: else a client with a connection for each request would get a note for each."""

MAX_PROCESSES: Final = 64
"""Most processes in a note, the latest: each note lists all, so that readers need the last note only."""

MAX_PORTS: Final = 1000
"""So many ports are noted, though none of their processes was found."""


class HttpTap:
    """A tap in front of `upstream`. Its clock began at `begin_ns` of the monotonic one. Records go to the sink of `record_to`.

    `extra_fields` are put into every request. `tls` is the context for an https upstream. Unless the upstream `speaks_mcp`, no
    body is rewritten. With `intercepts`, `adopt` puts them into each new connection pair: see `intercepting`.
    """

    def __init__(
        self,
        upstream: HttpOrigin,
        begin_ns: int,
        *,
        allowed_hosts: frozenset[str] = frozenset(),
        allowed_endpoints: Sequence[HttpOrigin] = (),
        extra_fields: Sequence[tuple[bytes, bytes]] = (),
        tls: ssl.SSLContext | None = None,
        speaks_mcp: bool = True,
    ) -> None:
        self.upstream = upstream
        self.sink: Sink = nowhere
        self.event: Callable[[int, int, bytes], None] = self._event_as_record
        self.pass_event: Callable[[RelayEvent, int, int, int, int], tuple[bytes, bool] | None] | None = None
        self.events: Callable[[Sequence[Record], int, int, list[bytes]], None] = self._events_as_records
        self.known_heads = KnownHeads(nowhere)
        self.extra_fields = extra_fields
        self.numbers = Numbers()
        self.own = Authority("127.0.0.1", 0)
        self.host_check = HostCheck(port=0)
        self.begin_ns = begin_ns
        self._allowed_hosts = allowed_hosts
        self._allowed_endpoints = tuple(allowed_endpoints)
        self._tls = tls
        self._speaks_mcp = speaks_mcp
        self._pairs: dict[int, ConnectionPair] = {}
        self.own_posts: set[Abortable] = set()
        self.intercepts: Decider | None = None
        self.adopt: Callable[[ConnectionPair], None] | None = None
        self._request_plans: dict[bytes, RequestPlan] = {}
        self._earlier_plans: list[RequestPlan] = []
        self._metadata_targets: set[bytes] = set()
        self._login_paths: dict[bytes, str] = {b"/register": ""}  # where clients register that have seen no metadata
        self._response_plans: dict[tuple[bytes, str], ResponsePlan] = {}
        self._has_noted_tls = False
        self._listener: socket.socket | None = None
        self._own_descriptors = 0
        self.reactor = Reactor(self.fault)
        self._client_processes = _ClientProcesses(self)

    @property
    def pairs(self) -> Iterable[ConnectionPair]:
        """The connections that clients have to it."""
        return self._pairs.values()

    def record_to(self, sink: Sink) -> None:
        """Send all records to `sink`."""
        self.sink = sink
        self.event = getattr(sink, "event", self._event_as_record)
        self.pass_event = getattr(sink, "pass_event", None)
        self.events = getattr(sink, "events", self._events_as_records)
        self.known_heads = KnownHeads(sink)

    def _event_as_record(self, stream: int, at_ns: int, data: bytes) -> None:
        self.sink((Frame(stream, at_ns, at_ns, data, chunks=(len(data),)),))

    def _events_as_records(self, before: Sequence[Record], stream: int, at_ns: int, events: list[bytes]) -> None:
        self.sink((*before, *(Frame(stream, at_ns, at_ns, data, chunks=(len(data),)) for data in events)))

    def now_ns(self) -> int:
        """Return the nanoseconds since the tap's clock began."""
        return monotonic_ns() - self.begin_ns

    def listen(self, host: str, port: int, inherited: socket.socket | None = None) -> socket.socket:
        """Take the address, or the `inherited` socket that has it; port 0 picks one.

        Raises: TapError: if it is taken, or not ours.
        """
        listener = inherited or bound_socket(host, port)
        self.own = Authority(host, listener.getsockname()[1])
        self.host_check = HostCheck(port=self.own.port, allowed_hosts=self._allowed_hosts)
        to = self.upstream.authority
        if to.port == self.own.port and (to.is_local or to.host == host):
            listener.close()
            raise TapError("server", f"{self.upstream} is this tap itself; name the server's own address")
        return listener

    def run(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        """Relay until SIGINT, SIGTERM or SIGHUP, except those that were ignored when we started, as under nohup.

        `ready` is called once clients can connect and signals are handled.
        """
        keep_freed_memory()
        signal.set_wakeup_fd(self.reactor.wake_fd, warn_on_full_buffer=False)
        on_end(lambda *_: self.reactor.stop())
        try:
            self.relay(listener, ready)
        finally:
            signal.set_wakeup_fd(-1)  # before its descriptor is closed: a second signal must not write to another file
            self.end()

    def serve(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        """Relay until the reactor is stopped, then close and record every connection."""
        try:
            self.relay(listener, ready)
        finally:
            self.end()

    def relay(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        """Let clients in until the reactor is stopped."""
        self._listener = listener
        self._own_descriptors = open_files(listener) + SPARE_DESCRIPTORS
        listener.listen(BACKLOG)
        listener.setblocking(False)
        self.reactor.watch(listener.fileno(), IN, self._enter)
        ready()
        self.reactor.run()
        self.reactor.forget(listener.fileno())
        listener.close()

    def end(self) -> None:
        """Close every connection, and record that mcpspy did."""
        for ended in (*self._pairs.values(), *self.own_posts):
            try:
                ended.abort()
            except Exception as error:  # noqa: BLE001  # the others must be closed too
                self.fault(error)
        self._client_processes.close()
        self.reactor.close()

    def fault(self, error: Exception, connection: int = 0) -> None:
        """Report a fault of our own."""
        text = fault_text(error)
        _log.error("mcpspy: %s", text)
        self.sink((note(self.now_ns(), "fault", text, connection, by=MCPSPY),))

    def _enter(self, events: int) -> None:
        """Let in every client that waits."""
        assert self._listener is not None
        if not accept_all(self._listener, self._let_in, self._has_room):
            self.reactor.change(self._listener.fileno(), 0)
            self.reactor.later(REST_S, partial(self.reactor.change, self._listener.fileno(), IN))

    def _has_room(self) -> bool:
        """Return whether there are descriptors for one more client and for its connection to the upstream."""
        return self._own_descriptors + 2 * len(self._pairs) + 2 <= most_open_files()

    def _let_in(self, client: socket.socket) -> None:
        try:
            set_options(client)
        except OSError:
            pass  # it is gone, which its first read reports
        pair = ConnectionPair(self, client)
        self._pairs[pair.number] = pair
        if self.adopt is not None:
            self.adopt(pair)
        self._client_processes.accepted(pair.number, client)

    def dial(self, *, on_connected: Callable[[socket.socket], None], on_failed: Callable[[int, str], None]) -> Dial:
        """Begin to connect to the upstream."""
        return Dial(self.reactor, self.upstream, self._tls, on_connected=on_connected, on_failed=on_failed)

    def note_tls(self, tls: ssl.SSLSocket) -> None:
        """Note once which TLS the upstream speaks."""
        if self._has_noted_tls:
            return
        self._has_noted_tls = True
        cipher = tls.cipher()
        names: Any = (tls.getpeercert() or {}).get("subject", ())
        subject = ", ".join(f"{name}={value}" for pair in names for name, value in pair)
        text = f"{tls.version()}, {cipher[0] if cipher else 'no cipher'}" + (f", certificate of {subject}" if subject else "")
        self.sink((Note(at_ns=self.now_ns(), topic="tls", text=text),))

    def request_plan(self, head: RequestHead) -> RequestPlan:
        """Decide what to do with a request."""
        plan = self._request_plans.get(head.raw)
        if plan is None or (head.target in self._metadata_targets and not plan.is_metadata):
            rewriting = self._rewriting(head.value(b"host"))
            plan = RequestPlan(
                head,
                self.host_check,
                rewriting,
                self.extra_fields,
                speaks_mcp=self._speaks_mcp,
                declines_compression=self.intercepts is not None,
            )
            if len(head.raw) <= MAX_REMEMBERED_BYTES:
                _remember(self._request_plans, head.raw, plan)
        return plan

    def response_plan(self, head: ResponseHead, rewriting: Rewriting) -> ResponsePlan:
        """Decide what to do with a response for a client that uses this rewriting."""
        key = (head.raw, rewriting.own)
        plan = self._response_plans.get(key)
        if plan is None:
            plan = ResponsePlan(head, rewriting)
            if len(head.raw) <= MAX_REMEMBERED_BYTES:
                _remember(self._response_plans, key, plan)
        return plan

    def posts(self) -> list[RequestPlan]:
        """List what is known of posts by clients, the latest last, but for sessions that their clients have ended."""
        plans = self._plans_of_sessions()
        ended = {plan.session for plan in plans if plan.method == b"DELETE" and plan.session is not None}
        return [plan for plan in plans if plan.method == b"POST" and plan.refusal is None and plan.session not in ended]

    def _plans_of_sessions(self) -> list[RequestPlan]:
        known = (plan for _, plan in self.known_heads.requests.values())
        plans = [*self._earlier_plans, *known, *self._request_plans.values()]
        return [plan for plan in plans if plan.method in (b"POST", b"DELETE")]

    def forget_heads(self) -> None:
        """Decide anew on all heads."""
        self._earlier_plans = self._plans_of_sessions()[-MAX_REMEMBERED:]
        self._request_plans.clear()
        self.known_heads.forget()

    def _rewriting(self, host: bytes | None) -> Rewriting:
        """Return the rewriting for a client with this Host field."""
        own = str(self.own) if host is None else host.decode("latin-1")
        return Rewriting(
            upstream=self.upstream,
            own=own,
            allowed_endpoints=self._allowed_endpoints,
            metadata_targets=self._metadata_targets,
            login_paths=self._login_paths,
        )

    def forget(self, connection: int) -> None:
        """Forget a connection whose client has gone."""
        self._pairs.pop(connection, None)
        self._client_processes.ended(connection)


def _remember(known: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    if len(known) >= MAX_REMEMBERED:
        known.clear()
    known[key] = value


def nowhere(records: object) -> None:
    """Drop records: the sink of a tap that has none."""


class _ClientProcesses:
    """The processes behind the connections of one tap. All methods belong to the reactor's thread."""

    __slots__ = ("_found", "_is_looking", "_is_timed", "_open", "_ports", "_processes", "_tap", "_unsought")

    def __init__(self, tap: TapContext) -> None:
        self._tap = tap
        self._unsought: list[tuple[int, Ends]] = []
        self._is_looking = False
        self._is_timed = False
        self._found: dict[int, int] = {}
        """The pids of connections that were not noted yet."""
        self._ports: dict[int, int] = {}
        """The ports of the clients' ends of connections that were not noted yet."""
        self._open: dict[int, int] = {}
        """The processes of open connections."""
        self._processes: dict[int, dict[str, Any]] = {}

    def accepted(self, connection: int, client: socket.socket) -> None:
        """Look for the process at the other end of a connection, if that is on this machine."""
        try:
            peer, own = client.getpeername()[:2], client.getsockname()[:2]
        except OSError:
            return  # it has left
        if peer[0] == own[0]:
            self._ports[connection] = peer[1]
            if CAN_FIND_OWNERS:
                self._unsought.append((connection, (peer, own)))
                self._look()

    def ended(self, connection: int) -> None:
        """Remember when a process was last connected."""
        pid = self._open.pop(connection, 0)
        if pid in self._processes:
            self._processes[pid]["last_ns"] = self._tap.now_ns()

    def close(self) -> None:
        """Note what is known at the end, so that readers find it near the end of the capture."""
        if self._processes or self._ports:
            self._note()

    def _look(self) -> None:
        if self._is_looking or not self._unsought:
            return
        self._is_looking = True
        unsought, self._unsought = self._unsought, []
        known = tuple(self._processes)
        try:
            start_new_thread(lambda: self._find(unsought, known), ())
        except RuntimeError:  # no thread can be started
            self._is_looking = False

    def _find(self, unsought: list[tuple[int, Ends]], known: tuple[int, ...]) -> None:
        """Find processes, in a thread of its own."""
        owners: dict[int, ListedProcess] = {}
        try:
            owners = owners_of(unsought, known)
        except OSError:
            pass  # no descriptors are left, or no /proc
        finally:
            self._tap.reactor.wake(lambda: self._take(owners))

    def _take(self, owners: dict[int, ListedProcess]) -> None:
        self._is_looking = False
        now_ns = self._tap.now_ns()
        for connection, owner in owners.items():
            entry = self._processes.get(owner.pid)
            if entry is None or entry["start"] != owner.start:
                entry = {
                    "pid": owner.pid,
                    "name": owner.name,
                    "start": owner.start,
                    "parents": _parents(owner),
                    "first_ns": now_ns,
                }
            entry["last_ns"] = now_ns
            self._processes.pop(owner.pid, None)
            self._processes[owner.pid] = entry  # the latest is last
            self._found[connection] = owner.pid
            self._open[connection] = owner.pid
        while len(self._processes) > MAX_PROCESSES:
            del self._processes[next(iter(self._processes))]
        if (self._found or len(self._ports) >= MAX_PORTS) and not self._is_timed:
            self._is_timed = True
            self._tap.reactor.later(GATHER_S, self._note)
        self._look()

    def _note(self) -> None:
        self._is_timed = False
        pids: dict[int, list[int]] = {}
        for connection, pid in self._found.items():
            pids.setdefault(pid, []).append(connection)
        ports = [[connection, port] for connection, port in self._ports.items()]
        self._found.clear()
        self._ports.clear()
        text = ", ".join(
            f"{self._processes[pid]['name']} (pid {pid}): connection {', '.join(map(str, connections))}"
            for pid, connections in pids.items()
            if pid in self._processes
        )
        connections = [[pid, *numbers] for pid, numbers in pids.items()]
        extra = {"connections": connections, "ports": ports, "processes": list(map(dict, self._processes.values()))}
        text = text or ("all processes that were connected" if self._processes else "no process that was connected was found")
        self._tap.sink((Note(at_ns=self._tap.now_ns(), topic=CLIENT_PROCESSES, text=text, extra=extra),))


def _parents(child: ListedProcess) -> list[list[int]]:
    """Return pid and start of the process that started another, and of that one's parent: a bridge may speak for a client."""
    parents: list[list[int]] = []
    while len(parents) < 2 and child.parent > 1 and (parent := process(child.parent)) is not None:
        parents.append([parent.pid, parent.start])
        child = parent
    return parents

"""The HTTP tap: a reverse proxy for one upstream that relays bytes between a client connection and an upstream connection of its own.

It listens, lets links begin, connects them, and ends them all when it is told to. Refuses an upstream that is the tap itself.
"""

from __future__ import annotations

import logging
import signal
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from select import EPOLLIN
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import TapError
from ...records import MCPSPY, Frame, Note
from ..native import keep_freed_memory
from .channel import set_options
from .connection_pair import Link
from .dial import Dial
from .host_check import Gate
from .listener import BACKLOG, REST_S, Authority, HttpOrigin, accept_all, bound_socket
from .reactor import Reactor
from .recorder import Numbers, fault_text, note
from .rewriting import Mapping
from .transaction import Answered, Asked

if TYPE_CHECKING:
    from ...records import Record, Sink
    from ...wire.http_head import RequestHead, ResponseHead

_log = logging.getLogger("mcpspy.live")

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

MAX_REMEMBERED = 256
MAX_REMEMBERED_BYTES = 1 << 12
"""So many heads, up to this size, are remembered with what follows from them; then all are forgotten."""


class HttpTap:
    """A tap before `upstream`; its clock began at `begin_ns` of the monotonic one. Records go where `record_to` says.

    `extra_fields` are put into every request. `tls` is how to talk to an https upstream. What does not speak MCP has no body
    in which a name is mapped.
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
        self.event = self._event_as_record
        self.events = self._events_as_records
        self.extra_fields = extra_fields
        self.numbers = Numbers()
        self.own = Authority("127.0.0.1", 0)
        self.gate = Gate(port=0)
        self.begin_ns = begin_ns
        self._allowed_hosts = allowed_hosts
        self._allowed_endpoints = tuple(allowed_endpoints)
        self._tls = tls
        self._speaks_mcp = speaks_mcp
        self._links: set[Link] = set()
        self._mappings: dict[str, Mapping] = {}
        self._asked: dict[bytes, Asked] = {}
        self._answered: dict[tuple[bytes, str], Answered] = {}
        self._told_tls = False
        self._listener: socket.socket | None = None
        self.reactor = Reactor(self.fault)

    def record_to(self, sink: Sink) -> None:
        """Have everything recorded there."""
        self.sink = sink
        self.event = getattr(sink, "event", self._event_as_record)
        self.events = getattr(sink, "events", self._events_as_records)

    def _event_as_record(self, stream: int, at_ns: int, data: bytes) -> None:
        self.sink((Frame(stream, at_ns, at_ns, data, chunks=(len(data),)),))

    def _events_as_records(self, before: Sequence[Record], stream: int, at_ns: int, events: Sequence[bytes]) -> None:
        self.sink((*before, *(Frame(stream, at_ns, at_ns, data, chunks=(len(data),)) for data in events)))

    def now_ns(self) -> int:
        """Nanoseconds since the tap's clock began."""
        return monotonic_ns() - self.begin_ns

    def listen(self, host: str, port: int) -> socket.socket:
        """Take the address; port 0 picks one. Raises: TapError: if it is taken, or not ours."""
        listener = bound_socket(host, port)
        self.own = Authority(host, listener.getsockname()[1])
        self.gate = Gate(port=self.own.port, allowed_hosts=self._allowed_hosts)
        to = self.upstream.authority
        if to.port == self.own.port and (to.is_loopback or to.is_any or to.host == host):
            listener.close()
            raise TapError("server", f"{self.upstream} is this tap itself; name the server's own address")
        return listener

    def run(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        """Relay until SIGINT, SIGTERM or SIGHUP comes, but for those that were ignored when we started: nohup means it.

        `ready` is called once clients can connect and signals are heard.
        """
        keep_freed_memory()
        signal.set_wakeup_fd(self.reactor.wake_fd, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: self.reactor.stop())
        try:
            self.relay(listener, ready)
        finally:
            signal.set_wakeup_fd(-1)  # before its descriptor is closed: a second signal must not meet another file's
            self.end()

    def serve(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        """Relay until the reactor is stopped; then every connection is closed and recorded."""
        try:
            self.relay(listener, ready)
        finally:
            self.end()

    def relay(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        """Let clients in, until the reactor is stopped."""
        self._listener = listener
        listener.listen(BACKLOG)
        listener.setblocking(False)
        self.reactor.watch(listener.fileno(), EPOLLIN, self._enter)
        ready()
        self.reactor.run()
        self.reactor.forget(listener.fileno())
        listener.close()

    def end(self) -> None:
        """Close every connection, and record that it was us."""
        for link in list(self._links):
            try:
                link.abort()
            except Exception as error:  # noqa: BLE001  # the others have to be closed too
                self.fault(error)
        self.reactor.close()

    def fault(self, error: Exception, connection: int = 0) -> None:
        """Tell of a fault of our own: where it is, and not what it says, for that may be somebody's secret."""
        text = fault_text(error)
        _log.error("mcpspy: %s", text)
        self.sink((note(self.now_ns(), "fault", text, connection, by=MCPSPY),))

    def _enter(self, events: int) -> None:
        """Let in every client that waits."""
        assert self._listener is not None
        if not accept_all(self._listener, self._let_in):
            self.reactor.change(self._listener.fileno(), 0)
            self.reactor.later(REST_S, partial(self.reactor.change, self._listener.fileno(), EPOLLIN))

    def _let_in(self, client: socket.socket) -> None:
        try:
            set_options(client)
        except OSError:
            pass  # it is gone, which its first read tells
        self._links.add(Link(self, client))

    def dial(self, link: Link) -> Dial:
        """Get the link its upstream connection."""
        return Dial(self.reactor, self.upstream, self._tls, connected=link.connected, failed=link.unreachable)

    def tell_tls(self, tls: ssl.SSLSocket) -> None:
        """Note once how the upstream is spoken to."""
        if self._told_tls:
            return
        self._told_tls = True
        cipher = tls.cipher()
        named: Any = (tls.getpeercert() or {}).get("subject", ())
        subject = ", ".join(f"{name}={value}" for pair in named for name, value in pair)
        text = f"{tls.version()}, {cipher[0] if cipher else 'no cipher'}" + (f", certificate of {subject}" if subject else "")
        self.sink((Note(at_ns=self.now_ns(), topic="tls", text=text),))

    def asked(self, head: RequestHead) -> Asked:
        """What follows from a request's head."""
        found = self._asked.get(head.raw)
        if found is None:
            mapping = self._mapping(head.value(b"host"))
            found = Asked(head, self.gate, mapping, self.extra_fields, speaks_mcp=self._speaks_mcp)
            if len(head.raw) <= MAX_REMEMBERED_BYTES:
                _remember(self._asked, head.raw, found)
        return found

    def answered(self, head: ResponseHead, mapping: Mapping) -> Answered:
        """What follows from a response's head, for a client that calls us as `mapping` says."""
        key = (head.raw, mapping.own)
        found = self._answered.get(key)
        if found is None:
            found = Answered(head, mapping)
            if len(head.raw) <= MAX_REMEMBERED_BYTES:
                _remember(self._answered, key, found)
        return found

    def _mapping(self, host: bytes | None) -> Mapping:
        """Between the upstream and the name by which a client calls us: its Host field."""
        own = str(self.own) if host is None else host.decode("latin-1")
        found = self._mappings.get(own)
        if found is None:
            found = Mapping(upstream=self.upstream, own=own, allowed_endpoints=self._allowed_endpoints)
            _remember(self._mappings, own, found)
        return found

    def left(self, link: Link) -> None:
        """A client's connection is gone."""
        self._links.discard(link)


def _remember(known: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    if len(known) >= MAX_REMEMBERED:
        known.clear()
    known[key] = value


def nowhere(records: object) -> None:
    """The sink of a tap that has none."""

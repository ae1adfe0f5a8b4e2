"""The HTTP tap: a reverse proxy for one upstream that relays bytes between a client connection and an upstream connection of its own.

It listens, lets links begin, connects them, and ends them all within 2 s when it is told to. Refuses remote clients unless asked to
take them, and an upstream that is the tap itself.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
from collections.abc import Callable, Sequence
from time import monotonic_ns
from typing import TYPE_CHECKING, TypeVar

from ..errors import TapError
from ..records import Note
from .authority import Authority, Origin
from .ends import ClientEnd, ServerEnd
from .gate import Gate
from .link import Link
from .mapping import Mapping
from .native import keep_freed_memory
from .recording import Numbers
from .transaction import Answered, Asked

if TYPE_CHECKING:
    from ..records import Sink
    from ..wire.http_head import RequestHead, ResponseHead

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

CONNECT_S = 30.0
"""How long an upstream may take to accept a connection, its TLS included."""

BACKLOG = 1024

MAX_REMEMBERED = 256
MAX_REMEMBERED_BYTES = 1 << 12
"""So many heads, up to this size, are remembered with what follows from them; then all are forgotten."""


class HttpTap:
    """A tap before `upstream`; its clock began at `begin_ns` of the monotonic one. Records go to `sink`, once there is one.

    `extra_fields` are put into every request. `tls` is how to talk to an https upstream.
    """

    def __init__(
        self,
        upstream: Origin,
        begin_ns: int,
        *,
        allowed_hosts: frozenset[str] = frozenset(),
        allowed_endpoints: Sequence[Origin] = (),
        extra_fields: Sequence[tuple[bytes, bytes]] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.upstream = upstream
        self.sink: Sink = _nowhere
        self.extra_fields = extra_fields
        self.numbers = Numbers()
        self.own = Authority("127.0.0.1", 0)
        self.gate = Gate(port=0)
        self.begin_ns = begin_ns
        self._allowed_hosts = allowed_hosts
        self._allowed_endpoints = tuple(allowed_endpoints)
        self._tls = tls
        self._links: set[Link] = set()
        self._mappings: dict[str, Mapping] = {}
        self._asked: dict[bytes, Asked] = {}
        self._answered: dict[tuple[bytes, str], Answered] = {}
        self._group: asyncio.TaskGroup | None = None
        self._told_tls = False
        self._connecting: set[asyncio.Task[None]] = set()

    def now_ns(self) -> int:
        """Nanoseconds since the tap's clock began."""
        return monotonic_ns() - self.begin_ns

    def listen(self, host: str, port: int) -> socket.socket:
        """Take the address; port 0 picks one. Raises: TapError: if it is taken, or not ours."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # named as TCP, for asyncio sets TCP_NODELAY on no other: without it an event waits 40 ms for the client's delayed ACK
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            listener.close()
            raise TapError(
                "client", f"{Authority(host, port)}: {error.strerror}; name another with --listen, port 0 picks one"
            ) from error
        self.own = Authority(host, listener.getsockname()[1])
        self.gate = Gate(port=self.own.port, allowed_hosts=self._allowed_hosts)
        to = self.upstream.authority
        if to.port == self.own.port and (to.is_loopback or to.is_any or to.host == host):
            listener.close()
            raise TapError("server", f"{self.upstream} is this tap itself; name the server's own address")
        return listener

    def run(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        """Relay until SIGINT, SIGTERM or SIGHUP comes. `ready` is called once clients can connect and signals are heard."""
        keep_freed_memory()
        asyncio.run(self._until_signalled(listener, ready))

    async def _until_signalled(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await self.serve(listener, stop, ready)

    async def serve(self, listener: socket.socket, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        """Relay until `stop` is set; then every connection is closed and recorded. `ready` is called once clients can connect."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            self._group = group
            server = await loop.create_server(lambda: ClientEnd(self), sock=listener, backlog=BACKLOG)
            ready()
            await stop.wait()
            self._group = None
            server.close()
            for link in list(self._links):
                link.abort()
            for task in self._connecting:
                task.cancel()
            await asyncio.sleep(0)  # the connections report their ends in the next turn of the loop
        await asyncio.sleep(0)

    def connect(self, link: Link) -> None:
        """Get the link its upstream connection."""
        if self._group is None:
            return
        task = self._group.create_task(self._connect(link))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, link: Link) -> None:
        loop, to = asyncio.get_running_loop(), self.upstream.authority
        name = to.host if self._tls is not None else None
        try:
            async with asyncio.timeout(CONNECT_S):
                server, _ = await loop.create_connection(
                    lambda: ServerEnd(link), to.host, to.port, ssl=self._tls, server_hostname=name
                )
        except TimeoutError:
            link.unreachable(504, f"{self.upstream} did not accept a connection within {CONNECT_S:.0f} s")
        except (OSError, UnicodeError) as error:  # the latter from names that no resolver takes
            link.unreachable(502, f"{self.upstream} cannot be reached: {getattr(error, 'strerror', None) or error}")
        else:
            self._tell_tls(server)
            link.connected(server)

    def _tell_tls(self, server: asyncio.Transport) -> None:
        """Note once how the upstream is spoken to, where that is by TLS."""
        tls = server.get_extra_info("ssl_object")
        if tls is None or self._told_tls:
            return
        self._told_tls = True
        cipher, certificate = tls.cipher(), tls.getpeercert() or {}
        subject = ", ".join(f"{name}={value}" for pair in certificate.get("subject", ()) for name, value in pair)
        text = f"{tls.version()}, {cipher[0] if cipher else 'no cipher'}" + (f", certificate of {subject}" if subject else "")
        self.sink((Note(at_ns=self.now_ns(), topic="tls", text=text),))

    def asked(self, head: RequestHead) -> Asked:
        """What follows from a request's head."""
        found = self._asked.get(head.raw)
        if found is None:
            found = Asked(head, self.gate, self._mapping(head.value(b"host")), self.extra_fields)
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

    def entered(self, client: asyncio.Transport) -> Link:
        """A client has connected."""
        link = Link(self, client)
        self._links.add(link)
        return link

    def left(self, link: Link) -> None:
        """A client's connection is gone."""
        self._links.discard(link)


def _remember(known: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    if len(known) >= MAX_REMEMBERED:
        known.clear()
    known[key] = value


def _nowhere(records: object) -> None:
    """The sink of a tap that has none."""

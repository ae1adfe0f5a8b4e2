"""A connection to the upstream: resolve its name, try its addresses in turn, shake hands for TLS, all within one deadline.

Nothing is tried again once an address has accepted. Only the resolver blocks, and it runs in a thread of its own.
"""

from __future__ import annotations

import socket
import ssl
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from ...platform.sockets import IN, IN_PROGRESS, OUT, error_text
from .channel import set_options
from .listener import HttpOrigin
from .reactor import Reactor, Timer

Address: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]

CONNECT_S = 30.0
"""Time in which an upstream has to accept a connection, including its name and its TLS."""


class Dial:
    """One attempt. It calls one of `on_connected` (with a non-blocking socket) and `on_failed` (with status and reason), once.

    `tls` is the context for an https upstream.
    """

    __slots__ = ("_addresses", "_deadline", "_on_connected", "_on_failed", "_reactor", "_reasons", "_socket", "_tls", "_to")

    def __init__(
        self,
        reactor: Reactor,
        to: HttpOrigin,
        tls: ssl.SSLContext | None,
        *,
        on_connected: Callable[[socket.socket], None],
        on_failed: Callable[[int, str], None],
    ) -> None:
        self._reactor = reactor
        self._to = to
        self._tls = tls
        self._on_connected = on_connected
        self._on_failed = on_failed
        self._socket: socket.socket | None = None
        self._addresses: deque[Address] = deque()
        self._reasons: list[str] = []
        self._deadline: Timer = reactor.later(CONNECT_S, self._too_late)
        self._begin(to.authority.host, to.authority.port)

    def cancel(self) -> None:
        """Stop, and call nothing any more."""
        self._end()

    def _begin(self, host: str, port: int) -> None:
        """Find the addresses: at once if the host is an address, else in a thread."""
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except OSError:
            try:
                start_new_thread(self._resolve, (host, port))
            except RuntimeError as error:  # too many threads
                self._on_unresolved(str(error))
        except UnicodeError as error:  # no resolver takes this name
            self._on_unresolved(str(error))
        else:
            self._on_resolved(addresses)

    def _resolve(self, host: str, port: int) -> None:
        """Resolve the name, in a thread of its own."""
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            self._reactor.wake(partial(self._on_unresolved, getattr(error, "strerror", None) or str(error)))
        else:
            self._reactor.wake(partial(self._on_resolved, addresses))

    def _on_unresolved(self, reason: str) -> None:
        if self._deadline.call is not None:
            self._reasons.append(reason)
            self._next()

    def _on_resolved(self, addresses: Sequence[Address]) -> None:
        if self._deadline.call is not None:
            self._addresses.extend(addresses)
            self._next()

    def _next(self) -> None:
        """Try the next address."""
        if not self._addresses:
            reasons = "; ".join(dict.fromkeys(self._reasons))
            self._fail(502, f"{self._to} cannot be reached: {reasons}")
            return
        family, kind, protocol, _, address = self._addresses.popleft()
        try:
            tried = self._socket = socket.socket(family, kind, protocol)
            tried.setblocking(False)
            code = tried.connect_ex(address)
        except OSError as error:
            self._refused(error)
            return
        if code == 0:
            self._accepted()
        elif code in IN_PROGRESS:
            self._reactor.watch(tried.fileno(), OUT, self._on_connect_result)
        else:
            self._refused(OSError(code, error_text(code)))

    def _on_connect_result(self, events: int) -> None:
        assert self._socket is not None
        self._reactor.forget(self._socket.fileno())
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._refused(OSError(code, error_text(code)))
        else:
            self._accepted()

    def _refused(self, error: OSError) -> None:
        self._reasons.append(error.strerror or str(error))
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._next()

    def _accepted(self) -> None:
        assert self._socket is not None
        try:
            set_options(self._socket)
            if self._tls is not None:
                host = self._to.authority.host
                self._socket = self._tls.wrap_socket(self._socket, server_hostname=host, do_handshake_on_connect=False)
        except (OSError, ValueError) as error:
            self._fail(502, f"{self._to} cannot be reached: {error}")
            return
        if self._tls is None:
            self._succeed()
        else:
            self._reactor.watch(self._socket.fileno(), OUT, self._shake)

    def _shake(self, events: int) -> None:
        """Take the next step of the TLS handshake."""
        tls_socket = self._socket
        assert isinstance(tls_socket, ssl.SSLSocket)
        try:
            tls_socket.do_handshake()
        except ssl.SSLWantReadError:
            self._reactor.change(tls_socket.fileno(), IN)
        except ssl.SSLWantWriteError:
            self._reactor.change(tls_socket.fileno(), OUT)
        except OSError as error:
            self._fail(502, f"{self._to} cannot be reached: {error.strerror or error}")
        else:
            self._reactor.forget(tls_socket.fileno())
            self._succeed()

    def _succeed(self) -> None:
        connected, self._socket = self._socket, None
        assert connected is not None
        on_connected = self._on_connected
        self._end()
        on_connected(connected)

    def _fail(self, status: int, reason: str) -> None:
        on_failed = self._on_failed
        self._end()
        on_failed(status, reason)

    def _too_late(self) -> None:
        self._fail(504, f"{self._to} did not accept a connection within {CONNECT_S:.0f} s")

    def _end(self) -> None:
        """End the attempt, and drop the callbacks: their owners refer to us."""
        self._deadline.cancel()
        self._drop()
        self._addresses.clear()
        self._on_connected = self._on_failed = _ignore

    def _drop(self) -> None:
        """Close a connection that is not established yet."""
        if self._socket is not None:
            if self._reactor.watches(self._socket.fileno()):
                self._reactor.forget(self._socket.fileno())
            self._socket.close()
            self._socket = None


def _ignore(*_: object) -> None:
    """Do nothing: the callback of an attempt that is over."""

"""A connected socket that never blocks: what is read is handed on, what cannot be sent yet waits here.

What waits is the owner's affair: it is told when something does, and reads no more on its other side until it is told that
nothing does. Refuses to look at the bytes.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import struct
from select import EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLOUT
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .reactor import Reactor

READ_BYTES = 1 << 16
MAX_READ_BYTES = 1 << 18
"""Reads double from the first to the second while they come back full, as in a stdio tap."""

_LINGER_NOT = struct.pack("ii", 1, 0)

IDLE_S = 60
PROBE_S = 15
PROBES = 4
"""After so much silence a peer is asked whether it is still there, so often and so many times: one whose machine is gone, or behind a
network that forgot the connection, would else be waited for for ever."""

_OPTIONS = (
    (socket.IPPROTO_TCP, "TCP_NODELAY", 1),  # without it an event waits 40 ms for the delayed ACK of the one before
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", IDLE_S),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", PROBE_S),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", PROBES),
)


def set_options(connected: socket.socket) -> None:
    """What every connection of a tap wants of TCP. Raises: OSError: if it is gone already."""
    for level, name, value in _OPTIONS:
        if hasattr(socket, name):  # some systems have no times
            connected.setsockopt(level, getattr(socket, name), value)


class Channel:
    """A connection, and whether it may still be used: `is_closing` says that nothing more is read from it.

    It reads from the beginning on, and calls `took` with what came. `full` is called when the other side does not take more for now,
    `drained` when it has taken all that waited. `lost` comes last: without an error the connection ended in good order, or by our
    own close; an error that is no `OSError` is a fault of our own. `connected` is non-blocking, and belongs to the channel from now
    on. `sends_on`: what waits is sent even when the other side has said that it says no more.
    """

    __slots__ = (
        "_broken", "_drained", "_events", "_fd", "_full", "_is_ending", "_is_gone", "_is_tls", "_lost", "_pending", "_reactor",
        "_read_bytes", "_recv", "_send", "_sends_on", "_socket", "_took", "is_closing",
    )  # fmt: skip

    def __init__(
        self,
        reactor: Reactor,
        connected: socket.socket,
        *,
        took: Callable[[bytes], None],
        full: Callable[[], None],
        drained: Callable[[], None],
        lost: Callable[[Exception | None], None],
        sends_on: bool,
    ) -> None:
        self._reactor = reactor
        self._socket = connected
        self._fd = connected.fileno()
        self._recv = connected.recv
        self._send: Callable[[bytes | memoryview], int] = connected.send
        self._took, self._full, self._drained, self._lost = took, full, drained, lost
        self._sends_on = sends_on
        self._pending = memoryview(b"")
        self._read_bytes = READ_BYTES
        self._broken: OSError | None = None  # why nothing arrives that is sent
        self._is_ending = False  # nothing more will be written
        self._is_gone = False
        self._is_tls = isinstance(connected, ssl.SSLSocket)  # its handshake is done
        self.is_closing = False
        self._events = EPOLLIN
        reactor.watch(self._fd, EPOLLIN, self._ready)

    @property
    def pending_bytes(self) -> int:
        """So many wait to be sent."""
        return len(self._pending)

    def write(self, data: bytes) -> None:
        """Send, behind what waits."""
        if self._is_gone or not data:
            return
        if self._pending:
            self._pending = memoryview(b"".join((self._pending, data)))
            return
        try:
            sent = self._send(data)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            sent = 0
        except OSError as error:
            self._cannot_send(error)
            return
        if sent != len(data):
            self._pending = memoryview(data)[sent:]
            self._watch(self._events | EPOLLOUT)
            self._full()

    def pause(self) -> None:
        """Read no more for now."""
        if not self.is_closing and self._broken is None:
            self._watch(self._events & ~EPOLLIN)

    def resume(self) -> None:
        """Read on."""
        if not self.is_closing and not self._events & EPOLLIN:
            self._watch(self._events | EPOLLIN)
            if self._is_tls:
                self._read_on()

    def end(self) -> None:
        """Say that nothing more comes, behind what waits."""
        self._is_ending = True
        if not self._pending:
            self._shut_down()

    def close(self, *, by_reset: bool = False) -> None:
        """Read no more, send what waits, and close; by a reset where the other side must not take this for an end."""
        if by_reset and not self._is_gone:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self._watch(self._events & ~EPOLLIN)
        self.is_closing = True
        if not self._pending:
            self._lose(self._broken)

    def abort(self) -> None:
        """Close at once, and forget what waits."""
        self._lose(None)

    def _ready(self, events: int) -> None:
        try:
            if self._events != EPOLLIN and (events & EPOLLOUT or not self._events & EPOLLIN):
                self._flush()  # also where nothing was asked for but to send: an error says so
                if not self._events & EPOLLIN or events == EPOLLOUT:
                    return
            try:
                data = self._recv(self._read_bytes)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            except OSError as error:
                self._lose(error)
                return
            if data:
                self._read_bytes = min(2 * self._read_bytes, MAX_READ_BYTES) if len(data) == self._read_bytes else READ_BYTES
                self._took(data)
                if self._is_tls:
                    self._read_on()
            else:
                if self._is_tls and events & (EPOLLERR | EPOLLHUP):  # Python's TLS tells a reset as an end
                    self._broken = ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
                if not self._sends_on:
                    self._pending = memoryview(b"")
                self.close()
        except Exception as error:  # noqa: BLE001  # a fault of our own ends this connection, and no other
            if self._is_gone:
                self._reactor.fault(error)
            self._lose(error)

    def _flush(self) -> None:
        try:
            sent = self._send(self._pending)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError as error:
            self._cannot_send(error)
            return
        self._pending = self._pending[sent:]
        if self._pending:
            return
        self._watch(self._events & ~EPOLLOUT)
        if self.is_closing:
            self._lose(None)
            return
        if self._is_ending:
            self._shut_down()
        self._drained()

    def _cannot_send(self, error: OSError) -> None:
        """Nothing arrives any more that is sent. What the other side said before it left still does: it is read, paused or not.

        A server that refuses a request may answer and close without having read it.
        """
        self._pending = memoryview(b"")
        if self.is_closing or not isinstance(error, ConnectionError | ssl.SSLEOFError):
            self._lose(error)
            return
        self._broken = error
        self._send = len  # it all goes nowhere: trying again would spoil what TLS has to read
        self._watch(EPOLLIN)

    def _shut_down(self) -> None:
        if not self._is_gone:
            try:
                self._socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # who reads next is told

    def _watch(self, events: int) -> None:
        """Wait for these events. For none: not at all, or a connection that broke would be told again and again."""
        if self._is_gone or events == self._events:
            return
        if not events:
            self._reactor.forget(self._fd)
        elif not self._events:
            self._reactor.watch(self._fd, events, self._ready)
        else:
            self._reactor.change(self._fd, events)
        self._events = events

    def _lose(self, error: Exception | None) -> None:
        if self._is_gone:
            return
        self._watch(0)
        self._is_gone = self.is_closing = True
        self._pending = memoryview(b"")
        self._reactor.soon(lambda: self._tell_loss(error))

    def _tell_loss(self, error: Exception | None) -> None:
        """In a call of its own: whoever wrote is not done yet."""
        try:
            self._lost(error)
        finally:
            self._let_go()

    def _read_on(self) -> None:
        """TLS may have read more than it has handed on, which no `epoll` tells."""
        if isinstance(self._socket, ssl.SSLSocket) and self._events & EPOLLIN and self._socket.pending():
            self._reactor.soon(self._ready_still)

    def _ready_still(self) -> None:
        if self._events & EPOLLIN:
            self._ready(EPOLLIN)

    def _let_go(self) -> None:
        try:
            if isinstance(self._socket, ssl.SSLSocket):
                self._socket.unwrap()  # says goodbye; nobody waits for the answer
        except (OSError, ValueError):
            pass
        self._socket.close()
        self._took = self._lost = _nothing  # whoever these belong to refers to us: only the garbage collector would find out
        self._full = self._drained = _nothing


def _nothing(*_: object) -> None:
    """What a channel calls that is gone."""

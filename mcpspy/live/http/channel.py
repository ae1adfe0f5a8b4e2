"""A connected socket that never blocks: it hands on what it reads, and holds what cannot be sent yet.

The owner limits what is held: `on_full` tells it when something waits, and it reads no more on its other side until `on_drained`.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Callable

from ...platform.sockets import ENDED, IN, LINGER_NOT, OUT, SOCKETS_ARE_FILES, error_text, was_reset
from .reactor import Reactor

READ_BYTES = 1 << 16
MAX_READ_BYTES = 1 << 18
"""Reads double from the first to the second while they come back full, as in a stdio tap."""

IDLE_S = 60
PROBE_S = 15
PROBES = 4
"""TCP keep-alive: when to probe a silent peer, how often, and how many times. Without it a connection to a machine that is gone, or
across a network that forgot it, would stay open for ever."""

_OPTIONS = (
    (socket.IPPROTO_TCP, "TCP_NODELAY", 1),  # without it an event waits 40 ms for the delayed ACK of the one before
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", IDLE_S),
    (socket.IPPROTO_TCP, "TCP_KEEPALIVE", IDLE_S),  # the same on macOS
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", PROBE_S),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", PROBES),
)


def set_options(connected: socket.socket) -> None:
    """Set the TCP options of a tap's connection. Raises: OSError: if it is closed already."""
    for level, name, value in _OPTIONS:
        if hasattr(socket, name):  # some systems lack the times
            connected.setsockopt(level, getattr(socket, name), value)


class Channel:
    """A connection. `is_closing` means that nothing more is read from it.

    `on_data` is called with each read, `on_full` when the other side takes no more for now, `on_drained` when it has taken all that
    waited. `on_end` is called when the other side has closed its half, and returns whether the connection goes on in our half; else
    what waits is sent if the channel `sends_on`, and it closes. `on_lost` is called last: without an error if the connection ended
    in good order or we closed it; an error that is no `OSError` is a fault of our own. `connected` is a non-blocking socket that now
    belongs to the channel.
    """

    __slots__ = (
        "_broken", "_events", "_is_ending", "_is_gone", "_is_tls", "_on_data", "_on_drained", "_on_end", "_on_full",
        "_on_lost", "_pending", "_read", "_reactor", "_read_bytes", "_recv", "_send", "_sends_on", "_socket", "fd", "is_closing",
        "sending_fd",
    )  # fmt: skip

    def __init__(
        self,
        reactor: Reactor,
        connected: socket.socket,
        *,
        on_data: Callable[[bytes], None],
        on_full: Callable[[], None],
        on_drained: Callable[[], None],
        on_end: Callable[[], bool],
        on_lost: Callable[[Exception | None], None],
        sends_on: bool,
    ) -> None:
        self._reactor = reactor
        self._socket = connected
        self.fd = connected.fileno()
        self.sending_fd = self.fd if SOCKETS_ARE_FILES else -1
        """The number of the socket while what is written goes there at once and as it is, else -1."""
        self._recv = connected.recv
        self._read: Callable[[int], bytes | None] = self._recv
        self._send: Callable[[bytes | memoryview], int] = connected.send
        self._on_data, self._on_full, self._on_drained = on_data, on_full, on_drained
        self._on_end, self._on_lost = on_end, on_lost
        self._sends_on = sends_on
        self._pending = memoryview(b"")
        self._read_bytes = READ_BYTES
        self._broken: OSError | None = None  # why what we send does not arrive
        self._is_ending = False  # nothing more will be written
        self._is_gone = False
        self._is_tls = isinstance(connected, ssl.SSLSocket)  # its handshake is done
        self.is_closing = False
        self._events = IN
        reactor.watch(self.fd, IN, self._ready)

    def call(
        self,
        *,
        on_data: Callable[[bytes], None],
        on_end: Callable[[], bool],
        on_lost: Callable[[Exception | None], None],
    ) -> None:
        """Make these calls from now on in place of others."""
        if not self._is_gone:
            self._on_data, self._on_end, self._on_lost = on_data, on_end, on_lost
            self._read = self._recv

    def read_by(self, read: Callable[[int], bytes | None] | None) -> None:
        """Read by this function from now on, which may take what it reads and return None; without one, as before."""
        if not self._is_gone and not self._is_tls and SOCKETS_ARE_FILES:
            self._read = read or self._recv

    @property
    def pending_bytes(self) -> int:
        """The number of bytes that wait to be sent."""
        return len(self._pending)

    def copy(self) -> socket.socket:
        """Return another socket of the same connection, which goes on when this channel is closed. Raises: OSError."""
        return socket.socket(fileno=socket.dup(self.fd))

    def write(self, data: bytes) -> None:
        """Send, after what waits."""
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
            self.sending_fd = -1
            self._watch(self._events | OUT)
            self._on_full()

    def pause(self) -> None:
        """Read no more for now."""
        if not self.is_closing and self._broken is None:
            self._watch(self._events & ~IN)

    def resume(self) -> None:
        """Read on."""
        if not self.is_closing and not self._events & (IN | ENDED):
            self._watch(self._events | IN)
            if self._is_tls:
                self._read_on()

    def end(self) -> None:
        """Close our half, after what waits."""
        self._is_ending = True
        if not self._pending:
            self._shut_down()

    def close(self, *, by_reset: bool = False) -> None:
        """Read no more, send what waits, and close; `by_reset` if the other side must not take this for a regular end."""
        if by_reset and not self._is_gone:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        self._watch(self._events & ~IN)
        self.is_closing = True
        if not self._pending:
            self._lose(self._broken)

    def abort(self) -> None:
        """Close at once, and drop what waits."""
        self._lose(None)

    def _ready(self, events: int) -> None:
        try:
            if self._events != IN and (events & OUT or not self._events & IN):
                self._flush()  # also if only writing was watched: an error arrives the same way
                if not self._events & IN or events == OUT:
                    return
            try:
                data = self._read(self._read_bytes)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            except OSError as error:
                self._lose(error)
                return
            if data:
                self._read_bytes = min(2 * self._read_bytes, MAX_READ_BYTES) if len(data) == self._read_bytes else READ_BYTES
                self._on_data(data)
                if self._is_tls:
                    self._read_on()
            elif data is not None:
                if was_reset(events, is_tls=self._is_tls):  # Python's TLS reports a reset as an end
                    self._broken = ConnectionResetError(errno.ECONNRESET, error_text(errno.ECONNRESET))
                self._end_reading()
        except Exception as error:  # noqa: BLE001  # a fault of our own ends this connection, and no other
            if self._is_gone:
                self._reactor.fault(error)
            self._lose(error)

    def _end_reading(self) -> None:
        """Handle that the other side has closed its half, or that there is nothing left to read of what broke."""
        if self._broken is None and self._on_end():
            self._watch(self._events & ~IN | ENDED)
            return
        if not self._sends_on:
            self._pending = memoryview(b"")
        self.close()

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
        self._watch(self._events & ~OUT)
        if SOCKETS_ARE_FILES and not self._is_tls:
            self.sending_fd = self.fd
        if self.is_closing:
            self._lose(None)
            return
        if self._is_ending:
            self._shut_down()
        self._on_drained()

    def _cannot_send(self, error: OSError) -> None:
        """Handle that what we send does not arrive any more. What the other side sent before it left is still read, paused or not.

        A server that refuses a request may answer and close without having read it.
        """
        self._pending = memoryview(b"")
        if self.is_closing or not isinstance(error, ConnectionError | ssl.SSLEOFError):
            self._lose(error)
            return
        self._broken = error
        self.sending_fd = -1
        self._send = len  # drop it all: trying again would spoil what TLS has to read
        self._watch(IN)

    def _shut_down(self) -> None:
        if not self._is_gone:
            try:
                socket.socket.shutdown(self._socket, socket.SHUT_WR)  # that of a TLS socket would stop reading, too
            except OSError:
                pass  # the next read reports it

    def _watch(self, events: int) -> None:
        """Wait for these events; for none of them not at all, or a broken connection would be reported again and again."""
        if self._is_gone or events == self._events:
            return
        if not events:
            self._reactor.forget(self.fd)
        elif not self._events:
            self._reactor.watch(self.fd, events, self._ready)
        else:
            self._reactor.change(self.fd, events)
        self._events = events

    def _lose(self, error: Exception | None) -> None:
        if self._is_gone:
            return
        self._watch(0)
        self._is_gone = self.is_closing = True
        self.sending_fd = -1
        self._read = self._recv
        self._pending = memoryview(b"")
        self._reactor.soon(lambda: self._report_loss(error))

    def _report_loss(self, error: Exception | None) -> None:
        """Call `on_lost`, in a call of its own: the one that wrote has not returned yet."""
        try:
            self._on_lost(error)
        finally:
            self._let_go()

    def _read_on(self) -> None:
        """Read on soon if TLS has read more than it has handed on, which no poll reports."""
        if isinstance(self._socket, ssl.SSLSocket) and self._events & IN and self._socket.pending():
            self._reactor.soon(self._ready_still)

    def _ready_still(self) -> None:
        if self._events & IN:
            self._ready(IN)

    def _let_go(self) -> None:
        try:
            if isinstance(self._socket, ssl.SSLSocket):
                self._socket.unwrap()  # sends close_notify; nobody waits for the answer
        except (OSError, ValueError):
            pass
        self._socket.close()
        self._on_data = self._on_lost = _ignore  # their owner refers to us: only the garbage collector would free the two
        self._on_full = self._on_drained = _ignore
        self._on_end = ends_too


def ends_too() -> bool:
    """Have a connection end when the other side closes its half."""
    return False


def _ignore(*_: object) -> None:
    """Do nothing: the callback of a closed channel."""

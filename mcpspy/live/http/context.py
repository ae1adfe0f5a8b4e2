"""The part of an HTTP tap that its connections use, so that no connection imports the tap."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Protocol

from ...records import Record, RelayEvent, Sink
from ...wire.http_head import RequestHead, ResponseHead
from .dial import Dial
from .reactor import Reactor
from .recorder import Numbers
from .rewriting import Rewriting
from .transaction import RequestPlan, ResponsePlan
from .usual import KnownHeads


class Abortable(Protocol):
    """A connection that the tap closes at its end."""

    def abort(self) -> None:
        """Close it, and record that mcpspy did."""


class TapContext(Protocol):
    """A tap: its clock, its event loop, its sink, and what it knows about heads and the upstream."""

    begin_ns: int
    """Begin of its clock, on the monotonic one."""
    numbers: Numbers
    reactor: Reactor
    sink: Sink
    event: Callable[[int, int, bytes], None]
    """Record one whole event that came as one HTTP chunk and does not name an `endpoint`: its stream, when it came, its bytes."""
    pass_event: Callable[[RelayEvent, int, int, int, int], tuple[bytes, bool] | None] | None
    """Read, record and send on such an event, if the sink can: see `steady`."""
    events: Callable[[Sequence[Record], int, int, list[bytes]], None]
    """Record these records, and after them events that came in one HTTP chunk each."""
    own_posts: set[Abortable]
    """The requests of mcpspy's own that are under way."""
    known_heads: KnownHeads
    """The heads whose messages have a short way."""

    def now_ns(self) -> int:
        """Return the nanoseconds since the tap's clock began."""

    def request_plan(self, head: RequestHead) -> RequestPlan:
        """Decide what to do with a request."""

    def response_plan(self, head: ResponseHead, rewriting: Rewriting) -> ResponsePlan:
        """Decide what to do with a response for a client that uses this rewriting."""

    def forget_heads(self) -> None:
        """Decide anew on all heads."""

    def dial(self, *, on_connected: Callable[[socket.socket], None], on_failed: Callable[[int, str], None]) -> Dial:
        """Begin to connect to the upstream."""

    def note_tls(self, tls: ssl.SSLSocket) -> None:
        """Note once which TLS the upstream speaks."""

    def fault(self, error: Exception, connection: int = 0) -> None:
        """Report a fault of our own."""

    def forget(self, connection: int) -> None:
        """Forget a connection whose client has gone."""

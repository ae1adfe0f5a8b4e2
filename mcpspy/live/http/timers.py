"""Timers of an HTTP connection: one ends requests that do not go on, one records what waits.

`StallTimer` records the two facts that a stdio pump records, after the same times: a write that blocks because nobody reads, and a
frame whose end does not come. Each class has at most one timer. It is not moved when what it watches changes: it looks when it wakes.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, monotonic_ns

from ...records import Record, Stall
from ..stdio.pump import PARTIAL_NS, STALL_NS
from .channel import Channel
from .context import TapContext
from .reactor import Reactor, Timer
from .recorder import StreamRecorder

REQUEST_S = 30.0
"""Time that a request may take from one read to the next, and its head in all: a client that dribbles one holds a connection."""

LINGER_S = 2.0
"""Time for which we drop what a client still sends after an injected response: closing at once could reset and lose the response."""


class RequestTimer:
    """The time of one connection's requests. `on_expired` is called when one took too long; no timer runs between requests."""

    __slots__ = ("_due_s", "_is_heads", "_on_expired", "_reactor", "_timer")

    def __init__(self, reactor: Reactor, on_expired: Callable[[], None]) -> None:
        self._reactor = reactor
        self._on_expired = on_expired
        self._timer: Timer | None = None
        self._is_heads = False
        self._due_s = 0.0  # 0: nothing is watched

    def watch(self, *, is_head: bool, is_body: bool) -> None:
        """Note that something of a request came. More is to come of its head, of its body, or of neither."""
        if not is_head and not is_body:
            self._due_s = 0.0
        elif not (is_head and self._is_heads and self._due_s):  # a head has its time as a whole
            self._is_heads = is_head
            self._due_s = monotonic() + REQUEST_S
            if self._timer is None:
                self._timer = self._reactor.later(REQUEST_S, self._look)

    def linger(self, leave: Callable[[], None]) -> None:
        """Call `leave` after a while, unless the client leaves first."""
        self.forget()
        self._timer = self._reactor.later(LINGER_S, leave)

    def forget(self) -> None:
        """Stop: the connection is over."""
        self._due_s = 0.0
        self._on_expired = _ignore  # its owner refers to us
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        left_s = self._due_s - monotonic()
        if self._due_s and left_s > 0:
            self._timer = self._reactor.later(left_s, self._look)
        elif self._due_s:
            self._due_s = 0.0
            self._on_expired()


class _BlockedWrite:
    """A write that blocks: since when, and whether that is recorded."""

    __slots__ = ("channel", "is_recorded", "since_ns")

    def __init__(self, channel: Channel, since_ns: int) -> None:
        self.channel = channel
        self.since_ns = since_ns
        self.is_recorded = False


class StallTimer:
    """The writes and frames that wait on one connection pair. Times are on the tap's clock; records go to the tap's sink."""

    __slots__ = ("_blocks", "_held", "_tap", "_timer")

    def __init__(self, tap: TapContext) -> None:
        self._tap = tap
        self._timer: Timer | None = None
        self._blocks: dict[int, _BlockedWrite] = {}  # by the stream whose bytes wait
        self._held: dict[int, StreamRecorder] = {}

    def watch_write(self, stream: int, channel: Channel) -> None:
        """Note that bytes of this stream wait in `channel`, whose other end does not take them."""
        now_ns = self._now_ns()
        self._blocks[stream] = _BlockedWrite(channel, now_ns)
        self._wait(STALL_NS)

    def end_write(self, stream: int) -> None:
        """Note that the bytes of this stream have been taken."""
        block = self._blocks.pop(stream, None)
        if block is not None and block.is_recorded:
            now_ns = self._now_ns()
            self._tap.sink((Stall(at_ns=now_ns, stream=stream, waiting_bytes=0, lasted_ns=now_ns - block.since_ns),))

    def watch_frame(self, stream: StreamRecorder) -> None:
        """Note that a frame of this stream has begun and its end has not come."""
        self._held[stream.number] = stream
        self._wait(PARTIAL_NS)

    def forget(self) -> None:
        """Stop: the connections are gone."""
        self._blocks.clear()
        self._held.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _now_ns(self) -> int:
        return monotonic_ns() - self._tap.begin_ns

    def _wait(self, delay_ns: int) -> None:
        due_s = delay_ns / 1e9
        if self._timer is None or self._timer.due_s > monotonic_ns() / 1e9 + due_s:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._tap.reactor.later(due_s, self._look)

    def _look(self) -> None:
        """Record what has waited long enough, and come back for the rest."""
        self._timer = None
        now_ns = self._now_ns()
        records: list[Record] = []
        due_ns = []
        for stream, block in self._blocks.items():
            if not block.is_recorded and now_ns >= block.since_ns + STALL_NS:
                block.is_recorded = True
                records.append(Stall(at_ns=now_ns, stream=stream, waiting_bytes=block.channel.pending_bytes))
            elif not block.is_recorded:
                due_ns.append(block.since_ns + STALL_NS)
        for number, held in list(self._held.items()):
            since_ns = held.waits_since_ns
            if since_ns is None:
                del self._held[number]
            elif now_ns >= since_ns + PARTIAL_NS:
                del self._held[number]
                records.append(held.partial(now_ns))
            else:
                due_ns.append(since_ns + PARTIAL_NS)
        if records:
            self._tap.sink(records)
        if due_ns:
            self._wait(max(min(due_ns) - now_ns, 1))


def _ignore() -> None:
    """Do nothing: the callback of a timer that is stopped."""

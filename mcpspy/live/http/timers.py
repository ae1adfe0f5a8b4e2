"""Timers of an HTTP connection: how long a client may take, and what is told of waiting.

`Patience` ends requests that do not go on. `Slowness` records what a stdio pump records too, after the same times: writes that block
because nobody reads, and frames whose end does not come. Each has one timer at most, which looks when it wakes and is not moved.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING

from ...records import Stall
from ..stdio.pump import PARTIAL_NS, STALL_NS

if TYPE_CHECKING:
    from ...records import Record
    from .channel import Channel
    from .reactor import Reactor, Timer
    from .recorder import Recorded
    from .tap import HttpTap

REQUEST_S = 30.0
"""So long a request may take from one read to the next, and its head in all: who dribbles one holds a connection."""

LINGER_S = 2.0
"""So long what a client still sends is thrown away behind an injected answer: closed at once, the answer could be lost by a reset."""


class Patience:
    """The timer of one connection; `expired` is called when a request took too long.

    What is watched changes with every read, so the timer is left to run, and looks when it wakes how long there still is.
    """

    __slots__ = ("_due_s", "_expired", "_is_heads", "_reactor", "_timer")

    def __init__(self, reactor: Reactor, expired: Callable[[], None]) -> None:
        self._reactor = reactor
        self._expired = expired
        self._timer: Timer | None = None
        self._is_heads = False
        self._due_s = 0.0  # 0: nothing is watched

    def watch(self, *, is_head: bool, is_body: bool) -> None:
        """Something came of a request, and more is to come: of its head or of its body, or of neither."""
        if not is_head and not is_body:
            self._due_s = 0.0
        elif not (is_head and self._is_heads and self._due_s):  # a head has its time as a whole
            self._is_heads = is_head
            self._due_s = monotonic() + REQUEST_S
            if self._timer is None:
                self._timer = self._reactor.later(REQUEST_S, self._look)

    def linger(self, leave: Callable[[], None]) -> None:
        """Call `leave` unless the client leaves by itself."""
        self.forget()
        self._timer = self._reactor.later(LINGER_S, leave)

    def forget(self) -> None:
        """The connection is over: no request of it is waited for any more."""
        self._due_s = 0.0
        self._expired = _nothing  # whose it is refers to us
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
            self._expired()


class _Block:
    """A write that blocks, since when, and whether that was told."""

    __slots__ = ("channel", "is_told", "since_ns")

    def __init__(self, channel: Channel, since_ns: int) -> None:
        self.channel = channel
        self.since_ns = since_ns
        self.is_told = False


class Slowness:
    """Of one link. Times are those of the tap's clock; records go to the tap's sink."""

    __slots__ = ("_blocks", "_held", "_tap", "_timer")

    def __init__(self, tap: HttpTap) -> None:
        self._tap = tap
        self._timer: Timer | None = None
        self._blocks: dict[int, _Block] = {}  # by the stream whose bytes wait
        self._held: dict[int, Recorded] = {}

    def blocked(self, stream: int, channel: Channel) -> None:
        """Bytes of this stream wait in `channel`, whose other end does not take them."""
        now_ns = self._now_ns()
        self._blocks[stream] = _Block(channel, now_ns)
        self._wait(STALL_NS)

    def drained(self, stream: int) -> None:
        """They have been taken."""
        block = self._blocks.pop(stream, None)
        if block is not None and block.is_told:
            now_ns = self._now_ns()
            self._tap.sink((Stall(at_ns=now_ns, stream=stream, waiting_bytes=0, lasted_ns=now_ns - block.since_ns),))

    def holds(self, stream: Recorded) -> None:
        """A frame of this stream has begun, and its end has not come."""
        self._held[stream.number] = stream
        self._wait(PARTIAL_NS)

    def forget(self) -> None:
        """The connection is gone."""
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
        """Tell what has waited long enough, and come back for what has not."""
        self._timer = None
        now_ns = self._now_ns()
        records: list[Record] = []
        due_ns = []
        for stream, block in self._blocks.items():
            if not block.is_told and now_ns >= block.since_ns + STALL_NS:
                block.is_told = True
                records.append(Stall(at_ns=now_ns, stream=stream, waiting_bytes=block.channel.pending_bytes))
            elif not block.is_told:
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


def _nothing() -> None:
    """What expires when nothing does."""

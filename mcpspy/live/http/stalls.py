"""What an HTTP connection has to tell of waiting: writes that block because nobody reads, frames whose end does not come.

The same two facts that a stdio pump tells, after the same times. One timer at most, which is set when something begins to wait
and not moved when that goes on: it looks when it wakes. Refuses to do anything about it.
"""

from __future__ import annotations

from time import monotonic_ns
from typing import TYPE_CHECKING

from ...records import Stall
from ..stdio.pump import PARTIAL_NS, STALL_NS

if TYPE_CHECKING:
    from ...records import Record
    from .channel import Channel
    from .reactor import Timer
    from .recorder import Recorded
    from .tap import HttpTap


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

"""One direction of a TCP connection put together: segments in, bytes in order out, and holes where the capture has none.

Segments come out of order, twice, and overlapping. Bytes that came first count, as most systems take them. A hole is declared when
the other side acknowledged what comes after it and went on, when too much waits behind it, or at the end: then the file lost it.

    next = 100:  [100..110] → out; [130..140] waits; [105..130] → out 110..130, then 130..140
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

import msgspec

MAX_WAITING_BYTES: Final = 1 << 22
MAX_WAITING: Final = 4096
"""So much waits for a segment that is missing; then it is lost."""

REORDERED_NS: Final = 100_000_000
"""A file may have a segment so much later than its acknowledgement: packets of several queues and processors are not in order."""

_WRAP: Final = 1 << 32


class Stretch(msgspec.Struct, frozen=True, gc=False):
    """Bytes in order, with the time and the frame that completed them; or `lost` bytes that the capture does not have."""

    at_ns: int
    frame: int
    data: bytes
    lost: int = 0


class TcpDirection:
    """The bytes of one side, in order. Positions count from its first byte, without the wrap of TCP's numbers."""

    __slots__ = ("_acknowledged_ns", "_begins", "_next", "_waiting_bytes", "last_ns", "waiting")

    def __init__(self) -> None:
        self._next: int | None = None
        self._acknowledged_ns: int | None = None
        """The time at which something was acknowledged that has not come yet."""
        self.waiting: dict[int, tuple[int, int, bytes, int]] = {}
        """Segments that wait for one before them, by the position of their first byte."""
        self._begins: list[int] = []  # a heap of the positions of those that wait
        self._waiting_bytes = 0
        self.last_ns = 0

    @property
    def is_begun(self) -> bool:
        """True if the number of the next byte is known."""
        return self._next is not None

    def begin(self, sequence: int) -> None:
        """Take note of the number of the first byte."""
        self._next = sequence + _WRAP

    def feed(self, at_ns: int, frame: int, sequence: int, data: bytes, missing: int = 0) -> list[Stretch]:
        """Take a segment with payload; `missing` bytes at its end are not in the file."""
        if self._next is None:
            self.begin(sequence)
        assert self._next is not None
        begin = self._position(sequence)
        if begin > self._next:
            self._wait(begin, at_ns, frame, data, missing)
            if self._waiting_bytes > MAX_WAITING_BYTES or len(self.waiting) > MAX_WAITING:
                return self._skip(at_ns)
            return []
        stretches = self._take(begin, at_ns, frame, data, missing)
        return [*stretches, *self._release(at_ns)] if self.waiting else stretches

    def is_acknowledged(self, acknowledged: int) -> bool:
        """Return whether the other side has received everything, by the number that it acknowledges."""
        return self._next is not None and self._position(acknowledged) >= self._next

    def acknowledge(self, at_ns: int, acknowledged: int, *, goes_on: bool = True) -> list[Stretch]:
        """Take note of what the other side has received: what is missing before that is not in the capture."""
        stretches: list[Stretch] = []
        while self.waiting and self._next is not None and self._next < self._position(acknowledged) > self._begins[0]:
            self._acknowledged_ns = at_ns if self._acknowledged_ns is None else self._acknowledged_ns
            if not goes_on and at_ns - self._acknowledged_ns < REORDERED_NS:
                break
            stretches += self._skip(self._acknowledged_ns)
        return stretches

    def close(self) -> list[Stretch]:
        """Return all that waits, with the holes before it."""
        stretches: list[Stretch] = []
        while self.waiting:
            stretches += self._skip(self.last_ns)
        return stretches

    def _position(self, sequence: int) -> int:
        """Return the position of a number of TCP's: the one that is nearest to the next byte."""
        assert self._next is not None
        distance = (sequence - self._next) % _WRAP
        return self._next + (distance if distance < _WRAP // 2 else distance - _WRAP)

    def _take(self, begin: int, at_ns: int, frame: int, data: bytes, missing: int) -> list[Stretch]:
        assert self._next is not None
        known = self._next - begin
        stretches: list[Stretch] = []
        self.last_ns = max(self.last_ns, at_ns)
        if known < len(data):
            stretches.append(Stretch(at_ns, frame, data[known:] if known else data))
            self._next = begin + len(data)
        if missing and begin + len(data) + missing > self._next:
            lost = begin + len(data) + missing - self._next
            stretches.append(Stretch(at_ns, frame, b"", lost))
            self._next += lost
        return stretches

    def _wait(self, begin: int, at_ns: int, frame: int, data: bytes, missing: int) -> None:
        known = self.waiting.get(begin)
        if known is None or len(known[2]) < len(data):
            if known is None:
                heappush(self._begins, begin)
            self._waiting_bytes += len(data) - (len(known[2]) if known else 0)
            self.waiting[begin] = (at_ns, frame, data, missing)
        self.last_ns = max(self.last_ns, at_ns)

    def _release(self, at_ns: int) -> list[Stretch]:
        """Return what no longer waits for anything."""
        assert self._next is not None
        stretches: list[Stretch] = []
        while self._begins and self._begins[0] <= self._next:
            begin = heappop(self._begins)
            came_ns, frame, data, missing = self.waiting.pop(begin)
            self._waiting_bytes -= len(data)
            stretches += self._take(begin, max(came_ns, at_ns), frame, data, missing)
        self._acknowledged_ns = self._acknowledged_ns if self.waiting else None
        return stretches

    def _skip(self, at_ns: int) -> list[Stretch]:
        """Give up the bytes that are missing before the first segment that waits."""
        assert self._next is not None
        first = self._begins[0]
        lost, self._next = first - self._next, first
        return [Stretch(at_ns, 0, b"", lost), *self._release(at_ns)]

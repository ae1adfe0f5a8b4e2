"""The event loop of an HTTP tap: sockets and their callbacks, timers, calls for the next round, and a way to wake it.

asyncio's costs 15 µs for each request that passes, a third of what the whole relay takes (CPython 3.11). Refuses threads but at one
door: `wake` may be called from anywhere, and from a signal.
"""

from __future__ import annotations

import os
from collections import deque
from heapq import heapify, heappop, heappush
from itertools import count
from select import EPOLLIN, epoll
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_WAKE_BYTES = 1 << 12

_FEW_TIMERS = 1 << 10
"""So many may wait before those that were cancelled are sorted out."""

MAX_EVENTS = 40
"""So many are asked for at once: room for them is taken anew each time, and for more it would come from a slower place."""


class Timer:
    """A call that is due at `due_s` of the monotonic clock, unless it is cancelled before."""

    __slots__ = ("call", "due_s")

    def __init__(self, due_s: float, call: Callable[[], None]) -> None:
        self.due_s = due_s
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Reactor:
    """Makes all calls in the thread that is in `run`. `wake_fd` is where a byte wakes it, as `signal.set_wakeup_fd` wants it.

    A call that raises ends nothing but itself: `fault` is told the error.
    """

    __slots__ = (
        "_callbacks",
        "_crowded",
        "_heard",
        "_is_stopped",
        "_order",
        "_poll",
        "_soon",
        "_timers",
        "_wake_read_fd",
        "fault",
        "wake_fd",
    )

    def __init__(self, fault: Callable[[Exception], None]) -> None:
        self.fault = fault
        self._poll = epoll()
        self._callbacks: dict[int, Callable[[int], None]] = {}
        self._soon: deque[Callable[[], None]] = deque()
        self._heard: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = count()
        self._crowded = _FEW_TIMERS
        self._is_stopped = False
        self._wake_read_fd, self.wake_fd = os.pipe()
        for fd in (self._wake_read_fd, self.wake_fd):
            os.set_blocking(fd, False)
        self.watch(self._wake_read_fd, EPOLLIN, self._was_woken)

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Call `callback` with epoll's events when one of `events` is there, or an error or a hang-up. `fd` is not watched yet."""
        self._poll.register(fd, events)
        self._callbacks[fd] = callback

    def change(self, fd: int, events: int) -> None:
        """Wait for other events of one that is watched."""
        self._poll.modify(fd, events)

    def watches(self, fd: int) -> bool:
        return fd in self._callbacks

    def forget(self, fd: int) -> None:
        """Watch `fd` no longer; before it is closed."""
        del self._callbacks[fd]
        self._poll.unregister(fd)

    def soon(self, call: Callable[[], None]) -> None:
        """Make this call once the callbacks of this round have returned."""
        self._soon.append(call)

    def later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Make this call in a while."""
        timer = Timer(monotonic() + delay_s, call)
        if len(self._timers) >= self._crowded:  # most have been cancelled: a connection needs its timers for a moment only
            self._timers = [entry for entry in self._timers if entry[2].call is not None]
            heapify(self._timers)
            self._crowded = max(_FEW_TIMERS, 2 * len(self._timers))
        heappush(self._timers, (timer.due_s, next(self._order), timer))
        return timer

    def wake(self, call: Callable[[], None]) -> None:
        """Make this call in the thread that is in `run`: from any thread."""
        self._heard.append(call)
        try:
            os.write(self.wake_fd, b"\0")
        except OSError:
            pass  # so many bytes wait there that it will wake; or it has been closed

    def stop(self) -> None:
        """Let `run` return after this round."""
        self._is_stopped = True

    def run(self) -> None:
        """Wait and make the calls, round after round, until stopped."""
        while not self._is_stopped:
            try:
                self._rounds()
            except Exception as error:  # noqa: BLE001  # what is left of this round is there in the next one too
                self.fault(error)

    def close(self) -> None:
        """Make the calls that are due now, and let go of all."""
        while self._soon:
            try:
                self._soon.popleft()()
            except Exception as error:  # noqa: BLE001
                self.fault(error)
        self._poll.close()
        os.close(self._wake_read_fd)
        wake_fd, self.wake_fd = self.wake_fd, -1  # a resolver that comes late must not meet another file's descriptor
        os.close(wake_fd)

    def _rounds(self) -> None:
        wait, callback_of, soon = self._poll.poll, self._callbacks.get, self._soon
        while True:
            while soon:
                soon.popleft()()
            if self._is_stopped:
                return
            for fd, events in wait(self._timeout_s() if self._timers else -1, MAX_EVENTS):
                callback = callback_of(fd)
                if callback is not None:  # an earlier call of this round may have closed it
                    callback(events)
            if self._timers:
                self._call_due()

    def _timeout_s(self) -> float:
        return max(0.0, self._timers[0][0] - monotonic())

    def _call_due(self) -> None:
        now_s = monotonic()
        while self._timers and self._timers[0][0] <= now_s:
            timer = heappop(self._timers)[2]
            if timer.call is not None:
                timer.call()

    def _was_woken(self, events: int) -> None:
        os.read(self._wake_read_fd, _WAKE_BYTES)
        while self._heard:
            self._soon.append(self._heard.popleft())

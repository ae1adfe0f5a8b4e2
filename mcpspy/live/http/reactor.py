"""The event loop of an HTTP tap: sockets and their callbacks, timers, calls for the next round, and a way to wake it.

asyncio's loop costs 15 µs for each request, a third of what the whole relay takes (CPython 3.11). All methods belong to one thread,
except `wake`, which any thread and a signal handler may call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from time import monotonic

from ...platform.sockets import IN, SocketPoll, Waker

_FEW_TIMERS = 1 << 10
"""Number of waiting timers above which cancelled ones are removed."""

MAX_EVENTS = 40
"""Most events of one poll: each poll allocates room for them, and a larger block comes from a slower allocator."""


class Timer:
    """A call that is due at `due_s` of the monotonic clock, unless it is cancelled first."""

    __slots__ = ("call", "due_s")

    def __init__(self, due_s: float, call: Callable[[], None]) -> None:
        self.due_s = due_s
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Reactor:
    """A loop that makes all calls in the thread that is in `run`.

    A byte written to `wake_fd` wakes it, as `signal.set_wakeup_fd` does. A call that raises
    does not end the loop: `fault` gets the error.
    """

    __slots__ = (
        "_callbacks",
        "_crowded",
        "_is_stopped",
        "_order",
        "_poll",
        "_soon",
        "_timers",
        "_wake_calls",
        "_waker",
        "fault",
    )

    def __init__(self, fault: Callable[[Exception], None]) -> None:
        self.fault = fault
        self._poll = SocketPoll()
        self._callbacks: dict[int, Callable[[int], None]] = {}
        self._soon: deque[Callable[[], None]] = deque()
        self._wake_calls: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = count()
        self._crowded = _FEW_TIMERS
        self._is_stopped = False
        self._waker = Waker()
        self.watch(self._waker.reading_fd, IN, self._on_wake)

    @property
    def wake_fd(self) -> int:
        """A descriptor: a byte written there wakes the loop; -1 once it is closed."""
        return self._waker.writing_fd

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Call `callback` with its events on one of `events`, an error or a hang-up. `fd` must not be watched yet."""
        self._poll.register(fd, events)
        self._callbacks[fd] = callback

    def change(self, fd: int, events: int) -> None:
        """Wait for other events of a descriptor that is watched."""
        self._poll.modify(fd, events)

    def watches(self, fd: int) -> bool:
        return fd in self._callbacks

    def forget(self, fd: int) -> None:
        """Stop watching `fd`; to be called before it is closed."""
        del self._callbacks[fd]
        self._poll.unregister(fd)

    def soon(self, call: Callable[[], None]) -> None:
        """Make a call once the callbacks of this round have returned."""
        self._soon.append(call)

    def later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Make a call after a delay."""
        timer = Timer(monotonic() + delay_s, call)
        if len(self._timers) >= self._crowded:  # most are cancelled: a connection needs its timers only for a moment
            self._timers = [entry for entry in self._timers if entry[2].call is not None]
            heapify(self._timers)
            self._crowded = max(_FEW_TIMERS, 2 * len(self._timers))
        heappush(self._timers, (timer.due_s, next(self._order), timer))
        return timer

    def wake(self, call: Callable[[], None]) -> None:
        """Make a call in the thread that is in `run`. May be called from any thread."""
        self._wake_calls.append(call)
        try:
            self._waker.wake()
        except OSError:
            pass  # the pipe is full, so it will wake; or it is closed

    def stop(self) -> None:
        """Have `run` return after this round."""
        self._is_stopped = True

    def run(self) -> None:
        """Wait and make the calls, round after round, until `stop`."""
        while not self._is_stopped:
            try:
                self._rounds()
            except Exception as error:  # noqa: BLE001  # the rest of this round comes again in the next
                self.fault(error)

    def close(self) -> None:
        """Make the calls that are due now, and close all descriptors."""
        while self._soon:
            try:
                self._soon.popleft()()
            except Exception as error:  # noqa: BLE001
                self.fault(error)
        self._poll.close()
        self._waker.close()  # a late resolver wakes nobody any more

    def _rounds(self) -> None:
        wait, callback_of, soon = self._poll.poll, self._callbacks.get, self._soon
        while True:
            while soon:
                soon.popleft()()
            if self._is_stopped:
                return
            left_s = -1.0
            if self._timers:  # some request's is nearly always there
                left_s = self._timers[0][0] - monotonic()
                if left_s <= 0:
                    self._call_due()
                    left_s = 0.0
            for fd, events in wait(left_s, MAX_EVENTS):
                callback = callback_of(fd)
                if callback is not None:  # an earlier call of this round may have closed it
                    callback(events)

    def _call_due(self) -> None:
        now_s = monotonic()
        while self._timers and self._timers[0][0] <= now_s:
            timer = heappop(self._timers)[2]
            if timer.call is not None:
                timer.call()

    def _on_wake(self, events: int) -> None:
        self._waker.empty()
        while self._wake_calls:
            self._soon.append(self._wake_calls.popleft())

"""Which descriptors to wait for, and whom to call when one is ready.

`poll` and not `epoll`, because a tap's standard streams may be regular files; and no event loop, because asyncio costs 31 ms of
start-up and 30 µs per message (CPython 3.11).
"""

from __future__ import annotations

from select import poll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Readiness:
    """Descriptors and their callbacks; a callback gets poll's event mask."""

    __slots__ = ("_callbacks", "_poll")

    def __init__(self) -> None:
        self._poll = poll()
        self._callbacks: dict[int, Callable[[int], None]] = {}

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Call `callback` when one of `events` is there, or (always) on an error or hang-up. Replaces an earlier watch."""
        self._poll.register(fd, events)
        self._callbacks[fd] = callback

    def forget(self, fd: int) -> None:
        """Watch `fd` no longer; it may be one that is not watched."""
        if self._callbacks.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def wait(self, timeout_ms: float | None) -> None:
        """Wait for events, at most so long (None: for ever), and make the calls."""
        for fd, events in self._poll.poll(timeout_ms):
            callback = self._callbacks.get(fd)
            if callback is not None:  # an earlier call of this round may have closed it
                callback(events)

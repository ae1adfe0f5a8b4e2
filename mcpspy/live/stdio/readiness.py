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
    """Descriptors and their callbacks; a callback gets poll's event mask.

    A callback that sets `interrupted` makes `turn` return after the round. There are no time-outs: who needs one has a signal sent.
    """

    __slots__ = ("_callbacks", "_poll", "interrupted")

    def __init__(self) -> None:
        self._poll = poll()
        self._callbacks: dict[int, Callable[[int], None]] = {}
        self.interrupted = False

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Call `callback` when one of `events` is there, or (always) on an error or hang-up. Replaces an earlier watch."""
        self._poll.register(fd, events)
        self._callbacks[fd] = callback

    def forget(self, fd: int) -> None:
        """Watch `fd` no longer; it may be one that is not watched."""
        if self._callbacks.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def turn(self) -> None:
        """Wait and make the calls, round after round, until interrupted."""
        wait, callback_of = self._poll.poll, self._callbacks.get
        self.interrupted = False
        while not self.interrupted:
            for fd, events in wait():
                callback = callback_of(fd)
                if callback is not None:  # an earlier call of this round may have closed it
                    callback(events)

"""Tells of frames that wait for their end, where an event loop runs: once each, after as long as a tap would.

Refuses to know streams: who reads one says when something came.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...records import Sink
    from ..http.recorder import StreamRecorder

PARTIAL_S: Final = 5.0


class Partials:
    """Of one stream, which is `recorded`."""

    __slots__ = ("_now_ns", "_recorded", "_sink", "_timer")

    def __init__(self, recorded: StreamRecorder, sink: Sink, now_ns: Callable[[], int]) -> None:
        self._recorded = recorded
        self._sink = sink
        self._now_ns = now_ns
        self._timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Something came."""
        if self._timer is None and self._recorded.waits_since_ns is not None:
            self._timer = asyncio.get_running_loop().call_later(PARTIAL_S, self._tell)

    def close(self) -> None:
        """The stream has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self) -> None:
        self._timer = None
        since_ns = self._recorded.waits_since_ns
        if since_ns is None:
            return
        now_ns = self._now_ns()
        left_s = PARTIAL_S - (now_ns - since_ns) / 1_000_000_000
        if left_s > 0:  # another one than that for which the timer was set
            self._timer = asyncio.get_running_loop().call_later(left_s, self._tell)
        else:
            self._sink((self._recorded.partial(now_ns),))

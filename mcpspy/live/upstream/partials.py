"""Records of frames that wait for their end, by asyncio's timers: once for each, after the same time as in a tap."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ...records import Sink
from ..http.recorder import StreamRecorder

PARTIAL_S: Final = 5.0


class Partials:
    """The frames of one stream, which `recorder` cuts and records."""

    __slots__ = ("_now_ns", "_recorder", "_sink", "_timer")

    def __init__(self, recorder: StreamRecorder, sink: Sink, now_ns: Callable[[], int]) -> None:
        self._recorder = recorder
        self._sink = sink
        self._now_ns = now_ns
        self._timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Look at the stream, which something came on."""
        if self._timer is None and self._recorder.waits_since_ns is not None:
            self._timer = asyncio.get_running_loop().call_later(PARTIAL_S, self._record)

    def close(self) -> None:
        """Stop: the stream has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _record(self) -> None:
        self._timer = None
        since_ns = self._recorder.waits_since_ns
        if since_ns is None:
            return
        now_ns = self._now_ns()
        left_s = PARTIAL_S - (now_ns - since_ns) / 1_000_000_000
        if left_s > 0:  # a later frame than the one that the timer was set for
            self._timer = asyncio.get_running_loop().call_later(left_s, self._record)
        else:
            self._sink((self._recorder.partial(now_ns),))

"""A driver: plays a recorded client to a live server, by the machine that knows what to say and the peer that says it.

Refuses to decide anything: what is sent, when and why not is the machine's.
"""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from typing import TYPE_CHECKING, Final

from ...records import SERVER, Frame, Note
from ...transcript.decode import message_of
from ...transcript.model import CaptureInfo
from ...wire.jsonrpc import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...records import Sink
    from ...replay.client.player import PlanPlayer, PlayedMessage
    from .protocol import Failure, UpstreamClient

POLL_S: Final = 0.02

END_S: Final = 2.0
"""From a message that a process did not take any more to calling the server lost: by then it has mostly said how it ended."""


def run_replay_client(
    driving: PlanPlayer,
    make: Callable[[ReplayClient], UpstreamClient],
    *,
    sink: Sink,
    now_ns: Callable[[], int],
    is_process: bool = False,
) -> None:
    """Drive one server to the end: `make` makes the peer, with the driver's callbacks. Blocks until then.

    `is_process` says that a message which is not taken is the end of it, as on stdio.
    Raises: UpstreamError: if the server cannot be started or reached;
        KeyboardInterrupt: for SIGINT, SIGTERM and SIGHUP, once the server was left.
    """

    async def driven() -> None:
        driver = ReplayClient(driving, sink=sink, now_ns=now_ns, is_process=is_process)
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGHUP, signal.SIGTERM):  # as Ctrl-C does: the server is left in an orderly way
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await driver.run(make(driver))

    try:
        asyncio.run(driven())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


class ReplayClient:
    """Drives one server. Its methods `heard`, `lost` and `failed` are the callbacks of the peer that `run` is then given."""

    __slots__ = ("_driving", "_is_done", "_is_process", "_now_ns", "_refused", "_out", "_sink", "_source", "_told", "_wake")

    def __init__(self, driving: PlanPlayer, *, sink: Sink, now_ns: Callable[[], int], is_process: bool = False) -> None:
        self._driving = driving
        self._sink = sink
        self._now_ns = now_ns
        self._out: deque[PlayedMessage] = deque()
        self._wake = asyncio.Event()
        self._source = CaptureInfo(0)
        self._told = 0
        self._is_done = False
        self._is_process = is_process
        self._refused = ""
        """Why a process takes nothing more."""

    async def run(self, peer: UpstreamClient) -> None:
        """Start the server, play to it all there is, and leave it. Raises: UpstreamError: if it cannot be started or reached."""
        await peer.start()
        try:
            self._push(self._driving.due(self._now_ns()))
            while self._out or not self._driving.is_over:
                await self._say(peer)
                if self._refused:
                    await self._end()
                elif not self._driving.is_over:
                    await self._wait()
                    self._push(self._driving.due(self._now_ns()))
        finally:
            self._is_done = True
            await peer.close()

    # What the peer tells

    def heard(self, payload: bytes, _id: str | None = None) -> None:
        """The server said this."""
        if self._is_done:
            return
        now_ns = self._now_ns()
        frame = Frame(0, now_ns, now_ns, payload)
        for piece in cut(payload):
            self._push(self._driving.feed(message_of(self._source, SERVER, frame, piece), now_ns))
        misses = self._driving.report.misses
        for miss in misses[self._told :]:
            self._sink((Note(at_ns=now_ns, topic="miss", text=miss.sentence),))
        self._told = len(misses)

    def failed(self, failure: Failure) -> None:
        """A message will get no answer."""
        if self._is_process:
            self._refused = failure.why
            if failure.id is not None:
                self._driving.take_back(failure.id, failure.why)
            return
        if failure.id is not None and not self._is_done:
            self._push(self._driving.end(failure.id, failure.why, self._now_ns()))

    def lost(self, why: str) -> None:
        """The server is gone."""
        if not self._is_done:
            self._driving.lose(why)
            self._out.clear()
            self._wake.set()

    # What follows

    def _push(self, sent: Iterable[PlayedMessage]) -> None:
        self._out.extend(sent)
        self._wake.set()

    async def _say(self, peer: UpstreamClient) -> None:
        """Send what is to be sent, one after the other."""
        while self._out and not self._refused:
            sent = self._out.popleft()
            if sent.data:
                await peer.send(sent.data)
            else:
                await peer.cancel(sent.abandons)

    async def _end(self) -> None:
        """The process takes nothing more: let it say how it ended, if it does so soon."""
        for _ in range(int(END_S / POLL_S)):
            if self._driving.report.lost:
                return
            await asyncio.sleep(POLL_S)
        self.lost(self._refused)

    async def _wait(self) -> None:
        """Until the server says something, or it is time to do something."""
        next_ns = self._driving.next_ns
        self._wake.clear()
        if self._out or self._driving.is_over:
            return
        patience_s = None if next_ns is None else max(0, next_ns - self._now_ns()) / 1_000_000_000
        try:
            await asyncio.wait_for(self._wake.wait(), patience_s)
        except TimeoutError:
            pass

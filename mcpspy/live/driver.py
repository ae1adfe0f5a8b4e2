"""A driver: plays a recorded client to a live server, by the machine that knows what to say and the peer that says it.

Refuses to decide anything: what is sent, when and why not is the machine's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from ..records import SERVER, Frame, Note
from ..transcript.decode import message_of
from ..transcript.model import Source
from ..wire.jsonrpc import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..records import Sink
    from ..replay.driving import Driving, Sent
    from .peer import Failure, Peer


def drive(driving: Driving, make: Callable[[Driver], Peer], *, sink: Sink, now_ns: Callable[[], int]) -> None:
    """Drive one server to the end: `make` makes the peer, with the driver's callbacks. Blocks until then.

    Raises: PeerError: if the server cannot be started or reached.
    """

    async def driven() -> None:
        driver = Driver(driving, sink=sink, now_ns=now_ns)
        await driver.drive(make(driver))

    asyncio.run(driven())


class Driver:
    """Drives one server. Its methods `heard`, `lost` and `failed` are the callbacks of the peer that `drive` is then given."""

    __slots__ = ("_driving", "_is_done", "_now_ns", "_out", "_sink", "_source", "_told", "_wake")

    def __init__(self, driving: Driving, *, sink: Sink, now_ns: Callable[[], int]) -> None:
        self._driving = driving
        self._sink = sink
        self._now_ns = now_ns
        self._out: deque[Sent] = deque()
        self._wake = asyncio.Event()
        self._source = Source(0)
        self._told = 0
        self._is_done = False

    async def drive(self, peer: Peer) -> None:
        """Start the server, play to it all there is, and leave it. Raises: PeerError: if it cannot be started or reached."""
        await peer.start()
        try:
            self._push(self._driving.due(self._now_ns()))
            while self._out or not self._driving.is_over:
                await self._say(peer)
                if not self._driving.is_over:
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
        if failure.id is not None and not self._is_done:
            self._push(self._driving.end(failure.id, failure.why, self._now_ns()))

    def lost(self, why: str) -> None:
        """The server is gone."""
        if not self._is_done:
            self._driving.lose(why)
            self._out.clear()
            self._wake.set()

    # What follows

    def _push(self, sent: Iterable[Sent]) -> None:
        self._out.extend(sent)
        self._wake.set()

    async def _say(self, peer: Peer) -> None:
        """Send what is to be sent, one after the other."""
        while self._out:
            sent = self._out.popleft()
            if sent.data:
                await peer.send(sent.data)
            else:
                await peer.cancel(sent.leaves)

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

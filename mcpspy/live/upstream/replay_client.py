"""The replay client: it plays a recorded client to a live server.

`PlanPlayer` decides what to send and when; an upstream client sends it. This module only waits and hands messages over.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from ...platform.loops import Interrupts, cancel_at_end
from ...records import SERVER, Frame, Note, Sink
from ...replay.client.player import PlanPlayer, PlayedMessage
from ...transcript.envelope import message_of
from ...transcript.model import CaptureInfo
from ...wire.jsonrpc import cut
from .protocol import Failure, ServerListener, UpstreamClient

POLL_S: Final = 0.02

END_S: Final = 2.0
"""From a message that a process did not take to reporting the server as lost: most have said by then how they ended."""


def run_replay_client(
    player: PlanPlayer,
    make: Callable[[ServerListener], UpstreamClient],
    *,
    sink: Sink,
    now_ns: Callable[[], int],
    is_process: bool = False,
    cancels: bool = False,
    interrupts: Interrupts | None = None,
) -> None:
    """Play to one server until the end, and block until then. `make` makes the upstream client, to which the replay client listens.

    `is_process` means that the server has ended once it does not take a message, as on stdio. `cancels`: requests that wait for their
    answers at the end are cancelled. `interrupts` takes Ctrl-C where several replays follow each other.
    Raises: UpstreamError: if the server cannot be started or reached;
        KeyboardInterrupt: for SIGINT, SIGTERM and SIGHUP, once the server was left.
    """

    async def play() -> None:
        replay_client = ReplayClient(player, sink=sink, now_ns=now_ns, is_process=is_process, cancels=cancels)
        task = asyncio.current_task()
        assert task is not None
        if interrupts is not None:
            interrupts.cancel(task)
        cancel_at_end(task)  # as for Ctrl-C: the server is left in good order
        await replay_client.run(make(replay_client))

    try:
        asyncio.run(play())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


class ReplayClient:
    """A client that plays to one server, and listens to the upstream client that `run` gets."""

    __slots__ = (
        "_cancels", "_capture", "_is_done", "_is_process", "_noted", "_now_ns", "_out", "_player", "_refused", "_sink", "_wake",
    )  # fmt: skip

    def __init__(
        self, player: PlanPlayer, *, sink: Sink, now_ns: Callable[[], int], is_process: bool = False, cancels: bool = False
    ) -> None:
        self._player = player
        self._cancels = cancels
        self._sink = sink
        self._now_ns = now_ns
        self._out: deque[PlayedMessage] = deque()
        self._wake = asyncio.Event()
        self._capture = CaptureInfo(0)
        self._noted = 0  # misses
        self._is_done = False
        self._is_process = is_process
        self._refused = ""
        """Reason why a process takes nothing more."""

    async def run(self, client: UpstreamClient) -> None:
        """Start the server, play everything to it, and leave it. Raises: UpstreamError: if it cannot be started or reached."""
        await client.start()
        try:
            self._push(self._player.due(self._now_ns()))
            while self._out or not self._player.is_over:
                await self._send_due(client)
                if self._refused:
                    await self._end()
                elif not self._player.is_over:
                    await self._wait()
                    self._push(self._player.due(self._now_ns()))
        finally:
            self._is_done = True
            try:
                await self._cancel_waiting(client)
            finally:
                await client.close()

    async def _cancel_waiting(self, client: UpstreamClient) -> None:
        """Cancel what waits for its answer, as far as the server takes that in a while."""
        for id in self._player.waiting if self._cancels and not self._refused else ():
            with suppress(TimeoutError):
                await asyncio.wait_for(client.cancel(id), END_S)

    # Called by the upstream client

    def on_message(self, data: bytes, about: str | None = None) -> None:
        """Take a message of the server."""
        if self._is_done:
            return
        now_ns = self._now_ns()
        frame = Frame(0, now_ns, now_ns, data)
        for piece in cut(data):
            self._push(self._player.feed(message_of(self._capture, SERVER, frame, piece), now_ns))
        misses = self._player.report.misses
        for miss in misses[self._noted :]:
            self._sink((Note(at_ns=now_ns, topic="miss", text=miss.sentence),))
        self._noted = len(misses)

    def on_failed(self, failure: Failure) -> None:
        """Take note that a message will get no answer."""
        if self._is_process:
            self._refused = failure.why
            if failure.id is not None:
                self._player.take_back(failure.id, failure.why)
            return
        if failure.id is not None and not self._is_done:
            self._push(self._player.end(failure.id, failure.why, self._now_ns()))

    def on_lost(self, why: str) -> None:
        """Stop sending: the server is gone."""
        if not self._is_done:
            self._player.lose(why)
            self._out.clear()
            self._wake.set()

    def on_stderr(self, data: bytes) -> None:
        """Do nothing: it is in the capture."""

    # Sending and waiting

    def _push(self, sent: Iterable[PlayedMessage]) -> None:
        self._out.extend(sent)
        self._wake.set()

    async def _send_due(self, client: UpstreamClient) -> None:
        """Send what is due, one message after the other."""
        while self._out and not self._refused:
            sent = self._out.popleft()
            if sent.data:
                await client.send(sent.data)
            else:
                await client.cancel(sent.abandons)

    async def _end(self) -> None:
        """Give a process that takes nothing more some time to report how it ended."""
        for _ in range(int(END_S / POLL_S)):
            if self._player.report.lost:
                return
            await asyncio.sleep(POLL_S)
        self.on_lost(self._refused)

    async def _wait(self) -> None:
        """Wait for a message of the server, or until the next one of ours is due."""
        next_ns = self._player.next_ns
        self._wake.clear()
        if self._out or self._player.is_over:
            return
        patience_s = None if next_ns is None else max(0, next_ns - self._now_ns()) / 1_000_000_000
        try:
            await asyncio.wait_for(self._wake.wait(), patience_s)
        except TimeoutError:
            pass

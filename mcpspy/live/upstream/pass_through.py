"""The live server of a mock: an upstream client that is started once it is needed, and is sent one message after the other.

    mock ── put ──► Courier ──► UpstreamClient ──► live server
    mock ◄── news ◄── Courier ◄── reports ◄── UpstreamClient

News is a call of a method of `NewsListener`, made later: the mock makes it in its own thread. Nothing is sent twice.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from ...errors import UpstreamError
from ...platform.descriptors import read, wake_pipe
from ...replay.mock.pass_through import CancelRequest
from .protocol import ServerListener

if TYPE_CHECKING:
    import asyncio
    from threading import Thread

    from ...replay.mock.pass_through import ToServer
    from .protocol import Failure, UpstreamClient

PATIENCE_S: Final = 0.5
"""Time that a server has after the end of its input, and after SIGTERM: a client that ends a mock waits 2 s."""

HANDSHAKE_S: Final = 60.0
"""Time that a server has for `initialize`: it may have to be downloaded first. Clients on the TypeScript SDK wait this long."""

JOIN_S: Final = 1.8

MAX_NEWS: Final = 1_000
"""Messages that may wait for the mock before no more is read from the server."""

MakeClient: TypeAlias = "Callable[[ServerListener], UpstreamClient]"


class NewsListener(ServerListener, Protocol):
    """A receiver of the news of a live server: also how it began and ended."""

    def on_reached(self) -> None:
        """Note that the server was started, or can be reached."""

    def on_late(self, patience_s: float) -> None:
        """Take a handshake for failed that is not over so long after the server was reached."""

    def on_left(self, status: int | None) -> None:
        """Note that the server was left. `status` is the exit status of a process, and 4 if it could not be started."""


News: TypeAlias = Callable[[NewsListener], None]


class Courier:
    """A runner of one upstream client in an event loop; it listens to that client. `report` takes the news.

    `handshake_s` after the server was reached comes `on_late`.
    """

    def __init__(self, make: MakeClient, report: Callable[[News], None], *, handshake_s: float = HANDSHAKE_S) -> None:
        import asyncio  # 30 ms, and a mock may never have a miss

        self._make = make
        self._report = report
        self._handshake_s = handshake_s
        self._out: asyncio.Queue[ToServer | None] = asyncio.Queue()
        self._client: UpstreamClient | None = None

    def put(self, out: ToServer | None) -> None:
        """Have this sent to the server; None is the end. To be called in the loop's thread."""
        self._out.put_nowait(out)

    def hold(self, *, holds: bool) -> None:
        """Stop reading from the server, or go on. To be called in the loop's thread."""
        if self._client is not None:
            self._client.hold(holds=holds)

    async def run(self) -> None:
        """Start the server, send what is put, and leave it."""
        import asyncio

        client = self._client = self._make(self)
        try:
            await client.start()
        except UpstreamError as error:
            why, status = str(error), error.exit_status
            self._report(lambda listener: listener.on_lost(why))
            self._report(lambda listener: listener.on_left(status))
            return
        self._report(lambda listener: listener.on_reached())
        patience_s = self._handshake_s
        loop = asyncio.get_running_loop()
        timer = loop.call_later(patience_s, self._report, lambda listener: listener.on_late(patience_s))
        try:
            while (out := await self._out.get()) is not None:
                if isinstance(out, CancelRequest):
                    await client.cancel(out.id)
                else:
                    await client.send(out)
        finally:
            timer.cancel()
            await client.close()
        status_of_process = getattr(client, "status", None)
        self._report(lambda listener: listener.on_left(status_of_process))

    def on_message(self, data: bytes, about: str | None) -> None:
        self._report(lambda listener: listener.on_message(data, about))

    def on_failed(self, failure: Failure) -> None:
        self._report(lambda listener: listener.on_failed(failure))

    def on_lost(self, why: str) -> None:
        self._report(lambda listener: listener.on_lost(why))

    def on_stderr(self, data: bytes) -> None:
        self._report(lambda listener: listener.on_stderr(data))


class PassThroughThread:
    """A courier in a thread of its own, for a mock that has no event loop. `fd` is readable when there is news to `take`.

    Before `start`, nothing runs and asyncio is not imported.
    """

    def __init__(self, make: MakeClient) -> None:
        self._make = make
        self._news: deque[News] = deque()
        self.fd, self._wake_fd = wake_pipe()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._courier: Courier | None = None
        self._thread: Thread | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_full = False
        self._is_held = False

    @property
    def is_started(self) -> bool:
        return self._thread is not None

    def start(self) -> None:
        """Start the server."""
        import asyncio
        from threading import Thread

        self._loop = asyncio.new_event_loop()
        self._courier = Courier(self._make, self._report)
        self._thread = Thread(target=self._run, args=(self._loop, self._courier), daemon=True)
        self._thread.start()

    def put(self, out: ToServer | None) -> None:
        """Have this sent to the server; None is the end."""
        if self._courier is not None:
            self._call(self._courier.put, out)

    def take(self) -> list[News]:
        """Return the news since the last call."""
        try:
            read(self.fd, 1 << 16)
        except BlockingIOError:
            pass
        news: list[News] = []
        while self._news:
            news.append(self._news.popleft())
        self._review()
        return news

    def fill(self, *, is_full: bool) -> None:
        """Read nothing more from the server as long as its client `is_full`: too far behind with reading."""
        if is_full is not self._is_full:
            self._is_full = is_full
            self._review()

    def _review(self) -> None:
        """Hold the server or let it go on, in the mock's thread."""
        if self._is_held is not self._is_full and self._loop is not None:
            self._call(self._hold, self._is_full)

    def _hold(self, holds: bool) -> None:  # noqa: FBT001 - called by the loop
        self._is_held = holds
        if self._courier is not None:
            self._courier.hold(holds=holds)

    def stop(self) -> None:
        """End the server now, and wait for its end, no longer than a client waits for ours."""
        if self._thread is None:
            return
        self._call(self._cancel)
        self._thread.join(JOIN_S)

    def _call(self, call: Callable[..., None], *args: object) -> None:
        """Call this in the loop's thread."""
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(call, *args)
            except RuntimeError:
                pass  # the loop has ended, and the server with it

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _run(self, loop: asyncio.AbstractEventLoop, courier: Courier) -> None:
        import asyncio

        asyncio.set_event_loop(loop)
        self._task = loop.create_task(courier.run())
        try:
            loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        finally:
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    def _report(self, news: News) -> None:
        self._news.append(news)
        if len(self._news) > MAX_NEWS and not self._is_held:
            self._hold(True)
        try:
            os.write(self._wake_fd, b"\0")
        except BlockingIOError:
            pass  # the pipe is full, so it is readable

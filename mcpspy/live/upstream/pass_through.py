"""The way from a mock to a live server: a peer that is started once it is wanted, and takes what is to go there, one after the other.

What it tells are calls of a `Listener`'s methods, put off: the mock makes them in its own thread. Refuses to send anything twice.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from ...errors import UpstreamError
from ...replay.mock.pass_through import CancelRequest

if TYPE_CHECKING:
    import asyncio
    from threading import Thread

    from ...replay.mock.pass_through import ToServer
    from .protocol import Failure, UpstreamClient

PATIENCE_S: Final = 0.5
"""How long a server is waited for after the end of its input, and after SIGTERM: whoever ends a mock waits 2 s itself."""

HANDSHAKE_S: Final = 60.0
"""How long a server may take for `initialize`: it may have to be fetched first, and clients on the TypeScript SDK wait no longer."""

JOIN_S: Final = 1.8

MAX_TOLD: Final = 1_000
"""When so much of what a server says waits for the mock, no more of it is read."""

MakeClient: TypeAlias = "Callable[[Courier], UpstreamClient]"


class Listener(Protocol):
    """What a live server's news are told to."""

    def reached(self) -> None:
        """It was started, or can be reached."""

    def late(self, patience_s: float) -> None:
        """It was reached so long ago: a handshake that is still not over is taken for failed."""

    def heard(self, data: bytes, about: str | None) -> None:
        """It says this, on the stream of the request `about`."""

    def failed(self, failure: Failure) -> None:
        """A message will get no answer."""

    def wrote(self, data: bytes) -> None:
        """It wrote this to its stderr."""

    def lost(self, why: str) -> None:
        """It is gone, or never was there."""

    def left(self, status: int | None) -> None:
        """It was left, in good order or not; a process has this exit status, and what could not be started 4."""


Told: TypeAlias = Callable[[Listener], None]


class Courier:
    """Runs one peer in an event loop. `tell` takes its news; it has the callbacks that a peer is made with.

    `handshake_s` after the server was reached its news is that it is late, for who still waits for its handshake.
    """

    def __init__(self, make: MakeClient, tell: Callable[[Told], None], *, handshake_s: float = HANDSHAKE_S) -> None:
        import asyncio  # 30 ms, which a mock need not wait for that may never have a miss

        self._make = make
        self._tell = tell
        self._handshake_s = handshake_s
        self._out: asyncio.Queue[ToServer | None] = asyncio.Queue()
        self._peer: UpstreamClient | None = None

    def put(self, out: ToServer | None) -> None:
        """This is to go there; None is the end. To be called in the loop's thread."""
        self._out.put_nowait(out)

    def hold(self, *, holds: bool) -> None:
        """Read nothing more of what the server says, or read on. To be called in the loop's thread."""
        if self._peer is not None:
            self._peer.hold(holds=holds)

    async def run(self) -> None:
        """Start the server, say what is to be said, and leave it."""
        import asyncio

        peer = self._peer = self._make(self)
        try:
            await peer.start()
        except UpstreamError as error:
            why, status = str(error), error.exit_status
            self._tell(lambda listener: listener.lost(why))
            self._tell(lambda listener: listener.left(status))
            return
        self._tell(lambda listener: listener.reached())
        patience_s = self._handshake_s
        loop = asyncio.get_running_loop()
        timer = loop.call_later(patience_s, self._tell, lambda listener: listener.late(patience_s))
        try:
            while (out := await self._out.get()) is not None:
                if isinstance(out, CancelRequest):
                    await peer.cancel(out.id)
                else:
                    await peer.send(out)
        finally:
            timer.cancel()
            await peer.close()
        status_of_process = getattr(peer, "status", None)
        self._tell(lambda listener: listener.left(status_of_process))

    def heard(self, data: bytes, about: str | None) -> None:
        self._tell(lambda listener: listener.heard(data, about))

    def failed(self, failure: Failure) -> None:
        self._tell(lambda listener: listener.failed(failure))

    def lost(self, why: str) -> None:
        self._tell(lambda listener: listener.lost(why))

    def wrote(self, data: bytes) -> None:
        self._tell(lambda listener: listener.wrote(data))


class PassThroughThread:
    """A courier in a thread of its own, for a mock that has no event loop: `fd` can be read when there is something to `take`.

    Nothing is started, and asyncio is not imported before `start`.
    """

    def __init__(self, make: MakeClient) -> None:
        self._make = make
        self._told: deque[Told] = deque()
        self.fd, self._wake_fd = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._wake_fd, False)
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
        """Have the server started."""
        import asyncio
        from threading import Thread

        self._loop = asyncio.new_event_loop()
        self._courier = Courier(self._make, self._tell)
        self._thread = Thread(target=self._run, args=(self._loop, self._courier), daemon=True)
        self._thread.start()

    def put(self, out: ToServer | None) -> None:
        """This is to go to the server; None is the end."""
        if self._courier is not None:
            self._call(self._courier.put, out)

    def take(self) -> list[Told]:
        """What the server has said since."""
        try:
            os.read(self.fd, 1 << 16)
        except BlockingIOError:
            pass
        found: list[Told] = []
        while self._told:
            found.append(self._told.popleft())
        self._review()
        return found

    def fill(self, *, is_full: bool) -> None:
        """Whether the client is so far behind that nothing more is to come from the server."""
        if is_full is not self._is_full:
            self._is_full = is_full
            self._review()

    def _review(self) -> None:
        """In the mock's thread: whether the server is to be read."""
        if self._is_held is not self._is_full and self._loop is not None:
            self._call(self._hold, self._is_full)

    def _hold(self, holds: bool) -> None:  # noqa: FBT001 - called by the loop
        self._is_held = holds
        if self._courier is not None:
            self._courier.hold(holds=holds)

    def stop(self) -> None:
        """End the server now, and wait for that, as long as whoever ends us waits."""
        if self._thread is None:
            return
        self._call(self._cancel)
        self._thread.join(JOIN_S)

    def _call(self, call: Callable[..., None], *args: object) -> None:
        """Have this called in the loop's thread."""
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

    def _tell(self, told: Told) -> None:
        self._told.append(told)
        if len(self._told) > MAX_TOLD and not self._is_held:
            self._hold(True)
        try:
            os.write(self._wake_fd, b"\0")
        except BlockingIOError:
            pass  # it will be read as it is

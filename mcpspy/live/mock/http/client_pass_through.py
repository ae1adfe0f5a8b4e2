"""Live servers of a mock over HTTP: each client whose request was never recorded gets a session of its own with one.

The client's script decides what goes there and when (`replay.mock.pass_through`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ....replay.mock.pass_through import PassThrough
from ....replay.mock.script import MissPolicy, Script
from ...http.recorder import note
from ...upstream.pass_through import Courier, MakeClient, News
from ...upstream.protocol import Failure
from .client import LiveClient, MockContext

END_PATIENCE_S: Final = 1.5
"""Time to wait for servers when the mock ends."""

HELD_S: Final = 0.05
"""Time between two checks that a client that was behind with reading has caught up, so that its server is read again."""


class ClientPassThroughs:
    """The pass-through of all clients to the live server `name`.

    `make_script` makes the script of one client, `make` an upstream client. `show` takes the stderr of a process, `tell` a sentence
    for the user.
    """

    def __init__(
        self,
        make_script: Callable[[Callable[[MissPolicy], Script]], PassThrough],
        make: MakeClient,
        *,
        show: Callable[[bytes], None],
        tell: Callable[[str], None],
        name: str,
    ) -> None:
        self.make_script = make_script
        self.make = make
        self.show = show
        self.tell = tell
        self.name = name
        self._open: set[ClientPassThrough] = set()

    def connect(self, client: LiveClient, script: PassThrough, mock: MockContext) -> ClientPassThrough:
        """Make the pass-through of one client; its server is not started yet."""
        pass_through = ClientPassThrough(self, client, script, mock)
        self._open.add(pass_through)
        return pass_through

    def forget(self, pass_through: ClientPassThrough) -> None:
        """Forget a pass-through that is closed."""
        self._open.discard(pass_through)

    async def close(self) -> None:
        """Leave every server."""
        tasks = [task for pass_through in list(self._open) if (task := pass_through.close()) is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=END_PATIENCE_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=END_PATIENCE_S)


class ClientPassThrough:
    """The messages between one client of the mock and its live server."""

    __slots__ = ("_client", "_courier", "_script", "_owner", "_is_held", "_is_over", "_mock", "_task")

    def __init__(self, owner: ClientPassThroughs, client: LiveClient, script: PassThrough, mock: MockContext) -> None:
        self._owner = owner
        self._client = client
        self._script = script
        self._mock = mock
        self._courier: Courier | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_over = False
        self._is_held = False

    @property
    def is_live(self) -> bool:
        """True once the live server answers instead of the capture."""
        return not self._script.is_playing

    def carry(self) -> None:
        """Send what is due to the server, and start it if it is needed now."""
        if self._is_over:
            return
        if self._script.wants_server and self._courier is None:
            self._courier = Courier(self._owner.make, self._take)
            self._task = asyncio.get_running_loop().create_task(self._courier.run())
        while self._script.out and self._courier is not None:
            self._courier.put(self._script.out.popleft())
        notes, self._script.notes = self._script.notes, []
        for text in notes:
            self._owner.tell(text)
            self._record(text)

    def close(self) -> asyncio.Task[None] | None:
        """End the session with the server: the client has left, or the mock ends."""
        if not self._is_over:
            self._is_over = True
            self._owner.forget(self)
            if self._courier is not None:
                self._courier.put(None)
        return self._task

    # News of the server

    def on_reached(self) -> None:
        self._owner.tell(f"from here on the live server answers: {self._owner.name}")
        self._record("from here on the live server answers")
        self._mock.play(self._client, self._script.reached())

    def on_late(self, patience_s: float) -> None:
        self._mock.play(self._client, self._script.late(patience_s))

    def on_message(self, data: bytes, about: str | None) -> None:
        self._mock.play(self._client, self._script.heard(data, about))

    def on_failed(self, failure: Failure) -> None:
        self._mock.play(self._client, self._script.failed(failure.id, failure.why))

    def on_lost(self, why: str) -> None:
        self._mock.play(self._client, self._script.lost(why))

    def on_stderr(self, data: bytes) -> None:
        self._owner.show(data)

    def on_left(self, status: int | None) -> None:
        """Do nothing: the mock serves other clients."""

    def _take(self, news: News) -> None:
        if not self._is_over:
            news(self)
            self.carry()
            if self._client.is_full and not self._is_held:
                self._hold()

    def _hold(self) -> None:
        """Read nothing more from the server as long as its client does not keep up."""
        self._is_held = self._client.is_full and not self._is_over
        if self._courier is not None:
            self._courier.hold(holds=self._is_held)
        if self._is_held:
            asyncio.get_running_loop().call_later(HELD_S, self._hold)

    def _record(self, text: str) -> None:
        self._mock.sink((note(self._mock.now_ns(), "pass-through", text, 0),))

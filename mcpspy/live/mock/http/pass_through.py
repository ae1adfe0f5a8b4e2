"""Live servers behind a mock over HTTP: each live client that asks what was never recorded gets a session of its own with one.

Refuses to know what is said there and when: the client's machine does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ...http.recorder import note
from ...upstream.pass_through import Courier

if TYPE_CHECKING:
    from collections.abc import Callable

    from ....replay.mock.on_miss import MissPolicy
    from ....replay.mock.pass_through import PassThrough
    from ....replay.mock.script import Script
    from ...upstream.pass_through import MakeClient, Told
    from ...upstream.protocol import Failure
    from .client import LiveClient, Stage

LEFT_S: Final = 1.5
"""How long servers are waited for when the mock ends."""

HELD_S: Final = 0.05
"""How often to see whether a client that was behind with reading has caught up, so that its server is read on."""


class ClientPassThroughs:
    """The ways of all clients.

    `forwarding_of` makes the machine of one client, `make` a peer; `show` takes what a process writes to its stderr, `tell` a
    sentence for a person; `name` is what people call the server.
    """

    def __init__(
        self,
        forwarding_of: Callable[[Callable[[MissPolicy], Script]], PassThrough],
        make: MakeClient,
        *,
        show: Callable[[bytes], None],
        tell: Callable[[str], None],
        name: str,
    ) -> None:
        self.forwarding_of = forwarding_of
        self.make = make
        self.show = show
        self.tell = tell
        self.name = name
        self._ways: set[ClientPassThrough] = set()

    def way(self, client: LiveClient, forwarding: PassThrough, stage: Stage) -> ClientPassThrough:
        """The way of one client to its server, which is not started yet."""
        way = ClientPassThrough(self, client, forwarding, stage)
        self._ways.add(way)
        return way

    def forget(self, way: ClientPassThrough) -> None:
        """It leads nowhere any more."""
        self._ways.discard(way)

    async def close(self) -> None:
        """Leave every server."""
        tasks = [task for way in list(self._ways) if (task := way.close()) is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=LEFT_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=LEFT_S)


class ClientPassThrough:
    """Between one live client and its server: what the client says goes there, what comes back is played."""

    __slots__ = ("_client", "_courier", "_forwarding", "_forwards", "_is_held", "_is_over", "_stage", "_task")

    def __init__(self, forwards: ClientPassThroughs, client: LiveClient, forwarding: PassThrough, stage: Stage) -> None:
        self._forwards = forwards
        self._client = client
        self._forwarding = forwarding
        self._stage = stage
        self._courier: Courier | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_over = False
        self._is_held = False

    @property
    def is_live(self) -> bool:
        """Whether the recording has nothing to say any more."""
        return not self._forwarding.is_playing

    def carry(self) -> None:
        """Hand on what is to go to the server, which is started if it is wanted now."""
        if self._is_over:
            return
        if self._forwarding.wants_server and self._courier is None:
            self._courier = Courier(self._forwards.make, self._told)
            self._task = asyncio.get_running_loop().create_task(self._courier.run())
        while self._forwarding.out and self._courier is not None:
            self._courier.put(self._forwarding.out.popleft())
        notes, self._forwarding.notes = self._forwarding.notes, []
        for text in notes:
            self._forwards.tell(text)
            self._record(text)

    def close(self) -> asyncio.Task[None] | None:
        """The client has left, or the mock ends: so does the session with the server."""
        if not self._is_over:
            self._is_over = True
            self._forwards.forget(self)
            if self._courier is not None:
                self._courier.put(None)
        return self._task

    # What the server's news are told to

    def reached(self) -> None:
        self._forwards.tell(f"from here on the live server answers: {self._forwards.name}")
        self._record("from here on the live server answers")
        self._stage.play(self._client, self._forwarding.reached())

    def late(self, patience_s: float) -> None:
        self._stage.play(self._client, self._forwarding.late(patience_s))

    def heard(self, data: bytes, about: str | None) -> None:
        self._stage.play(self._client, self._forwarding.heard(data, about))

    def failed(self, failure: Failure) -> None:
        self._stage.play(self._client, self._forwarding.failed(failure.id, failure.why))

    def lost(self, why: str) -> None:
        self._stage.play(self._client, self._forwarding.lost(why))

    def wrote(self, data: bytes) -> None:
        self._forwards.show(data)

    def left(self, status: int | None) -> None:
        """Nothing follows from it here: the mock serves others."""

    def _told(self, told: Told) -> None:
        if not self._is_over:
            told(self)
            self.carry()
            if self._client.is_full and not self._is_held:
                self._hold()

    def _hold(self) -> None:
        """Read nothing more of the server as long as its client does not keep up."""
        self._is_held = self._client.is_full and not self._is_over
        if self._courier is not None:
            self._courier.hold(holds=self._is_held)
        if self._is_held:
            asyncio.get_running_loop().call_later(HELD_S, self._hold)

    def _record(self, text: str) -> None:
        self._stage.sink((note(self._stage.now_ns(), "pass-through", text, 0),))

"""The clients of a mock over HTTP. A request belongs to the client of its session, else of its connection, else of its name.

A client whose request was never recorded gets a session of its own with a live server; its script decides what goes there and
when (`replay.mock.pass_through`). Source: MCP specification, basic/transports of each revision, session management.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final
from uuid import uuid4

from ....replay.mock.http.session import HttpCursor
from ....replay.mock.matching import RequestMatcher
from ....replay.mock.pass_through import PassThrough
from ....replay.mock.replies import RecordedReplies
from ....replay.mock.script import ERROR, MissPolicy, Script
from ....transcript.mcp.fields import client_name
from ....transcript.mcp.methods import INITIALIZE, OPENINGS
from ....transcript.mcp.revisions import Era
from ....transcript.model import Kind, Message
from ...http.recorder import note
from ...upstream.pass_through import Courier, MakeClient, News
from ...upstream.protocol import Failure
from .client import LiveClient, MockContext
from .connection import Connection

MAX_CLIENTS: Final = 10_000
"""Most sessions and names that are kept; then the session that was used longest ago is ended."""

PRIMED_FROM: Final = "2025-11-25"
"""Streams begin with an event without a message only for clients of this revision or later: older ones would parse it as JSON."""

END_PATIENCE_S: Final = 1.5
"""Time to wait for servers when the mock ends."""

HELD_S: Final = 0.05
"""Time between two checks that a client that was behind with reading has caught up, so that its server is read again."""


class Clients:
    """The clients, each with a script of its own on `replies`. `on_miss`, or a live server of `pass_throughs`, answers a miss."""

    def __init__(
        self,
        mock: MockContext,
        replies: RecordedReplies,
        matcher: RequestMatcher,
        on_miss: MissPolicy = ERROR,
        pass_throughs: ClientPassThroughs | None = None,
        *,
        wall_ns: int = 0,
    ) -> None:
        self._mock = mock
        self._replies = replies
        self._matcher = matcher
        self._on_miss = on_miss
        self._pass_throughs = pass_throughs
        self._wall_ns = wall_ns
        self._count = 0
        self._sessions: dict[str, LiveClient] = {}
        """The clients with a session, the one used last at the end."""
        self._newest: dict[str, LiveClient] = {}
        """The newest client of each name; under the empty name, the newest of all."""
        self._lost: LiveClient | None = None
        """A client whose session was lost as in the capture; the next that opens a session continues its script."""

    def of_session(self, session: str) -> LiveClient | None:
        """Return the client with this session; None if there is none, or not any more."""
        client = self._sessions.pop(session, None)
        if client is not None:
            self._sessions[session] = client
        return client

    def of_connection(self, connection: Connection, name: str = "") -> LiveClient | None:
        """Return the client of a connection without a session; else the newest of this name, whose pool it may belong to."""
        own = connection.client
        return own if isinstance(own, LiveClient) else self._newest.get(name)

    def of_stream(self, connection: Connection) -> LiveClient | None:
        """Return the client that a stream without a session is for, a new one if it comes first; None where no server had one."""
        client = self.of_connection(connection)
        if client is None and self._mock.facts.offers_stream:
            client = connection.client = self.new()
        return client

    def of_messages(self, connection: Connection, messages: list[Message]) -> LiveClient | None:
        """Return the client of messages without a session; None if they need one."""
        opening = opening_of(messages)
        names = (client_name(message.raw) for message in messages if b"lientInfo" in message.raw)
        name = next((name for name in names if name), "")
        if opening is not None:
            opener = self._opening(connection, name, initializes=opening.method == INITIALIZE)
            connection.client = opener
            return opener
        is_modern = any(message.era is Era.MODERN for message in messages)
        client = self.of_connection(connection, name)
        if not is_modern and self._mock.facts.has_sessions:
            return None
        ids = [message.id or "null" for message in messages if message.kind is Kind.REQUEST]
        if client is None or any(client.script.open_request(id) for id in ids):
            client = self.new(name=name)  # or another of the same name: no client uses an id twice at a time
        connection.client = client
        return client

    def new(self, *, session: str = "", name: str = "", has_one_stream: bool = False) -> LiveClient:
        """Make a client that has sent nothing yet."""
        make_script = partial(Script, self._replies, self._matcher.cursor(self._count), wall_ns=self._wall_ns)
        self._count += 1
        pass_through = None if self._pass_throughs is None else self._pass_throughs.make_script(make_script)
        script = make_script(self._on_miss) if pass_through is None else pass_through
        cursor = HttpCursor(self._mock.facts)
        client = LiveClient(self._mock, script, cursor, session=session, has_one_stream=has_one_stream)
        if pass_through is not None and self._pass_throughs is not None:
            client.live_server = self._pass_throughs.connect(client, pass_through, self._mock)
        if len(self._newest) >= MAX_CLIENTS:
            self._newest.clear()
        self._newest[name] = self._newest[""] = client
        if session:
            self._remember(session, client)
        return client

    def delete(self, client: LiveClient) -> None:
        """End a client's session."""
        self._sessions.pop(client.session, None)
        client.close()

    def lose(self, client: LiveClient) -> None:
        """End a session as it was lost in the capture."""
        self.delete(client)
        self._lost = client

    def forget(self, client: LiveClient) -> None:
        """Forget a client that has left, with its session."""
        self._sessions.pop(client.session, None)
        client.leave_server()

    def _opening(self, connection: Connection, name: str, *, initializes: bool) -> LiveClient:
        """Return the client that opens: one that tried `server/discover` may continue with `initialize`; any other is new."""
        own, lost = connection.client, self._lost
        if not initializes:
            return self.new(name=name)
        if lost is not None:
            client, self._lost = lost, None
        elif isinstance(own, LiveClient) and not own.has_initialized and not own.has_one_stream:
            client = own
        else:
            client = self.new(name=name)
        client.has_initialized = True
        client.session = uuid4().hex if self._mock.facts.has_sessions else ""
        if client.session:
            self._remember(client.session, client)
        return client

    def _remember(self, session: str, client: LiveClient) -> None:
        self._sessions[session] = client
        if len(self._sessions) > MAX_CLIENTS:
            self.delete(next(iter(self._sessions.values())))


def opening_of(messages: list[Message]) -> Message | None:
    """Return the request among these that opens a session, if there is one."""
    requests = (message for message in messages if message.kind is Kind.REQUEST)
    return next((request for request in requests if request.method in OPENINGS), None)


def is_primed(messages: list[Message], named: str, *, before: bool) -> bool:
    """Return whether a client gets priming events: by the revision of `initialize`, else `named` by a field, else as `before`."""
    opening = opening_of(messages)
    params = None if opening is None else opening.params
    requested = params.get("protocolVersion") if isinstance(params, dict) else None
    revision = requested if isinstance(requested, str) else named
    return revision >= PRIMED_FROM if revision else before


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

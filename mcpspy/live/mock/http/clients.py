"""The live clients of a mock over HTTP, and whose a request is: by its session, else by its connection, else by the client's name.

Refuses to answer. Source: MCP specification, basic/transports of each revision, session management.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from ....replay.mock.http.session import HttpCursor
from ....replay.mock.on_miss import ERROR
from ....replay.mock.script import Script
from ....transcript.mcp.fields import client_name
from ....transcript.mcp.methods import INITIALIZE, OPENINGS
from ....transcript.mcp.revisions import Era
from ....transcript.model import Kind
from .client import LiveClient

if TYPE_CHECKING:
    from ....replay.mock.matching import RequestMatcher
    from ....replay.mock.on_miss import MissPolicy
    from ....replay.mock.replies import RecordedReplies
    from ....transcript.model import Message
    from .client import Stage
    from .connection import Connection
    from .pass_through import ClientPassThroughs

MAX_CLIENTS: Final = 10_000
"""So many sessions, and names, are remembered; then the session that was used longest ago is forgotten."""

PRIMED_FROM: Final = "2025-11-25"
"""Streams begin with an event that has no message only for clients that know it: older ones would take it for JSON."""


class Clients:
    """Each client has a script of its own, on `scenes`; what is missed is `on_miss`'s to answer, or a live server's: `forwards`."""

    __slots__ = (
        "_count",
        "_forwards",
        "_lost",
        "_matcher",
        "_newest",
        "_on_miss",
        "_scenes",
        "_sessions",
        "_stage",
        "_wall_ns",
    )

    def __init__(
        self,
        stage: Stage,
        scenes: RecordedReplies,
        matcher: RequestMatcher,
        on_miss: MissPolicy = ERROR,
        forwards: ClientPassThroughs | None = None,
        *,
        wall_ns: int = 0,
    ) -> None:
        self._stage = stage
        self._scenes = scenes
        self._matcher = matcher
        self._on_miss = on_miss
        self._forwards = forwards
        self._wall_ns = wall_ns
        self._count = 0
        self._sessions: dict[str, LiveClient] = {}
        """Those with a session, the one that was used last at the end."""
        self._newest: dict[str, LiveClient] = {}
        """Of each name the client that came last; under no name, the last of all."""
        self._lost: LiveClient | None = None
        """One whose session is no more, as in the recording; who opens the next goes on in its place."""

    def of_session(self, session: str) -> LiveClient | None:
        """Whose session this is; None for one that there is not, or not any more."""
        client = self._sessions.pop(session, None)
        if client is not None:
            self._sessions[session] = client
        return client

    def of_connection(self, connection: Connection, name: str = "") -> LiveClient | None:
        """Whose connection this is, of one that has no session; else the newest client of this name, whose pool it may be of."""
        own = connection.client
        return own if isinstance(own, LiveClient) else self._newest.get(name)

    def of_messages(self, connection: Connection, messages: list[Message]) -> LiveClient | None:
        """Whose these are that come without a session; None if they must not."""
        opening = opening_of(messages)
        name = next((said for one in messages if b"lientInfo" in one.raw and (said := client_name(one.raw))), "")
        if opening is not None:
            client = self._opening(connection, opening.method == INITIALIZE, name)
            connection.client = client
            return client
        is_modern = any(one.era is Era.MODERN for one in messages)
        found = self.of_connection(connection, name)
        if not is_modern and self._stage.facts.has_sessions:
            return None
        if found is None or any(found.script.open_request(one.id or "null") for one in messages if one.kind is Kind.REQUEST):
            found = self.new(name=name)  # or another of the same name, for no client has an id in use twice
        connection.client = found
        return found

    def new(self, *, session: str = "", name: str = "", is_on_one_stream: bool = False) -> LiveClient:
        """A client that has asked nothing yet."""
        script_of = partial(Script, self._scenes, self._matcher.cursor(self._count), wall_ns=self._wall_ns)
        self._count += 1
        forwarding = None if self._forwards is None else self._forwards.forwarding_of(script_of)
        script = script_of(self._on_miss) if forwarding is None else forwarding
        client = LiveClient(
            self._stage, script, HttpCursor(self._stage.facts), session=session, is_on_one_stream=is_on_one_stream
        )
        if forwarding is not None and self._forwards is not None:
            client.way = self._forwards.way(client, forwarding, self._stage)
        if len(self._newest) >= MAX_CLIENTS:
            self._newest.clear()
        self._newest[name] = self._newest[""] = client
        if session:
            self._remember(session, client)
        return client

    def delete(self, client: LiveClient) -> None:
        """Its session is no more."""
        self._sessions.pop(client.session, None)
        client.close()

    def lose(self, client: LiveClient) -> None:
        """Its session is no more, as it was lost in the recording."""
        self.delete(client)
        self._lost = client

    def forget(self, client: LiveClient) -> None:
        """It has left, and its session with it."""
        self._sessions.pop(client.session, None)
        client.leave_server()

    def _opening(self, connection: Connection, initializes: bool, name: str) -> LiveClient:  # noqa: FBT001 - one of two openings
        """Who opens: a client that tried `server/discover` before may go on with `initialize`; every other is a new one."""
        own, lost = connection.client, self._lost
        if not initializes:
            return self.new(name=name)
        if lost is not None:
            client, self._lost = lost, None
        elif isinstance(own, LiveClient) and not own.has_initialized and not own.is_on_one_stream:
            client = own
        else:
            client = self.new(name=name)
        client.has_initialized = True
        client.session = uuid4().hex if self._stage.facts.has_sessions else ""
        if client.session:
            self._remember(client.session, client)
        return client

    def _remember(self, session: str, client: LiveClient) -> None:
        self._sessions[session] = client
        if len(self._sessions) > MAX_CLIENTS:
            self.delete(next(iter(self._sessions.values())))


def opening_of(messages: list[Message]) -> Message | None:
    """The request among these that opens, if there is one."""
    return next((one for one in messages if one.method in OPENINGS and one.kind is Kind.REQUEST), None)


def is_primed(messages: list[Message], named: str, *, before: bool) -> bool:
    """Whether a client speaks a revision with priming events: what `initialize` asks for, else HTTP's field names; else as before."""
    opening = opening_of(messages)
    params = None if opening is None else opening.params
    asked = params.get("protocolVersion") if isinstance(params, dict) else None
    revision = asked if isinstance(asked, str) else named
    return revision >= PRIMED_FROM if revision else before

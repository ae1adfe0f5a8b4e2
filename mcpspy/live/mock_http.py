"""A mock over HTTP: Streamable HTTP at /mcp, or HTTP+SSE at /sse, to any number of live clients, each with a script of its own.

It lets clients in, finds out whose a request is, and says at its time what scripts say. Refuses to understand messages: scripts do.
Source: MCP specification, basic/transports of each revision.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from heapq import heappop, heappush
from time import monotonic_ns
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from ..records import CLIENT, MCPSPY, Frame, Note
from ..replay.script import ERROR, Script
from ..transcript.decode import message_of
from ..transcript.mcp import client_name
from ..transcript.mcp_methods import CANCELLED, INITIALIZE, OPENINGS
from ..transcript.mcp_revisions import Era
from ..transcript.model import Kind, Source
from ..wire.jsonrpc import cut
from .authority import Authority
from .gate import Gate
from .listening import bound
from .mock_http_client import SESSION_FIELD, LiveClient
from .mock_http_connection import Connection
from .recording import Numbers
from .signals import name

if TYPE_CHECKING:
    import socket

    from ..records import Sink
    from ..replay.matching import Matcher
    from ..replay.miss import Miss
    from ..replay.routing import Routing
    from ..replay.scenes import Scenes
    from ..replay.script import Cue, OnMiss, Playing
    from ..transcript.model import Message
    from .mock_http_response import Request, Response

BACKLOG: Final = 1024

MAX_CLIENTS: Final = 10_000
"""So many sessions are remembered; then the one that was used longest ago is forgotten."""

_ENDING: Final = {"SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"}
_SESSION: Final = SESSION_FIELD.lower().encode()
_JSON: Final = ("Content-Type", "application/json")


class Transport(StrEnum):
    """How clients are served."""

    STREAMABLE = "streamable"
    SSE = "sse"


PATHS: Final = {Transport.STREAMABLE: "/mcp", Transport.SSE: "/sse"}
MESSAGES_PATH: Final = "/messages/"
"""Where clients of HTTP+SSE post what they say."""


class HttpMock:
    """Plays `scenes` to whoever comes. Its clock began at `begin_ns` of the monotonic one; the rest is as for the mock on stdio."""

    def __init__(
        self,
        scenes: Scenes,
        matcher: Matcher,
        routing: Routing,
        *,
        transport: Transport,
        begin_ns: int,
        speed: float = 0.0,
        allowed_hosts: frozenset[str] = frozenset(),
        on_miss: OnMiss = ERROR,
        tell: Callable[[Miss], None],
    ) -> None:
        self.routing = routing
        self.sink: Sink = _nowhere
        self.tell = tell
        self.numbers = Numbers()
        self.connections: set[Connection] = set()
        self.own = Authority("127.0.0.1", 0)
        self.gate = Gate(port=0)
        self.begin_ns = begin_ns
        self.why = ""
        self._scenes = scenes
        self._matcher = matcher
        self._transport = transport
        self._speed = speed
        self._allowed_hosts = allowed_hosts
        self._on_miss = on_miss
        self._source = Source(0)
        self._count = 0
        self._sessions: dict[str, LiveClient] = {}
        """Those with a session, the one that was used last at the end."""
        self._newest: dict[str, LiveClient] = {}
        """Of each name the client that came last; under no name, the last of all."""
        self._cues: list[tuple[int, int, LiveClient, Cue]] = []
        self._floors: dict[Playing, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._cue_count = 0

    def record_to(self, sink: Sink) -> None:
        """Have everything recorded there."""
        self.sink = sink

    def now_ns(self) -> int:
        """Nanoseconds since our clock began."""
        return monotonic_ns() - self.begin_ns

    def listen(self, host: str, port: int) -> socket.socket:
        """Take the address; port 0 picks one. Raises: TapError: if it is taken, or not ours."""
        listener = bound(host, port)
        self.own = Authority(host, listener.getsockname()[1])
        self.gate = Gate(port=self.own.port, allowed_hosts=self._allowed_hosts)
        return listener

    @property
    def url(self) -> str:
        """What to give to clients."""
        return f"http://{self.own}{PATHS[self._transport]}"

    async def serve(self, listener: socket.socket, signals_fd: int, ready: Callable[[], None]) -> None:
        """Serve until a signal ends it; `ready` is called once clients can connect."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(signals_fd, self._signalled, signals_fd, ended)
        server = await loop.create_server(lambda: Connection(self), sock=listener, backlog=BACKLOG)
        try:
            ready()
            await ended.wait()
        finally:
            loop.remove_reader(signals_fd)
            server.close()
            for connection in list(self.connections):
                connection.abort(MCPSPY)

    def _signalled(self, signals_fd: int, ended: asyncio.Event) -> None:
        for number in os.read(signals_fd, 512):
            told = name(number)
            self.sink((Note(at_ns=self.now_ns(), topic="signal", text=f"{told} received"),))
            if told in _ENDING:
                self.why = self.why or told
                ended.set()

    # Requests

    def asked(self, request: Request, response: Response) -> None:
        """A request came, whole."""
        if self._transport is Transport.SSE:
            self._asked_of_sse(request, response)
        elif request.path != PATHS[Transport.STREAMABLE]:
            _refuse(response, 404, f"there is nothing at this path; MCP is at {PATHS[Transport.STREAMABLE]}")
        elif request.method == "POST":
            self._posted(request, response)
        elif request.method == "GET":
            self._got(request, response)
        elif request.method == "DELETE":
            self._deleted(request, response)
        else:
            _refuse(response, 405, "this method is not served here", [("Allow", "GET, POST, DELETE")])

    def _posted(self, request: Request, response: Response) -> None:
        messages = self._messages(request)
        bad = next((one for one in messages if one.kind is Kind.MALFORMED), None)
        if bad is not None:
            _error(response, 400, -32700, f"the body is no JSON-RPC message: {bad.reason}")
            return
        session = request.value(_SESSION)
        client = self._sessions.get(session) if session else self._client(request, messages)
        if client is None and session:
            _error(response, 404, -32001, "Session not found")
        elif client is None:
            _error(response, 400, -32000, f"Bad Request: {SESSION_FIELD} header is required")
        else:
            self._use(client)
            client.hear(messages, response)

    def _got(self, request: Request, response: Response) -> None:
        session = request.value(_SESSION)
        client = self._sessions.get(session) if session else self._of_connection(request, "")
        if session and client is None:
            _error(response, 404, -32001, "Session not found")
        elif client is None or client.is_modern:
            _refuse(response, 405, "there is no stream to get here", [("Allow", "POST")])
        elif (after := request.value(b"last-event-id")) and client.resume(after, response):
            pass
        elif client.standing.response is not None:
            _error(response, 409, -32000, "Conflict: Only one SSE stream is allowed per session")
        else:
            client.stand(response)

    def _deleted(self, request: Request, response: Response) -> None:
        session = request.value(_SESSION)
        client = self._sessions.pop(session, None)
        if client is None:
            if session:
                _error(response, 404, -32001, "Session not found")
            else:
                _refuse(response, 405, "there is no session to delete", [("Allow", "POST")])
            return
        client.close()
        response.whole(200, [])

    def _asked_of_sse(self, request: Request, response: Response) -> None:
        if request.path == PATHS[Transport.SSE] and request.method == "GET":
            session = uuid4().hex
            client = self._sessions[session] = self._new_client(session=session, is_on_one_stream=True)
            client.stand(
                response, [b"event: endpoint\ndata: %b?session_id=%b\n\n" % (MESSAGES_PATH.encode(), session.encode())]
            )
            left = response.left
            response.left = lambda: (left(), self._sessions.pop(session, None))[0]
            self.play(client, client.script.open())
        elif request.path.rstrip("/") == MESSAGES_PATH.rstrip("/") and request.method == "POST":
            _, _, session = request.target.partition("session_id=")
            found = self._sessions.get(session)
            if found is None:
                response.whole(404, [("Content-Type", "text/plain")], b"Could not find session")
            else:
                found.hear(self._messages(request), response)
        elif request.path == PATHS[Transport.SSE]:
            _refuse(response, 405, "this is HTTP+SSE: get the stream, and post where it says", [("Allow", "GET")])
        else:
            _refuse(response, 404, f"there is nothing at this path; HTTP+SSE is at {PATHS[Transport.SSE]}")

    def _messages(self, request: Request) -> list[Message]:
        return [self._message(request.body, piece) for piece in cut(request.body)]

    def _message(self, data: bytes, piece: object) -> Message:
        now_ns = self.now_ns()
        return message_of(self._source, CLIENT, Frame(0, now_ns, now_ns, data), piece)  # type: ignore[arg-type]

    def cancelled(self, id: str) -> Message:
        """What a client says that gives this request up."""
        data = f'{{"jsonrpc":"2.0","method":"{CANCELLED}","params":{{"requestId":{id}}}}}'.encode()
        return self._message(data, cut(data)[0])

    # Clients

    def _client(self, request: Request, messages: list[Message]) -> LiveClient | None:
        """Whose this is that comes without a session; None if it must have one."""
        opening = next((one for one in messages if one.method in OPENINGS and one.kind is Kind.REQUEST), None)
        of_connection = request.connection.client
        name = next((said for one in messages if b"lientInfo" in one.raw and (said := client_name(one.raw))), "")
        if opening is None:
            is_modern = any(one.era is Era.MODERN for one in messages)
            found = self._of_connection(request, name)
            if found is None and (is_modern or not self.routing.gives_sessions):
                found = self._new_client(name=name)
            if found is not None and found.session and not is_modern:
                return None
            request.connection.client = request.connection.client or found
            return found
        is_first = isinstance(of_connection, LiveClient) and not of_connection.has_initialized
        if opening.method == INITIALIZE:
            session = uuid4().hex if self.routing.gives_sessions else ""
            client = of_connection if is_first and isinstance(of_connection, LiveClient) else self._new_client(name=name)
            client.has_initialized, client.session = True, session
            if session:
                self._sessions[session] = client
                self._forget_old()
        else:
            client = self._new_client(name=name)
        request.connection.client = client
        return client

    def _of_connection(self, request: Request, name: str) -> LiveClient | None:
        """Whose connection it is; else the newest client of this name, whose pool it may be of."""
        client = request.connection.client
        return client if isinstance(client, LiveClient) else self._newest.get(name)

    def _new_client(self, *, session: str = "", name: str = "", is_on_one_stream: bool = False) -> LiveClient:
        script = Script(self._scenes, self._matcher.walk(self._count), self._on_miss)
        self._count += 1
        client = LiveClient(self, script, session=session, name=name, is_on_one_stream=is_on_one_stream)
        if len(self._newest) >= MAX_CLIENTS:
            self._newest.clear()
        self._newest[name] = self._newest[""] = client
        return client

    def _use(self, client: LiveClient) -> None:
        if client.session:
            self._sessions[client.session] = self._sessions.pop(client.session, client)

    def _forget_old(self) -> None:
        if len(self._sessions) > MAX_CLIENTS:
            self._sessions.pop(next(iter(self._sessions))).close()

    # Time

    def play(self, client: LiveClient, cues: Sequence[Cue]) -> None:
        """Say what is due at once, and put off the rest."""
        now_ns = self.now_ns()
        for cue in cues:
            if self._speed and (cue.delay_ns or cue.playing in self._floors):
                self._put_off(client, cue, now_ns)
            elif client.script.is_due(cue):
                client.say(cue)
        self._set_timer()

    def _put_off(self, client: LiveClient, cue: Cue, now_ns: int) -> None:
        due_ns = now_ns + int(cue.delay_ns / self._speed)
        due_ns = self._floors[cue.playing] = max(due_ns, self._floors.get(cue.playing, 0))
        self._cue_count += 1
        heappush(self._cues, (due_ns, self._cue_count, client, cue))

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._cues:
            delay_s = max(0, self._cues[0][0] - self.now_ns()) / 1e9
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._say_due)

    def _say_due(self) -> None:
        now_ns = self.now_ns()
        while self._cues and self._cues[0][0] <= now_ns:
            due_ns, _, client, cue = heappop(self._cues)
            if self._floors.get(cue.playing) == due_ns:
                del self._floors[cue.playing]
            if client.script.is_due(cue):
                client.say(cue)
        self._set_timer()


def _error(response: Response, status: int, code: int, text: str) -> None:
    """An error of HTTP, as servers on the SDKs put it."""
    body = f'{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"{text}"}}}}'
    response.whole(status, [_JSON], body.encode())


def _refuse(response: Response, status: int, text: str, fields: Sequence[tuple[str, str]] = ()) -> None:
    """What mcpspy itself has to say: nobody recorded that."""
    response.whole(status, [("Content-Type", "text/plain; charset=utf-8"), *fields], f"mcpspy: {text}\n".encode(), forged=True)


def _nowhere(records: object) -> None:
    """The sink of a mock that has none."""

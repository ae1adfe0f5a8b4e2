"""A mock over HTTP: Streamable HTTP at /mcp, or HTTP+SSE at /sse, to any number of live clients, each with a script of its own.

`HttpMock` answers what HTTP alone decides, and hands messages to the scripts, which understand them. `ListeningMock` is what every
mock over HTTP has, that of a model's API too; `serve` runs several until a signal ends them.
Source: MCP specification, basic/transports of each revision.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from ....records import CLIENT, MCPSPY, Frame, Note
from ....replay.mock.http.answer import HttpRequest, MockAddress
from ....replay.mock.http.routing import endpoint_event
from ....replay.mock.http.session import HttpCursor, session_endpoint
from ....replay.mock.on_miss import ERROR
from ....transcript.decode import message_of
from ....transcript.model import CaptureInfo, Kind
from ....wire.jsonrpc import cut
from ...http.host_check import HostCheck
from ...http.listener import BACKLOG, REST_S, Authority, accept_all, bound_socket
from ...http.recorder import Numbers, fault_text
from ...stdio.signals import name
from .client import SESSION_FIELD, LiveClient, answer
from .clients import Clients, is_primed, opening_of
from .connection import Connection
from .schedule import SendSchedule

if TYPE_CHECKING:
    import socket

    from ....records import Sink
    from ....replay.mock.http.recorded_http import HttpFacts
    from ....replay.mock.http.routing import Routing
    from ....replay.mock.matching import RequestMatcher
    from ....replay.mock.miss import Miss
    from ....replay.mock.on_miss import MissPolicy
    from ....replay.mock.replies import RecordedReplies
    from ....replay.mock.scheduled_send import ScheduledSend
    from ....transcript.model import Message
    from .pass_through import ClientPassThroughs
    from .response import Fields, Request, Response

_log = logging.getLogger("mcpspy.live")

SILENT_S: Final = 15.0
"""Streams say a comment when they were silent so long, as those of the official SDKs do: clients wait some minutes for a byte."""

PATHS: Final = {"streamable": "/mcp", "sse": "/sse"}

_SESSION: Final = SESSION_FIELD.lower().encode()
_ENDING: Final = {"SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"}


class ListeningMock:
    """A mock that listens: its address, its connections, its clock, and where it is recorded.

    The clock began at `begin_ns` of the monotonic one. `why` is the name of the signal that ended it.
    """

    def __init__(self, *, begin_ns: int, allowed_hosts: frozenset[str]) -> None:
        self.sink: Sink = _nowhere
        self.numbers = Numbers()
        self.connections: set[Connection] = set()
        self.own = Authority("127.0.0.1", 0)
        self.host_check = HostCheck(port=0)
        self.begin_ns = begin_ns
        self.why = ""
        self._allowed_hosts = allowed_hosts
        self._door: AcceptLoop | None = None

    def record_to(self, sink: Sink) -> None:
        """Have everything recorded there."""
        self.sink = sink

    def now_ns(self) -> int:
        """Return the nanoseconds since our clock began."""
        return monotonic_ns() - self.begin_ns

    def listen(self, host: str, port: int) -> socket.socket:
        """Take the address; port 0 picks one. Raises: TapError: if it is taken, or not ours."""
        listener = bound_socket(host, port)
        self.own = Authority(host, listener.getsockname()[1])
        self.host_check = HostCheck(port=self.own.port, allowed_hosts=self._allowed_hosts)
        return listener

    def open(self, listener: socket.socket) -> None:
        """Let clients in."""
        self._door = AcceptLoop(listener, partial(Connection, self))

    async def close(self) -> None:
        """Let nobody in any more, and close the connections of whoever is there."""
        if self._door is not None:
            self._door.close()
        await self._stop_playing()
        for connection in list(self.connections):
            connection.abort(MCPSPY)

    def asked(self, request: Request, response: Response) -> None:
        """A request came, whole."""
        raise NotImplementedError

    def noted(self, topic: str, text: str, *, by: str = "") -> None:
        """Write down what happened to the process."""
        self.sink((Note(at_ns=self.now_ns(), topic=topic, text=text, extra={"by": by} if by else None),))

    def ended(self, why: str) -> None:
        """It is to end, and why: the name of a signal."""
        self.why = self.why or why

    async def _stop_playing(self) -> None:
        """Let go of what a mock has beside its connections."""
        raise NotImplementedError


class HttpMock(ListeningMock):
    """Plays `scenes` to whoever comes. Its clock began at `begin_ns` of the monotonic one, at `wall_ns` of Unix time."""

    def __init__(
        self,
        scenes: RecordedReplies,
        matcher: RequestMatcher,
        facts: HttpFacts,
        routing: Routing,
        *,
        begin_ns: int,
        wall_ns: int = 0,
        speed: float = 0.0,
        silent_s: float = SILENT_S,
        allowed_hosts: frozenset[str] = frozenset(),
        on_miss: MissPolicy = ERROR,
        forwards: ClientPassThroughs | None = None,
        tell: Callable[[Miss], None],
    ) -> None:
        super().__init__(begin_ns=begin_ns, allowed_hosts=allowed_hosts)
        self.facts = facts
        self.routing = routing
        self.tell = tell
        self._path = PATHS[facts.transport]
        self._paths = frozenset((self._path, *facts.paths))
        self._is_sse = facts.transport == "sse"
        self._clients = Clients(self, scenes, matcher, on_miss, forwards, wall_ns=wall_ns)
        self._forwards = forwards
        self._walk = HttpCursor(facts)
        """Of what comes without a session."""
        self._endpoints: dict[str, LiveClient] = {}
        """Of HTTP+SSE: where each client posts."""
        self._cues = SendSchedule(speed, self.now_ns)
        self._silent_s = silent_s
        self._keeping: asyncio.TimerHandle | None = None
        self._source = CaptureInfo(0)

    @property
    def url(self) -> str:
        """What to give to clients."""
        return f"http://{self.own}{self._path}"

    def open(self, listener: socket.socket) -> None:
        """Let clients in, and keep their streams alive."""
        self._keep_alive(asyncio.get_running_loop())
        super().open(listener)

    async def _stop_playing(self) -> None:
        self._cues.close()
        if self._keeping is not None:
            self._keeping.cancel()
        if self._forwards is not None:
            await self._forwards.close()

    def _keep_alive(self, loop: asyncio.AbstractEventLoop) -> None:
        now_ns, silent_ns = self.now_ns(), int(self._silent_s * 1e9)
        for connection in list(self.connections):
            connection.keep_alive(now_ns, silent_ns)
        self._keeping = loop.call_later(self._silent_s / 2, self._keep_alive, loop)

    # What clients are told

    def play(self, client: LiveClient, cues: Sequence[ScheduledSend]) -> None:
        """Have these said when they are due."""
        self._cues.play(client, cues)
        if client.way is not None:
            client.way.carry()

    def lose(self, client: LiveClient) -> None:
        """The session is no more, as the recorded one was: who opens the next one goes on in its place."""
        self._clients.lose(client)

    def forget(self, client: LiveClient) -> None:
        """The client has left."""
        self._clients.forget(client)
        self._endpoints = {target: one for target, one in self._endpoints.items() if one is not client}

    # Requests

    def asked(self, request: Request, response: Response) -> None:
        """A request came, whole."""
        if request.target in self._endpoints and request.method == "POST":
            self._posted_to_stream(request, response, self._endpoints[request.target])
        elif request.path not in self._paths:
            self._asked_elsewhere(request, response)
        elif self._is_sse:
            self._asked_for_stream(request, response)
        elif request.method == "POST":
            self._posted(request, response)
        else:
            self._got(request, response)

    def _posted(self, request: Request, response: Response) -> None:
        messages = self._messages(request, response)
        if not messages:
            return
        session = request.value(_SESSION)
        client = self._clients.of_session(session) if session else None
        is_opening = opening_of(messages) is not None
        if session and client is None and not is_opening:
            answer(response, self.facts.unknown_session)
            return
        if self._is_told_by_http(request, response, client, messages[0]):
            return
        if client is None:
            client = self._clients.of_messages(request.connection, messages)
        if client is None:
            answer(response, self.facts.missing_session)
            return
        client.is_primed = is_primed(messages, request.value(b"mcp-protocol-version"), before=client.is_primed)
        client.hear(messages, response)

    def _got(self, request: Request, response: Response) -> None:
        """A GET or a DELETE, or what nobody knows."""
        session = request.value(_SESSION)
        client = self._clients.of_session(session) if session else None
        if session and client is None:
            answer(response, self.facts.unknown_session)
        elif request.method == "DELETE" and client is None and self.facts.has_sessions:
            answer(response, self.facts.missing_session)
        elif self._is_told_by_http(request, response, client):
            pass
        elif request.method != "GET":
            _refuse(response, 405, "this method is not served here", [("Allow", "GET, POST, DELETE")])
        elif client is None and self.facts.has_sessions:
            answer(response, self.facts.missing_session)
        elif (own := client or self._clients.of_connection(request.connection)) is None or own.is_modern:
            _refuse(response, 405, "there is no stream to get here", [("Allow", "POST")])
        elif (after := request.value(b"last-event-id")) and own.resume(after, response):
            pass
        elif own.standing.response is not None:
            _error(response, 409, -32000, "Conflict: Only one SSE stream is allowed per session")
        else:
            own.stand(response)

    def _asked_for_stream(self, request: Request, response: Response) -> None:
        """A client of HTTP+SSE comes."""
        if self._is_told_by_http(request, response, None):
            return
        if request.method != "GET":
            _refuse(response, 405, "this is HTTP+SSE: get the stream, and post where it says", [("Allow", "GET")])
            return
        session = uuid4().hex
        client = self._clients.new(session=session, is_on_one_stream=True)
        target, data = session_endpoint(self.facts, session, self._live(request))
        self._endpoints[target] = client
        client.stand(response, [endpoint_event(data, self.facts.event_style)])
        self.play(client, client.script.open())

    def _posted_to_stream(self, request: Request, response: Response, client: LiveClient) -> None:
        messages = self._messages(request, response)
        if messages and not self._is_told_by_http(request, response, client, messages[0]):
            client.hear(messages, response)

    def _asked_elsewhere(self, request: Request, response: Response) -> None:
        asked = next(iter(self._read(request)), None)  # a server may have sent on who asked here
        if self._is_told_by_http(request, response, None, None if asked is None or asked.kind is Kind.MALFORMED else asked):
            return
        if self._is_sse and "session" in request.target:
            answer(response, self.facts.unknown_session)
            return
        _refuse(response, 404, f"there is nothing at this path; MCP is at {self._path}")

    def _is_told_by_http(
        self, request: Request, response: Response, client: LiveClient | None, message: Message | None = None
    ) -> bool:
        """Say what HTTP says to this alone, if it does: a challenge, a refusal, a document."""
        if message is not None and client is not None and client.way is not None and client.way.is_live:
            return False  # a live server says what it says
        asked = HttpRequest(request.method, request.target, self._live(request), bool(request.value(b"authorization")), message)
        said = (self._walk if client is None else client.walk).answer(asked)
        if said is None:
            return False
        answer(response, said, [] if client is None else client.fields)
        if said.ends_session and client is not None:
            if request.method == "DELETE":
                self._clients.delete(client)
            else:
                self._clients.lose(client)
        return True

    def _live(self, request: Request) -> MockAddress:
        return MockAddress(f"http://{request.value(b'host')}", request.path if request.path in self._paths else self._path)

    def _messages(self, request: Request, response: Response) -> list[Message]:
        """The messages of a POST; none if it is answered already, for there is one that nobody could read."""
        found = self._read(request)
        bad = next((one for one in found if one.kind is Kind.MALFORMED), None)
        if bad is not None:
            _error(response, 400, -32700, f"the body is no JSON-RPC message: {bad.reason}")
            return []
        return found

    def _read(self, request: Request) -> list[Message]:
        now_ns = self.now_ns()
        frame = Frame(0, now_ns, now_ns, request.body)
        return [message_of(self._source, CLIENT, frame, piece) for piece in cut(request.body)]


class AcceptLoop:
    """Lets in whoever comes to `listener`, from the event loop that runs, and makes a `protocol` for each.

    asyncio's own way tries 1,024 times at once when no descriptor is left, and says so each time (CPython 3.11); this one rests.
    """

    def __init__(self, listener: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._protocol = protocol
        self._entering: set[asyncio.Task[object]] = set()
        self._rest: asyncio.TimerHandle | None = None
        listener.listen(BACKLOG)
        listener.setblocking(False)
        self._open()

    def close(self) -> None:
        """Let nobody in any more."""
        self._loop.remove_reader(self._listener)
        self._listener.close()
        if self._rest is not None:
            self._rest.cancel()
        for task in self._entering:
            task.cancel()

    def _open(self) -> None:
        self._loop.add_reader(self._listener, self._enter)

    def _enter(self) -> None:
        """Let in every client that waits."""
        if not accept_all(self._listener, self._let_in):
            self._loop.remove_reader(self._listener)
            self._rest = self._loop.call_later(REST_S, self._open)

    def _let_in(self, client: socket.socket) -> None:
        entering: asyncio.Task[object] = self._loop.create_task(self._loop.connect_accepted_socket(self._protocol, client))
        self._entering.add(entering)
        entering.add_done_callback(self._entering.discard)


async def serve(served: Sequence[tuple[ListeningMock, socket.socket]], signals_fd: int, ready: Callable[[], None]) -> None:
    """Serve each mock on its socket until a signal comes on `signals_fd`; `ready` is called once clients can connect."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    mocks = [mock for mock, _ in served]

    def signalled() -> None:
        for number in os.read(signals_fd, 512):
            told = name(number)
            for mock in mocks:
                mock.noted("signal", f"{told} received")
                if told in _ENDING:
                    mock.ended(told)
                    ended.set()

    def fault(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A fault of our own, which has ended the connection that it happened on."""
        error = context.get("exception")
        text = fault_text(error) if isinstance(error, BaseException) else str(context.get("message"))
        _log.error("mcpspy: %s", text)
        for mock in mocks:
            mock.noted("fault", text, by="mcpspy")

    loop.set_exception_handler(fault)
    loop.add_reader(signals_fd, signalled)
    for mock, listener in served:
        mock.open(listener)
    try:
        ready()
        await ended.wait()
    finally:
        loop.remove_reader(signals_fd)
        for mock in mocks:
            await mock.close()


def _error(response: Response, status: int, code: int, text: str) -> None:
    """An error of HTTP, as servers on the SDKs put it."""
    body = f'{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"{text}"}}}}'
    response.whole(status, [("Content-Type", "application/json")], body.encode())


def _refuse(response: Response, status: int, text: str, fields: Fields | None = None) -> None:
    """What mcpspy itself has to say: nobody recorded that."""
    named = [("Content-Type", "text/plain; charset=utf-8"), *(fields or [])]
    response.whole(status, named, f"mcpspy: {text}\n".encode(), injected=True)


def _nowhere(records: object) -> None:
    """Drop records: the sink of a mock that has none."""

"""A mock over HTTP: Streamable HTTP at /mcp, or HTTP+SSE at /sse, to any number of live clients, each with a script of its own.

`HttpMock` answers what HTTP alone decides, and hands messages to the scripts. `ListeningMock` is what every mock over HTTP has, also
that of a model API; `serve` runs several until a signal ends them.
Source: MCP specification, basic/transports of each revision.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic_ns
from typing import Any, Final
from uuid import uuid4

from ....platform.loops import read_signals
from ....platform.signals import name
from ....records import CLIENT, MCPSPY, Frame, Note, Sink
from ....replay.mock.http.answer import HttpRequest, MockAddress
from ....replay.mock.http.recorded_http import HttpFacts
from ....replay.mock.http.routing import Routing, endpoint_event
from ....replay.mock.http.session import HttpCursor, session_endpoint
from ....replay.mock.matching import RequestMatcher
from ....replay.mock.miss import Miss
from ....replay.mock.replies import RecordedReplies
from ....replay.mock.scheduled_send import ScheduledSend
from ....replay.mock.script import ERROR, MissPolicy
from ....transcript.envelope import message_of
from ....transcript.model import CaptureInfo, Kind, Message
from ....wire.jsonrpc import cut
from ...http.listener import BACKLOG, REST_S, Authority, HostCheck, accept_all, bound_socket
from ...http.recorder import Numbers, fault_text
from ..put_off import PutOffSends
from .client import SESSION_FIELD, LiveClient, write_answer
from .clients import ClientPassThroughs, Clients, is_primed, opening_of
from .connection import Connection, Request, Response

_log = logging.getLogger("mcpspy.live")

SILENT_S: Final = 15.0
"""After how long a comment is written on a silent stream, as in the official SDKs: clients wait some minutes for a byte."""

PATHS: Final = {"streamable": "/mcp", "sse": "/sse"}

_SESSION: Final = SESSION_FIELD.lower().encode()
_ENDING: Final = {"SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"}


class ListeningMock:
    """A mock that listens: its address, its connections, its clock and its sink. A mock is a subclass that answers requests.

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
        self._accept_loop: AcceptLoop | None = None

    def record_to(self, sink: Sink) -> None:
        """Send all records to `sink`."""
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
        self._accept_loop = AcceptLoop(listener, partial(Connection, self))

    async def close(self) -> None:
        """Let nobody in any more, and close all connections."""
        if self._accept_loop is not None:
            self._accept_loop.close()
        await self._stop_playing()
        for connection in list(self.connections):
            connection.abort(MCPSPY)

    def answer(self, request: Request, response: Response) -> None:
        """Answer a whole request, now or later."""
        raise NotImplementedError

    def note(self, topic: str, text: str, *, by: str = "") -> None:
        """Record something that happened to the process."""
        self.sink((Note(at_ns=self.now_ns(), topic=topic, text=text, extra={"by": by} if by else {}),))

    def note_end(self, why: str) -> None:
        """Remember why the mock ends: the name of a signal."""
        self.why = self.why or why

    async def _stop_playing(self) -> None:
        """Stop what a mock runs beside its connections."""
        raise NotImplementedError


class HttpMock(ListeningMock):
    """A mock that plays `replies` to all clients. Its clock began at `begin_ns` of the monotonic one, at `wall_ns` of Unix time."""

    def __init__(
        self,
        replies: RecordedReplies,
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
        pass_throughs: ClientPassThroughs | None = None,
        tell: Callable[[Miss], None],
    ) -> None:
        super().__init__(begin_ns=begin_ns, allowed_hosts=allowed_hosts)
        self.facts = facts
        self.routing = routing
        self.tell = tell
        self._path = PATHS[facts.transport]
        self._paths = frozenset((self._path, *facts.paths))
        self._is_sse = facts.transport == "sse"
        self._clients = Clients(self, replies, matcher, on_miss, pass_throughs, wall_ns=wall_ns)
        self._pass_throughs = pass_throughs
        self._cursor = HttpCursor(facts)
        """For requests without a session."""
        self._endpoints: dict[str, LiveClient] = {}
        """The clients of HTTP+SSE, by the targets of their POSTs."""
        self._schedule = SendSchedule(speed, self.now_ns)
        self._silent_s = silent_s
        self._keep_alive_timer: asyncio.TimerHandle | None = None
        self._capture = CaptureInfo(0)

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"http://{self.own}{self._path}"

    def open(self, listener: socket.socket) -> None:
        """Let clients in, and keep their streams alive."""
        self._keep_alive(asyncio.get_running_loop())
        super().open(listener)

    async def _stop_playing(self) -> None:
        self._schedule.close()
        if self._keep_alive_timer is not None:
            self._keep_alive_timer.cancel()
        if self._pass_throughs is not None:
            await self._pass_throughs.close()

    def _keep_alive(self, loop: asyncio.AbstractEventLoop) -> None:
        now_ns, silent_ns = self.now_ns(), int(self._silent_s * 1e9)
        for connection in list(self.connections):
            connection.keep_alive(now_ns, silent_ns)
        self._keep_alive_timer = loop.call_later(self._silent_s / 2, self._keep_alive, loop)

    # Called by clients

    def play(self, client: LiveClient, sends: Sequence[ScheduledSend]) -> None:
        """Have a client send these when they are due."""
        self._schedule.play(client, sends)
        if client.live_server is not None:
            client.live_server.carry()

    def lose(self, client: LiveClient) -> None:
        """End a session as the recorded one was lost: the next client that opens a session continues its script."""
        self._clients.lose(client)

    def forget(self, client: LiveClient) -> None:
        """Forget a client that has left."""
        self._clients.forget(client)
        self._endpoints = {target: known for target, known in self._endpoints.items() if known is not client}

    # Requests

    def answer(self, request: Request, response: Response) -> None:
        """Answer a whole request, now or later."""
        if request.target in self._endpoints and request.method == "POST":
            self._post_to_endpoint(request, response, self._endpoints[request.target])
        elif request.path not in self._paths:
            self._answer_other_path(request, response)
        elif self._is_sse:
            self._open_sse(request, response)
        elif request.method == "POST":
            self._post(request, response)
        else:
            self._get(request, response)

    def _post(self, request: Request, response: Response) -> None:
        messages = self._messages(request, response)
        if not messages:
            return
        session = request.value(_SESSION)
        client = self._clients.of_session(session) if session else None
        is_opening = opening_of(messages) is not None
        if session and client is None and not is_opening:
            write_answer(response, self.facts.unknown_session)
            return
        if self._answer_by_http(request, response, client, messages[0]):
            return
        if client is None:
            client = self._clients.of_messages(request.connection, messages)
        if client is None:
            write_answer(response, self.facts.missing_session)
            return
        client.is_primed = is_primed(messages, request.value(b"mcp-protocol-version"), before=client.is_primed)
        client.post(messages, response)

    def _get(self, request: Request, response: Response) -> None:
        """Answer a GET, a DELETE, or an unknown method."""
        session = request.value(_SESSION)
        client = self._clients.of_session(session) if session else None
        if session and client is None:
            write_answer(response, self.facts.unknown_session)
        elif request.method == "DELETE" and client is None and self.facts.has_sessions:
            write_answer(response, self.facts.missing_session)
        elif self._answer_by_http(request, response, client):
            pass
        elif request.method != "GET":
            response.refuse(405, "this method is not served here", ("Allow", "GET, POST, DELETE"))
        elif client is None and self.facts.has_sessions:
            write_answer(response, self.facts.missing_session)
        elif (own := client or self._clients.of_stream(request.connection)) is None or own.is_modern:
            response.refuse(405, "there is no stream to get here", ("Allow", "POST"))
        elif (after := request.value(b"last-event-id")) and own.resume(after, response):
            pass
        elif own.server_stream.response is not None:
            _error(response, 409, -32000, "Conflict: Only one SSE stream is allowed per session")
        else:
            own.open_server_stream(response)
            if not own.session and not own.is_greeted:
                own.is_greeted = True
                self.play(own, own.script.open())

    def _open_sse(self, request: Request, response: Response) -> None:
        """Open the stream of a new client of HTTP+SSE."""
        if self._answer_by_http(request, response, None):
            return
        if request.method != "GET":
            response.refuse(405, "this is HTTP+SSE: get the stream, and post where it says", ("Allow", "GET"))
            return
        session = uuid4().hex
        client = self._clients.new(session=session, has_one_stream=True)
        target, data = session_endpoint(self.facts, session, self._address(request))
        self._endpoints[target] = client
        client.open_server_stream(response, [endpoint_event(data, self.facts)])
        self.play(client, client.script.open())

    def _post_to_endpoint(self, request: Request, response: Response, client: LiveClient) -> None:
        messages = self._messages(request, response)
        if messages and not self._answer_by_http(request, response, client, messages[0]):
            client.post(messages, response)

    def _answer_other_path(self, request: Request, response: Response) -> None:
        message = next(iter(self._read(request)), None)  # a recorded server may have redirected requests to this path
        if message is not None and message.kind is Kind.MALFORMED:
            message = None
        if self._answer_by_http(request, response, None, message):
            return
        if self._is_sse and "session" in request.target:
            write_answer(response, self.facts.unknown_session)
            return
        response.refuse(404, f"there is nothing at this path; MCP is at {self._path}")

    def _answer_by_http(
        self, request: Request, response: Response, client: LiveClient | None, message: Message | None = None
    ) -> bool:
        """Write a recorded answer that HTTP alone decides: a challenge, a refusal, a static response. Returns False for none."""
        if message is not None and client is not None and client.live_server is not None and client.live_server.is_live:
            return False  # the live server answers
        has_login = bool(request.value(b"authorization"))
        http_request = HttpRequest(request.method, request.target, self._address(request), has_login, message)
        answer = (self._cursor if client is None else client.cursor).answer(http_request)
        if answer is None:
            return False
        write_answer(response, answer, [] if client is None else client.fields)
        if answer.ends_session and client is not None:
            if request.method == "DELETE":
                self._clients.delete(client)
            else:
                self._clients.lose(client)
        return True

    def _address(self, request: Request) -> MockAddress:
        return MockAddress(f"http://{request.value(b'host')}", request.path if request.path in self._paths else self._path)

    def _messages(self, request: Request, response: Response) -> list[Message]:
        """Return the messages of a POST; none if the body is not JSON, or not by its type, which is answered with an error."""
        media_type = request.value(b"content-type").partition(";")[0].strip().lower()
        if media_type not in self.facts.media_types:
            _error(response, 415, -32000, "Unsupported Media Type: Content-Type must be application/json")
            return []
        messages = self._read(request)
        malformed = next((message for message in messages if message.kind is Kind.MALFORMED), None)
        if malformed is not None:
            _error(response, 400, -32700, f"the body is no JSON-RPC message: {malformed.reason}")
            return []
        return messages

    def _read(self, request: Request) -> list[Message]:
        now_ns = self.now_ns()
        frame = Frame(0, now_ns, now_ns, request.body)
        return [message_of(self._capture, CLIENT, frame, piece) for piece in cut(request.body)]


class SendSchedule:
    """A schedule by which clients send what is due.

    `speed` is how many times faster than recorded, 0 being at once; `now_ns` is the mock's clock.
    """

    __slots__ = ("_now_ns", "_put_off", "_timer")

    def __init__(self, speed: float, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._put_off: PutOffSends[LiveClient] = PutOffSends(speed)
        self._timer: asyncio.TimerHandle | None = None

    def play(self, client: LiveClient, sends: Sequence[ScheduledSend]) -> None:
        """Have `client` send what is due at once, and put off the rest."""
        next_ns = self._put_off.next_ns
        waiting = deque(sends)
        while waiting:
            send = waiting.popleft()
            if self._put_off.must_wait(send):
                self._put_off.add(send, client, self._now_ns())
            elif client.script.is_due(send):
                waiting.extend(client.send(send))
        if self._put_off.next_ns not in (0, next_ns):
            self._set_timer()

    def close(self) -> None:
        """Drop what is not due yet."""
        self._put_off.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._put_off.next_ns:
            delay_s = max(0, self._put_off.next_ns - self._now_ns()) / 1e9
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._send_due)

    def _send_due(self) -> None:
        now_ns = self._now_ns()
        try:
            while (due := self._put_off.pop(now_ns)) is not None:
                send, client = due
                if client.script.is_due(send):
                    self.play(client, client.send(send))
        finally:
            self._set_timer()


class AcceptLoop:
    """A loop that accepts clients at `listener`, in the running event loop, and makes a `protocol` for each.

    When no descriptor is left, asyncio's own loop tries 1,024 times at once and reports each (CPython 3.11); this one rests.
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


async def serve(listening: Sequence[tuple[ListeningMock, socket.socket]], signals_fd: int, ready: Callable[[], None]) -> None:
    """Serve each mock on its socket until a signal comes on `signals_fd`; `ready` is called once clients can connect."""
    loop = asyncio.get_running_loop()
    is_ending = asyncio.Event()
    mocks = [mock for mock, _ in listening]

    def on_signal(numbers: bytes) -> None:
        for number in numbers:
            signal = name(number)
            for mock in mocks:
                mock.note("signal", f"{signal} received")
                if signal in _ENDING:
                    mock.note_end(signal)
                    is_ending.set()

    def on_fault(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Report a fault of our own, which has ended the connection that it happened on."""
        error = context.get("exception")
        text = fault_text(error) if isinstance(error, BaseException) else str(context.get("message"))
        _log.error("mcpspy: %s", text)
        for mock in mocks:
            mock.note("fault", text, by="mcpspy")

    loop.set_exception_handler(on_fault)
    stop_reading = read_signals(loop, signals_fd, on_signal)
    for mock, listener in listening:
        mock.open(listener)
    try:
        ready()
        await is_ending.wait()
    finally:
        stop_reading()
        for mock in mocks:
            await mock.close()


def _error(response: Response, status: int, code: int, text: str) -> None:
    """Answer with an error as servers on the SDKs write it."""
    body = f'{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"{text}"}}}}'
    response.whole(status, [("Content-Type", "application/json")], body.encode())


def _nowhere(records: object) -> None:
    """Drop records: the sink of a mock that has none."""

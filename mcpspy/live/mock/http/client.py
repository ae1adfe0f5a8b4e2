"""One client of a mock over HTTP: the script that is played to it, and the stream on which each message is sent.

The mock decides when something is due, because it has the clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from ....records import Sink
from ....replay.mock.batches import Batches, batch_member
from ....replay.mock.http.answer import AnswerShape, EventStyle, HttpAnswer
from ....replay.mock.http.recorded_http import HttpFacts
from ....replay.mock.http.routing import Routing, priming
from ....replay.mock.http.session import HttpCursor
from ....replay.mock.miss import Miss
from ....replay.mock.pass_through import PassThrough
from ....replay.mock.scheduled_send import LiveServerBytes, ReplyState, ScheduledSend
from ....replay.mock.script import Script
from ....transcript.mcp.codes import SUBSCRIPTION_ID
from ....transcript.mcp.methods import LISTEN
from ....transcript.mcp.revisions import Era
from ....transcript.model import Kind, Message
from ....wire.json_spans import span_at
from ...http.recorder import note
from .connection import Fields, Response, ignore

SESSION_FIELD: Final = "Mcp-Session-Id"
_SUBSCRIPTION: Final = ("params", "_meta", SUBSCRIPTION_ID)


MAX_KEPT: Final = 1_000
MAX_KEPT_BYTES: Final = 8 << 20
"""Bytes held for a client that opens no stream or does not read it, and for resuming; the oldest are dropped."""


class MockContext(Protocol):
    """The mock that plays to all clients."""

    facts: HttpFacts
    routing: Routing
    sink: Sink
    tell: Callable[[Miss], None]

    def now_ns(self) -> int:
        """Return the nanoseconds since the capture began."""

    def play(self, client: LiveClient, sends: Sequence[ScheduledSend]) -> None:
        """Have a client send these when they are due."""

    def lose(self, client: LiveClient) -> None:
        """End a session as the recorded one was lost: the next client that opens a session continues its script."""

    def forget(self, client: LiveClient) -> None:
        """Forget a client that has left."""


class LiveUpstream(Protocol):
    """The live server that answers a client from a miss on."""

    @property
    def is_live(self) -> bool:
        """True once the live server answers instead of the capture."""

    def carry(self) -> None:
        """Send what is due to the server."""

    def close(self) -> object:
        """End the session with the server."""


class LiveClient:
    """A client of the mock, with its `session` if it has one.

    `has_one_stream` means that it gets everything on the server stream (HTTP+SSE), `has_initialized` that it opened with
    `initialize`, `is_greeted` that its stream without a session got what the server sent first, `is_modern` that its latest request
    is of the modern era, `is_primed` that it speaks a revision in which streams begin with an event without a message.
    """

    __slots__ = (
        "_batches", "_mock", "_responses", "_sent", "_style", "_subscriptions", "_waiting", "cursor", "has_initialized",
        "has_one_stream", "is_greeted", "is_modern", "is_primed", "live_server", "script", "server_stream", "session",
    )  # fmt: skip

    def __init__(
        self,
        mock: MockContext,
        script: Script | PassThrough,
        cursor: HttpCursor,
        *,
        session: str = "",
        has_one_stream: bool = False,
    ) -> None:
        self._mock = mock
        self._style: EventStyle = mock.facts.event_style
        self.script = script
        self.cursor = cursor
        self.session = session
        self.has_one_stream = has_one_stream
        self.has_initialized = False
        self.is_greeted = False
        self.is_modern = False
        self.is_primed = False
        self.server_stream = ServerStream()
        self.live_server: LiveUpstream | None = None
        """The server that answers from a miss on, if there is to be one."""
        self._batches = Batches(joins=False)
        self._responses: dict[ReplyState, PostResponse] = {}
        self._subscriptions: dict[str, PostResponse] = {}
        """The responses to subscriptions, by the ids of their requests."""
        self._sent = SentEvents()
        self._waiting: deque[tuple[list[Message], Response]] = deque()
        """Messages that came while the client did not read its stream."""

    @property
    def fields(self) -> Fields:
        """The fields of every response to this client."""
        return [(SESSION_FIELD, self.session)] if self.session and not self.has_one_stream else []

    @property
    def is_full(self) -> bool:
        """True if it is behind with reading."""
        responses = (post.response for post in self._responses.values())
        return self.server_stream.is_full or any(response is not None and response.is_full for response in responses)

    # Requests

    def post(self, messages: list[Message], response: Response) -> None:
        """Take a POST with messages."""
        if self.has_one_stream and self.server_stream.is_full:  # it does not read its answers, so it has to wait
            self._waiting.append((messages, response))
            return
        requests = [message for message in messages if message.kind is Kind.REQUEST]
        if self.has_one_stream or not requests:
            write_answer(response, self._mock.facts.accepted, self.fields)
            sends, _ = self._feed(messages)
            self._mock.play(self, sends)
            return
        self.is_modern = any(request.era is Era.MODERN for request in requests)
        ids = [request.id or "null" for request in requests]
        post = PostResponse(response, self.fields, ids, is_modern=self.is_modern)
        response.on_left = lambda: self._on_left(post)
        response.outlasts_request = not self.is_modern  # where leaving cancels nothing
        sends, is_recorded = self._feed(messages, post)
        self._begin(post, sends, is_batch=bool(requests[0].batch), is_recorded=is_recorded)
        self._mock.play(self, sends)

    def open_server_stream(self, response: Response, events: Sequence[bytes] = ()) -> None:
        """Begin the server stream on this response."""
        response.on_left = self._on_server_stream_left
        response.on_drained = self._on_drained
        self._begin_stream(response, events)
        self.server_stream.open(response)

    def resume(self, after: str, response: Response) -> bool:
        """Continue the stream of the event with this id on `response`. Returns False if no such event was sent."""
        missed = self._sent.after(after)
        if missed is None:
            return False
        stream, events = missed
        earlier, stream.response = stream.response, None
        if earlier is not None:  # on a connection that is gone without our knowing
            earlier.on_left = ignore
            earlier.end()
        if isinstance(stream, ServerStream):
            stream.clear()  # what it holds is among these events
            self.open_server_stream(response, events)
            return True
        self._begin_stream(response, events)
        if not stream.waiting:
            response.end()
            return True
        stream.response = response
        response.on_left = lambda: self._on_left(stream)
        return True

    def _begin_stream(self, response: Response, events: Sequence[bytes]) -> None:
        """Write the head of a stream that a GET opens, with its first events."""
        response.begin(200, [*self._mock.routing.server_stream_fields, *self.fields], events)

    def close(self) -> None:
        """End the session and its streams."""
        self.leave_server()
        self.server_stream.close()
        for response in {id(post): post.response for post in self._responses.values()}.values():
            if response is None:
                continue
            response.on_left = ignore
            if response.has_begun:
                response.end()
            else:
                write_answer(response, self._mock.facts.unknown_session)
        self._responses.clear()
        self._subscriptions.clear()

    def leave_server(self) -> None:
        """End the session with the live server, if there is one."""
        if self.live_server is not None:
            self.live_server.close()

    # Sends

    def send(self, send: ScheduledSend) -> Sequence[ScheduledSend]:
        """Send what is due. Returns the sends that follow without a message of the client."""
        if send.miss is not None:
            self._note("miss", send.miss.sentence)
            self._mock.tell(send.miss)
        if send.exit is not None:
            self._exit(send)
        if not send.data:
            return ()
        post = self._responses.get(send.state)
        is_in_body = not send.answers and self._mock.routing.is_in_body(send)
        if is_in_body and post is None:
            return ()  # the body has gone out whole
        if post is not None and post.is_body and (send.answers or is_in_body):
            self._fill_body(send, post)
            return ()
        line = self._batches.line(send)
        if not line:  # it waits for the rest of its batch
            if post is not None and send.answers:
                post.waiting.remove(send.state.id)
            return ()
        send.data = line
        if send.answers and post is not None:
            self._answer(send, post)
            return ()
        if subscription := self._named_subscription(send):
            post = subscription
        elif post is None or self._mock.routing.is_on_server_stream(send):
            self._send_on_server_stream(send)
            return self.script.skip_unheard(send) if self.server_stream.response is None else ()
        self._cut_stream(send, post)
        parts, post.parts = post.parts, []
        event = b"".join(self._event(part, post) for part in (*parts, send))
        if event and not post.send(event) and not post.keeps:
            self._note_undelivered(send)
        routing = self._mock.routing
        if len(post.waiting) == 1 and routing.ends_unanswered(send):
            post.waiting.clear()
        if not post.waiting and not routing.goes_on_after(send):
            post.end()
            self._forget(post)
        return ()

    def _answer(self, send: ScheduledSend, post: PostResponse) -> None:
        self._subscriptions.pop(send.state.id, None)
        self._cut_stream(send, post)
        goes_on = self._mock.routing.goes_on_after(send)
        is_read = post.conclude(send.state.id, self._event(send, post), goes_on=goes_on)
        if not goes_on:
            self._responses.pop(send.state, None)
        if not post.waiting and not goes_on:
            self._forget(post)
        if not is_read and not post.keeps:
            self._note_undelivered(send)
        if post.ends_session and not post.waiting:
            self._mock.lose(self)

    def _send_on_server_stream(self, send: ScheduledSend) -> None:
        """Send a message that belongs to no open response."""
        if self.is_modern and not self.has_one_stream:
            return  # nobody reads it: the modern era has no such stream
        had_dropped = self.server_stream.dropped
        if not (event := self._event(send, self.server_stream)):
            return
        self.server_stream.send(event)
        if self.server_stream.dropped and not had_dropped:
            self._note("dropped", "too much waits for a stream that nobody opens or reads: the oldest is dropped")

    def _event(self, send: ScheduledSend, stream: PostResponse | ServerStream) -> bytes:
        """Write a message as an event, and keep it if it may have to be sent again."""
        kind, routing = _kind(send.data), self._mock.routing
        if not self._style.ids or self.has_one_stream or self.is_modern:
            return kind(routing.event(send))
        id = self._sent.next_id()
        with_id = kind(routing.event(send, id))
        self._keep(stream, id, with_id)
        return with_id

    def _keep(self, stream: PostResponse | ServerStream, id: str, data: bytes) -> None:
        self._sent.add(stream, id, data)
        if isinstance(stream, PostResponse):
            stream.keeps = True

    # Responses

    def _feed(self, messages: list[Message], post: PostResponse | None = None) -> tuple[list[ScheduledSend], bool]:
        """Give messages to the script. Return what follows, and whether they are a batch that was recorded so."""
        sends: list[ScheduledSend] = []
        members: list[ReplyState] = []
        for message in messages:
            after = self.script.feed(message)
            sends += after
            if message.kind is not Kind.REQUEST:
                continue
            member = batch_member(self.script, message.id or "null", after) if message.batch else None
            members += [] if member is None else [member]
            if post is not None:
                self._responses.update((send.state, post) for send in after)
                if message.method == LISTEN:
                    self._subscriptions[message.id or "null"] = post
        return sends, bool(members) and self._batches.add(members)

    def _begin(self, post: PostResponse, sends: list[ScheduledSend], *, is_batch: bool, is_recorded: bool) -> None:
        shape = self._mock.routing.shape([send for send in sends if self._responses.get(send.state) is post])
        if is_batch and not (is_recorded and shape.requests == len(post.waiting)):
            shape = shape.as_stream()._replace(status=200)
        events: list[bytes] = []
        if shape.is_stream and self._style.primes and self.is_primed and not self.is_modern:
            id = self._sent.next_id()
            events.append(priming(self._style, id))
            self._keep(post, id, events[0])
        post.begin(shape, events)

    def _fill_body(self, send: ScheduledSend, post: PostResponse) -> None:
        """Put a message into a body, which goes out with the last answer."""
        post.parts.append(send)
        if not send.answers:
            return
        post.waiting.remove(send.state.id)
        if post.waiting:
            return
        if not post.conclude_body(self._mock.routing.body(send, post.parts)):
            self._note_undelivered(send)
        self._forget(post)
        if post.ends_session:
            self._mock.lose(self)

    def _cut_stream(self, send: ScheduledSend, post: PostResponse) -> None:
        """End a stream before its answer where the recorded server did, so that the client resumes it."""
        response = post.response
        if post.keeps and response is not None and response.has_begun and self._mock.routing.breaks_off(send):
            post.response = None
            response.on_left = ignore
            response.end()

    def _named_subscription(self, send: ScheduledSend) -> PostResponse | None:
        """Return the response to the subscription that a notification names."""
        if not self._subscriptions or SUBSCRIPTION_ID.encode() not in send.data:
            return None
        span = span_at(send.data, _SUBSCRIPTION)
        return None if span is None else self._subscriptions.get(send.data[span[0] : span[1]].decode("utf-8", "replace"))

    def _on_left(self, post: PostResponse) -> None:
        """Take note that the client closed a response before its end, which in the modern era cancels the request."""
        post.response = None
        if not post.is_modern:
            return
        for id in post.waiting:
            self._mock.play(self, self.script.cancel(id))
        self._forget(post)

    def _forget(self, closed: PostResponse) -> None:
        """Forget a response that is over: what still comes for its requests goes elsewhere."""
        self._responses = {state: post for state, post in self._responses.items() if post is not closed}
        if self._subscriptions:
            self._subscriptions = {id: post for id, post in self._subscriptions.items() if post is not closed}

    def _on_server_stream_left(self) -> None:
        self.server_stream.response = None
        if self.has_one_stream:
            self._mock.forget(self)
        while self._waiting:
            _, response = self._waiting.popleft()
            if response.is_open:
                write_answer(response, self._mock.facts.unknown_session)

    def _on_drained(self) -> None:
        self.server_stream.drain()
        while self._waiting and not self.server_stream.is_full:
            messages, response = self._waiting.popleft()
            if response.is_open:
                self.post(messages, response)

    def _exit(self, send: ScheduledSend) -> None:
        """Drop the client's connection and session, as the recorded server's exit did."""
        self._note("ended", "the recorded server ended here")
        post = self._responses.pop(send.state, None)
        response = self.server_stream.response if self.has_one_stream else None if post is None else post.response
        self._mock.forget(self)
        if response is not None:
            response.break_off()

    def _note_undelivered(self, send: ScheduledSend) -> None:
        name = send.step.message.method if send.step is not None and send.step.message.method else "an answer"
        self._note("undelivered", f"{name} came for a client that had left")

    def _note(self, topic: str, text: str) -> None:
        self._mock.sink((note(self._mock.now_ns(), topic, text, 0),))


def _kind(data: bytes) -> type[bytes]:
    return LiveServerBytes if isinstance(data, LiveServerBytes) else bytes


def write_answer(response: Response, answer: HttpAnswer, fields: Sequence[tuple[str, str]] = ()) -> None:
    """Write an answer that HTTP alone decides."""
    response.whole(answer.status, [*answer.fields, *fields], answer.body, reason=answer.reason)


class PostResponse:
    """The response to a POST with requests. `waiting` are the ids of those without an answer.

    `response` is None once it has ended or was cut off; `keeps` means that what comes after that is kept for a client that resumes.
    `parts` are the messages that wait for the end of a body.
    """

    __slots__ = ("_fields", "_shape", "is_modern", "keeps", "parts", "response", "waiting")

    def __init__(self, response: Response, fields: Fields, waiting: list[str], *, is_modern: bool) -> None:
        self.response: Response | None = response
        self.waiting = waiting
        self.is_modern = is_modern
        self.keeps = False
        self.parts: list[ScheduledSend] = []
        self._fields = fields
        self._shape: AnswerShape

    @property
    def ends_session(self) -> bool:
        """True if the session ends with the answer."""
        return self._shape.ends_session

    @property
    def is_body(self) -> bool:
        """True if it answers with a body, so far."""
        return not self._shape.is_stream

    def begin(self, shape: AnswerShape, events: Sequence[bytes]) -> None:
        """Set how to answer; a stream begins at once, as from a server that does not know how long it will take."""
        self._shape = shape
        if shape.is_stream and self.response is not None:
            self.response.begin(shape.status, [*shape.fields, *self._fields], events)

    def send(self, event: bytes) -> bool:
        """Send an event that is no answer. Returns False if nobody reads it."""
        if self.response is None:
            return False
        if not self.response.has_begun:
            self._begin_late(self.response)
        self.response.send(event)
        return True

    def conclude_body(self, body: bytes) -> bool:
        """Answer with a body. Returns False if nobody reads it."""
        response, self.response = self.response, None
        if response is not None:
            response.whole(self._shape.status, [*self._shape.fields, *self._fields], body)
        return response is not None

    def conclude(self, id: str, event: bytes, *, goes_on: bool) -> bool:
        """Answer the request with this id in an event; `goes_on` keeps the stream open. Returns False if nobody reads it."""
        if id in self.waiting:
            self.waiting.remove(id)
        response = self.response
        if response is None:
            return False
        if self.waiting or goes_on:
            response.send(event)
        else:
            self.response = None
            response.end(event)
        return True

    def end(self) -> None:
        """End a stream that went on after its answers."""
        response, self.response = self.response, None
        if response is not None:
            response.end()

    def _begin_late(self, response: Response) -> None:
        self._shape = self._shape.as_stream()
        response.begin(self._shape.status, [*self._shape.fields, *self._fields])


class ServerStream:
    """The stream that belongs to no request, opened by a GET. What is sent before that, or faster than it is read, is held."""

    __slots__ = ("_kept", "_kept_bytes", "dropped", "response")

    def __init__(self) -> None:
        self.response: Response | None = None
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self.dropped = 0
        """Number of events dropped because too many were held."""

    @property
    def is_full(self) -> bool:
        """True if its reader is behind."""
        return self.response is not None and self.response.is_full

    def open(self, response: Response) -> None:
        """Write on `response`, which has begun, what is held."""
        self.response = response
        self.drain()

    def send(self, event: bytes) -> None:
        """Send an event, or hold it."""
        if self.response is not None and not self.response.is_full and not self._kept:
            self.response.send(event)
            return
        self._kept.append(event)
        self._kept_bytes += len(event)
        while len(self._kept) > MAX_KEPT or (self._kept_bytes > MAX_KEPT_BYTES and len(self._kept) > 1):
            self._kept_bytes -= len(self._kept.popleft())
            self.dropped += 1

    def drain(self) -> None:
        """Send what is held, as far as the reader takes it."""
        while self._kept and self.response is not None and not self.response.is_full:
            event = self._kept.popleft()
            self._kept_bytes -= len(event)
            self.response.send(event)

    def clear(self) -> None:
        """Drop what is held."""
        self._kept.clear()
        self._kept_bytes = 0

    def close(self) -> None:
        """End the stream, with its session."""
        if self.response is not None:
            response, self.response = self.response, None
            response.end()


class SentEvents:
    """The latest events with ids that one client got, for a client that resumes a stream."""

    __slots__ = ("_bytes", "_events", "_last")

    def __init__(self) -> None:
        self._events: deque[tuple[PostResponse | ServerStream, str, bytes]] = deque()
        self._bytes = 0
        self._last = 0

    def next_id(self) -> str:
        """Return an id that no other event of this client has."""
        self._last += 1
        return str(self._last)

    def add(self, stream: PostResponse | ServerStream, id: str, event: bytes) -> None:
        self._events.append((stream, id, event))
        self._bytes += len(event)
        while len(self._events) > MAX_KEPT or self._bytes > MAX_KEPT_BYTES:
            self._bytes -= len(self._events.popleft()[2])

    def after(self, id: str) -> tuple[PostResponse | ServerStream, list[bytes]] | None:
        """Return the stream of the event with this id, and the events after it on that stream; None if the id is unknown."""
        events = list(self._events)
        at = next((at for at, (_, known, _) in enumerate(events) if known == id), None)
        if at is None:
            return None
        stream = events[at][0]
        return stream, [event for other, _, event in events[at + 1 :] if other is stream]

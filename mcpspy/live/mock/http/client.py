"""One live client of a mock over HTTP: the script that is played to it, and on which of its streams it hears what.

Refuses to know when something is due: `Stage` does, which has the clock.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from ....replay.mock.http.routing import event, priming
from ....replay.mock.scheduled_send import LiveServerBytes
from ....transcript.mcp.codes import SUBSCRIPTION_ID
from ....transcript.mcp.methods import LISTEN
from ....transcript.mcp.revisions import Era
from ....transcript.model import Kind
from ....wire.json_spans import span_at
from ...http.recorder import note
from .streams import PostResponse, SentEvents, ServerStream, begin_stream, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ....records import Sink
    from ....replay.mock.http.answer import EventStyle, HttpAnswer
    from ....replay.mock.http.recorded_http import HttpFacts
    from ....replay.mock.http.routing import Routing
    from ....replay.mock.http.session import HttpCursor
    from ....replay.mock.miss import Miss
    from ....replay.mock.pass_through import PassThrough
    from ....replay.mock.scheduled_send import ReplyState, ScheduledSend
    from ....replay.mock.script import Script
    from ....transcript.model import Message
    from .pass_through import ClientPassThrough
    from .response import Fields, Response

SESSION_FIELD: Final = "Mcp-Session-Id"
_SUBSCRIPTION: Final = ("params", "_meta", SUBSCRIPTION_ID)


class Stage(Protocol):
    """Where all live clients are played to."""

    facts: HttpFacts
    routing: Routing
    sink: Sink
    tell: Callable[[Miss], None]

    def now_ns(self) -> int:
        """Nanoseconds since the capture began."""

    def play(self, client: LiveClient, cues: Sequence[ScheduledSend]) -> None:
        """Have these said when they are due."""

    def lose(self, client: LiveClient) -> None:
        """The session is no more, as the recorded one was: who opens the next one goes on in its place."""

    def forget(self, client: LiveClient) -> None:
        """The client has left."""


class LiveClient:
    """A client, with its `session` if it has one. `is_on_one_stream`: it is one of HTTP+SSE, and hears all on the standing stream.

    `has_initialized` says that it opened with `initialize`; `is_modern`, that what it asked last is of the modern era; `is_primed`,
    that it speaks a revision in which streams begin with an event that has no message.
    """

    __slots__ = (
        "_listens", "_replies", "_sent", "_stage", "_style", "_waiting", "has_initialized", "is_modern", "is_on_one_stream",
        "is_primed", "script", "session", "standing", "walk", "way",
    )  # fmt: skip

    def __init__(
        self, stage: Stage, script: Script | PassThrough, walk: HttpCursor, *, session: str = "", is_on_one_stream: bool = False
    ) -> None:
        self._stage = stage
        self._style: EventStyle = stage.facts.event_style
        self.script = script
        self.walk = walk
        self.session = session
        self.is_on_one_stream = is_on_one_stream
        self.has_initialized = False
        self.is_modern = False
        self.is_primed = False
        self.standing = ServerStream()
        self.way: ClientPassThrough | None = None
        """To the live server that goes on after a miss, if that is wanted."""
        self._replies: dict[ReplyState, PostResponse] = {}
        self._listens: dict[str, PostResponse] = {}
        """The responses to subscriptions, by their ids."""
        self._sent = SentEvents()
        self._waiting: deque[tuple[list[Message], Response]] = deque()
        """What it says while it does not read what it is told."""

    @property
    def fields(self) -> Fields:
        """What every response to it has."""
        return [(SESSION_FIELD, self.session)] if self.session and not self.is_on_one_stream else []

    @property
    def is_full(self) -> bool:
        """Whether it is behind with reading what it is told."""
        return self.standing.is_full or any(one.response is not None and one.response.is_full for one in self._replies.values())

    # What it says

    def hear(self, messages: list[Message], response: Response) -> None:
        """A POST of messages."""
        if self.is_on_one_stream and self.standing.is_full:  # it does not read what it asks for, so it is asked to wait
            self._waiting.append((messages, response))
            return
        requests = [one for one in messages if one.kind is Kind.REQUEST]
        if self.is_on_one_stream or not requests:
            answer(response, self._stage.facts.accepted, self.fields)
            self._stage.play(self, [cue for one in messages for cue in self.script.feed(one)])
            return
        self.is_modern = any(one.era is Era.MODERN for one in requests)
        is_batch = any(one.batch for one in messages)
        waiting = [one.id or "null" for one in requests]
        reply = PostResponse(response, self.fields, waiting, is_batch=is_batch, is_modern=self.is_modern)
        response.left = lambda: self._left(reply)
        cues = [cue for one in messages for cue in self._fed(one, reply)]
        self._begin(reply, cues, is_batch=is_batch)
        self._stage.play(self, cues)

    def stand(self, response: Response, events: Sequence[bytes] = ()) -> None:
        """It opens the standing stream."""
        response.left = self._standing_left
        response.drained = self._drained
        begin_stream(response, [*self._stage.routing.server_stream_fields, *self.fields], events)
        self.standing.open(response)

    def resume(self, after: str, response: Response) -> bool:
        """It comes for what it missed of a stream after this event. Whether there was such an event."""
        found = self._sent.after(after)
        if found is None:
            return False
        stream, events = found
        before, stream.response = stream.response, None
        if before is not None:  # of a connection that is gone, though nobody has told us
            before.left = _nothing
            before.end()
        if isinstance(stream, ServerStream):
            stream.clear()  # what waits is among these
            self.stand(response, events)
            return True
        begin_stream(response, [*self._stage.routing.server_stream_fields, *self.fields], events)
        if not stream.waiting:
            response.end()
            return True
        stream.response = response
        response.left = lambda: self._left(stream)
        return True

    def close(self) -> None:
        """Its session is over."""
        self.leave_server()
        self.standing.close()
        for reply in {id(one): one for one in self._replies.values()}.values():
            if reply.response is None:
                continue
            reply.response.left = _nothing
            if reply.response.has_begun:
                reply.response.end()
            else:
                answer(reply.response, self._stage.facts.unknown_session)
        self._replies.clear()
        self._listens.clear()

    def leave_server(self) -> None:
        """Its session with a live server is over, if it had one."""
        if self.way is not None:
            self.way.close()

    # What it is told

    def say(self, cue: ScheduledSend) -> Sequence[ScheduledSend]:
        """What is due now. Returns what follows on it, without a word of the client's."""
        if cue.miss is not None:
            self._note("miss", cue.miss.sentence)
            self._stage.tell(cue.miss)
        if cue.exit is not None:
            self._leave(cue)
        if not cue.data:
            return ()
        reply = self._replies.get(cue.state)
        if cue.answers and reply is not None:
            self._conclude(cue, reply)
            return ()
        if subscription := self._named_subscription(cue):
            reply = subscription
        elif reply is None or self._stage.routing.is_on_server_stream(cue):
            self._say_standing(cue.data)
            return self.script.skip_unheard(cue) if self.standing.response is None else ()
        self._break_off(cue, reply)
        if not reply.tell(self._event(cue.data, reply)) and not reply.keeps:
            self._undelivered(cue)
        return ()

    def _conclude(self, cue: ScheduledSend, reply: PostResponse) -> None:
        self._replies.pop(cue.state, None)
        self._listens.pop(cue.state.id, None)
        self._break_off(cue, reply)
        is_heard = reply.conclude(cue.state.id, cue.data, self._event(cue.data, reply))
        if not reply.waiting:
            self._forget(reply)
        if not is_heard and not reply.keeps:
            self._undelivered(cue)
        if reply.ends_session and not reply.waiting:
            self._stage.lose(self)

    def _say_standing(self, data: bytes) -> None:
        """Say what belongs to no response that is open."""
        if self.is_modern and not self.is_on_one_stream:
            return  # nobody hears it: the modern era has no such stream
        had_dropped = self.standing.dropped
        self.standing.tell(self._event(data, self.standing))
        if self.standing.dropped and not had_dropped:
            self._note("dropped", "too much waits for a stream that nobody opens or reads: the oldest is dropped")

    def _event(self, data: bytes, stream: PostResponse | ServerStream) -> bytes:
        """The event that says it, kept where it may have to be said again."""
        kind = LiveServerBytes if isinstance(data, LiveServerBytes) else bytes
        if not self._style.ids or self.is_on_one_stream or self.is_modern:
            return kind(event(data, self._style))
        id = self._sent.next_id()
        made = kind(event(data, self._style, id))
        self._keep(stream, id, made)
        return made

    def _keep(self, stream: PostResponse | ServerStream, id: str, made: bytes) -> None:
        self._sent.add(stream, id, made)
        if isinstance(stream, PostResponse):
            stream.keeps = True

    # Responses

    def _fed(self, message: Message, reply: PostResponse) -> list[ScheduledSend]:
        cues = self.script.feed(message)
        if message.kind is Kind.REQUEST:
            self._replies.update((cue.state, reply) for cue in cues)
            if message.method == LISTEN:
                self._listens[message.id or "null"] = reply
        return cues

    def _begin(self, reply: PostResponse, cues: list[ScheduledSend], *, is_batch: bool) -> None:
        shape = self._stage.routing.shape([cue for cue in cues if self._replies.get(cue.state) is reply])
        if is_batch:
            shape = shape._replace(status=200, is_stream=True)
        events: list[bytes] = []
        if shape.is_stream and self._style.primes and self.is_primed and not self.is_modern:
            id = self._sent.next_id()
            events.append(priming(self._style, id))
            self._keep(reply, id, events[0])
        reply.begin(shape, events)

    def _break_off(self, cue: ScheduledSend, reply: PostResponse) -> None:
        """End a response as the server did that let its client come for the rest."""
        response = reply.response
        if reply.keeps and response is not None and response.has_begun and self._stage.routing.breaks_off(cue):
            reply.response = None
            response.left = _nothing
            response.end()

    def _named_subscription(self, cue: ScheduledSend) -> PostResponse | None:
        """The response to the subscription that this is news of."""
        if not self._listens or SUBSCRIPTION_ID.encode() not in cue.data:
            return None
        found = span_at(cue.data, _SUBSCRIPTION)
        return None if found is None else self._listens.get(cue.data[found[0] : found[1]].decode("utf-8", "replace"))

    def _left(self, reply: PostResponse) -> None:
        """It closed a response before its end: in the modern era that gives the request up."""
        reply.response = None
        if not reply.is_modern:
            return
        for id in reply.waiting:
            self._stage.play(self, self.script.cancel(id))
        self._forget(reply)

    def _forget(self, reply: PostResponse) -> None:
        """It is over: what still comes of its requests has to go elsewhere."""
        self._replies = {playing: one for playing, one in self._replies.items() if one is not reply}
        if self._listens:
            self._listens = {id: one for id, one in self._listens.items() if one is not reply}

    def _standing_left(self) -> None:
        self.standing.response = None
        if self.is_on_one_stream:
            self._stage.forget(self)
        while self._waiting:
            _, response = self._waiting.popleft()
            if response.is_open:
                answer(response, self._stage.facts.unknown_session)

    def _drained(self) -> None:
        self.standing.drain()
        while self._waiting and not self.standing.is_full:
            messages, response = self._waiting.popleft()
            if response.is_open:
                self.hear(messages, response)

    def _leave(self, cue: ScheduledSend) -> None:
        """The recorded server died of this: its client loses the connection, and its session."""
        self._note("ended", "the recorded server ended here")
        reply = self._replies.pop(cue.state, None)
        response = self.standing.response if self.is_on_one_stream else None if reply is None else reply.response
        self._stage.forget(self)
        if response is not None:
            response.break_off()

    def _undelivered(self, cue: ScheduledSend) -> None:
        what = cue.step.message.method if cue.step is not None and cue.step.message.method else "an answer"
        self._note("undelivered", f"{what} came for a client that had left")

    def _note(self, topic: str, text: str) -> None:
        self._stage.sink((note(self._stage.now_ns(), topic, text, 0),))


def answer(response: Response, said: HttpAnswer, fields: Sequence[tuple[str, str]] = ()) -> None:
    """Write what HTTP says alone."""
    response.whole(said.status, merged((), [*said.fields, *fields]), said.body, reason=said.reason)


def _nothing() -> None:
    """What is done when a stream is ended by us."""

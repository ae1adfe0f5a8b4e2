"""One live client of a mock over HTTP: the script that is played to it, and on which of its streams it hears what.

Refuses to know when something is due: `Stage` does, which has the clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ..replay.routing import Answer, respelled
from ..transcript.mcp_codes import SUBSCRIPTION_ID
from ..transcript.mcp_methods import LISTEN
from ..transcript.mcp_revisions import Era
from ..transcript.model import Kind
from ..wire.places import place
from .mock_http_streams import Reply, Sent, Standing
from .recording import note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..records import Sink
    from ..replay.miss import Miss
    from ..replay.routing import Routing
    from ..replay.script import Cue, Playing, Script
    from ..transcript.model import Message
    from .mock_http_response import Fields, Response

SESSION_FIELD: Final = "Mcp-Session-Id"
_SUBSCRIPTION: Final = ("params", "_meta", SUBSCRIPTION_ID)


class Stage(Protocol):
    """Where all live clients are played to."""

    routing: Routing
    sink: Sink
    tell: Callable[[Miss], None]

    def now_ns(self) -> int:
        """Nanoseconds since the capture began."""

    def play(self, client: LiveClient, cues: Sequence[Cue]) -> None:
        """Have these said when they are due."""

    def cancelled(self, id: str) -> Message:
        """What a client says that gives this request up."""


class LiveClient:
    """A client, with its `session` if it has one. `is_on_one_stream`: it is one of HTTP+SSE, and hears all on the standing stream."""

    __slots__ = (
        "_listens", "_replies", "_sent", "_stage", "_waiting", "has_initialized", "is_modern", "is_on_one_stream", "name", "script",
        "session", "standing",
    )  # fmt: skip

    def __init__(
        self, stage: Stage, script: Script, *, session: str = "", name: str = "", is_on_one_stream: bool = False
    ) -> None:
        self._stage = stage
        self.script = script
        self.session = session
        self.name = name
        self.is_on_one_stream = is_on_one_stream
        self.is_modern = False
        self.has_initialized = False
        self.standing = Standing()
        self._replies: dict[Playing, Reply] = {}
        self._listens: dict[str, Reply] = {}
        """The responses to subscriptions, by their ids."""
        self._sent = Sent()
        self._waiting: list[tuple[list[Message], Response]] = []
        """What it says while it does not read what it is told."""

    @property
    def fields(self) -> Fields:
        """What every response to it has."""
        return [(SESSION_FIELD, self.session)] if self.session and not self.is_on_one_stream else []

    # What it says

    def hear(self, messages: list[Message], response: Response) -> None:
        """A POST of messages."""
        if self.is_on_one_stream:
            if self.standing.is_full:  # it does not read what it asks for, so it is asked to wait
                self._waiting.append((messages, response))
                return
            response.whole(202, [], b"Accepted")
            self._stage.play(self, [cue for one in messages for cue in self.script.feed(one)])
            return
        requests = [one for one in messages if one.kind is Kind.REQUEST]
        if not requests:
            response.whole(202, self.fields)
            self._stage.play(self, [cue for one in messages for cue in self.script.feed(one)])
            return
        self.is_modern = any(one.era is Era.MODERN for one in requests)
        reply = Reply(
            response,
            self.fields,
            [one.id or "null" for one in requests],
            is_batch=any(one.batch for one in messages),
            is_modern=self.is_modern,
        )
        cues = [cue for one in messages for cue in self._fed(one, reply)]
        response.left = lambda: self._left(reply)
        self._begin(reply, cues)
        self._stage.play(self, cues)

    def stand(self, response: Response, events: Sequence[bytes] = ()) -> None:
        """It opens the standing stream."""
        response.begin(200, self.fields, events)
        self.standing.open(response)
        if self.is_on_one_stream:
            drain = response.drained
            response.drained = lambda: self._drained(drain)

    def resume(self, after: str, response: Response) -> bool:
        """It comes for what it missed of a stream after this event. Whether there was such an event."""
        found = self._sent.after(after)
        if found is None:
            return False
        stream, events = found
        if isinstance(stream, Standing):
            if stream.response is not None:  # of a connection that is gone, though nobody has told us
                stream.response.left = _nothing
                stream.response.end()
            self.stand(response, events)
            return True
        response.begin(200, self.fields, events)
        if not stream.waiting:
            response.end()
            return True
        stream.response = response
        response.left = lambda: self._left(stream)
        return True

    def close(self) -> None:
        """Its session is over."""
        self.standing.close()
        for reply in {id(one): one for one in self._replies.values()}.values():
            if reply.response is not None and reply.response.has_begun:
                reply.response.left = _nothing
                reply.response.end()
        self._replies.clear()

    # What it is told

    def say(self, cue: Cue) -> None:
        """What is due now."""
        if cue.miss is not None:
            self._miss(cue)
        if cue.leave is not None:
            self._leave(cue)
        if not cue.data:
            return
        reply = self._replies.get(cue.playing)
        routing = self._stage.routing
        id = self._sent.live_id(routing.event_id(cue))
        said = routing.event(cue, id, cue.data)
        if cue.answers and reply is not None:
            self._conclude(cue, reply, id, said)
            return
        reply = self._named_subscription(cue) or reply
        if reply is None or routing.is_standing(cue):
            self._stand(said, id)
            return
        self._break_off(cue, reply)
        self._keep(reply, id, said)
        if not reply.say(said) and not reply.keeps:
            self._undelivered(cue)

    def _fed(self, message: Message, reply: Reply) -> list[Cue]:
        cues = self.script.feed(message)
        for cue in cues:
            if cue.playing.request is message:
                self._replies[cue.playing] = reply
                if message.method == LISTEN:
                    self._listens[cue.playing.id] = reply
        return cues

    def _begin(self, reply: Reply, cues: list[Cue]) -> None:
        if reply.is_batch or len(reply.waiting) > 1:
            reply.begin(Answer(is_stream=True), ())
            return
        own = [cue for cue in cues if self._replies.get(cue.playing) is reply]
        answer = self._stage.routing.answer(own[0].playing, own) if own else Answer(is_stream=True)
        prelude: list[bytes] = []
        for one, id in answer.prelude:
            live = self._sent.live_id(id)
            prelude.append(respelled(one, live))
            self._keep(reply, live, prelude[-1])
        reply.begin(answer, tuple(prelude))

    def _conclude(self, cue: Cue, reply: Reply, id: str | None, said: bytes) -> None:
        self._break_off(cue, reply)
        self._replies.pop(cue.playing, None)
        self._listens.pop(cue.playing.id, None)
        self._keep(reply, id, said)
        if not reply.conclude(cue.playing.id, cue.data, said) and not reply.keeps:
            self._undelivered(cue)

    def _break_off(self, cue: Cue, reply: Reply) -> None:
        """End a response as the server did that let its client come for the rest."""
        if reply.keeps and reply.response is not None and self._stage.routing.breaks_off(cue) and reply.response.has_begun:
            response, reply.response = reply.response, None
            response.left = _nothing
            response.end()

    def _keep(self, stream: Reply | Standing, id: str | None, said: bytes) -> None:
        if id is not None:
            self._sent.add(stream, id, said)
            if isinstance(stream, Reply):
                stream.keeps = True

    def _stand(self, said: bytes, id: str | None) -> None:
        """Say on the standing stream what belongs to no response that is open."""
        if self.is_modern and not self.is_on_one_stream:
            return  # nobody hears it: the modern era has no such stream
        self._keep(self.standing, id, said)
        had_dropped = self.standing.dropped
        self.standing.tell(said)
        if self.standing.dropped and not had_dropped:
            self._note("dropped", "too much waits for a stream that nobody opens or reads: the oldest is dropped")

    def _named_subscription(self, cue: Cue) -> Reply | None:
        """The response to the subscription that this is news of."""
        if not self._listens or SUBSCRIPTION_ID.encode() not in cue.data:
            return None
        found = place(cue.data, _SUBSCRIPTION)
        return None if found is None else self._listens.get(cue.data[found[0] : found[1]].decode("utf-8", "replace"))

    def _left(self, reply: Reply) -> None:
        """It closed a response before its end: in the modern era that gives the request up."""
        reply.response = None
        if not reply.is_modern:
            return
        for id in reply.waiting:
            self._stage.play(self, self.script.feed(self._stage.cancelled(id)))
        self._replies = {playing: one for playing, one in self._replies.items() if one is not reply}
        self._listens = {id: one for id, one in self._listens.items() if one is not reply}

    def _leave(self, cue: Cue) -> None:
        """The recorded server died of this."""
        self._note("leave", "the recorded server ended here")
        reply = self._replies.pop(cue.playing, None)
        response = self.standing.response if self.is_on_one_stream else None if reply is None else reply.response
        if response is not None:
            response.left = _nothing
            response.break_off()

    def _miss(self, cue: Cue) -> None:
        assert cue.miss is not None
        text = cue.miss.sentence
        self._note("miss", text)
        self._stage.tell(cue.miss)

    def _undelivered(self, cue: Cue) -> None:
        what = cue.say.message.method if cue.say is not None and cue.say.message.method else "an answer"
        self._note("undelivered", f"{what} came for a client that had left")

    def _note(self, topic: str, text: str) -> None:
        self._stage.sink((note(self._stage.now_ns(), topic, text, 0),))

    def _drained(self, drain: Callable[[], None]) -> None:
        drain()
        while self._waiting and not self.standing.is_full:
            messages, response = self._waiting.pop(0)
            if response.is_open:
                self.hear(messages, response)


def _nothing() -> None:
    """What is done when a stream is ended by us."""

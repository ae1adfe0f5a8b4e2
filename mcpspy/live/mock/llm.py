"""A mock of a model's API: answers prompts that were recorded with the answers that were, streamed as they were.

It hears requests, has the question found, and has the reply played. Refuses to understand prompts: `replay` does. All clients walk
through one recording, since nothing in a prompt says whose it is but what it holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...errors import UpstreamError
from ...replay.mock.http.answer import playable_fields
from ...replay.mock.miss import Miss
from ...replay.mock.recorded_prompts import api_error, prompt_exchange, scaled_delay_ns, with_scaled_retry
from ...replay.mock.scheduled_send import LiveServerBytes
from ...transcript.http.head import EVENT_STREAM, read_head
from ...transcript.model import Exchange
from ...wire.encodings import decoded
from ...wire.http import Responses
from ...wire.http_body import Body, BodyEnd, OpaqueBytes, RefusedBytes
from ...wire.http_head import ResponseHead
from ...wire.sse import SseEvents
from ..http.recorder import note
from ..upstream.http import HttpTransport, UnreachableError
from .http.server import ListeningMock

if TYPE_CHECKING:
    import ssl

    from ...replay.mock.matching import RequestMatcher
    from ...replay.mock.recorded_prompts import PromptReply, RecordedPrompt
    from .http.connection import Serving
    from .http.response import Request, Response

MISSING = "capture"
"""By what a question is refused whose answer is not in the recording."""

MAX_AT_ONCE = 256
"""So many events are written in one go; then the client is asked whether it keeps up."""

LEFT_S: Final = 1.5
"""How long answers under way are waited for when the mock ends."""

_OWN: Final = frozenset(
    {
        b"host",
        b"content-length",
        b"transfer-encoding",
        b"connection",
        b"keep-alive",
        b"te",
        b"upgrade",
        b"accept-encoding",
        b"expect",
    }
)
"""Fields of a request that are about one connection, and that by which compression is asked for."""


class LlmMock(ListeningMock):
    """Plays `recorded` to whoever asks. Its clock began at `begin_ns` of the monotonic one.

    `finds` knows the questions of it. `plays_nearest` says that a miss is answered with what comes nearest; `forward` is the way to
    a live API, which then answers instead.
    """

    def __init__(
        self,
        recorded: Sequence[RecordedPrompt],
        finds: RequestMatcher,
        *,
        begin_ns: int,
        speed: float = 0.0,
        allowed_hosts: frozenset[str] = frozenset(),
        plays_nearest: bool = False,
        forward: LlmPassThrough | None = None,
        tell: Callable[[Miss], None],
    ) -> None:
        super().__init__(begin_ns=begin_ns, allowed_hosts=allowed_hosts)
        self._recorded: Mapping[int, RecordedPrompt] = {one.exchange.row: one for one in recorded}
        self._walk = finds.cursor()
        self._speed = speed
        self._plays_nearest = plays_nearest
        self._forward = forward
        self._tell = tell

    @property
    def recorded(self) -> list[RecordedPrompt]:
        """What it plays."""
        return list(self._recorded.values())

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{self.own}"

    async def _stop_playing(self) -> None:
        if self._forward is not None:
            await self._forward.close()

    # Requests

    def asked(self, request: Request, response: Response) -> None:
        """A request came, whole."""
        live = prompt_exchange(read_head(request.head.raw), _plain(request), at_ns=self.now_ns()).request
        found = self._walk.match(live)
        if not isinstance(found, Exchange):
            self._missed(found, request, response)
        elif why := self._recorded[found.row].unplayable:
            self._missed(Miss(request=live, reason=why, refused_by=MISSING, nearest=found), request, response)
        else:
            self._play(found, response)

    def _play(self, found: Exchange, response: Response) -> None:
        ReplyPlayback(self._recorded[found.row].reply, response, self._speed).begin()

    def _missed(self, miss: Miss, request: Request, response: Response) -> None:
        if self._forward is not None:
            self._told(miss, response)
            self._forward.ask(self, request, response)
            return
        nearest = miss.nearest if self._plays_nearest else None
        if nearest is None or self._recorded[nearest.row].unplayable:
            self._told(miss, response)
            refuse(request, response, miss)
            return
        again = self._walk.match(nearest.request)  # so that it is the next of several answers
        played = again if isinstance(again, Exchange) and not self._recorded[again.row].unplayable else nearest
        self._told(replace(miss, played=played), response)
        self._play(played, response)

    def _told(self, miss: Miss, response: Response) -> None:
        self.sink((note(self.now_ns(), "miss", miss.sentence, 0, response.number),))
        self._tell(miss)


class ReplyPlayback:
    """A reply on its way. `speed` is how many times faster than recorded it is said, 0 being at once."""

    __slots__ = ("_begin_s", "_loop", "_next", "_reply", "_response", "_speed", "_timer")

    def __init__(self, reply: PromptReply, response: Response, speed: float) -> None:
        self._reply = reply
        self._response = response
        self._speed = speed
        self._loop = asyncio.get_running_loop()
        self._begin_s = self._loop.time()
        self._next = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Say what is due now, and the rest when it is."""
        self._response.left = self._left
        self._response.drained = self._go_on
        self._go_on()

    def _left(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _go_on(self) -> None:
        """Say all that is due, as long as the client takes it."""
        if not self._response.is_open or not self._is_due(self._reply.head_ns):
            return
        if not self._reply.is_stream and self._reply.ends == "whole":
            self._say_whole()
            return
        if not self._response.has_begun and self._reply.status:
            fields = list(with_scaled_retry(self._reply.fields, self._speed))
            framing = "sse" if self._reply.is_stream else "body"
            self._response.begin(self._reply.status, fields, framing=framing, reason=self._reply.reason)
        parts = self._reply.parts
        while self._next < len(parts):
            if self._response.is_full:
                return  # `drained` goes on
            until = self._next
            while until < len(parts) and until - self._next < MAX_AT_ONCE and self._is_due(parts[until].delay_ns):
                until += 1
            if until == self._next:
                return  # the timer goes on
            due, self._next = parts[self._next : until], until
            self._response.tell(*(one.data for one in due))
        self._end()

    def _say_whole(self) -> None:
        reply = self._reply
        if reply.parts and not self._is_due(reply.parts[-1].delay_ns):
            return
        body = b"".join(one.data for one in reply.parts)
        self._response.whole(reply.status, list(with_scaled_retry(reply.fields, self._speed)), body, reason=reply.reason)

    def _end(self) -> None:
        if self._reply.ends == "whole":
            self._response.end()
        else:
            self._response.cut_off()

    def _is_due(self, delay_ns: int) -> bool:
        """Whether what was said so long after the question is to be said by now; if not, the timer is set."""
        wait_s = self._begin_s + scaled_delay_ns(delay_ns, self._speed) / 1e9 - self._loop.time()
        if wait_s <= 0:
            return True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(wait_s, self._go_on)
        return False


class LlmPassThrough:
    """The live API at the origin of `url`; `fields` stand in every request in place of what the client put there.

    `tell` takes a sentence for a person.
    """

    def __init__(
        self,
        url: str,
        *,
        fields: Sequence[tuple[bytes, bytes]] = (),
        tls: ssl.SSLContext | None = None,
        tell: Callable[[str], None],
    ) -> None:
        self._wire = HttpTransport(url, sink=lambda records: None, now_ns=lambda: 0, tls=tls)
        self._fields = {name.lower(): (name, value) for name, value in fields}
        self._tell = tell
        self._has_told = False
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, serving: Serving, request: Request, response: Response) -> None:
        """Ask the live API what the mock was asked, and have its answer written on `response`."""
        if not self._has_told:
            self._has_told = True
            text = f"what was never recorded is answered by the live API: {self._wire.origin}"
            self._tell(text)
        serving.sink(
            (note(serving.now_ns(), "pass-through", "from here on the live API answers this prompt", 0, response.number),)
        )
        task = asyncio.get_running_loop().create_task(self._asked(request, response))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait no more for what is under way."""
        self._wire.close()
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LEFT_S)

    async def _asked(self, request: Request, response: Response) -> None:
        relay = Relay(self._head(request), request.body, response)
        try:
            await self._wire.connected(lambda: relay)
        except (UnreachableError, UpstreamError) as error:
            self._tell(f"{self._wire.origin} cannot be reached: {error}")
            if response.is_open:
                text = f"mcpspy: {self._wire.origin} cannot be reached: {error}\n"
                response.whole(502, [("Content-Type", "text/plain; charset=utf-8")], text.encode(), injected=True)
            return
        await relay.is_over.wait()

    def _head(self, request: Request) -> bytes:
        kept = [field for field in request.head.fields if field[0].lower() not in _OWN | self._fields.keys()]
        own = [
            (b"Host", self._wire.origin.host_field.encode()),
            (b"Accept-Encoding", b"identity"),
            (b"Connection", b"close"),
            *([(b"Content-Length", b"%d" % len(request.body))] if request.body or request.method == "POST" else []),
        ]
        lines = [f"{request.method} {request.target} HTTP/1.1".encode("latin-1")]
        lines += [b"%b: %b" % field for field in (*own, *kept, *self._fields.values())]
        return b"\r\n".join([*lines, b"", b""])


class Relay(asyncio.Protocol):
    """One request to the live API, and its answer on the way to the client."""

    def __init__(self, head: bytes, body: bytes, response: Response) -> None:
        self._sent = head + body
        self._method = head.partition(b" ")[0]
        self._response = response
        self._transport: asyncio.Transport | None = None
        self._responses = Responses()
        self._head: ResponseHead | None = None
        self._body: list[bytes] = []
        self._events: SseEvents | None = None
        self.is_over = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._response.left = self._left
        self._response.drained = transport.resume_reading
        self._responses.expect(self._method)
        transport.write(self._sent)

    def data_received(self, data: bytes) -> None:
        for piece in self._responses.feed(data):
            self._take(piece)
        if self._response.is_open and self._response.is_full and self._transport is not None:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        for piece in self._responses.close():
            self._take(piece)
        if self._response.is_open:
            self._response.left = _nothing
            self._response.cut_off()
        self.is_over.set()

    def _left(self) -> None:
        """The client does not wait for it any more."""
        if self._transport is not None:
            self._transport.abort()

    def _take(self, piece: object) -> None:
        if not self._response.is_open:
            return
        match piece:
            case ResponseHead() if not piece.is_interim:
                self._answered(piece)
            case Body() if self._events is not None:
                self._say(self._events.feed(piece.payload))
            case Body():
                self._body.append(piece.payload)
            case BodyEnd() if self._head is not None:
                self._ended()
                if self._transport is not None:
                    self._transport.close()
            case RefusedBytes() | OpaqueBytes():
                self._response.cut_off()
            case _:
                pass

    def _answered(self, head: ResponseHead) -> None:
        self._head = head
        told = read_head(head.raw)
        if told.media_type == EVENT_STREAM and not told.get("content-encoding"):
            self._events = SseEvents()
            self._response.begin(told.status, list(playable_fields(told)), reason=told.reason)

    def _ended(self) -> None:
        assert self._head is not None
        if self._events is not None:
            self._say(self._events.close())
            self._response.end()
            return
        told = read_head(self._head.raw)
        body = b"".join(self._body)
        try:
            body = decoded(body, told.get("content-encoding").encode("latin-1", "replace"))
        except ValueError:
            self._response.cut_off()
            return
        self._response.whole(told.status, list(playable_fields(told)), LiveServerBytes(body), reason=told.reason)

    def _say(self, events: Sequence[bytes]) -> None:
        if events:
            self._response.tell(*map(LiveServerBytes, events))


def refuse(request: Request, response: Response, miss: Miss) -> None:
    """Answer a miss with an error in the words of the API."""
    error = api_error(miss, is_anthropic=is_anthropic(request))
    response.whole(error.status, [("Content-Type", "application/json")], error.body)


def is_anthropic(request: Request) -> bool:
    """Whether it is Anthropic's API that is asked."""
    return bool(request.value(b"anthropic-version")) or request.path.endswith("/messages")


def _plain(request: Request) -> bytes:
    """The body, its content encoding taken off where that can be done."""
    encoding = request.head.value(b"content-encoding")
    if not encoding:
        return request.body
    try:
        return decoded(request.body, encoding)
    except ValueError:
        return request.body


def _nothing() -> None:
    """What happens when the client is gone."""

"""A mock of a model API: it answers recorded prompts with their recorded replies, streamed as they were.

Prompts are matched in `replay`. All clients share one cursor through the capture, because a prompt does not say which client sent it.
A prompt that was never recorded can be passed on to a live API: its answer goes to the client as it comes, and is recorded as the
live API's own. Nothing is sent twice: clients retry by themselves.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ...errors import UpstreamError
from ...replay.mock.http.answer import playable_fields
from ...replay.mock.matching import RequestMatcher
from ...replay.mock.miss import Miss
from ...replay.mock.recorded_prompts import (
    PromptReply,
    RecordedPrompt,
    api_error,
    prompt_exchange,
    scaled_delay_ns,
    with_scaled_retry,
)
from ...replay.mock.scheduled_send import LiveServerBytes
from ...transcript.http.head import EVENT_STREAM, read_head
from ...transcript.model import Exchange
from ...wire.encodings import decode_body
from ...wire.http import HttpMessages
from ...wire.http_body import Body, BodyEnd, OpaqueBytes, RefusedBytes
from ...wire.http_head import ResponseHead
from ...wire.sse import SseEvents
from ..http.recorder import note
from ..upstream.http import HttpTransport, UnreachableError
from .http.connection import Request, Response, Serving, ignore
from .http.server import ListeningMock

MISSING = "capture"
"""Word, in the text of a miss, for what refuses a prompt whose reply is not in the capture."""

MAX_AT_ONCE = 256
"""Events written at a time, before a check that the client keeps up."""

END_PATIENCE_S: Final = 1.5
"""Time to wait for responses under way when the mock ends."""

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
"""Fields of a request that are about one connection, and the one that asks for compression."""


class LlmMock(ListeningMock):
    """A mock that plays `recorded` to all clients. Its clock began at `begin_ns` of the monotonic one.

    `matcher` finds recorded prompts. `plays_nearest` means that a miss is answered with the nearest reply; with a `pass_through` a
    live API answers it.
    """

    def __init__(
        self,
        recorded: Sequence[RecordedPrompt],
        matcher: RequestMatcher,
        *,
        begin_ns: int,
        speed: float = 0.0,
        allowed_hosts: frozenset[str] = frozenset(),
        plays_nearest: bool = False,
        pass_through: LlmPassThrough | None = None,
        tell: Callable[[Miss], None],
    ) -> None:
        super().__init__(begin_ns=begin_ns, allowed_hosts=allowed_hosts)
        self._recorded: Mapping[int, RecordedPrompt] = {prompt.exchange.row: prompt for prompt in recorded}
        self._cursor = matcher.cursor()
        self._speed = speed
        self._plays_nearest = plays_nearest
        self._pass_through = pass_through
        self._tell = tell

    @property
    def recorded(self) -> list[RecordedPrompt]:
        """The prompts with their replies."""
        return list(self._recorded.values())

    @property
    def url(self) -> str:
        """The URL of the mock's root."""
        return f"http://{self.own}"

    async def _stop_playing(self) -> None:
        if self._pass_through is not None:
            await self._pass_through.close()

    # Requests

    def answer(self, request: Request, response: Response) -> None:
        """Answer a prompt with its recorded reply."""
        live = prompt_exchange(read_head(request.head.raw), _plain(request), at_ns=self.now_ns()).request
        match = self._cursor.match(live)
        if not isinstance(match, Exchange):
            self._answer_miss(match, request, response)
        elif why := self._recorded[match.row].unplayable:
            self._answer_miss(Miss(request=live, reason=why, refused_by=MISSING, nearest=match), request, response)
        else:
            self._play(match, response)

    def _play(self, exchange: Exchange, response: Response) -> None:
        ReplyPlayback(self._recorded[exchange.row].reply, response, self._speed).begin()

    def _answer_miss(self, miss: Miss, request: Request, response: Response) -> None:
        if self._pass_through is not None:
            self._report(miss, response)
            self._pass_through.ask(self, request, response)
            return
        nearest = miss.nearest if self._plays_nearest else None
        if nearest is None or self._recorded[nearest.row].unplayable:
            self._report(miss, response)
            refuse(request, response, miss)
            return
        again = self._cursor.match(nearest.request)  # the next of several replies
        played = again if isinstance(again, Exchange) and not self._recorded[again.row].unplayable else nearest
        self._report(replace(miss, played=played), response)
        self._play(played, response)

    def _report(self, miss: Miss, response: Response) -> None:
        self.sink((note(self.now_ns(), "miss", miss.sentence, 0, response.number),))
        self._tell(miss)


class ReplyPlayback:
    """A recorded reply on its way to a client. `speed` is how many times faster than recorded it is sent, 0 being at once."""

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
        """Send what is due now, and the rest when it is due."""
        self._response.on_left = self._stop
        self._response.on_drained = self._go_on
        self._go_on()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _go_on(self) -> None:
        """Send all that is due, as long as the client keeps up."""
        if not self._response.is_open or not self._is_due(self._reply.head_ns):
            return
        if not self._reply.is_stream and self._reply.ends == "whole":
            self._send_whole()
            return
        if not self._response.has_begun and self._reply.status:
            fields = list(with_scaled_retry(self._reply.fields, self._speed))
            framing = "sse" if self._reply.is_stream else "body"
            self._response.begin(self._reply.status, fields, framing=framing, reason=self._reply.reason)
        parts = self._reply.parts
        while self._next < len(parts):
            if self._response.is_full:
                return  # `on_drained` goes on
            until = self._next
            while until < len(parts) and until - self._next < MAX_AT_ONCE and self._is_due(parts[until].delay_ns):
                until += 1
            if until == self._next:
                return  # the timer goes on
            due, self._next = parts[self._next : until], until
            self._response.send(*(part.data for part in due))
        self._end()

    def _send_whole(self) -> None:
        reply = self._reply
        if reply.parts and not self._is_due(reply.parts[-1].delay_ns):
            return
        body = b"".join(part.data for part in reply.parts)
        self._response.whole(reply.status, list(with_scaled_retry(reply.fields, self._speed)), body, reason=reply.reason)

    def _end(self) -> None:
        if self._reply.ends == "whole":
            self._response.end()
        else:
            self._response.cut_off()

    def _is_due(self, delay_ns: int) -> bool:
        """Check whether something sent so long after the prompt is due by now; if not, set the timer."""
        wait_s = self._begin_s + scaled_delay_ns(delay_ns, self._speed) / 1e9 - self._loop.time()
        if wait_s <= 0:
            return True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(wait_s, self._go_on)
        return False


class LlmPassThrough:
    """The live API at the origin of `url`. `fields` replace those of the client in every request.

    `tell` takes a sentence for the user.
    """

    def __init__(
        self,
        url: str,
        *,
        fields: Sequence[tuple[bytes, bytes]] = (),
        tls: ssl.SSLContext | None = None,
        tell: Callable[[str], None],
    ) -> None:
        self._api = HttpTransport(url, sink=lambda records: None, now_ns=lambda: 0, tls=tls)
        self._fields = {name.lower(): (name, value) for name, value in fields}
        self._tell = tell
        self._has_announced = False
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, serving: Serving, request: Request, response: Response) -> None:
        """Send a request to the live API, and write its answer on `response`."""
        if not self._has_announced:
            self._has_announced = True
            text = f"what was never recorded is answered by the live API: {self._api.origin}"
            self._tell(text)
        serving.sink(
            (note(serving.now_ns(), "pass-through", "from here on the live API answers this prompt", 0, response.number),)
        )
        task = asyncio.get_running_loop().create_task(self._relay(request, response))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop what is under way."""
        self._api.close()
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=END_PATIENCE_S)

    async def _relay(self, request: Request, response: Response) -> None:
        relay = LlmRelay(self._head(request), request.body, response)
        try:
            await self._api.connect(lambda: relay)
        except (UnreachableError, UpstreamError) as error:
            self._tell(f"{self._api.origin} cannot be reached: {error}")
            if response.is_open:
                response.refuse(502, f"{self._api.origin} cannot be reached: {error}")
            return
        await relay.is_over.wait()

    def _head(self, request: Request) -> bytes:
        kept = [field for field in request.head.fields if field[0].lower() not in _OWN | self._fields.keys()]
        own = [
            (b"Host", self._api.origin.host_field.encode()),
            (b"Accept-Encoding", b"identity"),
            (b"Connection", b"close"),
            *([(b"Content-Length", b"%d" % len(request.body))] if request.body or request.method == "POST" else []),
        ]
        lines = [f"{request.method} {request.target} HTTP/1.1".encode("latin-1")]
        lines += [b"%b: %b" % field for field in (*own, *kept, *self._fields.values())]
        return b"\r\n".join([*lines, b"", b""])


class LlmRelay(asyncio.Protocol):
    """One request to the live API, and its answer on its way to the client."""

    def __init__(self, head: bytes, body: bytes, response: Response) -> None:
        self._request = head + body
        self._method = head.partition(b" ")[0]
        self._response = response
        self._transport: asyncio.Transport | None = None
        self._responses = HttpMessages.of_responses()
        self._head: ResponseHead | None = None
        self._body: list[bytes] = []
        self._events: SseEvents | None = None
        self.is_over = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._response.on_left = self._leave
        self._response.on_drained = transport.resume_reading
        self._responses.expect(self._method)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        for piece in self._responses.feed(data):
            self._take(piece)
        if self._response.is_open and self._response.is_full and self._transport is not None:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        for piece in self._responses.close():
            self._take(piece)
        if self._response.is_open:
            self._response.on_left = ignore
            self._response.cut_off()
        self.is_over.set()

    def _leave(self) -> None:
        """Close the connection: the client does not wait any more."""
        if self._transport is not None:
            self._transport.abort()

    def _take(self, piece: object) -> None:
        if not self._response.is_open:
            return
        match piece:
            case ResponseHead() if not piece.is_interim:
                self._on_head(piece)
            case Body() if self._events is not None:
                self._send(self._events.feed(piece.payload))
            case Body():
                self._body.append(piece.payload)
            case BodyEnd() if self._head is not None:
                self._on_end()
                if self._transport is not None:
                    self._transport.close()
            case RefusedBytes() | OpaqueBytes():
                self._response.cut_off()
            case _:
                pass

    def _on_head(self, raw_head: ResponseHead) -> None:
        self._head = raw_head
        head = read_head(raw_head.raw)
        if head.media_type == EVENT_STREAM and not head.get("content-encoding"):
            self._events = SseEvents()
            self._response.begin(head.status, list(playable_fields(head)), reason=head.reason)

    def _on_end(self) -> None:
        assert self._head is not None
        if self._events is not None:
            self._send(self._events.close())
            self._response.end()
            return
        head = read_head(self._head.raw)
        body = b"".join(self._body)
        try:
            body = decode_body(body, head.get("content-encoding").encode("latin-1", "replace"))
        except ValueError:
            self._response.cut_off()
            return
        self._response.whole(head.status, list(playable_fields(head)), LiveServerBytes(body), reason=head.reason)

    def _send(self, events: Sequence[bytes]) -> None:
        if events:
            self._response.send(*map(LiveServerBytes, events))


def refuse(request: Request, response: Response, miss: Miss) -> None:
    """Answer a miss with an error in the form of the API."""
    error = api_error(miss, is_anthropic=is_anthropic(request))
    response.whole(error.status, [("Content-Type", "application/json")], error.body)


def is_anthropic(request: Request) -> bool:
    """Return whether a request is for Anthropic's API."""
    return bool(request.value(b"anthropic-version")) or request.path.endswith("/messages")


def _plain(request: Request) -> bytes:
    """Return the body of a request, decoded if possible."""
    encoding = request.head.value(b"content-encoding")
    if not encoding:
        return request.body
    try:
        return decode_body(request.body, encoding)
    except ValueError:
        return request.body

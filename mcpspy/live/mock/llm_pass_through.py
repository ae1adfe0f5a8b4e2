"""The way from a mock of a model's API to a live one: each prompt that was never recorded is asked there.

What comes back goes on as it comes, and is recorded as the live API's own. Refuses to ask twice: clients try again by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...errors import PeerError
from ...replay.mock.http.answer import playable
from ...replay.mock.scheduled_send import Unforged
from ...transcript.http.head import EVENT_STREAM, read_head
from ...wire.encodings import decoded
from ...wire.http import Responses
from ...wire.http_body import Body, End, Opaque, Refused
from ...wire.http_head import ResponseHead
from ...wire.sse import Events
from ..http.recorder import note
from ..upstream.http import UnreachableError, Wire

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from .http.connection import Serving
    from .http.response import Request, Response

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


class ModelForward:
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
        self._wire = Wire(url, sink=lambda records: None, now_ns=lambda: 0, tls=tls)
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
        except (UnreachableError, PeerError) as error:
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
        self._events: Events | None = None
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
            case End() if self._head is not None:
                self._ended()
                if self._transport is not None:
                    self._transport.close()
            case Refused() | Opaque():
                self._response.cut_off()
            case _:
                pass

    def _answered(self, head: ResponseHead) -> None:
        self._head = head
        told = read_head(head.raw)
        if told.media_type == EVENT_STREAM and not told.get("content-encoding"):
            self._events = Events()
            self._response.begin(told.status, list(playable(told)), reason=told.reason)

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
        self._response.whole(told.status, list(playable(told)), Unforged(body), reason=told.reason)

    def _say(self, events: Sequence[bytes]) -> None:
        if events:
            self._response.tell(*map(Unforged, events))


def _nothing() -> None:
    """What happens when the client is gone."""

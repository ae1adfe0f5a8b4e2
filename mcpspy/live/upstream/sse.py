"""A client of a live server over HTTP+SSE: one stream with all messages of the server, and the endpoint that this stream names.

Source: MCP specification 2024-11-05, basic/transports. An endpoint of another origin is an error, as in both SDKs: messages sent
there would go to somebody else.
"""

from __future__ import annotations

import asyncio
from typing import Final, Unpack
from urllib.parse import urljoin

from ...errors import UpstreamError
from ...transcript.model import HTTP_REDIRECTS
from ...wire.http_head import ResponseHead
from ...wire.jsonrpc import cut, parse
from ...wire.sse import SseEvent
from ..http.listener import origin
from .headers import UpstreamMessage
from .http import HttpOptions, HttpTransport, OutgoingRequest, UnreachableError, target_of
from .protocol import Failure, ServerListener, cancellation

ENDPOINT_S: Final = 30.0
"""Time that the stream has to name its endpoint."""

TAKEN_S: Final = 10.0
"""Time to wait for the 202 to a message before the next is sent anyway."""

_PLAIN: Final = (b"Accept-Encoding", b"identity")
_REDIRECTS: Final = (301, 302, 303, 307, 308)
MAX_REDIRECTS: Final = 3
_ADVICE: Final = "Is this the address of the stream of an HTTP+SSE server, which is often /sse?"


class SseClient:
    """A client of the server whose stream is at `url`. `headers` are put into every request."""

    def __init__(self, url: str, *, listener: ServerListener, **options: Unpack[HttpOptions]) -> None:
        self._transport = HttpTransport(url, **options)
        self._listener = listener
        self._target = ""
        self._stream: OutgoingRequest | None = None
        self._stream_targets = [self._transport.target]
        self._is_moved = False  # the last of the targets has not been asked
        self._named = asyncio.Event()
        self._why = ""  # why the stream names no endpoint
        self._waiting: dict[str, str] = {}
        """The methods of the requests without a response, by their id keys."""
        self._is_leaving = False
        self._is_lost = False

    async def start(self) -> None:
        fields = [(b"Accept", b"text/event-stream"), (b"Cache-Control", b"no-store"), _PLAIN]
        while not self._named.is_set():
            try:
                self._stream = await self._transport.ask("GET", fields, b"", self, target=self._stream_targets[-1])
            except UnreachableError as error:
                advice = "Is the server running, and is this its address?"
                raise UpstreamError(self._transport.url, f"it cannot be reached: {error}", advice) from error
            try:
                await asyncio.wait_for(self._named.wait(), ENDPOINT_S)
            except TimeoutError:
                self._refuse(f"its stream named no endpoint within {ENDPOINT_S:.0f} s")
            if self._is_moved and not self._why:
                self._is_moved = False
                self._named.clear()
        if self._why:
            self._is_leaving = True
            self._transport.close()
            raise UpstreamError(self._transport.url, self._why, _ADVICE)

    async def send(self, data: bytes) -> None:
        message = UpstreamMessage(data)
        if self._is_lost or self._is_leaving:
            return
        self._waiting.update(dict.fromkeys(message.ids, message.method))
        post = _Post(self, message)
        fields = [(b"Accept", b"application/json, text/event-stream"), _PLAIN, (b"Content-Type", b"application/json")]
        fields.append((b"Content-Length", b"%d" % len(message.data)))
        try:
            await self._transport.ask("POST", fields, message.data, post, target=self._target)
        except UnreachableError as error:
            self.fail(message, 0, f"the server cannot be reached: {error}")
            return
        try:
            await asyncio.wait_for(post.taken.wait(), TAKEN_S)
        except TimeoutError:
            pass  # some servers answer a POST when the call is done, or never

    async def cancel(self, id: str) -> None:
        await self.send(cancellation(id))

    def hold(self, *, holds: bool) -> None:
        self._transport.hold(holds=holds)

    async def close(self) -> None:
        self._is_leaving = True
        self._transport.close()
        await asyncio.sleep(0)  # asyncio closes connections in a turn of their own

    # The stream

    def on_head(self, head: ResponseHead) -> None:
        """Take the head of the stream; refuse one that is no stream."""
        media_type = (head.value(b"content-type") or b"").partition(b";")[0].strip().lower()
        if head.status in _REDIRECTS and self._moves(head):
            return  # `start` asks there once this response has ended
        if head.status >= HTTP_REDIRECTS:
            self._refuse(f"HTTP {head.status} {head.reason.decode('latin-1')}".rstrip())
        elif media_type != b"text/event-stream":
            self._refuse(f"it answers with {media_type.decode('latin-1') or 'no media type'}, not with text/event-stream")

    def on_event(self, event: SseEvent) -> None:
        """Take an event: a message, or the endpoint."""
        if event.type == "endpoint" and event.data is not None and not self._named.is_set():
            self._name(event.text)
        elif event.type == "message" and event.data:
            self._receive(event.data)

    def on_body(self, body: bytes) -> None:
        """Ignore the body of a response that is no stream, which is refused already."""

    def on_end(self, why: str) -> None:
        """End the session, which ends with its stream."""
        if self._is_moved and not why:
            self._named.set()
        elif not self._named.is_set():
            self._refuse(why or "its stream ended before it named an endpoint")
        elif not (self._is_lost or self._is_leaving or self._why):
            self._is_lost = True
            self._listener.on_lost(f"the server's stream ended: {why}" if why else "the server has ended its stream")

    def _moves(self, head: ResponseHead) -> bool:
        """Take the redirect of the stream, if it is to a new place within the origin."""
        try:
            url = urljoin(self._transport.url, (head.value(b"location") or b"").decode("latin-1"))
        except ValueError:
            return False
        is_ours = origin(url) == self._transport.origin and _is_sound(url) and len(self._stream_targets) <= MAX_REDIRECTS
        if not is_ours or (target := target_of(url)) in self._stream_targets:
            return False
        self._stream_targets.append(target)
        self._is_moved = True
        return True

    def _name(self, data: str) -> None:
        uri = data
        if data.lstrip().startswith("{"):  # a dialect: JSON with a `uri`
            value = parse(data.encode())
            uri = value.get("uri", "") if isinstance(value, dict) and isinstance(value.get("uri"), str) else ""
        try:
            url = urljoin(urljoin(self._transport.url, self._stream_targets[-1]), uri)
        except ValueError:
            url = ""
        if not uri or origin(url) != self._transport.origin or not _is_sound(url):
            self._refuse(f"its endpoint {uri[:200]!r} is of another origin, or none")
            return
        self._target = target_of(url)
        self._named.set()

    def _refuse(self, why: str) -> None:
        self._why = self._why or why
        self._named.set()

    def _receive(self, data: bytes) -> None:
        if self._is_lost:
            return
        for piece in cut(data):
            if piece.kind in ("result", "error") and piece.id is not None:
                self._waiting.pop(piece.id, None)
            if piece.kind != "malformed":
                self._listener.on_message(piece.raw, None)

    # POSTs

    def fail(self, message: UpstreamMessage, status: int, why: str) -> None:
        """Report that a message was not accepted: its requests get no response, unless that has come already."""
        if self._is_leaving or self._is_lost:
            return
        for id in message.ids:
            if self._waiting.pop(id, None) is not None:
                self._listener.on_failed(Failure(id=id, method=message.method, status=status, why=why))
        if not message.ids:
            self._listener.on_failed(Failure(id=None, method=message.method, status=status, why=why))


class _Post:
    """One POST. Its response says only whether the message was accepted."""

    def __init__(self, client: SseClient, message: UpstreamMessage) -> None:
        self._client = client
        self._message = message
        self._status = 0
        self._status_line = ""
        self.taken = asyncio.Event()

    def on_head(self, head: ResponseHead) -> None:
        self._status = head.status
        self._status_line = f"HTTP {head.status} {head.reason.decode('latin-1')}".rstrip()
        if head.status < HTTP_REDIRECTS:
            self.taken.set()

    def on_event(self, event: SseEvent) -> None:
        """Ignore events: the server sends its messages on the stream."""

    def on_body(self, body: bytes) -> None:
        """Ignore the body: the server sends its messages on the stream."""

    def on_end(self, why: str) -> None:
        if self._status >= HTTP_REDIRECTS or not self._status:
            self._client.fail(self._message, self._status, self._status_line or why)
        self.taken.set()


def _is_sound(url: str) -> bool:
    """Return whether a URL can be written in a request line."""
    return url.isascii() and url.isprintable() and " " not in url

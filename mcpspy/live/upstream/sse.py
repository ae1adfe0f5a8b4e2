"""A live server over HTTP+SSE as a peer: one stream on which it says everything, and the endpoint that this stream names.

Source: MCP specification 2024-11-05, basic/transports. Refuses an endpoint of another origin, as both SDKs do: what is said there
would be said to somebody else.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from ...errors import UpstreamError
from ...transcript.model import HTTP_REDIRECTS
from ...wire.jsonrpc import cut, parse
from ..http.listener import origin
from .headers import OutgoingMessage
from .http import HttpTransport, UnreachableError, target_of
from .protocol import Failed, Failure, Heard, Lost, ignored

if TYPE_CHECKING:
    from ...records import Sink
    from ...wire.http_head import ResponseHead
    from ...wire.sse import SseEvent
    from ..http.recorder import Numbers
    from .transaction import OutgoingRequest

ENDPOINT_S: Final = 30.0
"""How long the stream may take to name its endpoint."""

TAKEN_S: Final = 10.0
"""How long a message may take to be taken (202) before the next is sent all the same."""

_PLAIN: Final = (b"Accept-Encoding", b"identity")
_ADVICE: Final = "Is this a server of HTTP+SSE? One of Streamable HTTP is spoken to at another address, often /mcp"


class SseClient:
    """The server at `url`, where its stream is. `headers` are put into every request.

    `numbers` may be shared by peers whose records go into one capture.
    """

    def __init__(
        self,
        url: str,
        *,
        sink: Sink,
        now_ns: Callable[[], int],
        heard: Heard,
        lost: Lost,
        failed: Failed = ignored,
        headers: Sequence[tuple[bytes, bytes]] = (),
        tls: ssl.SSLContext | None = None,
        numbers: Numbers | None = None,
    ) -> None:
        self._wire = HttpTransport(url, sink=sink, now_ns=now_ns, headers=headers, tls=tls, numbers=numbers)
        self._heard, self._lost, self._failed = heard, lost, failed
        self._target = ""
        self._stream: OutgoingRequest | None = None
        self._named = asyncio.Event()
        self._why = ""  # why there is no endpoint
        self._waiting: dict[str, str] = {}
        """The methods of the requests without an answer, by the tokens of their ids."""
        self._is_leaving = False
        self._is_lost = False

    async def start(self) -> None:
        fields = [(b"Accept", b"text/event-stream"), (b"Cache-Control", b"no-store"), _PLAIN]
        try:
            self._stream = await self._wire.ask("GET", fields, b"", self)
        except UnreachableError as error:
            advice = "Is the server running, and is this its address?"
            raise UpstreamError(self._wire.url, f"it cannot be reached: {error}", advice) from error
        try:
            await asyncio.wait_for(self._named.wait(), ENDPOINT_S)
        except TimeoutError:
            self._why = f"its stream named no endpoint within {ENDPOINT_S:.0f} s"
        if self._why:
            self._is_leaving = True
            self._wire.close()
            raise UpstreamError(self._wire.url, self._why, _ADVICE)

    async def send(self, data: bytes) -> None:
        message = OutgoingMessage(data)
        if self._is_lost or self._is_leaving:
            return
        self._waiting.update(dict.fromkeys(message.ids, message.method))
        post = _Post(self, message)
        fields = [(b"Accept", b"application/json, text/event-stream"), _PLAIN, (b"Content-Type", b"application/json")]
        fields.append((b"Content-Length", b"%d" % len(message.data)))
        try:
            await self._wire.ask("POST", fields, message.data, post, target=self._target)
        except UnreachableError as error:
            self.fail(message, 0, f"the server cannot be reached: {error}")
            return
        try:
            await asyncio.wait_for(post.taken.wait(), TAKEN_S)
        except TimeoutError:
            pass  # some answer a POST when the call is done, or never

    async def cancel(self, id: str) -> None:
        await self.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}' % id.encode())

    def hold(self, *, holds: bool) -> None:
        self._wire.hold(holds=holds)

    async def close(self) -> None:
        self._is_leaving = True
        self._wire.close()
        await asyncio.sleep(0)  # asyncio lets go of connections in a turn of their own

    # The stream

    def answered(self, head: ResponseHead) -> None:
        """The stream is open, or refused."""
        media_type = (head.value(b"content-type") or b"").partition(b";")[0].strip().lower()
        if head.status >= HTTP_REDIRECTS:
            self._refuse(f"HTTP {head.status} {head.reason.decode('latin-1')}".rstrip())
        elif media_type != b"text/event-stream":
            self._refuse(f"it answers with {media_type.decode('latin-1') or 'no media type'}, not with text/event-stream")

    def event(self, event: SseEvent) -> None:
        """The server said something, or named its endpoint."""
        if event.type == "endpoint" and event.data is not None and not self._named.is_set():
            self._name(event.text)
        elif event.type == "message" and event.data:
            self._hear(event.data)

    def body(self, body: bytes) -> None:
        """What is no stream has been refused."""

    def over(self, why: str) -> None:
        """The stream has ended, and with it the session."""
        if not self._named.is_set():
            self._refuse(why or "its stream ended before it named an endpoint")
        elif not self._is_lost and not self._is_leaving:
            self._is_lost = True
            self._lost(f"the server's stream ended: {why}" if why else "the server has ended its stream")

    def _name(self, data: str) -> None:
        uri = data
        if data.lstrip().startswith("{"):  # a dialect: JSON with a `uri`
            said = parse(data.encode())
            uri = said.get("uri", "") if isinstance(said, dict) and isinstance(said.get("uri"), str) else ""
        try:
            url = urljoin(self._wire.url, uri)
        except ValueError:
            url = ""
        if not uri or origin(url) != self._wire.origin or not _is_sound(url):
            self._refuse(f"its endpoint {uri[:200]!r} is of another origin, or none")
            return
        self._target = target_of(url)
        self._named.set()

    def _refuse(self, why: str) -> None:
        self._why = self._why or why
        self._named.set()

    def _hear(self, data: bytes) -> None:
        if self._is_lost:
            return
        for piece in cut(data):
            if piece.kind in ("result", "error") and piece.id is not None:
                self._waiting.pop(piece.id, None)
            if piece.kind != "malformed":
                self._heard(piece.raw, None)

    # POSTs

    def fail(self, message: OutgoingMessage, status: int, why: str) -> None:
        """This message got no further. Whoever asked in it gets no answer, unless that has come already."""
        if self._is_leaving or self._is_lost:
            return
        for id in message.ids:
            if self._waiting.pop(id, None) is not None:
                self._failed(Failure(id=id, method=message.method, status=status, why=why))
        if not message.ids:
            self._failed(Failure(id=None, method=message.method, status=status, why=why))


class _Post:
    """One POST, whose response says whether the message was taken, and no more."""

    def __init__(self, peer: SseClient, message: OutgoingMessage) -> None:
        self._peer = peer
        self._message = message
        self._status = 0
        self._words = ""
        self.taken = asyncio.Event()

    def answered(self, head: ResponseHead) -> None:
        self._status = head.status
        self._words = f"HTTP {head.status} {head.reason.decode('latin-1')}".rstrip()
        if head.status < HTTP_REDIRECTS:
            self.taken.set()

    def event(self, event: SseEvent) -> None:
        """Nothing is said here."""

    def body(self, body: bytes) -> None:
        """Nothing is said here."""

    def over(self, why: str) -> None:
        if self._status >= HTTP_REDIRECTS or not self._status:
            self._peer.fail(self._message, self._status, self._words or why)
        self.taken.set()


def _is_sound(url: str) -> bool:
    """Whether this can stand in a request line."""
    return url.isascii() and url.isprintable() and " " not in url

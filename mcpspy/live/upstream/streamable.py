"""A client of a live server over Streamable HTTP: each message is a POST, responses are JSON or streams of events.

It keeps the session, opens the server stream, resumes broken streams whose events have ids, and deletes the session at the end (MCP
specification 2025-03-26 to 2025-11-25, basic/transports). From 2026-07-28 on there is no session: each request names its revision,
and is cancelled by leaving its stream. A redirect to another origin is not followed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Unpack

from ...transcript.correlator import spellings
from ...transcript.http.payloads import body_pieces
from ...transcript.mcp.methods import INITIALIZED
from ...transcript.model import HTTP_REDIRECTS
from ...wire.http_head import ResponseHead
from ...wire.json_spans import members, string
from ...wire.jsonrpc import Piece, cut
from ...wire.sse import SseEvent
from ..http.listener import origin
from .headers import TOOLS_LIST, MirroredArguments, UpstreamMessage
from .http import HttpOptions, HttpTransport, OutgoingRequest, UnreachableError, target_of
from .protocol import Failure, ServerListener, cancellation

TAKEN_S: Final = 10.0
"""Time to wait for the 202 to a notification or a response before the next message is sent anyway."""

OPENED_S: Final = 0.5
"""Time to wait for the head of the server stream: some servers send it with the first event."""

REST_S: Final = 1.0
"""Time to wait at the end for what follows a response in its stream, such as `data: [DONE]`."""

DELETED_S: Final = 2.0

RETRY_S: Final = 1.0
"""After how long a stream is resumed if the server names no time, as in both SDKs."""

MAX_VAIN: Final = 2
"""Most resumptions in a row of a stream that brings nothing, as in both SDKs."""

MAX_REDIRECTS: Final = 3

MAX_WORDS: Final = 200
"""Letters quoted of a body that holds no message."""

_ACCEPT: Final = (b"Accept", b"application/json, text/event-stream")
_ACCEPT_EVENTS: Final = (b"Accept", b"text/event-stream")
_PLAIN: Final = (b"Accept-Encoding", b"identity")
_JSON: Final = (b"Content-Type", b"application/json")
_KEEPS_METHOD: Final = (307, 308)


class StreamableClient:
    """A client of the server at `url`. `listen` means that it opens the server stream (GET) once the session is open."""

    def __init__(self, url: str, *, listener: ServerListener, listen: bool = True, **options: Unpack[HttpOptions]) -> None:
        self._transport = HttpTransport(url, **options)
        self._listener = listener
        self._listens = listen
        self._session: bytes | None = None
        self._revision: bytes | None = None
        self._waiting: dict[str, Post] = {}
        """The requests without a response, by their id keys."""
        self._open: set[Post] = set()
        """The POSTs whose response has not ended."""
        self._mirrored = MirroredArguments()
        self._tasks: set[asyncio.Task[object]] = set()
        self._is_leaving = False
        self._is_lost = False

    async def start(self) -> None:
        await self._transport.reach()

    async def send(self, data: bytes) -> None:
        message = UpstreamMessage(data)
        if self._is_lost or self._is_leaving:
            return
        if (
            message.is_cancellation
            and (post := self._waiting.get(message.cancelled_id or "")) is not None
            and post.message.is_modern
        ):
            self._give_up(message.cancelled_id or "")
            return
        post = Post(self, message)
        self._waiting.update(dict.fromkeys(message.ids, post))
        await self._post(post)
        if message.ids:
            return
        await _within(TAKEN_S, post.taken.wait())
        if message.method == INITIALIZED and self._listens and post.is_taken and not message.is_modern:
            server_stream = GetStream(self, None)
            self._begin(self._follow(server_stream))
            await _within(OPENED_S, server_stream.opened.wait())

    async def cancel(self, id: str) -> None:
        post = self._waiting.get(id)
        if post is not None and post.message.is_modern:
            self._give_up(id)
        else:
            await self.send(cancellation(id))

    def hold(self, *, holds: bool) -> None:
        self._transport.hold(holds=holds)

    async def close(self) -> None:
        if self._is_leaving:
            return
        ends = [asyncio.ensure_future(post.ended.wait()) for post in self._open.difference(self._waiting.values())]
        if ends:
            await asyncio.wait(ends, timeout=REST_S)
        self._is_leaving = True
        self._tasks.update(ends)
        for task in self._tasks:
            task.cancel()
        try:
            if self._session is not None and not self._is_lost:
                response = DeleteResponse()
                with suppress(UnreachableError):
                    await self._transport.ask("DELETE", self._fields(_ACCEPT), b"", response)
                    await _within(DELETED_S, response.ended.wait())
        finally:
            self._transport.close()
            await asyncio.sleep(0)  # asyncio closes connections in a turn of their own

    # What goes out

    async def _post(self, post: Post) -> None:
        message = post.message
        self._open.add(post)
        post.targets.add(post.target or self._transport.target)
        fields = [_ACCEPT, _PLAIN, _JSON, (b"Content-Length", b"%d" % len(message.data))]
        fields += message.fields(self._mirrored) if message.is_modern else self._session_fields(message)
        try:
            post.transaction = await self._transport.ask("POST", fields, message.data, post, target=post.target)
        except UnreachableError as error:
            self.fail(post, 0, f"the server cannot be reached: {error}")
            self._lose(f"{self._transport.url} cannot be reached: {error}")

    def _session_fields(self, message: UpstreamMessage | None = None) -> list[tuple[bytes, bytes]]:
        """Return the fields that name the session; none for a message that opens one."""
        if message is not None and message.opens:
            return []
        fields = ((b"Mcp-Session-Id", self._session), (b"MCP-Protocol-Version", self._revision))
        return [(name, value) for name, value in fields if value is not None]

    def _fields(self, *fields: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        return [*fields, _PLAIN, *self._session_fields()]

    def _give_up(self, id: str) -> None:
        """Cancel a request as in 2026-07-28: leave its stream."""
        post = self._waiting.pop(id, None)
        if post is not None and post.transaction is not None:
            self._open.discard(post)
            post.transaction.leave()

    # What comes in

    def open_session(self, head: ResponseHead) -> None:
        """Take the session from the head of the response to `initialize`, if it names one."""
        session = head.value(b"mcp-session-id")
        if session is not None and head.status < HTTP_REDIRECTS:
            self._session = session

    def receive(self, piece: Piece, about: str | None) -> None:
        """Take a message of the server, on the stream of the request `about`."""
        if piece.kind == "malformed" or self._is_lost:
            return
        if piece.kind in ("result", "error") and piece.id is not None:
            id = next((key for key in (piece.id, *spellings(piece.id)) if key in self._waiting), None)
            if id is not None:
                self._learn(self._waiting.pop(id).message, piece)
        self._listener.on_message(piece.raw, about)

    def _learn(self, message: UpstreamMessage, response: Piece) -> None:
        if response.kind != "result":
            return
        if message.opens:
            agreed = string(members(response.content).get("protocolVersion", b""))
            self._revision = agreed.encode("ascii", "replace") if agreed else None
        elif message.method == TOOLS_LIST and message.is_modern:
            self._mirrored.learn(response.raw)

    # The end of a POST

    def end_post(self, post: Post, why: str) -> bool:
        """Take the end of the response to a POST. Returns False if the POST is sent again elsewhere."""
        self._open.discard(post)
        head = post.transaction.head if post.transaction is not None else None
        status = head.status if head is not None else 0
        open_ids = [id for id in post.message.ids if self._waiting.get(id) is post]
        if self._is_leaving:
            return True
        if status in _KEEPS_METHOD and head is not None and not why:
            return self._redirect(post, head)
        if open_ids and post.last_event_id is not None and not post.message.is_modern:
            self._begin(self._resume(post))
        elif open_ids or why or status >= HTTP_REDIRECTS:
            status_line = f"HTTP {status} {_words(head)}".rstrip() if head is not None else ""
            missing = "the response held no answer" if status < HTTP_REDIRECTS else post.first_words
            self.fail(post, status, ": ".join(phrase for phrase in (status_line, why or missing) if phrase))
        return True

    def fail(self, post: Post, status: int, why: str) -> None:
        """Report that the requests of this POST get no response."""
        self._open.discard(post)
        method = post.message.method
        for id in post.message.ids:
            if self._waiting.get(id) is post:
                del self._waiting[id]
                self._listener.on_failed(Failure(id=id, method=method, status=status, why=why))
        if not post.message.ids:
            self._listener.on_failed(Failure(id=None, method=method, status=status, why=why))

    def _lose(self, why: str) -> None:
        if not self._is_lost and not self._is_leaving:
            self._is_lost = True
            self._listener.on_lost(why)

    def _redirect(self, post: Post, head: ResponseHead) -> bool:
        """Send a POST again where the server says, within its own origin. Returns True if it fails instead."""
        location = (head.value(b"location") or b"").decode("latin-1")
        status = f"HTTP {head.status} {_words(head)}".rstrip()
        target_origin = (
            self._transport.origin if location.startswith("/") and not location.startswith("//") else origin(location)
        )
        if target_origin != self._transport.origin:
            self.fail(post, head.status, f"{status} to {location or 'nowhere'}, which is another origin")
        elif len(post.targets) > MAX_REDIRECTS:
            self.fail(post, head.status, f"{status}, for the {MAX_REDIRECTS + 1}th time")
        elif (target := location if location.startswith("/") else target_of(location)) in post.targets:
            self.fail(post, head.status, f"{status} to {target}, where it was sent already")
        else:
            post.target = target
            self._begin(self._post(post))
            return False
        return True

    # Streams that a GET opens

    async def _resume(self, post: Post) -> None:
        """Resume a stream that ended before its response."""
        rest = GetStream(self, post.about)
        rest.last_event_id, rest.retry_ms = post.last_event_id, post.retry_ms
        await asyncio.sleep(_pause_s(rest.retry_ms))
        why = await self._follow(rest, lambda: self._waiting.get(post.message.ids[0]) is post)
        self.fail(post, rest.status, why or "the stream ended before the response, and resuming it brought nothing")

    async def _follow(self, stream: GetStream, is_wanted: Callable[[], bool] = lambda: True) -> str:
        """GET a stream again and again, as long as it is wanted and brings something. Returns why it was refused, or nothing."""
        vain = 0
        while is_wanted() and vain < MAX_VAIN:
            fields = self._fields(_ACCEPT_EVENTS)
            if stream.last_event_id is not None:
                fields.append((b"Last-Event-ID", stream.last_event_id))
            stream.begin()
            try:
                await self._transport.ask("GET", fields, b"", stream)
            except UnreachableError as error:
                return f"the server cannot be reached: {error}"
            await stream.ended.wait()
            if stream.status >= HTTP_REDIRECTS:
                return f"HTTP {stream.status} for the stream that was to be resumed"
            vain = 0 if stream.has_come else vain + 1
            if is_wanted() and vain < MAX_VAIN:
                await asyncio.sleep(_pause_s(stream.retry_ms))
        return ""

    def _begin(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Post:
    """One POST and its response: its message, and the place that its stream has reached."""

    def __init__(self, owner: StreamableClient, message: UpstreamMessage) -> None:
        self._owner = owner
        self.message = message
        self.about = message.ids[0] if len(message.ids) == 1 else None
        self.transaction: OutgoingRequest | None = None
        self.taken = asyncio.Event()
        self.ended = asyncio.Event()
        self.is_taken = False
        self.last_event_id: bytes | None = None
        self.retry_ms: int | None = None
        self.target = ""
        """Target of the last redirect; empty: the server's own URL."""
        self.targets: set[str] = set()
        """Targets that have been tried: none of them twice."""
        self.first_words = ""
        """The first line of a body that holds no message and is no HTML page."""

    def on_head(self, head: ResponseHead) -> None:
        self.is_taken = head.status < HTTP_REDIRECTS
        if self.message.opens:
            self._owner.open_session(head)
        if self.is_taken:
            self.taken.set()

    def on_event(self, event: SseEvent) -> None:
        _note_place(self, event)
        _receive_event(self._owner, event, self.about)

    def on_body(self, body: bytes) -> None:
        pieces = body_pieces(body, is_json=False, answers=True)
        self.first_words = "" if pieces or body.lstrip()[:1] == b"<" else _first_words(body)
        for piece in pieces:
            self._owner.receive(piece, self.about)

    def on_end(self, why: str) -> None:
        self.ended.set()
        if self._owner.end_post(self, why):
            self.taken.set()


class GetStream:
    """A stream of events that a GET opens, and opens again: the server stream, or the rest of the stream of the request `about`."""

    def __init__(self, owner: StreamableClient, about: str | None) -> None:
        self._owner = owner
        self._about = about
        self.opened = asyncio.Event()
        self.ended = asyncio.Event()
        self.has_come = False
        self.status = 0
        self.last_event_id: bytes | None = None
        self.retry_ms: int | None = None

    def begin(self) -> None:
        """Begin another GET of this stream."""
        self.ended.clear()
        self.has_come = False
        self.status = 0

    def on_head(self, head: ResponseHead) -> None:
        self.status = head.status
        self.opened.set()

    def on_event(self, event: SseEvent) -> None:
        self.has_come = self.has_come or event.data is not None
        _note_place(self, event)
        _receive_event(self._owner, event, self._about)

    def on_body(self, body: bytes) -> None:
        """Ignore a body that is no stream of events."""

    def on_end(self, why: str) -> None:
        self.opened.set()
        self.ended.set()


class DeleteResponse:
    """The response to the DELETE of a session, where only the end matters."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def on_head(self, head: ResponseHead) -> None: ...

    def on_event(self, event: SseEvent) -> None: ...

    def on_body(self, body: bytes) -> None: ...

    def on_end(self, why: str) -> None:
        self.ended.set()


def _pause_s(retry_ms: int | None) -> float:
    return RETRY_S if retry_ms is None else min(retry_ms / 1000, 60.0)


def _words(head: ResponseHead | None) -> str:
    return head.reason.decode("latin-1") if head is not None else ""


async def _within(seconds: float, work: Coroutine[Any, Any, object]) -> None:
    """Wait for something, with a time-out that is no error."""
    with suppress(TimeoutError):
        await asyncio.wait_for(work, seconds)


def _note_place(stream: Post | GetStream, event: SseEvent) -> None:
    """Remember the place in a stream: an id holds until the next one, and an empty one clears it (WHATWG HTML, 9.2.6)."""
    if event.id is not None:
        stream.last_event_id = event.id.encode("utf-8", "replace") or None
    if event.retry_ms is not None:
        stream.retry_ms = event.retry_ms


def _receive_event(owner: StreamableClient, event: SseEvent, about: str | None) -> None:
    if event.type == "message" and event.data:
        for piece in cut(event.data):
            owner.receive(piece, about)


def _first_words(body: bytes) -> str:
    lines = body[:4096].decode("utf-8", "replace").split("\n")
    return next((line.strip()[:MAX_WORDS] for line in lines if line.strip()), "")

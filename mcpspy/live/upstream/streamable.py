"""A live server over Streamable HTTP as a peer: each message is a POST, answers are JSON or streams of events.

It keeps the session, opens the standing stream, takes up streams that broke where the server gave their events ids, and deletes the
session at the end (MCP specification 2025-03-26 to 2025-11-25, basic/transports). From 2026-07-28 on there is none of this: each
request names its revision, and is cancelled by leaving its stream. Refuses to follow a redirect to another origin.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ...transcript.correlate import spellings
from ...transcript.model import HTTP_REDIRECTS
from ...wire.json_spans import members, string
from ..http.listener import origin
from .headers import TOOLS_LIST, Mirrored, OutgoingMessage
from .http import HttpTransport, UnreachableError, target_of
from .protocol import Failed, Failure, Heard, Lost, ignored
from .streams import DeleteResponse, GetStream, Post

if TYPE_CHECKING:
    from ...records import Sink
    from ...wire.http_head import ResponseHead
    from ...wire.jsonrpc import Piece
    from ..http.recorder import Numbers

TAKEN_S: Final = 10.0
"""How long a notification, or an answer, may take to be taken (202) before the next message is sent all the same."""

OPENED_S: Final = 0.5
"""How long the head of the standing stream is waited for: some servers send it with the first event."""

DELETED_S: Final = 2.0

RETRY_S: Final = 1.0
"""After so long a stream is taken up again where the server names no time: as both SDKs do."""

MAX_VAIN: Final = 2
"""So many times in a row a stream is taken up that brings nothing, as in both SDKs."""

MAX_REDIRECTS: Final = 3

_ACCEPT: Final = (b"Accept", b"application/json, text/event-stream")
_ACCEPT_EVENTS: Final = (b"Accept", b"text/event-stream")
_PLAIN: Final = (b"Accept-Encoding", b"identity")
_JSON: Final = (b"Content-Type", b"application/json")
_KEEPS_METHOD: Final = (307, 308)
_INITIALIZED: Final = "notifications/initialized"


class StreamableClient:
    """The server at `url`. `listen` says whether the standing stream (GET) is opened once the session is.

    `headers` are put into every request. `numbers` may be shared by peers whose records go into one capture.
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
        listen: bool = True,
        tls: ssl.SSLContext | None = None,
        numbers: Numbers | None = None,
    ) -> None:
        self._wire = HttpTransport(url, sink=sink, now_ns=now_ns, headers=headers, tls=tls, numbers=numbers)
        self._heard, self._lost, self._failed = heard, lost, failed
        self._listens = listen
        self._session: bytes | None = None
        self._revision: bytes | None = None
        self._waiting: dict[str, Post] = {}
        """The requests without an answer, by the tokens of their ids."""
        self._mirrored = Mirrored()
        self._tasks: set[asyncio.Task[object]] = set()
        self._is_leaving = False
        self._is_lost = False

    async def start(self) -> None:
        await self._wire.reach()

    async def send(self, data: bytes) -> None:
        message = OutgoingMessage(data)
        if self._is_lost or self._is_leaving:
            return
        if message.is_cancellation and (post := self._waiting.get(message.token or "")) is not None and post.message.is_modern:
            self._give_up(message.token or "")
            return
        post = Post(self, message)
        self._waiting.update(dict.fromkeys(message.ids, post))
        await self._post(post)
        if message.ids:
            return
        await _within(TAKEN_S, post.taken.wait())
        if message.method == _INITIALIZED and self._listens and post.is_taken and not message.is_modern:
            standing = GetStream(self, None)
            self._begin(self._follow(standing))
            await _within(OPENED_S, standing.opened.wait())

    async def cancel(self, id: str) -> None:
        post = self._waiting.get(id)
        if post is not None and post.message.is_modern:
            self._give_up(id)
        else:
            await self.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}' % id.encode())

    def hold(self, *, holds: bool) -> None:
        self._wire.hold(holds=holds)

    async def close(self) -> None:
        if self._is_leaving:
            return
        self._is_leaving = True
        for task in self._tasks:
            task.cancel()
        try:
            if self._session is not None and not self._is_lost:
                gone = DeleteResponse()
                with suppress(UnreachableError):
                    await self._wire.ask("DELETE", self._fields(_ACCEPT), b"", gone)
                    await _within(DELETED_S, gone.over_event.wait())
        finally:
            self._wire.close()
            await asyncio.sleep(0)  # asyncio lets go of connections in a turn of their own

    # What goes out

    async def _post(self, post: Post) -> None:
        message = post.message
        post.been.add(post.target or self._wire.target)
        fields = [_ACCEPT, _PLAIN, _JSON, (b"Content-Length", b"%d" % len(message.data))]
        fields += message.fields(self._mirrored) if message.is_modern else self._session_fields(message)
        try:
            post.transaction = await self._wire.ask("POST", fields, message.data, post, target=post.target)
        except UnreachableError as error:
            self.fail(post, 0, f"the server cannot be reached: {error}")
            self._lose(f"{self._wire.url} cannot be reached: {error}")

    def _session_fields(self, message: OutgoingMessage | None = None) -> list[tuple[bytes, bytes]]:
        """What a message of a session says of it; one that opens a session says nothing."""
        if message is not None and message.opens:
            return []
        named = ((b"Mcp-Session-Id", self._session), (b"MCP-Protocol-Version", self._revision))
        return [(name, value) for name, value in named if value is not None]

    def _fields(self, *fields: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        return [*fields, _PLAIN, *self._session_fields()]

    def _give_up(self, id: str) -> None:
        """Cancel as 2026-07-28 has it: leave the stream."""
        post = self._waiting.pop(id, None)
        if post is not None and post.transaction is not None:
            post.transaction.leave()

    # What comes in

    def opened(self, head: ResponseHead) -> None:
        """The response to `initialize` has begun: it names the session, if there is one."""
        session = head.value(b"mcp-session-id")
        if session is not None and head.status < HTTP_REDIRECTS:
            self._session = session

    def hear(self, piece: Piece, about: str | None) -> None:
        """The server said this, on the stream of the request `about`."""
        if piece.kind == "malformed" or self._is_lost:
            return
        if piece.kind in ("result", "error") and piece.id is not None:
            id = next((one for one in (piece.id, *spellings(piece.id)) if one in self._waiting), None)
            if id is not None:
                self._learn(self._waiting.pop(id).message, piece)
        self._heard(piece.raw, about)

    def _learn(self, message: OutgoingMessage, answer: Piece) -> None:
        if answer.kind != "result":
            return
        if message.opens:
            agreed = string(members(answer.content).get("protocolVersion", b""))
            self._revision = agreed.encode("ascii", "replace") if agreed else None
        elif message.method == TOOLS_LIST and message.is_modern:
            self._mirrored.learn(answer.raw)

    # What becomes of a POST

    def ended(self, post: Post, why: str) -> bool:
        """The response to a POST is over. Whether the POST is."""
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
            said = f"HTTP {status} {_words(head)}".rstrip() if head is not None else ""
            lacks = "the response held no answer" if status < HTTP_REDIRECTS else post.words
            self.fail(post, status, ": ".join(one for one in (said, why or lacks) if one))
        return True

    def fail(self, post: Post, status: int, why: str) -> None:
        """Whatever this POST asked gets no answer."""
        method = post.message.method
        for id in post.message.ids:
            if self._waiting.get(id) is post:
                del self._waiting[id]
                self._failed(Failure(id=id, method=method, status=status, why=why))
        if not post.message.ids:
            self._failed(Failure(id=None, method=method, status=status, why=why))

    def _lose(self, why: str) -> None:
        if not self._is_lost and not self._is_leaving:
            self._is_lost = True
            self._lost(why)

    def _redirect(self, post: Post, head: ResponseHead) -> bool:
        """Send it where the server says, within its own origin: this place has not taken it. Whether that is the end of it."""
        location = (head.value(b"location") or b"").decode("latin-1")
        status = f"HTTP {head.status} {_words(head)}".rstrip()
        named = self._wire.origin if location.startswith("/") and not location.startswith("//") else origin(location)
        if named != self._wire.origin:
            self.fail(post, head.status, f"{status} to {location or 'nowhere'}, which is another origin")
        elif len(post.been) > MAX_REDIRECTS:
            self.fail(post, head.status, f"{status}, for the {MAX_REDIRECTS + 1}th time")
        elif (target := location if location.startswith("/") else target_of(location)) in post.been:
            self.fail(post, head.status, f"{status} to {target}, where it was sent already")
        else:
            post.target = target
            self._begin(self._post(post))
            return False
        return True

    # Streams that are not a POST's

    async def _resume(self, post: Post) -> None:
        """Go on with a stream that ended before its answer."""
        rest = GetStream(self, post.about)
        rest.last_event_id, rest.retry_ms = post.last_event_id, post.retry_ms
        await asyncio.sleep(_pause_s(rest.retry_ms))
        why = await self._follow(rest, lambda: self._waiting.get(post.message.ids[0]) is post)
        self.fail(post, rest.status, why or "the stream ended before the answer, and was taken up in vain")

    async def _follow(self, stream: GetStream, is_wanted: Callable[[], bool] = lambda: True) -> str:
        """GET a stream, again and again, as long as it is wanted and brings something. Why it was refused, if it was."""
        vain = 0
        while is_wanted() and vain < MAX_VAIN:
            fields = self._fields(_ACCEPT_EVENTS)
            if stream.last_event_id is not None:
                fields.append((b"Last-Event-ID", stream.last_event_id))
            stream.begin()
            try:
                await self._wire.ask("GET", fields, b"", stream)
            except UnreachableError as error:
                return f"the server cannot be reached: {error}"
            await stream.ended.wait()
            if stream.status >= HTTP_REDIRECTS:
                return f"HTTP {stream.status} for the stream that was to be taken up"
            vain = 0 if stream.has_come else vain + 1
            if is_wanted() and vain < MAX_VAIN:
                await asyncio.sleep(_pause_s(stream.retry_ms))
        return ""

    def _begin(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _pause_s(retry_ms: int | None) -> float:
    return RETRY_S if retry_ms is None else min(retry_ms / 1000, 60.0)


def _words(head: ResponseHead | None) -> str:
    return head.reason.decode("latin-1") if head is not None else ""


async def _within(seconds: float, work: Coroutine[Any, Any, object]) -> None:
    """Wait for it, and no longer."""
    with suppress(TimeoutError):
        await asyncio.wait_for(work, seconds)

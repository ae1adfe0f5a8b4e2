"""What a peer over Streamable HTTP hears a server on: the response to each POST, and the streams that a GET opens.

Each remembers how far it has come. Refuses to decide what follows from its end: the peer does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ...transcript.http.payloads import body_pieces
from ...transcript.model import HTTP_REDIRECTS
from ...wire.jsonrpc import cut

if TYPE_CHECKING:
    from ...wire.http_head import ResponseHead
    from ...wire.sse import SseEvent
    from .headers import OutgoingMessage
    from .streamable import StreamableClient
    from .transaction import OutgoingRequest

MAX_WORDS: Final = 200
"""So much of a body that holds no message is told."""


class Post:
    """One POST and its response: what its message is, and where its stream has come to."""

    def __init__(self, peer: StreamableClient, message: OutgoingMessage) -> None:
        self._peer = peer
        self.message = message
        self.about = message.ids[0] if len(message.ids) == 1 else None
        self.transaction: OutgoingRequest | None = None
        self.taken = asyncio.Event()
        self.is_taken = False
        self.last_event_id: bytes | None = None
        self.retry_ms: int | None = None
        self.target = ""
        """Where it goes, if not to the server's own URL."""
        self.been: set[str] = set()
        """Where it was sent: to no place twice."""
        self.words = ""
        """How a body begins that holds no message, and is no page."""

    def answered(self, head: ResponseHead) -> None:
        self.is_taken = head.status < HTTP_REDIRECTS
        if self.message.opens:
            self._peer.opened(head)
        if self.is_taken:
            self.taken.set()

    def event(self, event: SseEvent) -> None:
        _note_place(self, event)
        _hear_event(self._peer, event, self.about)

    def body(self, body: bytes) -> None:
        pieces = body_pieces(body, is_json=False, answers=True)
        self.words = "" if pieces or body.lstrip()[:1] == b"<" else _first_words(body)
        for piece in pieces:
            self._peer.hear(piece, self.about)

    def over(self, why: str) -> None:
        if self._peer.ended(self, why):
            self.taken.set()


class GetStream:
    """A stream of events that a GET opens, and opens anew: the standing one, or the rest of the request `about`'s."""

    def __init__(self, peer: StreamableClient, about: str | None) -> None:
        self._peer = peer
        self._about = about
        self.opened = asyncio.Event()
        self.ended = asyncio.Event()
        self.has_come = False
        self.status = 0
        self.last_event_id: bytes | None = None
        self.retry_ms: int | None = None

    def begin(self) -> None:
        """It is asked for, once more."""
        self.ended.clear()
        self.has_come = False
        self.status = 0

    def answered(self, head: ResponseHead) -> None:
        self.status = head.status
        self.opened.set()

    def event(self, event: SseEvent) -> None:
        self.has_come = self.has_come or event.data is not None
        _note_place(self, event)
        _hear_event(self._peer, event, self._about)

    def body(self, body: bytes) -> None:
        """What is no stream of events is none."""

    def over(self, why: str) -> None:
        self.opened.set()
        self.ended.set()


class DeleteResponse:
    """What is asked last, of which only the end counts."""

    def __init__(self) -> None:
        self.over_event = asyncio.Event()

    def answered(self, head: ResponseHead) -> None: ...

    def event(self, event: SseEvent) -> None: ...

    def body(self, body: bytes) -> None: ...

    def over(self, why: str) -> None:
        self.over_event.set()


def _note_place(stream: Post | GetStream, event: SseEvent) -> None:
    """Remember the place in a stream: an id stays in force until the next, and an empty one takes it back (WHATWG HTML, 9.2.6)."""
    if event.id is not None:
        stream.last_event_id = event.id.encode("utf-8", "replace") or None
    if event.retry_ms is not None:
        stream.retry_ms = event.retry_ms


def _hear_event(peer: StreamableClient, event: SseEvent, about: str | None) -> None:
    if event.type == "message" and event.data:
        for piece in cut(event.data):
            peer.hear(piece, about)


def _first_words(body: bytes) -> str:
    lines = body[:4096].decode("utf-8", "replace").split("\n")
    return next((line.strip()[:MAX_WORDS] for line in lines if line.strip()), "")

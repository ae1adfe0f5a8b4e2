"""Streams of a server over Streamable HTTP: the response to each POST, and the streams that a GET opens.

Each remembers how far it has come. The client decides what follows from its end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from ...transcript.http.payloads import body_pieces
from ...transcript.model import HTTP_REDIRECTS
from ...wire.jsonrpc import cut

if TYPE_CHECKING:
    from ...wire.http_head import ResponseHead
    from ...wire.jsonrpc import Piece
    from ...wire.sse import SseEvent
    from .headers import UpstreamMessage
    from .transaction import OutgoingRequest

MAX_WORDS: Final = 200
"""How many letters are quoted of a body that holds no message."""


class StreamOwner(Protocol):
    """The client that reads a stream."""

    def open_session(self, head: ResponseHead) -> None:
        """Take the head of the response to `initialize`."""

    def receive(self, piece: Piece, about: str | None) -> None:
        """Take a message, on the stream of the request `about`."""

    def end_post(self, post: Post, why: str) -> bool:
        """Take the end of the response to a POST. Returns False if the POST is sent again elsewhere."""


class Post:
    """One POST and its response: its message, and the place that its stream has reached."""

    def __init__(self, owner: StreamOwner, message: UpstreamMessage) -> None:
        self._owner = owner
        self.message = message
        self.about = message.ids[0] if len(message.ids) == 1 else None
        self.transaction: OutgoingRequest | None = None
        self.taken = asyncio.Event()
        self.is_taken = False
        self.last_event_id: bytes | None = None
        self.retry_ms: int | None = None
        self.target = ""
        """Where it is sent, if not to the server's own URL."""
        self.targets: set[str] = set()
        """Where it has been sent: to no place twice."""
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
        if self._owner.end_post(self, why):
            self.taken.set()


class GetStream:
    """A stream of events that a GET opens, and opens again: the server stream, or the rest of the stream of the request `about`."""

    def __init__(self, owner: StreamOwner, about: str | None) -> None:
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


def _note_place(stream: Post | GetStream, event: SseEvent) -> None:
    """Remember the place in a stream: an id holds until the next one, and an empty one clears it (WHATWG HTML, 9.2.6)."""
    if event.id is not None:
        stream.last_event_id = event.id.encode("utf-8", "replace") or None
    if event.retry_ms is not None:
        stream.retry_ms = event.retry_ms


def _receive_event(owner: StreamOwner, event: SseEvent, about: str | None) -> None:
    if event.type == "message" and event.data:
        for piece in cut(event.data):
            owner.receive(piece, about)


def _first_words(body: bytes) -> str:
    lines = body[:4096].decode("utf-8", "replace").split("\n")
    return next((line.strip()[:MAX_WORDS] for line in lines if line.strip()), "")

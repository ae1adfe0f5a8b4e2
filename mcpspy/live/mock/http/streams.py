"""The streams of one client of a mock over HTTP: the response to each POST, and the server stream that a GET opens.

Both hold what cannot be sent yet, within bounds.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from ....replay.mock.scheduled_send import LiveServerBytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....replay.mock.http.answer import AnswerShape
    from .response import Fields, Response

MAX_KEPT: Final = 1_000
MAX_KEPT_BYTES: Final = 8 << 20
"""How much is held for a client that opens no stream or does not read it, and how much can be resumed; the oldest is dropped."""

_STREAM: Final = (("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache, no-transform"))
_JSON: Final = (("Content-Type", "application/json"),)


class PostResponse:
    """The response to a POST with requests. `waiting` are the ids of those without an answer.

    `response` is None once it has ended or was cut off; `keeps` means that what comes after that is kept for a client that resumes.
    """

    __slots__ = ("_fields", "_is_batch", "_shape", "is_modern", "keeps", "response", "waiting")

    def __init__(self, response: Response, fields: Fields, waiting: list[str], *, is_batch: bool, is_modern: bool) -> None:
        self.response: Response | None = response
        self.waiting = waiting
        self.is_modern = is_modern
        self.keeps = False
        self._fields = fields
        self._is_batch = is_batch
        self._shape: AnswerShape

    @property
    def ends_session(self) -> bool:
        """True if the session ends with the answer."""
        return self._shape.ends_session

    def begin(self, shape: AnswerShape, events: Sequence[bytes]) -> None:
        """Set how to answer; a stream begins at once, as from a server that does not know how long it will take."""
        self._shape = shape
        if shape.is_stream and self.response is not None:
            begin_stream(self.response, [*shape.fields, *self._fields], events, status=shape.status)

    def send(self, event: bytes) -> bool:
        """Send an event that is no answer. Returns False if nobody reads it."""
        if self.response is None:
            return False
        if not self.response.has_begun:
            self._begin_late(self.response)
        self.response.send(event)
        return True

    def conclude(self, id: str, line: bytes, event: bytes) -> bool:
        """Answer the request with this id. Returns False if nobody reads it."""
        if id in self.waiting:
            self.waiting.remove(id)
        response = self.response
        if response is None:
            return False
        if not response.has_begun and not self._is_batch:
            fields = merged_fields(_JSON, [*self._shape.fields, *self._fields])
            body = line.rstrip(b"\r\n")
            self.response = None
            response.whole(self._shape.status, fields, LiveServerBytes(body) if isinstance(line, LiveServerBytes) else body)
            return True
        if not response.has_begun:
            self._begin_late(response)
        if self.waiting:
            response.send(event)
        else:
            self.response = None
            response.end(event)
        return True

    def _begin_late(self, response: Response) -> None:
        begin_stream(response, [*self._shape.fields, *self._fields], status=self._shape.status)


class ServerStream:
    """The stream that belongs to no request, opened by a GET. What is sent before that, or faster than it is read, is held."""

    __slots__ = ("_kept", "_kept_bytes", "dropped", "response")

    def __init__(self) -> None:
        self.response: Response | None = None
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self.dropped = 0
        """How many events were dropped because too many were held."""

    @property
    def is_full(self) -> bool:
        """True if its reader is behind."""
        return self.response is not None and self.response.is_full

    def open(self, response: Response) -> None:
        """Write on `response`, which has begun, what is held."""
        self.response = response
        self.drain()

    def send(self, event: bytes) -> None:
        """Send an event, or hold it."""
        if self.response is not None and not self.response.is_full and not self._kept:
            self.response.send(event)
            return
        self._kept.append(event)
        self._kept_bytes += len(event)
        while len(self._kept) > MAX_KEPT or (self._kept_bytes > MAX_KEPT_BYTES and len(self._kept) > 1):
            self._kept_bytes -= len(self._kept.popleft())
            self.dropped += 1

    def drain(self) -> None:
        """Send what is held, as far as the reader takes it."""
        while self._kept and self.response is not None and not self.response.is_full:
            event = self._kept.popleft()
            self._kept_bytes -= len(event)
            self.response.send(event)

    def clear(self) -> None:
        """Drop what is held."""
        self._kept.clear()
        self._kept_bytes = 0

    def close(self) -> None:
        """End the stream, with its session."""
        if self.response is not None:
            response, self.response = self.response, None
            response.end()


class SentEvents:
    """The latest events with ids that one client got, for a client that resumes a stream."""

    __slots__ = ("_bytes", "_events", "_last")

    def __init__(self) -> None:
        self._events: deque[tuple[PostResponse | ServerStream, str, bytes]] = deque()
        self._bytes = 0
        self._last = 0

    def next_id(self) -> str:
        """Return an id that no other event of this client has."""
        self._last += 1
        return str(self._last)

    def add(self, stream: PostResponse | ServerStream, id: str, event: bytes) -> None:
        self._events.append((stream, id, event))
        self._bytes += len(event)
        while len(self._events) > MAX_KEPT or self._bytes > MAX_KEPT_BYTES:
            self._bytes -= len(self._events.popleft()[2])

    def after(self, id: str) -> tuple[PostResponse | ServerStream, list[bytes]] | None:
        """Return the stream of the event with this id, and the events after it on that stream; None if the id is unknown."""
        events = list(self._events)
        at = next((at for at, (_, known, _) in enumerate(events) if known == id), None)
        if at is None:
            return None
        stream = events[at][0]
        return stream, [event for other, _, event in events[at + 1 :] if other is stream]


def begin_stream(response: Response, fields: Fields, events: Sequence[bytes] = (), *, status: int = 200) -> None:
    """Write the head of a stream of events, with the first ones."""
    response.begin(status, merged_fields(_STREAM, fields), events)


def merged_fields(usual: Sequence[tuple[str, str]], fields: Fields) -> Fields:
    """Return `fields`, after the usual ones that they do not replace."""
    names = {name.lower() for name, _ in fields}
    return [*((name, value) for name, value in usual if name.lower() not in names), *fields]

"""Where a live client of a mock over HTTP hears what it is told: the response to each request, and the standing stream.

Both keep what cannot be sent yet, within bounds. Refuses to know what is said, and when.
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
"""So much waits for a client that opens no stream or does not read it, and so much can be resumed; then the oldest goes."""

_STREAM: Final = (("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache, no-transform"))
_JSON: Final = (("Content-Type", "application/json"),)


class PostResponse:
    """The response to a POST with requests. `waiting` are the ids of those that are not answered.

    `response` is None once it has ended or broke off; `keeps` says that what comes then is kept for a client that resumes it.
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
        """Whether its session is no more when it is answered."""
        return self._shape.ends_session

    def begin(self, shape: AnswerShape, events: Sequence[bytes]) -> None:
        """How it is answered; a stream begins at once, as a server does that does not know how long it will take."""
        self._shape = shape
        if shape.is_stream and self.response is not None:
            begin_stream(self.response, [*shape.fields, *self._fields], events, status=shape.status)

    def tell(self, event: bytes) -> bool:
        """Say this, which is no answer. Whether there is anybody to hear it."""
        if self.response is None:
            return False
        if not self.response.has_begun:
            self._begin_late(self.response)
        self.response.tell(event)
        return True

    def conclude(self, id: str, line: bytes, event: bytes) -> bool:
        """Answer the request with this id. Whether there is anybody to hear it."""
        if id in self.waiting:
            self.waiting.remove(id)
        response = self.response
        if response is None:
            return False
        if not response.has_begun and not self._is_batch:
            fields = merged(_JSON, [*self._shape.fields, *self._fields])
            body = line.rstrip(b"\r\n")
            self.response = None
            response.whole(self._shape.status, fields, LiveServerBytes(body) if isinstance(line, LiveServerBytes) else body)
            return True
        if not response.has_begun:
            self._begin_late(response)
        if self.waiting:
            response.tell(event)
        else:
            self.response = None
            response.end(event)
        return True

    def _begin_late(self, response: Response) -> None:
        begin_stream(response, [*self._shape.fields, *self._fields], status=self._shape.status)


class ServerStream:
    """The stream that belongs to no request, opened by a GET: what is told before that, or faster than it is read, waits."""

    __slots__ = ("_kept", "_kept_bytes", "dropped", "response")

    def __init__(self) -> None:
        self.response: Response | None = None
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self.dropped = 0
        """How many events were given up, since too many waited."""

    @property
    def is_full(self) -> bool:
        """Whether what is told has to wait for its reader."""
        return self.response is not None and self.response.is_full

    def open(self, response: Response) -> None:
        """`response` has begun, and tells what waits."""
        self.response = response
        self.drain()

    def tell(self, event: bytes) -> None:
        if self.response is not None and not self.response.is_full and not self._kept:
            self.response.tell(event)
            return
        self._kept.append(event)
        self._kept_bytes += len(event)
        while len(self._kept) > MAX_KEPT or (self._kept_bytes > MAX_KEPT_BYTES and len(self._kept) > 1):
            self._kept_bytes -= len(self._kept.popleft())
            self.dropped += 1

    def drain(self) -> None:
        """Its reader takes more."""
        while self._kept and self.response is not None and not self.response.is_full:
            event = self._kept.popleft()
            self._kept_bytes -= len(event)
            self.response.tell(event)

    def clear(self) -> None:
        """Nothing waits any more."""
        self._kept.clear()
        self._kept_bytes = 0

    def close(self) -> None:
        """Its session is over."""
        if self.response is not None:
            response, self.response = self.response, None
            response.end()


class SentEvents:
    """The newest events of one client that have ids: for a client that resumes a stream where it broke off."""

    __slots__ = ("_bytes", "_events", "_last")

    def __init__(self) -> None:
        self._events: deque[tuple[PostResponse | ServerStream, str, bytes]] = deque()
        self._bytes = 0
        self._last = 0

    def next_id(self) -> str:
        """An id that no other event of this client has."""
        self._last += 1
        return str(self._last)

    def add(self, stream: PostResponse | ServerStream, id: str, event: bytes) -> None:
        self._events.append((stream, id, event))
        self._bytes += len(event)
        while len(self._events) > MAX_KEPT or self._bytes > MAX_KEPT_BYTES:
            self._bytes -= len(self._events.popleft()[2])

    def after(self, id: str) -> tuple[PostResponse | ServerStream, list[bytes]] | None:
        """The stream that the event with this id was on, and what came on it after that; None if nobody knows the id."""
        events = list(self._events)
        found = next((at for at, one in enumerate(events) if one[1] == id), None)
        if found is None:
            return None
        stream = events[found][0]
        return stream, [event for other, _, event in events[found + 1 :] if other is stream]


def begin_stream(response: Response, fields: Fields, events: Sequence[bytes] = (), *, status: int = 200) -> None:
    """The head of a stream of events, with what is said at once."""
    response.begin(status, merged(_STREAM, fields), events)


def merged(usual: Sequence[tuple[str, str]], fields: Fields) -> Fields:
    """The usual fields, but for those that `fields` have; and these."""
    own = {name.lower() for name, _ in fields}
    return [*(one for one in usual if one[0].lower() not in own), *fields]

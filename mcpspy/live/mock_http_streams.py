"""Where a live client of a mock over HTTP hears what it is told: the response to each request, and the standing stream.

Both keep what cannot be sent yet, within bounds. Refuses to know what is said, and when.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..replay.routing import Answer
    from .mock_http_response import Fields, Response

MAX_KEPT: Final = 1_000
MAX_KEPT_BYTES: Final = 8 << 20
"""So much waits for a client that opens no stream or does not read it; then the oldest goes."""


class Reply:
    """The response to a POST with requests. `waiting` are the ids of those that are not answered.

    `response` is None once it broke off; `keeps` says that what comes then is kept for a client that resumes it.
    """

    __slots__ = ("answer", "answers", "fields", "is_batch", "is_modern", "keeps", "response", "waiting")

    def __init__(self, response: Response, fields: Fields, waiting: list[str], *, is_batch: bool, is_modern: bool) -> None:
        self.response: Response | None = response
        self.fields = fields
        self.waiting = waiting
        self.is_batch = is_batch
        self.is_modern = is_modern
        self.keeps = False
        self.answer: Answer

    def begin(self, answer: Answer, prelude: tuple[bytes, ...]) -> None:
        """How it is answered; a stream begins at once, as a server does that does not know how long it will take."""
        self.answer = answer
        if answer.is_stream and self.response is not None:
            self.response.begin(answer.status, self.fields, prelude)

    def say(self, event: bytes) -> bool:
        """Whether there is anybody to tell this, which is no answer."""
        if self.response is None:
            return False
        if not self.response.has_begun:
            self.response.begin(self.answer.status, self.fields)
        self.response.tell(event)
        return True

    def conclude(self, id: str, line: bytes, event: bytes) -> bool:
        """Answer the request with this id. Whether there is anybody to tell."""
        if id in self.waiting:
            self.waiting.remove(id)
        response = self.response
        if response is None:
            return False
        if not response.has_begun and not self.is_batch:
            response.whole(self.answer.status, [("Content-Type", "application/json"), *self.fields], line.rstrip(b"\r\n"))
            return True
        if not response.has_begun:
            response.begin(self.answer.status, self.fields)
        if self.waiting:
            response.tell(event)
        else:
            response.end(event)
        return True


class Standing:
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
        response.left = self._left
        response.drained = self._drain
        self._drain()

    def tell(self, event: bytes) -> None:
        if self.response is not None and not self.response.is_full and not self._kept:
            self.response.tell(event)
            return
        self._kept.append(event)
        self._kept_bytes += len(event)
        while len(self._kept) > MAX_KEPT or (self._kept_bytes > MAX_KEPT_BYTES and len(self._kept) > 1):
            self._kept_bytes -= len(self._kept.popleft())
            self.dropped += 1

    def close(self) -> None:
        """Its session is over."""
        if self.response is not None:
            response, self.response = self.response, None
            response.end()

    def _drain(self) -> None:
        while self._kept and self.response is not None and not self.response.is_full:
            event = self._kept.popleft()
            self._kept_bytes -= len(event)
            self.response.tell(event)

    def _left(self) -> None:
        self.response = None


class Sent:
    """The events of one client that have ids, the newest of them: for a client that resumes a stream where it broke off."""

    __slots__ = ("_events", "_given")

    def __init__(self) -> None:
        self._events: deque[tuple[Reply | Standing, str, bytes]] = deque(maxlen=MAX_KEPT)
        self._given: dict[str, int] = {}

    def live_id(self, recorded: str | None) -> str | None:
        """The id of an event that was recorded with this one: the same, but for one that is played again."""
        if recorded is None:
            return None
        times = self._given[recorded] = self._given.get(recorded, 0) + 1
        return recorded if times == 1 else f"{recorded}-{times}"

    def add(self, stream: Reply | Standing, id: str, event: bytes) -> None:
        self._events.append((stream, id, event))

    def after(self, id: str) -> tuple[Reply | Standing, list[bytes]] | None:
        """The stream that the event with this id was on, and what came on it after that; None if nobody knows the id."""
        found = next((at for at, one in enumerate(self._events) if one[1] == id), None)
        if found is None:
            return None
        stream = self._events[found][0]
        return stream, list(self._on(stream, found + 1))

    def _on(self, stream: Reply | Standing, begin: int) -> Iterator[bytes]:
        for at, one in enumerate(self._events):
            if at >= begin and one[0] is stream:
                yield one[2]

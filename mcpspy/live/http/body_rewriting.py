"""Bodies in which a name must be mapped: held back until it is known whether, and as short as can be.

Two kinds: the `endpoint` event at the beginning of an HTTP+SSE stream, and OAuth's protected-resource metadata. Refuses to
touch a byte where nothing is mapped. Each machine takes pieces of a body and returns what to send on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...wire.http_fields import removed, with_value
from ...wire.sse import BOM, SseEvents, parse, with_data

if TYPE_CHECKING:
    from ...records import Open, Record
    from ...wire.http_body import Body, BodyEnd
    from ...wire.http_head import ResponseHead
    from .rewriting import Mapping

MAX_HELD_BYTES = 1 << 20
"""A body that may have to be mapped is held back up to this size; a larger one passes as it is."""


class EndpointWatch:
    """The body of an SSE response, until its first event has been seen. Whole events pass at once; half a one waits for its end.

    `event` and `mapped` are the `endpoint` event as it came and as it was sent on, where that differs; `third` is the origin of one
    that names somebody else.
    """

    __slots__ = (
        "_body", "_chunks", "_events", "_held_bytes", "_is_first", "_is_over", "_mapping", "_original", "_raw", "_rechunks",
        "event", "mapped", "third",
    )  # fmt: skip

    def __init__(self, head: ResponseHead, mapping: Mapping) -> None:
        self._mapping = mapping
        self._events = SseEvents()
        self._chunks = _Chunks() if head.ends_by == "chunks" else None
        self._is_first = True
        self._is_over = head.ends_by == "length"  # one that has been sent leaves no room for another
        self._rechunks = False
        self._raw: list[bytes] = []
        self._body: list[bytes] = []
        self._held_bytes = 0
        self._original = b""
        self.event = b""
        self.mapped = b""
        self.third: str | None = None

    def feed(self, body: Body) -> bytes:
        if self._is_over and not self._rechunks:
            return body.raw
        is_boundary = self._chunks is None or self._chunks.feed(body.raw)
        if self._is_over:
            self._rechunks = not is_boundary
            return _chunk(body.payload)
        self._raw.append(body.raw)
        self._body.append(body.payload)
        self._held_bytes += len(body.raw)
        events = self._events.feed(body.payload)
        whole = events[:-1] if self._events.is_part else events
        self._is_over = any(map(self._ends_watch, whole)) or self._events.is_part
        if not self._is_over and (self._events.held_bytes or not is_boundary) and self._held_bytes < MAX_HELD_BYTES:
            return b""
        if not is_boundary and not self.mapped:
            self._is_over = True  # within a chunk whose size has been sent nothing can be changed any more
        released = self.release()
        self._rechunks = bool(self.mapped) and not is_boundary
        return released

    @property
    def is_idle(self) -> bool:
        """Whether it holds nothing, and will pass on all that comes as it comes."""
        return self._is_over and not self._rechunks and not self._raw

    def release(self) -> bytes:
        """What is held back."""
        raw, payload = b"".join(self._raw), b"".join(self._body)
        self._raw, self._body, self._held_bytes = [], [], 0
        if not self.mapped or not raw:
            return raw
        payload = payload.replace(self._original, self.mapped, 1)
        return payload if self._chunks is None else _chunk(payload)

    def _ends_watch(self, event: bytes) -> bool:
        """Whether this is the first event of all that says something: behind it no endpoint is announced."""
        said = parse(event, is_first=self._is_first)
        self._is_first = False
        if said.is_dispatched and said.type == "endpoint":
            self._map(event, (said.data or b"").decode("utf-8", "surrogateescape"))
        return said.is_dispatched

    def _map(self, event: bytes, data: str) -> None:
        self.third = self._mapping.names_a_third(data)
        mapped = self._mapping.endpoint_data(data)
        if mapped != data:
            new = mapped.encode("utf-8", "surrogateescape")
            self.event = self._original = event
            self.mapped = with_data(event, new, is_first=event.startswith(BOM))


class _Chunks:
    """Tells whether what has come so far ends where a chunk does, from the raw bytes of a chunked body."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = -1  # bytes of payload; 0: its CRLF; -1: the next size

    def feed(self, raw: bytes) -> bool:
        at, left = 0, self._left
        while at < len(raw):
            if left > 0:
                taken = min(left, len(raw) - at)
                at += taken
                left -= taken
            elif left == 0:  # the CRLF behind a chunk, and the line of a size, are never split between pieces
                at += 2
                left = -1
            else:
                end = raw.index(b"\r\n", at)
                left = int(raw[at:end].partition(b";")[0], 16)
                at = end + 2
        self._left = left
        return left < 0


class MetadataHold:
    """The response with protected-resource metadata, held back whole: its length changes with what is mapped.

    So is `opening`, its record, which says what head was sent on; `opened` has it once that is known.
    """

    __slots__ = ("_body", "_held_bytes", "_mapping", "_opening", "_raw", "_sent", "body", "head")

    def __init__(self, opening: Open, forwarded: bytes, mapping: Mapping) -> None:
        self._mapping = mapping
        self._opening: Open | None = opening
        self._raw = [forwarded]
        self._body: list[bytes] = []
        self._held_bytes = 0
        self._sent = False
        self.head = forwarded
        """The head that was sent on."""
        self.body = b""
        """The body that was sent on, where it differs."""

    def feed(self, body: Body) -> bytes:
        self._raw.append(body.raw)
        self._body.append(body.payload)
        self._held_bytes += len(body.payload)
        if self._sent or self._held_bytes >= MAX_HELD_BYTES:
            return self.release()
        return b""

    def close(self, end: BodyEnd) -> bytes:
        """The body is whole: what to send on for it."""
        if self._sent:
            return end.raw
        body = b"".join(self._body)
        mapped = self._mapping.metadata(body)
        if mapped == body:
            return self.release() + end.raw
        self._sent = True
        self.body = mapped
        self.head = with_value(removed(self._raw[0], b"transfer-encoding"), b"Content-Length", b"%d" % len(mapped))
        return self.head + mapped

    def release(self) -> bytes:
        """What is held back, as it came."""
        self._sent = True
        raw = b"".join(self._raw)
        self._raw, self._body = [], []
        return raw

    def opened(self, *, is_over: bool = False) -> list[Record]:
        """The record of the response's head, once: when its head has been sent on, or never will be."""
        opening = self._opening
        if opening is None or not (self._sent or is_over):
            return []
        self._opening = None
        opening.forwarded = None if self.head == opening.head else self.head
        return [opening]


def _chunk(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload) if payload else b""

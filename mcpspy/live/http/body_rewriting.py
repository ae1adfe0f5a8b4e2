"""Bodies in which a name may have to be rewritten, kept only until that is known.

There are three kinds: the `endpoint` event at the beginning of an HTTP+SSE stream, OAuth's metadata, and the forms of a login, which
are requests. Each class takes pieces of a body and returns the bytes to send on, which are the same bytes if nothing is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable

from ...records import Frame, Open, Record
from ...wire.http_body import Body, BodyEnd
from ...wire.http_head import ResponseHead, with_value, without_field
from ...wire.sse import BOM, SseEvents, parse, with_data
from .rewriting import Rewriting

MAX_HELD_BYTES = 1 << 20
"""A body is kept up to this size; a larger one passes unchanged."""


class EndpointWatch:
    """The body of an SSE response, watched until its first event. Whole events pass at once, half an event waits for its end.

    `endpoint` is what an `endpoint` event said, as it was sent on. `event` and `rewritten` are that event as it came and as it was
    sent on, if they differ. `third_party` is the origin
    that an endpoint names if that is neither ours nor the upstream's.
    """

    __slots__ = (
        "_before_bytes", "_body", "_chunks", "_events", "_held_bytes", "_is_first", "_is_over", "_rewriting", "_original", "_raw",
        "_rechunks", "endpoint", "event", "rewritten", "third_party",
    )  # fmt: skip

    def __init__(self, head: ResponseHead, rewriting: Rewriting) -> None:
        self._rewriting = rewriting
        self._events = SseEvents()
        self._chunks = _Chunks() if head.ends_by == "chunks" else None
        self._is_first = True
        self._is_over = head.ends_by == "length"  # one that has been sent leaves no room for another
        self._rechunks = False
        self._raw: list[bytes] = []
        self._body: list[bytes] = []
        self._held_bytes = 0
        self._before_bytes = 0  # of the events that are kept before the one that announces an endpoint
        self._original = b""
        self.endpoint = ""
        self.event = b""
        self.rewritten = b""
        self.third_party: str | None = None

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
        self._is_over = any(map(self.see, whole)) or self._events.is_part
        if not self._is_over and (self._events.held_bytes or not is_boundary) and self._held_bytes < MAX_HELD_BYTES:
            return b""
        if not is_boundary and not self.rewritten:
            self._is_over = True  # within a chunk whose size has been sent nothing can be changed any more
        released = self.release()
        self._rechunks = bool(self.rewritten) and not is_boundary
        return released

    @property
    def is_idle(self) -> bool:
        """True once it holds nothing and passes everything unchanged."""
        return self._is_over and not self._rechunks and not self._raw

    def release(self) -> bytes:
        """Return what is kept, rewritten."""
        raw, payload = b"".join(self._raw), b"".join(self._body)
        before = self._before_bytes
        self._raw, self._body, self._held_bytes, self._before_bytes = [], [], 0, 0
        if not self.rewritten or not payload.startswith(self._original, before):
            return raw
        payload = payload[:before] + self.rewritten + payload[before + len(self._original) :]
        return payload if self._chunks is None else _chunk(payload)

    @property
    def is_untouched(self) -> bool:
        """True if nothing has come yet."""
        return not self._is_over and not self._held_bytes and self._is_first

    def see(self, event: bytes) -> bool:
        """Return whether this is the first event that a reader dispatches: no endpoint is announced after it."""
        parsed = parse(event, is_first=self._is_first)
        self._is_first = False
        if parsed.is_dispatched and parsed.type == "endpoint":
            self._rewrite(event, (parsed.data or b"").decode("utf-8", "surrogateescape"))
        elif not parsed.is_dispatched:
            self._before_bytes += len(event)
        return parsed.is_dispatched

    def _rewrite(self, event: bytes, data: str) -> None:
        self.third_party = self._rewriting.third_party(data)
        rewritten = self.endpoint = self._rewriting.endpoint_data(data)
        if rewritten != data:
            new = rewritten.encode("utf-8", "surrogateescape")
            self.event = self._original = event
            self.rewritten = with_data(event, new, is_first=event.startswith(BOM))


class _Chunks:
    """Position in a chunked body: `feed` takes its raw bytes, and returns whether they end where a chunk ends."""

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
            elif left == 0:  # the CRLF after a chunk, and the line of a size, are never split between pieces
                at += 2
                left = -1
            else:
                end = raw.index(b"\r\n", at)
                left = int(raw[at:end].partition(b";")[0], 16)
                at = end + 2
        self._left = left
        return left < 0


class BodyHold:
    """A response with OAuth's metadata or a request with a form of a login, kept whole: rewriting changes its length in the head.

    `opening`, the record of its head, waits too, until the head that is sent on is known.
    """

    __slots__ = ("_body", "_held_bytes", "_opening", "_raw", "_rewrite", "body")

    def __init__(self, opening: Open, forwarded: bytes, rewrite: Callable[[bytes], bytes]) -> None:
        self._rewrite = rewrite
        self._opening: Open | None = opening
        self._raw = [forwarded]
        self._body: list[bytes] = []
        self._held_bytes = 0
        self.body: bytes | None = None
        """The body as it was sent on, if it differs."""

    def feed(self, body: Body, records: list[Record]) -> bytes:
        self._raw.append(body.raw)
        self._body.append(body.payload)
        self._held_bytes += len(body.payload)
        return self.release(records) if self._opening is None or self._held_bytes >= MAX_HELD_BYTES else b""

    def close(self, end: BodyEnd, ended: list[Record], records: list[Record]) -> bytes:
        """Return what to send on for the whole body. `ended` are the records of its end; the first says what was sent instead."""
        body = b"".join(self._body)
        rewritten = body if self._opening is None else self._rewrite(body)
        if rewritten == body:
            sent = self.release(records) + end.raw
        else:
            self.body = rewritten
            head = without_field(self._raw[0], b"transfer-encoding")
            self._raw = [with_value(head, b"Content-Length", b"%d" % len(rewritten)), rewritten]
            sent = self.release(records)
            if isinstance(ended[0], Frame):
                ended[0].rare["forwarded"] = rewritten
        records += ended
        return sent

    def release(self, records: list[Record]) -> bytes:
        """Return what is kept, and record the head."""
        raw, self._raw, self._body = self._raw, [], []
        if self._opening is not None:
            self._opening.forwarded = None if raw[0] == self._opening.head else raw[0]
            records.append(self._opening)
            self._opening = None
        return b"".join(raw)


def _chunk(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload) if payload else b""

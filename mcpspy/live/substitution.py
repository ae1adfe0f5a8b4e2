"""Bodies in which a name must be mapped: held back until it is known whether, and as short as can be.

Two kinds: the `endpoint` event at the beginning of an HTTP+SSE stream, and OAuth's protected-resource metadata. Refuses to
touch a byte where nothing is mapped. Each machine takes pieces of a body and returns what to send on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wire.http_fields import removed, with_value
from ..wire.sse import Events, parse, with_data

if TYPE_CHECKING:
    from ..wire.http_body import Body, End
    from ..wire.http_head import ResponseHead
    from .mapping import Mapping

MAX_HELD_BYTES = 1 << 20
"""A body that may have to be mapped is held back up to this size; a larger one passes as it is."""


class EndpointWatch:
    """The body of an SSE response, until its first event has been seen. Whole events pass at once; half a one waits for its end.

    `event` and `mapped` are the `endpoint` event as it came and as it was sent on, where that differs; `third` is the origin of one
    that names somebody else.
    """

    __slots__ = (
        "_body",
        "_events",
        "_is_first",
        "_is_over",
        "_mapping",
        "_raw",
        "_rechunks",
        "_uses_chunks",
        "event",
        "mapped",
        "third",
    )

    def __init__(self, head: ResponseHead, mapping: Mapping) -> None:
        self._mapping = mapping
        self._events = Events()
        self._uses_chunks = head.ends_by == "chunks"
        self._is_first = True
        self._is_over = head.ends_by not in (
            "chunks",
            "close",
        )  # a Content-Length that has been sent leaves no room for another
        self._rechunks = False
        self._raw: list[bytes] = []
        self._body: list[bytes] = []
        self.event = b""
        self.mapped = b""
        self.third: str | None = None

    def feed(self, body: Body) -> bytes:
        if self._is_over:
            return _chunk(body.payload) if self._rechunks else body.raw
        self._raw.append(body.raw)
        self._body.append(body.payload)
        for event in self._events.feed(body.payload):
            said = parse(event, is_first=self._is_first)
            self._is_first = False
            if said.is_dispatched:
                self._is_over = True
                if said.type == "endpoint":
                    self._map(event, said.text)
                break
        if not self._is_over and self._events.held_bytes and not self._events.is_part:
            return b""
        return self.close()

    def close(self) -> bytes:
        """What is held back."""
        raw, payload = b"".join(self._raw), b"".join(self._body)
        self._raw, self._body = [], []
        if not self._rechunks and not self.mapped:
            return raw
        payload = payload.replace(self.event, self.mapped, 1)
        return _chunk(payload) if self._rechunks else payload

    def _map(self, event: bytes, data: str) -> None:
        self.third = self._mapping.names_a_third(data)
        mapped = self._mapping.endpoint_data(data)
        if mapped != data:
            self.event, self.mapped = event, with_data(event, mapped.encode(), is_first=event.startswith(b"\xef"))
            self._rechunks = self._uses_chunks


class MetadataHold:
    """The response with protected-resource metadata, held back whole: its length changes with what is mapped."""

    __slots__ = ("_body", "_head", "_mapping", "_raw", "_sent", "body", "head")

    def __init__(self, head: ResponseHead, forwarded: bytes, mapping: Mapping) -> None:
        self._mapping = mapping
        self._head = head
        self._raw = [forwarded]
        self._body: list[bytes] = []
        self._sent = False
        self.head = forwarded
        """The head that was sent on."""
        self.body = b""
        """The body that was sent on, where it differs."""

    def feed(self, body: Body) -> bytes:
        self._raw.append(body.raw)
        self._body.append(body.payload)
        if self._sent or sum(map(len, self._body)) > MAX_HELD_BYTES:
            return self.release()
        return b""

    def close(self, end: End) -> bytes:
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


def _chunk(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload) if payload else b""

"""A request and its response as an HTTP tap sees them pass, and their heads as the other side must see them.

Only names are mapped (`mapping`), and compression is declined where a body may have to be read. Refuses to change any other byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...wire.body import body_framing
from ...wire.http_fields import mapped, with_value
from .rewriting import METADATA_PREFIX, Mapping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...wire.http_head import RequestHead, ResponseHead
    from .host_check import Gate, Refusal
    from .recorder import Recorded


class Asked:
    """What follows from a request's head: whether it may pass, as what it passes, and what its response may need.

    A client sends the same head again and again, but for its length; working this out costs 25 µs, finding it again 0.2.
    """

    __slots__ = ("forwarded", "framing", "is_metadata", "mapping", "method", "proves_address", "refusal", "wants_events")

    def __init__(
        self,
        head: RequestHead,
        gate: Gate,
        mapping: Mapping,
        extra_fields: Sequence[tuple[bytes, bytes]],
        *,
        speaks_mcp: bool = True,
    ) -> None:
        is_get = head.method == b"GET" and speaks_mcp
        self.method = head.method
        self.mapping = mapping
        self.refusal: Refusal | None = gate.refusal(head)
        self.framing = body_framing(head.value(b"content-type"), head.value(b"content-encoding"))
        self.wants_events = is_get and b"text/event-stream" in (head.value(b"accept") or b"")
        self.is_metadata = is_get and head.target.startswith(METADATA_PREFIX)
        self.proves_address = b"\r\ndpop:" in head.lowered
        self.forwarded = self._forwarded(head, extra_fields)

    def _forwarded(self, head: RequestHead, extra_fields: Sequence[tuple[bytes, bytes]]) -> bytes:
        """The head as the upstream must see it, with `extra_fields` in place of the client's, or behind them."""
        raw = with_value(head.raw, b"Host", self.mapping.upstream.host_field.encode())
        if b"\r\norigin:" in head.lowered:
            raw = mapped(raw, b"origin", self.mapping.origin_field)
        if self.wants_events or self.is_metadata:
            raw = mapped(raw, b"accept-encoding", lambda _: b"identity")
        for name, value in extra_fields:
            raw = with_value(raw, name, value)
        return raw


class Answered:
    """What follows from a response's head, for one mapping: as what it passes on, and how its body is cut.

    `flows` says that the body is a compressed stream of events: one unit, of which each stretch is worth recording when it comes.
    """

    __slots__ = ("flows", "forwarded", "framing")

    def __init__(self, head: ResponseHead, mapping: Mapping) -> None:
        self.framing = body_framing(head.value(b"content-type"), head.value(b"content-encoding"))
        self.flows = self.framing == "body" and body_framing(head.value(b"content-type")) == "sse"
        raw = head.raw
        if b"\r\nlocation:" in head.lowered:
            raw = mapped(raw, b"location", mapping.location)
        if b"\r\nwww-authenticate:" in head.lowered:
            raw = mapped(raw, b"www-authenticate", mapping.challenge)
        self.forwarded = raw


class Transaction:
    """A request and its response, which is None until its final head has come."""

    __slots__ = ("asked", "number", "request", "response")

    def __init__(self, number: int, asked: Asked, request: Recorded) -> None:
        self.number = number
        self.asked = asked
        self.request = request
        self.response: Recorded | None = None

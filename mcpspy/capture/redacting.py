"""A sink that takes secrets out of HTTP records on their way to the disk: heads, `endpoint` events, OAuth's bodies.

Refuses to look into JSON-RPC: which bodies are OAuth's is told by their type and their path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..records import Close, Frame, Open, Record

if TYPE_CHECKING:
    from .redact import Redactor

MAX_HEADS = 512
"""So many different heads are remembered as redacted: a client sends the same one again and again, and one costs 15 µs."""

OAUTH_PATHS = (b"/token", b"/register", b"/authorize", b"/revoke", b"/introspect", b"/device")


class Redacting:
    """Passes records on to `sink`, redacted. stdio records are passed on as they are."""

    __slots__ = ("_bodies", "_heads", "_oauth", "_redactor", "_sink", "_sse")

    def __init__(self, sink: Callable[[Sequence[Record]], None], redactor: Redactor) -> None:
        self._sink = sink
        self._redactor = redactor
        self._heads: dict[bytes, tuple[bytes, tuple[tuple[int, int, str], ...]]] = {}
        self._sse: set[int] = set()  # streams of events, which may announce an endpoint
        self._bodies: dict[int, str] = {}  # streams with bodies of OAuth, and their content types
        self._oauth: set[int] = set()  # transactions at OAuth's paths

    def __call__(self, records: Sequence[Record]) -> None:
        self._sink([self._redacted(record) for record in records])

    def _redacted(self, record: Record) -> Record:
        match record:
            case Open() if record.head:
                self._open(record)
            case Frame() if record.stream in self._sse:
                self._endpoint(record)
            case Frame() if record.stream in self._bodies:
                record.data, record.rare["redacted"] = self._redactor.body(record.data, self._bodies[record.stream])
            case Close():
                self._sse.discard(record.stream)
                self._bodies.pop(record.stream, None)
        return record

    def _open(self, record: Open) -> None:
        content_type = _content_type(record.head)
        path = record.head.split(b" ", 2)[1].partition(b"?")[0] if record.name == "request" else b""
        if any(path.endswith(one) for one in OAUTH_PATHS):
            self._oauth.add(record.transaction)
        if record.framing == "sse":
            self._sse.add(record.stream)
        elif record.transaction in self._oauth or content_type.startswith("application/x-www-form-urlencoded"):
            self._bodies[record.stream] = content_type
            if record.name == "response":
                self._oauth.discard(record.transaction)
        record.head, record.redacted = self._head(record.head)
        if record.forwarded is not None:
            record.forwarded, _ = self._head(record.forwarded)

    def _head(self, head: bytes) -> tuple[bytes, tuple[tuple[int, int, str], ...]]:
        found = self._heads.get(head)
        if found is None:
            if len(self._heads) >= MAX_HEADS:
                self._heads.clear()
            found = self._heads[head] = self._redactor.head(head)
        return found

    def _endpoint(self, record: Frame) -> None:
        """Only the first events of a stream may be one; from the first message on nothing is looked at."""
        if b"endpoint" not in record.data[:64]:
            if record.data[:1] != b":":
                self._sse.discard(record.stream)
            return
        record.data, redacted = self._redactor.endpoint(record.data)
        if redacted:
            record.rare["redacted"] = redacted
        if record.forwarded is not None:
            record.rare["forwarded"], _ = self._redactor.endpoint(record.forwarded)


def _content_type(head: bytes) -> str:
    at = head.lower().find(b"\r\ncontent-type:")
    if at < 0:
        return ""
    begin = at + len(b"\r\ncontent-type:")
    return head[begin : head.find(b"\r\n", begin)].strip().decode("latin-1").lower()

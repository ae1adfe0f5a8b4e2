"""HTTP transactions, their streams, and the scopes of their request ids.

No messages are held: a message knows its stream, and a stream its transaction. Structs, for the reasons that `model` gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from sys import intern
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from ...records import CLIENT, MCPSPY, Close, Frame, Note, Open, Redaction, Side
from .head import EVENT_STREAM, Head, read_head

if TYPE_CHECKING:
    from ...usual_lines import CloseLine, OpenLine

MAX_INJECTED_BYTES: Final = 500
"""The longest body of an injected response that is kept."""

MAX_REFUSAL_BYTES: Final = 320
"""So many bytes are kept of the body of a response with an error status."""

DONE_EVENT: Final = "done-event"
OTHER_EVENT: Final = "other-event"
"""Names of anomalies: events without a message, which are the end mark of chat completions, or of another type."""
UNREAD: Final = "not-read"
"""The name of an anomaly: what the server sent could not be read, from here on or at all."""
NO_ENDPOINT: Final = "no-endpoint"
"""The name of an anomaly: a stream that did not announce where to POST, and answers what is posted there."""


HALF_CLOSED: Final = "half-closed"
ANSWER_TAKEN: Final = "answer-taken"
ANSWER_REFUSED: Final = "answer-refused"
"""Topics of notes: a client closed its half of the connection, and whether it took what it was sent after that."""


OpenChunk: TypeAlias = "tuple[int, int] | None"
"""The size of a chunk of which bytes are still to come, and how many."""


class ScopeKind(StrEnum):
    """The reach of a request id (MCP specification, basic/transports of each revision)."""

    TRANSACTION = "transaction"
    """One transaction: revisions from 2026-07-28, and older servers without sessions."""
    SESSION = "session"
    """All transactions with one `Mcp-Session-Id`: Streamable HTTP of 2025-03-26 to 2025-11-25."""
    STREAM = "stream"
    """A GET that is answered by a stream of events, and the POSTs that are answered on it: HTTP+SSE of 2024-11-05."""


class Scope(msgspec.Struct, eq=False, gc=False):
    """A scope of request ids. `session` is the session's id; `stream` is the number of the GET's transaction.

    `client` is the name that the client of this scope gave itself; empty until it does.
    """

    kind: ScopeKind
    session: str = ""
    stream: int = 0
    client: str = ""
    unknown_since: int = 0
    """The number of the first transaction whose answer was that the session is unknown (404); 0 if there is none."""
    replaces: Scope | None = None
    """The unknown session whose place this one took."""
    unread: bool = False
    """True if a stream on which its requests may be answered could not be read to its end."""

    @property
    def is_one_transaction(self) -> bool:
        """True if ids mean nothing beyond one transaction."""
        return self.kind is ScopeKind.TRANSACTION


class Anomaly(msgspec.Struct, frozen=True, gc=False):
    """An anomaly of a stream that no message carries: the number of its record, a stable name, and the bytes it is about."""

    number: int
    at_ns: int
    name: str
    data: bytes = b""


class KeepAlives(msgspec.Struct, eq=False, gc=False):
    """Signs of life in a row on one stream, comments or events of type `ping`: the record and time of the last, and how many."""

    number: int
    first_ns: int
    last_ns: int
    count: int
    events: int
    """The number of events on the stream until then: another one ends the row."""


class AnnouncedEndpoint(msgspec.Struct, frozen=True, gc=False):
    """The endpoint that a stream of HTTP+SSE announced: path and query, as the server named them."""

    number: int
    at_ns: int
    target: str


class Closing(msgspec.Struct, eq=False, gc=False):
    """The end of a stream: the number of its record, who closed it, and how (see `records.Close`)."""

    number: int
    by: str
    how: str
    extra: Mapping[str, Any] = MappingProxyType({})
    """Members that this version does not know."""


class Stream(msgspec.Struct, eq=False, gc=False):
    """One stream of a transaction: what the records say that opened and closed it, its size and its times.

    `number` is its number in the capture, `record` that of the record that opened it. See `records.Open` for `name`, `framing`,
    `forwarded` and `redacted`. Times are on the transcript's clock; None if it did not happen. `kept` are its frames, in a transcript
    that keeps frames.
    """

    number: int
    record: int
    transaction: int
    sender: Side
    name: str
    framing: str
    raw_head: bytes
    """The bytes of its head."""
    forwarded: bytes | None
    redacted: Sequence[Redaction]
    injected: bool
    """True if mcpspy itself wrote it."""
    at_ns: int
    """The time at which its head was read."""
    first_ns: int | None = None
    """The time of the first byte of its body."""
    last_ns: int | None = None
    """The time of the last byte of its body."""
    body_bytes: int = 0
    events: int = 0
    """The number of SSE events with data."""
    comments: int = 0
    """The number of SSE comments, which keep a connection alive."""
    keep_alives: Sequence[KeepAlives] = ()
    """Its comments and the like, in rows between its events."""
    endpoint: AnnouncedEndpoint | None = None
    chunks: int = 0
    """The number of HTTP/1.1 chunks of its body."""
    open_chunk: OpenChunk = None
    """The chunk that goes on after its last frame."""
    last_event_id: str = ""
    close: Closing | None = None
    closed_ns: int | None = None
    kept: Sequence[Frame] = ()

    @property
    def head(self) -> Head:
        """Its head, read anew at each call."""
        return read_head(self.raw_head)


def opened_stream(record: Open | OpenLine, shift_ns: int) -> tuple[Stream, Head]:
    """Return the stream that a record opens, and its head."""
    raw, forwarded, redacted = record.head, record.forwarded, record.redacted
    head = read_head(raw.encode() if isinstance(raw, str) else raw)
    if not isinstance(forwarded, bytes | None):
        forwarded = None if forwarded is msgspec.UNSET else forwarded.encode()
    stream = Stream(
        record.stream, record.number, record.transaction, record.sender, intern(record.name), intern(record.framing),
        head.raw_bytes, forwarded, redacted or (), bool(record.injected),
        record.at_ns + shift_ns if shift_ns else record.at_ns,
    )  # fmt: skip
    return stream, head


def stream_end(record: Close | CloseLine) -> Closing:
    """Return what a record says about the end of its stream."""
    closing = Closing(record.number, intern(record.by), intern(record.how))
    if isinstance(record, Close) and record.extra:
        closing.extra = record.extra
    return closing


class Transaction(msgspec.Struct, eq=False, gc=False):
    """An HTTP request and its response. `row` is the number of its own row; 0 if it has none.

    It has a row if its request carries no message: a GET, a DELETE, metadata, OAuth. `number` and `connection` count from 1 in its
    capture.
    """

    capture: int
    number: int
    connection: int
    scope: Scope
    at_ns: int
    method: str = ""
    target: str = ""
    status: int = 0
    """0 while there is no response."""
    row: int = 0
    request: Stream | None = None
    response: Stream | None = None
    interim: Sequence[Stream] = ()
    """Responses before the final one, such as 103."""
    notes: Sequence[Note] = ()
    """The tap's notes about it."""
    left_by: str = ""
    """`client`, `server` or `mcpspy`, if it closed the connection before there was a response; else empty."""
    left_ns: int | None = None
    """The time at which that side closed it."""
    half_closed_ns: int | None = None
    """The time at which the client closed its half of the connection. It may wait for the response, or have left."""
    request_messages: int = 0
    """The number of messages in its request."""
    response_messages: int = 0
    """The number of messages in its response."""
    redelivered: Sequence[int] = ()
    """The records of events that a stream resumed by this one had brought before. They are not counted again."""
    anomalies: Sequence[Anomaly] = ()
    refusal: bytes = b""
    """The beginning of its response's body, decompressed, if its status is 300 or more."""
    intercepted: bool = False
    """True if an intercept acted on a message in it."""

    @property
    def is_stream(self) -> bool:
        """True if it was answered by a stream of events."""
        return self.response is not None and self.response.head.media_type == EVENT_STREAM

    @property
    def streams(self) -> list[Stream]:
        """Its streams so far: the request, and the responses in their order."""
        return [stream for stream in (self.request, *self.interim, self.response) if stream is not None]

    @property
    def user_agent(self) -> str:
        """The program that its client named in `User-Agent`; empty if it named none."""
        return "" if self.request is None else self.request.head.get("user-agent")

    @property
    def over(self) -> bool:
        """True once it has ended."""
        return self.ended_ns is not None

    @property
    def ended_ns(self) -> int | None:
        """The end of its response, or of the connection before there was one; None while it goes on.

        A client that closed its half of the connection, and took nothing that came later, had left when it closed it.
        """
        ended_ns = self.left_ns if self.response is None else self.response.closed_ns
        if ended_ns is not None and self.half_closed_ns is not None and self.ended_by == CLIENT:
            return self.half_closed_ns
        return ended_ns

    @property
    def ended_by(self) -> str:
        """`client`, `server` or `mcpspy`, whichever ended it first; empty while it goes on."""
        response = self.response
        by = self.left_by if response is None else "" if response.close is None else response.close.by
        if by == MCPSPY and self.half_closed_ns is not None and not self._came_later(self.half_closed_ns):
            return CLIENT
        return by

    def _came_later(self, left_ns: int) -> bool:
        """Return whether bytes of the response came after that. Half an event is recorded when its stream ends."""
        response = self.response
        return response is not None and left_ns < (response.last_ns or 0) < (response.closed_ns or 0)

    @property
    def duration_ns(self) -> int | None:
        """From its first byte to the end of its response; None while that goes on."""
        return None if self.ended_ns is None else self.ended_ns - self.at_ns


def is_unread(transaction: Transaction) -> bool:
    """Return whether requests in a transaction may have been answered by what could not be read."""
    return transaction.scope.unread or any(anomaly.name == UNREAD for anomaly in transaction.anomalies)

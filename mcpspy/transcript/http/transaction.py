"""What HTTP adds to a transcript: transactions, their two streams, and the scopes in which their request ids mean something.

Refuses to hold messages: these know their stream, and the stream its transaction. Structs like those of `model`, for its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from .head import EVENT_STREAM, Head, read_head

if TYPE_CHECKING:
    from ...records import Close, Frame, Note, Open

MAX_INJECTED_BYTES: Final = 500
"""So much is kept of what mcpspy itself said."""


class ScopeKind(StrEnum):
    """How far a request id reaches (MCP specification, basic/transports of each revision)."""

    TRANSACTION = "transaction"
    """One request and its response: revisions from 2026-07-28, and older servers without sessions."""
    SESSION = "session"
    """All transactions with one `Mcp-Session-Id`: Streamable HTTP of 2025-03-26 to 2025-11-25."""
    STREAM = "stream"
    """A GET that is answered by a stream of events, and the POSTs whose answers come on it: HTTP+SSE of 2024-11-05."""


class Scope(msgspec.Struct, eq=False, gc=False):
    """Where request ids mean something. `session` is the session's id; `stream` the number of the GET's transaction.

    `client` is what the client of this scope calls itself; empty as long as it has not said so.
    """

    kind: ScopeKind
    session: str = ""
    stream: int = 0
    client: str = ""
    unknown_since: int = 0
    """The first transaction that was told that the server knows the session no more; 0 if none was."""
    replaces: Scope | None = None
    """The session that was lost, where this one took its place."""

    @property
    def is_one_transaction(self) -> bool:
        """Whether ids mean nothing beyond one request and its response."""
        return self.kind is ScopeKind.TRANSACTION


class Anomaly(msgspec.Struct, frozen=True, gc=False):
    """Something about a stream that no message carries: the record it was seen in, a stable name, and the bytes it is about."""

    number: int
    at_ns: int
    name: str
    data: bytes = b""


class Stream(msgspec.Struct, eq=False, gc=False):
    """One stream of a transaction: what opened it, how much came on it and when, and who ended it.

    Times are on the transcript's clock; None for what did not happen. `kept` are its frames, for a transcript that keeps them.
    """

    opened: Open
    at_ns: int
    """When its head was read."""
    first_ns: int | None = None
    """When the first byte of its body came."""
    last_ns: int | None = None
    """When the last byte of its body came."""
    body_bytes: int = 0
    events: int = 0
    """Events of SSE that have data."""
    comments: int = 0
    """Comments of SSE, which keep a connection alive."""
    chunks: int = 0
    """HTTP/1.1 chunks of its body."""
    last_event_id: str = ""
    close: Close | None = None
    closed_ns: int | None = None
    kept: Sequence[Frame] = ()

    @property
    def head(self) -> Head:
        """What opened it, read anew at each call."""
        return read_head(self.opened.head)

    @property
    def injected(self) -> bool:
        """Whether mcpspy itself wrote it."""
        return self.opened.injected


class Transaction(msgspec.Struct, eq=False, gc=False):
    """An HTTP request and its response. `row` is its number if it has a row of its own, else 0.

    It has one if its request carries no message: a GET, a DELETE, metadata, what OAuth needs. `number` and `connection` count
    from 1 in its capture.
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
    """Responses before the final one, as 103."""
    notes: Sequence[Note] = ()
    """What the tap had to say about it."""
    left_by: str = ""
    """Who ended the connection before there was a response: `client`, `server` or `mcpspy`."""
    left_ns: int | None = None
    request_messages: int = 0
    """Messages in its request."""
    response_messages: int = 0
    """Messages in its response."""
    redelivered: Sequence[int] = ()
    """The records of events that had come before, on a stream that this one resumes. They are not counted again."""
    anomalies: Sequence[Anomaly] = ()

    @property
    def is_stream(self) -> bool:
        """Whether it was answered by a stream of events."""
        return self.response is not None and self.response.head.media_type == EVENT_STREAM

    @property
    def over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.ended_ns is not None

    @property
    def ended_ns(self) -> int | None:
        """When its response ended, or the connection before there was one; None while it goes on."""
        return self.left_ns if self.response is None else self.response.closed_ns

    @property
    def ended_by(self) -> str:
        """Who ended it; empty while it goes on."""
        if self.response is None:
            return self.left_by
        return "" if self.response.close is None else self.response.close.by

    @property
    def duration_ns(self) -> int | None:
        """From its first byte to the end of its response; None while that goes on."""
        return None if self.ended_ns is None else self.ended_ns - self.at_ns

"""The durations of the MCP sessions of a transcript, by the semantic conventions.

On stdio a capture is a session, from its first request to its last record. Over HTTP a session has an id, and lasts from its first
HTTP transaction to the end of its last; without an id there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..transcript.http.transaction import Transaction
from ..transcript.model import CaptureInfo, Exchange, Transcript
from .operations import transport_attributes
from .span import Attributes, own_context


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTime:
    """The time that a session took which is over. Times are Unix time; `span_id` is the id that a span of it would have."""

    is_server: bool
    attributes: Attributes
    began_ns: int
    ended_ns: int
    span_id: int


def session_times(transcript: Transcript, *, as_server: bool) -> Iterator[SessionTime]:
    """Yield a time for each session that is over and in which there was a request."""
    revisions: dict[tuple[int, str], str | None] = {}
    began_ns: dict[tuple[int, str], int] = {}
    for row in transcript.rows:
        if isinstance(row, Exchange):
            of_session = row.capture, "" if row.transaction is None else row.transaction.scope.session
            began_ns.setdefault(of_session, row.at_ns)
            revisions[of_session] = revisions.get(of_session) or row.revision
    for (index, session), first_ns in began_ns.items():
        info = transcript.captures[index]
        span = _http(info, session) if info.transactions else (first_ns, info.last_ns + info.shift_ns) if info.closed else None
        if span is None or info.header is None:
            continue
        attributes = transport_attributes(None, info)
        revision = revisions[index, session]
        if revision is not None:
            attributes["mcp.protocol.version"] = revision
        wall_ns = info.header.wall_ns - info.shift_ns
        yield SessionTime(
            is_server=as_server,
            attributes=attributes,
            began_ns=wall_ns + span[0],
            ended_ns=wall_ns + max(span),
            span_id=own_context(info.header.capture_id, "session", session).span_id,
        )


def _http(info: CaptureInfo, session: str) -> tuple[int, int] | None:
    """Return the beginning and the end of a session over HTTP; None if it has no id, or is not over."""
    own = [transaction for transaction in info.transactions.values() if transaction.scope.session == session]
    is_over = info.closed or any(transaction.method == "DELETE" and transaction.status for transaction in own)
    if not session or not own or not is_over:
        return None
    return min(transaction.at_ns for transaction in own), max(_ended_ns(transaction) for transaction in own)


def _ended_ns(transaction: Transaction) -> int:
    return transaction.at_ns + (transaction.duration_ns or 0)

"""Routing: the HTTP stream on which a mock sends each message, as recorded over Streamable HTTP, else as the specification has it.

What belongs to a request goes on its response, as long as that is open. Everything else goes on the server stream, which a GET opens.
Source: MCP specification, basic/transports of each revision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....records import SERVER
from ....transcript.http.head import LAST_EVENT_ID
from ....transcript.http.transaction import ScopeKind
from ....transcript.mcp.codes import SUBSCRIPTION_ID
from ....transcript.mcp.methods import LISTEN
from ....transcript.mcp.revisions import Era
from ..scheduled_send import OF_NO_REQUEST
from .answer import playable_fields, without_type
from .recorded_http import status_of_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....transcript.http.transaction import Transaction
    from ....transcript.model import Message, Transcript
    from ..scheduled_send import ScheduledSend
    from .answer import AnswerShape, EventStyle, Fields
    from .recorded_http import HttpFacts


class Routing:
    """The streams of one capture. It never changes; any number of live clients share it."""

    __slots__ = ("_captures", "_facts", "server_stream_fields")

    def __init__(self, transcript: Transcript, facts: HttpFacts) -> None:
        self._captures = transcript.captures
        self._facts = facts
        self.server_stream_fields = _server_stream_fields(transcript, facts.transport)
        """The fields of the server stream, which browsers demand of every response."""

    def is_on_server_stream(self, send: ScheduledSend) -> bool:
        """Return whether a message goes on the server stream, even if the response to its request is open."""
        if send.state.request is None:
            return True
        if send.step is None or send.answers:
            return False
        if send.state.request.method != LISTEN and SUBSCRIPTION_ID.encode() in send.data:
            return True  # the response to that subscription is a stream of its own
        transaction = self._transaction(send.step.message)
        if transaction is not None:
            return transaction.method == "GET" and not _resumes(transaction)
        exchange = send.state.reply.exchange
        if send.step.exchange is not None and send.step.exchange is exchange:
            return False
        return send.state.request.era is not Era.MODERN and (send.step.message.method or "").endswith(OF_NO_REQUEST)

    def breaks_off(self, send: ScheduledSend) -> bool:
        """Return whether the server had ended the response before this message, so that the client had to resume (2025-11-25)."""
        exchange = send.state.reply.exchange
        transaction = None if send.step is None else self._transaction(send.step.message)
        if exchange is None or transaction is None or transaction is exchange.transaction or not _resumes(transaction):
            return False
        return exchange.transaction is not None and exchange.transaction.ended_by == SERVER

    def shape(self, sends: Sequence[ScheduledSend]) -> AnswerShape:
        """Return the form of the response to a request; `sends` are what follows it as long as the client sends nothing more."""
        on_response = [send for send in sends if send.data and not self.is_on_server_stream(send)]
        exchange = next((send.state.reply.exchange for send in sends if send.state.reply.exchange is not None), None)
        shape = self._facts.shape(0 if exchange is None else exchange.row)
        if not on_response or not on_response[0].answers:
            return shape._replace(is_stream=True)
        first = on_response[0]
        if exchange is None and first.miss is not None and first.state.request is not None:
            return shape._replace(status=status_of_error(first.miss.code, first.state.request.era))
        return shape

    def _transaction(self, message: Message) -> Transaction | None:
        """Find the transaction that carried a message over Streamable HTTP."""
        transaction = self._captures[message.capture].transaction_of(message.stream)
        return None if transaction is None or transaction.scope.kind is ScopeKind.STREAM else transaction


def event(line: bytes, style: EventStyle, id: str | None = None) -> bytes:
    """Write a message, given as a line of stdio, as an event."""
    # CR would end a line of the event; JSON has it between its tokens alone
    lines = [b"data: " + line.rstrip(b"\r\n").replace(b"\r", b" ")]
    if id is not None:
        lines.insert(0, b"id: " + id.encode())
    if style.names_type:
        lines.insert(0, b"event: message")
    return _ended(lines, style)


def priming(style: EventStyle, id: str) -> bytes:
    """Write the event that gives a stream its first id, so that it can be resumed before any message came (2025-11-25)."""
    lines = [b"id: " + id.encode(), b"data: "]
    if style.retry_ms is not None:
        lines.insert(1, b"retry: %d" % style.retry_ms)
    return _ended(lines, style)


def endpoint_event(data: bytes, style: EventStyle) -> bytes:
    """Write the event that announces the endpoint of HTTP+SSE."""
    return _ended([b"event: endpoint", b"data: " + data], style)


def _ended(lines: list[bytes], style: EventStyle) -> bytes:
    line_end = b"\r\n" if style.is_crlf else b"\n"
    return line_end.join([*lines, b"", b""])


def _server_stream_fields(transcript: Transcript, transport: str) -> Fields:
    for capture in transcript.captures:
        for transaction in capture.transactions.values():
            if transaction.method != "GET" or not transaction.is_stream or transaction.response is None:
                continue
            if (transaction.scope.kind is ScopeKind.STREAM) == (transport == "sse"):
                return without_type(playable_fields(transaction.response.head))
    return ()


def _resumes(transaction: Transaction) -> bool:
    return transaction.request is not None and bool(transaction.request.head.get(LAST_EVENT_ID))

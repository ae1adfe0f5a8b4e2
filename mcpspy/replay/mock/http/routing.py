"""Routing: the HTTP stream on which a mock sends each message, as recorded over Streamable HTTP, else as the specification has it.

What belongs to a request goes on its response, as long as that is open. Everything else goes on the server stream, which a GET opens.
Source: MCP specification, basic/transports of each revision.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....records import SERVER
from ....transcript.http.head import LAST_EVENT_ID
from ....transcript.http.transaction import ScopeKind, Transaction
from ....transcript.mcp.codes import SUBSCRIPTION_ID
from ....transcript.mcp.methods import LISTEN
from ....transcript.mcp.revisions import Era
from ....transcript.model import Message, Transcript
from ..batches import refilled
from ..replies import SendMessage
from ..scheduled_send import OF_NO_REQUEST, LiveServerBytes, ScheduledSend
from .answer import STREAM_FIELDS, AnswerShape, EventStyle, Fields, playable_fields
from .events import BARE_EVENT, RecordedEvents
from .exchanges import received_head, whole_body
from .recorded_http import HttpFacts, status_of_error


class Routing:
    """The streams of one capture. Any number of live clients share it. `answers_with_events`: never with a body that succeeds."""

    __slots__ = ("_answers_with_events", "_captures", "_events", "_facts", "server_stream_fields")

    def __init__(self, transcript: Transcript, facts: HttpFacts, *, answers_with_events: bool = False) -> None:
        self._answers_with_events = answers_with_events
        self._captures = transcript.captures
        self._facts = facts
        self._events = RecordedEvents(transcript, facts.transport)
        self.server_stream_fields = _server_stream_fields(transcript, facts.transport)
        """The fields of the server stream."""

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

    def event(self, send: ScheduledSend, id: str | None = None) -> bytes:
        """Write a message as an event: in the bytes that were recorded around it, else in the server's style.

        Empty for an event without a message that was recorded over the other transport.
        """
        recorded = None if send.step is None else send.step.message
        written = None if recorded is None else self._events.event(recorded, send.data, id)
        if written is None and recorded is not None and recorded.reason == BARE_EVENT:
            return b""
        return event(send.data, self._facts.event_style, id) if written is None else written

    def goes_on_after(self, send: ScheduledSend) -> bool:
        """Return whether the recorded response to a request went on after this message of it."""
        step, steps = send.step, send.state.reply.steps
        transaction = None if step is None else self._transaction(step.message)
        if step is None or transaction is None or not transaction.is_stream:
            return False
        later = (later for later in steps[steps.index(step) + 1 :] if isinstance(later, SendMessage) and not later.once)
        return any(self._transaction(other.message) is transaction for other in later)

    def ends_unanswered(self, send: ScheduledSend) -> bool:
        """Return whether the server ended the response after this message without an answer, which nothing could resume."""
        exchange = send.state.reply.exchange
        transaction = None if send.step is None else self._transaction(send.step.message)
        if exchange is None or transaction is None or transaction is not exchange.transaction or transaction.response is None:
            return False
        is_given_up = exchange.response is None and exchange.cancelled is None and not transaction.response.last_event_id
        return is_given_up and transaction.ended_by == SERVER and not self.goes_on_after(send)

    def is_in_body(self, send: ScheduledSend) -> bool:
        """Return whether this message was recorded in the body that answered its request."""
        exchange = send.state.reply.exchange
        transaction = None if send.step is None else self._transaction(send.step.message)
        return (
            transaction is not None
            and exchange is not None
            and transaction is exchange.transaction
            and not transaction.is_stream
        )

    def body(self, send: ScheduledSend, parts: Sequence[ScheduledSend]) -> bytes:
        """Return a body with these messages, the last of which is `send`: in the bytes that were recorded around them."""
        response = None
        if (
            self.is_in_body(send)
            and send.step is not None
            and (transaction := self._transaction(send.step.message)) is not None
        ):
            response = transaction.response
        recorded = None if response is None else whole_body(response, received_head(response))
        body = send.data.rstrip(b"\r\n") if recorded is None else refilled(recorded, parts)
        return LiveServerBytes(body) if isinstance(send.data, LiveServerBytes) else body

    def breaks_off(self, send: ScheduledSend) -> bool:
        """Return whether the server had ended the response before this message, so that the client had to resume (2025-11-25)."""
        exchange = send.state.reply.exchange
        transaction = None if send.step is None else self._transaction(send.step.message)
        if exchange is None or transaction is None or transaction is exchange.transaction or not _resumes(transaction):
            return False
        return exchange.transaction is not None and exchange.transaction.ended_by == SERVER

    def shape(self, sends: Sequence[ScheduledSend]) -> AnswerShape:
        """Return the form of the response to a request; `sends` are what follows it as long as the client sends nothing more."""
        on_response = [
            send
            for send in sends
            if send.data and not self.is_on_server_stream(send) and (send.answers or not self.is_in_body(send))
        ]
        exchange = next((send.state.reply.exchange for send in sends if send.state.reply.exchange is not None), None)
        shape = self._facts.shape(0 if exchange is None else exchange.row)
        if not on_response or not on_response[0].answers:
            return shape.as_stream()
        first = on_response[0]
        if exchange is None and first.miss is not None and first.state.request is not None:
            return shape._replace(status=status_of_error(first.miss.code, first.state.request.era))
        return shape.as_stream() if self._answers_with_events and shape.status == AnswerShape().status else shape

    def _transaction(self, message: Message) -> Transaction | None:
        """Find the transaction that carried a message over Streamable HTTP."""
        transaction = self._captures[message.capture].transaction_of(message.stream)
        return None if transaction is None or transaction.scope.kind is ScopeKind.STREAM else transaction


def event(line: bytes, style: EventStyle, id: str | None = None) -> bytes:
    """Write a message as an event, each of its lines as one of the data."""
    # CR would end a line of the event; JSON has it between its tokens alone
    lines = [b"data: " + data for data in line.rstrip(b"\r\n").replace(b"\r", b" ").split(b"\n")]
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


def endpoint_event(data: bytes, facts: HttpFacts) -> bytes:
    """Write the event that announces the endpoint of HTTP+SSE, after what was recorded before it."""
    at = facts.announcement.rfind(facts.announced) if facts.announced else -1
    if at < 0:
        return _ended([b"event: endpoint", b"data: " + data], facts.event_style)
    return facts.announcement[:at] + data + facts.announcement[at + len(facts.announced) :]


def _ended(lines: list[bytes], style: EventStyle) -> bytes:
    line_end = b"\r\n" if style.is_crlf else b"\n"
    return line_end.join([*lines, b"", b""])


def _server_stream_fields(transcript: Transcript, transport: str) -> Fields:
    for capture in transcript.captures:
        for transaction in capture.transactions.values():
            if transaction.method != "GET" or not transaction.is_stream or transaction.response is None:
                continue
            if (transaction.scope.kind is ScopeKind.STREAM) == (transport == "sse"):
                return playable_fields(transaction.response.head)
    return STREAM_FIELDS


def _resumes(transaction: Transaction) -> bool:
    return transaction.request is not None and bool(transaction.request.head.get(LAST_EVENT_ID))

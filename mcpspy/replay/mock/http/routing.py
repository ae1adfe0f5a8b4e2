"""On which HTTP stream a mock says what it says: as the recording had it, if that was Streamable HTTP, else by what belongs together.

What belongs to a request goes on the response to it as long as that is open, everything else on the standing stream: the one that a
GET opens. Refuses to know live streams. Source: MCP specification, basic/transports of each revision.
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
    """How one recording carried what its server said. It never changes; any number of live clients share it."""

    __slots__ = ("_facts", "_sources", "server_stream_fields")

    def __init__(self, transcript: Transcript, facts: HttpFacts) -> None:
        self._sources = transcript.captures
        self._facts = facts
        self.server_stream_fields = _standing_fields(transcript, facts.transport)
        """The fields of the standing stream, which browsers ask of every response."""

    def is_on_server_stream(self, cue: ScheduledSend) -> bool:
        """Whether a cue goes on the standing stream, though the response to its request may be open."""
        if cue.state.request is None:
            return True
        if cue.step is None or cue.answers:
            return False
        if cue.state.request.method != LISTEN and SUBSCRIPTION_ID.encode() in cue.data:
            return True  # the response to the subscription that it names is a stream of its own
        carried = self._carrier(cue.step.message)
        if carried is not None:
            return carried.method == "GET" and not _resumes(carried)
        exchange = cue.state.reply.exchange
        if cue.step.exchange is not None and cue.step.exchange is exchange:
            return False
        return cue.state.request.era is not Era.MODERN and (cue.step.message.method or "").endswith(OF_NO_REQUEST)

    def breaks_off(self, cue: ScheduledSend) -> bool:
        """Whether the server had ended the response before it said this, so that the client had to come for it (2025-11-25)."""
        exchange = cue.state.reply.exchange
        carried = None if cue.step is None else self._carrier(cue.step.message)
        if exchange is None or carried is None or carried is exchange.transaction or not _resumes(carried):
            return False
        return exchange.transaction is not None and exchange.transaction.ended_by == SERVER

    def shape(self, cues: Sequence[ScheduledSend]) -> AnswerShape:
        """How the response to a request begins, of which `cues` are what is said as long as the client says nothing more."""
        spoken = [one for one in cues if one.data and not self.is_on_server_stream(one)]
        exchange = next((one.state.reply.exchange for one in cues if one.state.reply.exchange is not None), None)
        shape = self._facts.shape(0 if exchange is None else exchange.row)
        if not spoken or not spoken[0].answers:
            return shape._replace(is_stream=True)
        first = spoken[0]
        if exchange is None and first.miss is not None and first.state.request is not None:
            return shape._replace(status=status_of_error(first.miss.code, first.state.request.era))
        return shape

    def _carrier(self, message: Message) -> Transaction | None:
        """What carried a message over Streamable HTTP."""
        found = self._sources[message.capture].transaction_of(message.stream)
        return None if found is None or found.scope.kind is ScopeKind.STREAM else found


def event(line: bytes, style: EventStyle, id: str | None = None) -> bytes:
    """A message, given as a line of stdio, as an event."""
    # CR would end a line of the event; JSON has it between its tokens alone
    lines = [b"data: " + line.rstrip(b"\r\n").replace(b"\r", b" ")]
    if id is not None:
        lines.insert(0, b"id: " + id.encode())
    if style.names_type:
        lines.insert(0, b"event: message")
    return _ended(lines, style)


def priming(style: EventStyle, id: str) -> bytes:
    """The event that gives a stream its first id, so that it can be resumed before anything was said on it (2025-11-25)."""
    lines = [b"id: " + id.encode(), b"data: "]
    if style.retry_ms is not None:
        lines.insert(1, b"retry: %d" % style.retry_ms)
    return _ended(lines, style)


def endpoint_event(data: bytes, style: EventStyle) -> bytes:
    """The event that says where a client of HTTP+SSE is to post."""
    return _ended([b"event: endpoint", b"data: " + data], style)


def _ended(lines: list[bytes], style: EventStyle) -> bytes:
    line_end = b"\r\n" if style.is_crlf else b"\n"
    return line_end.join([*lines, b"", b""])


def _standing_fields(transcript: Transcript, transport: str) -> Fields:
    for source in transcript.captures:
        for one in source.transactions.values():
            is_of_sse = one.scope.kind is ScopeKind.STREAM
            if one.method == "GET" and one.is_stream and one.response is not None and is_of_sse == (transport == "sse"):
                return without_type(playable_fields(one.response.head))
    return ()


def _resumes(carried: Transaction) -> bool:
    return carried.request is not None and bool(carried.request.head.get(LAST_EVENT_ID))

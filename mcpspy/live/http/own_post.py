"""A request of mcpspy's own through an HTTP tap: posted to the upstream on a connection of its own, and recorded like the others.

The response is for mcpspy alone: no client gets a byte of it. Calls of a controller are sent so, and the second copy of a request
that an intercept sends twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...records import CLIENT, MCPSPY, SERVER, Frame, Intercept
from ...wire.encodings import decode_body
from ...wire.http import HttpMessages
from ...wire.http_body import Body, BodyEnd, IncompleteMessage, body_framing
from ...wire.http_head import ResponseHead, with_value, without_field
from ...wire.http_head import fields as all_fields
from ...wire.sse import SseEvents, parse
from ..waiting_messages import MAX_MESSAGE_BYTES
from .channel import Channel, ends_too
from .recorder import StreamRecorder
from .taken_messages import with_length

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from ...records import Record
    from ...wire.http import Piece
    from ..waiting_messages import Decider, MessageDecision
    from .context import TapContext

    Act = Callable[[str], Intercept]
    """Makes the record in front of a frame; it takes what became of that frame, as `sent` says it."""

_OF_OTHERS = (b"expect", b"last-event-id", b"content-encoding")
"""The fields of the client's own request that this one does not have."""

_MIRRORED = (b"mcp-method", b"mcp-name", b"mcp-param-")
"""The beginnings of fields that repeat parts of the client's own message."""

_NOT_SUCCESSFUL = 300
_MAX_REASON_BYTES = 200


def _ignore(*_: object) -> None:
    """Do nothing."""


def head_for(head: bytes, body: bytes, fields: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return the head of a request with this body, in the session of one with this head; `fields` replace those of the same names."""
    mirrored = [name.lower() for name, _ in all_fields(head) if name.lower().startswith(_MIRRORED)]
    for name in (*_OF_OTHERS, *mirrored):
        head = without_field(head, name)
    for name, value in (*fields, (b"Accept-Encoding", b"identity")):
        head = with_value(head, name, value)
    return with_length(head, len(body))


class OwnPost:
    """One request: `on_message` takes each message of the response and its time, `on_over` why nothing more comes.

    That is called once; without a reason, if the response ended in good order. If the request could not even be sent, `on_unsent` is
    called instead.
    """

    def __init__(
        self,
        tap: TapContext,
        head: bytes,
        body: bytes,
        act: Act,
        *,
        on_message: Callable[[bytes, int], None] = _ignore,
        on_over: Callable[[str], None] = _ignore,
        on_unsent: Callable[[str], None] | None = None,
    ) -> None:
        self._tap = tap
        self._request = head, body
        self._act = act
        self._on_message, self._on_over, self._on_unsent = on_message, on_over, on_unsent or on_over
        self._channel: Channel | None = None
        self._messages = HttpMessages.of_responses()
        self._messages.expect(b"POST")
        self._response: StreamRecorder | None = None
        self._transaction = self._connection = 0
        self._encoding = b""
        self._status = 0
        self._parts: list[bytes] = []
        self._is_over = False
        tap.own_posts.add(self)
        self._dial = tap.dial(on_connected=self._connected, on_failed=self._unreachable)

    def leave(self) -> None:
        """Close the connection, and call nothing any more."""
        self._on_message = self._on_over = self._on_unsent = _ignore
        self.abort()

    def abort(self) -> None:
        """Close the connection: the tap ends."""
        self._dial.cancel()
        self._end(MCPSPY, "abort", "mcpspy ended")

    def _unreachable(self, status: int, reason: str) -> None:
        self._end(MCPSPY, "abort", reason)

    def _connected(self, upstream: socket.socket) -> None:
        """Send the request, after it is recorded."""
        tap, (head, body) = self._tap, self._request
        self._channel = Channel(
            tap.reactor,
            upstream,
            on_data=self._on_data,
            on_full=_ignore,
            on_drained=_ignore,
            on_end=ends_too,
            on_lost=self._on_lost,
            sends_on=False,
        )
        now_ns = tap.now_ns()
        self._transaction, self._connection = tap.numbers.transaction(), tap.numbers.connection()
        request = StreamRecorder(tap.numbers.stream(), CLIENT, "body")
        opening = request.open(now_ns, head, transaction=self._transaction, connection=self._connection, injected=True)
        records = [*request.feed(Body(body, body), now_ns), *request.close(now_ns, MCPSPY, "eof")]
        for record in records:
            if isinstance(record, Frame):
                record.rare["injected"] = True
        tap.sink([opening, *self._marked(records, "unchanged")])
        self._channel.write(head + body)

    def _marked(self, records: Sequence[Record], sent: str) -> list[Record]:
        """Put the record in front of each whole frame that says whose it is."""
        marked: list[Record] = []
        for record in records:
            if isinstance(record, Frame) and not record.part:
                marked.append(self._act(sent))
                if sent == MCPSPY:
                    record.rare["forwarded"] = b""
            marked.append(record)
        return marked

    # The response

    def _on_data(self, data: bytes) -> None:
        now_ns = self._tap.now_ns()
        for piece in self._messages.feed(data):
            if not self._is_over:
                self._on_piece(piece, now_ns)

    def _on_piece(self, piece: Piece, now_ns: int) -> None:
        response = self._response
        if isinstance(piece, ResponseHead):
            self._on_head(piece, now_ns)
        elif isinstance(piece, Body) and response is not None:
            self._take(response.feed(piece, now_ns), now_ns)
        elif isinstance(piece, BodyEnd) and response is not None:
            self._take(response.close(now_ns, SERVER, "eof", trailers=piece.trailers), now_ns)
            self._end(SERVER, "eof", self._failure())
        elif not isinstance(piece, Body | BodyEnd):
            self._end(MCPSPY, "abort", "the server did not answer with HTTP")

    def _on_head(self, head: ResponseHead, now_ns: int) -> None:
        framing = body_framing(head.value(b"content-type"), head.value(b"content-encoding"))
        response = StreamRecorder(self._tap.numbers.stream(), SERVER, framing)
        opening = response.open(now_ns, head.raw, transaction=self._transaction, connection=self._connection)
        if head.is_interim:
            self._tap.sink([opening, *response.close(now_ns, SERVER, "eof")])
            return
        self._response, self._status = response, head.status
        self._encoding = head.value(b"content-encoding") or b""
        self._tap.sink([opening])

    def _take(self, records: list[Record], now_ns: int) -> None:
        """Record a part of the response, and hand on the messages in it."""
        self._tap.sink(self._marked(records, MCPSPY))
        assert self._response is not None
        for record in records:
            if not isinstance(record, Frame):
                continue
            self._parts.append(record.data)
            if sum(map(len, self._parts)) > MAX_MESSAGE_BYTES:
                self._end(MCPSPY, "abort", f"the answer has more than {MAX_MESSAGE_BYTES >> 20} MiB")
                return
            if record.part or self._response.framing != SseEvents.name:
                continue
            event = parse(b"".join(self._parts))
            self._parts = []
            if event.type == "message" and event.data:
                self._on_message(event.data, now_ns)
        if not self._response.is_open and self._parts and self._status < _NOT_SUCCESSFUL:
            self._on_message(self._body, now_ns)

    @property
    def _body(self) -> bytes:
        body = b"".join(self._parts)
        try:
            return decode_body(body, self._encoding) if self._encoding else body
        except ValueError:
            return b""

    def _failure(self) -> str:
        """Say why a whole response is no answer; empty if it may be."""
        if self._status < _NOT_SUCCESSFUL:
            return ""
        text = " ".join(self._body.decode("utf-8", "replace").split())[:_MAX_REASON_BYTES]
        return f"the server answered with status {self._status}{f': {text}' if text else ''}"

    # The end

    def _on_lost(self, error: Exception | None) -> None:
        if self._is_over:
            return
        now_ns, how = self._tap.now_ns(), "eof" if error is None else "reset"
        for piece in self._messages.close():
            if isinstance(piece, BodyEnd):
                self._on_piece(piece, now_ns)
            elif isinstance(piece, IncompleteMessage) and self._response is not None and self._response.is_open:
                how = "broken" if how == "eof" else how
                ended = self._response.close(now_ns, SERVER, how, missing_bytes=piece.missing_bytes)
                self._tap.sink(self._marked(ended, MCPSPY))
        if not self._is_over:
            self._end(SERVER, how, "the server closed the connection before it had answered")

    def _end(self, by: str, how: str, why: str = "") -> None:
        """Close the connection, and report that nothing more comes."""
        if self._is_over:
            return
        self._is_over = True
        self._tap.own_posts.discard(self)
        if self._response is not None and self._response.is_open:
            self._tap.sink(self._marked(self._response.close(self._tap.now_ns(), by, how), MCPSPY))
        if self._channel is not None:
            self._channel.abort()
        (self._on_over if self._transaction else self._on_unsent)(why)


def post_copy(tap: TapContext, decider: Decider, head: bytes, decision: MessageDecision) -> None:
    """Send a request that was sent a second time. Its response is recorded, and goes to nobody."""
    body, record = decision.payload or b"", next(act for act in decision.records if act.action == "duplicate")

    def act(sent: str) -> Intercept:
        return Intercept(
            at_ns=tap.now_ns(),
            text=record.text,
            action=record.action,
            sent="nothing" if sent == MCPSPY else sent,
            seed=record.seed,
        )

    def report(why: str) -> None:
        decider.report(f"the copy of a message was not sent: {why}", tap.now_ns(), decision.doubled_by)

    OwnPost(tap, with_length(head, len(body)), body, act, on_unsent=report)

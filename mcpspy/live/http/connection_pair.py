"""A client connection and the upstream connection that belongs to it: the data path of an HTTP tap.

    client ────► HttpMessages ────► on_client_data ──────► upstream       heads rewritten, bodies as they came
    client ◄────── on_server_data ◄────── ResponseRelay ◄────── upstream  the same, and a few bodies rewritten

Bytes read on one side are stamped, cut on a copy, recorded and sent on. Nothing is retried, no redirect is followed, and nothing is
buffered beyond what one side has not taken. A response is injected, and recorded as injected, only if there is no upstream or the
host check refuses the request.
"""

from __future__ import annotations

from socket import socket
from ssl import SSLSocket
from time import monotonic_ns
from typing import Any

from ...compiled import compiled
from ...records import CLIENT, MCPSPY, SERVER, Record
from ...wire.http import HttpMessages, Piece
from ...wire.http_body import BlankLines, Body, BodyEnd, IncompleteMessage, OpaqueBytes, RefusedBytes
from ...wire.http_head import RequestHead
from ...wire.sse import event_of_chunk
from .body_rewriting import BodyHold
from .channel import Channel, ends_too
from .context import TapContext
from .dial import Dial
from .listener import Refusal, refusal_response
from .recorder import OpaqueStreams, StreamRecorder, half_closed, note
from .responses import ResponseRelay
from .steady import relay_event
from .taken_answer import TakenAnswer, note_taken
from .timers import REQUEST_S, RequestTimer, StallTimer
from .transaction import ProxiedTransaction
from .usual import UsualMessages

MAX_PIPELINED = 64
"""Most requests that may wait for their responses on one connection before no more is read from it."""


_HTTP2 = b"PRI * HTTP/2"
"""The first line of HTTP/2 that is begun without asking (RFC 9113, section 3.4)."""
_BEGINS_HTTP2 = "no HTTP/1.x request line: it begins HTTP/2, and mcpspy speaks HTTP/1.1"

_event_of_chunk, _relay_event = compiled(event_of_chunk), compiled(relay_event)


class ConnectionPair:
    """The two connections and what is under way on them. `number` is the client connection's."""

    __slots__ = (
        "_answered_late", "_begin_ns", "_client", "_dial", "_form", "_has_client_ended", "_is_between_events", "_is_full", "_is_over",
        "_opaque", "_pass_event", "_record_event", "_refusal", "_request", "_request_timer", "_requests", "_responses",
        "_sending", "_server", "_stall_timer", "_stream", "_tap", "_unsent", "_usual", "hands", "number",
    )  # fmt: skip

    def __init__(self, tap: TapContext, client: socket) -> None:
        self._tap = tap
        self._begin_ns = tap.begin_ns
        self.number = tap.numbers.connection()
        self._client = Channel(
            tap.reactor,
            client,
            on_data=self.on_client_data,
            on_full=self.pause_server,
            on_drained=self.resume_server,
            on_end=self.on_client_end,
            on_lost=self.on_client_lost,
            sends_on=True,
        )
        self._server: Channel | None = None
        self._dial: Dial | None = None
        self._unsent: list[bytes] = []
        self._requests = HttpMessages.of_requests()
        self._sending: ProxiedTransaction | None = None
        self._form: BodyHold | None = None  # the request that is kept until it is whole
        self._refusal: Refusal | None = None
        self._opaque = OpaqueStreams(tap.numbers, self.number)
        self._responses = ResponseRelay(tap, self.number, self._opaque)
        waiting = self._responses.waiting
        self._usual = UsualMessages(
            tap.known_heads, tap.numbers, self.number, self._requests, self._responses.messages, waiting
        )
        self._is_over = False
        self._has_client_ended = False  # it has closed its half
        self._answered_late: dict[int, None] = {}  # the transactions of which something was sent after that
        self._is_between_events = False
        self._stream = -1  # the latest response
        self._record_event = tap.event
        self._pass_event = tap.pass_event
        self._is_full = False  # the upstream takes no more for now
        self._request_timer = RequestTimer(tap.reactor, self._on_expired)
        self._stall_timer = StallTimer(tap)
        self._request = -1  # the latest request
        self.hands: Any = None  # what intercepts need to know, if there are any

    # The client's direction

    def on_client_data(self, data: bytes) -> None:
        """Take bytes from the client."""
        if self._refusal is not None or self._is_over:
            return  # nothing more of it is read
        now_ns = monotonic_ns() - self._begin_ns
        forwarded = self._usual.request(data, now_ns, self._sending)
        if forwarded is not None:
            self._send_usual_request(forwarded)
            return
        records: list[Record] = []
        out: list[bytes] = []
        for piece in self._requests.feed(data):
            self._take_request_piece(piece, now_ns, records, out)
        self._record(records)
        self._to_server(b"".join(out))
        if self._sending is not None and self._form is None and self._sending.request.waits_since_ns is not None:
            self._stall_timer.watch_frame(self._sending.request)
        if len(self._responses.waiting) >= MAX_PIPELINED:
            self._client.pause()
        self._watch_time()
        self._refuse_in_turn()

    def _take_request_piece(self, piece: Piece, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        if self._refusal is not None:
            return
        if self._form is not None and self._sending is not None and isinstance(piece, Body | BodyEnd):
            self._take_form_piece(self._form, self._sending.request, piece, now_ns, records, out)
            return
        match piece:
            case RequestHead():
                self._begin(piece, now_ns, records, out)
            case Body():
                if self._sending is not None:
                    records += self._sending.request.feed(piece, now_ns)
                out.append(piece.raw)
            case BodyEnd():
                if self._sending is not None:
                    records += self._sending.request.close(now_ns, CLIENT, "eof", trailers=piece.trailers)
                    self._sending = None
                out.append(piece.raw)
            case RefusedBytes():
                is_http2 = piece.raw.startswith(_HTTP2)
                out.append(self._release_form(records))
                self._refusal = Refusal(status=400, reason=_BEGINS_HTTP2 if is_http2 else piece.reason)
                records += self._opaque.feed(CLIENT, piece.raw, now_ns)
            case OpaqueBytes():
                records += self._opaque.feed(CLIENT, piece.raw, now_ns)
                out.append(piece.raw)
            case BlankLines():
                out.append(piece.raw)

    def _take_form_piece(
        self,
        form: BodyHold,
        request: StreamRecorder,
        piece: Body | BodyEnd,
        now_ns: int,
        records: list[Record],
        out: list[bytes],
    ) -> None:
        """Take a piece of a request that is kept until it is whole, or too large."""
        if isinstance(piece, Body):
            out.append(form.feed(piece, records))
            records += request.feed(piece, now_ns)
            return
        self._form = self._sending = None
        out.append(form.close(piece, request.close(now_ns, CLIENT, "eof", trailers=piece.trailers), records))

    def _release_form(self, records: list[Record]) -> bytes:
        """Return what is kept of a request that will not become whole."""
        form, self._form = self._form, None
        return b"" if form is None else form.release(records)

    def _send_usual_request(self, forwarded: bytes) -> None:
        """Send on what came the short way, and is recorded."""
        usual = self._usual
        self._request = usual.request_stream
        was_sending, self._sending = self._sending, usual.sending
        if self._server is None:
            self._to_server(forwarded)
        else:
            self._server.write(forwarded)
        if len(self._responses.waiting) >= MAX_PIPELINED:
            self._client.pause()
        if was_sending is not usual.sending:
            self._watch_time()

    def _begin(self, head: RequestHead, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        """Begin a request: let it in or not, and write its head for the upstream."""
        tap = self._tap
        plan = tap.request_plan(head)
        tap.known_heads.see_request(head, plan)
        number = tap.numbers.transaction()
        request = StreamRecorder(tap.numbers.stream(), CLIENT, plan.framing)
        self._request = request.number
        forwarded = None if plan.refusal is not None or plan.forwarded == head.raw else plan.forwarded
        opening = request.open(now_ns, head.raw, transaction=number, connection=self.number, forwarded=forwarded)
        self._sending = ProxiedTransaction(number, plan, request)
        self._responses.waiting.append(self._sending)
        if plan.refusal is not None:
            records.append(opening)
            self._refusal = plan.refusal
            return
        self._responses.expect(self._sending)
        if plan.is_login_form:
            self._form = BodyHold(opening, plan.forwarded, plan.rewriting.login_parameters)
            return
        records.append(opening)
        out.append(plan.forwarded)
        if plan.proves_address:
            text = "a DPoP proof is bound to the address that the client dialled, which is mcpspy's"
            records.append(note(now_ns, "dpop", text, self.number, number))

    def on_client_end(self) -> bool:
        """Pass on that the client has closed its half, and return True if the upstream still owes it something.

        The client may wait for it, or have left: nobody can tell before the client refuses what it is sent. So the upstream decides,
        as without a tap: it ends everything, or answers.
        """
        if self._is_over or self._server is None or not self._responses.waiting:
            return False
        self._has_client_ended = True
        now_ns = self._tap.now_ns()
        records: list[Record] = []
        kept = self._release_form(records)
        records += self._end_requests(now_ns, CLIENT, "eof")
        waiting = self._responses.waiting
        records += [
            half_closed(now_ns, self.number, waits.number)
            for waits in waiting
            if waits.response is None or waits.response.is_open
        ]
        self._record(records)
        self._watch_time()
        self._server.write(kept)
        self._server.end()
        return True

    def on_client_lost(self, error: Exception | None) -> None:
        """End the pair: the client's connection is gone."""
        self._request_timer.forget()
        self._stall_timer.forget()
        self._tap.forget(self.number)
        try:
            if not self._is_over:
                self._record_end(self._culprit(error, CLIENT), _how(error))
            if self._answered_late:
                self._note_taken(error)
        finally:
            if self._server is not None:
                self._server.abort()
            elif self._dial is not None:
                self._dial.cancel()

    def _note_taken(self, error: Exception | None) -> None:
        """Note whether the client, which had closed its half, took what it was sent after that."""
        answered = list(self._answered_late)
        if error is not None:
            note_taken(self._tap, self.number, answered, is_taken=False)
            return
        try:
            connected = self._client.copy()
        except OSError:
            return
        TakenAnswer(self._tap, self.number, answered, connected)

    def _record_end(self, by: str, how: str) -> None:
        """Record that everything under way ends here."""
        self._is_over = True
        if self._has_client_ended and by == CLIENT:
            how = "eof"  # a reset only says that it took no more
        now_ns = self._tap.now_ns()
        records = self._end_requests(now_ns, by, how)
        records += self._responses.record_end(now_ns, by, how)
        if self._sending is not None and self._sending.request.is_open:  # it has its response, and was refused after that
            records += self._sending.request.close(now_ns, by, how)
        records += self._opaque.close(now_ns, by, how)
        self._record(records)

    def _end_requests(self, now_ns: int, by: str, how: str) -> list[Record]:
        """Record the end of a request that is not whole, and of half a head."""
        records: list[Record] = []
        self._release_form(records)
        for piece in self._requests.close():
            if isinstance(piece, IncompleteMessage) and self._sending is not None:
                broken = how if how != "eof" else "broken" if by == SERVER else "abort"
                records += self._sending.request.close(now_ns, by, broken, missing_bytes=piece.missing_bytes)
                self._sending = None
            elif isinstance(piece, IncompleteMessage):
                records += self._opaque.feed(CLIENT, piece.raw, now_ns)
        return records

    # The server's direction

    def on_connected(self, server: socket) -> None:
        """Send what waited for the upstream connection, which is there now."""
        if self._is_over or self._client.is_closing:
            server.close()
            return
        if isinstance(server, SSLSocket):
            self._tap.note_tls(server)
        self._server = Channel(
            self._tap.reactor,
            server,
            on_data=self.on_server_data,
            on_full=self.pause_client,
            on_drained=self.resume_client,
            on_end=ends_too,
            on_lost=self.on_server_lost,
            sends_on=False,  # it has answered, or never will: what still waits is of no use
        )
        unsent, self._unsent = self._unsent, []
        self._server.write(b"".join(unsent))
        if not self._is_full:
            self.resume_client()

    def on_server_data(self, data: bytes) -> None:
        """Take bytes from the upstream."""
        if self._is_over:
            return
        now_ns = monotonic_ns() - self._begin_ns
        # events of a steady stream go this short way: each function more costs 2 µs when other work has cooled the caches
        if self._is_between_events and b"endpoint" not in data and (event := _event_of_chunk(data)) is not None:
            self._record_event(self._stream, now_ns, event)
            self._client.write(data)
            return
        if self._refusal is None and not self._has_client_ended:
            forwarded = self._usual.response(data, now_ns)
            if forwarded is not None:
                self._send_usual_response(forwarded)
                return
        self._take_response(data, now_ns)

    def _expect_events(self, are_next: bool) -> None:  # noqa: FBT001
        """Take note whether whole events come next, and if so, how they are read."""
        if are_next is not self._is_between_events:
            self._is_between_events = are_next
            if self._server is not None and self._pass_event is not None:
                self._server.read_by(self._read_event if are_next else None)

    def _read_event(self, most_bytes: int) -> bytes | None:
        """Read from the upstream, record what is an event of a steady stream, and send it on. Return what is anything else."""
        assert self._pass_event is not None
        assert self._server is not None
        at_ns = monotonic_ns() - self._begin_ns
        left = self._pass_event(_relay_event, self._stream, at_ns, self._server.fd, self._client.sending_fd)
        if left is None:
            return None
        data, is_recorded = left
        if not is_recorded:
            return data
        self._client.write(data)
        return None

    def _take_response(self, data: bytes, now_ns: int) -> None:
        """Take bytes from the upstream the general way."""
        records: list[Record] = []
        out: list[bytes] = []
        if self._has_client_ended:
            self._answered_late.update((waits.number, None) for waits in self._responses.waiting)
        run = self._responses.feed(data, now_ns, records, out)
        self._stream = self._responses.stream
        self._expect_events(self._responses.is_between_events)
        early = self._switched(now_ns, records) if self._responses.is_switched else b""
        if run:
            self._tap.events(records, self._stream, now_ns, run)
        else:
            self._record(records)
        self._client.write(b"".join(out))
        self._to_server(early)
        response = self._responses.current
        if response is not None and response.waits_since_ns is not None and not self._responses.is_collecting:
            self._stall_timer.watch_frame(response)
        if not self._is_full and not self._unsent and len(self._responses.waiting) < MAX_PIPELINED:
            self._client.resume()
        self._refuse_in_turn()
        if self._has_client_ended and not self._responses.waiting:
            self._client.close()

    def _send_usual_response(self, forwarded: bytes) -> None:
        """Send on what came the short way, and is recorded."""
        usual = self._usual
        self._stream = self._responses.stream = usual.response_stream
        self._expect_events(usual.is_streaming)
        self._client.write(forwarded)
        if not self._is_full and not self._unsent and len(self._responses.waiting) < MAX_PIPELINED:
            self._client.resume()

    def _switched(self, now_ns: int, records: list[Record]) -> bytes:
        """Return what the client has already sent of the other protocol that the connection changes to."""
        early = b"".join(waiting.raw for waiting in self._requests.switch())
        records += self._opaque.feed(CLIENT, early, now_ns)
        return early

    def on_server_lost(self, error: Exception | None) -> None:
        """Answer or end what is under way: the upstream's connection is gone."""
        self._server = None
        if self._is_over:
            return
        if self._culprit(error, SERVER) == MCPSPY:
            self.abort()
            return
        now_ns = self._tap.now_ns()
        # an upstream that ends after the client's half only follows it
        by, how = (CLIENT, "eof") if self._has_client_ended else (SERVER, _how(error))
        records: list[Record] = []
        out: list[bytes] = []
        is_broken, ends_by_close = self._responses.close(now_ns, by, how, records, out)
        self._record(records)
        self._client.write(b"".join(out))
        if self._waiting_for_responses() and not is_broken and by == SERVER:
            self._inject(Refusal(status=502, reason="the upstream closed the connection without a response"), now_ns)
            return
        is_asking = self._sending is not None
        self._record_end(by, how)
        # a reset, if nothing else shows that something is missing; a chunked body just lacks its last chunk
        by_reset = error is not None and (ends_by_close or self._responses.is_raw)
        if is_asking and not by_reset:
            self._linger()
        else:
            self._client.close(by_reset=by_reset)

    def on_unreachable(self, status: int, reason: str) -> None:
        """Answer in the upstream's place: it cannot be reached."""
        if not self._is_over:
            self._inject(Refusal(status=status, reason=reason), self._tap.now_ns())

    def _waiting_for_responses(self) -> bool:
        """Return whether the upstream still owes a response."""
        return any(waiting is not self._sending or self._refusal is None for waiting in self._responses.waiting)

    def _refuse_in_turn(self) -> None:
        """Answer a refused request, once those before it have been answered."""
        if self._refusal is not None and not self._is_over and not self._waiting_for_responses():
            self._inject(self._refusal, self._tap.now_ns())

    def _inject(self, refusal: Refusal, now_ns: int) -> None:
        """Answer in the upstream's place, and close. If a response has begun already, only close."""
        tap = self._tap
        transaction = self._responses.waiting[0] if self._responses.waiting else None
        has_begun = transaction.response is not None if transaction else self._sending is not None
        records: list[Record] = []
        self._release_form(records)
        if not has_begun:
            head, body = refusal_response(refusal)
            if transaction is not None and transaction.plan.method == b"HEAD":
                body = b""
            if transaction is not None and transaction.request.is_open:
                records += transaction.request.close(now_ns, MCPSPY, "abort")
            response = StreamRecorder(tap.numbers.stream(), SERVER, "body")
            number = transaction.number if transaction else tap.numbers.transaction()
            records.append(response.open(now_ns, head, transaction=number, connection=self.number, injected=True))
            records += (*response.feed(Body(body, body), now_ns), *response.close(now_ns, MCPSPY, "eof"))
            self._responses.waiting.clear()
            self._sending = None
            self._record(records)
            self._client.write(head + body)
        self._end_answered("abort")

    def _end_answered(self, how: str) -> None:
        """End both connections after the answer that was sent in the upstream's place."""
        self._record_end(MCPSPY, how)
        if self._server is not None:
            self._server.abort()
        self._linger()

    def _linger(self) -> None:
        """Close our half, and wait a little for the client to leave after it has taken all."""
        self._client.end()
        self.resume_client()
        if not self._client.pending_bytes:
            self._request_timer.linger(self._client.abort)

    def _culprit(self, error: Exception | None, side: str) -> str:
        """Name who ended the connection with this side: that side, or mcpspy by a fault of its own."""
        if error is None or isinstance(error, OSError):
            return side
        self._tap.fault(error, self.number)
        return MCPSPY

    def _record(self, records: list[Record]) -> None:
        if records:
            self._tap.sink(records)

    # Flow and time

    def _to_server(self, data: bytes) -> None:
        if not data:
            return
        if self._server is None:
            self._unsent.append(data)
            self._client.pause()  # read no more than one buffer until the upstream is there
            if self._dial is None:
                self._dial = self._tap.dial(on_connected=self.on_connected, on_failed=self.on_unreachable)
        else:
            self._server.write(data)

    def pause_client(self) -> None:
        self._is_full = True
        self._request_timer.watch(is_head=False, is_body=False)  # the client cannot go on, so its time does not run
        self._client.pause()
        if self._server is not None:
            self._stall_timer.watch_write(self._request, self._server)

    def resume_client(self) -> None:
        self._is_full = False
        self._stall_timer.end_write(self._request)
        if len(self._responses.waiting) < MAX_PIPELINED:
            self._client.resume()
        self._watch_time()

    def pause_server(self) -> None:
        self._stall_timer.watch_write(self._stream, self._client)
        if self._server is not None:
            self._server.pause()

    def resume_server(self) -> None:
        self._stall_timer.end_write(self._stream)
        if self._server is not None:
            self._server.resume()

    def _watch_time(self) -> None:
        """Start or stop the timer of the request: it runs while the client has to go on, not while the upstream has to."""
        if self._is_over:
            return
        is_clients_turn = self._refusal is None and not self._is_full and not self._unsent
        self._request_timer.watch(
            is_head=is_clients_turn and self._requests.is_within_head,
            is_body=is_clients_turn and self._sending is not None,
        )

    def _on_expired(self) -> None:
        self._refusal = Refusal(status=408, reason=f"the request did not go on within {REQUEST_S:.0f} s")
        self._refuse_in_turn()

    def _rebind(self) -> None:
        """Have the connections call what this pair has: it is of another class now."""
        self._client.call(on_data=self.on_client_data, on_end=self.on_client_end, on_lost=self.on_client_lost)
        if self._server is not None:
            self._server.call(on_data=self.on_server_data, on_end=ends_too, on_lost=self.on_server_lost)

    def abort(self) -> None:
        """Close both connections by our own decision."""
        try:
            if not self._is_over:
                self._record_end(MCPSPY, "abort")
        finally:
            self._client.abort()
            if self._server is not None:
                self._server.abort()


def _how(error: Exception | None) -> str:
    if error is None:
        return "eof"
    return "reset" if isinstance(error, OSError) else "abort"

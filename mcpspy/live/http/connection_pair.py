"""One client connection and the upstream connection that belongs to it, one to one: an HTTP tap's data path.

Bytes read on one side are stamped, cut on a copy, recorded and sent on. Only heads that must change are written anew, and the few
bodies of `substitution`. Refuses to retry, to follow redirects, to buffer, and to answer for the upstream, but where there is
none or the gate says no: such responses are injected, and recorded as that.
"""

from __future__ import annotations

from ssl import SSLSocket
from time import monotonic_ns
from typing import TYPE_CHECKING

from ...records import CLIENT, MCPSPY, SERVER, Record
from ...wire.http import Requests
from ...wire.http_body import BlankLines, Body, BodyEnd, IncompleteMessage, OpaqueBytes, RefusedBytes
from ...wire.http_head import RequestHead
from ...wire.sse import event_of_chunk
from .channel import Channel
from .host_check import Refusal, injected_response
from .opaque import Opaque as OpaqueStreams
from .recorder import Recorded, note
from .responses import Answers
from .timers import REQUEST_S, Patience, Slowness
from .transaction import Transaction

if TYPE_CHECKING:
    from socket import socket

    from .dial import Dial
    from .tap import HttpTap


MAX_PIPELINED = 64
"""So many requests may wait for their answers on one connection before no more is read of it."""


class Link:
    """The two connections, what is under way on them, and what is recorded of it. `number` is the client connection's."""

    __slots__ = (
        "_answers", "_begin_ns", "_client", "_dial", "_is_between_events", "_is_full", "_is_over", "_opaque", "_patience",
        "_record_event", "_refusal", "_request", "_requests", "_sending", "_server", "_slowness", "_stream", "_tap",
        "_unsent", "number",
    )  # fmt: skip

    def __init__(self, tap: HttpTap, client: socket) -> None:
        self._tap = tap
        self._begin_ns = tap.begin_ns
        self.number = tap.numbers.connection()
        self._client = Channel(
            tap.reactor,
            client,
            took=self.client_data,
            full=self.pause_server,
            drained=self.resume_server,
            lost=self.client_lost,
            sends_on=True,
        )
        self._server: Channel | None = None
        self._dial: Dial | None = None
        self._unsent: list[bytes] = []
        self._requests = Requests()
        self._sending: Transaction | None = None
        self._refusal: Refusal | None = None
        self._opaque = OpaqueStreams(tap.numbers, self.number)
        self._answers = Answers(tap, self.number, self._opaque)
        self._is_over = False
        self._is_between_events = False
        self._stream = -1  # the response that came last
        self._record_event = tap.event
        self._is_full = False  # the upstream does not take more for now
        self._patience = Patience(tap.reactor, self._too_slow)
        self._slowness = Slowness(tap)
        self._request = -1  # the stream that the client sent last

    # The client's direction

    def client_data(self, data: bytes) -> None:
        """Bytes that the client sent."""
        if self._refusal is not None or self._is_over:
            return  # nothing more of it is read
        now_ns = self._tap.now_ns()
        records: list[Record] = []
        out: list[bytes] = []
        for piece in self._requests.feed(data):
            match piece:
                case RequestHead():
                    self._begin(piece, now_ns, records, out)
                case Body():
                    if self._sending is not None:
                        records += self._sending.request.took(piece, now_ns)
                    out.append(piece.raw)
                case BodyEnd():
                    if self._sending is not None:
                        records += self._sending.request.ended(now_ns, CLIENT, "eof", trailers=piece.trailers)
                        self._sending = None
                    out.append(piece.raw)
                case RefusedBytes():
                    self._refusal = Refusal(status=400, reason=piece.reason)
                    records += self._opaque.took(CLIENT, piece.raw, now_ns)
                case OpaqueBytes():
                    records += self._opaque.took(CLIENT, piece.raw, now_ns)
                    out.append(piece.raw)
                case BlankLines():
                    out.append(piece.raw)
            if self._refusal is not None:
                break
        self._record(records)
        self._to_server(b"".join(out))
        if self._sending is not None and self._sending.request.waits_since_ns is not None:
            self._slowness.holds(self._sending.request)
        if len(self._answers.waiting) >= MAX_PIPELINED:
            self._client.pause()
        self._watch_time()
        self._refuse_in_turn()

    def _begin(self, head: RequestHead, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        """A request begins: let it in or not, and write its head as the upstream must see it."""
        tap = self._tap
        asked = tap.asked(head)
        number = tap.numbers.transaction()
        request = Recorded(tap.numbers.stream(), CLIENT, asked.framing)
        self._request = request.number
        forwarded = None if asked.refusal is not None or asked.forwarded == head.raw else asked.forwarded
        records.append(request.begun(now_ns, head.raw, transaction=number, connection=self.number, forwarded=forwarded))
        self._sending = Transaction(number, asked, request)
        self._answers.waiting.append(self._sending)
        if asked.refusal is not None:
            self._refusal = asked.refusal
            return
        self._answers.expect(self._sending)
        out.append(asked.forwarded)
        if asked.proves_address:
            text = "a DPoP proof is bound to the address that the client dialled, which is ours"
            records.append(note(now_ns, "dpop", text, self.number, number))

    def client_lost(self, error: Exception | None) -> None:
        """The client's connection is gone."""
        self._patience.forget()
        self._slowness.forget()
        self._tap.left(self)
        try:
            if not self._is_over:
                self._ended(self._culprit(error, CLIENT), _how(error))
        finally:
            if self._server is not None:
                self._server.abort()
            elif self._dial is not None:
                self._dial.cancel()

    def _ended(self, by: str, how: str) -> None:
        """Record that what is under way ends here."""
        self._is_over = True
        now_ns = self._tap.now_ns()
        records: list[Record] = []
        for piece in self._requests.close():
            if isinstance(piece, IncompleteMessage) and self._sending is not None:
                broken = how if how != "eof" else "broken" if by == SERVER else "abort"
                records += self._sending.request.ended(now_ns, by, broken, missing_bytes=piece.missing_bytes)
                self._sending = None
            elif isinstance(piece, IncompleteMessage):
                records += self._opaque.took(CLIENT, piece.raw, now_ns)  # half a head
        records += self._answers.abandoned(now_ns, by, how)
        if self._sending is not None and self._sending.request.is_open:  # it has its answer, and was refused after that
            records += self._sending.request.ended(now_ns, by, how)
        records += self._opaque.closed(now_ns, by, how)
        self._record(records)

    # The server's direction

    def connected(self, server: socket) -> None:
        """The upstream connection is there: what waited for it goes out."""
        if self._is_over or self._client.is_closing:
            server.close()
            return
        if isinstance(server, SSLSocket):
            self._tap.tell_tls(server)
        self._server = Channel(
            self._tap.reactor,
            server,
            took=self.server_data,
            full=self.pause_client,
            drained=self.resume_client,
            lost=self.server_lost,
            sends_on=False,  # it has answered, or never will: nothing that still waits is of use
        )
        unsent, self._unsent = self._unsent, []
        self._server.write(b"".join(unsent))
        if not self._is_full:
            self.resume_client()

    def server_data(self, data: bytes) -> None:
        """Bytes that the upstream sent."""
        if self._is_over:
            return
        now_ns = monotonic_ns() - self._begin_ns
        # events in a steady stream go this short way: each function more costs 2 µs when the machine has done other things between
        if self._is_between_events and (event := event_of_chunk(data)) is not None:
            self._record_event(self._stream, now_ns, event)
            self._client.write(data)
            return
        records: list[Record] = []
        out: list[bytes] = []
        run = self._answers.feed(data, now_ns, records, out)
        self._is_between_events = self._answers.is_between_events
        self._stream = self._answers.stream
        early = self._switched(now_ns, records) if self._answers.is_switched else b""
        if run:
            self._tap.events(records, self._stream, now_ns, run)
        else:
            self._record(records)
        self._client.write(b"".join(out))
        self._to_server(early)
        response_now = self._answers.current
        if response_now is not None and response_now.waits_since_ns is not None:
            self._slowness.holds(response_now)
        if not self._is_full and not self._unsent and len(self._answers.waiting) < MAX_PIPELINED:
            self._client.resume()
        self._refuse_in_turn()

    def _switched(self, now_ns: int, records: list[Record]) -> bytes:
        """From here on the connection speaks another protocol: what the client has sent of it already."""
        early = b"".join(waiting.raw for waiting in self._requests.switch())
        records += self._opaque.took(CLIENT, early, now_ns)
        return early

    def server_lost(self, error: Exception | None) -> None:
        """The upstream's connection is gone."""
        self._server = None
        if self._is_over:
            return
        if self._culprit(error, SERVER) == MCPSPY:
            self.abort()
            return
        now_ns = self._tap.now_ns()
        how = _how(error)
        records: list[Record] = []
        out: list[bytes] = []
        is_broken, ends_by_close = self._answers.close(now_ns, how, records, out)
        self._record(records)
        self._client.write(b"".join(out))
        if self._waiting_for_answers() and not is_broken:
            self._forge(Refusal(status=502, reason="the upstream closed the connection without a response"), now_ns)
            return
        is_asking = self._sending is not None
        self._ended(SERVER, how)
        # a reset, where nothing else tells it that something is missing; a chunked body just lacks its last chunk
        by_reset = error is not None and (ends_by_close or self._answers.is_raw)
        if is_asking and not by_reset:
            self._linger()
        else:
            self._client.close(by_reset=by_reset)

    def unreachable(self, status: int, reason: str) -> None:
        """There is no upstream."""
        if not self._is_over:
            self._forge(Refusal(status=status, reason=reason), self._tap.now_ns())

    def _waiting_for_answers(self) -> bool:
        """Whether the upstream still owes a response."""
        return any(one is not self._sending or self._refusal is None for one in self._answers.waiting)

    def _refuse_in_turn(self) -> None:
        """Answer a request that was refused, once those before it have been answered."""
        if self._refusal is not None and not self._is_over and not self._waiting_for_answers():
            self._forge(self._refusal, self._tap.now_ns())

    def _forge(self, refusal: Refusal, now_ns: int) -> None:
        """Answer what waits in the upstream's place, and close. Where an answer has begun already, only close."""
        tap = self._tap
        transaction = self._answers.waiting[0] if self._answers.waiting else None
        has_begun = transaction.response is not None if transaction else self._sending is not None
        records: list[Record] = []
        if not has_begun:
            head, body = injected_response(refusal)
            if transaction is not None and transaction.asked.method == b"HEAD":
                body = b""
            if transaction is not None and transaction.request.is_open:
                records += transaction.request.ended(now_ns, MCPSPY, "abort")
            response = Recorded(tap.numbers.stream(), SERVER, "body")
            number = transaction.number if transaction else tap.numbers.transaction()
            records.append(response.begun(now_ns, head, transaction=number, connection=self.number, injected=True))
            records += (*response.took(Body(body, body), now_ns), *response.ended(now_ns, MCPSPY, "eof"))
            self._answers.waiting.clear()
            self._sending = None
            self._record(records)
            self._client.write(head + body)
        self._ended(MCPSPY, "abort")
        if self._server is not None:
            self._server.abort()
        self._linger()

    def _linger(self) -> None:
        """Say that nothing more comes, and wait a little for the client to leave, once it has taken all."""
        self._client.end()
        self.resume_client()
        if not self._client.pending_bytes:
            self._patience.linger(self._client.abort)

    def _culprit(self, error: Exception | None, side: str) -> str:
        """Who it was when the connection with this side ended so: that side, or we, by a fault of our own."""
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
            self._client.pause()  # until the upstream is there, no more is read than one buffer
            if self._dial is None:
                self._dial = self._tap.dial(self)
        else:
            self._server.write(data)

    def pause_client(self) -> None:
        self._is_full = True
        self._patience.watch(is_head=False, is_body=False)  # the client cannot go on: its time does not run
        self._client.pause()
        if self._server is not None:
            self._slowness.blocked(self._request, self._server)

    def resume_client(self) -> None:
        self._is_full = False
        self._slowness.drained(self._request)
        if len(self._answers.waiting) < MAX_PIPELINED:
            self._client.resume()
        self._watch_time()

    def pause_server(self) -> None:
        self._slowness.blocked(self._stream, self._client)
        if self._server is not None:
            self._server.pause()

    def resume_server(self) -> None:
        self._slowness.drained(self._stream)
        if self._server is not None:
            self._server.resume()

    def _watch_time(self) -> None:
        """While it is the client that all wait for, and not the upstream, its request must go on."""
        if self._is_over:
            return
        is_clients_turn = self._refusal is None and not self._is_full and not self._unsent
        self._patience.watch(
            is_head=is_clients_turn and self._requests.is_within_head,
            is_body=is_clients_turn and self._sending is not None,
        )

    def _too_slow(self) -> None:
        self._refusal = Refusal(status=408, reason=f"the request did not go on within {REQUEST_S:.0f} s")
        self._refuse_in_turn()

    def abort(self) -> None:
        """Close both connections, by our own decision."""
        try:
            if not self._is_over:
                self._ended(MCPSPY, "abort")
        finally:
            self._client.abort()
            if self._server is not None:
                self._server.abort()


def _how(error: Exception | None) -> str:
    if error is None:
        return "eof"
    return "reset" if isinstance(error, OSError) else "abort"

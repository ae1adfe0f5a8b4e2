"""One client connection and the upstream connection that belongs to it, one to one: an HTTP tap's data path.

Bytes read on one side are stamped, cut on a copy, recorded and sent on. Only heads that must change are written anew, and the few
bodies of `substitution`. Refuses to retry, to follow redirects, to buffer, and to answer for the upstream, but where there is
none or the gate says no: such responses are forged, and recorded as that.
"""

from __future__ import annotations

from collections import deque
from ssl import SSLSocket
from time import monotonic_ns
from typing import TYPE_CHECKING

from ..records import CLIENT, MCPSPY, SERVER, Frame, Record
from ..wire.http import Requests, Responses
from ..wire.http_body import Blank, Body, End, Incomplete, Opaque, Refused
from ..wire.http_head import RequestHead, ResponseHead
from .channel import Channel
from .gate import Refusal, forged_response
from .opaque import Opaque as OpaqueStreams
from .patience import REQUEST_S, Patience
from .recording import Recorded, note
from .slowness import Slowness
from .substitution import EndpointWatch, MetadataHold
from .transaction import Transaction

if TYPE_CHECKING:
    from socket import socket

    from .dial import Dial
    from .http import HttpTap


MAX_PIPELINED = 64
"""So many requests may wait for their answers on one connection before no more is read of it."""


class Link:
    """The two connections, what is under way on them, and what is recorded of it. `number` is the client connection's."""

    __slots__ = (
        "_client", "_dial", "_is_full", "_is_over", "_is_raw", "_opaque", "_patience", "_refusal", "_request", "_requests",
        "_response", "_responses", "_sending", "_server", "_slowness", "_substitution", "_tap", "_unsent", "_waiting",
        "_whole_chunk", "number",
    )  # fmt: skip

    def __init__(self, tap: HttpTap, client: socket) -> None:
        self._tap = tap
        self.number = tap.numbers.connection()
        self._client = Channel(
            tap.reactor,
            client,
            took=self.client_data,
            full=self.pause_server,
            drained=self.resume_server,
            lost=self.client_lost,
        )
        self._server: Channel | None = None
        self._dial: Dial | None = None
        self._unsent: list[bytes] = []
        self._requests = Requests()
        self._responses = Responses()
        self._whole_chunk = self._responses.whole_chunk
        self._waiting: deque[Transaction] = deque()
        self._sending: Transaction | None = None
        self._substitution: EndpointWatch | MetadataHold | None = None
        self._refusal: Refusal | None = None
        self._opaque = OpaqueStreams(tap.numbers, self.number)
        self._is_raw = False  # the upstream sends what is no HTTP
        self._is_over = False
        self._is_full = False  # the upstream does not take more for now
        self._patience = Patience(tap.reactor, self._too_slow)
        self._slowness = Slowness(tap)
        self._request = self._response = -1  # the streams whose bytes were sent last

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
                case End():
                    if self._sending is not None:
                        records += self._sending.request.ended(now_ns, CLIENT, "eof", trailers=piece.trailers)
                        self._sending = None
                    out.append(piece.raw)
                case Refused():
                    self._refusal = Refusal(status=400, reason=piece.reason)
                    records += self._opaque.took(CLIENT, piece.raw, now_ns)
                case Opaque():
                    records += self._opaque.took(CLIENT, piece.raw, now_ns)
                    out.append(piece.raw)
                case Blank():
                    out.append(piece.raw)
            if self._refusal is not None:
                break
        self._record(records)
        self._to_server(b"".join(out))
        if self._sending is not None and self._sending.request.waits_since_ns is not None:
            self._slowness.holds(self._sending.request)
        if len(self._waiting) >= MAX_PIPELINED:
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
        self._waiting.append(self._sending)
        if asked.refusal is not None:
            self._refusal = asked.refusal
            return
        self._responses.expect(head.method)
        out.append(asked.forwarded)
        if asked.proves_address:
            text = "a DPoP proof is bound to the address that the client dialled, which is ours"
            records.append(note(now_ns, "dpop", text, self.number, number))

    def client_lost(self, error: Exception | None) -> None:
        """The client's connection is gone."""
        self._patience.forget()
        self._slowness.forget()
        self._tap.left(self)
        if not self._is_over:
            self._ended(CLIENT, "eof" if error is None else "reset")
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
            if isinstance(piece, Incomplete) and self._sending is not None:
                broken = how if how != "eof" else "broken" if by == SERVER else "abort"
                records += self._sending.request.ended(now_ns, by, broken, missing_bytes=piece.missing_bytes)
                self._sending = None
            elif isinstance(piece, Incomplete):
                records += self._opaque.took(CLIENT, piece.raw, now_ns)  # half a head
        if isinstance(self._substitution, MetadataHold):
            records += self._substitution.opened(is_over=True)
        for transaction in self._waiting:
            if transaction.request.is_open:
                records += transaction.request.ended(now_ns, by, how)
            if transaction.response is None:
                text = f"{by} closed the connection before the response came"
                records.append(note(now_ns, "left", text, self.number, transaction.number, by=by))
            elif transaction.response.is_open:
                broken = how if how != "eof" else "broken" if by == CLIENT else "abort"
                records += transaction.response.ended(now_ns, by, broken)
        records += self._opaque.closed(now_ns, by, how)
        self._waiting.clear()
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
        )
        unsent, self._unsent = self._unsent, []
        self._server.write(b"".join(unsent))
        if not self._is_full:
            self.resume_client()

    def unreachable(self, status: int, reason: str) -> None:
        """There is no upstream."""
        if not self._is_over:
            self._forge(Refusal(status=status, reason=reason), self._tap.now_ns())

    def server_data(self, data: bytes) -> None:
        """Bytes that the upstream sent."""
        if self._is_over:
            return
        now_ns = monotonic_ns() - self._tap.begin_ns
        if self._substitution is None and (event := self._whole_chunk(data)) is not None:
            response = self._waiting[0].response
            if response is not None and response.is_next(event):  # as nearly all events come
                self._tap.event(response.number, now_ns, event)
                self._client.write(data)
                return
        records: list[Record] = []
        out: list[bytes] = []
        for piece in self._responses.feed(data):
            match piece:
                case Body():
                    self._took(piece, now_ns, records, out)
                case ResponseHead():
                    self._answered(piece, now_ns, records, out)
                case End():
                    self._finished(piece, now_ns, records, out)
                case Refused():
                    text = f"{piece.reason}; what follows is relayed as it comes"
                    number = self._waiting[0].number if self._waiting else 0
                    records.append(note(now_ns, "response-refused", text, self.number, number))
                    self._is_raw = True
                    self._let_go(records, out)
                    records += self._opaque.took(SERVER, piece.raw, now_ns)
                    out.append(piece.raw)
                case Opaque():
                    records += self._opaque.took(SERVER, piece.raw, now_ns)
                    out.append(piece.raw)
                case Blank():
                    out.append(piece.raw)
        self._record(records)
        self._client.write(b"".join(out))
        response = self._waiting[0].response if self._waiting else None
        if response is not None and response.waits_since_ns is not None:
            self._slowness.holds(response)
        self._refuse_in_turn()

    def _answered(self, head: ResponseHead, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        tap, transaction = self._tap, self._waiting[0]
        asked = transaction.asked
        answered = tap.answered(head, asked.mapping)
        response = Recorded(tap.numbers.stream(), SERVER, answered.framing)
        self._response = response.number
        forwarded = None if answered.forwarded == head.raw else answered.forwarded
        opening = response.begun(now_ns, head.raw, transaction=transaction.number, connection=self.number, forwarded=forwarded)
        if not head.is_interim and asked.is_metadata and head.status == 200 and head.ends_by in ("length", "chunks"):
            transaction.response = response
            self._substitution = MetadataHold(opening, answered.forwarded, asked.mapping)
            return
        records.append(opening)
        if head.is_interim:
            records += response.ended(now_ns, SERVER, "eof")
            out.append(answered.forwarded)
            return
        transaction.response = response
        if asked.wants_events and answered.framing == "sse":
            self._substitution = EndpointWatch(head, asked.mapping)
        if head.ends_by == "upgrade":
            records += response.ended(now_ns, SERVER, "eof")
            self._waiting.popleft()
            for waiting in self._requests.switch():
                records += self._opaque.took(CLIENT, waiting.raw, now_ns)
                self._to_server(waiting.raw)
        out.append(answered.forwarded)

    def _took(self, body: Body, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        response = self._waiting[0].response
        frames = response.took(body, now_ns) if response is not None else []
        watch = self._substitution
        out.append(body.raw if watch is None else watch.feed(body))
        if isinstance(watch, MetadataHold):
            records += watch.opened()
        records += frames
        if isinstance(watch, EndpointWatch):
            for frame in frames:
                if watch.event and isinstance(frame, Frame) and frame.data == watch.event:
                    frame.rare["forwarded"] = watch.mapped
                    watch.event = b""
            if (third := watch.third) is not None:
                text = f"the endpoint event names {third}, which is not the upstream; it passes as it is (see --allow-endpoint)"
                records.append(note(now_ns, "endpoint", text, self.number, self._waiting[0].number))
                watch.third = None
            if watch.is_idle:
                self._substitution = None

    def _finished(self, end: End, now_ns: int, records: list[Record], out: list[bytes], *, how: str = "eof") -> None:
        transaction = self._waiting[0]
        watch, self._substitution = self._substitution, None
        if transaction.response is not None:
            ended = transaction.response.ended(now_ns, SERVER, how, trailers=end.trailers)
            if isinstance(watch, MetadataHold):
                out.append(watch.close(end))
                records += watch.opened()
                if watch.body and isinstance(ended[0], Frame):
                    ended[0].rare["forwarded"] = watch.body
            elif watch is not None:
                out += (watch.release(), end.raw)
            else:
                out.append(end.raw)
            records += ended
            self._waiting.popleft()
            if len(self._waiting) == MAX_PIPELINED - 1 and not self._is_full:
                self._client.resume()
        else:
            out.append(end.raw)  # an interim response has no body, and its end is the head's

    def server_lost(self, error: Exception | None) -> None:
        """The upstream's connection is gone."""
        self._server = None
        if self._is_over:
            return
        now_ns = self._tap.now_ns()
        how = "eof" if error is None else "reset"
        records: list[Record] = []
        out: list[bytes] = []
        is_broken = self._is_raw
        ends_by_close = False
        for piece in self._responses.close():
            if isinstance(piece, End):
                ends_by_close = True
                self._finished(piece, now_ns, records, out, how=how)
            elif isinstance(piece, Incomplete) and self._waiting and self._waiting[0].response is not None:
                is_broken = True
                self._let_go(records, out)
                out.append(piece.raw)
                broken = "abort" if error is None else how
                records += self._waiting[0].response.ended(now_ns, SERVER, broken, missing_bytes=piece.missing_bytes)
            elif isinstance(piece, Incomplete | Refused):
                records += self._opaque.took(SERVER, piece.raw, now_ns)  # half a head, which is not passed on
        records += self._opaque.closed(now_ns, SERVER, how)
        self._record(records)
        self._client.write(b"".join(out))
        if self._waiting_for_answers() and not is_broken:
            self._forge(Refusal(status=502, reason="the upstream closed the connection without a response"), now_ns)
            return
        self._ended(SERVER, how)
        # a reset, where nothing else tells it that something is missing; a chunked body just lacks its last chunk
        self._client.close(by_reset=error is not None and (ends_by_close or self._is_raw))

    def _let_go(self, records: list[Record], out: list[bytes]) -> None:
        """Send on what is held back of a body that will not be whole."""
        watch, self._substitution = self._substitution, None
        if watch is not None:
            out.append(watch.release())
        if isinstance(watch, MetadataHold):
            records += watch.opened()

    def _waiting_for_answers(self) -> bool:
        """Whether the upstream still owes a response."""
        return any(one is not self._sending or self._refusal is None for one in self._waiting)

    def _refuse_in_turn(self) -> None:
        """Answer a request that was refused, once those before it have been answered."""
        if self._refusal is not None and not self._is_over and not self._waiting_for_answers():
            self._forge(self._refusal, self._tap.now_ns())

    def _forge(self, refusal: Refusal, now_ns: int) -> None:
        """Answer what waits in the upstream's place, and close. Where an answer has begun already, only close."""
        tap = self._tap
        transaction = self._waiting[0] if self._waiting else None
        has_begun = transaction.response is not None if transaction else self._sending is not None
        records: list[Record] = []
        if not has_begun:
            head, body = forged_response(refusal)
            if transaction is not None and transaction.request.is_open:
                records += transaction.request.ended(now_ns, MCPSPY, "abort")
            response = Recorded(tap.numbers.stream(), SERVER, "body")
            number = transaction.number if transaction else tap.numbers.transaction()
            records.append(response.begun(now_ns, head, transaction=number, connection=self.number, forged=True))
            records += (*response.took(Body(body, body), now_ns), *response.ended(now_ns, MCPSPY, "eof"))
            self._waiting.clear()
            self._sending = None
            self._record(records)
            self._client.write(head + body)
        self._ended(MCPSPY, "abort")
        if self._server is not None:
            self._server.abort()
        self._linger()

    def _linger(self) -> None:
        """Say that nothing more comes, and wait a little for the client to leave."""
        self._client.end()
        self.resume_client()
        self._patience.linger(self._client.abort)

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
        self._patience.forget()  # the client cannot go on: its time does not run
        self._client.pause()
        if self._server is not None:
            self._slowness.blocked(self._request, self._server)

    def resume_client(self) -> None:
        self._is_full = False
        self._slowness.drained(self._request)
        if len(self._waiting) < MAX_PIPELINED:
            self._client.resume()
        self._watch_time()

    def pause_server(self) -> None:
        self._slowness.blocked(self._response, self._client)
        if self._server is not None:
            self._server.pause()

    def resume_server(self) -> None:
        self._slowness.drained(self._response)
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
        if not self._is_over:
            self._ended(MCPSPY, "abort")
        self._client.abort()
        if self._server is not None:
            self._server.abort()

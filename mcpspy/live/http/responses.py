"""The responses of the upstream on one connection: cut, recorded, and passed on to the client.

Bytes pass unchanged but for heads and the few bodies in which a name is rewritten (`body_rewriting`). Each method appends what became
due to `records` and `out`.
"""

from __future__ import annotations

from collections import deque

from ...records import CLIENT, SERVER, Frame, Record
from ...wire.http import HttpMessages, Piece
from ...wire.http_body import BlankLines, Body, BodyEnd, IncompleteMessage, OpaqueBytes, RefusedBytes
from ...wire.http_head import ResponseHead
from ...wire.sse import SseEvents
from .body_rewriting import BodyHold, EndpointWatch
from .context import TapContext
from .recorder import OpaqueStreams, StreamRecorder, note
from .transaction import ProxiedTransaction, redirected


class ResponseRelay:
    """The responses on the connection `number`. `waiting` are the transactions without a whole response, in the order of requests.

    `messages` cuts them, and `stream` is the number of the latest. `endpoint` is the one that the upstream announced last. `is_raw`
    means that it sends bytes that are not HTTP, `is_switched` that it has changed to another protocol.
    """

    __slots__ = (
        "_body_rewriting", "_number", "_opaque", "_tap", "endpoint", "is_raw", "is_switched", "messages", "stream", "waiting",
    )  # fmt: skip

    def __init__(self, tap: TapContext, number: int, opaque: OpaqueStreams) -> None:
        self._tap = tap
        self._number = number
        self._opaque = opaque
        self.messages = HttpMessages.of_responses()
        self._body_rewriting: EndpointWatch | BodyHold | None = None
        self.waiting: deque[ProxiedTransaction] = deque()
        self.is_raw = False
        self.is_switched = False
        self.endpoint = ""
        self.stream = -1

    def expect(self, transaction: ProxiedTransaction) -> None:
        """Expect the response to a request that was sent."""
        self.messages.expect(transaction.plan.method)

    @property
    def current(self) -> StreamRecorder | None:
        """The response that is on its way; None if none is."""
        return self.waiting[0].response if self.waiting else None

    @property
    def is_collecting(self) -> bool:
        """True while a body is kept whose head is not recorded yet."""
        return False

    @property
    def is_between_events(self) -> bool:
        """True if the next event of `current` can be passed on without `feed`, if it comes whole in one chunk, as nearly all do."""
        response = self.current
        return (
            response is not None
            and self._body_rewriting is None
            and self.messages.is_between_chunks
            and response.is_between_events
        )

    def feed(self, data: bytes, now_ns: int, records: list[Record], out: list[bytes]) -> list[bytes]:
        """Take bytes. Returns the events after those in `records` that came in one chunk each: nearly all of a burst."""
        run: list[bytes] = []
        pieces = self.messages.feed(data)
        if len(pieces) == 1 and isinstance(pieces[0], Body) and self._body_rewriting is None:
            response = self.waiting[0].response
            records += response.feed(pieces[0], now_ns, run) if response is not None else ()
            out.append(pieces[0].raw)  # begins with what was kept of the size of its first chunk
            return run
        for piece in pieces:
            self._on_piece(piece, now_ns, records, out)
        return run

    def _on_piece(self, piece: Piece, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        match piece:
            case Body():
                self._on_body(piece, now_ns, records, out)
            case ResponseHead():
                self._on_head(piece, now_ns, records, out)
            case BodyEnd():
                self._on_end(piece, now_ns, records, out)
            case RefusedBytes():
                text = f"{piece.reason}; what follows is relayed as it comes"
                number = self.waiting[0].number if self.waiting else 0
                records.append(note(now_ns, "response-refused", text, self._number, number))
                self.is_raw = True
                self._release_body(records, out)
                records += self._opaque.feed(SERVER, piece.raw, now_ns)
                out.append(piece.raw)
            case OpaqueBytes():
                records += self._opaque.feed(SERVER, piece.raw, now_ns)
                out.append(piece.raw)
            case BlankLines():
                out.append(piece.raw)

    def _on_head(self, head: ResponseHead, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        tap, transaction = self._tap, self.waiting[0]
        request_plan = transaction.plan
        plan = tap.response_plan(head, request_plan.rewriting)
        tap.known_heads.see_response(head, plan, request_plan)
        response = StreamRecorder(tap.numbers.stream(), SERVER, plan.framing, flows=plan.flows)
        self.stream = response.number
        forwarded = None if plan.forwarded == head.raw else plan.forwarded
        opening = response.open(now_ns, head.raw, transaction=transaction.number, connection=self._number, forwarded=forwarded)
        if request_plan.is_metadata and (location := head.value(b"location")) is not None:
            request_plan.rewriting.expect_metadata(location.decode("latin-1"), request_plan.target)
        redirect = redirected(head, request_plan.browser_location) if request_plan.browser_location else b""
        is_held = redirect or (request_plan.is_metadata and head.status // 100 == 2 and plan.framing != "sse")
        if is_held and head.ends_by in ("length", "chunks", "close"):
            transaction.response = response
            rewrite = _without_body if redirect else request_plan.rewriting.metadata
            self._body_rewriting = BodyHold(opening, redirect or plan.forwarded, rewrite)
            return
        records.append(opening)
        if head.is_interim:
            records += response.close(now_ns, SERVER, "eof")
            out.append(plan.forwarded)
            return
        transaction.response = response
        if request_plan.wants_events and plan.framing == "sse":
            self._body_rewriting = EndpointWatch(head, request_plan.rewriting)
        if head.ends_by == "upgrade":
            records += response.close(now_ns, SERVER, "eof")
            self.waiting.popleft()
            self.is_switched = True
        out.append(plan.forwarded)

    def _on_body(self, body: Body, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        response = self.waiting[0].response
        frames = response.feed(body, now_ns) if response is not None else []
        watch = self._body_rewriting
        if isinstance(watch, BodyHold):
            out.append(watch.feed(body, records))
        else:
            out.append(body.raw if watch is None else watch.feed(body))
        records += frames
        if isinstance(watch, EndpointWatch):
            for frame in frames:
                if watch.event and isinstance(frame, Frame) and frame.data == watch.event:
                    frame.rare["forwarded"] = watch.rewritten
                    watch.event = b""
            self._note_endpoint(watch, now_ns, records)
            if watch.is_idle:
                self._body_rewriting = None

    def _note_endpoint(self, watch: EndpointWatch, now_ns: int, records: list[Record]) -> None:
        """Remember the endpoint that a stream announced, and note one of a third party."""
        if watch.endpoint:
            self.endpoint = watch.endpoint
        if (third_party := watch.third_party) is not None:
            text = (
                f"the endpoint event names {third_party}, which is not the upstream; it passes as it is (see --allow-endpoint)"
            )
            records.append(note(now_ns, "endpoint", text, self._number, self.waiting[0].number))
            watch.third_party = None

    def _on_end(
        self, end: BodyEnd, now_ns: int, records: list[Record], out: list[bytes], *, by: str = SERVER, how: str = "eof"
    ) -> None:
        transaction = self.waiting[0]
        watch, self._body_rewriting = self._body_rewriting, None
        if transaction.response is not None:
            ended = transaction.response.close(now_ns, by, how, trailers=end.trailers)
            if isinstance(watch, BodyHold):
                out.append(watch.close(end, ended, records))
                if watch.body:
                    self._tap.forget_heads()  # some may be those of a login, whose paths are in it
            else:
                out += (b"" if watch is None else watch.release(), end.raw)
                records += ended
            self.waiting.popleft()
        else:
            out.append(end.raw)  # an interim response has no body: it ends with its head

    def close(self, now_ns: int, by: str, how: str, records: list[Record], out: list[bytes]) -> tuple[bool, bool]:
        """Take the end of the connection. Returns whether a response lacks its end, and whether this was the end of one.

        `by` is who ended first. A client that did still gets a response that ends with the connection.
        """
        is_broken = self.is_raw
        ends_by_close = False
        for piece in self.messages.close():
            if isinstance(piece, BodyEnd):
                ends_by_close = True
                response = self.current
                if by == CLIENT and response is not None and response.framing == SseEvents.name:  # it would have gone on
                    self._on_end(piece, now_ns, records, out, by=by, how=_broken(by, how))
                else:
                    self._on_end(piece, now_ns, records, out, how=how)
            elif isinstance(piece, IncompleteMessage) and self.waiting and self.waiting[0].response is not None:
                is_broken = True
                self._release_body(records, out)
                out.append(piece.raw)
                broken = _broken(by, how)
                records += self.waiting[0].response.close(now_ns, by, broken, missing_bytes=piece.missing_bytes)
            elif isinstance(piece, IncompleteMessage | RefusedBytes):
                records += self._opaque.feed(SERVER, piece.raw, now_ns)  # half a head, which is not forwarded
        records += self._opaque.close(now_ns, SERVER, how)
        return is_broken, ends_by_close

    def record_end(self, now_ns: int, by: str, how: str) -> list[Record]:
        """Record that `by` ended everything that was under way."""
        records: list[Record] = []
        if isinstance(self._body_rewriting, BodyHold):
            self._body_rewriting.release(records)
        for transaction in self.waiting:
            if transaction.request.is_open:
                records += transaction.request.close(now_ns, by, how)
            if transaction.response is None:
                text = f"{by} closed the connection before the response came"
                records.append(note(now_ns, "left", text, self._number, transaction.number, by=by))
            elif transaction.response.is_open:
                records += transaction.response.close(now_ns, by, _broken(by, how))
        self.waiting.clear()
        return records

    def _release_body(self, records: list[Record], out: list[bytes]) -> None:
        """Send on what is kept of a body that will not become whole."""
        watch, self._body_rewriting = self._body_rewriting, None
        if watch is not None:
            out.append(watch.release(records) if isinstance(watch, BodyHold) else watch.release())


def _without_body(_: bytes) -> bytes:
    return b""


def _broken(by: str, how: str) -> str:
    """Return how a response that is not whole ended, by how its connection did."""
    return how if how != "eof" else "broken" if by == CLIENT else "abort"

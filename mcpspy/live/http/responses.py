"""What the upstream sends on one connection: cut, recorded, and written as the client must see it.

Bytes pass as they came, but for the heads and the few bodies in which a name is mapped (`substitution`). Each method puts what
became due at the end of `records` and `out`. Refuses to know sockets.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ...records import CLIENT, SERVER, Frame, Record
from ...wire.http import Responses
from ...wire.http_body import BlankLines, Body, BodyEnd, IncompleteMessage, OpaqueBytes, RefusedBytes
from ...wire.http_head import ResponseHead
from .body_rewriting import EndpointWatch, MetadataHold
from .recorder import Recorded, note

if TYPE_CHECKING:
    from .opaque import Opaque as OpaqueStreams
    from .tap import HttpTap
    from .transaction import Transaction


class Answers:
    """Of the connection `number`. `waiting` are the transactions without their whole answer, in the order of the requests.

    `stream` is the response that came last. `is_raw`: the upstream sends what is no HTTP. `is_switched`: it goes on in another
    protocol.
    """

    __slots__ = (
        "_number", "_opaque", "_responses", "_substitution", "_tap", "is_raw", "is_switched", "stream", "waiting",
    )  # fmt: skip

    def __init__(self, tap: HttpTap, number: int, opaque: OpaqueStreams) -> None:
        self._tap = tap
        self._number = number
        self._opaque = opaque
        self._responses = Responses()
        self._substitution: EndpointWatch | MetadataHold | None = None
        self.waiting: deque[Transaction] = deque()
        self.is_raw = False
        self.is_switched = False
        self.stream = -1

    def expect(self, transaction: Transaction) -> None:
        """A request was sent."""
        self._responses.expect(transaction.asked.method)

    @property
    def current(self) -> Recorded | None:
        """The response that is on its way."""
        return self.waiting[0].response if self.waiting else None

    @property
    def is_between_events(self) -> bool:
        """Whether one whole event in one chunk, as nearly all events come, is next, to be passed on as it comes.

        Such an event of `current` need not be fed.
        """
        response = self.current
        return (
            response is not None
            and self._substitution is None
            and self._responses.is_between_chunks
            and response.is_between_events
        )

    def feed(self, data: bytes, now_ns: int, records: list[Record], out: list[bytes]) -> list[bytes]:
        """Bytes came. Returns the events that follow those in `records` and came in a chunk each: in a burst, nearly all."""
        run: list[bytes] = []
        pieces = self._responses.feed(data)
        if len(pieces) == 1 and isinstance(pieces[0], Body) and self._substitution is None:
            response = self.waiting[0].response
            records += response.took(pieces[0], now_ns, run) if response is not None else ()
            out.append(pieces[0].raw)  # which begins with what was held back of the size of its first chunk
            return run
        for piece in pieces:
            match piece:
                case Body():
                    self._took(piece, now_ns, records, out)
                case ResponseHead():
                    self._answered(piece, now_ns, records, out)
                case BodyEnd():
                    self._finished(piece, now_ns, records, out)
                case RefusedBytes():
                    text = f"{piece.reason}; what follows is relayed as it comes"
                    number = self.waiting[0].number if self.waiting else 0
                    records.append(note(now_ns, "response-refused", text, self._number, number))
                    self.is_raw = True
                    self._let_go(records, out)
                    records += self._opaque.took(SERVER, piece.raw, now_ns)
                    out.append(piece.raw)
                case OpaqueBytes():
                    records += self._opaque.took(SERVER, piece.raw, now_ns)
                    out.append(piece.raw)
                case BlankLines():
                    out.append(piece.raw)
        return run

    def _answered(self, head: ResponseHead, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        tap, transaction = self._tap, self.waiting[0]
        asked = transaction.asked
        answered = tap.answered(head, asked.mapping)
        response = Recorded(tap.numbers.stream(), SERVER, answered.framing, flows=answered.flows)
        self.stream = response.number
        forwarded = None if answered.forwarded == head.raw else answered.forwarded
        opening = response.begun(now_ns, head.raw, transaction=transaction.number, connection=self._number, forwarded=forwarded)
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
            self.waiting.popleft()
            self.is_switched = True
        out.append(answered.forwarded)

    def _took(self, body: Body, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        response = self.waiting[0].response
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
                records.append(note(now_ns, "endpoint", text, self._number, self.waiting[0].number))
                watch.third = None
            if watch.is_idle:
                self._substitution = None

    def _finished(self, end: BodyEnd, now_ns: int, records: list[Record], out: list[bytes], *, how: str = "eof") -> None:
        transaction = self.waiting[0]
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
            self.waiting.popleft()
        else:
            out.append(end.raw)  # an interim response has no body, and its end is the head's

    def close(self, now_ns: int, how: str, records: list[Record], out: list[bytes]) -> tuple[bool, bool]:
        """The connection is gone. Whether something lacks its end, and whether its end was the answer's end."""
        is_broken = self.is_raw
        ends_by_close = False
        for piece in self._responses.close():
            if isinstance(piece, BodyEnd):
                ends_by_close = True
                self._finished(piece, now_ns, records, out, how=how)
            elif isinstance(piece, IncompleteMessage) and self.waiting and self.waiting[0].response is not None:
                is_broken = True
                self._let_go(records, out)
                out.append(piece.raw)
                broken = "abort" if how == "eof" else how
                records += self.waiting[0].response.ended(now_ns, SERVER, broken, missing_bytes=piece.missing_bytes)
            elif isinstance(piece, IncompleteMessage | RefusedBytes):
                records += self._opaque.took(SERVER, piece.raw, now_ns)  # half a head, which is not passed on
        records += self._opaque.closed(now_ns, SERVER, how)
        return is_broken, ends_by_close

    def abandoned(self, now_ns: int, by: str, how: str) -> list[Record]:
        """What is under way ends here, since `by` ended it."""
        records: list[Record] = []
        if isinstance(self._substitution, MetadataHold):
            records += self._substitution.opened(is_over=True)
        for transaction in self.waiting:
            if transaction.request.is_open:
                records += transaction.request.ended(now_ns, by, how)
            if transaction.response is None:
                text = f"{by} closed the connection before the response came"
                records.append(note(now_ns, "left", text, self._number, transaction.number, by=by))
            elif transaction.response.is_open:
                broken = how if how != "eof" else "broken" if by == CLIENT else "abort"
                records += transaction.response.ended(now_ns, by, broken)
        self.waiting.clear()
        return records

    def _let_go(self, records: list[Record], out: list[bytes]) -> None:
        """Send on what is held back of a body that will not be whole."""
        watch, self._substitution = self._substitution, None
        if watch is not None:
            out.append(watch.release())
        if isinstance(watch, MetadataHold):
            records += watch.opened()

"""Responses of the upstream with intercepts: bodies and events are taken whole, and it is decided what the client gets instead.

    JSON body    if an intercept may act on it, kept until it is whole, then sent: as it came, or with a new length
    events       sent one by one, each in a chunk of its own where the response has chunks; half an event waits for its end
    all else     as `ResponseRelay` does it: pages, metadata, compressed events, interim responses

An event that was delayed holds back no others, but those of its exchange, and where events have ids all that have one: their order
is the client's position in the stream.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING

from ...records import SERVER, Frame, Note, Open
from ...wire.sse import BOM, SseEvents, parse, with_data
from ..waiting_messages import MAX_MESSAGE_BYTES, Delayed, WaitingMessages
from .body_rewriting import EndpointWatch
from .responses import ResponseRelay
from .taken_messages import (
    LAST_CHUNK,
    TakenMessage,
    answer_event,
    answers_message,
    chunk_of,
    in_chunks,
    junk_events,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...records import Record
    from ...wire.http_body import Body, BodyEnd
    from ...wire.http_head import ResponseHead
    from ..waiting_messages import HeldMessage, MessageDecision
    from .transaction import ProxiedTransaction

    Decide = Callable[[bytes, int, ProxiedTransaction], MessageDecision]

_WITH_IDS = "events with ids"


class _EventStream:
    """A response that is a stream of events, and the state in which it is.

    `wait` is True as long as what began before we were asked passes. `parts` are those of an event that has not ended, `is_passing`
    that it is too long to be kept.
    """

    __slots__ = ("adds_end", "finder", "has_chunks", "has_ids", "is_first", "is_passing", "parts", "size", "stalls", "waits")

    def __init__(self, *, has_chunks: bool, adds_end: bool = False, waits: bool = False) -> None:
        self.has_chunks = has_chunks
        self.adds_end = adds_end
        self.waits = waits
        self.finder: EndpointWatch | None = None
        self.is_first = True
        self.has_ids = False
        self.parts: list[bytes] = []
        self.size = 0
        self.is_passing = False
        self.stalls: MessageDecision | None = None

    def framed(self, data: bytes) -> bytes:
        """Return bytes as they are sent."""
        return chunk_of(data) if self.has_chunks else data


class InterceptingRelay(ResponseRelay):
    """A relay that goes on where a plain one was, and decides on each message. `then` does something to the connection.

    `is_dead` means that the client gets nothing more, because it waits for what was dropped. `waiting_messages` are delayed or held;
    the end of a response waits for them.
    """

    __slots__ = (
        "_decide",
        "_end",
        "_events",
        "_latest",
        "_learn",
        "_may_act",
        "_observed",
        "_taken",
        "_then",
        "is_dead",
        "waiting_messages",
    )

    def __init__(
        self,
        relay: ResponseRelay,
        decide: Decide,
        may_act: Callable[[ProxiedTransaction], bool],
        learn: Callable[[bytes], None],
        then: Callable[[str], None],
    ) -> None:
        for name in ResponseRelay.__slots__:
            setattr(self, name, getattr(relay, name))
        self._decide = decide
        self._may_act = may_act
        self._learn = learn
        self._observed: TakenMessage | None = None
        self._then = then
        self._taken: TakenMessage | None = None
        self._events: _EventStream | None = None
        self._latest: _EventStream | None = None  # also when it has ended, and something of it is delayed
        self._end: BodyEnd | None = None
        self.waiting_messages = WaitingMessages()
        self.is_dead = False
        self._begin_within()

    def _begin_within(self) -> None:
        """Begin within a response: what is on its way passes."""
        response, watch = self.current, self._body_rewriting
        if response is None or response.framing != SseEvents.name:
            return
        is_chunked = not self.messages.is_until_close
        self._events = self._latest = _EventStream(has_chunks=is_chunked, waits=True)
        if isinstance(watch, EndpointWatch) and watch.is_untouched:
            self._events.finder, self._body_rewriting = watch, None
        self._end_wait()

    def _end_wait(self) -> None:
        events, response = self._events, self.current
        if events is None or response is None or not events.waits or self._body_rewriting is not None:
            return
        if response.is_between_events and (self.messages.is_between_chunks or not events.has_chunks):
            events.waits = False

    @property
    def can_give_back(self) -> bool:
        """True if a plain relay can go on from here."""
        if self.waiting_messages or self._taken is not None or self._end is not None or self.is_dead:
            return False
        events, response = self._events, self.current
        if events is None or response is None:
            return True
        return not events.adds_end and (
            events.waits or (response.is_between_events and (self.messages.is_between_chunks or self.messages.is_until_close))
        )

    def given_back(self) -> ResponseRelay:
        """Return a plain relay that goes on from here."""
        if self._events is not None and self._events.finder is not None and self._events.finder.is_untouched:
            self._body_rewriting = self._events.finder
        plain = ResponseRelay.__new__(ResponseRelay)
        for name in ResponseRelay.__slots__:
            setattr(plain, name, getattr(self, name))
        return plain

    @property
    def is_collecting(self) -> bool:
        return self._taken is not None or self._end is not None or bool(self.waiting_messages.held)

    @property
    def is_under_way(self) -> bool:
        """True while something has to be sent before the next response."""
        return self.is_dead or self._end is not None or bool(self.waiting_messages)

    @property
    def is_busy(self) -> bool:
        """True while a response is being taken, or something of one waits."""
        return self._taken is not None or self._events is not None or self.is_under_way

    @property
    def is_between_events(self) -> bool:
        return False

    def feed(self, data: bytes, now_ns: int, records: list[Record], out: list[bytes]) -> list[bytes]:
        was_dead = self.is_dead
        for piece in self.messages.feed(data):
            self._on_piece(piece, now_ns, records, out)
            self._end_wait()
        if was_dead:
            out.clear()
        return []

    # The pieces of a response

    def _on_head(self, head: ResponseHead, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        own: list[Record] = []
        heads: list[bytes] = []
        method = self.waiting[0].plan.method
        super()._on_head(head, now_ns, own, heads)
        response, opening = self.current, own[0] if own else None
        self._events = None
        if response is not None and isinstance(opening, Open) and not head.is_interim:
            if response.framing == SseEvents.name:
                self._begin_events(head, opening, heads)
            elif answers_message(head, method) and self._may_act(self.waiting[0]):
                self._taken = TakenMessage(opening, own, heads[0])
                return
            elif answers_message(head, method):
                self._observed = TakenMessage(opening, [], heads[0])
            elif b"event-stream" in (head.value(b"content-type") or b""):
                own.append(self._passes(now_ns, "compressed events pass without intercepts"))
        records += own
        out += heads

    def _begin_events(self, head: ResponseHead, opening: Open, heads: list[bytes]) -> None:
        has_length = head.ends_by == "length"
        self._events = self._latest = _EventStream(has_chunks=head.ends_by != "close", adds_end=has_length)
        if isinstance(self._body_rewriting, EndpointWatch):
            self._events.finder = EndpointWatch(head, self.waiting[0].plan.rewriting)
            self._body_rewriting = None
        if has_length:  # which an intercept may change
            heads[0] = opening.forwarded = in_chunks(heads[0])

    def _on_body(self, body: Body, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        taken, events, response = self._taken, self._events, self.current
        if self._observed is not None:
            self._observed.feed(body)
            self._observed = self._observed if self._observed.size <= MAX_MESSAGE_BYTES else None
        if taken is not None and response is not None:
            taken.feed(body)
            taken.records += response.feed(body, now_ns)
            if taken.size > MAX_MESSAGE_BYTES:
                self._release_body(records, out)
                text = f"a message of more than {MAX_MESSAGE_BYTES >> 20} MiB passes without intercepts"
                records.append(self._passes(now_ns, text))
        elif events is not None and not events.waits and response is not None:
            for record in response.feed(body, now_ns):
                if isinstance(record, Frame):
                    self._on_frame(events, record, records, out)
        else:
            super()._on_body(body, now_ns, records, out)

    def _on_end(
        self, end: BodyEnd, now_ns: int, records: list[Record], out: list[bytes], *, by: str = SERVER, how: str = "eof"
    ) -> None:
        taken, events = self._taken, self._events
        if self._observed is not None:
            self._observed.end(end)
            self._learn(self._observed.content)
            self._observed = None
        if taken is None and self.waiting_messages.held:
            self._end = end  # and its record comes after theirs
            return
        transaction = self.waiting[0]
        own: list[Record] = [] if taken is None else taken.records
        ends: list[bytes] = []
        super()._on_end(end, now_ns, own, ends, by=by, how=how)
        if taken is not None:
            self._taken = None
            self._on_whole(taken, end, transaction, now_ns, records, out)
            return
        records += own
        last = b"".join(ends)
        if events is not None and transaction.response is not None and not events.waits:
            rest = b"".join(record.data for record in own if isinstance(record, Frame))
            last = events.framed(self._unsent(events) + rest) + (LAST_CHUNK if events.adds_end else end.raw)
            self._events = None
            if events.stalls is not None or self.is_dead:
                self.is_dead = True
                return
        if self.waiting_messages.delayed:
            self.waiting_messages.delay(Delayed(self.waiting_messages.delayed[-1].due_ns, None, last, injected=False))
        else:
            out.append(last)

    def _release_body(self, records: list[Record], out: list[bytes]) -> None:
        taken, self._taken = self._taken, None
        events, response = self._events, self.current
        if taken is not None:
            records += taken.records
            out.append(taken.unchanged)
        elif events is not None and not events.waits and response is not None and events.stalls is None:
            out.append(events.framed(self._unsent(events) + response.held))
            events.waits = True
        super()._release_body(records, out)

    def _unsent(self, events: _EventStream) -> bytes:
        """Return what was kept of an event in parts."""
        unsent, events.parts, events.size = b"".join(events.parts), [], 0
        return unsent

    def record_end(self, now_ns: int, by: str, how: str) -> list[Record]:
        taken, self._taken = self._taken, None
        records = taken.records if taken is not None else []
        rest = super().record_end(now_ns, by, how)
        if self.is_dead:  # half an event came that nobody gets
            for record in rest:
                if isinstance(record, Frame):
                    record.rare["forwarded"] = b""
        return [*records, *rest]

    def close_until(self, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        """Take the end of a body that ends with the connection, in good order."""
        if self.messages.is_until_close:
            for piece in self.messages.close():
                self._on_piece(piece, now_ns, records, out)

    # JSON

    def _on_whole(
        self,
        taken: TakenMessage,
        end: BodyEnd,
        transaction: ProxiedTransaction,
        now_ns: int,
        records: list[Record],
        out: list[bytes],
    ) -> None:
        """Decide on a JSON body that is whole."""
        if not taken.end(end):
            records += taken.records
            out.append(taken.unchanged)
            return
        decision = self._decide(taken.content, now_ns, transaction)
        held = self.waiting_messages.hold(decision, taken.frame, taken.content)
        if held is None:
            self._carry_out_body(taken, decision, taken.frame, records, out)
        else:
            held.carry_out = partial(self._carry_out_body, taken, decision)
            self._note_held(held, records)

    def _carry_out_body(
        self, taken: TakenMessage, decision: MessageDecision, frame: Frame, records: list[Record], out: list[bytes]
    ) -> None:
        if decision.doubled_by:
            decision.records = [act for act in decision.records if act.action != "duplicate"]
            records.append(self._passes(frame.at_ns, "the JSON body of a response is one message, which cannot come twice"))
        sent = taken.settle(decision, frame)
        records += taken.records
        if sent is None:
            self.is_dead = True  # the client waits for this response, and would take another for it
        else:
            self._send_or_delay(sent, frame.at_ns + decision.delay_ns, None, frame.at_ns, out)
        if decision.then:
            self._then(decision.then)

    # Events

    def _on_frame(self, events: _EventStream, frame: Frame, records: list[Record], out: list[bytes]) -> None:
        """Take a part of an event, or the last of it."""
        if frame.part:
            records.append(frame)
            events.size += len(frame.data)
            if events.is_passing:
                out.append(events.framed(frame.data))
                return
            events.parts.append(frame.data)
            if events.size > MAX_MESSAGE_BYTES:
                events.is_passing = True
                out.append(events.framed(self._unsent(events)))
                text = f"a message of more than {MAX_MESSAGE_BYTES >> 20} MiB passes without intercepts"
                records.append(self._passes(frame.at_ns, text))
        elif events.is_passing:
            records.append(frame)
            out.append(events.framed(frame.data))
            events.is_passing, events.size = False, 0
        else:
            self._on_event(events, self._unsent(events) + frame.data, frame, records, out)

    def _on_event(self, events: _EventStream, whole: bytes, frame: Frame, records: list[Record], out: list[bytes]) -> None:
        """Decide on a whole event. One that carries no message passes, behind those that it must not overtake."""
        if self.is_dead:  # the connection is about to be closed
            frame.rare["forwarded"] = b""
            records.append(frame)
            return
        event = parse(whole, is_first=events.is_first)
        events.is_first = False
        events.has_ids = events.has_ids or event.id is not None
        key = _WITH_IDS if event.id is not None else None
        if events.stalls is not None:
            frame.rare["forwarded"] = b""
            events.stalls.records = [copy(act) for act in events.stalls.records]
            records += _dated(events.stalls, frame)
            return
        if event.type != "message" or not event.data:
            sent = self._rewritten(events, whole, frame, records)
            self._send_or_delay(events.framed(sent), frame.at_ns, key, frame.at_ns, out)
            return
        events.finder = None
        decision = self._decide(event.data, frame.at_ns, self.waiting[0])
        if not (decision.records or self.waiting_messages):
            records.append(frame)
            out.append(events.framed(whole))
            return
        held = self.waiting_messages.hold(decision, frame, event.data)
        carry_out = partial(self._carry_out_event, events, whole, event.data, decision, key)
        if held is None:
            carry_out(frame, records, out)
        else:
            held.carry_out = carry_out
            self._note_held(held, records)

    def _carry_out_event(
        self,
        events: _EventStream,
        whole: bytes,
        data: bytes,
        decision: MessageDecision,
        key: str | None,
        frame: Frame,
        records: list[Record],
        out: list[bytes],
    ) -> None:
        now_ns, payload = frame.at_ns, decision.payload
        sent = whole
        if payload is None:
            sent = b""
        elif payload != data:
            sent = with_data(whole, payload, is_first=whole.startswith(BOM))
            sent = sent.rstrip(b"\r\n") if decision.is_cut else sent
        if sent != whole:
            frame.rare["forwarded"] = sent
        records += _dated(decision, frame)
        due_ns = now_ns + decision.delay_ns
        if decision.noise is not None:
            self._send_or_delay(junk_events(decision.noise), due_ns, key or decision.key, now_ns, out, records=records)
        if sent:
            self._send_or_delay(events.framed(sent), due_ns, key or decision.key, now_ns, out)
            if decision.doubled_by and not decision.is_cut:
                self._send_or_delay(sent.removeprefix(BOM), due_ns, key or decision.key, now_ns, out, records=records)
        if decision.then == "stall":
            events.stalls = decision
        elif decision.then:
            self.is_dead = True
            self._then(decision.then)

    def _rewritten(self, events: _EventStream, whole: bytes, frame: Frame, records: list[Record]) -> bytes:
        """Record an event without a message; return it with the endpoint that it may announce rewritten."""
        finder, sent = events.finder, whole
        if finder is not None and finder.see(whole):
            events.finder = None
            if finder.rewritten:
                sent = frame.rare["forwarded"] = finder.rewritten
        records.append(frame)
        if finder is not None:
            self._note_endpoint(finder, frame.at_ns, records)
        return sent

    # Sending

    def _send_or_delay(
        self,
        data: bytes,
        due_ns: int,
        key: object,
        now_ns: int,
        out: list[bytes],
        *,
        records: list[Record] | None = None,
    ) -> None:
        """Send bytes, now or later. With `records` they are an event of mcpspy's own, which is recorded when it is sent."""
        due_ns = self.waiting_messages.due_after(due_ns, key)
        if due_ns > now_ns:
            self.waiting_messages.delay(Delayed(due_ns, key, data, injected=records is not None))
        elif records is not None:
            out.append(self._injected(data, now_ns, records))
        else:
            out.append(data)

    def _injected(self, event: bytes, now_ns: int, records: list[Record]) -> bytes:
        records.append(Frame(self.stream, now_ns, now_ns, event, injected=True))
        return event if self._latest is None else self._latest.framed(event)

    def inject(self, answer: bytes, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        """Send an answer of mcpspy's own as an event, between those of the upstream."""
        events = self._events
        if events is None or events.stalls is not None or self.is_dead or self.current is None:
            return
        if events.waits or events.is_passing:
            self.waiting_messages.delay(Delayed(now_ns, None, answer_event(answer), injected=True))
        else:
            out.append(self._injected(answer_event(answer), now_ns, records))

    @property
    def is_within(self) -> bool:
        """True while something is being sent within which nothing else can be."""
        return self._events is not None and (self._events.waits or self._events.is_passing)

    def send_due(self, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        """Send what is due, and the end of a response for which nothing more waits."""
        if self.is_within:
            return
        due = self.waiting_messages.take_due(now_ns)
        out += [self._injected(item.data, now_ns, records) if item.injected else item.data for item in due]
        for held in self.waiting_messages.take_released(now_ns):
            held.carry_out(held.frame, records, out)
        if self._end is not None and not self.waiting_messages.held:
            end, self._end = self._end, None
            self._on_end(end, now_ns, records, out)

    def drop_held(self, now_ns: int) -> list[Record]:
        """Record what is held, and will never be sent."""
        records: list[Record] = []
        for held in self.waiting_messages.drop_held(now_ns):
            held.carry_out(held.frame, records, [])
        return records

    def _passes(self, now_ns: int, text: str) -> Note:
        return Note(at_ns=now_ns, topic="not-intercepted", text=text, extra={"stream": self.stream})

    def _note_held(self, held: HeldMessage, records: list[Record]) -> None:
        if held.number:
            held.decision.let_go = partial(self._let_go, held)
            text = f"message {held.number} of the server is held: {next(act.text for act in held.decision.records)}"
            records.append(Note(at_ns=held.frame.at_ns, topic="held", text=text, extra={"stream": self.stream}))

    def _let_go(self, held: HeldMessage) -> None:
        self.waiting_messages.release(held.number, held.decision.payload)
        self._then("release")


def _dated(decision: MessageDecision, frame: Frame) -> list[Record]:
    """Return the records of a decision, in front of that of the frame."""
    acts = decision.records
    for at, act in enumerate(acts):
        act.at_ns, act.frame = frame.at_ns, at - len(acts)
    return [*acts, frame]

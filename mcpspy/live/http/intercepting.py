"""An HTTP tap that takes messages whole and asks what to do with each: pass it on, later, changed, or not at all.

It does what the plain tap does, and is only used, and imported, if there are intercepts. A connection pair that runs can be put
under intercepts and given back. Requests of one connection are taken one at a time: the next when the response to the one before
has been sent. What was received is recorded as ever; what was sent instead is recorded with it, before it is sent.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ...records import CLIENT, MCPSPY, SERVER, Frame, Note, Open
from ...transcript.http.head import decoded_value
from ...wire.http_body import Body, BodyEnd
from ...wire.http_head import RequestHead, first_value
from ...wire.sse import parse
from ..upstream.headers import MARK, MirroredArguments, with_mirrored
from ..waiting_messages import MAX_MESSAGE_BYTES, Delayed, WaitingMessages
from .connection_pair import MAX_PIPELINED, ConnectionPair
from .intercepting_responses import InterceptingRelay
from .own_post import post_copy
from .recorder import StreamRecorder
from .taken_messages import CONTINUE, TakenMessage, carries_message, is_endpoint, own_response

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from ...records import Record, Side
    from ...wire.http import Piece
    from ..waiting_messages import Decider, HeldMessage, MessageDecision
    from .reactor import Timer
    from .tap import HttpTap
    from .transaction import ProxiedTransaction, RequestPlan


class _PairState:
    """The state that a pair has because of intercepts.

    `pieces` of requests wait for their turn. `taken` is a request that is being collected, `observed` one that passes meanwhile;
    `to_server` has the one that was collected, if it waits, and `decision` what was decided about it; `decided` is what was decided
    about the read that is being taken. `is_unsent` says that the upstream does not know of the current request. `copy` sends that a
    second time. `mirrored` are the arguments that are repeated in header fields, as lists of tools mark them; all pairs share them.
    `lost` is set when the upstream has gone while something waits for the client.
    """

    __slots__ = (
        "copy", "decided", "decider", "decision", "is_ending", "is_unsent", "lost", "mirrored", "observed", "pieces", "sent",
        "taken", "tap", "timer", "to_server",
    )  # fmt: skip

    def __init__(self, tap: HttpTap, decider: Decider, mirrored: MirroredArguments) -> None:
        self.tap = tap
        self.mirrored = mirrored
        self.decider = decider
        self.pieces: deque[Piece] = deque()
        self.taken: TakenMessage | None = None
        self.observed: TakenMessage | None = None
        self.to_server = WaitingMessages()
        self.decision: MessageDecision | None = None
        self.copy: Callable[[], object] | None = None
        self.decided: MessageDecision | None = None
        self.sent = b""
        self.is_unsent = False
        self.is_ending = False
        self.lost: tuple[Exception | None] | None = None
        self.timer: Timer | None = None


class HeldDirection(NamedTuple):
    """The direction in which a message is held, for a controller that lets it go."""

    writer: str
    release: Callable[..., None]


class InterceptingPair(ConnectionPair):
    """A connection pair with intercepts. `hands` is its state, `_responses` an `InterceptingRelay`."""

    __slots__ = ()

    hands: _PairState
    _responses: InterceptingRelay

    def begin(self, tap: HttpTap, decider: Decider, mirrored: MirroredArguments) -> None:
        """Begin to ask what to do with messages."""
        self.hands = _PairState(tap, decider, mirrored)
        decider.sink = tap.sink
        may_act = partial(self._may_act, SERVER)
        self._responses = InterceptingRelay(self._responses, self._decide_answer, may_act, self._learn, self._do)
        self._is_between_events = False
        self._rebind()

    def let_go(self) -> None:
        """Send all that waits, and become a plain pair as soon as that is possible, if no intercepts are in force."""
        for waiting in (self.hands.to_server, self._responses.waiting_messages):
            waiting.make_due()
        self._on_due()

    def give_back(self) -> None:
        """Become a plain pair, if nothing of ours is under way and no intercept is in force any more."""
        state = self.hands
        is_busy = state.taken is not None or state.to_server or state.pieces or state.lost is not None or state.is_unsent
        if state.tap.intercepts is not None or self._is_over or is_busy or not self._responses.can_give_back:
            return
        if self._sending is not None and self._sending.request.is_open:
            return  # a body goes on, of which the recorder knows more than the plain pair would
        if state.timer is not None:
            state.timer.cancel()
        self._responses = self._responses.given_back()  # type: ignore[assignment]
        self.hands = None  # type: ignore[assignment]
        self.__class__ = ConnectionPair  # type: ignore[assignment]
        self._rebind()

    # The client's direction

    def on_client_data(self, data: bytes) -> None:
        if self._refusal is not None or self._is_over:
            return
        now_ns = self._tap.now_ns()
        if not self._sends_usual(data, now_ns):
            self.hands.pieces += self._requests.feed(data)
            self._take_pieces(now_ns)
            self.hands.decided = None

    def _sends_usual(self, data: bytes, now_ns: int) -> bool:
        """Decide on a usual request, and send it the short way if nothing is to be done with it; return whether it was sent.

        What was decided else is kept for the general way.
        """
        state, responses = self.hands, self._responses
        if state.pieces or state.taken is not None or responses.waiting or state.to_server or responses.is_under_way:
            return False
        usual = self._usual.whole_request(data)
        if usual is None:
            return False
        plan, body = usual
        head = data[: -len(body)].lower()
        if b"json" not in head or b"\r\ncontent-encoding:" in head:
            return False
        decision = self._decide_request(body, now_ns, plan, self._tap.numbers.last_transaction + 1)
        forwarded = None if decision.records else self._usual.request(data, now_ns, self._sending)
        if forwarded is None:
            state.decided = decision
            return False
        self._send_usual_request(forwarded)
        return True

    def _take_pieces(self, now_ns: int) -> None:
        """Take what has come of requests, up to the one whose turn it is not yet."""
        state = self.hands
        records: list[Record] = []
        out: list[bytes] = []
        while state.pieces and not self._is_over and self._is_turn_of(state.pieces[0]):
            self._take_request_piece(state.pieces.popleft(), now_ns, records, out)
        self._record(records)
        self._to_server(b"".join(out))
        sending = self._sending
        if sending is not None and state.taken is None and sending.request.waits_since_ns is not None:
            self._stall_timer.watch_frame(sending.request)
        if len(state.pieces) >= MAX_PIPELINED:
            self._client.pause()
        self._watch_time()
        self._refuse_in_turn()
        self._schedule()

    def _is_turn_of(self, piece: Piece) -> bool:
        if not isinstance(piece, RequestHead):
            return True
        return not (self._responses.waiting or self.hands.to_server or self._responses.is_under_way)

    def _take_request_piece(self, piece: Piece, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        state, sending = self.hands, self._sending
        if state.observed is not None and sending is not None:
            self._observe(state.observed, piece, now_ns, sending)
        if state.taken is None or sending is None or self._refusal is not None:
            super()._take_request_piece(piece, now_ns, records, out)
        elif isinstance(piece, Body):
            state.taken.feed(piece)
            state.taken.records += sending.request.feed(piece, now_ns)
            if state.taken.size > MAX_MESSAGE_BYTES:
                self._pass_taken(records, out)
                text = f"a message of more than {MAX_MESSAGE_BYTES >> 20} MiB passes without intercepts"
                extra = {"stream": sending.request.number}
                records.append(Note(at_ns=now_ns, topic="not-intercepted", text=text, extra=extra))
        elif isinstance(piece, BodyEnd):
            taken, state.taken, self._sending = state.taken, None, None
            taken.records += sending.request.close(now_ns, CLIENT, "eof", trailers=piece.trailers)
            self._on_whole(taken, piece, sending, records, out)
        else:
            super()._take_request_piece(piece, now_ns, records, out)

    def _begin(self, head: RequestHead, now_ns: int, records: list[Record], out: list[bytes]) -> None:
        own: list[Record] = []
        heads: list[bytes] = []
        super()._begin(head, now_ns, own, heads)
        if not heads or not carries_message(head):
            records += own
            out += heads
            return
        opening = own[0]
        assert isinstance(opening, Open)
        assert self._sending is not None
        if not self._may_act(CLIENT, self._sending):
            records += own
            out += heads
            if self._may_act(SERVER, self._sending):
                self.hands.observed = TakenMessage(opening, [], heads[0])
            return
        self._responses.messages.begin_response()  # which is not to be expected before the request is sent
        state = self.hands
        state.is_unsent = True
        state.taken = TakenMessage(opening, own, heads[0])
        if head.version == b"HTTP/1.1" and (head.value(b"expect") or b"").strip(b" \t").lower() == b"100-continue":
            self._invite(state.taken, now_ns, records)

    def _may_act(self, sender: Side, transaction: ProxiedTransaction) -> bool:
        """Return whether an intercept may act on a request, or on the answer to it, as far as the head of the request tells."""
        head = transaction.plan.forwarded
        raw = [first_value(head, head.lower(), name) for name in (b"mcp-method", b"mcp-name")]
        method, name = (None if value is None else decoded_value(value.decode("utf-8", "replace")) for value in raw)
        is_decided = self.hands.decided is not None  # it came whole
        return is_decided or self.hands.decider.may_act(sender, method, name, self._scope_of(transaction))

    def _observe(self, observed: TakenMessage, piece: Piece, now_ns: int, transaction: ProxiedTransaction) -> None:
        """Read along in a request that passes, because an intercept may act on the answer to it."""
        self.hands.observed = None
        if isinstance(piece, Body):
            observed.feed(piece)
            self.hands.observed = observed if observed.size <= MAX_MESSAGE_BYTES else None
        elif isinstance(piece, BodyEnd):
            observed.end(piece)
            self.hands.decider.observe(observed.content, now_ns, self._scope_of(transaction))

    def _invite(self, taken: TakenMessage, now_ns: int, records: list[Record]) -> None:
        """Tell a client to go on that waits for leave to send a body: the upstream does not know of the request yet."""
        taken.without_expectation()
        assert self._sending is not None
        response = StreamRecorder(self._tap.numbers.stream(), SERVER, "body")
        number = self._sending.number
        records += taken.records
        records.append(response.open(now_ns, CONTINUE, transaction=number, connection=self.number, injected=True))
        records += response.close(now_ns, MCPSPY, "eof")
        taken.records = []
        self._client.write(CONTINUE)

    def _pass_taken(self, records: list[Record], out: list[bytes]) -> None:
        """Let pass what was collected: it is too much, or there is nothing to decide."""
        state = self.hands
        taken, state.taken = state.taken, None
        if taken is not None:
            records += taken.records
            out.append(self._sends(taken.unchanged))

    def _sends(self, request: bytes) -> bytes:
        """Return a request to be sent, after which its response is expected."""
        state = self.hands
        transaction = self._responses.waiting[0]
        self._responses.expect(transaction)
        state.is_unsent = False
        copy, state.copy = state.copy, None
        if copy is not None:
            copy()
        return request

    def _decide_request(self, payload: bytes, at_ns: int, plan: RequestPlan, number: int) -> MessageDecision:
        is_apart = self._stream_of(plan.target) is None
        return self.hands.decider.decide(CLIENT, payload, at_ns, self._scope(plan, number), is_answered_apart=is_apart)

    def _on_whole(
        self, taken: TakenMessage, end: BodyEnd, transaction: ProxiedTransaction, records: list[Record], out: list[bytes]
    ) -> None:
        """Decide on a request that is whole."""
        state = self.hands
        if not taken.end(end):
            records += taken.records
            out.append(self._sends(taken.unchanged))
            return
        frame = taken.frame
        decision, state.decided = state.decided, None
        if decision is None:
            decision = self._decide_request(taken.content, frame.at_ns, transaction.plan, transaction.number)
        held = state.to_server.hold(decision, frame, taken.content)
        if held is None:
            self._carry_out(taken, decision, frame, records, out)
            return
        held.carry_out = partial(self._carry_out, taken, decision)
        text = f"message {held.number} of the client is held: {next(act.text for act in decision.records)}"
        records.append(Note(at_ns=frame.at_ns, topic="held", text=text, extra={"stream": frame.stream}))

    def _carry_out(
        self, taken: TakenMessage, decision: MessageDecision, frame: Frame, records: list[Record], out: list[bytes]
    ) -> None:
        state = self.hands
        sent = taken.settle(decision, frame, partial(with_mirrored, mirrored=state.mirrored))
        records += taken.records
        state.decision, state.sent = decision, sent or b""
        if decision.doubled_by and sent is not None and not decision.is_cut:
            state.copy = partial(post_copy, state.tap, state.decider, taken.head, decision)
        if decision.delay_ns:
            due_ns = frame.at_ns + decision.delay_ns
            state.to_server.delay(Delayed(due_ns, None, state.sent, injected=sent is None))
        elif sent is not None:
            out.append(self._sends(sent))
            self._do(decision.then)
        else:
            self._tap.reactor.soon(self._answer_soon)

    def _answer_soon(self) -> None:
        """Answer in a call of its own: the records of the request come first."""
        if not self._is_over and isinstance(self.hands, _PairState):
            self._answer(self._tap.now_ns())
            self._take_pieces(self._tap.now_ns())

    def _answer(self, now_ns: int) -> None:
        """Do what is to be done in place of sending a request: answer it, or end its connection."""
        state = self.hands
        decision, state.decision = state.decision, None
        if decision is None or not self._responses.waiting:
            return
        if decision.then:
            self._do(decision.then)
            return
        transaction = self._responses.waiting[0]
        stream = self._stream_of(transaction.plan.target)
        if stream is not None and decision.reply is not None:
            stream.inject(decision.reply, now_ns)
        response = own_response(decision, is_over_stream=stream is not None)
        if response is None:
            return  # nothing more is taken from this connection: its client waits for an answer
        head, body = response
        self._responses.waiting.popleft()
        state.is_unsent = False
        recorder = StreamRecorder(self._tap.numbers.stream(), SERVER, "body")
        records: list[Record] = [
            recorder.open(now_ns, head, transaction=transaction.number, connection=self.number, injected=True),
            *(recorder.feed(Body(body, body), now_ns) if body else ()),
            *recorder.close(now_ns, MCPSPY, "eof"),
        ]
        for frame in (record for record in records if isinstance(record, Frame)):
            frame.rare["injected"] = True
        self._record(records)
        self._client.write(head + body)
        if transaction.plan.is_last:
            self._end_answered("eof")

    def inject(self, answer: bytes, now_ns: int) -> None:
        """Send an answer of mcpspy's own on the stream of events that goes to this client."""
        records: list[Record] = []
        out: list[bytes] = []
        self._responses.inject(answer, now_ns, records, out)
        self._record(records)
        self._client.write(b"".join(out))

    def _stream_of(self, target: bytes) -> InterceptingPair | None:
        """Return the pair whose stream announced the endpoint to which a request goes."""
        return next((pair for pair in pairs_of(self.hands.tap) if pair.announced(target)), None)

    def announced(self, target: bytes) -> bool:
        """Return whether the stream that is under way here announced this endpoint."""
        waiting = self._responses.waiting
        is_under_way = bool(waiting) and self._responses.current is not None
        return is_under_way and is_endpoint(target, self._responses.endpoint, waiting[0].plan.target)

    def _scope_of(self, transaction: ProxiedTransaction) -> Hashable:
        """Return the scope of the ids in a transaction: a session, the stream that announced the endpoint, or itself."""
        return self._scope(transaction.plan, transaction.number)

    def _scope(self, plan: RequestPlan, number: int) -> Hashable:
        if plan.session is not None:
            return plan.session
        stream = self._stream_of(plan.target) if plan.method == b"POST" else None
        return stream.number_under_way if stream is not None else number

    @property
    def number_under_way(self) -> int:
        """The number of the transaction whose response is on its way."""
        return self._responses.waiting[0].number

    def _do(self, what: str) -> None:
        """Do something to the connection: `disconnect` it, and that of the stream on which the answer would come."""
        if what == "release":
            self._tap.reactor.soon(self._on_due)
        if what != "disconnect":
            return  # a request that stalls is never sent, and nothing is taken after it
        waiting = self._responses.waiting
        stream = self._stream_of(waiting[0].plan.target) if waiting else None
        self._tap.reactor.soon(self.abort)
        if stream is not None and stream is not self:
            self._tap.reactor.soon(stream.abort)

    def on_client_end(self) -> bool:
        """Let a request go that is held, and send on that the client has closed its half after what is delayed."""
        state = self.hands
        if self._is_over or not (state.to_server or state.is_unsent):
            return super().on_client_end()
        state.to_server.release_all()
        state.is_ending = True
        self._schedule()
        return bool(state.to_server)

    def on_client_lost(self, error: Exception | None) -> None:
        if self.hands.timer is not None:
            self.hands.timer.cancel()
        super().on_client_lost(error)

    def _end_requests(self, now_ns: int, by: str, how: str) -> list[Record]:
        state = self.hands
        taken, state.taken = state.taken, None
        records = taken.records if taken is not None else []
        return [*records, *super()._end_requests(now_ns, by, how)]

    def _record_end(self, by: str, how: str) -> None:
        self._is_over = True
        now_ns = self._tap.now_ns()
        records: list[Record] = []
        for held in self.hands.to_server.drop_held(now_ns):
            held.carry_out(held.frame, records, [])
        records += self._responses.drop_held(now_ns)
        self._record(records)
        super()._record_end(by, how)

    # The server's direction

    def on_server_data(self, data: bytes) -> None:
        if self._is_over:
            return
        now_ns = self._tap.now_ns()
        if self._passes_usual(data, now_ns):
            return
        self._take_response(data, now_ns)
        self.hands.decided = None
        if not self._is_over:
            self._after_response()

    def _passes_usual(self, data: bytes, now_ns: int) -> bool:
        """Decide on a usual response, and pass it on the short way if nothing is to be done with it; return whether it was.

        What was decided else is kept for the general way.
        """
        state, responses = self.hands, self._responses
        if self._refusal is not None or self._has_client_ended or responses.is_busy or state.pieces or state.is_unsent:
            return False
        usual = self._usual.whole_response(data)
        if usual is None or state.tap.intercepts is None:
            return False
        body, is_event = usual
        if is_event:
            event = parse(body)
            if event.type != "message" or not event.data:
                return False
            body = event.data
        else:
            head = data[: -len(body)].lower()
            if b"json" not in head or b"\r\ncontent-encoding:" in head:
                return False
        decision = self._decide_answer(body, now_ns, responses.waiting[0])
        forwarded = None if decision.records else self._usual.response(data, now_ns)
        if forwarded is None:
            state.decided = decision
            return False
        self._send_usual_response(forwarded)
        self._is_between_events = False
        return True

    def _after_response(self) -> None:
        """Take the next request, and become a plain pair if that was asked for."""
        if self._responses.waiting_messages.is_full and self._server is not None:
            self._server.pause()
        self._take_pieces(self._tap.now_ns())
        self.give_back()

    def _decide_answer(self, payload: bytes, at_ns: int, transaction: ProxiedTransaction) -> MessageDecision:
        decision, self.hands.decided = self.hands.decided, None
        if decision is not None:
            return decision
        self._learn(payload)
        return self.hands.decider.decide(SERVER, payload, at_ns, self._scope_of(transaction))

    def _learn(self, payload: bytes) -> None:
        """Learn from a list of tools which arguments are repeated in header fields."""
        if MARK in payload:
            self.hands.mirrored.learn(payload)

    def on_server_lost(self, error: Exception | None) -> None:
        state, now_ns = self.hands, self._tap.now_ns()
        if self._is_over or self._culprit(error, SERVER) == MCPSPY:
            super().on_server_lost(error)
            return
        if state.is_unsent and self._responses.messages.is_between:
            self._server = self._dial = None  # it was idle; a new connection is made for what waits
            return
        if error is None and not self._has_client_ended:
            records: list[Record] = []
            out: list[bytes] = []
            self._responses.close_until(now_ns, records, out)
            self._record(records)
            self._client.write(b"".join(out))
        if self._responses.is_under_way:
            self._server, state.lost = None, (error,)
            self._schedule()
        else:
            super().on_server_lost(error)

    # Held messages

    def held(self) -> list[tuple[HeldDirection, HeldMessage]]:
        """List the messages that are held, each with its direction."""
        directions = ((CLIENT, self.hands.to_server), (SERVER, self._responses.waiting_messages))
        return [
            (HeldDirection(writer, partial(self._release, waiting)), item)
            for writer, waiting in directions
            for item in waiting.held
            if item.number and item.due_ns
        ]

    def _release(self, waiting: WaitingMessages, number: int, payload: bytes | None, change: str = "") -> None:
        """Let a held message go: changed, or not at all if its payload is None."""
        waiting.release(number, payload, change)
        self._on_due()

    # Time

    def _schedule(self) -> None:
        """See to it that what waits is sent when it is due."""
        state = self.hands
        due = [] if self._responses.is_within else [self._responses.waiting_messages.due_ns]
        due_ns = min([due_ns for due_ns in (state.to_server.due_ns, *due) if due_ns], default=0)
        if state.timer is not None:
            state.timer.cancel()
        state.timer = None
        if due_ns and not self._is_over:
            state.timer = self._tap.reactor.later(max(due_ns - self._tap.now_ns(), 0) / 1e9, self._on_due)

    def _on_due(self) -> None:
        """Send what is due in both directions."""
        state, now_ns = self.hands, self._tap.now_ns()
        state.timer = None
        if self._is_over:
            return
        records: list[Record] = []
        to_client: list[bytes] = []
        to_server: list[bytes] = []
        self._responses.send_due(now_ns, records, to_client)
        for held in state.to_server.take_released(now_ns):
            held.carry_out(held.frame, records, to_server)
        due = state.to_server.take_due(now_ns)
        to_server += [self._sends(item.data) for item in due if not item.injected]
        self._record(records)
        self._client.write(b"".join(to_client))
        self._to_server(b"".join(to_server))
        if any(item.injected for item in due):
            self._answer(now_ns)
        if self._server is not None and not self._responses.waiting_messages.is_full:
            self._server.resume()
        if state.lost is not None and not self._responses.is_under_way:
            (error,), state.lost = state.lost, None
            super().on_server_lost(error)
        elif state.is_ending and not state.to_server:
            state.is_ending = False
            if not super().on_client_end():
                self._client.close()
        if not self._is_over:
            self._after_response()


def take_over(tap: HttpTap, intercepts: Decider) -> None:
    """Put intercepts into a tap: from the next message of each connection on."""
    tap.intercepts = intercepts
    tap.forget_heads()
    tap.adopt = partial(_adopt, tap, intercepts, MirroredArguments())
    for pair in list(tap.pairs):
        tap.adopt(pair)


def _adopt(tap: HttpTap, intercepts: Decider, mirrored: MirroredArguments, pair: ConnectionPair) -> None:
    if not isinstance(pair, InterceptingPair):
        pair.__class__ = InterceptingPair
        assert isinstance(pair, InterceptingPair)
        pair.begin(tap, intercepts, mirrored)


def give_back(tap: HttpTap) -> None:
    """Let a tap run without intercepts again. What waits is sent at once."""
    tap.intercepts = tap.adopt = None
    tap.forget_heads()
    for pair in pairs_of(tap):
        pair.let_go()


def pairs_of(tap: HttpTap) -> list[InterceptingPair]:
    """Return the pairs of a tap that have intercepts."""
    return [pair for pair in tap.pairs if isinstance(pair, InterceptingPair)]


def held_by(tap: HttpTap) -> list[tuple[HeldDirection, HeldMessage]]:
    """List the messages that are held, each with its direction."""
    return [held for pair in pairs_of(tap) for held in pair.held()]

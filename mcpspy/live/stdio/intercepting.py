"""A stdio tap that takes messages whole and asks what to do with each: pass it on, later, changed, or not at all.

It does what the plain tap does, and is only used, and imported, if there are intercepts. Who decides is given in. What was
received is recorded as ever; what was sent instead is recorded with it, before it is sent.

A delayed message holds back no others, but those of its own exchange: progress or a cancellation never overtakes its request. If
much is delayed, nothing more is read, until some of it has been sent.
"""

from __future__ import annotations

from functools import partial
from time import monotonic_ns

from ...platform.descriptors import POLLIN, rest_of
from ...platform.descriptors import read as _read
from ...records import MCPSPY, Frame, Note
from ...wire.lines import one_line
from ..waiting_messages import MAX_MESSAGE_BYTES, Delayed, WaitingMessages
from .pump import Pump
from .tap import StdioTap, kill_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Any, TypeVar

    from ...records import Intercept, Record, Side
    from ..waiting_messages import Decider, HeldMessage, MessageDecision

    P = TypeVar("P", bound=Pump)

    Decide = Callable[[Side, bytes, int], MessageDecision]


class InterceptingPump(Pump):
    """A pump that decides on each message. `connect` gives it what it needs besides, before anything is read."""

    __slots__ = (
        "_decide", "_held", "_held_bytes", "_is_passing", "_mate", "_passed_bytes", "_replies", "_stalls", "_then", "router",
        "waiting",
    )  # fmt: skip

    _decide: Decide
    _mate: InterceptingPump
    _then: Callable[[str], None]
    _held: list[bytes]
    _replies: list[tuple[bytes, Sequence[Intercept]]]
    waiting: WaitingMessages
    _stalls: MessageDecision | None
    router: Any
    """The restarts of the server, if it can be restarted."""

    def ask(self, decide: Decide, router: object) -> None:
        """Have another one decide from now on."""
        self._decide, self.router = decide, router

    def connect(self, decide: Decide, mate: InterceptingPump, then: Callable[[str], None]) -> None:
        """Set who decides, the pump of the other direction, and what does something to the channel."""
        self._decide, self._mate, self._then = decide, mate, then
        self._held, self._held_bytes, self._is_passing = [], 0, False
        self._replies = []
        self._stalls = None
        self._passed_bytes = 0
        self.waiting = WaitingMessages()

    def begin_within(self) -> None:
        """Let the message pass of which a part was sent before we were asked."""
        self._passed_bytes = self._lines.held_bytes
        self._is_passing = self._lines.is_part or self._passed_bytes > 0

    def let_go(self) -> bool:
        """Send all that waits, so that a plain pump can go on. Return False if that must wait for the end of a message."""
        if self._is_passing and (self._replies or self.waiting):
            return False
        now_ns = monotonic_ns() - self._begin_ns
        self._release_all(now_ns)
        for item in self.waiting.take_due():
            (self._inject if item.injected else self._transmit)(item.data, now_ns)
        self._inject_replies(now_ns)
        if rest := b"".join((*self._held, self._lines.held))[self._passed_bytes :]:
            self._transmit(rest, now_ns)
        self._held, self._held_bytes, self._is_passing, self._passed_bytes = [], 0, False, 0
        self._went_on()
        return True

    def release(self, number: int, payload: bytes | None, change: str = "") -> None:
        """Let a held message go with this payload, or drop it. `change` says in a word what a controller did to it."""
        self.waiting.release(number, payload, change)
        self._went_on()

    def send_all(self) -> None:
        """Send what is held or delayed as soon as no message is passing."""
        self.waiting.make_due()
        self._went_on()

    def _let_go(self, held: HeldMessage) -> None:
        self.release(held.number, held.decision.payload)

    def _release_due(self, now_ns: int) -> None:
        for item in self.waiting.take_released(now_ns):
            self._carry_out(item.decision, item.frame, item.whole)

    def _release_all(self, now_ns: int) -> None:
        """Let all go that is held: nothing waits for what nobody will let go."""
        self.waiting.release_all()
        self._release_due(now_ns)

    def _hold(self, decision: MessageDecision, frame: Frame, whole: bytes) -> bool:
        """Hold a message that is to be held, or that is behind one of its exchange. Return whether it is held now."""
        held = None if self.over else self.waiting.hold(decision, frame, whole)
        if held is None:
            return False
        if held.number:
            decision.let_go = partial(self._let_go, held)
            text = f"message {held.number} of the {self.writer} is held: {next(act.text for act in decision.records)}"
            self._sink((Note(at_ns=frame.at_ns, topic="held", text=text, extra={"stream": self._stream}),))
        if self.waiting.is_full:
            self._ready.watch(self._source, 0, self._hung_up)
        self._schedule()
        return True

    def inject(self, payload: bytes, act: Intercept, now_ns: int) -> bool:
        """Send a message of our own to the reader, as soon as no other is passing. Return whether it still takes messages."""
        if self.over or self.finished or self.broken or self._stalls is not None:
            return False
        self.reply(one_line(payload), now_ns, now_ns, None, (act,))
        return True

    def reply(self, frame: bytes, due_ns: int, now_ns: int, key: Hashable, acts: Sequence[Intercept] = ()) -> None:
        """Send a frame of our own to the reader, now or at `due_ns`; between messages, never within one."""
        if self.finished or self.broken:
            return
        if due_ns > now_ns:
            self._delay(Delayed(due_ns, key, frame, injected=True))
        elif self._held or self._is_passing:
            self._replies.append((frame, acts))
        else:
            self._inject(frame, now_ns, acts)

    def _inject_replies(self, now_ns: int) -> None:
        replies, self._replies = self._replies, []
        for frame, acts in replies:
            self._inject(frame, now_ns, acts)

    def forget_delayed(self) -> None:
        """Drop what is delayed: nobody waits for it any more."""
        if self.waiting.take_due():
            self._went_on()

    def stop(self) -> None:
        self.forget_delayed()
        super().stop()

    def drain(self) -> None:
        if self.over:
            return
        now_ns = monotonic_ns() - self._begin_ns
        data, is_end = rest_of(self._source)
        if data:
            self._take(data, now_ns)
        if not self.over:  # a decision may have ended it
            self._end(now_ns, self.writer if is_end else MCPSPY, "eof" if is_end else "abort")

    def on_time(self, now_ns: int) -> None:
        if self.waiting and not (self._held or self._is_passing):  # else at the end of the message that is passing
            for item in self.waiting.take_due(now_ns):
                if item.injected:
                    self._inject(item.data, now_ns)
                else:
                    self._transmit(item.data, now_ns)
            self._release_due(now_ns)
            self._went_on()
        super().on_time(now_ns)

    # Reading

    def _readable(self, events: int) -> None:
        try:
            data = _read(self._source, self._read_bytes)
        except BlockingIOError:
            return
        except OSError:
            self._end(monotonic_ns() - self._begin_ns, self.writer, "reset")
            return
        now_ns = monotonic_ns() - self._begin_ns
        if data:
            self._take(data, now_ns)
        else:
            self._end(now_ns, self.writer, "eof")

    def _take(self, data: bytes, now_ns: int) -> None:
        """Take bytes that were read: decide on each message that they complete."""
        if self._is_one_message(data):
            decision = self._decide(self.writer, data, now_ns)
            if not (decision.records or self.waiting):
                self._frame(self._stream, now_ns, data)  # nearly all messages go this short way
                self._transmit(data, now_ns)
            elif not self._hold(decision, frame := Frame(self._stream, now_ns, now_ns, data), data):
                self._carry_out(decision, frame, data)
            return
        began_ns = self._first_ns if self._lines.held_bytes else now_ns
        pieces = self._lines.feed(data)
        last = len(pieces) - 1
        for at, piece in enumerate(pieces):
            frame = Frame(self._stream, now_ns, now_ns if at else began_ns, piece, at == last and self._lines.is_part)
            if frame.part:
                self._part(frame)
            else:
                self._whole(frame)
            if self.over:
                return
        if pieces or began_ns == now_ns:
            self._first_ns = now_ns
            self._partial_recorded = False
        self._schedule()

    def _is_one_message(self, data: bytes) -> bool:
        """Return whether these bytes are one whole message, while no part of another waits, and nothing is withheld."""
        if self._lines.held_bytes or self._held or self._is_passing or self._stalls is not None:
            return False
        return 0 < data.find(b"\n") + 1 == len(data)

    def _part(self, frame: Frame) -> None:
        """Record a part, and hold it, unless the message is too long to be held."""
        self._sink((frame,))
        self._held.append(frame.data)
        self._held_bytes += len(frame.data)
        if self._is_passing or self._held_bytes > MAX_MESSAGE_BYTES:
            if not self._is_passing:
                text = f"a message of more than {MAX_MESSAGE_BYTES >> 20} MiB passes without intercepts"
                self._sink((Note(at_ns=frame.at_ns, topic="not-intercepted", text=text, extra={"stream": self._stream}),))
            self._is_passing = True
            self._transmit(b"".join(self._held)[self._passed_bytes :], frame.at_ns)
            self._held, self._passed_bytes = [], 0

    def _whole(self, frame: Frame) -> None:
        """Decide on a message with its last part, record it, and do what was decided."""
        now_ns = frame.at_ns
        if self._is_passing:
            self._sink((frame,))
            self._transmit(frame.data[self._passed_bytes :], now_ns)
            self._passed_bytes = 0
        else:
            whole = b"".join((*self._held, frame.data))
            decision = self._stalls or self._decide(self.writer, whole, now_ns)
            if not self._hold(decision, frame, whole):
                self._carry_out(decision, frame, whole)
        self._held, self._held_bytes, self._is_passing = [], 0, False
        self._inject_replies(now_ns)
        if self.waiting and not self.over:
            self._schedule()

    def _carry_out(self, decision: MessageDecision, frame: Frame, whole: bytes) -> None:
        now_ns, payload, acts = frame.at_ns, decision.payload, decision.records
        sent: bytes | None = whole
        if acts:
            if payload is None:
                sent = None
            elif payload != whole:
                sent = whole[: whole.find(payload) + len(payload)] if decision.is_cut else one_line(payload)
            if sent != whole:
                frame.rare["forwarded"] = sent or b""
            for at, act in enumerate(acts):
                act.at_ns, act.frame = now_ns, at - len(acts)
        self._sink((*acts, frame))
        due_ns = now_ns + decision.delay_ns
        if decision.noise is not None:
            self._send_or_delay(one_line(decision.noise), due_ns, decision.key, now_ns, injected=True)
        if sent is not None:
            self._send_or_delay(sent, due_ns, decision.key, now_ns, injected=False)
            if decision.doubled_by and not decision.is_cut:
                self._send_or_delay(sent, due_ns, decision.key, now_ns, injected=True)
        if decision.reply is not None:
            self._mate.reply(one_line(decision.reply), due_ns, now_ns, decision.key)
        if decision.then == "stall":
            decision.noise = None  # it was sent, and comes once
            self._stalls = decision
        elif decision.then:
            self._then(decision.then)

    # Sending

    def _send_or_delay(self, data: bytes, due_ns: int, key: Hashable, now_ns: int, *, injected: bool) -> None:
        if self.broken:
            return
        due_ns = self.waiting.due_after(due_ns, key)
        if due_ns > now_ns:
            self._delay(Delayed(due_ns, key, data, injected=injected))
        elif injected:
            self._inject(data, now_ns)
        else:
            self._transmit(data, now_ns)

    def _delay(self, item: Delayed) -> None:
        self.waiting.delay(item)
        if self.waiting.is_full and not self.over:
            self._ready.watch(self._source, 0, self._hung_up)
        self._schedule()

    def _inject(self, data: bytes, now_ns: int, acts: Sequence[Intercept] = ()) -> None:
        if not self.broken and not self.finished:
            records: list[Record] = [*acts, Frame(self._stream, now_ns, now_ns, data, injected=True)]
            for act in acts:
                act.at_ns = now_ns
            self._sink(records)
            self._transmit(data, now_ns)

    def _schedule(self) -> None:
        super()._schedule()
        if self.waiting and not (self._held or self._is_passing):
            due_ns = self.waiting.due_ns
            self.due_ns = min(self.due_ns, due_ns) if self.due_ns else due_ns
            self._ready.interrupted = True

    def _block(self, rest: memoryview, now_ns: int) -> None:
        super()._block(rest, now_ns)
        if self.over:
            self._ready.forget(self._source)  # which is closed, and its number may be another file's

    def _went_on(self) -> None:
        """Read again, or finish, when less is delayed."""
        self._schedule()
        if self._pending:
            return
        if not self.over and not self.waiting.is_full:
            self._ready.watch(self._source, POLLIN, self._readable)
        elif self.over and not self.waiting:
            self._finish()
            self._on_change()

    def _unblock(self, now_ns: int) -> None:
        super()._unblock(now_ns)
        if self.waiting.is_full and not self.over:
            self._ready.watch(self._source, 0, self._hung_up)

    # The end

    def _end(self, now_ns: int, by: str, how: str) -> None:
        if not (self._held or self._is_passing):
            self._release_all(now_ns)
        rest = b"".join((*self._held, self._lines.held))[self._passed_bytes :]
        self._held, self._held_bytes = [], 0
        if rest and self._stalls is None:
            self._transmit(rest, now_ns)
        self._is_passing = False
        super()._end(now_ns, by, how)
        self._release_all(now_ns)
        if self.over and not self._pending:
            self._finish()
        self._inject_replies(now_ns)

    def _break(self, now_ns: int, unsent_bytes: int = 0) -> None:
        self.waiting.take_due()
        self._replies = []
        super()._break(now_ns, unsent_bytes)

    def _finish(self) -> None:
        if not self.waiting:
            super()._finish()


class InterceptingTap(StdioTap):
    """A stdio tap with intercepts, which say what is done with a message of one side, at a time of the tap's clock.

    One that `stays` takes messages whole also while there are no intercepts.
    """

    __slots__ = ()
    stays = False

    def intercept(self, intercepts: Decider) -> None:
        """Ask these from now on."""
        self.intercepts, decide = intercepts, intercepts.decide
        intercepts.sink = self._sink
        to_server, to_client = self._stdin, self._stdout
        assert isinstance(to_server, InterceptingPump)
        assert isinstance(to_client, InterceptingPump)
        to_server.connect(decide, to_client, self._do)
        to_client.connect(decide, to_server, self._do)

    def _pump(self, stream: int, source: int, target: int) -> Pump:
        return (
            super()._pump(stream, source, target) if stream == 2 else self._new_pump(InterceptingPump, stream, source, target)
        )

    def exchange_pumps(self, kind: type[Pump]) -> None:
        """Go on with pumps of another kind."""
        self._stdin, self._stdout = exchanged(self._stdin, kind), exchanged(self._stdout, kind)
        self._pumps = (self._stdin, self._stdout, self._stderr)

    def send_to_server(self, payload: bytes, act: Intercept) -> bool:
        """Send a message of our own to the server. Return whether it still takes messages."""
        return isinstance(self._stdin, InterceptingPump) and self._stdin.inject(payload, act, self.now_ns())

    def call_when_idle(self, action: Callable[[], None]) -> None:
        """Call this once no message is being passed on."""
        assert self.intercepts is not None
        decider: Any = self.intercepts
        decider.when_idle = action
        self._on_change()

    def begin_within(self) -> None:
        """Let pass what is on its way while we take over."""
        for pump in self._both():
            pump.begin_within()

    def let_go(self) -> bool:
        """Send all that waits; return whether plain pumps can go on."""
        return sum(pump.let_go() for pump in self._both()) == 2

    def send_all(self) -> None:
        """Send what is held or delayed, and go on."""
        for pump in self._both():
            pump.send_all()

    def held(self) -> list[tuple[InterceptingPump, HeldMessage]]:
        """List the messages that are held, each with its pump."""
        return [(pump, item) for pump in self._both() for item in pump.waiting.held if item.number and item.due_ns]

    def release_those_of(self, handle: int) -> None:
        """Let the messages go that an intercept holds which is in force no more."""
        for pump, item in self.held():
            if item.decision.held_by == handle:
                pump.release(item.number, item.decision.payload)

    def _both(self) -> list[InterceptingPump]:
        return [pump for pump in (self._stdin, self._stdout) if isinstance(pump, InterceptingPump)]

    def _do(self, what: str) -> None:
        """Do something to the channel: `kill` the server, or `disconnect` both sides."""
        if what == "kill":
            if self._status is None:
                kill_server(self._child)
            return
        self._shutdown.why = self._shutdown.why or "disconnected by an intercept"
        self._shutdown.on_client_gone(self.now_ns())
        self._stdin.stop()
        self._stdout.stop()

    def _review(self) -> None:
        super()._review()
        if self._is_signalled:
            for pump in self._both():
                pump.forget_delayed()
        decider: Any = self.intercepts
        if decider is None:
            return
        action, decider.when_idle = decider.when_idle, None
        if action is not None:
            action()


def take_over(tap: StdioTap, intercepts: Decider) -> None:
    """Put intercepts into a tap that runs without any: from the next message on, in both directions."""
    if isinstance(tap, InterceptingTap):
        tap.intercepts = intercepts
        return  # it could not be given back yet, or stays
    tap.__class__ = InterceptingTap
    assert isinstance(tap, InterceptingTap)
    tap.exchange_pumps(InterceptingPump)
    tap.intercept(intercepts)
    tap.begin_within()


def give_back(tap: StdioTap) -> None:
    """Let a tap run without intercepts again. What waits is sent at once."""
    assert isinstance(tap, InterceptingTap)
    if tap.let_go():
        if tap.stays:
            tap.intercepts = None
            tap.begin_within()
            return
        tap.exchange_pumps(Pump)
        tap.intercepts = None
        tap.__class__ = StdioTap  # type: ignore[assignment]


def exchanged(pump: Pump, kind: type[P]) -> P:
    """Return a pump of another kind that goes on where this one is, on the same descriptors."""
    new = kind.__new__(kind)
    for name in Pump.__slots__:
        setattr(new, name, getattr(pump, name))
    new.resume()
    return new

"""The messages of one direction that an intercept keeps waiting: delayed ones until their time, held ones until they are let go.

Taps of stdio and of HTTP use it; it reads no clock and sends nothing. A message holds back no others, but those of its own exchange:
progress or a cancellation never overtakes its request.
"""

from __future__ import annotations

from itertools import count

from ..records import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Any, Protocol

    from ..records import Record, Side

    class MessageDecision(Protocol):
        """The fate of a message; see `intercept.decisions.Decision`."""

        records: Any
        kind: str
        payload: bytes | None
        reply: bytes | None
        status: int
        fields: tuple[str, ...]
        noise: bytes | None
        is_cut: bool
        doubled_by: int
        let_go: Callable[[], None] | None
        delay_ns: int
        hold_ns: int
        held_by: int
        then: str

        @property
        def key(self) -> Hashable: ...

    class Decider(Protocol):
        """The intercepts in force; see `intercept.decisions.Intercepts`."""

        sink: Callable[[Sequence[Record]], object]

        def decide(
            self, sender: Side, payload: bytes, at_ns: int, scope: Hashable = None, *, is_answered_apart: bool = False
        ) -> MessageDecision: ...

        def may_act(self, sender: Side, method: str | None, target: str | None, scope: Hashable = None) -> bool: ...

        def observe(self, payload: bytes, at_ns: int, scope: Hashable) -> None: ...

        def forget(self, scope: Hashable) -> None: ...

        def report(self, text: str, at_ns: int, handle: int) -> None: ...


MAX_MESSAGE_BYTES = 1 << 24
"""A longer message passes as it comes, and a note says so: messages are held whole until it is decided what becomes of them."""

MAX_DELAYED_BYTES = 1 << 24
MAX_DELAYED = 1000
"""So much is delayed in one direction; then nothing more is read there."""

_LAST_NS = 1 << 62

_numbers = count(1)


class Delayed:
    """Bytes to be sent at `due_ns`. `injected`: mcpspy made them, and they are recorded when they are sent."""

    __slots__ = ("data", "due_ns", "injected", "key")

    def __init__(self, due_ns: int, key: Hashable, data: bytes, *, injected: bool) -> None:
        self.due_ns = due_ns
        self.key = key
        self.data = data
        self.injected = injected


class HeldMessage:
    """A message of which nothing is recorded or sent before a controller lets it go, or its time `due_ns` has come.

    One behind a held message of its exchange waits for that: its `number` is 0. `whole` is the message as it came. `carry_out`
    does what was decided, where its owner has set it: it takes the frame, and lists to which it adds records and bytes.
    """

    __slots__ = ("carry_out", "decision", "due_ns", "frame", "number", "whole")

    def __init__(self, number: int, due_ns: int, decision: MessageDecision, frame: Frame, whole: bytes) -> None:
        self.number = number
        self.due_ns = due_ns
        self.decision = decision
        self.frame = frame
        self.whole = whole
        self.carry_out: Callable[[Frame, list[Record], list[bytes]], None] = _nothing


class WaitingMessages:
    """The messages that wait in one direction, in the order in which they are due, or came."""

    __slots__ = ("_delayed_bytes", "delayed", "held")

    def __init__(self) -> None:
        self.delayed: list[Delayed] = []
        self.held: list[HeldMessage] = []
        self._delayed_bytes = 0

    def __bool__(self) -> bool:
        return bool(self.delayed or self.held)

    @property
    def is_full(self) -> bool:
        """True if no more should be read."""
        waiting = len(self.delayed) + len(self.held)
        return self._delayed_bytes + sum(len(item.whole) for item in self.held) > MAX_DELAYED_BYTES or waiting >= MAX_DELAYED

    @property
    def due_ns(self) -> int:
        """The time at which something is to be sent; 0 if nothing waits."""
        due = [self.delayed[0].due_ns] if self.delayed else []
        return max(min([*due, *(item.due_ns for item in self.held)]), 1) if self else 0

    def due_after(self, due_ns: int, key: Hashable) -> int:
        """Return when a message that is due may be sent: not before those of its exchange."""
        if not self.delayed or key is None:
            return due_ns
        return max([due_ns, *(item.due_ns for item in self.delayed if item.key == key)])

    def delay(self, item: Delayed) -> None:
        """Keep bytes until they are due."""
        self.delayed.append(item)
        self.delayed.sort(key=lambda other: other.due_ns)
        self._delayed_bytes += len(item.data)

    def take_due(self, now_ns: int = _LAST_NS) -> list[Delayed]:
        """Take what is due by now; all without a time."""
        due = [item for item in self.delayed if item.due_ns <= now_ns]
        self.delayed = [item for item in self.delayed if item.due_ns > now_ns]
        self._delayed_bytes -= sum(len(item.data) for item in due)
        return due

    def hold(self, decision: MessageDecision, frame: Frame, whole: bytes) -> HeldMessage | None:
        """Hold a message that is to be held, or that is behind one of its exchange; return None if it is neither."""
        is_behind = decision.key is not None and any(item.decision.key == decision.key for item in self.held)
        if not (decision.hold_ns or is_behind):
            return None
        number = next(_numbers) if decision.hold_ns else 0
        held = HeldMessage(number, frame.at_ns + decision.hold_ns if number else _LAST_NS, decision, frame, whole)
        self.held.append(held)
        return held

    def release(self, number: int, payload: bytes | None, change: str = "") -> None:
        """Let a held message go with this payload, or drop it. `change` says in a word what a controller did to it."""
        held = next(item for item in self.held if item.number == number)
        if change:
            for act in held.decision.records:
                act.action = f"{act.action}, {change}" if act.action == "hold" else act.action
                act.sent = "nothing" if payload is None else "changed"
            held.decision.payload = payload
        self._let_out(held)

    def _let_out(self, held: HeldMessage) -> None:
        """Let a message go, and those of its exchange that wait behind it."""
        behind, key = self.held[self.held.index(held) + 1 :], held.decision.key
        held.due_ns = 0
        if key is None:
            return
        for item in behind:
            if item.decision.key == key:
                if item.number:
                    break
                item.due_ns = 0

    def release_all(self) -> None:
        """Let all go that is held: nothing waits for what nobody will let go."""
        for item in self.held:
            item.due_ns = 0

    def make_due(self) -> None:
        """Let all go that is held or delayed: what made it wait is in force no more."""
        self.release_all()
        for item in self.delayed:
            item.due_ns = 0

    def take_released(self, now_ns: int) -> list[HeldMessage]:
        """Take the held messages that may go now, their frames with this time."""
        for item in self.held:
            if item.number and 0 < item.due_ns <= now_ns:
                self._let_out(item)
        due = [item for item in self.held if not item.due_ns]
        self.held = [item for item in self.held if item.due_ns]
        for item in due:
            frame = item.frame
            item.decision.let_go = None
            for act in item.decision.records:
                if act.action.startswith("hold"):
                    act.action = f"hold {(now_ns - frame.at_ns) / 1e9:.1f} s{act.action[4:]}"
            item.frame = Frame(frame.stream, now_ns, frame.first_ns, frame.data, **frame.rare)
        return due

    def drop_held(self, now_ns: int) -> list[HeldMessage]:
        """Take all that is held, to be recorded and not sent."""
        self.release_all()
        dropped = self.take_released(now_ns)
        for item in dropped:
            decision = item.decision
            decision.payload = decision.reply = decision.noise = None
            decision.delay_ns = decision.status = 0
            decision.then = ""
            for act in decision.records:
                act.sent = "nothing"
        return dropped


def _nothing(*_: object) -> None:
    """Do nothing: the owner of a held message knows what to do with it."""

"""A recorded client that is played: what it sends to a live server now, and what it answers to what the server asks.

A machine: `due`, `feed`, `end` and `lose` return what is to be sent; `next_ns` says when `due` is to be asked again. Refuses to read
clocks and to wait: who drives it does. Times are nanoseconds on the driver's clock.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol

from ...transcript.correlate import spellings
from ...transcript.mcp.fields import PARTIAL
from ...transcript.mcp.methods import CANCELLED, INITIALIZE, PROGRESS
from ...transcript.model import Kind, Message
from .outgoing import CANCELLED_ID, ID, TOKEN, live_message, outgoing, pseudonym, value_edit
from .plan import Cancel, ExpectedAnswer, ExpectedNotification, ExpectedRequest, Send, UnsentMessage, message_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...wire.edits import ValueEdit
    from ..mock.miss import Miss
    from .answering import AnswerMessage, RecordedAnswers
    from .plan import MessageKey, Plan, PlanStep

TIMEOUT_NS: Final = 60_000_000_000
"""How long a request waits for its answer unless another time is given: as in the official TypeScript SDK."""

PATIENCE_NS: Final = 1_000_000_000
"""So much longer than the recorded client waited, the driver does for what the server says on its own, and may never say again."""


MAX_PATIENCE_NS: Final = 10_000_000_000
"""And never longer than that: what came after an hour in which nobody said anything was not what the client waited for."""


class LiveValues(Protocol):
    """Values of earlier live messages, put into later ones where the recording has them from there."""

    def feed(self, row: int, live: Message) -> None:
        """A message of the live server's that belongs to this recorded row; 0 where it belongs to none."""

    def fill(self, recorded: Message) -> Sequence[ValueEdit]:
        """What is to be exchanged in a recorded message of the client's now."""


class RecordedValues:
    """Every value goes out as it was recorded."""

    def feed(self, row: int, live: Message) -> None:
        pass

    def fill(self, recorded: Message) -> Sequence[ValueEdit]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMessage:
    """What is to be sent now: `data`, one JSON-RPC message, which `message` is read from it; of the recorded `row`.

    Without data, the live request with the id `leaves` is given up, by closing the stream that would bring its answer.
    """

    row: int
    data: bytes = b""
    message: Message | None = None
    leaves: str = ""


@dataclass(slots=True, eq=False)
class Report:
    """What became of a plan, by recorded rows."""

    sent: dict[int, str] = field(default_factory=dict)
    """The live ids of the requests that were sent, by row."""
    sends: int = 0
    """How many messages were sent, answers to the server's requests included."""
    unsent: list[UnsentMessage] = field(default_factory=list)
    """What was not sent, and why."""
    redacted: list[UnsentMessage] = field(default_factory=list)
    """Those of them, or answers, that hold a value which was redacted."""
    late: list[int] = field(default_factory=list)
    """The rows of requests that were not answered in time."""
    questions: dict[str, int] = field(default_factory=dict)
    """The rows of the server's recorded requests, by the ids of the live ones."""
    misses: list[Miss] = field(default_factory=list)
    """What the server asked and was never asked in the recording."""
    ended: dict[int, str] = field(default_factory=dict)
    """The rows of requests to which no answer will come, and why."""
    lost: str = ""
    """Why the server was gone, or nothing more was sent, before all was done; empty if all was."""
    stopped: frozenset[int] | None = None
    """The rows of requests that waited for their answers when somebody stopped it; None where nobody did."""
    heard: int = 0
    """How many messages the server sent."""


class PlanPlayer:
    """Plays `plan`. `answering` answers the server's requests; `edits` are values to be exchanged in requests, by row.

    `speed` is how many times faster than recorded it goes, 0 being as fast as answers come. `taken` are the ids that other drives
    into the same capture used; those of this one come to it. `stops_when_late`: a request that is not answered in time is the end.
    """

    __slots__ = (
        "_answered", "_answering", "_asked", "_at", "_awaited", "_carrier", "_count", "_edits", "_given_up", "_later",
        "_next_id", "_openings", "_out", "_sent_ns", "_since_ns", "_speed", "_steps", "_stops_when_late", "_taken", "_timeout_ns",
        "_tokens", "_told", "next_ns", "report",
    )  # fmt: skip

    def __init__(
        self,
        plan: Plan,
        answering: RecordedAnswers,
        *,
        carrier: LiveValues | None = None,
        edits: Mapping[int, Sequence[ValueEdit]] | None = None,
        speed: float = 0.0,
        timeout_ns: int = TIMEOUT_NS,
        taken: set[str] | None = None,
        stops_when_late: bool = False,
    ) -> None:
        self._steps = plan.steps
        self._answering = answering
        self._carrier = carrier or RecordedValues()
        self._edits = edits or {}
        self._speed = speed
        self._timeout_ns = timeout_ns
        self._taken = set() if taken is None else taken
        self._stops_when_late = stops_when_late
        self._at = 0
        self._since_ns: int | None = None
        """When the step before the next one was done."""
        self._out: list[OutgoingMessage] = []
        self._later: list[tuple[int, int, AnswerMessage]] = []
        """Answers that the recorded client took its time for: when they are due, and in which order they were asked for."""
        self._count = 0
        self._next_id = 1
        self._openings = {one.row for one in plan.requests if one.method == INITIALIZE and one.response is not None}
        """The rows of what no client goes on without."""
        self._asked: dict[str, int] = {}
        """The rows of live requests that wait, by their ids."""
        self._tokens: dict[str, int] = {}
        """The rows of live requests by their progress tokens."""
        self._sent_ns: dict[int, int] = {}
        self._answered: set[int] = set()
        """The rows of which no answer is awaited any more."""
        self._told: Counter[tuple[MessageKey, int]] = Counter()
        self._awaited: Counter[tuple[MessageKey, int]] = Counter()
        self._given_up: set[tuple[MessageKey, int]] = set()
        self.next_ns: int | None = None
        self.report = Report(unsent=list(plan.left_out))

    @property
    def is_over(self) -> bool:
        """Whether all is sent and answered, or given up."""
        return self._at >= len(self._steps) and not self._later

    def due(self, now_ns: int) -> list[OutgoingMessage]:
        """What is to be sent now."""
        if self._since_ns is None:
            self._since_ns = now_ns
        while self._later and self._later[0][0] <= now_ns:
            self._answer(heappop(self._later)[2])
        again_ns: int | None = None
        while self._at < len(self._steps) and again_ns is None:
            again_ns = self._turn(self._steps[self._at], now_ns, self._since_ns)
            if again_ns is None:
                self._at += 1  # behind the end, where the server was lost
                self._since_ns = now_ns
        times = [one for one in (again_ns, self._later[0][0] if self._later else None) if one is not None]
        self.next_ns = min(times, default=None)
        out, self._out = self._out, []
        self.report.sends += sum(1 for one in out if one.data)
        return out

    def feed(self, message: Message, now_ns: int) -> list[OutgoingMessage]:
        """The server says something."""
        self.report.heard += 1
        match message.kind:
            case Kind.RESULT | Kind.ERROR:
                self._was_answered(message)
            case Kind.REQUEST:
                self._was_asked(message, now_ns)
            case Kind.NOTIFICATION:
                self._was_told(message)
        return self.due(now_ns)

    def end(self, id: str, why: str, now_ns: int) -> list[OutgoingMessage]:
        """No answer will come to the live request with this id."""
        row = self._asked.pop(id, None)
        if row is not None and row not in self._answered:
            self._answered.add(row)
            self.report.ended[row] = why
            if row in self._openings:
                self.lose(f"initialize was not answered: {why}")
        return self.due(now_ns)

    def take_back(self, id: str, why: str) -> None:
        """The live request with this id was not sent after all."""
        row = self._asked.pop(id, None)
        if row is not None:
            del self.report.sent[row]
            self.report.unsent.append(UnsentMessage(row=row, message=self._message_of(row), why=why))

    def stop(self) -> None:
        """Somebody stops it: what waits for its answer might have got it."""
        self.report.stopped = frozenset(self._asked.values())
        self.lose("it was interrupted", unsent="it was interrupted")

    def lose(self, why: str, *, unsent: str = "the server was gone") -> None:
        """The server is gone: what was not sent never will be."""
        self.report.lost = why
        rest = (step for step in self._steps[self._at :] if isinstance(step, Send))
        self.report.unsent += [UnsentMessage(row=one.row, message=one.message, why=unsent) for one in rest]
        self._at = len(self._steps)
        self._later.clear()
        self.next_ns = None

    # The next step: each says when it wants to be looked at again, None once it is done

    def _turn(self, step: PlanStep, now_ns: int, since_ns: int) -> int | None:
        match step:
            case Send():
                due_ns = since_ns + (self._timed(step.gap_ns) if step.is_timed else self._scaled(step.gap_ns))
                if now_ns < due_ns:
                    return due_ns
                self._send(step, now_ns)
            case Cancel():
                return self._cancel(step, now_ns, since_ns)
            case ExpectedAnswer():
                return self._await_answer(step, now_ns, since_ns)
            case ExpectedNotification(key=key, row=row) if row and row in self._answered:
                self._awaited[key, row] += 1  # progress that did not come before the answer never will
            case ExpectedNotification(key=key, row=row):
                return self._await((key, row), step.gap_ns, now_ns, since_ns)
            case ExpectedRequest(key=key):
                return self._await((key, -1), step.gap_ns, now_ns, since_ns)
        return None

    def _scaled(self, gap_ns: int) -> int:
        return int(gap_ns / self._speed) if self._speed else 0

    def _timed(self, after_ns: int) -> int:
        """How long after something else it was the clock that had the client act: the same at any speed but a named one."""
        return min(int(after_ns / (self._speed or 1)), self._timeout_ns)

    def _send(self, step: Send, now_ns: int) -> None:
        edits = list(self._carrier.fill(step.message))
        id = token = ""
        if step.exchange is not None:
            id = self._free(step.message.id, self._taken)
            edits.append(value_edit(ID, id))
            if step.message.correlation_key is not None:
                token = self._free(step.message.correlation_key, self._tokens)
                edits.append(value_edit(TOKEN, token))
            edits += self._edits.get(step.row, ())
        data = outgoing(step.message, edits)
        if found := pseudonym(data):
            self._hold_back(step.row, step.message, found)
            return
        if step.exchange is not None:
            self._taken.add(id)
            self._asked[id] = step.row
            if token:
                self._tokens[token] = step.row
            self.report.sent[step.row] = id
        self._sent_ns[step.row] = now_ns
        self._out.append(OutgoingMessage(row=step.row, data=data, message=live_message(data, now_ns)))

    def _cancel(self, step: Cancel, now_ns: int, since_ns: int) -> int | None:
        """A request is given up as long after it was sent as in the recording, at any speed: it was the clock that gave it up."""
        id = self.report.sent.get(step.row)
        if id is None or (step.row in self._answered and not step.is_late):
            return None
        due_ns = since_ns + self._scaled(step.gap_ns) if step.is_late else self._sent_ns[step.row] + self._timed(step.after_ns)
        if now_ns < due_ns:
            return due_ns
        if step.message is None:
            self._out.append(OutgoingMessage(row=step.row, leaves=id))
        else:
            data = outgoing(step.message, [*self._carrier.fill(step.message), value_edit(CANCELLED_ID, id)])
            if found := pseudonym(data):
                self._hold_back(step.row, step.message, found)
                return None
            self._out.append(OutgoingMessage(row=step.row, data=data, message=live_message(data, now_ns)))
        return None

    def _await_answer(self, step: ExpectedAnswer, now_ns: int, since_ns: int) -> int | None:
        if step.row in self._answered or step.row not in self._sent_ns:
            return None
        due_ns = self._sent_ns[step.row] + self._timeout_ns
        if not step.is_recorded:
            due_ns = min(due_ns, since_ns + step.gap_ns + PATIENCE_NS)
        if now_ns < due_ns:
            return due_ns
        self._answered.add(step.row)
        self.report.late.append(step.row)
        if self._stops_when_late:
            self.lose("it did not answer in time, and nothing more was sent")
        elif step.row in self._openings:
            self.lose("initialize was not answered in time")
        return None

    def _await(self, what: tuple[MessageKey, int], gap_ns: int, now_ns: int, since_ns: int) -> int | None:
        """What the server says on its own, and a new version of it may not: the first time that it fails to come, it is given up."""
        if self._told[what] <= self._awaited[what] and what not in self._given_up:
            due_ns = since_ns + min(gap_ns + PATIENCE_NS, MAX_PATIENCE_NS)
            if now_ns < due_ns:
                return due_ns
            self._given_up.add(what)
        self._awaited[what] += 1
        return None

    # What the server says

    def _was_answered(self, message: Message) -> None:
        id = message.id or ""
        found = next((one for one in (id, *spellings(id)) if one in self._asked), None)
        if found is None:
            return
        row = self._asked[found]
        self._carrier.feed(row, message)
        if message.result_type != PARTIAL:
            del self._asked[found]
            self._answered.add(row)

    def _was_told(self, message: Message) -> None:
        row = self._tokens.get(message.correlation_key or "", 0) if message.method == PROGRESS else 0
        self._carrier.feed(row, message)
        self._told[message_key(message), row] += 1
        if message.method == CANCELLED:  # it needs no answer any more
            self._later = [one for one in self._later if one[2].id != message.correlation_key]
            heapify(self._later)

    def _was_asked(self, message: Message, now_ns: int) -> None:
        found = self._answering.feed(message)
        if found.recorded is not None:
            self.report.questions[message.id or ""] = found.recorded.row
        if found.miss is not None:
            self.report.misses.append(found.miss)
        self._carrier.feed(0 if found.recorded is None else found.recorded.row, message)
        for one in found.answers:
            self._count += 1
            heappush(self._later, (now_ns + self._scaled(one.after_ns), self._count, one))

    def _answer(self, answer: AnswerMessage) -> None:
        """Send what the client says to a question of the server's; the last of it is the answer."""
        data = answer.data
        if answer.recorded is not None:
            data = outgoing(answer.recorded, [*self._carrier.fill(answer.recorded), *answer.edits])
            if found := pseudonym(data):
                self._hold_back(answer.row, answer.recorded, found)
                data = self._answering.refusal(answer.id, "the recorded answer holds a value that was redacted")
        self._out.append(OutgoingMessage(row=answer.row, data=data, message=live_message(data)))
        if answer.is_last:
            self._told[answer.key, -1] += 1

    # Odds and ends

    def _message_of(self, row: int) -> Message:
        return next(one.message for one in self._steps if isinstance(one, Send) and one.row == row)

    def _hold_back(self, row: int, message: Message, found: str) -> None:
        held = UnsentMessage(row=row, message=message, why=f"it holds a value that was redacted: {found}")
        self.report.unsent.append(held)
        self.report.redacted.append(held)

    def _free(self, recorded: str | None, taken: set[str] | dict[str, int]) -> str:
        """The recorded id or token where it is one and free, since a fault may depend on what it is; else a number."""
        if recorded and recorded not in taken and (recorded[0] == '"' or recorded.removeprefix("-").isdigit()):
            return recorded
        while str(self._next_id) in taken:
            self._next_id += 1
        return str(self._next_id)

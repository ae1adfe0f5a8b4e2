"""Player of a plan: what a recorded client sends to a live server now, and what it answers to the server's requests.

A machine: `due`, `feed`, `end` and `lose` return what to send, and `next_ns` is the time at which to call `due` again.
Whoever plays it waits. Times are nanoseconds on the player's clock.

Sampling, elicitation and roots are answered as they were then. A request that was never recorded is answered with an error
that says so. No answer is made up, except to `ping`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any, Final

from ...records import CLIENT
from ...transcript.correlator import PONG, known_spelling
from ...transcript.mcp.codes import INTERNAL_ERROR
from ...transcript.mcp.fields import PARTIAL, is_progress
from ...transcript.mcp.methods import CANCELLED, INITIALIZE, PING, PROGRESS
from ...transcript.model import Exchange, Kind, Message
from ...wire.edits import ValueEdit
from ..mock.matching import MatchCursor
from ..mock.miss import Miss, error_line
from .correlate.model import Correlations
from .correlate.run import CorrelationRun
from .outgoing import CANCELLED_ID, ID, PROGRESS_TOKEN, TOKEN_OF_PROGRESS, live_message, outgoing, pseudonym, value_edit
from .plan import (
    Cancel,
    ExpectedAnswer,
    ExpectedNotification,
    ExpectedRequest,
    MessageKey,
    Plan,
    PlanStep,
    Send,
    UnsentMessage,
    message_key,
)

TIMEOUT_NS: Final = 60_000_000_000
"""The default time that a request waits for its answer: that of the official TypeScript SDK."""

PATIENCE_NS: Final = 1_000_000_000
"""Time beyond the recorded client's that it waits for what the server sends on its own: it may never send it again."""


MAX_PATIENCE_NS: Final = 10_000_000_000
"""The longest of these waits: a message that came after an hour of silence is not what the client waited for."""

NOT_RECORDED: Final = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedMessage:
    """A message to send now, of the recorded `row`: `data`, and `message`, which is read from it.

    Without data, the live request with the id `abandons` is cancelled by closing the stream of its answer.
    """

    row: int
    data: bytes = b""
    message: Message | None = None
    abandons: str = ""


@dataclass(slots=True, eq=False)
class Report:
    """The outcome of a plan, by recorded rows."""

    sent: dict[int, str] = field(default_factory=dict)
    """The live ids of the requests that were sent, by row."""
    sends: int = 0
    """The number of messages that were sent, answers to the server's requests included."""
    unsent: list[UnsentMessage] = field(default_factory=list)
    """The messages that were not sent, and why."""
    withheld: list[UnsentMessage] = field(default_factory=list)
    """Those of them, and answers, that hold a redacted value."""
    late: list[int] = field(default_factory=list)
    """The rows of requests that were not answered in time."""
    server_requests: dict[str, int] = field(default_factory=dict)
    """The rows of the server's recorded requests, by the live ids."""
    misses: list[Miss] = field(default_factory=list)
    """The requests of the server that were never recorded."""
    ended: dict[int, str] = field(default_factory=dict)
    """The rows of requests that will get no answer, and why."""
    lost: str = ""
    """Reason why the server was gone, or nothing more was sent, before the end of the plan; empty if the end was reached."""
    stopped: frozenset[int] | None = None
    """The rows of requests that waited for their answers when somebody stopped it; None if nobody did."""
    heard: int = 0
    """The number of messages of the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _AnswerMessage:
    """One message to send `after_ns` after a request: `recorded` with these edits, or `data` if nothing was recorded."""

    row: int
    id: str
    key: MessageKey = NOT_RECORDED
    recorded: Message | None = None
    edits: tuple[ValueEdit, ...] = ()
    data: bytes = b""
    after_ns: int = 0
    is_last: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMessages:
    """The messages to send after a request, in order; none if the recorded client never answered. `miss` explains an error."""

    answers: tuple[_AnswerMessage, ...] = ()
    recorded: Exchange | None = None
    miss: Miss | None = None


class RecordedAnswers:
    """The answers to the requests of one live server; `matcher` finds the recorded ones."""

    __slots__ = ("_matcher",)

    def __init__(self, matcher: MatchCursor) -> None:
        self._matcher = matcher

    def feed(self, request: Message) -> AnswerMessages:
        """Take a request of the server; return what to send."""
        match = self._matcher.match(request)
        id = request.id or "null"
        if isinstance(match, Exchange):
            return AnswerMessages(answers=tuple(_recorded_messages(match, request, id)), recorded=match)
        if request.method == PING and match.is_unknown:  # every client answers it (basic/utilities/ping)
            pong = f'{{"jsonrpc":"2.0","id":{id},"result":{{}}}}'.encode()
            return AnswerMessages(answers=(_AnswerMessage(row=0, id=id, data=pong),))
        data = self.refusal(id, match.sentence, match.code, match.data)
        return AnswerMessages(answers=(_AnswerMessage(row=0, id=id, data=data),), miss=match)

    def refusal(self, id: str, why: str, code: int = INTERNAL_ERROR, data: dict[str, Any] | None = None) -> bytes:
        """Return the error that answers a request without a recorded answer."""
        return error_line(id, code, f"mcpspy replay: {why}", data or {}).rstrip(b"\n")


class PlanPlayer:
    """A player of `plan`. `answers` are those to the server's requests; `edits` change requests, by row.

    `speed` is relative to the recorded one; 0 is as fast as answers come. `taken` are the ids that other players of the same capture
    used; this one adds its own. `stops_when_late`: a request that is not answered in time is the end.
    """

    __slots__ = (
        "_answered", "_answers", "_at", "_count", "_edits", "_expected", "_given_up", "_later", "_live_values", "_next_id",
        "_openings", "_out", "_received", "_sent_ns", "_since_ns", "_speed", "_steps", "_stops_when_late", "_taken",
        "_timeout_ns", "_tokens", "_waiting", "next_ns", "report",
    )  # fmt: skip

    def __init__(
        self,
        plan: Plan,
        answers: RecordedAnswers,
        *,
        live_values: CorrelationRun | None = None,
        edits: Mapping[int, Sequence[ValueEdit]] | None = None,
        speed: float = 0.0,
        timeout_ns: int = TIMEOUT_NS,
        taken: set[str] | None = None,
        stops_when_late: bool = False,
    ) -> None:
        self._steps = plan.steps
        self._answers = answers
        self._live_values = live_values or CorrelationRun(Correlations({}, {}, {}))
        self._edits = edits or {}
        self._speed = speed
        self._timeout_ns = timeout_ns
        self._taken = set() if taken is None else taken
        self._stops_when_late = stops_when_late
        self._at = 0
        self._since_ns: int | None = None
        """The time at which the last step was done."""
        self._out: list[PlayedMessage] = []
        self._later: list[tuple[int, int, _AnswerMessage]] = []
        """A heap of answers for later: the time, and a count that keeps their order."""
        self._count = 0
        self._next_id = 1
        self._openings = {
            request.row for request in plan.requests if request.method == INITIALIZE and request.response is not None
        }
        """The rows of requests without whose answer no client continues."""
        self._waiting: dict[str, int] = {}
        """The rows of live requests that wait for their answers, by id."""
        self._tokens: dict[str, int] = {}
        """The rows of live requests, by progress token."""
        self._sent_ns: dict[int, int] = {}
        self._answered: set[int] = set()
        """The rows of requests that wait no longer."""
        self._received: Counter[tuple[MessageKey, int]] = Counter()
        self._expected: Counter[tuple[MessageKey, int]] = Counter()
        self._given_up: set[tuple[MessageKey, int]] = set()
        self.next_ns: int | None = None
        self.report = Report(unsent=list(plan.left_out))

    @property
    def is_over(self) -> bool:
        """True if everything is sent and answered, or given up."""
        return self._at >= len(self._steps) and not self._later

    @property
    def waiting(self) -> list[str]:
        """The ids of requests that were not answered."""
        return [id for id, row in self._waiting.items() if row not in self._openings]

    def due(self, now_ns: int) -> list[PlayedMessage]:
        """Return what to send now."""
        if self._since_ns is None:
            self._since_ns = now_ns
        while self._later and self._later[0][0] <= now_ns:
            self._answer(heappop(self._later)[2])
        again_ns: int | None = None
        while self._at < len(self._steps) and again_ns is None:
            again_ns = self._step(self._steps[self._at], now_ns, self._since_ns)
            if again_ns is None:
                self._at += 1  # past the end, if the server was lost
                self._since_ns = now_ns
        times = [again_ns, self._later[0][0] if self._later else None]
        self.next_ns = min((time_ns for time_ns in times if time_ns is not None), default=None)
        out, self._out = self._out, []
        self.report.sends += sum(1 for message in out if message.data)
        return out

    def feed(self, message: Message, now_ns: int) -> list[PlayedMessage]:
        """Take a message of the server; return what to send now."""
        self.report.heard += 1
        match message.kind:
            case Kind.RESULT | Kind.ERROR:
                self._take_answer(message)
            case Kind.REQUEST:
                self._take_request(message, now_ns)
            case Kind.NOTIFICATION:
                self._take_notification(message)
                if message.method == PONG:
                    self._take_pong()
        return self.due(now_ns)

    def end(self, id: str, why: str, now_ns: int) -> list[PlayedMessage]:
        """Give up the live request with this id, which will get no answer; return what to send now."""
        row = self._waiting.pop(id, None)
        if row is not None and row not in self._answered:
            self._answered.add(row)
            self.report.ended[row] = why
            if row in self._openings:
                self.lose(f"initialize was not answered: {why}")
        return self.due(now_ns)

    def take_back(self, id: str, why: str) -> None:
        """Note that the live request with this id was not sent after all."""
        row = self._waiting.pop(id, None)
        if row is not None:
            del self.report.sent[row]
            self.report.unsent.append(UnsentMessage(row=row, message=self._message_of(row), why=why))

    def stop(self) -> None:
        """Stop in the middle: a request that waits for its answer might have got it."""
        self.report.stopped = frozenset(self._waiting.values())
        self.lose("it was interrupted", unsent="it was interrupted")

    def lose(self, why: str, *, unsent: str = "the server was gone") -> None:
        """End because the server is gone: what was not sent never will be."""
        self.report.lost = why
        rest = (step for step in self._steps[self._at :] if isinstance(step, Send))
        self.report.unsent += [UnsentMessage(row=step.row, message=step.message, why=unsent) for step in rest]
        self._at = len(self._steps)
        self._later.clear()
        self.next_ns = None

    # Steps: each returns the time at which to look at it again, None if it is done

    def _step(self, step: PlanStep, now_ns: int, since_ns: int) -> int | None:
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
                self._expected[key, row] += 1  # progress that did not come before the answer never will
            case ExpectedNotification(key=key, row=row):
                return self._await((key, row), step.gap_ns, now_ns, since_ns)
            case ExpectedRequest(key=key):
                return self._await((key, -1), step.gap_ns, now_ns, since_ns)
        return None

    def _scaled(self, gap_ns: int) -> int:
        return int(gap_ns / self._speed) if self._speed else 0

    def _timed(self, after_ns: int) -> int:
        """Scale a delay that the client's clock decided: at the speed 0 it stays as recorded."""
        return min(int(after_ns / (self._speed or 1)), self._timeout_ns)

    def _send(self, step: Send, now_ns: int) -> None:
        edits = list(self._live_values.fill(step.message))
        id = token = ""
        if step.exchange is not None:
            id = self._free(step.message.id, self._taken)
            edits.append(value_edit(ID, id))
            if step.message.correlation_key is not None:
                token = self._free(step.message.correlation_key, self._tokens)
                edits.append(value_edit(PROGRESS_TOKEN, token))
            edits += self._edits.get(step.row, ())
        data = outgoing(step.message, edits)
        if redacted := pseudonym(data):
            self._withhold(step.row, step.message, redacted)
            return
        if step.exchange is not None:
            self._taken.add(id)
            self._waiting[id] = step.row
            if token:
                self._tokens[token] = step.row
            self.report.sent[step.row] = id
        self._sent_ns[step.row] = now_ns
        self._out.append(PlayedMessage(row=step.row, data=data, message=live_message(data, now_ns)))

    def _cancel(self, step: Cancel, now_ns: int, since_ns: int) -> int | None:
        """Cancel a request as long after it was sent as in the capture: the client's clock decided that."""
        id = self.report.sent.get(step.row)
        if id is None or (step.row in self._answered and not step.is_late):
            return None
        due_ns = since_ns + self._scaled(step.gap_ns) if step.is_late else self._sent_ns[step.row] + self._timed(step.after_ns)
        if now_ns < due_ns:
            return due_ns
        if step.message is None:
            self._out.append(PlayedMessage(row=step.row, abandons=id))
            return None
        data = outgoing(step.message, [*self._live_values.fill(step.message), value_edit(CANCELLED_ID, id)])
        if redacted := pseudonym(data):
            self._withhold(step.row, step.message, redacted)
        else:
            self._out.append(PlayedMessage(row=step.row, data=data, message=live_message(data, now_ns)))
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

    def _await(self, key: tuple[MessageKey, int], gap_ns: int, now_ns: int, since_ns: int) -> int | None:
        """Wait for what the server sends on its own. A key that fails to come once is never waited for again."""
        if self._received[key] <= self._expected[key] and key not in self._given_up:
            due_ns = since_ns + min(gap_ns + PATIENCE_NS, MAX_PATIENCE_NS)
            if now_ns < due_ns:
                return due_ns
            self._given_up.add(key)
        self._expected[key] += 1
        return None

    # Messages of the server

    def _take_answer(self, message: Message) -> None:
        id = known_spelling(message.id or "", self._waiting)
        if id is None and message.id is None and message.kind is Kind.RESULT and len(self._waiting) == 1:
            (id,) = self._waiting  # as the correlator pairs results without an id
        if id is None:
            if message.id is None and message.kind is Kind.RESULT:
                self._received[message_key(message), 0] += 1
            return
        row = self._waiting[id]
        self._live_values.feed(row, message)
        if message.result_type != PARTIAL and not (message.id is None and is_progress(message)):
            del self._waiting[id]
            self._answered.add(row)

    def _take_pong(self) -> None:
        """Take a `pong` without an id as the answer to the oldest `ping` that waits, as the correlator does."""
        id = next((id for id, row in self._waiting.items() if self._message_of(row).method == PING), None)
        if id is not None:
            self._answered.add(self._waiting.pop(id))

    def _take_notification(self, message: Message) -> None:
        row = self._tokens.get(message.correlation_key or "", 0) if message.method == PROGRESS else 0
        self._live_values.feed(row, message)
        self._received[message_key(message), row] += 1
        if message.method == CANCELLED:  # the server needs no answer any more
            self._later = [later for later in self._later if later[2].id != message.correlation_key]
            heapify(self._later)

    def _take_request(self, message: Message, now_ns: int) -> None:
        answers = self._answers.feed(message)
        row = 0 if answers.recorded is None else answers.recorded.row
        if row:
            self.report.server_requests[message.id or ""] = row
        if answers.miss is not None:
            self.report.misses.append(answers.miss)
        self._live_values.feed(row, message)
        for answer in answers.answers:
            self._count += 1
            heappush(self._later, (now_ns + self._scaled(answer.after_ns), self._count, answer))

    def _answer(self, answer: _AnswerMessage) -> None:
        """Send a message about a request of the server; the last one is the answer."""
        data = answer.data
        if answer.recorded is not None:
            data = outgoing(answer.recorded, [*self._live_values.fill(answer.recorded), *answer.edits])
            if redacted := pseudonym(data):
                self._withhold(answer.row, answer.recorded, redacted)
                data = self._answers.refusal(answer.id, "the recorded answer holds a value that was redacted")
        self._out.append(PlayedMessage(row=answer.row, data=data, message=live_message(data)))
        if answer.is_last:
            self._received[answer.key, -1] += 1

    # Helpers

    def _message_of(self, row: int) -> Message:
        return next(step.message for step in self._steps if isinstance(step, Send) and step.row == row)

    def _withhold(self, row: int, message: Message, redacted: str) -> None:
        unsent = UnsentMessage(row=row, message=message, why=f"it holds a value that was redacted: {redacted}")
        self.report.unsent.append(unsent)
        self.report.withheld.append(unsent)

    def _free(self, recorded: str | None, taken: set[str] | dict[str, int]) -> str:
        """Return the recorded id or token if it is valid and free, since a fault may depend on it; else a number."""
        if recorded and recorded not in taken and (recorded[0] == '"' or recorded.removeprefix("-").isdigit()):
            return recorded
        while str(self._next_id) in taken:
            self._next_id += 1
        return str(self._next_id)


def _recorded_messages(exchange: Exchange, request: Message, id: str) -> list[_AnswerMessage]:
    """List all messages of the recorded client about a request, in order; none if it never answered."""
    response = exchange.response
    if response is None:
        return []
    messages: list[_AnswerMessage] = []
    for message in sorted((*exchange.notifications, response), key=lambda message: (message.at_ns, message.number)):
        if message.sender != CLIENT:
            continue
        if message is response:
            edits = (value_edit(ID, id),)
        elif message.method == PROGRESS and request.correlation_key is not None:
            edits = (value_edit(TOKEN_OF_PROGRESS, request.correlation_key),)
        else:
            continue  # a server that gives no progress token gets no progress
        answer = _AnswerMessage(
            row=exchange.row,
            id=id,
            key=message_key(exchange.request),
            recorded=message,
            edits=edits,
            after_ns=max(0, message.at_ns - exchange.at_ns),
            is_last=message is response,
        )
        messages.append(answer)
    return messages

"""Facts for the modules of rules, gathered in one pass over a transcript's rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from ...records import CLIENT, SERVER, Close, Damage, End, Exit, Gap, Note, Partial, Side, Spawn, Stall
from ..calls.call import Call
from ..clients import KnownClients
from ..correlator import BY_ORDER, spellings
from ..definitions import LISTINGS
from ..http.transaction import Transaction
from ..mcp.methods import CANCELLED, DISCOVER, INITIALIZE, INITIALIZED, PROGRESS
from ..mcp.revisions import Era
from ..message import ERROR, MALFORMED, NOTIFICATION, SEALED
from ..model import CaptureInfo, ChannelEvent, Exchange, Kind, Log, Message, Outcome, Row, Transcript, UnpairedMessage
from .answer_index import AnswerIndex
from .misdeliveries import Misdeliveries, misdeliveries
from .rule import Unchecked

if TYPE_CHECKING:
    from ..definitions import Baseline
    from .rule import Rule

_MARKERS: Final = b" \t\r\n~^"
"""Lines of these characters alone only point at a place in the line above."""

LAST_LINES: Final = 500
"""So many lines of stderr are kept: if the server dies, the one that says why may come before a long stack."""

SAMPLED: Final = 10_000
"""So many messages are kept for rules that have to parse all of a message, which takes as long as all the rest."""

_HARMLESS_SIGNALS: Final = ("SIGUSR1", "SIGUSR2")
"""Notes that begin with one of these signals end nothing: the sender stays."""

_AMBIGUOUS: Final = frozenset({"ambiguous-stream", "ambiguous-id"})
"""Flaws of responses that are paired with no request because they fit several."""

_REFERRING: Final = frozenset({PROGRESS, CANCELLED})

CALL: Final = "tools/call"
LOG: Final = "notifications/message"
SUBSCRIPTION_FILTERS: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": "resourceSubscriptions",
}
"""By a notification of a change: the member of params.notifications by which a subscription requests it."""
_OPT_IN: Final = SUBSCRIPTION_FILTERS.keys() | {LOG}
"""From 2026-07-28 on a server sends these only to a client that asked for them."""

HANDSHAKE_METHODS: Final = {INITIALIZE, "ping", DISCOVER}
"""Requests that may be made before the handshake is over."""

ScopeKey: TypeAlias = str | int
"""The session of a message over HTTP, or the stream of HTTP+SSE; 0 on stdio, and for a transaction outside them."""

AnswerKey: TypeAlias = tuple[Side, ScopeKey]
"""The side that asks, and for a server the scope: what one client answers proves nothing about another. 0 for clients."""

MessageKey: TypeAlias = tuple[str, str, str | None, ScopeKey]
"""Method, sender, revision and scope."""


class ErrorKind(NamedTuple):
    """The method and the revision of a request that was answered by an error, and the code if it could be read."""

    method: str
    revision: str | None
    code: int | None


class Occurrences(msgspec.Struct):
    """Messages with one key: the row of the first, and their number."""

    first: Exchange | UnpairedMessage
    count: int = 1


class CaptureFacts(msgspec.Struct, eq=False):
    """Facts of one capture. A time is None if that did not happen.

    `left_ns` is when the client closed a stream or asked for the end, `gone_ns` when the server closed its stdout or ended. Between
    `first_hole_ns` and `last_hole_ns` records are missing.
    """

    capture: CaptureInfo
    rows: Sequence[Row]
    exchanges: list[Exchange] = []
    answers: dict[AnswerKey, AnswerIndex] = {}
    """Index of the answers by time; empty until `meanwhile` needs it."""
    logs: list[Log] | None = None
    """All lines on stderr; None until `meanwhile` needs them."""
    written: list[tuple[int, bytes]] | None = None
    """The last text of the server at each time, on stderr or in the place of a message; None until `meanwhile` needs it."""
    asked_ns: Mapping[Side, Sequence[int]] = {}
    """The times of each side's requests; empty until `meanwhile` needs them."""
    unanswered: list[Exchange] = []
    waiting: list[Exchange] = []
    """Exchanges that may still be answered, in a capture that is still being recorded."""
    http: list[Exchange] = []
    """Exchanges whose requests came by HTTP."""
    first_exchanges: dict[int, Exchange] = {}
    """By the number of a transaction the first exchange that it carried a request of the client for."""
    requests: dict[MessageKey, Occurrences] = {}
    notifications: dict[MessageKey, Occurrences] = {}
    """Notifications that belong to no exchange."""
    initializes: list[Exchange] = []
    listings: list[Exchange] = []
    """Answered requests whose results define what the server offers: lists and `initialize`."""
    calls: list[Exchange] = []
    """Every `tools/call`."""
    unfinished: list[Exchange] = []
    """Exchanges whose result is not complete: input is required, or a task was made."""
    errors: list[Exchange] = []
    """Exchanges that ended in a JSON-RPC error."""
    error_kinds: set[ErrorKind] = set()
    """The kinds of these errors, which say whether a rule has to look at each of them."""
    tool_errors: list[Exchange] = []
    """Exchanges whose result says that a tool failed."""
    cancelled: list[Exchange] = []
    """Exchanges that the requesting side gave up, by a notification or by closing the stream."""
    with_notifications: list[Exchange] = []
    """Exchanges with notifications that refer to them: progress, cancellations."""
    unmatched_notifications: list[UnpairedMessage] = []
    """Progress and cancellations that refer to no known request."""
    opt_in_notifications: list[UnpairedMessage] = []
    """Log messages and changes that a server of the modern era sent; it may do so only if asked."""
    sample: list[tuple[int, Message]] = []
    """The first messages, each after the number of its row."""
    batches: list[Exchange | UnpairedMessage] = []
    """Rows that began in a batch."""
    repeated_answers: list[Exchange] = []
    partial_answers: list[Exchange] = []
    """Exchanges with results that say they are parts."""
    respelled_ids: list[Exchange] = []
    """Exchanges whose response spells the request's id in another way."""
    flawed: list[tuple[int, Message]] = []
    """Messages with flaws, each after the number of its row."""
    malformed: list[UnpairedMessage] = []
    by_order: list[tuple[Exchange, Message]] = []
    """Results without an id, with the exchanges that they were paired with."""
    unmatched_responses: list[UnpairedMessage] = []
    starts_ns: list[int] = []
    """Times at which the server's process was started."""
    stalls: list[tuple[int, Stall]] = []
    partials: list[tuple[int, Partial]] = []
    gaps: list[tuple[int, Gap]] = []
    damages: list[tuple[int, Damage]] = []
    last_lines: deque[bytes] = msgspec.field(default_factory=lambda: deque(maxlen=LAST_LINES))
    """The last lines on stderr."""
    exit: tuple[int, Exit] | None = None
    end: tuple[int, End] | None = None
    left_ns: int | None = None
    stdin_closed_ns: int | None = None
    """Time at which the client closed the server's stdin."""
    stopped_reading_ns: int | None = None
    """Time at which the client closed its end of the server's stdout."""
    signalled_ns: int | None = None
    """Time of the first signal that told the server to end."""
    waited_ns: int | None = None
    """Time that the server waited for a processor between the end of its stdin and that signal; None if nobody counted."""
    start_waited_ns: int = 0
    """Time that it waited for a processor before its first output, if that was late."""
    was_killed: bool = False
    """True if mcpspy had to send SIGKILL."""
    left_running: Note | None = None
    """True if processes that the server left still ran half a second later."""
    gone_ns: int | None = None
    first_hole_ns: int | None = None
    last_hole_ns: int | None = None
    explained: set[int] | None = None
    """Rows of requests whose silence another finding explains; None until `deliveries` needs it."""
    limits: dict[Unchecked, None] = {}
    """Limits that rules reached, which did not look at everything."""
    copied: dict[int, Exchange] | None = None
    """Requests by the rows of those that a gateway made of them again; None until `copies` needs it."""
    shared: dict[Any, Any] = {}
    """Values that several modules of rules ask for, by what made them."""
    _misdelivered: Misdeliveries | None = None

    def add(self, exchanges: list[Exchange]) -> None:
        """List exchanges, which `exchange` takes in one by one."""
        self.exchanges.extend(exchanges)
        if self.capture.transactions:
            self.http.extend([exchange for exchange in exchanges if exchange.transaction is not None])
        self.calls.extend([exchange for exchange in exchanges if exchange.request.method == CALL])
        self.with_notifications.extend([exchange for exchange in exchanges if exchange.notifications])

    def exchange(self, row: Exchange) -> None:
        """Take in an exchange."""
        request, response = row.request, row.response
        if len(self.sample) < SAMPLED:
            self.sample.append((row.row, request))
            if response is not None:
                self.sample.append((row.row, response))
        if response is None:
            is_second = self.first_hole_ns is not None and "id-in-use" in request.flaws  # the first one's answer may be missing
            if row.over and not is_second and row.outcome in (Outcome.UNANSWERED, Outcome.PROBE):
                self.unanswered.append(row)
            elif self.capture.now_ns is not None and row.outcome is Outcome.PENDING:
                self.waiting.append(row)
        else:
            if response.id is not request.id and response.id != request.id and _is_spelled_otherwise(request, response):
                self.respelled_ids.append(row)
            if response.flaws:
                self.flawed.append((row.row, response))
                if BY_ORDER in response.flaws:
                    self.by_order.append((row, response))
            if response.result_type is not None:
                self.unfinished.append(row)
        transaction = row.transaction
        if transaction is not None and request.sender == CLIENT:
            self.first_exchanges.setdefault(transaction.number, row)
        method = request.method or ""
        key = (method, request.sender, request.revision, 0 if transaction is None else scope_key(transaction))
        seen = self.requests.get(key)
        if seen is None:
            self.requests[key] = Occurrences(row)
        else:
            seen.count += 1
        if method in LISTINGS:
            self._keep(row, method)
        if response is not None and response.kind is ERROR:
            from ..mcp.error_code import plain_error_code  # most captures have no error

            self.errors.append(row)
            code = plain_error_code(response.raw) if len(self.error_kinds) < SAMPLED else None
            self.error_kinds.add(ErrorKind(method, request.revision, code))
        elif response is not None and response.is_error:
            self.tool_errors.append(row)
        if row.cancelled is not None or row.left_ns is not None:
            self.cancelled.append(row)
        if request.flaws:
            self.flawed.append((row.row, request))
        if request.batch:
            self.batches.append(row)
        if row.notifications or row.partials or row.more_responses:
            self._more(row)

    def _more(self, row: Exchange) -> None:
        """Take in the messages of an exchange beside its request and its response."""
        if row.partials:
            self.partial_answers.append(row)
            self.by_order += [(row, message) for message in row.partials if BY_ORDER in message.flaws]
        if row.more_responses:
            self.repeated_answers.append(row)
        for messages in (row.notifications, row.partials, row.more_responses):
            for message in messages:
                if message.flaws:
                    self.flawed.append((row.row, message))

    def _keep(self, row: Exchange, method: str) -> None:
        if method == "initialize":
            self.initializes.append(row)
        if row.response is not None and row.response.kind is Kind.RESULT:
            self.listings.append(row)

    def unpaired(self, row: UnpairedMessage) -> None:
        """Take in a message that belongs to no exchange."""
        message = row.message
        reason = message.reason
        if (reason and (reason == "not recorded" or reason.startswith(SEALED))) or "damaged" in message.flaws:
            self._hole(row.at_ns)
        if message.kind is MALFORMED:
            self.malformed.append(row)
            return
        if len(self.sample) < SAMPLED:
            self.sample.append((row.row, message))
        if message.kind is NOTIFICATION:
            self._notification(row, message)
        elif not message.flaws or _AMBIGUOUS.isdisjoint(message.flaws):
            self.unmatched_responses.append(row)
        if message.batch:
            self.batches.append(row)
        if message.flaws:
            self.flawed.append((row.row, message))

    def _notification(self, row: UnpairedMessage, message: Message) -> None:
        method = message.method or ""
        key = (method, message.sender, message.revision, scope_key(self.capture.transaction_of(message.stream)))
        seen = self.notifications.get(key)
        if seen is None:
            self.notifications[key] = Occurrences(row)
        else:
            seen.count += 1
        if method in _REFERRING:
            self.unmatched_notifications.append(row)
        elif method in _OPT_IN and message.sender == SERVER and message.era is Era.MODERN:
            self.opt_in_notifications.append(row)

    def event(self, row: ChannelEvent) -> None:
        """Take in an event of the channel."""
        at_ns = row.at_ns
        match row.record:
            case Close() as record:
                self._close(at_ns, record)
            case Note(topic="signal" | "escalation") as record if not record.text.startswith(_HARMLESS_SIGNALS):
                self.left_ns = at_ns if self.left_ns is None else self.left_ns
                if self.signalled_ns is None:
                    self.signalled_ns, self.waited_ns = at_ns, _waited_ns(record)
                self.was_killed |= record.topic == "escalation" and record.text.startswith("SIGKILL")
            case Note(topic="late-output") as record:
                self.start_waited_ns = _waited_ns(record) or 0
            case Note(topic="descendants-running") as record:
                self.left_running = record
            case Exit() as record:
                self.exit = at_ns, record
                self.gone_ns = at_ns if self.gone_ns is None else self.gone_ns
            case End() as record:
                self.end = at_ns, record
            case Stall() as record:
                self.stalls.append((at_ns, record))
            case Partial() as record:
                self.partials.append((at_ns, record))
            case Spawn():
                self.starts_ns.append(at_ns)
            case Gap() as record:
                self.gaps.append((at_ns, record))
                self._hole(at_ns - max(1, record.at_ns - record.since_ns))
                self._hole(at_ns - 1)  # it has the time of the record after it, which is sound
            case Damage() as record:
                self.damages.append((at_ns, record))
                if record.reason != "edited" and not record.is_repeated:
                    self._hole(at_ns)

    def row_of(self, transaction: Transaction) -> int | None:
        """Give the number of the row that stands for a transaction; None if none does."""
        if transaction.row:
            return transaction.row
        exchange = self.first_exchanges.get(transaction.number)
        return None if exchange is None else exchange.row

    def first_request_with(self, content: bytes) -> float:
        """Give the time of the client's first request that contains these bytes, in nanoseconds; infinity if there is none."""
        times = (row.at_ns for row in self.exchanges if row.sender == CLIENT and content in row.request.raw)
        return min(times, default=float("inf"))

    def first(self, exchanges: list[Exchange], most: int, rules: tuple[Rule, ...], what: str = "calls") -> list[Exchange]:
        """Give the first of some exchanges, and note where `rules` do not look at the others."""
        if len(exchanges) <= most:
            return list(exchanges)
        names = tuple(rule.name for rule in rules)
        self.limits[Unchecked(rules=names, reason=f"only the first {most:,} {what} of a capture are looked at")] = None
        return exchanges[:most]

    def flawed_by(self, names: Collection[str]) -> Iterator[tuple[int, Message, str]]:
        """Yield the number of the row, the message and the flaw for each flaw that has one of these names."""
        yield from ((row, message, flaw) for row, message in self.flawed for flaw in message.flaws if flaw in names)

    @property
    def argv(self) -> list[str]:
        """The server's command; empty where it is not known."""
        header = self.capture.header
        argv = header.tapped.get("argv") if header is not None else None
        return [str(argument) for argument in argv] if isinstance(argv, list) else []

    @property
    def misdelivered(self) -> Misdeliveries:
        """The server's responses that went to another client than the one that waits for them."""
        if self._misdelivered is None:
            self._misdelivered = misdeliveries(self.capture, self.http, self.unmatched_responses, self.repeated_answers)
        return self._misdelivered

    @property
    def uninitialized(self) -> set[ScopeKey]:
        """The sessions of which the capture has `initialize` and its result, and no `notifications/initialized`."""
        if self.first_hole_ns is not None:
            return set()
        notified = {key[3] for key in self.notifications if key[0] == INITIALIZED and key[1] == CLIENT}
        if 0 in notified:
            return set()
        return {
            scope_key(exchange.transaction)
            for exchange in self.initializes
            if exchange.response is not None and exchange.response.kind is Kind.RESULT
            if exchange.transaction is None or scope_key(exchange.transaction)
        } - notified

    @property
    def joined_calls(self) -> list[Call]:
        """The calls that took more than one exchange, in the order in which they began."""
        return list({call.row: call for call in self.capture.calls.values()}.values())

    def is_shared(self, transaction: Transaction | None) -> bool:
        """Return whether it was a POST to an endpoint that several streams announced: then nobody knows which client sent it."""
        stream = None if transaction is None else self.capture.transactions.get(transaction.scope.stream)
        return stream is not None and any(anomaly.name == "shared-endpoint" for anomaly in stream.anomalies)

    def has_request(self, method: str) -> bool:
        """Return whether either side made a request of this method."""
        return any(key[0] == method for key in self.requests)

    def may_have_error(self, code: int) -> bool:
        """Return whether an error may have this code."""
        return any(kind.code is None or kind.code == code for kind in self.error_kinds)

    def errors_of(self, methods: Collection[str]) -> list[Exchange]:
        """Return the requests of these methods that were answered by errors."""
        is_any = any(kind.method in methods for kind in self.error_kinds)
        return [exchange for exchange in self.errors if exchange.method in methods] if is_any else []

    def is_unseen(self, at_ns: int) -> bool:
        """Return whether records from before this time may be missing."""
        return self.first_hole_ns is not None and self.first_hole_ns <= at_ns

    def stream_name(self, stream: int) -> str:
        """Give `stdin`, `stdout` or `stderr`; empty if the stream was not opened."""
        opened = self.capture.streams.get(stream)
        return opened.name if opened else ""

    def _close(self, at_ns: int, record: Close) -> None:
        name = self.stream_name(record.stream)
        if record.by == "client" and name in ("stdin", "stdout") and self.left_ns is None:
            self.left_ns = at_ns
        if record.by == "client" and name == "stdin" and self.stdin_closed_ns is None:
            self.stdin_closed_ns = at_ns
        if record.by == "client" and name == "stdout" and self.stopped_reading_ns is None:
            self.stopped_reading_ns = at_ns
        if record.by == "server" and name == "stdout" and self.gone_ns is None:
            self.gone_ns = at_ns

    def _hole(self, at_ns: int) -> None:
        self.first_hole_ns = at_ns if self.first_hole_ns is None else min(at_ns, self.first_hole_ns)
        self.last_hole_ns = at_ns if self.last_hole_ns is None else max(at_ns, self.last_hole_ns)


def _waited_ns(record: Note) -> int | None:
    waited = record.extra.get("waited_ns")
    return waited if isinstance(waited, int) else None


def scope_key(transaction: Transaction | None) -> ScopeKey:
    """Give the session or the stream that a message belongs to; 0 if it belongs to none."""
    return 0 if transaction is None else transaction.scope.session or transaction.scope.stream


def clients(facts: CaptureFacts) -> KnownClients:
    """Return what tells the clients of a capture apart."""
    known: KnownClients | None = facts.shared.get(KnownClients)
    if known is None:
        openings = [exchange for exchange in facts.http if exchange.method in (INITIALIZE, DISCOVER)]
        known = facts.shared[KnownClients] = KnownClients(facts.capture, openings)
    return known


def agreed_revisions(facts: CaptureFacts) -> dict[ScopeKey, str]:
    """Give for each session of HTTP the revision that its handshake agreed on."""
    agreed: dict[ScopeKey, str] = {}
    for initialize in facts.initializes:
        response, transaction = initialize.response, initialize.transaction
        if transaction is not None and transaction.scope.session and response is not None and response.kind is Kind.RESULT:
            agreed |= {transaction.scope.session: response.revision} if response.revision else {}
    return agreed


def client_requests(facts: CaptureFacts) -> Iterator[tuple[Exchange, Transaction, str | None]]:
    """Yield the client's requests over HTTP, each with its transaction and the revision that its session agreed on."""
    agreed = agreed_revisions(facts)
    for exchange in facts.http:
        transaction = exchange.transaction
        if transaction is not None and exchange.request.sender == CLIENT:
            session = transaction.scope.session
            yield exchange, transaction, agreed.get(session) if session else None


def _is_spelled_otherwise(request: Message, response: Message) -> bool:
    """Return whether two different ids mean the same. They do not where only HTTP tells what an error answers."""
    return response.id is not None and response.id in spellings(request.id or "")


class TranscriptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of all captures together. `baselines` are accepted definitions, by the server's label; None: nothing is compared.

    `credentials` finds credentials in a text; None: none are sought. `limits` is filled by rules that do not look at everything.
    """

    transcript: Transcript
    baselines: Mapping[str, Baseline] | None = None
    limits: dict[Unchecked, None] = {}


def capture_facts(transcript: Transcript) -> list[CaptureFacts]:
    """Gather the facts of each capture of `transcript`. Those of captures that are over are gathered once."""
    over = _over(transcript)
    made_of, known = transcript.known.get("facts", (None, []))
    if over is not None and made_of == over:
        return known
    gathered = _gathered(transcript)
    if over is not None:
        transcript.known["facts"] = over, gathered
    return gathered


def _over(transcript: Transcript) -> tuple[int, ...] | None:
    """Return numbers that change with any row, once all captures are over; None while one of them may still grow."""
    if not all(info.closed for info in transcript.captures):
        return None
    counts = (count for info in transcript.captures for count in (info.messages, info.last_ns, len(info.transactions)))
    return id(transcript.rows), len(transcript.rows), *counts


def _gathered(transcript: Transcript) -> list[CaptureFacts]:
    by_capture = [CaptureFacts(capture, transcript.rows) for capture in transcript.captures]
    _gather(by_capture, transcript.rows)
    for facts in by_capture:
        index = facts.capture.index
        exchanges = [row for row in transcript.rows if isinstance(row, Exchange) and row.request.capture == index]
        facts.add(exchanges)
    return by_capture


def _gather(by_capture: list[CaptureFacts], rows: Iterable[Row]) -> None:
    for row in rows:
        facts = by_capture[row.capture]
        if isinstance(row, Exchange):
            facts.exchange(row)
        elif isinstance(row, UnpairedMessage):
            facts.unpaired(row)
        elif isinstance(row, Log):
            if row.raw.strip(_MARKERS):
                facts.last_lines.append(row.raw)
        elif isinstance(row, ChannelEvent):
            facts.event(row)

"""What happened in one capture, sorted by what findings ask for: one pass over the rows, which keeps the odd ones only."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ...records import CLIENT, SERVER, Close, Damage, End, Exit, Gap, Note, Partial, Spawn, Stall
from ..correlate import spellings
from ..http.decode import SEALED
from ..http.transaction import Transaction
from ..mcp.methods import CANCELLED, PROGRESS
from ..mcp.revisions import Era
from ..model import CaptureInfo, ChannelEvent, Exchange, Kind, Log, Message, Numbered, Outcome, Row, Transcript, UnpairedMessage
from ..offers.baseline import Baseline
from ..offers.definitions import LISTINGS

_NO_WORDS: Final = b" \t\r\n~^"
"""What lines are made of that only mark a place in the line above."""

LAST_WORDS: Final = 3
"""So many lines of stderr are kept, to be quoted if the server dies."""

SAMPLED: Final = 10_000
"""So many messages are kept for what only a full parse tells: that takes as long for each as all the rest."""

_FOR_THE_SERVER: Final = ("SIGUSR1", "SIGUSR2")
"""How notes of signals begin that are passed on and end nothing: who sends one stays."""

_CLAIMED: Final = frozenset({"ambiguous-stream", "ambiguous-id"})
"""Flaws of answers that are paired with nothing because they could be paired with several."""

_KEPT: Final = LISTINGS | {"tools/call"}
_NAMING: Final = frozenset({PROGRESS, CANCELLED})

LOG: Final = "notifications/message"
CHANGES: Final = frozenset(
    {
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    }
)
_WANTED: Final = CHANGES | {LOG}
"""What a server tells from 2026-07-28 on only to who asked for it."""

ScopeKey: TypeAlias = str | int
"""The session of a message over HTTP, or the stream of HTTP+SSE; 0 on stdio, and where a transaction stands alone."""

UseKey: TypeAlias = tuple[str, str, str | None, ScopeKey]
"""Method, sender, revision and scope."""


class Use:
    """What was sent under one key: the row of the first, and how many there were."""

    __slots__ = ("count", "first")

    def __init__(self, first: Exchange | UnpairedMessage, count: int = 1) -> None:
        self.first = first
        self.count = count


class CaptureFacts:
    """One capture. Times are None for what did not happen.

    `left_ns` is when the client closed a stream or asked for the end, `gone_ns` when the server closed its stdout or ended. Between
    `first_hole_ns` and `last_hole_ns` something was not recorded.
    """

    __slots__ = (
        "asked_in", "batches", "calls", "cancelled", "damages", "definitions", "end", "errors", "exit", "first_hole_ns",
        "flawed", "gaps", "gone_ns", "http", "initializes", "last_hole_ns", "last_words", "left_ns", "listings", "malformed",
        "mismatched", "news", "notes", "partial", "partials", "repeated", "sample", "signalled", "source", "stalls", "started",
        "_rows", "told", "unanswered", "unfinished", "unmatched", "untold", "uses",
    )  # fmt: skip

    def __init__(self, source: CaptureInfo, rows: Sequence[Row] = ()) -> None:
        self.source = source
        self._rows = rows
        self.unanswered: list[Exchange] = []
        self.http: list[Exchange] = []
        """Exchanges whose requests came by HTTP."""
        self.asked_in: dict[int, Exchange] = {}
        """The first exchange of each transaction that carried a request of the client."""
        self.uses: dict[UseKey, Use] = {}
        """The requests, by their method, sender, revision and scope: how often each was made, and the first time."""
        self.notes: dict[UseKey, Use] = {}
        """The same for notifications that belong to no exchange."""
        self.initializes: list[Exchange] = []
        self.definitions: list[Exchange] = []
        """Answered `tools/list`."""
        self.listings: list[Exchange] = []
        """Whatever defines something that the server offers: answered lists and greetings."""
        self.calls: list[Exchange] = []
        """Every `tools/call`."""
        self.unfinished: list[Exchange] = []
        """Exchanges whose result is of another type than complete: input is required, a task was made."""
        self.errors: list[Exchange] = []
        """Exchanges that ended in a JSON-RPC error."""
        self.cancelled: list[Exchange] = []
        """Exchanges that the asking side gave up, by a notification or by closing the stream."""
        self.told: list[Exchange] = []
        """Exchanges with notifications of their own: progress, cancellations."""
        self.untold: list[UnpairedMessage] = []
        """Progress and cancellations that name no request that anybody made."""
        self.news: list[UnpairedMessage] = []
        """What a server of the modern era tells only to who asked for it: log messages, and changes of what it offers."""
        self.sample: list[tuple[int, Message]] = []
        """The first messages, and the rows they stand in."""
        self.batches: list[Numbered] = []
        """Rows that began in a batch."""
        self.repeated: list[Exchange] = []
        self.partial: list[Exchange] = []
        """Exchanges with results that say that they are parts."""
        self.mismatched: list[Exchange] = []
        self.flawed: list[tuple[int, Message]] = []
        """Messages with flaws, and the rows they stand in."""
        self.malformed: list[UnpairedMessage] = []
        self.unmatched: list[UnpairedMessage] = []
        self.started: list[int] = []
        """When the server's process was started, each time."""
        self.stalls: list[tuple[int, Stall]] = []
        self.partials: list[tuple[int, Partial]] = []
        self.gaps: list[tuple[int, Gap]] = []
        self.damages: list[tuple[int, Damage]] = []
        self.last_words: deque[bytes] = deque(maxlen=LAST_WORDS)
        self.exit: tuple[int, Exit] | None = None
        self.end: tuple[int, End] | None = None
        self.left_ns: int | None = None
        self.signalled = False
        """Whether a signal told the server to end."""
        self.gone_ns: int | None = None
        self.first_hole_ns: int | None = None
        self.last_hole_ns: int | None = None

    def exchange(self, row: Exchange) -> None:
        """Take in an exchange."""
        request, response = row.request, row.response
        if len(self.sample) < SAMPLED:
            self.sample.append((row.row, request))
            if response is not None:
                self.sample.append((row.row, response))
        if response is None:
            if row.over and row.outcome in (Outcome.UNANSWERED, Outcome.PROBE):
                self.unanswered.append(row)
        else:
            if response.id is not request.id and response.id != request.id and _is_spelled_otherwise(request, response):
                self.mismatched.append(row)
            if response.flaws:
                self.flawed.append((row.row, response))
            if response.result_type is not None:
                self.unfinished.append(row)
        transaction = row.transaction
        scope: ScopeKey = 0
        if transaction is not None:
            self.http.append(row)
            scope = transaction.scope.session or transaction.scope.stream
            if request.sender == CLIENT:
                self.asked_in.setdefault(transaction.number, row)
        method = request.method or ""
        key = (method, request.sender, request.revision, scope)
        use = self.uses.get(key)
        if use is None:
            self.uses[key] = Use(row)
        else:
            use.count += 1
        if method in _KEPT:
            self._keep(row, method)
        if response is not None and response.kind is Kind.ERROR:
            self.errors.append(row)
        if row.cancelled is not None or row.left_ns is not None:
            self.cancelled.append(row)
        if request.flaws:
            self.flawed.append((row.row, request))
        if request.batch:
            self.batches.append(row)
        if row.notifications:
            self.told.append(row)
            self.flawed += [(row.row, one) for one in row.notifications if one.flaws]
        if row.partials:
            self.partial.append(row)
        if row.more_responses:
            self.repeated.append(row)
            self.flawed += [(row.row, one) for one in row.more_responses if one.flaws]

    def _keep(self, row: Exchange, method: str) -> None:
        if method == "tools/call":
            self.calls.append(row)
            return
        if method == "initialize":
            self.initializes.append(row)
        if row.response is not None and row.response.kind is Kind.RESULT:
            self.listings.append(row)
            if method == "tools/list":
                self.definitions.append(row)

    def unpaired(self, row: UnpairedMessage) -> None:
        """Take in a message that belongs to no exchange."""
        message = row.message
        if message.reason == "not recorded" or message.reason.startswith(SEALED) or "damaged" in message.flaws:
            self._hole(row.at_ns)
        if message.kind is Kind.MALFORMED:
            self.malformed.append(row)
            return
        if len(self.sample) < SAMPLED:
            self.sample.append((row.row, message))
        if message.kind is Kind.NOTIFICATION:
            self._notification(row, message)
        elif not message.flaws or _CLAIMED.isdisjoint(message.flaws):
            self.unmatched.append(row)
        if message.batch:
            self.batches.append(row)
        if message.flaws:
            self.flawed.append((row.row, message))

    def _notification(self, row: UnpairedMessage, message: Message) -> None:
        method = message.method or ""
        transaction = self.source.transaction_of(message.stream)
        scope: ScopeKey = 0 if transaction is None else transaction.scope.session or transaction.scope.stream
        use = self.notes.setdefault((method, message.sender, message.revision, scope), Use(row, 0))
        use.count += 1
        if method in _NAMING:
            self.untold.append(row)
        elif method in _WANTED and message.sender == SERVER and message.era is Era.MODERN:
            self.news.append(row)

    def event(self, row: ChannelEvent) -> None:
        """Take in what happened to the channel."""
        at_ns = row.at_ns
        match row.record:
            case Close() as record:
                self._close(at_ns, record)
            case Note(topic="signal" | "escalation") as record if not record.text.startswith(_FOR_THE_SERVER):
                self.left_ns = at_ns if self.left_ns is None else self.left_ns
                self.signalled = True
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
                self.started.append(at_ns)
            case Gap() as record:
                self.gaps.append((at_ns, record))
                self._hole(at_ns - 1)  # it has the time of the record after it, which is sound
            case Damage() as record:
                self.damages.append((at_ns, record))
                if record.reason != "edited":
                    self._hole(at_ns)

    def row_of(self, transaction: Transaction) -> int | None:
        """The row that stands for a transaction; None if none does."""
        if transaction.row:
            return transaction.row
        asked = self.asked_in.get(transaction.number)
        return None if asked is None else asked.row

    def first_with(self, said: bytes) -> float:
        """When the client first asked something in which these bytes are, at nanoseconds; infinity if it never did."""
        of_client = (one for one in self._rows if isinstance(one, Exchange) and one.capture == self.source.index)
        asked = (one.at_ns for one in of_client if one.sender == CLIENT and said in one.request.raw)
        return min(asked, default=float("inf"))

    def is_shared(self, transaction: Transaction | None) -> bool:
        """Whether it was POSTed to an endpoint that several streams announced: then nobody knows whose it is."""
        stream = None if transaction is None else self.source.transactions.get(transaction.scope.stream)
        return stream is not None and any(one.name == "shared-endpoint" for one in stream.anomalies)

    def is_unseen(self, at_ns: int) -> bool:
        """Whether what happened before this may not have been recorded."""
        return self.first_hole_ns is not None and self.first_hole_ns <= at_ns

    def stream_name(self, stream: int) -> str:
        """`stdin`, `stdout`, `stderr`; empty if nobody opened it."""
        opened = self.source.streams.get(stream)
        return opened.name if opened else ""

    def _close(self, at_ns: int, record: Close) -> None:
        name = self.stream_name(record.stream)
        if record.by == "client" and name in ("stdin", "stdout") and self.left_ns is None:
            self.left_ns = at_ns
        if record.by == "server" and name == "stdout" and self.gone_ns is None:
            self.gone_ns = at_ns

    def _hole(self, at_ns: int) -> None:
        self.first_hole_ns = at_ns if self.first_hole_ns is None else min(at_ns, self.first_hole_ns)
        self.last_hole_ns = at_ns if self.last_hole_ns is None else max(at_ns, self.last_hole_ns)


def agreed_revisions(facts: CaptureFacts) -> dict[ScopeKey, str]:
    """The revision that the handshake of each session of HTTP agreed on."""
    agreed: dict[ScopeKey, str] = {}
    for exchange in facts.initializes:
        response, transaction = exchange.response, exchange.transaction
        if transaction is None or response is None or not transaction.scope.session:
            continue
        if response.kind is Kind.RESULT and response.revision:
            agreed[transaction.scope.session] = response.revision
    return agreed


def _is_spelled_otherwise(request: Message, response: Message) -> bool:
    """Whether the ids mean the same. They do not where HTTP tells what an error answers."""
    return response.id is not None and response.id in spellings(request.id or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptFacts:
    """All captures together. `baselines` are accepted definitions by the server's label; None: there are none to compare with."""

    transcript: Transcript
    baselines: Mapping[str, Baseline] | None = None


def capture_facts(transcript: Transcript) -> list[CaptureFacts]:
    """One for each capture of `transcript`."""
    found = [CaptureFacts(source, transcript.rows) for source in transcript.captures]
    for row in transcript.rows:
        facts = found[row.capture]
        if isinstance(row, Exchange):
            facts.exchange(row)
        elif isinstance(row, UnpairedMessage):
            facts.unpaired(row)
        elif isinstance(row, Log):
            if row.raw.strip(_NO_WORDS):
                facts.last_words.append(row.raw)
        elif isinstance(row, ChannelEvent):
            facts.event(row)
    return found

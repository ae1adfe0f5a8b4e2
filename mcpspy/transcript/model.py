"""What we make of captures: messages, exchanges, rows, findings. The nouns of every view.

Refuses to hold parsed JSON: a message keeps its bytes and reads them when asked, so that a million messages stay below 1 GiB.

What there is millions of is a `msgspec.Struct` outside the garbage collector's sight, not a dataclass: nothing here refers back to
what refers to it. With dataclasses a capture of a million messages took 12.7 s to understand and 675 MiB, of which the collector
took a third; so it takes 7.1 s and 650 MiB (CPython 3.11). They are not frozen, because the correlator fills an exchange as its
messages arrive; outside `transcript/` nobody assigns to them. The others are structs as well, since a dataclass takes 0.5 to 0.9 ms
to be made, and a client waits for a mock's first answer.

Every `at_ns` here is on the transcript's clock: nanoseconds since the first capture began, on one axis for all captures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from .http.transaction import Transaction
from .llm.call import ModelCall
from .message import Kind, Message
from .outcome import HTTP_ERRORS, HTTP_FAILURES, HTTP_REDIRECTS, NO_ANSWERS, Outcome

if TYPE_CHECKING:
    from ..records import Exit, Header, Open, Record, Side
    from .calls.call import Call
    from .findings.rule import Finding
    from .mcp.revisions import Era

__all__ = [
    "HTTP_ERRORS",
    "HTTP_FAILURES",
    "HTTP_REDIRECTS",
    "NO_ANSWERS",
    "CaptureInfo",
    "ChannelEvent",
    "Exchange",
    "Kind",
    "Lane",
    "Log",
    "Message",
    "ModelCall",
    "Numbered",
    "Outcome",
    "Row",
    "Transcript",
    "UnpairedMessage",
]


class Exchange(msgspec.Struct, eq=False, gc=False):
    """A request and what became of it. `row` is its number.

    `over` says that no answer is awaited any more: it came, or the other side can send none.
    """

    row: int
    request: Message
    response: Message | None = None
    notifications: Sequence[Message] = ()
    """What belongs to it, in order: progress by its token, its cancellations, and what else names it."""
    cancelled: Message | None = None
    more_responses: Sequence[Message] = ()
    """Answers after the answer."""
    partials: Sequence[Message] = ()
    """Results that said that more of them follows, and came before the answer."""
    over: bool = False
    transaction: Transaction | None = None
    """The transaction that carried the request; None on stdio. The one that carried the answer may be another."""
    left_ns: int | None = None
    """When the client closed the stream that was to bring the answer, which cancels a request of the modern era."""
    is_probe: bool = False
    """Whether a failure says no more than that the server speaks something else: the client was opening, and can go on."""

    @property
    def capture(self) -> int:
        """The index of its capture, in `Transcript.captures`."""
        return self.request.capture

    @property
    def sender(self) -> Side:
        """The side that asks."""
        return self.request.sender

    @property
    def method(self) -> str:
        """The request's method."""
        return self.request.method or ""

    @property
    def revision(self) -> str | None:
        """The revision that its request is of."""
        return self.request.revision

    @property
    def era(self) -> Era | None:
        """The era of its request."""
        return self.request.era

    @property
    def target(self) -> str | None:
        """What the request is about."""
        return self.request.target

    @property
    def at_ns(self) -> int:
        """When it began: when the request's last byte was read."""
        return self.request.at_ns

    @property
    def messages(self) -> list[Message]:
        """All its messages: the request, and what came of it."""
        found = [self.request, *self.notifications, *self.partials, *self.more_responses]
        return found if self.response is None else [*found, self.response]

    @property
    def progress(self) -> int:
        """How many progress notifications came."""
        return sum(1 for one in self.notifications if one.method == "notifications/progress")

    @property
    def outcome(self) -> Outcome:
        """What became of it so far."""
        if self.is_probe and self.has_failed:
            return Outcome.PROBE
        if self.response is None:
            if self.cancelled is not None or self.left_ns is not None:
                return Outcome.CANCELLED
            return self._unanswered if self.over else Outcome.PENDING
        cancelled = self.cancelled
        if cancelled is not None and cancelled.at_ns <= self.response.at_ns and cancelled.sender == self.request.sender:
            return Outcome.CANCELLED
        if self.response.kind is Kind.ERROR:
            return Outcome.ERROR
        return Outcome.TOOL_ERROR if self.response.is_error else Outcome.OK

    @property
    def has_failed(self) -> bool:
        """Whether it brought no result, in a way in which servers refuse what they do not speak."""
        status = 0 if self.transaction is None else self.transaction.status
        if status in NO_ANSWERS or status >= HTTP_FAILURES or HTTP_REDIRECTS <= status < HTTP_ERRORS:
            return False
        if self.response is None:
            return self.over or self.cancelled is not None or self.left_ns is not None
        return self.response.kind is Kind.ERROR

    @property
    def duration_ns(self) -> int | None:
        """From the request's last byte to the response's last byte, or to the cancellation; None while neither came."""
        end = self.response or self.cancelled
        if end is not None:
            return end.at_ns - self.request.at_ns
        return None if self.left_ns is None else self.left_ns - self.request.at_ns

    @property
    def _unanswered(self) -> Outcome:
        """Why there is no answer, as far as HTTP says it."""
        status = 0 if self.transaction is None or self.transaction.request_messages == 0 else self.transaction.status
        if status < HTTP_REDIRECTS:
            return Outcome.UNANSWERED
        return Outcome.REDIRECTED if status < HTTP_ERRORS else Outcome.HTTP_ERROR


class UnpairedMessage(msgspec.Struct, eq=False, gc=False):
    """A message in no exchange, with a row of its own: a notification, a response nobody asked for, a malformed payload."""

    row: int
    message: Message

    @property
    def capture(self) -> int:
        """The index of its capture, in `Transcript.captures`."""
        return self.message.capture

    @property
    def at_ns(self) -> int:
        """When its last byte was read."""
        return self.message.at_ns


class Log(msgspec.Struct, eq=False, gc=False):
    """One line the server wrote to stderr, its terminator included. It has no row number."""

    capture: int
    number: int
    at_ns: int
    raw: bytes


class ChannelEvent(msgspec.Struct, eq=False):
    """Something that happened to the channel: a record that carries no message (spawn, exit, close, stall, gap, damage, …)."""

    capture: int
    at_ns: int
    record: Record


Numbered: TypeAlias = Exchange | UnpairedMessage | Transaction | ModelCall
"""The rows that have numbers, by which they are addressed."""

Row: TypeAlias = Numbered | Log | ChannelEvent


class CaptureInfo(msgspec.Struct, eq=False):
    """One capture in a transcript: who recorded what, and whether all of it is there.

    `shift_ns` is what was added to its record times to bring them on the transcript's clock. `server` and `client` are the
    lanes of its two sides; the client's is known for good once it has said its name.
    """

    index: int
    header: Header | None = None
    shift_ns: int = 0
    server: str = "server"
    client: str = "client"
    messages: int = 0
    exit: Exit | None = None
    complete: bool = False
    """Whether its `end` record was read and nothing before it is lost."""
    gaps: int = 0
    damages: int = 0
    unkept: int = 0
    """Frames, or parts of them, of which only length and digest were kept: those past `--max-size`."""
    last_ns: int = 0
    """When its last record was seen, on the capture's own clock: add `shift_ns`."""
    closed: bool = False
    """Whether nothing more of it will come: its `end` was read, or its reader came to the end of the file."""
    streams: dict[int, Open] = {}
    """How each of its streams was opened, by its number."""
    transactions: dict[int, Transaction] = {}
    """Its HTTP transactions, by their numbers; none on stdio."""
    client_names: dict[str, None] = {}
    """What clients of HTTP called themselves, each name once."""
    calls: dict[int, Call] = {}
    """The calls of more than one exchange, and those that tasks, subscriptions and notifications belong to: by all their rows."""

    @property
    def is_model(self) -> bool:
        """Whether its leg is the model's: its channel speaks the API of a language model, and no JSON-RPC."""
        return self.header is not None and self.header.tapped.get("leg") == "model"

    def transaction_of(self, stream: int) -> Transaction | None:
        """The transaction that this stream belongs to."""
        opened = self.streams.get(stream) if self.transactions else None
        return None if opened is None else self.transactions.get(opened.transaction)

    def transactions_of(self, row: Numbered) -> list[Transaction]:
        """The transactions that carried the messages of a row, by their numbers; none on stdio."""
        if isinstance(row, Transaction):
            return [row]
        if isinstance(row, ModelCall):
            return [row.transaction]
        messages = [row.message] if isinstance(row, UnpairedMessage) else row.messages
        found = {one.number: one for message in messages if (one := self.transaction_of(message.stream)) is not None}
        return [found[number] for number in sorted(found)]

    @property
    def clients(self) -> list[str]:
        """The lanes of its clients, in the order in which they came; one but for HTTP."""
        said = (one.scope.client or self.client for one in self.transactions.values())
        return list(dict.fromkeys(said)) or [self.client]

    def client_of(self, row: Row | Message) -> str:
        """The lane of the client that this row or message is about: one HTTP server may have many."""
        if not self.transactions or isinstance(row, Log | ChannelEvent):
            return self.client
        if isinstance(row, Transaction):
            return row.scope.client or self.client
        if isinstance(row, ModelCall):
            return self.client
        message = row if isinstance(row, Message) else row.request if isinstance(row, Exchange) else row.message
        transaction = self.transaction_of(message.stream)
        return (transaction.scope.client if transaction else "") or self.client


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """A named participant: a client, a server, a model; and the user, whom pictures alone have."""

    name: str
    role: Literal["user", "client", "model", "server"]


class Transcript(msgspec.Struct, eq=False):
    """One or more captures, understood. `rows` are in the order in which they began."""

    captures: list[CaptureInfo] = []
    rows: list[Row] = []
    findings: list[Finding] = []

    @property
    def exchanges(self) -> list[Exchange]:
        """The rows that are exchanges."""
        return [row for row in self.rows if isinstance(row, Exchange)]

    @property
    def model_calls(self) -> list[ModelCall]:
        """The rows that are model calls."""
        if not any(source.is_model for source in self.captures):
            return []  # without a look at a million rows
        return [row for row in self.rows if isinstance(row, ModelCall)]

    @property
    def messages(self) -> list[Message]:
        """Every message, malformed ones included, each once, by time."""
        found: list[Message] = []
        shared: set[int] = set()
        for row in self.rows:
            if isinstance(row, Exchange):
                found.append(row.request)
                found.extend(row.notifications)
                found.extend(row.partials)
                found.extend(row.more_responses)
                response = row.response
                if response is not None and id(response) not in shared:
                    found.append(response)
                    if row.transaction is not None:  # over HTTP one error may answer all that a transaction asked
                        shared.add(id(response))
            elif isinstance(row, UnpairedMessage):
                found.append(row.message)
        return sorted(found, key=lambda one: (one.at_ns, one.capture, one.number))

    @property
    def calls(self) -> list[Call]:
        """The calls that are more than an exchange, in the order in which they began."""
        found = {one.row: one for source in self.captures for one in source.calls.values()}
        return [found[row] for row in sorted(found)]

    def call_of(self, row: Row) -> Call | None:
        """The call that a row belongs to; None for one that is an exchange and no more."""
        return self.captures[row.capture].calls.get(row.row) if isinstance(row, Exchange | UnpairedMessage) else None

    @property
    def lanes(self) -> list[Lane]:
        """Clients first, then models, then servers, each once, in the order in which their captures began."""
        clients = dict.fromkeys(name for source in self.captures for name in source.clients)
        models = dict.fromkeys(source.server for source in self.captures if source.is_model)
        servers = dict.fromkeys(source.server for source in self.captures if not source.is_model)
        return [
            *(Lane(name=one, role="client") for one in clients),
            *(Lane(name=one, role="model") for one in models),
            *(Lane(name=one, role="server") for one in servers),
        ]

    def row(self, number: int) -> Numbered | None:
        """The row with this number, or None."""
        for row in self.rows:
            if isinstance(row, Exchange | UnpairedMessage | Transaction | ModelCall) and row.row == number:
                return row
        return None

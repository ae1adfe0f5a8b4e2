"""What a filter asks of a row and of one message of it: facts as texts, amounts and times. Refuses to compare them.

A fact that does not apply is absent: None, or no text at all. None of these raises, whatever was captured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import tzinfo
from typing import TYPE_CHECKING, Final, TypeAlias

from ...records import CLIENT, SERVER, Damage, Gap, Note, Partial
from ...wire.json_spans import members, string
from ..http.transaction import ScopeKind, Transaction
from ..mcp.fields import INPUT_REQUIRED, PROGRESS
from ..message import Kind, Message
from ..model import (
    HTTP_ERRORS,
    HTTP_REDIRECTS,
    CaptureInfo,
    ChannelEvent,
    Exchange,
    Log,
    ModelCall,
    Numbered,
    Outcome,
    Row,
    UnpairedMessage,
)
from .models import answer_of, said

if TYPE_CHECKING:
    from ..calls.call import Call


class Subject:
    """What is held against a filter: a row, and one message of it. One object for all, filled anew for each.

    `exchange` is the row if it is one, `message` is None where the row has none: lines of stderr, events, transactions.
    """

    __slots__ = ("exchange", "message", "row", "rules", "captures", "zone")

    row: Row
    exchange: Exchange | None
    message: Message | None

    def __init__(self, captures: list[CaptureInfo], rules: dict[int, set[str]], zone: tzinfo | None) -> None:
        self.captures = captures
        self.rules = rules
        """Which rules have findings about a row, by its number."""
        self.zone = zone
        """The time zone of times of day; None: the system's."""

    @property
    def source(self) -> CaptureInfo:
        """The capture that the row is in."""
        return self.captures[self.row.capture]

    @property
    def begin_ns(self) -> int | None:
        """Unix time of the beginning of the transcript's clock; None while no header is known."""
        return next((one.header.wall_ns - one.shift_ns for one in self.captures if one.header is not None), None)


Texts: TypeAlias = Callable[[Subject], Iterable[str | None]]
Amount: TypeAlias = Callable[[Subject], int | None]


# --- Texts ---


def methods(subject: Subject) -> tuple[str | None, ...]:
    """The method of the exchange, and of the message itself; of a model call what was asked of the API."""
    exchange, message = subject.exchange, subject.message
    if isinstance(subject.row, ModelCall):
        return (subject.row.method,)
    if exchange is not None:
        request = exchange.request
        return (request.method,) if message is request or message is None else (request.method, message.method)
    return () if message is None else (message.method,)


def targets(subject: Subject) -> tuple[str | None, ...]:
    """What the exchange is about, and the message itself; of a model call the model."""
    exchange, message = subject.exchange, subject.message
    if isinstance(subject.row, ModelCall):
        return (subject.row.target,)
    own = None if message is None else message.target
    return (own,) if exchange is None else (exchange.request.target, own)


def _about(*wanted: str) -> Texts:
    """The target where the method is one of `wanted`."""
    chosen = frozenset(wanted)

    def about(subject: Subject) -> tuple[str | None, ...]:
        exchange, message = subject.exchange, subject.message
        found: tuple[str | None, ...] = ()
        if exchange is not None and exchange.request.method in chosen:
            found = (exchange.request.target,)
        if message is not None and message.method in chosen and (exchange is None or message is not exchange.request):
            found = (*found, message.target)
        return found

    return about


_tools_called: Final = _about("tools/call")
prompts: Final = _about("prompts/get")
resources: Final = _about(
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/directory/read",
    "notifications/resources/updated",
)
_tasks_named: Final = _about(
    "tasks/get", "tasks/result", "tasks/update", "tasks/cancel", "notifications/tasks", "notifications/tasks/status"
)


def tools(subject: Subject) -> Iterable[str | None]:
    """The tool that is called; of a model call those that the model wants called."""
    answer = answer_of(subject.row)
    return _tools_called(subject) if answer is None else [one.name for one in answer.turn.uses]


def tasks(subject: Subject) -> tuple[str | None, ...]:
    """The task that a message names, and that of the call which the row belongs to."""
    call = call_of(subject)
    named = tuple(_tasks_named(subject))
    return named if call is None or call.task is None else (*named, call.task.id)


def call_of(subject: Subject) -> Call | None:
    """The call that the row is a part of; None for one that is an exchange and no more."""
    row = subject.row
    return subject.source.calls.get(row.row) if isinstance(row, Exchange | UnpairedMessage) else None


def parts(subject: Subject) -> tuple[str, ...]:
    """What the row is to its call."""
    call, row = call_of(subject), subject.row
    if call is None:
        return ()
    return (call.part(row),) if isinstance(row, Exchange) else ("notification",)


def directions(subject: Subject) -> tuple[str, ...]:
    """Whose row it is: who asks, or who sends what stands alone."""
    match subject.row:
        case Exchange(request=message) | UnpairedMessage(message=message):
            return (message.sender,)
        case Transaction() | ModelCall():
            return (CLIENT,)
        case Log():
            return (SERVER,)
        case _:
            return ()


def senders(subject: Subject) -> tuple[str, ...]:
    """Who sent the message."""
    return directions(subject) if subject.message is None else (subject.message.sender,)


def servers(subject: Subject) -> tuple[str, ...]:
    """The server's lane, and the label it was recorded under."""
    source = subject.source
    return (source.server, source.header.label) if source.header is not None else (source.server,)


def clients(subject: Subject) -> tuple[str, ...]:
    """The client's lane."""
    return (subject.source.client_of(subject.row),)


def lanes(subject: Subject) -> tuple[str, ...]:
    """Both lanes."""
    return (*clients(subject), *servers(subject))


def kinds(subject: Subject) -> tuple[str, ...]:
    """What the message is, or what the row is that has none."""
    message, row = subject.message, subject.row
    if message is None:
        if isinstance(row, ChannelEvent):
            return ("event", type(row.record).__name__.lower())
        return ("stderr",) if isinstance(row, Log) else ("model",) if isinstance(row, ModelCall) else ("transaction",)
    if message.method == PROGRESS and message.kind is Kind.NOTIFICATION:
        return _PROGRESS_KINDS
    if message.kind is Kind.MALFORMED and message.sender == SERVER and message.raw.lstrip()[:1] not in (b"{", b"["):
        return _NOISE_KINDS
    return _KINDS[message.kind]


_KINDS: Final = {kind: (kind.value,) for kind in Kind} | {kind: (kind.value, "response") for kind in (Kind.RESULT, Kind.ERROR)}
_PROGRESS_KINDS: Final = (Kind.NOTIFICATION.value, "progress")
_NOISE_KINDS: Final = (Kind.MALFORMED.value, "noise")


NEEDS_INPUT: Final = "needs-input"
_HYPHENATED: Final = {one: one.value.replace(" ", "-") for one in Outcome}
_FAILED: Final = {Outcome.ERROR, Outcome.TOOL_ERROR, Outcome.HTTP_ERROR, Outcome.UNANSWERED}


def statuses(subject: Subject) -> tuple[str, ...]:
    """What became of an exchange, in the words of its outcome; and the code of its error."""
    row = subject.row
    match row:
        case Exchange(response=response):
            outcome = row.outcome
            found = (_HYPHENATED[outcome], "failed") if outcome in _FAILED else (_HYPHENATED[outcome],)
            if response is None:
                return found
            if response.result_type == INPUT_REQUIRED:
                return (*found, NEEDS_INPUT)
            return (*found, _code(response)) if response.kind is Kind.ERROR else found
        case UnpairedMessage(message=Message(kind=Kind.ERROR) as message):
            return ("error", "failed", _code(message))
        case Transaction():
            return _transaction_statuses(row)
        case ModelCall(outcome=outcome):
            return (_HYPHENATED[outcome], "failed") if outcome in _FAILED else (_HYPHENATED[outcome],)
        case _:
            return ()


def _transaction_statuses(row: Transaction) -> tuple[str, ...]:
    if row.response is None:
        return ("unanswered", "failed") if row.over else ("pending",)
    if row.status >= HTTP_ERRORS:
        return ("http-error", "failed")
    return ("redirected",) if row.status >= HTTP_REDIRECTS else ("ok",)


def _code(error: Message) -> str:
    """The code of a JSON-RPC error as it was spelled; empty if it has none."""
    return bytes(members(members(error.raw).get("error", b"")).get("code", b"")).decode("utf-8", "replace")


def ids(subject: Subject) -> tuple[str, ...]:
    """The id of the exchange or the message: its token, and of a string what it says; of a model call those of its tool uses."""
    exchange, message = subject.exchange, subject.message
    if (answer := answer_of(subject.row)) is not None:
        return tuple(one.id for one in answer.turn.uses)
    token = exchange.request.id if exchange is not None else None if message is None else message.id
    return _spelled(token)


def tokens(subject: Subject) -> tuple[str, ...]:
    """The progress token that a request gives out, or a notification names."""
    exchange, message = subject.exchange, subject.message
    found = _spelled(message.correlation_key) if message is not None and message.method != "notifications/cancelled" else ()
    return found if exchange is None or message is exchange.request else (*found, *_spelled(exchange.request.correlation_key))


def _spelled(token: str | None) -> tuple[str, ...]:
    if token is None:
        return ()
    said = string(token.encode("utf-8", "replace")) if token[:1] == '"' else None
    return (token,) if said is None else (token, said)


def rules(subject: Subject) -> Iterable[str]:
    """The rules of the findings that point at the row."""
    row = subject.row
    return subject.rules.get(row.row, ()) if isinstance(row, Numbered) else ()


def eras(subject: Subject) -> tuple[str | None, ...]:
    """The era of the message."""
    return () if subject.message is None else (subject.message.era,)


def revisions(subject: Subject) -> tuple[str | None, ...]:
    """The revision of the message."""
    return () if subject.message is None else (subject.message.revision,)


def flaws(subject: Subject) -> tuple[str, ...]:
    """What is odd about the message."""
    return () if subject.message is None else subject.message.flaws


def transports(subject: Subject) -> tuple[str, ...]:
    """`stdio` or `http`; and `sse` for HTTP+SSE, where answers come on a stream of their own."""
    source = subject.source
    if source.header is not None and source.header.tapped.get("transport", "stdio") != "http":
        return ("stdio",)
    found = transactions(subject)
    if source.header is None and not found:
        return ("stdio",)
    return ("http", "sse") if any(one.scope.kind is ScopeKind.STREAM for one in found) else ("http",)


def sessions(subject: Subject) -> tuple[str, ...]:
    """The session's id; of HTTP+SSE, which has none, the number of the transaction that carries its stream."""
    scopes = [one.scope for one in transactions(subject)]
    found = [one.session or (str(one.stream) if one.stream else "") for one in scopes]
    return tuple(one for one in found if one)


def transactions(subject: Subject) -> list[Transaction]:
    """The transactions that carried the message, and the request of its exchange."""
    row, exchange, message = subject.row, subject.exchange, subject.message
    if isinstance(row, Transaction):
        return [row]
    if isinstance(row, ModelCall):
        return [row.transaction]
    source = subject.source
    if message is None or not source.transactions:
        return []
    own = source.transaction_of(message.stream)
    asked = None if exchange is None else exchange.transaction
    return [one for one in ((own,) if own is asked else (own, asked)) if one is not None]


# --- Amounts ---


def durations_ns(subject: Subject) -> int | None:
    """How long the exchange or the transaction took."""
    exchange = subject.exchange
    if exchange is not None:
        return exchange.duration_ns
    return subject.row.duration_ns if isinstance(subject.row, Transaction | ModelCall) else None


def totals_ns(subject: Subject) -> int | None:
    """How long it took in all, with all its rounds, polls and what its task took."""
    call = call_of(subject)
    return durations_ns(subject) if call is None else call.duration_ns


def sizes_bytes(subject: Subject) -> int | None:
    """What the row shows: of an exchange request and response together, of a transaction both bodies."""
    match subject.row:
        case Exchange(request=request, response=response):
            return request.size + (0 if response is None else response.size)
        case UnpairedMessage(message=message):
            return message.size
        case (
            Transaction(request=request_stream, response=response_stream)
            | ModelCall(transaction=Transaction(request=request_stream, response=response_stream))
        ):
            return sum(one.body_bytes for one in (request_stream, response_stream) if one is not None)
        case Log(raw=raw):
            return len(raw)
        case _:
            return None


def message_bytes(subject: Subject) -> int | None:
    """The size of the message alone."""
    return sizes_bytes(subject) if subject.message is None else subject.message.size


def row_numbers(subject: Subject) -> int | None:
    """The number of the row."""
    return subject.row.row if isinstance(subject.row, Numbered) else None


def call_numbers(subject: Subject) -> int | None:
    """The number of the first row of the call that the row is a part of."""
    call = call_of(subject)
    if call is not None:
        return call.row
    return subject.row.row if isinstance(subject.row, Exchange) else None


def progress_counts(subject: Subject) -> int | None:
    """How many progress notifications came."""
    return None if subject.exchange is None else subject.exchange.progress


def http_statuses(subject: Subject) -> list[int]:
    """The statuses of the transactions, as far as there was a response."""
    return [one.status for one in transactions(subject) if one.status]


# --- Times and bytes ---


def at_ns(subject: Subject) -> int:
    """When the message came, on the transcript's clock; of a row without messages, when it began."""
    return subject.row.at_ns if subject.message is None else subject.message.at_ns


def payload(subject: Subject) -> bytes:
    """The raw bytes of the message, of the line of stderr, or of what a record says; of a model call the prompt and what was said."""
    if subject.message is not None:
        return subject.message.raw
    row = subject.row
    if isinstance(row, Log):
        return row.raw
    if isinstance(row, ModelCall):
        return row.payload + b"\n" + said(row.answer)
    if not isinstance(row, ChannelEvent):
        return b""
    match row.record:
        case Partial(data=data):
            return data
        case Damage(text=text) | Note(text=text) | Gap(why=text):
            return str(text).encode("utf-8", "replace")
        case _:
            return b""

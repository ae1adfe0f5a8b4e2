"""Facts about a row and about one of its messages, as texts, amounts and times that filters compare.

A fact that does not apply is absent: None, or no text at all. No function here raises, whatever was captured, and none compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import tzinfo
from typing import TYPE_CHECKING, Final, TypeAlias

from ...records import CLIENT, SERVER, Damage, Gap, Intercept, Note, Partial
from ...wire.json_spans import string
from ..calls.call import Call
from ..http.transaction import ScopeKind, Transaction
from ..mcp.codes import INPUT_REQUIRED
from ..mcp.fields import code_of
from ..mcp.methods import PROGRESS
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
from ..waiting import waited_ns

if TYPE_CHECKING:
    from ..llm.prompt import Answer


class Subject:
    """A row and one of its messages, to be compared with a filter. One object serves all of them and is filled anew for each.

    `exchange` is the row if it is one; `message` is None for rows without messages: lines of stderr, events, transactions, model
    calls.
    """

    __slots__ = ("captures", "exchange", "message", "row", "rules", "zone")

    row: Row
    exchange: Exchange | None
    message: Message | None

    def __init__(self, captures: list[CaptureInfo], rules: dict[int, set[str]], zone: tzinfo | None) -> None:
        self.captures = captures
        self.rules = rules
        """The rules of the findings about a row, by the row's number."""
        self.zone = zone
        """The time zone of times of day; None: the system's."""

    @property
    def capture_info(self) -> CaptureInfo:
        """The capture of the row."""
        return self.captures[self.row.capture]

    @property
    def begin_ns(self) -> int | None:
        """Unix time of the beginning of the transcript's clock; None while no header is known."""
        return next((info.header.wall_ns - info.shift_ns for info in self.captures if info.header is not None), None)


Texts: TypeAlias = Callable[[Subject], Iterable[str | None]]
Amount: TypeAlias = Callable[[Subject], int | None]


# --- Texts ---


def methods(subject: Subject) -> tuple[str | None, ...]:
    """Return the method of the exchange and that of the message; for a model call the API's."""
    exchange, message = subject.exchange, subject.message
    if isinstance(subject.row, ModelCall):
        return (subject.row.method,)
    if exchange is not None:
        request = exchange.request
        return (request.method,) if message is request or message is None else (request.method, message.method)
    return () if message is None else (message.method,)


def targets(subject: Subject) -> tuple[str | None, ...]:
    """Return the target of the exchange and that of the message; for a model call the model."""
    exchange, message = subject.exchange, subject.message
    if isinstance(subject.row, ModelCall):
        return (subject.row.target,)
    own = None if message is None else message.target
    return (own,) if exchange is None else (exchange.request.target, own)


def _targets_of(*methods: str) -> Texts:
    """Return a function for the targets of these methods."""
    chosen = frozenset(methods)

    def targets(subject: Subject) -> tuple[str | None, ...]:
        exchange, message = subject.exchange, subject.message
        names: tuple[str | None, ...] = ()
        if exchange is not None and exchange.request.method in chosen:
            names = (exchange.request.target,)
        if message is not None and message.method in chosen and (exchange is None or message is not exchange.request):
            names = (*names, message.target)
        return names

    return targets


_called_tools: Final = _targets_of("tools/call")
prompts: Final = _targets_of("prompts/get")
resources: Final = _targets_of(
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/directory/read",
    "notifications/resources/updated",
)
_named_tasks: Final = _targets_of(
    "tasks/get", "tasks/result", "tasks/update", "tasks/cancel", "notifications/tasks", "notifications/tasks/status"
)


def tools(subject: Subject) -> Iterable[str | None]:
    """Return the tool that is called; for a model call the tools that the model uses."""
    answer = answer_of(subject.row)
    return _called_tools(subject) if answer is None else [use.name for use in answer.turn.uses]


def models(subject: Subject) -> tuple[str, ...]:
    """Return the model that a model call names, and the one that answered, as it names itself."""
    row = subject.row
    if not isinstance(row, ModelCall):
        return ()
    answer = row.answer
    return (row.model,) if answer is None else (row.model, answer.model)


def tasks(subject: Subject) -> tuple[str | None, ...]:
    """Return the task that the message names, and the task of the row's call."""
    call = call_of(subject)
    named = tuple(_named_tasks(subject))
    return named if call is None or call.task is None else (*named, call.task.id)


def call_of(subject: Subject) -> Call | None:
    """Return the call that the row is a part of; None for a plain exchange."""
    row = subject.row
    return subject.capture_info.calls.get(row.row) if isinstance(row, Exchange | UnpairedMessage) else None


def answer_of(row: Row) -> Answer | None:
    """Return the answer of a model; None for other rows, and as long as there is no answer."""
    return row.answer if isinstance(row, ModelCall) else None


def parts(subject: Subject) -> tuple[str, ...]:
    """Return the part that the row has in its call."""
    call, row = call_of(subject), subject.row
    if call is None:
        return ()
    return (call.part(row),) if isinstance(row, Exchange) else ("notification",)


def directions(subject: Subject) -> tuple[str, ...]:
    """Return the side that makes the request, or sends the unpaired message."""
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
    """Return the side that sent the message."""
    return directions(subject) if subject.message is None else (subject.message.sender,)


def servers(subject: Subject) -> tuple[str, ...]:
    """Return the server's lane, and the label of its capture."""
    info = subject.capture_info
    return (info.server, info.header.label) if info.header is not None else (info.server,)


def clients(subject: Subject) -> tuple[str, ...]:
    """Return the client's lane."""
    return (subject.capture_info.client_of(subject.row),)


def lanes(subject: Subject) -> tuple[str, ...]:
    """Return both lanes."""
    return (*clients(subject), *servers(subject))


def kinds(subject: Subject) -> tuple[str, ...]:
    """Return the kinds of the message, or of a row without one."""
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
_HYPHENATED: Final = {outcome: outcome.value.replace(" ", "-") for outcome in Outcome}
_FAILED: Final = {Outcome.ERROR, Outcome.TOOL_ERROR, Outcome.HTTP_ERROR, Outcome.UNANSWERED}


def statuses(subject: Subject) -> tuple[str, ...]:
    """Return the outcome of an exchange, as words, and the code of its error."""
    row = subject.row
    match row:
        case Exchange(response=response):
            outcome = row.outcome
            words = (_HYPHENATED[outcome], "failed") if outcome in _FAILED else (_HYPHENATED[outcome],)
            if response is None:
                return words
            if response.result_type == INPUT_REQUIRED:
                return (*words, NEEDS_INPUT)
            return (*words, code_of(response)) if response.kind is Kind.ERROR else words
        case UnpairedMessage(message=Message(kind=Kind.ERROR) as message):
            return ("error", "failed", code_of(message))
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


def ids(subject: Subject) -> tuple[str, ...]:
    """Return the id of the exchange or the message, as `_spellings` has it; for a model call the ids of its tool uses."""
    exchange, message = subject.exchange, subject.message
    if (answer := answer_of(subject.row)) is not None:
        return tuple(use.id for use in answer.turn.uses)
    return _spellings(exchange.request.id if exchange is not None else None if message is None else message.id)


def tokens(subject: Subject) -> tuple[str, ...]:
    """Return the progress token that a request gives out, or a notification names."""
    exchange, message = subject.exchange, subject.message
    own = _spellings(message.correlation_key) if message is not None and message.method != "notifications/cancelled" else ()
    return own if exchange is None or message is exchange.request else (*own, *_spellings(exchange.request.correlation_key))


def _spellings(key: str | None) -> tuple[str, ...]:
    """Return an id key, and if it is a string also the text of that string."""
    if key is None:
        return ()
    text = string(key.encode("utf-8", "replace")) if key[:1] == '"' else None
    return (key,) if text is None else (key, text)


def rules(subject: Subject) -> Iterable[str]:
    """Return the rules of the findings that point at the row."""
    row = subject.row
    return subject.rules.get(row.row, ()) if isinstance(row, Numbered) else ()


def eras(subject: Subject) -> tuple[str | None, ...]:
    """Return the era of the message."""
    return () if subject.message is None else (subject.message.era,)


def revisions(subject: Subject) -> tuple[str | None, ...]:
    """Return the revision of the message."""
    return () if subject.message is None else (subject.message.revision,)


def flaws(subject: Subject) -> tuple[str, ...]:
    """Return the flaws of the message."""
    return () if subject.message is None else subject.message.flaws


def transports(subject: Subject) -> tuple[str, ...]:
    """Return `stdio` or `http`; and `sse` for HTTP+SSE, where answers come on a stream of their own."""
    info = subject.capture_info
    if info.header is not None and info.header.tapped.get("transport", "stdio") != "http":
        return ("stdio",)
    carriers = transactions(subject)
    if info.header is None and not carriers:
        return ("stdio",)
    return ("http", "sse") if any(carrier.scope.kind is ScopeKind.STREAM for carrier in carriers) else ("http",)


def sessions(subject: Subject) -> tuple[str, ...]:
    """Return the session's id; for HTTP+SSE, which has none, the number of the transaction that carries its stream."""
    scopes = [transaction.scope for transaction in transactions(subject)]
    ids = [scope.session or (str(scope.stream) if scope.stream else "") for scope in scopes]
    return tuple(id for id in ids if id)


def transactions(subject: Subject) -> list[Transaction]:
    """Return the transactions that carried the message, and the request of its exchange."""
    row, exchange, message = subject.row, subject.exchange, subject.message
    if isinstance(row, Transaction):
        return [row]
    if isinstance(row, ModelCall):
        return [row.transaction]
    info = subject.capture_info
    if message is None or not info.transactions:
        return []
    own = info.transaction_of(message.stream)
    of_request = None if exchange is None else exchange.transaction
    carriers = (own,) if own is of_request else (own, of_request)
    return [carrier for carrier in carriers if carrier is not None]


# --- Amounts ---


def durations_ns(subject: Subject) -> int | None:
    """Return the duration of the exchange, the transaction or the model call."""
    exchange = subject.exchange
    if exchange is not None:
        return exchange.duration_ns
    return subject.row.duration_ns if isinstance(subject.row, Transaction | ModelCall) else None


def least_durations_ns(subject: Subject) -> int | None:
    """Return the duration, and for a request without an answer the time that it has waited: no answer can be faster."""
    exchange = subject.exchange
    took_ns = durations_ns(subject)
    return waited_ns(exchange, subject.capture_info) if took_ns is None and exchange is not None else took_ns


def totals_ns(subject: Subject) -> int | None:
    """Return the duration of the whole call, with all its rounds, its polls and its task."""
    call = call_of(subject)
    return durations_ns(subject) if call is None else call.duration_ns


def sizes_bytes(subject: Subject) -> int | None:
    """Return the size that the row shows: request and response of an exchange together, both bodies of a transaction."""
    match subject.row:
        case Exchange(request=request, response=response):
            return request.size + (0 if response is None else response.size)
        case UnpairedMessage(message=message):
            return message.size
        case (
            Transaction(request=request_stream, response=response_stream)
            | ModelCall(transaction=Transaction(request=request_stream, response=response_stream))
        ):
            return sum(stream.body_bytes for stream in (request_stream, response_stream) if stream is not None)
        case Log(raw=raw):
            return len(raw)
        case _:
            return None


def message_bytes(subject: Subject) -> int | None:
    """Return the size of the message alone."""
    return sizes_bytes(subject) if subject.message is None else subject.message.size


def row_numbers(subject: Subject) -> int | None:
    """Return the number of the row."""
    return subject.row.row if isinstance(subject.row, Numbered) else None


def call_numbers(subject: Subject) -> int | None:
    """Return the number of the first row of the row's call."""
    call = call_of(subject)
    if call is not None:
        return call.row
    return subject.row.row if isinstance(subject.row, Exchange) else None


def progress_counts(subject: Subject) -> int | None:
    """Return the number of progress notifications."""
    return None if subject.exchange is None else subject.exchange.progress


def http_statuses(subject: Subject) -> list[int]:
    """Return the statuses of the transactions that have a response."""
    return [transaction.status for transaction in transactions(subject) if transaction.status]


# --- Times and bytes ---


def at_ns(subject: Subject) -> int:
    """Return the time of the message on the transcript's clock; for a row without messages, the time at which it began."""
    return subject.row.at_ns if subject.message is None else subject.message.at_ns


def payload(subject: Subject) -> bytes:
    """Return the bytes in which a filter looks for a text.

    These are the message, the line of stderr, or the text of a record; of a model call the prompt and the answer.
    """
    if subject.message is not None:
        return subject.message.raw
    row = subject.row
    if isinstance(row, Log):
        return row.raw
    if isinstance(row, ModelCall):
        return row.payload + b"\n" + answer_text(row.answer)
    if not isinstance(row, ChannelEvent):
        return b""
    match row.record:
        case Partial(data=data):
            return data
        case Damage(text=text) | Note(text=text) | Gap(why=text) | Intercept(text=text):
            return str(text).encode("utf-8", "replace")
        case _:
            return b""


def answer_text(answer: Answer | None) -> bytes:
    """Return the texts of an answer, put together from deltas, and its tool uses."""
    if answer is None:
        return b""
    texts: list[str] = [answer.error]
    for turn in (answer.turn, *answer.more):
        texts += [turn.text, turn.thinking, turn.refusal]
        texts += [f"{use.name} {use.arguments}" for use in turn.uses]
    return "\n".join(filter(None, texts)).encode("utf-8", "surrogatepass")

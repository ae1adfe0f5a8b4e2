"""Recorded replies: for each message of a recorded client, the steps of the server that followed, so that a mock can play them.

A reply belongs to a request of the client or to one of its notifications. Its steps are what the server sent, and where it
waited for the client. What the server sent on its own belongs to the reply to the client's message before it, or, over HTTP,
to the request on whose stream it came. Steps have the times of the capture; live values and clocks are the script's.

A mock of one server serves the replies of the captures it was given. Captures of a model API beside them are left out.

The classes are plain and slotted: a client waits for a mock's first answer, and each dataclass would delay that by 0.5 to 0.9
ms.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Final

from ...errors import AddressError, ReplayError
from ...records import CLIENT, Close, Exit, Note
from ...transcript.correlator import spellings
from ...transcript.mcp.codes import INPUT_REQUIRED, TASK
from ...transcript.mcp.methods import CANCELLED, LISTEN
from ...transcript.model import HTTP_REDIRECTS, CaptureInfo, ChannelEvent, Exchange, Kind, Message, Transcript, UnpairedMessage
from .matching import Owner, owner

if TYPE_CHECKING:
    from ...transcript.http.transaction import Transaction
    from .templates import TemplatePart

ROOTS: Final = "roots/list"

LIST_CHANGED: Final = "/list_changed"
"""The end of notifications after which clients ask for a list again: sent anew with each list, they would never stop asking."""

_REFUSED: Final = 400
_NO_ANSWERS: Final = (
    "the file that it was imported from has requests and none of their answers; record the server with mcpspy, or give a file "
    "that has both"
)


class SendMessage:
    """The server sends a message.

    `answers` says that it is the answer to the request; `once`, that it is left out when the reply is played again. `batch` is the
    batch that it was recorded in, if any. `parts` is the template of its line, made when it is first sent: most of a large capture
    is never sent.
    """

    __slots__ = ("answers", "at_ns", "batch", "exchange", "message", "once", "parts")

    def __init__(self, message: Message, exchange: Exchange | None, *, answers: bool = False, once: bool = False) -> None:
        self.message = message
        self.exchange = exchange
        self.at_ns = message.at_ns
        self.answers = answers
        self.once = once
        self.batch: RecordedBatch | None = None
        self.parts: list[TemplatePart] | None = None


class RecordedBatch:
    """A batch that the server sent: its payload, and the steps for its members about requests of the client, of these `rows`."""

    __slots__ = ("payload", "rows", "steps")

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.rows: set[int] = set()
        self.steps: list[SendMessage] = []

    def add(self, step: SendMessage, row: int) -> None:
        step.batch = self
        self.rows.add(row)
        self.steps.append(step)


class AwaitAnswer:
    """The server waits until the client has answered its request of this row."""

    __slots__ = ("at_ns", "row")

    def __init__(self, at_ns: int, row: int) -> None:
        self.at_ns = at_ns
        self.row = row


class AwaitCancel:
    """The server waits until the client cancels the request."""

    __slots__ = ("at_ns",)

    def __init__(self, at_ns: int) -> None:
        self.at_ns = at_ns


class ExitProcess:
    """The server's process ends while the client waits for it: with `code`, or by `signal`."""

    __slots__ = ("at_ns", "code", "signal")

    def __init__(self, at_ns: int, code: int | None, signal: str | None) -> None:
        self.at_ns = at_ns
        self.code = code
        self.signal = signal


ReplyStep = SendMessage | AwaitAnswer | AwaitCancel | ExitProcess


class RecordedReply:
    """The steps that followed one message of the client, which came at `at_ns`. `exchange` is that of a request."""

    __slots__ = ("at_ns", "exchange", "steps")

    def __init__(self, at_ns: int = 0, exchange: Exchange | None = None) -> None:
        self.at_ns = at_ns
        self.exchange = exchange
        self.steps: list[ReplyStep] = []

    @property
    def generates_ids(self) -> bool:
        """True if it holds ids by which its call goes on: a task's id, `requestState`, an elicitation's id."""
        answer = None if self.exchange is None else self.exchange.response
        if answer is not None and answer.result_type in (TASK, INPUT_REQUIRED):
            return True
        sent = (step.message for step in self.steps if isinstance(step, SendMessage))
        return any(message.kind is Kind.REQUEST and b'"elicitationId"' in message.raw for message in sent)


class RecordedReplies:
    """All replies of a transcript: by the row of the request, and by client and method of the notification, in order.

    In place of a method, a line of the client that is no message has its bytes.

    They never change once they are read, so any number of live clients share them. `opening` is what the server sent to a client
    before the client sent anything, `closing` what it sent after its input had ended.
    """

    __slots__ = ("closing", "exit_codes", "listeners", "missing_answers", "of_notification", "of_request", "opening", "wall_ns")

    def __init__(self) -> None:
        self.of_request: dict[int, RecordedReply] = {}
        self.of_notification: dict[tuple[Owner, str | bytes], list[RecordedReply]] = {}
        self.opening: dict[Owner, RecordedReply] = {}
        self.closing: dict[Owner, RecordedReply] = {}
        self.listeners: set[str] = set()
        """The id keys of subscriptions."""
        self.missing_answers: dict[int, str] = {}
        """The rows of requests whose answer may be missing in the capture, and why, in words that follow their names."""
        self.exit_codes: dict[int, int] = {}
        """By capture, the exit code of the server."""
        self.wall_ns = 0
        """Unix time at the zero of the transcript's clock."""

    @property
    def exchanges(self) -> list[Exchange]:
        """The client's requests that can be answered, in the order of the capture."""
        return [reply.exchange for reply in self.of_request.values() if reply.exchange is not None]

    @property
    def has_answers(self) -> bool:
        """True if the server sent anything."""
        of_notification = (reply for replies in self.of_notification.values() for reply in replies)
        replies = [*self.of_request.values(), *of_notification, *self.opening.values()]
        return any(isinstance(step, SendMessage) for reply in replies for step in reply.steps)


def read_replies(transcript: Transcript) -> RecordedReplies:
    """Read the replies of a transcript. Those of several captures stand side by side."""
    replies = RecordedReplies()
    headers = ((capture.header, capture.shift_ns) for capture in transcript.captures)
    replies.wall_ns = next((header.wall_ns - shift_ns for header, shift_ns in headers if header is not None), 0)
    items = _in_order(transcript)
    batches = _batches(item for item in items if not isinstance(item, ChannelEvent))
    readers = [_ReplyReader(capture, replies, batches) for capture in transcript.captures]
    for item in items:
        if isinstance(item, ChannelEvent):
            readers[item.capture].happened(item)
        else:
            readers[item[0].capture].feed(*item)
    return replies


def is_served(exchange: Exchange) -> bool:
    """Return whether a mock can reply to this request, if only by silence: not to what HTTP refused."""
    transaction, response = exchange.transaction, exchange.response
    if transaction is None or transaction.status < HTTP_REDIRECTS:
        return True
    if response is None:
        return False
    id = exchange.request.id or ""  # an error with another id, or none, is about a session, or about HTTP
    return response.id in (id, *spellings(id))


def _why_incomplete(capture: CaptureInfo) -> str:
    """Say why an answer may be missing in a capture; nothing if the capture is complete."""
    if capture.unkept:
        return "was recorded past --max-size, where answers were not kept"
    if capture.gaps or capture.damages or not (capture.complete or capture.exit):
        return "was recorded without its answer: the capture is incomplete"
    if capture.header is not None and "imported" in capture.header.tapped:
        from ...transcript.absent_facts import lacks

        if lacks(capture, "ends"):
            return "was recorded without its answer: the file that was imported does not have it, or ends before"
    return ""


def _in_order(transcript: Transcript) -> list[ChannelEvent | tuple[Message, Exchange | UnpairedMessage]]:
    """List every message with its row, and every event, in the order in which a tap saw them."""
    items: list[tuple[int, int, int, ChannelEvent | tuple[Message, Exchange | UnpairedMessage]]] = []
    for capture in transcript.captures:
        if capture.transactions and not capture.is_model:
            from .http.events import bare_events  # stdio need not wait for it

            bare = bare_events(capture)
            items += [(event.at_ns, event.capture, event.message.number, (event.message, event)) for event in bare]
    for row in transcript.rows:
        if isinstance(row, ChannelEvent):
            items.append((row.at_ns, row.capture, row.record.number, row))
        elif isinstance(row, Exchange):
            if row.is_by_mcpspy:
                continue  # no client sent it
            items += [(message.at_ns, message.capture, message.number, (message, row)) for message in row.messages]
        elif isinstance(row, UnpairedMessage):
            items.append((row.at_ns, row.capture, row.message.number, (row.message, row)))
    items.sort(key=lambda item: item[:3])
    return [item[3] for item in items]


def _batches(messages: Iterable[tuple[Message, Exchange | UnpairedMessage]]) -> dict[int, RecordedBatch | Message]:
    """Return the server's batches by the identity of their payload; of one about no request of the client its first message.

    Batches with a request of the server are left out: their members go out one by one.
    """
    batches: dict[int, RecordedBatch | Message] = {}
    asking: set[int] = set()
    for message, row in messages:
        if not message.batch or message.sender == CLIENT:
            continue
        key = id(message.batch)
        known = batches.setdefault(key, message)
        if isinstance(row, Exchange) and row.sender != CLIENT:
            asking.add(key)
        elif isinstance(row, Exchange) and isinstance(known, Message):
            batches[key] = RecordedBatch(message.batch)
    return {key: batch for key, batch in batches.items() if key not in asking}


class _ReplyReader:
    """A reader of one capture into `replies`: `feed` takes its messages and `happened` its events, in their order."""

    __slots__ = (
        "_batches", "_capture", "_current", "_is_closed", "_is_http", "_latest", "_of_server_request", "_of_transaction", "_replies",
        "_waiting",
    )  # fmt: skip

    def __init__(self, capture: CaptureInfo, replies: RecordedReplies, batches: dict[int, RecordedBatch | Message]) -> None:
        self._batches = batches
        self._capture = capture
        self._replies = replies
        self._is_http = bool(capture.transactions)
        self._is_closed = False
        """True once the client has closed the server's input, or somebody has stopped the server."""
        self._current: dict[int, RecordedReply] = {}
        """By client, the reply to its last message: on stdio there is one client."""
        self._latest: RecordedReply | None = None
        """The reply to the last message without a session over HTTP, which a stream without a session may follow."""
        self._waiting: dict[int, Exchange] = {}
        """The client's requests that are not answered yet, by row."""
        self._of_server_request: dict[int, RecordedReply] = {}
        """The replies in which the server asks, by the rows of its requests."""
        self._of_transaction: dict[int, RecordedReply] = {}

    def feed(self, message: Message, row: Exchange | UnpairedMessage) -> None:
        if message.sender == CLIENT:
            reply = self._from_client(message, row)
            if reply is not None:
                self._current[self._client(message)] = reply
                if _is_without_session(self._capture.transaction_of(message.stream)):
                    self._latest = reply
        else:
            self._from_server(message, row)

    def happened(self, event: ChannelEvent) -> None:
        match event.record:
            case Close(stream=stream, by="client") if self._is_stdin(stream):
                self._is_closed = True
                self._replies.closing[event.capture, ""] = self._current[0] = RecordedReply(event.at_ns)
            case Note(topic="signal" | "escalation"):
                self._is_closed = True
            case Exit(code=code, signal=signal):
                self._replies.exit_codes[event.capture] = code or 0
                reply = self._current.get(0)
                if reply is not None and reply.exchange is None and self._waiting:  # the last call that waits for it
                    reply = self._replies.of_request[next(reversed(self._waiting))]
                if self._is_closed or reply is None or reply.exchange is None or reply.exchange.row not in self._waiting:
                    return
                reply.steps.append(ExitProcess(event.at_ns, code, signal))
                self._replies.missing_answers.pop(reply.exchange.row, None)

    # Messages of the client

    def _from_client(self, message: Message, row: Exchange | UnpairedMessage) -> RecordedReply | None:
        """Begin the reply to a client's message, or continue the one that it belongs to."""
        if isinstance(row, UnpairedMessage):
            is_noise = message.kind is Kind.MALFORMED and not self._is_http
            return self._notification(message) if message.kind is Kind.NOTIFICATION or is_noise else None
        if row.request is message:
            return self._request(row) if row.sender == CLIENT else None
        if row.sender == CLIENT:
            reply = self._replies.of_request.get(row.row)
            if reply is not None and message.method == CANCELLED:
                reply.steps.append(AwaitCancel(message.at_ns))
                self._waiting.pop(row.row, None)
            return reply
        reply = self._of_server_request.get(row.row)
        if reply is not None and row.response is message:
            reply.steps.append(AwaitAnswer(message.at_ns, row.row))
        return reply

    def _notification(self, message: Message) -> RecordedReply:
        reply = RecordedReply(message.at_ns)
        client = owner(message.capture, self._capture.transaction_of(message.stream))
        key = message.raw if message.kind is Kind.MALFORMED else message.method or ""
        self._replies.of_notification.setdefault((client, key), []).append(reply)
        return reply

    def _request(self, row: Exchange) -> RecordedReply | None:
        if not is_served(row):
            return None
        reply = self._replies.of_request[row.row] = RecordedReply(row.at_ns, row)
        if row.method == LISTEN and row.request.id is not None:
            self._replies.listeners.add(row.request.id)
        self._waiting[row.row] = row
        if row.response is None and row.cancelled is None and row.method != LISTEN and (why := _why_incomplete(self._capture)):
            self._replies.missing_answers[row.row] = why
        if row.transaction is not None:
            self._of_transaction.setdefault(row.transaction.number, reply)
        return reply

    # Messages of the server

    def _from_server(self, message: Message, row: Exchange | UnpairedMessage) -> None:
        if isinstance(row, UnpairedMessage):
            if message.raw and not self._is_answer_of_http(message):
                self._on_its_own(message, None)
        elif row.sender == CLIENT:
            self._for_request(message, row)
        elif row.request is message:
            reply = self._of_server_request[row.row] = self._reply_with_server_request(message, row)
            reply.steps.append(SendMessage(message, row))
        else:
            self._on_its_own(message, row)

    def _for_request(self, message: Message, row: Exchange) -> None:
        reply = self._replies.of_request.get(row.row)
        if reply is not None:
            answers = row.response is message
            step = SendMessage(message, row, answers=answers)
            reply.steps.append(step)
            batch = self._batches.get(id(message.batch)) if message.batch else None
            if isinstance(batch, RecordedBatch):
                batch.add(step, row.row)
            if answers:
                self._waiting.pop(row.row, None)

    def _on_its_own(self, message: Message, row: Exchange | None) -> None:
        if message.batch and row is None:
            whole = self._batches.get(id(message.batch))
            if whole not in (None, message):
                return  # it goes out with the answers in its batch, or with the first message
            message = copy(message)
            message.kind, message.raw = Kind.MALFORMED, b"[%b]" % message.raw if whole is None else message.batch
        reply = self._reply_around(message)
        if row is None:
            reply = self._reply_before_answer(message, reply)
        is_over = reply.exchange is not None and reply.exchange.row not in self._waiting and not self._is_in(message, reply)
        is_noise = message.kind is Kind.MALFORMED and not self._is_http
        is_once = is_over or is_noise or (message.method or "").endswith(LIST_CHANGED)
        reply.steps.append(SendMessage(message, row, once=is_once))

    def _reply_before_answer(self, message: Message, current: RecordedReply) -> RecordedReply:
        """Find the reply in whose answer the client sees that this came before it: of the requests that wait, the first answered.

        After an answer a message stays with the `current` reply: it may be about that. So does an answer to a line that is none.
        """
        exchange = current.exchange
        is_about = message.kind in (Kind.RESULT, Kind.ERROR) if exchange is None else exchange.row not in self._waiting
        if is_about or self._is_in(message, current):
            return current
        client = owner(message.capture, self._capture.transaction_of(message.stream))
        requests = [request for request in self._waiting.values() if owner(request.capture, request.transaction) == client]
        answered = [(request.response.at_ns, request.row) for request in requests if request.response is not None]
        return self._replies.of_request[min(answered)[1]] if answered else current

    def _is_in(self, message: Message, reply: RecordedReply) -> bool:
        """Return whether a message came in the response to the POST of the request that this replies to."""
        transaction = self._capture.transaction_of(message.stream)
        return transaction is not None and self._of_transaction.get(transaction.number) is reply

    def _is_answer_of_http(self, message: Message) -> bool:
        """Return whether an unpaired message is the body of a response that HTTP alone decides, or no message in a body."""
        transaction = self._capture.transaction_of(message.stream)
        if transaction is None or transaction.is_stream:
            return False
        return transaction.status >= HTTP_REDIRECTS or message.kind is not Kind.NOTIFICATION

    def _reply_around(self, message: Message) -> RecordedReply:
        """Find the reply during which the server sent something on its own."""
        transaction = self._capture.transaction_of(message.stream)
        if transaction is not None and transaction.number in self._of_transaction:
            return self._of_transaction[transaction.number]
        current = self._current.get(self._client(message))
        if current is None and _is_without_session(transaction):
            current = self._latest
        if current is not None:
            return current
        return self._replies.opening.setdefault(owner(message.capture, transaction), RecordedReply())

    def _reply_with_server_request(self, message: Message, request: Exchange) -> RecordedReply:
        """Find the reply during which the server asked.

        It is the current one, unless only other requests were answered after this one was sent. After a notification of the
        client the server asks for a request that waits, except for roots, which the notification may be about. Over HTTP a stream
        may say for which request.
        """
        current = self._reply_around(message)
        transaction = self._capture.transaction_of(message.stream)
        if request.response is None or (transaction is not None and transaction.number in self._of_transaction):
            return current
        if current.exchange is None and request.method == ROOTS:
            return current
        client, answered_ns = owner(message.capture, transaction), request.response.at_ns

        def may_have_asked(exchange: Exchange) -> bool:
            is_later = exchange.response is None or exchange.response.at_ns >= answered_ns
            return is_later and owner(exchange.capture, exchange.transaction) == client

        if current.exchange is not None and current.exchange.row in self._waiting and may_have_asked(current.exchange):
            return current
        latest = next(filter(may_have_asked, reversed(self._waiting.values())), None)
        return current if latest is None else self._replies.of_request[latest.row]

    # Both

    def _client(self, message: Message) -> int:
        """Identify the client of a message: over HTTP by its scope."""
        transaction = self._capture.transaction_of(message.stream)
        return 0 if transaction is None else id(transaction.scope)

    def _is_stdin(self, stream: int) -> bool:
        opened = self._capture.streams.get(stream)
        return opened is not None and opened.name == "stdin"


def _is_without_session(transaction: Transaction | None) -> bool:
    return transaction is not None and transaction.scope.is_one_transaction


def served_replies(transcript: Transcript, address: str, *, over_http: bool) -> RecordedReplies:
    """Return the replies of the captures at `address`. With `over_http`, responses without a message are enough.

    Raises: AddressError: if they are of several servers. ReplayError: if there is nothing to serve.
    """
    captures = [capture for capture in transcript.captures if not capture.is_model]
    servers = list(dict.fromkeys((capture.header.label if capture.header else "") for capture in captures))
    if len(servers) > 1:
        raise AddressError(
            address,
            f"these are captures of {len(servers)} servers ({', '.join(servers)}), and a mock plays one; name those of one",
        )
    if transcript.captures and not captures:
        raise ReplayError(address, "it is of a model's API, which speaks HTTP alone; add --listen 127.0.0.1:0")
    replies = read_replies(transcript)
    if replies.missing_answers and not replies.has_answers and (captures[0].header and "imported" in captures[0].header.tapped):
        raise ReplayError(address, _NO_ANSWERS)
    if not replies.has_answers and not (over_http and _responses(transcript)):
        raise ReplayError(address, _why_nothing(transcript))
    return replies


def refused_statuses(transcript: Transcript) -> list[int]:
    """Return the HTTP statuses of the server's refusals, as of one that wants a login first; not those of a tap."""
    return [transaction.status for transaction in _responses(transcript) if transaction.status >= _REFUSED]


def _responses(transcript: Transcript) -> list[Transaction]:
    """List the transactions with a response of the server that says something; not those that a tap answered."""
    return [
        transaction
        for capture in transcript.captures
        for transaction in capture.transactions.values()
        if (response := transaction.response) is not None
        and not response.injected
        and (response.body_bytes or transaction.status >= _REFUSED)
    ]


def _why_nothing(transcript: Transcript) -> str:
    """Say why there is nothing to serve, and what to do."""
    statuses = refused_statuses(transcript)
    if statuses:
        counts = ", ".join(f"{status} ×{statuses.count(status)}" for status in dict.fromkeys(statuses))
        return f"its server refused everything over HTTP ({counts}), for which stdio has no words; --listen 127.0.0.1:0 serves that"
    if _responses(transcript):
        return "its server answered without messages over HTTP, for which stdio has no words; --listen 127.0.0.1:0 serves that"
    failure = next(filter(None, (capture.failed_start for capture in transcript.captures)), "")
    if failure:
        return f"its server could not be started ({failure}), so there is nothing to serve; mcpspy list names older recordings"
    if not any(capture.messages for capture in transcript.captures):
        return "it holds no messages, so there is nothing to serve; record what a client does, with mcpspy run or mcpspy proxy"
    return "it holds no messages from a server, so there is nothing to serve; mcpspy show says what happened"

"""A recording read as a play: for each thing the client said, the scene that followed, so that a mock can perform it again.

A scene belongs to a request of the client or to one of its notifications, and is a row of steps: what the server said, and where it
waited for the client. What the server said on its own belongs to the scene of the client's message before it, or, over HTTP, to
the request on whose stream it came. Refuses to know clocks and live values: steps have the times of the recording.

The classes are plain and slotted: a client waits for a mock's first answer, and each dataclass would put that off by 0.5 to 0.9 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...records import CLIENT, Close, Exit, Note
from ...transcript.correlate import spellings
from ...transcript.mcp.fields import INPUT_REQUIRED, TASK
from ...transcript.mcp.methods import CANCELLED, LISTEN
from ...transcript.model import HTTP_REDIRECTS, CaptureInfo, ChannelEvent, Exchange, Kind, Message, Transcript, UnpairedMessage
from .owner import owner

if TYPE_CHECKING:
    from .owner import Owner
    from .templates import TemplatePart

ROOTS: Final = "roots/list"

LIST_CHANGED: Final = "/list_changed"
"""How the notifications end after which clients ask for a list again: said anew with each list, they would never stop asking."""


class SendMessage:
    """The server says a message.

    `answers` says that it is the answer to the scene's request; `once`, that it is left out when the scene is played again.
    `parts` are its line with blanks, once somebody made it: most of a large recording is never said.
    """

    __slots__ = ("answers", "at_ns", "exchange", "message", "once", "parts")

    def __init__(self, message: Message, exchange: Exchange | None, *, answers: bool = False, once: bool = False) -> None:
        self.message = message
        self.exchange = exchange
        self.at_ns = message.at_ns
        self.answers = answers
        self.once = once
        self.parts: list[TemplatePart] | None = None


class AwaitAnswer:
    """The server had its request of this row answered."""

    __slots__ = ("at_ns", "row")

    def __init__(self, at_ns: int, row: int) -> None:
        self.at_ns = at_ns
        self.row = row


class AwaitCancel:
    """The client gave the scene's request up."""

    __slots__ = ("at_ns",)

    def __init__(self, at_ns: int) -> None:
        self.at_ns = at_ns


class ExitProcess:
    """The server's process ended while the client waited for it: with `code`, or by `signal`."""

    __slots__ = ("at_ns", "code", "signal")

    def __init__(self, at_ns: int, code: int | None, signal: str | None) -> None:
        self.at_ns = at_ns
        self.code = code
        self.signal = signal


ReplyStep = SendMessage | AwaitAnswer | AwaitCancel | ExitProcess


class RecordedReply:
    """What followed one message of the client's, which came at `at_ns`. `exchange` is that of a request."""

    __slots__ = ("at_ns", "exchange", "steps")

    def __init__(self, at_ns: int = 0, exchange: Exchange | None = None) -> None:
        self.at_ns = at_ns
        self.exchange = exchange
        self.steps: list[ReplyStep] = []

    @property
    def gives(self) -> bool:
        """Whether the server gave names out in it by which its call goes on: a task's id, `requestState`, an elicitation's id."""
        answer = None if self.exchange is None else self.exchange.response
        if answer is not None and answer.result_type in (TASK, INPUT_REQUIRED):
            return True
        asked = (one.message for one in self.steps if isinstance(one, SendMessage) and one.message.kind is Kind.REQUEST)
        return any(b'"elicitationId"' in one.raw for one in asked)


class RecordedReplies:
    """All scenes of a recording: by the row of the request, and by client and method of the notification, in their order.

    They never change once they are read, so that any number of live clients are played to from the same ones.
    `opening` is what the server said to a client before it was asked, `closing` what it said when its input had ended.
    """

    __slots__ = ("closing", "exit_codes", "listeners", "of_notification", "of_request", "opening", "unknown", "wall_ns")

    def __init__(self) -> None:
        self.of_request: dict[int, RecordedReply] = {}
        self.of_notification: dict[tuple[Owner, str], list[RecordedReply]] = {}
        self.opening: dict[Owner, RecordedReply] = {}
        self.closing: dict[Owner, RecordedReply] = {}
        self.listeners: set[str] = set()
        """The tokens of the ids of subscriptions."""
        self.unknown: dict[int, str] = {}
        """The rows of requests of which nobody knows whether they were answered, and why, in words that follow on their names."""
        self.exit_codes: dict[int, int] = {}
        """With what the server of each capture exited."""
        self.wall_ns = 0
        """Unix time at the zero of the transcript's clock."""

    @property
    def exchanges(self) -> list[Exchange]:
        """The requests of the client that can be answered, in the order of the recording."""
        return [scene.exchange for scene in self.of_request.values() if scene.exchange is not None]

    @property
    def has_answers(self) -> bool:
        """Whether the server said anything."""
        of_notification = (one for some in self.of_notification.values() for one in some)
        told = [*self.of_request.values(), *of_notification, *self.opening.values()]
        return any(isinstance(step, SendMessage) for scene in told for step in scene.steps)


def read_replies(transcript: Transcript) -> RecordedReplies:
    """The scenes of a transcript. Those of several captures stand side by side."""
    found = RecordedReplies()
    found.wall_ns = next((one.header.wall_ns - one.shift_ns for one in transcript.captures if one.header is not None), 0)
    readers = [_ReplyReader(source, found) for source in transcript.captures]
    for one in _in_order(transcript):
        if isinstance(one, ChannelEvent):
            readers[one.capture].happened(one)
        else:
            readers[one[0].capture].feed(*one)
    return found


def is_served(exchange: Exchange) -> bool:
    """Whether a request of the client's has something that a mock can say to it, if only silence: what HTTP refused has not."""
    transaction, response = exchange.transaction, exchange.response
    if transaction is None or transaction.status < HTTP_REDIRECTS:
        return True
    if response is None:
        return False
    id = exchange.request.id or ""  # an error that names another, or none, is about a session, or about HTTP
    return response.id in (id, *spellings(id))


def _lack(source: CaptureInfo) -> str:
    """Why an answer may be missing in a capture; empty where all is there."""
    if source.unkept:
        return "was recorded past --max-size, where answers were not kept"
    if source.gaps or source.damages or not (source.complete or source.exit):
        return "was recorded without its answer: the capture is incomplete"
    return ""


def _in_order(transcript: Transcript) -> list[ChannelEvent | tuple[Message, Exchange | UnpairedMessage]]:
    """Every message with its row, and every event, in the order in which a tap saw them."""
    found: list[tuple[int, int, int, ChannelEvent | tuple[Message, Exchange | UnpairedMessage]]] = []
    for row in transcript.rows:
        if isinstance(row, ChannelEvent):
            found.append((row.at_ns, row.capture, row.record.number, row))
        elif isinstance(row, Exchange):
            found += [(one.at_ns, one.capture, one.number, (one, row)) for one in row.messages]
        elif isinstance(row, UnpairedMessage):
            found.append((row.at_ns, row.capture, row.message.number, (row.message, row)))
    found.sort(key=lambda one: one[:3])
    return [one[3] for one in found]


class _ReplyReader:
    """Reads one capture into `scenes`: `feed` takes its messages and `happened` its events, in their order."""

    __slots__ = ("_asking", "_current", "_is_http", "_is_left", "_of_transaction", "_scenes", "_source", "_waiting")

    def __init__(self, source: CaptureInfo, scenes: RecordedReplies) -> None:
        self._source = source
        self._scenes = scenes
        self._is_http = bool(source.transactions)
        self._is_left = False
        """Whether the client has closed the server's input, or somebody has sent the server away."""
        self._current: dict[int, RecordedReply] = {}
        """The scene of the client's last message, by whose it was: on stdio there is one client."""
        self._waiting: dict[int, Exchange] = {}
        """Requests of the client that are not answered yet, by their rows."""
        self._asking: dict[int, RecordedReply] = {}
        """The scenes in which the server asks, by the rows of its requests."""
        self._of_transaction: dict[int, RecordedReply] = {}

    def feed(self, message: Message, row: Exchange | UnpairedMessage) -> None:
        if message.sender == CLIENT:
            scene = self._heard(message, row)
            if scene is not None:
                self._current[self._who(message)] = scene
        elif message.kind is not Kind.MALFORMED:
            self._said(message, row)
        elif not self._is_http and message.raw:  # what is no JSON-RPC is of interest as noise on stdout alone
            self._about(message).steps.append(SendMessage(message, None, once=True))

    def happened(self, event: ChannelEvent) -> None:
        match event.record:
            case Close(stream=stream, by="client") if self._is_stdin(stream):
                self._is_left = True
                self._scenes.closing[event.capture, ""] = self._current[0] = RecordedReply(event.at_ns)
            case Note(topic="signal" | "escalation"):
                self._is_left = True
            case Exit(code=code, signal=signal):
                self._scenes.exit_codes[event.capture] = code or 0
                scene = self._current.get(0)
                if (
                    not self._is_left
                    and scene is not None
                    and scene.exchange is not None
                    and scene.exchange.row in self._waiting
                ):
                    scene.steps.append(ExitProcess(event.at_ns, code, signal))
                    self._scenes.unknown.pop(scene.exchange.row, None)

    # The client

    def _heard(self, message: Message, row: Exchange | UnpairedMessage) -> RecordedReply | None:
        """The scene that a message of the client's begins, or goes on with."""
        if isinstance(row, UnpairedMessage):
            return self._told(message) if message.kind is Kind.NOTIFICATION else None
        if row.request is message:
            return self._asked(row) if row.sender == CLIENT else None
        if row.sender == CLIENT:
            scene = self._scenes.of_request.get(row.row)
            if scene is not None and message.method == CANCELLED:
                scene.steps.append(AwaitCancel(message.at_ns))
                self._waiting.pop(row.row, None)
            return scene
        scene = self._asking.get(row.row)
        if scene is not None and row.response is message:
            scene.steps.append(AwaitAnswer(message.at_ns, row.row))
        return scene

    def _told(self, message: Message) -> RecordedReply:
        scene = RecordedReply(message.at_ns)
        who = owner(message.capture, self._source.transaction_of(message.stream))
        self._scenes.of_notification.setdefault((who, message.method or ""), []).append(scene)
        return scene

    def _asked(self, row: Exchange) -> RecordedReply | None:
        if not is_served(row):
            return None
        scene = self._scenes.of_request[row.row] = RecordedReply(row.at_ns, row)
        if row.method == LISTEN and row.request.id is not None:
            self._scenes.listeners.add(row.request.id)
        self._waiting[row.row] = row
        if row.response is None and row.cancelled is None and row.method != LISTEN and (why := _lack(self._source)):
            self._scenes.unknown[row.row] = why
        if row.transaction is not None:
            self._of_transaction.setdefault(row.transaction.number, scene)
        return scene

    # The server

    def _said(self, message: Message, row: Exchange | UnpairedMessage) -> None:
        if isinstance(row, UnpairedMessage):
            if message.kind is Kind.NOTIFICATION:  # answers to nothing are left out
                self._say_on_its_own(message, None)
        elif row.sender == CLIENT:
            self._say_of_request(message, row)
        elif row.request is message:
            scene = self._asking[row.row] = self._asker(message, row)
            scene.steps.append(SendMessage(message, row))
        else:
            self._say_on_its_own(message, row)

    def _say_of_request(self, message: Message, row: Exchange) -> None:
        scene = self._scenes.of_request.get(row.row)
        if scene is not None:
            answers = row.response is message
            scene.steps.append(SendMessage(message, row, answers=answers))
            if answers:
                self._waiting.pop(row.row, None)

    def _say_on_its_own(self, message: Message, row: Exchange | None) -> None:
        scene = self._about(message)
        is_over = scene.exchange is not None and scene.exchange.row not in self._waiting
        scene.steps.append(SendMessage(message, row, once=is_over or (message.method or "").endswith(LIST_CHANGED)))

    def _about(self, message: Message) -> RecordedReply:
        """The scene in which the server says something on its own."""
        transaction = self._source.transaction_of(message.stream)
        if transaction is not None and transaction.number in self._of_transaction:
            return self._of_transaction[transaction.number]
        current = self._current.get(self._who(message))
        return (
            self._scenes.opening.setdefault(owner(message.capture, transaction), RecordedReply())
            if current is None
            else current
        )

    def _asker(self, message: Message, asked: Exchange) -> RecordedReply:
        """The scene in which the server asks: the current one, unless only others were answered after its question had been.

        After a notification of the client's it asks for a request that waits, but for the roots, which such news may be of. Over HTTP
        a stream may say for which.
        """
        current = self._about(message)
        transaction = self._source.transaction_of(message.stream)
        if asked.response is None or (transaction is not None and transaction.number in self._of_transaction):
            return current
        if current.exchange is None and asked.method == ROOTS:
            return current
        who, answered_ns = owner(message.capture, transaction), asked.response.at_ns

        def waits(one: Exchange) -> bool:
            late = one.response is None or one.response.at_ns >= answered_ns
            return late and owner(one.capture, one.transaction) == who

        if current.exchange is not None and current.exchange.row in self._waiting and waits(current.exchange):
            return current
        latest = next(filter(waits, reversed(self._waiting.values())), None)
        return current if latest is None else self._scenes.of_request[latest.row]

    # What they have in common

    def _who(self, message: Message) -> int:
        """Whose the message is: over HTTP, a scope has all that belongs together."""
        transaction = self._source.transaction_of(message.stream)
        return 0 if transaction is None else id(transaction.scope)

    def _is_stdin(self, stream: int) -> bool:
        opened = self._source.streams.get(stream)
        return opened is not None and opened.name == "stdin"

"""What a recorded client did, as a plan for doing it again: what it sent, and what it had been told before each thing it sent.

One step after the other, in the order of the recording: so calls that overlapped overlap again, and one that began after another
was answered waits for that answer. Refuses to know live values and clocks: steps have the times of the recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from ..records import CLIENT, SERVER, Close, Exit
from ..transcript.mcp_methods import CANCELLED, OPENINGS, PROGRESS
from ..transcript.model import (
    HTTP_ERRORS,
    HTTP_REDIRECTS,
    NO_ANSWERS,
    Event,
    Exchange,
    Kind,
    Message,
    Source,
    Stray,
    Transcript,
)
from ..transcript.transaction import Scope, Transaction

INITIALIZED: Final = "notifications/initialized"
UNKEPT: Final = "it was recorded past --max-size, where payloads are not kept"

Key: TypeAlias = tuple[str, str]
"""What the server says on its own is told apart by its method and by what it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """The client sends a request, a notification, or what is no JSON-RPC. `gap_ns` is how long that was after the step before."""

    message: Message
    row: int
    exchange: Exchange | None = None
    gap_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """The client gives a request up, `after_ns` after it had sent it: by `message`, or by closing the stream of its answer.

    `is_late` says that the answer had come already.
    """

    exchange: Exchange
    message: Message | None
    after_ns: int
    is_late: bool = False
    gap_ns: int = 0

    @property
    def row(self) -> int:
        return self.exchange.row


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitAnswer:
    """The client has the answer to its request of this row. `is_recorded`: or it has waited for one in vain, until it left."""

    row: int
    is_recorded: bool = True
    gap_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitTold:
    """The server has said something on its own; `row` is that of the client's request that it belongs to, else 0."""

    key: Key
    row: int = 0
    gap_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitQuestion:
    """The client has answered the server's request of this row."""

    key: Key
    row: int
    gap_ns: int = 0


Step: TypeAlias = Send | Cancel | AwaitAnswer | AwaitTold | AwaitQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that the recorded client sent and that is not sent again, and why."""

    row: int
    message: Message
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one client did. `rows` are all that it and its server asked, and what they said beside that.

    `listens` says that it would hear what the server says on its own, over HTTP by a GET of its own.
    """

    steps: tuple[Step, ...]
    rows: frozenset[int] = frozenset()
    left_out: tuple[LeftOut, ...] = ()
    listens: bool = True

    @property
    def sends(self) -> list[Send]:
        """What it sends, in order."""
        return [step for step in self.steps if isinstance(step, Send)]

    @property
    def requests(self) -> list[Exchange]:
        """Its requests, in order."""
        return [step.exchange for step in self.sends if step.exchange is not None]

    def only(self, rows: Iterable[int], needs: Callable[[int], Iterable[int]] = lambda _: ()) -> Plan:
        """The plan for these rows alone, with the handshake and with what they need: `needs` are the rows that one row needs."""
        kept = _closed(rows, needs) | {step.row for step in self.sends if _is_handshake(step.message)}
        return replace(
            self, steps=tuple(_kept(self.steps, kept)), left_out=tuple(one for one in self.left_out if one.row in kept)
        )


def plans(transcript: Transcript) -> list[Plan]:
    """The plans of all clients of a transcript, in the order in which they began."""
    readers: dict[tuple[int, str], _Reader] = {}
    for row in transcript.rows:
        if isinstance(row, Exchange | Stray):
            source = transcript.sources[row.capture]
            who = (source.index, _client(source, row))
            if who not in readers:
                readers[who] = _Reader(source)
            readers[who].feed(row)
        elif isinstance(row, Transaction) and row.method == "DELETE" and 0 < row.status < HTTP_REDIRECTS:
            for reader in readers.values():
                reader.deleted(row)
    for row in transcript.rows:
        if isinstance(row, Event) and (reader := readers.get((row.capture, ""))) is not None:
            reader.happened(row)
    made = [one.close() for one in readers.values()]
    return [one for one in made if one.sends]


def key_of(message: Message) -> Key:
    """What a thing that the server says on its own is told apart by."""
    return message.method or "", message.target or ""


def _client(source: Source, row: Exchange | Stray) -> str:
    """Whose a row is: over HTTP its session's; where there are none, its client's by name; on stdio there is one client."""
    if not source.transactions:
        return ""
    message = row.request if isinstance(row, Exchange) else row.message
    transaction = source.transaction_of(message.stream)
    if transaction is None:
        return ""
    scope = transaction.scope
    if not scope.is_one_transaction:
        while scope.before is not None:  # the session that took the place of a lost one is the same client's
            scope = scope.before
        return scope.session or f"stream {scope.stream}"
    alike = {
        one.scope.session or f"stream {one.scope.stream}"
        for one in source.transactions.values()
        if not one.scope.is_one_transaction and one.scope.client == scope.client and one.at_ns >= transaction.at_ns
    }
    return min(alike) if len(alike) == 1 else f"client {scope.client}"  # a first try, before its session began


class _Reader:
    """Reads the rows of one client; `close` makes its plan."""

    __slots__ = ("_deleted", "_done", "_left_ns", "_left_out", "_rows", "_source", "_timed")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._timed: list[tuple[int, int, Step]] = []
        self._left_out: list[LeftOut] = []
        self._rows: set[int] = set()
        self._left_ns = source.last_ns + source.shift_ns
        self._done = False
        self._deleted: Scope | None = None
        """The session that the client has ended."""

    def feed(self, row: Exchange | Stray) -> None:
        self._rows.add(row.row)
        if isinstance(row, Stray):
            self._stray(row)
        elif row.sender == CLIENT:
            self._asked(row)
        else:
            self._was_asked(row)

    def deleted(self, row: Transaction) -> None:
        """A session has been ended, as a driver ends its own when all is done."""
        if row.capture == self._source.index and row.scope.session:
            self._deleted = row.scope

    def happened(self, event: Event) -> None:
        """On stdio: the client leaves, or the server ends; what was not answered by then never will be."""
        match event.record:
            case Close(by="client") | Exit() if not self._done:
                self._done = True
                self._left_ns = event.at_ns

    def close(self) -> Plan:
        # answers that never came are awaited as long as the recorded client did
        requests = [step.exchange for _, _, step in self._timed if isinstance(step, Send) and step.exchange is not None]
        for one in requests:
            if one.response is None and one.cancelled is None and one.left_ns is None and not _status(one):
                self._add(max(self._left_ns, one.at_ns), 1 << 62, AwaitAnswer(row=one.row, is_recorded=False))
        self._timed.sort(key=lambda one: one[:2])
        steps: list[Step] = []
        before_ns = self._timed[0][0] if self._timed else 0
        for at_ns, _, step in self._timed:
            steps.append(replace(step, gap_ns=at_ns - before_ns))
            before_ns = at_ns
        return Plan(steps=tuple(steps), rows=frozenset(self._rows), left_out=tuple(self._left_out), listens=self._listens())

    def _add(self, at_ns: int, number: int, step: Step) -> None:
        self._timed.append((at_ns, number, step))

    def _told(self, message: Message, row: int = 0) -> None:
        self._add(message.at_ns, message.number, AwaitTold(key=key_of(message), row=row))

    def _stray(self, row: Stray) -> None:
        message = row.message
        if message.sender == SERVER:
            if message.kind is Kind.NOTIFICATION:
                self._told(message)
            return
        why = ""
        if message.unkept_bytes:
            why = UNKEPT
        elif message.kind in (Kind.RESULT, Kind.ERROR):
            why = "it answers nothing that was asked"
        elif message.method == CANCELLED:
            why = "it cancels nothing that was asked"
        if why:
            self._left_out.append(LeftOut(row=row.row, message=message, why=why))
        else:
            self._add(message.at_ns, message.number, Send(message=message, row=row.row))

    def _asked(self, row: Exchange) -> None:
        request, response = row.request, row.response
        why = _why_not(row)
        if self._deleted is not None and row.transaction is not None and row.transaction.scope is self._deleted:
            why = "the client had ended the session"
        if why:
            self._left_out.append(LeftOut(row=row.row, message=request, why=why))
            return
        self._add(row.at_ns, request.number, Send(message=request, row=row.row, exchange=row))
        if response is not None:
            is_owed = (
                row.cancelled is None or response.at_ns <= row.cancelled.at_ns
            )  # who was told to stop may or may not answer
            self._add(response.at_ns, response.number, AwaitAnswer(row=row.row, is_recorded=is_owed))
        elif row.transaction is not None and row.transaction.response is not None and _status(row):
            opened = row.transaction.response
            self._add(opened.at_ns, opened.opened.number, AwaitAnswer(row=row.row))
        for one in row.notifications:
            if one.sender == SERVER:
                self._told(one, row.row if one.method == PROGRESS else 0)
            elif one is row.cancelled:
                is_late = response is not None and response.at_ns <= one.at_ns
                cancel = Cancel(exchange=row, message=one, after_ns=one.at_ns - row.at_ns, is_late=is_late)
                self._add(one.at_ns, one.number, cancel)
        if row.left_ns is not None:
            self._add(row.left_ns, request.number, Cancel(exchange=row, message=None, after_ns=row.left_ns - row.at_ns))

    def _was_asked(self, row: Exchange) -> None:
        if row.response is not None:
            key = key_of(row.request)
            self._add(row.response.at_ns, row.response.number, AwaitQuestion(key=key, row=row.row))
        for one in row.notifications:
            if one.sender == SERVER:
                self._told(one)

    def _listens(self) -> bool:
        """Over HTTP, whether the client asked for a stream on which it is asked and told on its own."""
        transactions = self._source.transactions.values()
        return not transactions or any(one.method == "GET" for one in transactions)


def _why_not(row: Exchange) -> str:
    """Why a request is not sent again; empty for one that is."""
    if row.request.unkept_bytes:
        return UNKEPT
    if row.response is None:
        status = _status(row)
        if status in NO_ANSWERS:
            return f"it was refused with {status}, and what followed on that is not played"
        if HTTP_REDIRECTS <= status < HTTP_ERRORS:
            return f"it was sent elsewhere, with {status}"
    return ""


def _status(row: Exchange) -> int:
    """The HTTP status that stands for an answer; 0 where there is none."""
    status = 0 if row.transaction is None or row.response is not None else row.transaction.status
    return status if status >= HTTP_REDIRECTS else 0


def _is_handshake(message: Message) -> bool:
    return message.method in OPENINGS or message.method == INITIALIZED


def _closed(rows: Iterable[int], needs: Callable[[int], Iterable[int]]) -> set[int]:
    """The rows, what they need, what that needs, and so on."""
    found: set[int] = set()
    waiting = list(rows)
    while waiting:
        row = waiting.pop()
        if row not in found:
            found.add(row)
            waiting.extend(needs(row))
    return found


def _kept(steps: Iterable[Step], rows: set[int]) -> list[Step]:
    """The steps of these rows. What the server said on its own while it was asked something else is not waited for."""
    kept: list[Step] = []
    left_out: set[int] = set()
    last = 0
    for step in steps:
        match step:
            case Send() | Cancel() | AwaitAnswer():
                if step.row in rows:
                    kept.append(step)
                    last = len(kept)
                elif isinstance(step, Send):
                    left_out |= {step.row} if step.exchange is not None else set()
                else:
                    left_out.discard(step.row)
            case AwaitTold(row=row) if row:
                if row in rows:
                    kept.append(step)
            case _:
                if not left_out:
                    kept.append(step)
    return kept[:last]

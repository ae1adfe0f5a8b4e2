"""A recording read as the plans of its clients: what each of them did, so that a driver can do it again.

What cannot be sent again, or means nothing a second time, is left out, and why. Refuses to know live values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ...records import CLIENT, SERVER, Close, Exit
from ...transcript.http.transaction import Scope, Transaction
from ...transcript.mcp.methods import CANCELLED, PROGRESS
from ...transcript.model import (
    HTTP_ERRORS,
    HTTP_REDIRECTS,
    NO_ANSWERS,
    CaptureInfo,
    ChannelEvent,
    Exchange,
    Kind,
    Message,
    Transcript,
    UnpairedMessage,
)
from .plan import (
    Cancel,
    ExpectedAnswer,
    ExpectedNotification,
    ExpectedRequest,
    Plan,
    PlanStep,
    Send,
    UnsentMessage,
    message_key,
)

UNKEPT: Final = "it was recorded past --max-size, where payloads are not kept"
HTTP_DELETE: Final = "DELETE"


def read_plans(transcript: Transcript) -> list[Plan]:
    """The plans of all clients of a transcript, in the order in which they began. All that a client sent may be left out of one."""
    clients: dict[int, _ClientIds] = {}
    readers: dict[tuple[int, str], _PlanReader] = {}
    for row in transcript.rows:
        if isinstance(row, Exchange | UnpairedMessage):
            source = transcript.captures[row.capture]
            if source.index not in clients:
                clients[source.index] = _ClientIds(source)
            who = (source.index, clients[source.index].of(row))
            if who not in readers:
                readers[who] = _PlanReader(source)
            readers[who].feed(row)
        elif isinstance(row, Transaction) and row.method == HTTP_DELETE and 0 < row.status < HTTP_REDIRECTS:
            for reader in readers.values():
                reader.deleted(row)
    for row in transcript.rows:
        if isinstance(row, ChannelEvent) and (row.capture, "") in readers:
            readers[row.capture, ""].happened(row)
    made = [one.close() for one in readers.values()]
    return [one for one in made if one.sends or one.left_out]


class _ClientIds:
    """Whose the rows of a capture are: over HTTP a session's; without any, a client's by its name; on stdio there is one client."""

    __slots__ = ("_only", "_sessions", "_source")

    def __init__(self, source: CaptureInfo) -> None:
        self._source = source
        self._sessions: dict[str, dict[str, int]] = {}
        """By client, its sessions, and when each was last heard of."""
        self._only = next(iter(source.client_names)) if len(source.client_names) == 1 else ""
        """Who says no name where there are no sessions: before the modern era a client says its own in `initialize` alone."""
        for one in source.transactions.values():
            if not one.scope.is_one_transaction:
                self._sessions.setdefault(one.scope.client, {})[_session(one.scope)] = one.at_ns

    def of(self, row: Exchange | UnpairedMessage) -> str:
        """The client of a row."""
        message = row.request if isinstance(row, Exchange) else row.message
        transaction = self._source.transaction_of(message.stream)
        if transaction is None:
            return ""
        scope = transaction.scope
        if not scope.is_one_transaction:
            return _session(scope)
        client = scope.client or self._only
        later = [name for name, last_ns in self._sessions.get(client, {}).items() if last_ns >= transaction.at_ns]
        return later[0] if len(later) == 1 else f"client {client}"  # a first try, before its session began


def _session(scope: Scope) -> str:
    """One name for a session and for those that took its place when it was lost."""
    while scope.replaces is not None:
        scope = scope.replaces
    return scope.session or f"stream {scope.stream}"


class _PlanReader:
    """Reads the rows of one client; `close` makes its plan."""

    __slots__ = ("_deleted", "_done", "_left_ns", "_left_out", "_rows", "_source", "_timed")

    def __init__(self, source: CaptureInfo) -> None:
        self._source = source
        self._timed: list[tuple[int, int, PlanStep]] = []
        self._left_out: list[UnsentMessage] = []
        self._rows: set[int] = set()
        self._left_ns = source.last_ns + source.shift_ns
        self._done = False
        self._deleted: Scope | None = None
        """The session that the client has ended."""

    def feed(self, row: Exchange | UnpairedMessage) -> None:
        self._rows.add(row.row)
        if isinstance(row, UnpairedMessage):
            self._unpaired(row)
        elif row.sender == CLIENT:
            self._asked(row)
        else:
            self._was_asked(row)

    def deleted(self, row: Transaction) -> None:
        """A session has been ended, as a driver ends its own when all is done."""
        if row.capture == self._source.index and row.scope.session:
            self._deleted = row.scope

    def happened(self, event: ChannelEvent) -> None:
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
                self._add(max(self._left_ns, one.at_ns), 1 << 62, ExpectedAnswer(row=one.row, is_recorded=False))
        self._timed.sort(key=lambda one: one[:2])
        steps: list[PlanStep] = []
        before_ns = self._timed[0][0] if self._timed else 0
        for at_ns, _, step in self._timed:
            steps.append(replace(step, gap_ns=at_ns - before_ns))
            before_ns = at_ns
        return Plan(steps=tuple(steps), rows=frozenset(self._rows), left_out=tuple(self._left_out), listens=self._listens())

    def _add(self, at_ns: int, number: int, step: PlanStep) -> None:
        self._timed.append((at_ns, number, step))

    def _told(self, message: Message, row: int = 0) -> None:
        self._add(message.at_ns, message.number, ExpectedNotification(key=message_key(message), row=row))

    def _unpaired(self, row: UnpairedMessage) -> None:
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
            self._left_out.append(UnsentMessage(row=row.row, message=message, why=why))
        else:
            self._add(message.at_ns, message.number, Send(message=message, row=row.row))

    def _asked(self, row: Exchange) -> None:
        request, response = row.request, row.response
        why = _why_not(row)
        if self._deleted is not None and row.transaction is not None and row.transaction.scope is self._deleted:
            why = "the client had ended the session"
        if why:
            self._left_out.append(UnsentMessage(row=row.row, message=request, why=why))
            return
        self._add(row.at_ns, request.number, Send(message=request, row=row.row, exchange=row))
        if response is not None:
            is_owed = (
                row.cancelled is None or response.at_ns <= row.cancelled.at_ns
            )  # who was told to stop may or may not answer
            self._add(response.at_ns, response.number, ExpectedAnswer(row=row.row, is_recorded=is_owed))
        elif row.transaction is not None and row.transaction.response is not None and _status(row):
            opened = row.transaction.response
            self._add(opened.at_ns, opened.opened.number, ExpectedAnswer(row=row.row))
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
            key = message_key(row.request)
            self._add(row.response.at_ns, row.response.number, ExpectedRequest(key=key, row=row.row))
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

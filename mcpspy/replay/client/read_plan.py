"""Reading of plans: what each client of a transcript did, so that a replay client can do it again.

What cannot be sent again, or means nothing a second time, is left out with a reason.
"""

from dataclasses import replace
from typing import Final

from ...records import CLIENT, SERVER, Close, Exit
from ...transcript.http.transaction import Scope, Transaction
from ...transcript.mcp.methods import CANCELLED, INITIALIZE, PROGRESS
from ...transcript.message import NOT_PASSED_ON
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
from ..mock.content import refusal_status
from ..mock.matching import first_scope
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
_LAST: Final = 1 << 62


def read_plans(transcript: Transcript) -> list[Plan]:
    """Read the plans of all clients, in the order in which they began. A plan may have left out everything."""
    clients: dict[int, _ClientIds] = {}
    readers: dict[tuple[int, str], _PlanReader] = {}
    for row in transcript.rows:
        if isinstance(row, Exchange | UnpairedMessage):
            capture = transcript.captures[row.capture]
            if capture.index not in clients:
                clients[capture.index] = _ClientIds(capture)
            client = (capture.index, clients[capture.index].of(row))
            if client not in readers:
                readers[client] = _PlanReader(capture)
            readers[client].feed(row)
        elif isinstance(row, Transaction) and row.method == HTTP_DELETE and 0 < row.status < HTTP_REDIRECTS:
            for reader in readers.values():
                reader.deleted(row)
    for row in transcript.rows:
        if isinstance(row, ChannelEvent) and (row.capture, "") in readers:
            readers[row.capture, ""].happened(row)
    plans = [reader.close() for reader in readers.values()]
    return [plan for plan in plans if plan.sends or plan.left_out]


class _ClientIds:
    """The clients of a capture: over HTTP one for each session, without sessions one for each name, on stdio only one."""

    __slots__ = ("_capture", "_only", "_sessions")

    def __init__(self, capture: CaptureInfo) -> None:
        self._capture = capture
        self._sessions: dict[str, dict[str, int]] = {}
        """By client, its sessions with the time of their last request."""
        self._only = next(iter(capture.client_names)) if len(capture.client_names) == 1 else ""
        """The client of a request without a name: before the modern era clients are named only in `initialize`."""
        for transaction in capture.transactions.values():
            scope = transaction.scope
            if not scope.is_one_transaction:
                self._sessions.setdefault(scope.client, {})[_session(scope)] = transaction.at_ns

    def of(self, row: Exchange | UnpairedMessage) -> str:
        """Identify the client of a row."""
        message = row.request if isinstance(row, Exchange) else row.message
        transaction = self._capture.transaction_of(message.stream)
        if transaction is None:
            return ""
        scope = transaction.scope
        if not scope.is_one_transaction:
            return _session(scope)
        client = scope.client or self._only
        later = [name for name, last_ns in self._sessions.get(client, {}).items() if last_ns >= transaction.at_ns]
        return later[0] if len(later) == 1 else f"client {client}"  # a first try, before its session began


def _session(scope: Scope) -> str:
    """Return one name for a session and those that replaced it."""
    first = first_scope(scope)
    return first.session or f"stream {first.stream}"


class _PlanReader:
    """A reader of the rows of one client; `close` makes its plan."""

    __slots__ = ("_capture", "_deleted", "_end_ns", "_has_ended", "_left_out", "_rows", "_timed")

    def __init__(self, capture: CaptureInfo) -> None:
        self._capture = capture
        self._timed: list[tuple[int, int, PlanStep]] = []
        self._left_out: list[UnsentMessage] = []
        self._rows: set[int] = set()
        self._end_ns = capture.last_ns + capture.shift_ns
        self._has_ended = False
        self._deleted: Scope | None = None
        """The session that the client has deleted."""

    def feed(self, row: Exchange | UnpairedMessage) -> None:
        self._rows.add(row.row)
        if isinstance(row, UnpairedMessage):
            self._unpaired(row)
        elif row.sender == CLIENT:
            self._request(row)
        else:
            self._server_request(row)

    def deleted(self, row: Transaction) -> None:
        """Take the end of a session. It is no step, since the replay client deletes its own session in the end."""
        if row.capture == self._capture.index and row.scope.session:
            self._deleted = row.scope

    def happened(self, event: ChannelEvent) -> None:
        """Take the end of a client or a server on stdio: a request without an answer by then never got one."""
        match event.record:
            case Close(by="client") | Exit() if not self._has_ended:
                self._has_ended = True
                self._end_ns = event.at_ns

    def close(self) -> Plan:
        # answers that never came are awaited as long as the recorded client did
        requests = [step.exchange for _, _, step in self._timed if isinstance(step, Send) and step.exchange is not None]
        for request in requests:
            is_over = request.response is not None or request.cancelled is not None or request.left_ns is not None
            if not is_over and not refusal_status(request):
                at_ns = max(self._end_ns, request.at_ns)
                self._add(at_ns, _LAST, ExpectedAnswer(row=request.row, is_recorded=False))
        self._timed.sort(key=lambda timed: timed[:2])
        steps: list[PlanStep] = []
        before_ns = self._timed[0][0] if self._timed else 0
        for at_ns, _, step in self._timed:
            steps.append(replace(step, gap_ns=at_ns - before_ns))
            before_ns = at_ns
        return Plan(steps=tuple(steps), rows=frozenset(self._rows), left_out=tuple(self._left_out), listens=self._listens())

    def _add(self, at_ns: int, number: int, step: PlanStep) -> None:
        self._timed.append((at_ns, number, step))

    def _expect(self, message: Message, row: int = 0) -> None:
        self._add(message.at_ns, message.number, ExpectedNotification(key=message_key(message), row=row))

    def _unpaired(self, row: UnpairedMessage) -> None:
        message = row.message
        if message.sender == SERVER:
            if message.kind is Kind.NOTIFICATION or (message.kind is Kind.RESULT and message.id is None):
                self._expect(message)  # a result without an id would answer the next request, if that were sent first
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

    def _request(self, row: Exchange) -> None:
        request, response = row.request, row.response
        why = _why_unsent(row)
        if self._deleted is not None and row.transaction is not None and row.transaction.scope is self._deleted:
            why = "the client had ended the session"
        if why:
            self._left_out.append(UnsentMessage(row=row.row, message=request, why=why))
            return
        self._add(row.at_ns, request.number, Send(message=request, row=row.row, exchange=row))
        if response is not None:
            # a server may or may not answer a cancelled request
            is_owed = row.cancelled is None or response.at_ns <= row.cancelled.at_ns
            self._add(response.at_ns, response.number, ExpectedAnswer(row=row.row, is_recorded=is_owed))
        elif row.transaction is not None and row.transaction.response is not None and refusal_status(row):
            opened = row.transaction.response
            self._add(opened.at_ns, opened.record, ExpectedAnswer(row=row.row))
        for message in row.notifications:
            if message.sender == SERVER:
                self._expect(message, row.row if message.method == PROGRESS else 0)
            elif message is row.cancelled:
                is_late = response is not None and response.at_ns <= message.at_ns
                cancel = Cancel(exchange=row, message=message, after_ns=message.at_ns - row.at_ns, is_late=is_late)
                self._add(message.at_ns, message.number, cancel)
        if row.left_ns is not None:
            self._add(row.left_ns, request.number, Cancel(exchange=row, message=None, after_ns=row.left_ns - row.at_ns))

    def _server_request(self, row: Exchange) -> None:
        if row.response is not None:
            key = message_key(row.request)
            self._add(row.response.at_ns, row.response.number, ExpectedRequest(key=key, row=row.row))
        for message in row.notifications:
            if message.sender == SERVER:
                self._expect(message)

    def _listens(self) -> bool:
        """Return whether the client, over HTTP, asked for a stream for what the server sends on its own."""
        transactions = self._capture.transactions.values()
        return not transactions or any(transaction.method == "GET" for transaction in transactions)


def _why_unsent(row: Exchange) -> str:
    """Say why a request is not sent again; nothing for a request that is."""
    if row.request.unkept_bytes:
        return UNKEPT
    if row.is_by_mcpspy:
        return "mcpspy call sent it, not the client"
    if NOT_PASSED_ON in row.request.flaws:
        return "an intercept kept it from the server"
    if row.response is None:
        status = refusal_status(row)
        if status in NO_ANSWERS:
            return f"it was refused with {status}, and what followed on that is not played"
        if HTTP_REDIRECTS <= status < HTTP_ERRORS:
            return f"it was sent elsewhere, with {status}"
        if row.method == INITIALIZE and row.is_probe and status:
            return f"it was a first try over another transport, refused with {status}"
    return ""

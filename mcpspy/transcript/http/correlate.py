"""Messages of one HTTP capture to exchanges: the scope of each message, and the end of scopes.

An id such as 1 is used again by every client, so each message is paired within the scope of its transaction, which `scopes` knows by
the session's id or by the endpoint. An answer may come in another transaction than its request:

    transaction                  client sends          the response brings                      scope of ids
    1 POST                       initialize 0          Mcp-Session-Id A, result 0               session A from here on
    2 POST                       initialize 0          Mcp-Session-Id B, result 0               session B from here on
    3 POST, session A            tools/call 1 ◄──┐     stream: event e1, then it breaks off     session A
    4 POST, session B            tools/call 1 ◄──│──── result 1                                 session B
    5 GET, session A                             │     stream: roots/list 1 ◄──┐                session A
    6 POST, session A            result 1 ───────│─────────────────────────────┘ (202)          session A
    7 GET, session A, after e1                   └──── stream: result 1                         session A
    8 GET /sse                                         stream: endpoint /m … result 1 ──┐       stream of 8
    9 POST /m                    tools/call 1 ◄─────────────────────────────────────────┘       stream of 8

Two cases have to look further. A stream that a GET brought without session and endpoint may answer any transaction without session;
then exactly one request with the id must wait, or the answer stays unpaired with the flaw `ambiguous-stream`. A GET with the
`Last-Event-ID` of a stream without session that broke off goes on in the scope of that transaction.
Bytes and rows are `assemble`'s. Source: MCP specification, basic/transports of each revision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from ...records import CLIENT, Side
from ..correlator import appended
from ..exchange import Exchange, UnpairedMessage
from ..mcp.fields import client_name
from ..mcp.methods import INITIALIZE, PROGRESS
from ..mcp.revisions import Era
from ..message import ERROR, REQUEST, RESULT, UNREAD, Message
from ..model import CaptureInfo, Row
from ..outcome import HTTP_ERRORS, HTTP_REDIRECTS
from .head import SESSION, Head
from .scopes import Scopes, ScopeState, named_request, path_and_query
from .transaction import NO_ENDPOINT, Anomaly, ScopeKind, Stream, Transaction, is_unread

HTTP_NOT_FOUND: Final = 404
_METHOD_NOT_FOUND: Final = b"-32601"


class OpenTransaction(msgspec.Struct, eq=False, gc=False):
    """A transaction that goes on, with the requests it carries. `state` is the scope of its ids."""

    transaction: Transaction
    state: ScopeState
    resumes: str = ""
    """The id of the event after which it asks for more; empty if it does not."""
    requests: list[Exchange] = []
    """The client's requests, in its request."""
    server_requests: list[Exchange] = []
    """The server's requests, in its response."""
    is_modern: bool = False
    resumed: OpenTransaction | None = None
    """The transaction without a session whose stream broke off and goes on here."""
    last_gap: tuple[Stream | None, int] = (None, -1)
    """The response at the last gap, and the time of the gap."""

    def note_gap(self, at_ns: int) -> None:
        """Note that records are missing here, which may have had the answers to what waits."""
        self.last_gap = self.transaction.response, at_ns

    def mark_unread(self) -> None:
        """Mark what was asked before a gap and not answered, unless the response began later: then it is all there."""
        response, gap_ns = self.last_gap
        is_stream = self.state.scope.kind is ScopeKind.STREAM
        if gap_ns < 0 or response is not self.transaction.response or (is_stream and self.transaction.method != "GET"):
            return
        carries_others = self.transaction.method == "GET" and (self.resumes or is_stream)
        others = self.state.correlator.requests[CLIENT].waiting.values() if carries_others else ()
        for exchange in (*self.requests, *self.server_requests, *others):
            request = exchange.request
            if exchange.response is None and request.at_ns <= gap_ns and UNREAD not in request.flaws:
                request.flaws, exchange.left_ns = (*request.flaws, UNREAD), None

    @property
    def rows(self) -> list[Row]:
        """The rows that change with it."""
        own: list[Row] = [self.transaction] if self.transaction.row else []
        return [*own, *self.requests, *self.server_requests]

    @property
    def waiting(self) -> list[Exchange]:
        """The client's requests without an answer."""
        return [exchange for exchange in self.requests if exchange.response is None]


class HttpCorrelator:
    """The exchanges of one capture over HTTP. `on_client_name` is called with each name of a client, once."""

    __slots__ = (
        "_broken_off", "_by_token", "_capture_info", "_held", "_on_client_name", "_resumable", "_single", "_unannounced", "_waiting",
        "scopes",
    )  # fmt: skip

    def __init__(
        self, capture_info: CaptureInfo, next_row: Callable[[], int], on_client_name: Callable[[CaptureInfo, str], None]
    ) -> None:
        self._capture_info = capture_info
        self._on_client_name = on_client_name
        self.scopes = Scopes(next_row)
        self._single: dict[int, OpenTransaction] = {}
        """Transactions that are scopes of their own; also ended ones whose answer may come on another stream."""
        self._unannounced: dict[int, OpenTransaction] = {}
        """Open streams of events that a GET brought, without a session and without an endpoint."""
        self._held: list[OpenTransaction] = []
        """Ended transactions whose answers may come on such a stream."""
        self._broken_off: dict[str, dict[int, OpenTransaction]] = {}
        """Transactions without a session whose stream ended before the answer: by the id of the last event, which may be resumed."""
        self._resumable: dict[tuple[str, str], OpenTransaction] = {}
        """Transactions of sessions that made a request, in the same case: by session and id of the last event."""
        self._waiting: dict[tuple[Side, str], dict[int, OpenTransaction]] = {}
        """Those of `_single` with requests, by sender and id of the requests; some of them do not wait any more."""
        self._by_token: dict[str, dict[int, OpenTransaction]] = {}
        """Those of `_single` whose request gives out a progress token, by that token."""

    def begin(self, opened: OpenTransaction, head: Head) -> bool:
        """Take in the head of a request. Return whether it resumes a stream and several could be meant."""
        opened.state.correlator.negotiation.feed_header(head.get("mcp-protocol-version"))
        if opened.state.scope.kind is not ScopeKind.TRANSACTION:
            opened.resumed = self._resumable.pop((opened.state.scope.session, opened.resumes), None)
            return False
        resumed = self._broken_off.get(opened.resumes, {}) if opened.resumes else {}
        if len(resumed) == 1:
            (opened.resumed,) = resumed.values()
            del self._broken_off[opened.resumes]
            _move(opened, opened.resumed.state)
        else:
            self._single[opened.transaction.number] = opened
        return len(resumed) > 1

    def begin_response(self, opened: OpenTransaction, head: Head, *, is_stream: bool) -> None:
        """Take in the head of a response."""
        number, session = opened.transaction.number, head.get(SESSION)
        if session and not opened.is_modern and self.scopes.bind(opened.state, session):
            self._leave_single(opened)
        is_single = opened.state.scope.kind is ScopeKind.TRANSACTION and opened.resumed is None
        if is_stream and is_single and opened.transaction.method == "GET":
            self._unannounced[number] = opened
        if opened.transaction.status == HTTP_NOT_FOUND:
            self.scopes.mark_unknown(opened.transaction)

    def announce(self, opened: OpenTransaction, uris: Iterable[str]) -> bool:
        """Take in the endpoint that a stream announced, in one or more spellings. Return whether another open stream has it too."""
        transaction = opened.transaction
        targets = [target for uri in uris if (target := path_and_query(self.scopes.resolve(transaction, uri)))]
        if not targets:
            return False
        if transaction.request is not None and transaction.request.head.get(SESSION):  # the session has streams of its own
            _move(opened, self.scopes.single_transaction())
        self._leave_single(opened)
        self._unannounced.pop(transaction.number, None)
        return self.scopes.announce(opened.state, transaction.number, targets)

    def feed(self, opened: OpenTransaction, message: Message) -> Sequence[Exchange | UnpairedMessage]:
        """Return the rows that a message begins or changes."""
        transaction = opened.transaction
        self._capture_info.messages += 1
        if message.sender == CLIENT:
            transaction.request_messages += 1
            if message.kind is REQUEST:
                self._learn(opened, message)
        else:
            transaction.response_messages += 1
            if message.unkept_bytes:
                for exchange in opened.waiting:
                    exchange.request.flaws = (*exchange.request.flaws, UNREAD)
                transaction.scope.unread |= transaction.scope.kind is ScopeKind.STREAM
            if message.kind is ERROR and (failed := self._failed_requests(opened, message)):
                for exchange in failed:
                    opened.state.correlator.settle(exchange, message)
                return [*failed, *self.scopes.probes.take_changed()]
            if message.id is None and message.kind is RESULT and len(opened.waiting) == 1:
                (exchange,) = opened.waiting  # HTTP tells which one
                opened.state.correlator.take_by_order(exchange, message)
                return [exchange, *self.scopes.probes.take_changed()]
        row = self._state_for(opened, message).correlator.feed(message)
        if isinstance(row, Exchange):
            if row.request is message:
                row.transaction = transaction
                (opened.requests if message.sender == CLIENT else opened.server_requests).append(row)
                if transaction.number in self._single:
                    self._waiting.setdefault((message.sender, message.id or ""), {})[transaction.number] = opened
                    if message.correlation_key is not None and message.sender == CLIENT:
                        self._by_token.setdefault(message.correlation_key, {})[transaction.number] = opened
            if self.scopes.probes.changed:
                return [*self.scopes.probes.take_changed(), row]
        return [row]

    def close(self, opened: OpenTransaction) -> Sequence[Exchange]:
        """Take in the end of a response; return the exchanges that changed."""
        transaction, scope = opened.transaction, opened.state.scope
        if transaction.number in self._unannounced:
            return self._close_unannounced(opened)
        if scope.kind is ScopeKind.STREAM and scope.stream == transaction.number:
            opened.state.is_open = False
            return opened.state.correlator.close()
        if scope.kind is ScopeKind.TRANSACTION:
            return self._close_single(opened)
        changed: list[Exchange] = []
        if transaction.status >= HTTP_REDIRECTS or (scope.kind is ScopeKind.SESSION and not _may_be_resumed(transaction)):
            changed += _given_up(opened.waiting)
        elif scope.kind is ScopeKind.SESSION and transaction.response is not None and (opened.resumed or opened).waiting:
            self._resumable[scope.session, transaction.response.last_event_id] = opened.resumed or opened
        if scope.kind is ScopeKind.SESSION and transaction.method == "DELETE" and transaction.status < HTTP_REDIRECTS:
            changed += opened.state.correlator.close()
        return changed

    def leave(self, opened: OpenTransaction) -> None:
        """Take in that the client closed its half of the connection: it has given up what nothing was answered to yet.

        A client that only says that it will ask no more takes the answer, and `stay` is called.
        """
        transaction = opened.transaction
        if transaction.response is None and opened.state.scope.kind is not ScopeKind.STREAM and not is_unread(transaction):
            for exchange in opened.waiting:
                exchange.left_ns = transaction.half_closed_ns

    def stay(self, opened: OpenTransaction) -> None:
        """Take in that the client took its answer after it had closed its half of the connection."""
        for exchange in opened.requests:
            exchange.left_ns = None

    def holds(self, transaction: Transaction) -> bool:
        """Return whether an answer to what a transaction carried may come elsewhere, or its scope may change."""
        number = transaction.number
        return (
            number in self._single
            or number in self._unannounced
            or (bool(self._broken_off) and any(number in broken_off for broken_off in self._broken_off.values()))
        )

    @property
    def broken_off(self) -> list[OpenTransaction]:
        """The ended transactions whose answers may come on a stream that resumes theirs."""
        broken_off = [opened for transactions in self._broken_off.values() for opened in transactions.values()]
        return [*broken_off, *self._resumable.values()]

    def end(self) -> list[Exchange]:
        """End everything; return the exchanges that changed."""
        for opened in self.broken_off:
            opened.mark_unread()
        single = [exchange for opened in self._single.values() for exchange in opened.state.correlator.close()]
        return [*single, *self.scopes.close()]

    def _learn(self, opened: OpenTransaction, request: Message) -> None:
        """Learn the era and the client's name of a scope from a request."""
        if request.era is Era.MODERN:  # the request's own era: that of its scope is not set yet
            opened.is_modern = True
            if opened.state.scope.kind is ScopeKind.SESSION:  # the modern era has no sessions
                _move(opened, self.scopes.single_transaction())
                self._single[opened.transaction.number] = opened
        if b"clientInfo" in request.raw:
            name = client_name(request.raw)
            if name is not None:
                opened.state.scope.client = name
                if name not in self._capture_info.client_names:
                    self._capture_info.client_names[name] = None
                    self._on_client_name(self._capture_info, name)
        if request.method == INITIALIZE and opened.state.scope.kind is ScopeKind.TRANSACTION:
            self.scopes.replace_unknown(opened.transaction)

    def _failed_requests(self, opened: OpenTransaction, message: Message) -> list[Exchange]:
        """Return the requests that an error without a usable id is about: those that its response answers."""
        if opened.transaction.status == HTTP_NOT_FOUND and _METHOD_NOT_FOUND in message.raw:
            self.scopes.unmark_unknown(opened.transaction)  # the method is unknown, not the session
        if message.id is not None and message.id != "null":
            is_known = opened.transaction.status < HTTP_ERRORS or opened.state.correlator.waits(CLIENT, message.id)
            return [] if is_known else opened.waiting
        return opened.waiting

    def _state_for(self, opened: OpenTransaction, message: Message) -> ScopeState:
        """Return the scope of a message. One that its own scope does not know may be about a request in another transaction."""
        number, own = opened.transaction.number, opened.state
        if number not in self._unannounced and own.scope.kind is not ScopeKind.TRANSACTION:
            return own
        elsewhere = self._elsewhere(opened, message)
        if not elsewhere or (message.sender != CLIENT and number not in self._unannounced):
            return own
        if message.sender != CLIENT:
            if len(self._unannounced) > 1 or len(elsewhere) > 1:
                message.flaws = (*message.flaws, "ambiguous-stream")
            if len(elsewhere) == 1:
                self._join(elsewhere[0], opened)
        return elsewhere[0].state if len(elsewhere) == 1 else own

    def _leave_single(self, opened: OpenTransaction) -> None:
        """Remove a transaction from those that are scopes of their own."""
        number = opened.transaction.number
        if self._single.pop(number, None) is None:
            return
        for exchange in (*opened.requests, *opened.server_requests):
            _remove(self._waiting, (exchange.sender, exchange.request.id or ""), number)
            _remove(self._by_token, exchange.request.correlation_key, number)

    def _elsewhere(self, opened: OpenTransaction, message: Message) -> list[OpenTransaction]:
        """Return other transactions whose request a message may be about: none, one, or two if there are more."""
        is_progress = message.method == PROGRESS and message.correlation_key is not None
        if is_progress and opened.transaction.number in self._unannounced:
            return list(islice(self._by_token.get(message.correlation_key or "", {}).values(), 2))
        about = named_request(message)
        if about is None or opened.state.correlator.waits(*about):
            return []
        candidates = self._waiting.get(about)
        waiting: list[OpenTransaction] = []
        while candidates and len(waiting) < 2:
            number, candidate = candidates.popitem()
            if self._single.get(number) is candidate and candidate.state.correlator.waits(*about):
                waiting.append(candidate)
        if candidates is not None and waiting:  # those left out do not wait any more: each is looked at once
            candidates.update((candidate.transaction.number, candidate) for candidate in waiting)
        return waiting

    def _join(self, requesting: OpenTransaction, answering: OpenTransaction) -> None:
        """Put two transactions into one scope: a stream without an endpoint answered a POST, so one client has both."""
        scope = answering.state.scope
        stream, posted = answering.transaction.response, requesting.transaction
        is_alone = scope.kind is not ScopeKind.STREAM and len(self._unannounced) == 1
        if is_alone and stream is not None and posted.target != answering.transaction.target:
            anomaly = Anomaly(stream.record, stream.at_ns, NO_ENDPOINT, posted.target.encode("utf-8", "replace"))
            answering.transaction.anomalies = appended(answering.transaction.anomalies, anomaly)
        scope.kind, scope.stream = ScopeKind.STREAM, answering.transaction.number
        scope.client = scope.client or requesting.state.scope.client
        requesting.transaction.scope = scope

    def _close_single(self, opened: OpenTransaction) -> Sequence[Exchange]:
        root = opened
        while root.resumed is not None:
            root = root.resumed
        transaction, waiting = opened.transaction, root.waiting
        if waiting and self._unannounced and 0 < transaction.status < HTTP_REDIRECTS and not transaction.response_messages:
            self._held.append(opened)
            return ()  # HTTP+SSE whose server announces no endpoint: the answer comes on the stream
        if waiting and not root.is_modern and _may_be_resumed(transaction):
            last_event_id = transaction.response.last_event_id if transaction.response else ""
            self._broken_off.setdefault(last_event_id, {})[transaction.number] = opened
            return ()
        self._leave_single(root)
        if opened.is_modern and transaction.ended_by == CLIENT and not is_unread(transaction):
            for exchange in waiting:
                exchange.left_ns = None if UNREAD in exchange.request.flaws else transaction.ended_ns
        return opened.state.correlator.close()

    def _close_unannounced(self, opened: OpenTransaction) -> list[Exchange]:
        """Take in the end of a stream without an endpoint. After the last one, transactions that were held end as well."""
        number = opened.transaction.number
        del self._unannounced[number]
        self._leave_single(opened)
        changed = [*opened.state.correlator.close()]
        if not self._unannounced:
            held, self._held = self._held, []
            for other in held:
                changed += self._close_single(other)
        return changed


def _remove(transactions: dict[Any, dict[int, OpenTransaction]], key: object, number: int) -> None:
    by_number = transactions.get(key)
    if by_number is not None and by_number.pop(number, None) is not None and not by_number:
        del transactions[key]


def _move(opened: OpenTransaction, state: ScopeState) -> None:
    opened.state = state
    opened.transaction.scope = state.scope


def _given_up(waiting: list[Exchange]) -> list[Exchange]:
    """End exchanges that will not be answered; return those that changed."""
    changed = [exchange for exchange in waiting if not exchange.over]
    for exchange in waiting:
        exchange.over = True
    return changed


def _may_be_resumed(transaction: Transaction) -> bool:
    """Return whether the rest of a response may come on a stream that resumes it (revisions 2025-03-26 to 2025-11-25)."""
    return transaction.is_stream and transaction.response is not None and bool(transaction.response.last_event_id)

"""Messages of HTTP to their exchanges: the scope that each belongs to, and what becomes of a scope when a response ends.

Refuses to read bytes and to make rows. Source: MCP specification, basic/transports of each revision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import CLIENT
from .head import SESSION, Head
from .mcp import client_name
from .mcp_revisions import Era
from .model import HTTP_ERRORS, HTTP_REDIRECTS, Exchange, Kind, Message, Row, Source, Stray
from .scopes import Reach, Scopes, named_request, path_and_query
from .transaction import ScopeKind, Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Work:
    """A transaction that goes on, and what its request asks. `reach` is the scope of its ids."""

    __slots__ = ("asked", "asked_back", "is_modern", "reach", "resumes", "transaction")

    def __init__(self, transaction: Transaction, reach: Reach, *, resumes: bool) -> None:
        self.transaction = transaction
        self.reach = reach
        self.asked: list[Exchange] = []
        self.asked_back: list[Exchange] = []
        """What the server asks on its response."""
        self.is_modern = False
        self.resumes = resumes
        """Whether it asks for the events after one that it names."""

    @property
    def rows(self) -> list[Row]:
        """The rows that change with it."""
        own: list[Row] = [self.transaction] if self.transaction.row else []
        return [*own, *self.asked, *self.asked_back]

    @property
    def waiting(self) -> list[Exchange]:
        """What it asks and nobody has answered."""
        return [one for one in self.asked if one.response is None]


class HttpCorrelator:
    """The exchanges of one capture over HTTP. `named` is told each name that a client gives itself, once."""

    __slots__ = ("_alone", "_named", "_source", "_unannounced", "scopes")

    def __init__(self, source: Source, next_row: Callable[[], int], named: Callable[[Source, str], None]) -> None:
        self._source = source
        self._named = named
        self.scopes = Scopes(next_row)
        self._alone: dict[int, Work] = {}
        """Transactions whose ids mean something in them alone, also ended ones whose answer may come on another stream."""
        self._unannounced: dict[int, Work] = {}
        """Open streams of events that a GET brought, without a session and without an endpoint."""

    def begin(self, work: Work, head: Head) -> None:
        """A transaction began, with this head."""
        work.reach.correlator.negotiation.hear(head.get("mcp-protocol-version"))
        if work.reach.facts.kind is ScopeKind.TRANSACTION:
            self._alone[work.transaction.number] = work

    def answer(self, work: Work, head: Head, *, is_stream: bool) -> None:
        """The head of its response came."""
        number, session = work.transaction.number, head.get(SESSION)
        if session and not work.is_modern and self.scopes.bind(work.reach, session):
            self._alone.pop(number, None)
        if is_stream and work.transaction.method == "GET" and work.reach.facts.kind is ScopeKind.TRANSACTION:
            self._unannounced[number] = work

    def announce(self, work: Work, uris: Iterable[str]) -> bool:
        """Its stream announced an endpoint, in these forms: what is POSTed there is answered on it. Whether another did the same."""
        transaction = work.transaction
        targets = [target for uri in uris if (target := path_and_query(self.scopes.resolved(transaction, uri)))]
        if not targets:
            return False
        if transaction.request is not None and transaction.request.head.get(SESSION):  # that is not what this stream is for
            _move(work, self.scopes.alone())
        self._alone.pop(transaction.number, None)
        self._unannounced.pop(transaction.number, None)
        return self.scopes.announce(work.reach, transaction.number, targets)

    def feed(self, work: Work, message: Message) -> Sequence[Exchange | Stray]:
        """The rows that a message begins or changes."""
        transaction = work.transaction
        if message.sender == CLIENT:
            transaction.asked += 1
            if message.kind is Kind.REQUEST:
                self._meet_client(work, message)
        else:
            transaction.answered += 1
            told = self._about_request(work, message)
            if told:
                for exchange in told:
                    work.reach.correlator.settle(exchange, message)
                return [*told, *self.scopes.openings.take()]
        row = self._reach(work, message).correlator.feed(message)
        if isinstance(row, Exchange):
            if row.request is not message:
                return [row, *self.scopes.openings.take()] if self.scopes.openings.changed else [row]
            row.transaction = transaction
            (work.asked if message.sender == CLIENT else work.asked_back).append(row)
        return [row]

    def close(self, work: Work) -> Sequence[Exchange]:
        """The response ended: the exchanges to which that is news."""
        transaction, facts = work.transaction, work.reach.facts
        if transaction.number in self._unannounced:
            return self._fell_silent(work)
        if facts.kind is ScopeKind.STREAM and facts.stream == transaction.number:
            work.reach.is_open = False
            return work.reach.correlator.close()
        if facts.kind is ScopeKind.TRANSACTION:
            return self._ended_alone(work)
        news: list[Exchange] = []
        if transaction.status >= HTTP_REDIRECTS or (facts.kind is ScopeKind.SESSION and not _may_be_resumed(transaction)):
            news += _given_up(work.waiting)
        if facts.kind is ScopeKind.SESSION and transaction.method == "DELETE" and transaction.status < HTTP_REDIRECTS:
            news += work.reach.correlator.close()
        return news

    def end(self) -> list[Exchange]:
        """Nothing more will come: the exchanges to which that is news."""
        alone = [exchange for work in self._alone.values() for exchange in work.reach.correlator.close()]
        return [*alone, *self.scopes.close()]

    def _meet_client(self, work: Work, request: Message) -> None:
        """Learn from a request what is true of its scope: its era, and who asks."""
        if request.era is Era.MODERN:  # which it says itself: what its scope agreed on is not told to it yet
            work.is_modern = True
            if work.reach.facts.kind is ScopeKind.SESSION:  # which the modern era does not know
                _move(work, self.scopes.alone())
                self._alone[work.transaction.number] = work
        if b"clientInfo" in request.raw:
            name = client_name(request.raw)
            if name is not None:
                work.reach.facts.client = name
                if name not in self._source.names:
                    self._source.names[name] = None
                    self._named(self._source, name)

    def _about_request(self, work: Work, message: Message) -> list[Exchange]:
        """What an error without an id of use is about: the requests that its response answers."""
        if message.kind is not Kind.ERROR:
            return []
        if message.id is not None and message.id != "null":
            is_known = work.transaction.status < HTTP_ERRORS or work.reach.correlator.waits(CLIENT, message.id)
            return [] if is_known else work.waiting
        return work.waiting

    def _reach(self, work: Work, message: Message) -> Reach:
        """The scope that a message belongs to. One that nobody knows here may be about what came in another transaction."""
        number, own = work.transaction.number, work.reach
        if number not in self._unannounced and own.facts.kind is not ScopeKind.TRANSACTION:
            return own
        about = named_request(message)
        if about is None or own.correlator.waits(*about):
            return own
        elsewhere = [one for one in self._alone.values() if one.reach.correlator.waits(*about)]
        if message.sender != CLIENT:
            if number not in self._unannounced or not elsewhere:
                return own
            if len(self._unannounced) > 1:
                message.flaws = (*message.flaws, "ambiguous-stream")
                if len(elsewhere) > 1:
                    return own
            self._join(elsewhere[0], work)
        elif len(elsewhere) != 1:
            return own
        return elsewhere[0].reach

    def _join(self, asking: Work, answering: Work) -> None:
        """A stream without an endpoint answers what was POSTed: they are one client's."""
        scope = answering.reach.facts
        scope.kind, scope.stream = ScopeKind.STREAM, answering.transaction.number
        scope.client = scope.client or asking.reach.facts.client
        asking.transaction.scope = scope

    def _ended_alone(self, work: Work) -> Sequence[Exchange]:
        transaction, waiting = work.transaction, work.waiting
        if waiting and self._unannounced and 0 < transaction.status < HTTP_REDIRECTS and not transaction.answered:
            return ()  # HTTP+SSE whose server announces no endpoint: the answer comes on the stream
        self._alone.pop(transaction.number, None)
        if work.is_modern and transaction.ended_by == CLIENT:
            for exchange in waiting:
                exchange.left_ns = transaction.ended_ns
        return work.reach.correlator.close()

    def _fell_silent(self, work: Work) -> list[Exchange]:
        """A stream without an endpoint ended. After the last one nothing can be answered that its own response did not."""
        number = work.transaction.number
        del self._unannounced[number]
        self._alone.pop(number, None)
        news = [*work.reach.correlator.close()]
        if not self._unannounced:
            for other in [one for one in self._alone.values() if one.transaction.over]:
                news += self._ended_alone(other)
        return news


def _move(work: Work, reach: Reach) -> None:
    work.reach = reach
    work.transaction.scope = reach.facts


def _given_up(waiting: list[Exchange]) -> list[Exchange]:
    """Those to which it is news that no answer will come."""
    news = [one for one in waiting if not one.over]
    for one in waiting:
        one.over = True
    return news


def _may_be_resumed(transaction: Transaction) -> bool:
    """Whether what is missing of a response may still come, on a stream that resumes it (revisions 2025-03-26 to 2025-11-25)."""
    return transaction.is_stream and transaction.response is not None and bool(transaction.response.last_event_id)

"""Messages of HTTP to their exchanges: the scope that each belongs to, and what becomes of a scope when a response ends.

Refuses to read bytes and to make rows. Source: MCP specification, basic/transports of each revision.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ...records import CLIENT
from ..mcp.fields import client_name
from ..mcp.methods import INITIALIZE, PROGRESS
from ..mcp.revisions import Era
from ..model import HTTP_ERRORS, HTTP_REDIRECTS, CaptureInfo, Exchange, Kind, Message, Row, UnpairedMessage
from .head import SESSION, Head
from .scopes import Scopes, ScopeState, named_request, path_and_query
from .transaction import ScopeKind, Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...records import Side

HTTP_NOT_FOUND: Final = 404
_METHOD_NOT_FOUND: Final = b"-32601"


class OpenTransaction:
    """A transaction that goes on, and what its request asks. `reach` is the scope of its ids."""

    __slots__ = ("asked", "asked_back", "is_modern", "reach", "resumes", "taken_up", "transaction")

    def __init__(self, transaction: Transaction, reach: ScopeState, *, resumes: str) -> None:
        self.transaction = transaction
        self.reach = reach
        self.asked: list[Exchange] = []
        self.asked_back: list[Exchange] = []
        """What the server asks on its response."""
        self.is_modern = False
        self.resumes = resumes
        """The id of the event after which it asks for more; empty if it does not."""
        self.taken_up: OpenTransaction | None = None
        """What was asked without a session, and is answered here, because its own stream broke off."""

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

    __slots__ = ("_alone", "_broken_off", "_held", "_named", "_source", "_told", "_unannounced", "_waiting", "scopes")

    def __init__(self, source: CaptureInfo, next_row: Callable[[], int], named: Callable[[CaptureInfo, str], None]) -> None:
        self._source = source
        self._named = named
        self.scopes = Scopes(next_row)
        self._alone: dict[int, OpenTransaction] = {}
        """Transactions whose ids mean something in them alone, also ended ones whose answer may come on another stream."""
        self._unannounced: dict[int, OpenTransaction] = {}
        """Open streams of events that a GET brought, without a session and without an endpoint."""
        self._held: list[OpenTransaction] = []
        """Ended ones whose answers may come on such a stream."""
        self._broken_off: dict[str, dict[int, OpenTransaction]] = {}
        """What nobody answered before its stream ended, without a session: by the last event, by which it may be resumed."""
        self._waiting: dict[tuple[Side, str], dict[int, OpenTransaction]] = {}
        """Of `_alone` those that asked, by who asks and with what id; also some that wait no more."""
        self._told: dict[str, dict[int, OpenTransaction]] = {}
        """Of `_alone` those that asked for progress, by its token."""

    def begin(self, work: OpenTransaction, head: Head) -> bool:
        """A transaction began, with this head. Whether it resumes a stream, and cannot be told which."""
        work.reach.correlator.negotiation.feed_header(head.get("mcp-protocol-version"))
        if work.reach.facts.kind is not ScopeKind.TRANSACTION:
            return False
        resumed = self._broken_off.get(work.resumes, {}) if work.resumes else {}
        if len(resumed) == 1:
            (work.taken_up,) = resumed.values()
            del self._broken_off[work.resumes]
            _move(work, work.taken_up.reach)
        else:
            self._alone[work.transaction.number] = work
        return len(resumed) > 1

    def answer(self, work: OpenTransaction, head: Head, *, is_stream: bool) -> None:
        """The head of its response came."""
        number, session = work.transaction.number, head.get(SESSION)
        if session and not work.is_modern and self.scopes.bind(work.reach, session):
            self._leave(work)
        is_alone = work.reach.facts.kind is ScopeKind.TRANSACTION and work.taken_up is None
        if is_stream and is_alone and work.transaction.method == "GET":
            self._unannounced[number] = work
        if work.transaction.status == HTTP_NOT_FOUND:
            self.scopes.lose(work.transaction)

    def announce(self, work: OpenTransaction, uris: Iterable[str]) -> bool:
        """Its stream announced an endpoint, in these forms: what is POSTed there is answered on it. Whether another did the same."""
        transaction = work.transaction
        targets = [target for uri in uris if (target := path_and_query(self.scopes.resolved(transaction, uri)))]
        if not targets:
            return False
        if transaction.request is not None and transaction.request.head.get(SESSION):  # that is not what this stream is for
            _move(work, self.scopes.alone())
        self._leave(work)
        self._unannounced.pop(transaction.number, None)
        return self.scopes.announce(work.reach, transaction.number, targets)

    def feed(self, work: OpenTransaction, message: Message) -> Sequence[Exchange | UnpairedMessage]:
        """The rows that a message begins or changes."""
        transaction = work.transaction
        if message.sender == CLIENT:
            transaction.request_messages += 1
            if message.kind is Kind.REQUEST:
                self._meet_client(work, message)
        else:
            transaction.response_messages += 1
            told = self._about_request(work, message)
            if told:
                for exchange in told:
                    work.reach.correlator.settle(exchange, message)
                return [*told, *self.scopes.probes.take_changed()]
        row = self._reach(work, message).correlator.feed(message)
        if isinstance(row, Exchange):
            if row.request is message:
                row.transaction = transaction
                (work.asked if message.sender == CLIENT else work.asked_back).append(row)
                if transaction.number in self._alone:
                    self._waiting.setdefault((message.sender, message.id or ""), {})[transaction.number] = work
                    if message.correlation_key is not None and message.sender == CLIENT:
                        self._told.setdefault(message.correlation_key, {})[transaction.number] = work
            if self.scopes.probes.changed:
                return [*self.scopes.probes.take_changed(), row]
        return [row]

    def close(self, work: OpenTransaction) -> Sequence[Exchange]:
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

    def _meet_client(self, work: OpenTransaction, request: Message) -> None:
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
                if name not in self._source.client_names:
                    self._source.client_names[name] = None
                    self._named(self._source, name)
        if request.method == INITIALIZE and work.reach.facts.kind is ScopeKind.TRANSACTION:
            self.scopes.renew(work.transaction)

    def _about_request(self, work: OpenTransaction, message: Message) -> list[Exchange]:
        """What an error without an id of use is about: the requests that its response answers."""
        if message.kind is not Kind.ERROR:
            return []
        if work.transaction.status == HTTP_NOT_FOUND and _METHOD_NOT_FOUND in message.raw:
            self.scopes.keep(work.transaction)  # not the session is unknown, but the method
        if message.id is not None and message.id != "null":
            is_known = work.transaction.status < HTTP_ERRORS or work.reach.correlator.waits(CLIENT, message.id)
            return [] if is_known else work.waiting
        return work.waiting

    def _reach(self, work: OpenTransaction, message: Message) -> ScopeState:
        """The scope that a message belongs to. One that nobody knows here may be about what came in another transaction."""
        number, own = work.transaction.number, work.reach
        if number not in self._unannounced and own.facts.kind is not ScopeKind.TRANSACTION:
            return own
        elsewhere = self._elsewhere(work, message)
        if not elsewhere or (message.sender != CLIENT and number not in self._unannounced):
            return own
        if message.sender != CLIENT:
            if len(self._unannounced) > 1 or len(elsewhere) > 1:
                message.flaws = (*message.flaws, "ambiguous-stream")
            if len(elsewhere) == 1:
                self._join(elsewhere[0], work)
        return elsewhere[0].reach if len(elsewhere) == 1 else own

    def _leave(self, work: OpenTransaction) -> None:
        """Its ids mean something elsewhere too, or nothing any more."""
        number = work.transaction.number
        if self._alone.pop(number, None) is None:
            return
        for exchange in (*work.asked, *work.asked_back):
            _remove(self._waiting, (exchange.sender, exchange.request.id or ""), number)
            _remove(self._told, exchange.request.correlation_key, number)

    def _elsewhere(self, work: OpenTransaction, message: Message) -> list[OpenTransaction]:
        """Other transactions whose request a message may be about: none, one, or two for any more than that."""
        if message.method == PROGRESS and message.correlation_key is not None and work.transaction.number in self._unannounced:
            return list(islice(self._told.get(message.correlation_key, {}).values(), 2))
        about = named_request(message)
        if about is None or work.reach.correlator.waits(*about):
            return []
        asked = self._waiting.get(about)
        found: list[OpenTransaction] = []
        while asked and len(found) < 2:
            number, one = asked.popitem()
            if self._alone.get(number) is one and one.reach.correlator.waits(*about):
                found.append(one)
        if asked is not None and found:
            asked.update((one.transaction.number, one) for one in found)  # the others wait no more: each is looked at once
        return found

    def _join(self, asking: OpenTransaction, answering: OpenTransaction) -> None:
        """A stream without an endpoint answers what was POSTed: they are one client's."""
        scope = answering.reach.facts
        scope.kind, scope.stream = ScopeKind.STREAM, answering.transaction.number
        scope.client = scope.client or asking.reach.facts.client
        asking.transaction.scope = scope

    def _ended_alone(self, work: OpenTransaction) -> Sequence[Exchange]:
        root = work
        while root.taken_up is not None:
            root = root.taken_up
        transaction, waiting = work.transaction, root.waiting
        if waiting and self._unannounced and 0 < transaction.status < HTTP_REDIRECTS and not transaction.response_messages:
            self._held.append(work)
            return ()  # HTTP+SSE whose server announces no endpoint: the answer comes on the stream
        if waiting and not root.is_modern and _may_be_resumed(transaction):
            last_event_id = transaction.response.last_event_id if transaction.response else ""
            self._broken_off.setdefault(last_event_id, {})[transaction.number] = work
            return ()
        self._leave(root)
        if work.is_modern and transaction.ended_by == CLIENT:
            for exchange in waiting:
                exchange.left_ns = transaction.ended_ns
        return work.reach.correlator.close()

    def _fell_silent(self, work: OpenTransaction) -> list[Exchange]:
        """A stream without an endpoint ended. After the last one nothing can be answered that its own response did not."""
        number = work.transaction.number
        del self._unannounced[number]
        self._leave(work)
        news = [*work.reach.correlator.close()]
        if not self._unannounced:
            held, self._held = self._held, []
            for other in held:
                news += self._ended_alone(other)
        return news


def _remove(works: dict[Any, dict[int, OpenTransaction]], key: object, number: int) -> None:
    asked = works.get(key)
    if asked is not None and asked.pop(number, None) is not None and not asked:
        del works[key]


def _move(work: OpenTransaction, reach: ScopeState) -> None:
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

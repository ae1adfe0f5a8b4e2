"""Which transactions share their request ids: sessions by their id, HTTP+SSE by the endpoint that its stream announced, others none.

Each scope has a correlator of its own, so that a hundred clients with the same ids are never mixed up. Refuses to guess: where only
an id says whose an answer is, exactly one request must wait for it. Source: MCP specification, basic/transports of each revision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin, urlsplit

import msgspec

from ...records import CLIENT, SERVER
from ...wire.json_spans import members, string
from ..correlate import Correlator
from ..mcp.negotiation import ProbeDetector
from ..model import Exchange, Kind, Message
from .head import SESSION, Head
from .transaction import Scope, ScopeKind, Transaction

if TYPE_CHECKING:
    from ...records import Side


class SentEvent(msgspec.Struct, frozen=True, gc=False):
    """An event with an id: the transaction that began its stream, and its record."""

    stream: int
    number: int


class ScopeState:
    """One scope at work. `facts` is what a transcript says of it; `sent` are its events that have ids, by hashes of id and data.

    `ids` are the same by hashes of their ids alone: None for an id that several have.
    """

    __slots__ = ("correlator", "facts", "ids", "is_open", "sent")

    def __init__(self, kind: ScopeKind, next_row: Callable[[], int], probes: ProbeDetector, *, session: str = "") -> None:
        self.facts = Scope(kind, session=session)
        self.correlator = Correlator(next_row, probes)
        self.sent: dict[int, SentEvent] = {}
        self.ids: dict[int, SentEvent | None] = {}
        self.is_open = True
        """Whether the stream of HTTP+SSE goes on."""


class Endpoint(NamedTuple):
    """What an `endpoint` event announces: a URI, and whether it stood alone as the specification wants it."""

    uri: str
    is_plain: bool


class Scopes:
    """The scopes of one capture. `url` is the server's, by which relative endpoints are resolved."""

    __slots__ = ("_endpoints", "_lost", "_next_row", "_sessions", "probes", "url")

    def __init__(self, next_row: Callable[[], int]) -> None:
        self._next_row = next_row
        self.probes = ProbeDetector()
        self._sessions: dict[str, ScopeState] = {}
        self._endpoints: dict[str, ScopeState] = {}
        self._lost: dict[int | str, dict[str, Transaction]] = {}
        """Sessions that the server knows no more and no other has followed: by the connection that was told so, and by the client."""
        self.url = ""

    def of_request(self, target: str, head: Head) -> ScopeState:
        """The scope of a transaction, as far as the head of its request says it: the endpoint decides, then the session."""
        announced, session = self._endpoints.get(target), head.get(SESSION)
        if announced is not None and session not in self._sessions:
            return announced
        if not session:
            return self.alone()
        found = self._sessions.get(session)
        if found is None:
            found = self._sessions[session] = ScopeState(ScopeKind.SESSION, self._next_row, self.probes, session=session)
        return found

    def alone(self) -> ScopeState:
        """The scope of one transaction."""
        return ScopeState(ScopeKind.TRANSACTION, self._next_row, self.probes)

    def bind(self, reach: ScopeState, session: str) -> bool:
        """A response names the session that its transaction began. Whether that is news."""
        if reach.facts.kind is not ScopeKind.TRANSACTION or session in self._sessions:
            return False
        reach.facts.kind, reach.facts.session = ScopeKind.SESSION, session
        self._sessions[session] = reach
        return True

    def lose(self, transaction: Transaction) -> None:
        """A request was answered with 404: its session, if it has one, is gone (2025-03-26, basic/transports, session management)."""
        scope = transaction.scope
        if scope.kind is ScopeKind.SESSION and not scope.unknown_since:
            scope.unknown_since = transaction.number
            for mark in (transaction.connection, scope.client):
                self._lost.setdefault(mark, {})[scope.session] = transaction

    def keep(self, transaction: Transaction) -> None:
        """That 404 was about something else."""
        if transaction.scope.unknown_since == transaction.number:
            transaction.scope.unknown_since = 0
            self._followed(transaction)

    def renew(self, transaction: Transaction) -> None:
        """A client opens a session: perhaps one in the place of that which it lost. Only where no other could be meant."""
        scope = transaction.scope
        alike = self._lost.get(transaction.connection) or self._lost.get(scope.client) or {}
        if len(alike) == 1:
            (lost,) = alike.values()
            scope.replaces = lost.scope
            self._followed(lost)

    def _followed(self, lost: Transaction) -> None:
        for mark in (lost.connection, lost.scope.client):
            self._lost.get(mark, {}).pop(lost.scope.session, None)

    def announce(self, reach: ScopeState, stream: int, targets: Iterable[str]) -> bool:
        """What is POSTed to these targets is answered on the stream of this transaction. Whether another open one said the same."""
        reach.facts.kind, reach.facts.stream = ScopeKind.STREAM, stream
        taken = False
        for target in targets:
            before = self._endpoints.get(target)
            taken = taken or (before is not None and before is not reach and before.is_open)
            self._endpoints[target] = reach
        return taken

    def resolved(self, get: Transaction, uri: str) -> str:
        """The URL of an endpoint, as a client finds it that knows the server by its own URL; empty if it is none."""
        try:
            return urljoin(urljoin(self.url, get.target), uri)
        except ValueError:
            return ""

    def close(self) -> list[Exchange]:
        """Nothing more will come: the exchanges to which that is news."""
        reaches = {id(one): one for one in (*self._sessions.values(), *self._endpoints.values())}
        return [exchange for one in reaches.values() for exchange in one.correlator.close()]


def endpoint(data: bytes) -> Endpoint:
    """What the data of an `endpoint` event means; some servers send `{"uri": …}` where a URI should stand alone."""
    text = data.strip()
    if text[:1] != b"{":
        return Endpoint(text.decode("utf-8", "replace"), is_plain=True)
    uri = members(text).get("uri")
    return Endpoint((None if uri is None else string(uri)) or "", is_plain=False)


def path_and_query(url: str) -> str:
    """What of a URL stands in a request line; empty if it is no URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if not parts.path and not parts.query:
        return "/" if parts.netloc else ""
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def origin(url: str) -> tuple[str, str, int | None] | None:
    """Scheme, host and port of a URL; None if it is no URL."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None


def named_request(message: Message) -> tuple[Side, str] | None:
    """Which request a message is about, by the side that asked and its id; None if it is about none."""
    if message.kind in (Kind.RESULT, Kind.ERROR):
        return None if message.id is None else (SERVER if message.sender == CLIENT else CLIENT, message.id)
    if message.method == "notifications/cancelled" and message.correlation_key is not None:
        return message.sender, message.correlation_key
    return None

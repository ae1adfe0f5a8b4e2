"""Scopes of request ids over HTTP: sessions, streams of HTTP+SSE, and single transactions.

The heads of requests and responses go in, the scope of each transaction comes out. Each scope has a correlator of its own, so that a
hundred clients with the same ids are never mixed up. Source: MCP specification, basic/transports of each revision.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from ...records import OTHER_SIDE, PSEUDONYM_PATTERN, PSEUDONYM_PREFIX, Side
from ...wire.json_spans import members, string
from ...wire.login import is_local
from ..correlator import Correlator
from ..exchange import Exchange
from ..mcp.negotiation import ProbeDetector
from ..message import Kind, Message
from .head import SESSION, Head
from .transaction import Scope, ScopeKind, Transaction


class SentEvent(msgspec.Struct, frozen=True, gc=False):
    """An event with an id: the transaction that began its stream, and its record."""

    stream: int
    number: int


class ScopeState:
    """One scope at work. `scope` is its entry in the transcript; `events` are its events with ids, by digests of id and data.

    `event_ids` are the same events by digests of their ids alone: None for an id that several events have.
    """

    __slots__ = ("correlator", "event_ids", "events", "is_open", "scope")

    def __init__(self, kind: ScopeKind, next_row: Callable[[], int], probes: ProbeDetector, *, session: str = "") -> None:
        self.scope = Scope(kind, session=session)
        self.correlator = Correlator(next_row, probes)
        self.events: dict[bytes, SentEvent] = {}
        self.event_ids: dict[bytes, SentEvent | None] = {}
        self.is_open = True
        """True while the stream of HTTP+SSE goes on."""


class Endpoint(NamedTuple):
    """The data of an `endpoint` event: a URI, and whether it was plain text as the specification wants it."""

    uri: str
    is_plain: bool


class Scopes:
    """The scopes of one capture. `url` is the server's, against which relative endpoints are resolved."""

    __slots__ = ("_endpoints", "_next_row", "_sessions", "_streams", "_unknown", "probes", "url")

    def __init__(self, next_row: Callable[[], int]) -> None:
        self._next_row = next_row
        self.probes = ProbeDetector()
        self._sessions: dict[str, ScopeState] = {}
        self._endpoints: dict[str, ScopeState] = {}
        self._streams: dict[int, ScopeState] = {}
        """Those of streams that announced an endpoint, by the numbers of their transactions."""
        self._unknown: dict[int | str, dict[str, Transaction]] = {}
        """Sessions that the server answered with 404 and that no other has replaced: by connection, and by the client's name."""
        self.url = ""

    def of_request(self, target: str, head: Head) -> ScopeState:
        """Return the scope of a transaction, as far as its request's head shows it: by its endpoint, then by its session."""
        announced, session = self._endpoints.get(target) or self._announced_in_clear(target), head.get(SESSION)
        if announced is not None and session not in self._sessions:
            return announced
        if not session:
            return self.single_transaction()
        state = self._sessions.get(session)
        if state is None:
            state = self._sessions[session] = ScopeState(ScopeKind.SESSION, self._next_row, self.probes, session=session)
        return state

    def _announced_in_clear(self, target: str) -> ScopeState | None:
        """Return the oldest stream without POSTs that announced this target without its pseudonym: what was compressed has none."""
        if PSEUDONYM_PREFIX not in target:
            return None
        is_of = re.compile("[^/?&#]+".join(map(re.escape, re.split(PSEUDONYM_PATTERN, target))))
        for announced, state in self._endpoints.items():
            if state.is_open and PSEUDONYM_PREFIX not in announced and is_of.fullmatch(announced):
                self._endpoints[target] = self._endpoints.pop(announced)
                return state
        return None

    def single_transaction(self) -> ScopeState:
        """Return a new scope, for one transaction."""
        return ScopeState(ScopeKind.TRANSACTION, self._next_row, self.probes)

    def bind(self, state: ScopeState, session: str) -> bool:
        """Make a transaction's scope that of the session which its response names. Return whether it changed."""
        if state.scope.kind is not ScopeKind.TRANSACTION or session in self._sessions:
            return False
        state.scope.kind, state.scope.session = ScopeKind.SESSION, session
        self._sessions[session] = state
        return True

    def mark_unknown(self, transaction: Transaction) -> None:
        """Note that a request was answered with 404: its session, if it has one, is unknown (2025-03-26, basic/transports)."""
        scope = transaction.scope
        if scope.kind is ScopeKind.SESSION and not scope.unknown_since:
            scope.unknown_since = transaction.number
            for key in (transaction.connection, scope.client):
                self._unknown.setdefault(key, {})[scope.session] = transaction

    def unmark_unknown(self, transaction: Transaction) -> None:
        """Note that the 404 of a transaction was not about its session."""
        if transaction.scope.unknown_since == transaction.number:
            transaction.scope.unknown_since = 0
            self._forget_unknown(transaction)

    def replace_unknown(self, transaction: Transaction) -> None:
        """Let the session that a client opens replace its unknown one, if it has exactly one."""
        scope = transaction.scope
        unknown = self._unknown.get(transaction.connection) or self._unknown.get(scope.client) or {}
        if len(unknown) == 1:
            (refused,) = unknown.values()
            scope.replaces = refused.scope
            self._forget_unknown(refused)

    def _forget_unknown(self, refused: Transaction) -> None:
        for key in (refused.connection, refused.scope.client):
            self._unknown.get(key, {}).pop(refused.scope.session, None)

    def announce(self, state: ScopeState, stream: int, targets: Iterable[str]) -> bool:
        """Let the stream of this transaction answer what is POSTed to these targets. Return whether another open stream does so."""
        state.scope.kind, state.scope.stream = ScopeKind.STREAM, stream
        self._streams[stream] = state
        is_shared = False
        for target in targets:
            before = self._endpoints.get(target)
            is_shared = is_shared or (before is not None and before is not state and before.is_open)
            self._endpoints[target] = state
        return is_shared

    def resolve(self, get: Transaction, uri: str) -> str:
        """Return the URL of an endpoint as a client resolves it, which knows the server by its own URL; empty if it is no URL."""
        from urllib.parse import urljoin  # slow to import

        try:
            return urljoin(urljoin(self.url, get.target), uri)
        except ValueError:
            return ""

    def close(self) -> list[Exchange]:
        """End all scopes; return the exchanges that changed."""
        states = {id(state): state for state in (*self._sessions.values(), *self._endpoints.values())}
        return [exchange for state in states.values() for exchange in state.correlator.close()]


def endpoint(data: bytes) -> Endpoint:
    """Read the data of an `endpoint` event; some servers send `{"uri": …}` in place of a plain URI."""
    text = data.strip()
    if text[:1] != b"{":
        return Endpoint(text.decode("utf-8", "replace"), is_plain=True)
    uri = members(text).get("uri")
    return Endpoint((None if uri is None else string(uri)) or "", is_plain=False)


def path_and_query(url: str) -> str:
    """Return the target of a request for a URL; empty if it is no URL."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if not parts.path and not parts.query:
        return "/" if parts.netloc else ""
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def origin(url: str) -> tuple[str, str, int | None] | None:
    """Return scheme, host and port of a URL; None if it is no URL."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None


def names_server(url: str, server: str, *, is_endpoint: bool = True) -> bool:
    """Return whether a URL is one of the server's, by the rule of a tap.

    An endpoint may have no scheme, and another name of this machine where the server has one.
    """
    own = origin(server)
    named = origin(f"{own[0]}:{url}" if own is not None and is_endpoint and url.startswith("//") else url)
    if own is None or named is None:
        return False
    return named == own or (is_endpoint and named[::2] == own[::2] and is_local(named[1]))


def named_request(message: Message) -> tuple[Side, str] | None:
    """Return the request that a message is about, as its sender and its id; None if it is about none."""
    if message.kind in (Kind.RESULT, Kind.ERROR):
        return None if message.id is None else (OTHER_SIDE[message.sender], message.id)
    if message.method == "notifications/cancelled" and message.correlation_key is not None:
        return message.sender, message.correlation_key
    return None

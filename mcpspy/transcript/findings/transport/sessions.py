"""Findings about sessions of Streamable HTTP: unknown ones, missing ones, and a second stream in one.

Source: MCP specification, basic/transports of 2025-03-26 to 2025-11-25; 2026-07-28 has no sessions.
"""

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT, SERVER
from ...clients import ClientKey, Traits
from ...http.head import EVENT_STREAM, SESSION
from ...http.transaction import ScopeKind, Transaction
from ...mcp.fields import revision
from ...mcp.methods import DISCOVER, INITIALIZE
from ...mcp.revisions import Era
from ...message import Kind
from ...model import Exchange, UnpairedMessage
from ..facts import CaptureFacts, clients
from ..gateway_signs import gateway_field
from ..hits import hit_on_transaction
from ..rule import Hit, Severity, protocol_rule, transport_rule
from ..words import quoted, seconds
from .browsers import hides_session
from .server_exits import PATIENCE_NS

_TOOLS: Final = '→ POST /mcp\n  tools/list 1\n← 200 OK\n  result 1 {"tools":[]}'

SESSION_UNKNOWN: Final = transport_rule(
    name="session-unknown",
    title="Client keeps using an unknown session",
    severity=Severity.ERROR,
    what="The server no longer knows a session. It answers 404 and the client begins no new one; or, wrongly, it answers 400.",
    why="The session is gone, as after a restart of the server, and every further request in it fails.",
    blame="The client: after 404 it has to begin a new session (2025-03-26 to 2025-11-25, basic/transports).",
    example=(
        f"· HTTP\n· handshake 2025-11-25, server: tools\n{_TOOLS}\n→ POST /mcp\n  tools/list 2\n← 404 Not Found\n"
        "→ POST /mcp\n  tools/list 3\n← 404 Not Found"
    ),
    clean=(
        f"· HTTP\n· handshake 2025-11-25, server: tools\n{_TOOLS}\n→ POST /mcp\n  tools/list 2\n← 404 Not Found\n"
        "· session none\n· handshake 2025-11-25 again as 77aa, server: tools\n→ POST /mcp\n  tools/list 3\n"
        '← 200 OK\n  result 3 {"tools":[]}'
    ),
    advice="On 404, send initialize without Mcp-Session-Id and repeat the request; restarting the client helps too.",
)

SESSION_MISSING: Final = transport_rule(
    name="session-missing",
    title="Request without its session",
    what="A request names no session, and the server refuses it for that.",
    why="The server cannot tell which session the request belongs to.",
    blame="The client, or a proxy that drops the field: every request after initialize needs Mcp-Session-Id.",
    example=(
        "· HTTP\n· handshake 2025-11-25, server: tools\n· session none\n→ POST /mcp\n  MCP-Protocol-Version: 2025-11-25\n"
        '  tools/list 1\n← 400 Bad Request\n  {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Missing session ID"}}'
    ),
    clean=f"· HTTP\n· handshake 2025-11-25, server: tools\n{_TOOLS}",
    advice="Keep the Mcp-Session-Id from the response to initialize, and send it with every request.",
)

SPLIT_SESSION: Final = transport_rule(
    name="split-session",
    title="Session known and unknown by turns",
    severity=Severity.ERROR,
    what="A session is answered with 404, and afterwards served again; or several were unknown as soon as they had been given out.",
    why="Requests reach several instances of the server, and only the one that made the session knows it: calls fail at random.",
    blame="The gateway, or how it is configured: a server that had forgotten the session could not serve it again.",
    example=(f"· HTTP\n· handshake 2025-11-25, server: tools\n→ POST /mcp\n  tools/list 2\n← 404 Not Found\n{_TOOLS}"),
    clean=(
        f"· HTTP\n· handshake 2025-11-25, server: tools\n{_TOOLS}\n→ POST /mcp\n  tools/list 2\n← 404 Not Found\n"
        "· session none\n· handshake 2025-11-25 again as 77aa, server: tools\n→ POST /mcp\n  tools/list 3\n"
        '← 200 OK\n  result 3 {"tools":[]}'
    ),
    advice="Route by Mcp-Session-Id (sticky sessions), let the instances share their sessions, or run one instance.",
)

SECOND_STREAM: Final = transport_rule(
    name="second-stream",
    title="Second GET stream refused",
    what="The client opens a second stream with GET while its first is open, and is refused with 409.",
    why="SDK servers allow one per session; clients give up after a few tries and miss the server's messages.",
    blame="The client, or a proxy in between: mcpspy did not see the first stream close.",
    example=(
        "· HTTP\n· handshake 2025-11-25\n→ GET /mcp\n  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream\n"
        "→ GET /mcp\n  Accept: text/event-stream\n← 409 Conflict"
    ),
    clean=(
        "· HTTP\n· handshake 2025-11-25\n→ GET /mcp\n  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream\n"
        "· the client closes the stream\n→ GET /mcp\n  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream"
    ),
    advice="Close the first stream, and check that no proxy holds it open.",
)

MODERN_SESSION: Final = protocol_rule(
    name="session-in-modern-era",
    title="Session in a revision without sessions",
    what="A request of 2026-07-28 or later, or its result, has an Mcp-Session-Id.",
    why="These revisions have no sessions: clients ignore the field, and what the server keeps for it is lost.",
    blame="The sender: it sent a field that its revision does not have.",
    example=(
        "· revision 2026-07-28\n→ POST /mcp\n  Mcp-Method: tools/list\n  tools/list 1\n"
        '← 200 OK\n  Mcp-Session-Id: 5f2c\n  result 1 {"tools":[]}'
    ),
    clean='· revision 2026-07-28\n→ POST /mcp\n  Mcp-Method: tools/list\n  tools/list 1\n← 200 OK\n  result 1 {"tools":[]}',
    advice="Keep no state between requests; put what a later one needs into requestState or into arguments.",
)

RULES: Final = (SESSION_UNKNOWN, SESSION_MISSING, SPLIT_SESSION, SECOND_STREAM, MODERN_SESSION)

GATEWAY: Final = "gateway"
"""The culprit if something between client and server refused a request: a reverse proxy, a load balancer, a CDN."""

_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_SESSION_FIELD: Final = b"\nmcp-session-id:"

_FRESH_NS: Final = 2_000_000_000
"""A session that is unknown so soon after it was given out was not forgotten: another instance was asked."""

_is_unknown = lazy_pattern(
    rb"session.{0,40}(?:not found|unknown|invalid|expired|not exist)|(?:no valid|invalid|unknown|expired|no such).{0,20}session",
    re.IGNORECASE,
)

_ID_LETTERS: Final = 36
"""A UUID, or a pseudonym."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find faults in the use of sessions."""
    transactions = facts.capture.transactions
    if not transactions:
        return
    first_ns = given_out_ns(facts)
    refused: dict[str, list[Transaction]] = {}
    streams: dict[str, Transaction] = {}
    ended: set[str] = set()
    split: list[tuple[str, Transaction, Transaction]] = []
    known: _KnownSessions | None = None
    unclear: dict[str, Transaction] = {}  # refused with 400, which tells no client to begin another session
    for transaction in transactions.values():
        session = transaction.scope.session if transaction.scope.kind is ScopeKind.SESSION else ""
        exchange = facts.first_exchanges.get(transaction.number)
        if lacks_session(transaction, exchange, first_ns):
            if any(hides_session(opening.transaction) for opening in facts.initializes):
                continue  # `browsers` says so
            known = known or _KnownSessions(facts)
            if not known.had_one(transaction):
                if _asks_for_session(transaction, exchange):
                    yield _lost_session(facts, transaction, exchange, None)
                continue
            name = _sent_name(facts, transaction) if exchange is None else exchange.method
            what = f"{name} came without {SESSION.title()} and was refused, after the server had given out a session."
            yield hit_on_transaction(SESSION_MISSING, facts, transaction, what, CLIENT, group="left out")
            continue
        if not session:
            yield from _modern_session(facts, transaction)
            if first_ns is None and _asks_for_session(transaction, exchange):
                opening = next((row for row in facts.initializes if row.at_ns < transaction.at_ns), None)
                yield _lost_session(facts, transaction, exchange, opening)
            continue
        if transaction.method == "DELETE":
            ended.add(session)
        elif transaction.status == _NOT_FOUND and session not in ended:
            refused.setdefault(session, []).append(transaction)
        elif transaction.status == _BAD_REQUEST and session not in ended and refuses_session(transaction):
            unclear.setdefault(session, transaction)
        elif 0 < transaction.status < _BAD_REQUEST:
            unclear.pop(session, None)
            split += [(session, request, transaction) for request in refused.pop(session, []) if _denies_session(request)][:1]
        if transaction.method == "GET":
            yield from _second_stream(facts, transaction, streams.get(session))
            if transaction.is_stream:
                streams[session] = transaction
    split_hits = list(_split(facts, split, refused))
    yield from split_hits
    if not refused and not unclear:
        return
    openings = _Openings(facts)
    for session, requests in {} if split_hits else refused.items():
        if not openings.began_again(session, requests[0]):
            yield _unknown_session(facts, session, requests, openings.given(session))
    for session, transaction in unclear.items():
        is_given = first_ns is not None and first_ns < transaction.at_ns
        if is_given and not openings.began_again(session, transaction):
            yield _vague(facts, session, transaction)


class _Openings:
    """The requests of initialize of a capture, by the clients that may have sent them; of equal clients they are looked up once."""

    __slots__ = ("_by_process", "_of_users", "_sent", "_users")

    def __init__(self, facts: CaptureFacts) -> None:
        traits = clients(facts).traits
        self._users: dict[str, set[Traits]] = {}
        for transaction in facts.capture.transactions.values():
            if transaction.scope.session:
                self._users.setdefault(transaction.scope.session, set()).add(traits(transaction))
        self._sent: dict[Traits, list[Transaction]] = {}
        self._by_process: dict[ClientKey | None, list[Traits]] = {}
        for initialize in facts.initializes:
            if initialize.transaction is not None:
                own = traits(initialize.transaction)
                if own not in self._sent:
                    self._by_process.setdefault(own.process, []).append(own)
                self._sent.setdefault(own, []).append(initialize.transaction)
        self._of_users: dict[frozenset[Traits], tuple[list[Transaction], set[str]]] = {}

    def sent(self, session: str) -> list[Transaction]:
        """Return those that may be of the client of a session, in the order of time."""
        return self._of(session)[0]

    def given(self, session: str) -> set[str]:
        """Return the sessions that may have been given to the client which uses one; equal ones have equal pseudonyms."""
        return self._of(session)[1]

    def began_again(self, session: str, refused: Transaction) -> bool:
        """Return whether the client of a session sent initialize after a refusal, as far as one can tell.

        Another session's place that an initialize took shows that it is not of this one.
        """
        later = takewhile(lambda transaction: transaction.at_ns > refused.at_ns, reversed(self.sent(session)))
        return any(transaction.scope.replaces in (None, refused.scope) for transaction in later)

    def _of(self, session: str) -> tuple[list[Transaction], set[str]]:
        users = frozenset(self._users.get(session, ()))
        if users not in self._of_users:
            processes = {user.process for user in users}
            known = self._by_process if None in processes else {*processes, None}
            alike = [own for process in known for own in self._by_process.get(process, ()) if any(map(own.may_be, users))]
            sent = sorted((transaction for own in alike for transaction in self._sent[own]), key=lambda sent: sent.number)
            given = {sent.response.head.get(SESSION) for sent in sent if sent.response is not None}
            self._of_users[users] = sent, given - {""}
        return self._of_users[users]


def _split(
    facts: CaptureFacts, split: list[tuple[str, Transaction, Transaction]], refused: dict[str, list[Transaction]]
) -> Iterator[Hit]:
    """Find sessions that some instances behind a gateway know and others do not."""
    for session, unknown, known in split:
        after = seconds(known.at_ns - unknown.at_ns)
        what = f"The session {_shown(session)} was answered with 404, and served again {after} later."
        yield hit_on_transaction(SPLIT_SESSION, facts, unknown, what, GATEWAY, group="split")
    lost = _lost_at_once(facts, refused)
    if len(lost) > 1 and not split:
        what = (
            f"{len(lost)} sessions were answered with 404 less than {seconds(_FRESH_NS)} after the server had given them out."
        )
        yield hit_on_transaction(SPLIT_SESSION, facts, lost[0], what, GATEWAY, group="fresh")


def refuses_session(transaction: Transaction) -> bool:
    """Return whether the server says in a refusal that it does not know the session of a request."""
    return transaction.scope.kind is ScopeKind.SESSION and bool(_is_unknown.search(transaction.refusal))


def _vague(facts: CaptureFacts, session: str, transaction: Transaction) -> Hit:
    what = f"The server refused its own session {_shown(session)} with 400, not 404: {quoted(transaction.refusal)}."
    blame = "The server: only 404 tells a client that a session is gone, and that it has to begin another."
    advice = "Answer requests of an unknown session with 404 Not Found; until then, restart the client after the server."
    return hit_on_transaction(SESSION_UNKNOWN, facts, transaction, what, SERVER, blame=blame, advice=advice)


def _lost_at_once(facts: CaptureFacts, refused: dict[str, list[Transaction]]) -> list[Transaction]:
    """Return the first refused request of each session that was just given out."""
    given_ns = {
        row.transaction.response.head.get(SESSION): row.response.at_ns
        for row in facts.initializes
        if row.response is not None and row.transaction is not None and row.transaction.response is not None
    }
    firsts = ((given_ns.get(session), requests[0]) for session, requests in refused.items())
    return [
        first for at_ns, first in firsts if at_ns is not None and first.at_ns - at_ns < _FRESH_NS and _denies_session(first)
    ]


def _denies_session(transaction: Transaction) -> bool:
    """Return whether a 404 is about the session, and not about a method or a path."""
    return transaction.method == "POST" and (not transaction.refusal or b"session" in transaction.refusal.lower())


def _unknown_session(facts: CaptureFacts, session: str, refused: list[Transaction], given: set[str]) -> Hit:
    again = len(refused) - 1
    more = f", but used it {'once' if again == 1 else f'{again} times'} more" if again else ""
    change = ""
    if given and session not in given:
        change = f"; the server had given out {_shown(min(given))}, which the client changed"
    what = f"The session {_shown(session)} was answered with 404, and the client did not initialize again{more}{change}."
    left_ns = facts.capture.last_ns + facts.capture.shift_ns - refused[0].at_ns
    severity = None if more else Severity.WARNING if left_ns > PATIENCE_NS else Severity.NOTE  # it may have had no time to
    if change and any(_sessions_in(row) > 1 for row in facts.initializes):
        times = f" {len(refused)} times" if again else ""
        what = f"The session {_shown(session)} was answered with 404{times}; the server had given out two sessions in one response."
        blame = "The server, or a proxy on its side: it gave out two sessions at once, and clients send both in one field."
        return hit_on_transaction(
            SESSION_UNKNOWN, facts, refused[0], what, SERVER, severity=severity, blame=blame, advice=_ONE_SESSION
        )
    return hit_on_transaction(SESSION_UNKNOWN, facts, refused[0], what, CLIENT, severity=severity)


_ONE_SESSION: Final = "Set Mcp-Session-Id once in the response to initialize; look for a layer that adds a field of its own."


def _sessions_in(initialize: Exchange) -> int:
    """Count the sessions that the response to an initialize gives out."""
    response = None if initialize.transaction is None else initialize.transaction.response
    return 0 if response is None else sum(name.lower() == SESSION for name, _ in response.head.fields)


def _asks_for_session(transaction: Transaction, exchange: Exchange | None) -> bool:
    """Tell whether a server refuses a request or a notification because it names no session."""
    if transaction.status not in (_BAD_REQUEST, _NOT_FOUND) or not transaction.request_messages:
        return False
    if transaction.scope.kind is ScopeKind.STREAM:
        return False  # its URL names the session
    if exchange is not None and (exchange.method in (INITIALIZE, DISCOVER) or exchange.era is Era.MODERN):
        return False
    return b"session" in transaction.refusal.lower()


def _lost_session(facts: CaptureFacts, transaction: Transaction, exchange: Exchange | None, opening: Exchange | None) -> Hit:
    """Blame a client that has no `opening`, or a gateway that shows itself.

    A server that asks for a session gives one out, and clients on the SDKs send it back.
    """
    name = _sent_name(facts, transaction) if exchange is None else exchange.method
    what = f"{name} was refused because it names no session, but no response gave one to the client."
    if opening is None:
        blame = "The client: it sent no initialize before this request."
        return hit_on_transaction(
            SESSION_MISSING, facts, transaction, what, CLIENT, blame=blame, advice=SESSION_MISSING.advice, group="no initialize"
        )
    field = gateway_field(None if opening.transaction is None else opening.transaction.response)
    culprit, blame = (
        "unclear",
        (
            "Unclear: the server did not send Mcp-Session-Id with the result of initialize, or a proxy before it dropped the field."
        ),
    )
    if field:
        culprit, blame = (
            GATEWAY,
            (
                "The gateway in front of the server, it seems: the server asks for the session that the result of initialize should "
                f"have brought, and {field}."
            ),
        )
    if all(other.at_ns <= transaction.at_ns for other in reversed(facts.capture.transactions.values())):
        what += " The client sent nothing after it."
    advice = "Compare the head of the response to initialize on both sides of each proxy, and let Mcp-Session-Id pass."
    return hit_on_transaction(SESSION_MISSING, facts, transaction, what, culprit, blame=blame, advice=advice, group="not given")


def _sent_name(facts: CaptureFacts, transaction: Transaction) -> str:
    """Name what a POST brought that is no request: a notification, if it was one."""
    for (method, _, _, _), use in facts.notifications.items():
        if isinstance(use.first, UnpairedMessage):
            carrier = facts.capture.transaction_of(use.first.message.stream)
            if carrier is transaction:
                return method
    return f"{transaction.method} {transaction.target}"


def given_out_ns(facts: CaptureFacts) -> int | None:
    """Return when the first session was in use; None if none was."""
    served = (
        transaction.at_ns
        for transaction in facts.capture.transactions.values()
        if transaction.scope.kind is ScopeKind.SESSION and 0 < transaction.status < _BAD_REQUEST
    )
    return next(served, None)


class _KnownSessions:
    """The sessions of a capture, by which the client of a request is told apart from others that share the server."""

    __slots__ = ("_begun", "_firsts", "_lasts", "_traits")

    def __init__(self, facts: CaptureFacts) -> None:
        self._traits = clients(facts).traits
        self._firsts: dict[str, tuple[Transaction, Traits]] = {}
        self._lasts: dict[str, int] = {}
        self._begun: dict[int, int] = {}
        """The time from which a connection has a session."""
        for transaction in facts.capture.transactions.values():
            if transaction.scope.kind is ScopeKind.SESSION and 0 < transaction.status < _BAD_REQUEST:
                if transaction.scope.session not in self._firsts:
                    self._firsts[transaction.scope.session] = transaction, self._traits(transaction)
                self._lasts[transaction.scope.session] = transaction.at_ns
                self._begun.setdefault(transaction.connection, transaction.at_ns)

    def had_one(self, transaction: Transaction) -> bool:
        """Return whether the client of a request had been given a session before it, as far as one can tell.

        If no session was used on its connection, the client is one that has the same process and program; and it is another one if
        such a client begins a session later, while the first goes on.
        """
        at_ns, connection = transaction.at_ns, transaction.connection
        if connection in self._begun:
            return self._begun[connection] < at_ns
        own = self._traits(transaction)
        of_client = [first for first, traits in self._firsts.values() if own.may_be(traits)]
        used_ns = max((self._lasts[first.scope.session] for first in of_client if first.at_ns < at_ns), default=0)
        return used_ns > 0 and not any(at_ns < first.at_ns < used_ns for first in of_client)


def asks_for_stream(transaction: Transaction) -> bool:
    """Return whether a transaction is the GET of a stream of events; metadata of OAuth is none."""
    request = transaction.request
    if request is None or transaction.method != "GET" or "/.well-known/" in transaction.target:
        return False
    return EVENT_STREAM in request.head.get("accept")


def lacks_session(transaction: Transaction, exchange: Exchange | None, first_ns: int | None) -> bool:
    """Return whether a request was refused that names no session, after the first one was given out.

    Its own head says what it names: a server may answer with the id of another session, which it makes up at once.
    """
    request = transaction.request
    if (
        request is None
        or first_ns is None
        or first_ns >= transaction.at_ns
        or transaction.status not in (_BAD_REQUEST, _NOT_FOUND)
    ):
        return False
    if exchange is not None and (exchange.era is Era.MODERN or exchange.method == INITIALIZE):
        return False
    is_due = asks_for_stream(transaction) or (
        transaction.request_messages > 0 and transaction.scope.kind is not ScopeKind.STREAM
    )
    return is_due and _SESSION_FIELD not in request.raw_head.lower()


def _modern_session(facts: CaptureFacts, transaction: Transaction) -> Iterator[Hit]:
    """Find sessions named under a revision that has none.

    A server has agreed to the revision of a request if it answers with a result. A refusal may come from an older server, such as
    one on the Python SDK 1.x, which gives a session to every request without one, even if it refuses it.
    """
    exchange, request, response = facts.first_exchanges.get(transaction.number), transaction.request, transaction.response
    if exchange is None or request is None:
        return
    names_session = _SESSION_FIELD in request.raw_head.lower()
    if exchange.era is Era.MODERN:
        if names_session and revision(exchange.request.raw) is not None:
            what = f"{exchange.method}, under {exchange.revision}, names a session."
            yield hit_on_transaction(MODERN_SESSION, facts, transaction, what, CLIENT, group="client")
        speaks_it = exchange.response is not None and exchange.response.kind is Kind.RESULT
        if speaks_it and response is not None and not response.injected and _SESSION_FIELD in response.raw_head.lower():
            what = f"The response to {exchange.method}, under {exchange.revision}, names a session."
            yield hit_on_transaction(MODERN_SESSION, facts, transaction, what, SERVER, group="one")


def _second_stream(facts: CaptureFacts, transaction: Transaction, first: Transaction | None) -> Iterator[Hit]:
    if transaction.status != _CONFLICT or first is None:
        return
    if first.ended_ns is None or first.ended_ns > transaction.at_ns:
        what = f"A second GET {transaction.target} in the session was refused with 409: the first stream was open."
        yield hit_on_transaction(SECOND_STREAM, facts, transaction, what, CLIENT, group=transaction.scope.session)


def _shown(session: str) -> str:
    """Cut the id of a session to a length that fits into a sentence; a pseudonym stays whole, so that it can be looked for."""
    return session if len(session) <= _ID_LETTERS else f"{session[:_ID_LETTERS]}…"

"""Findings about sessions of Streamable HTTP: dead ones, missing ones, and a stream too many.

Source: MCP specification, basic/transports of 2025-03-26 to 2025-11-25; 2026-07-28 has no sessions.
"""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT, SERVER
from ...http.head import SESSION
from ...http.transaction import ScopeKind, Transaction
from ...mcp.fields import revision
from ...mcp.revisions import Era
from ..facts import CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit
from .server_exits import PATIENCE_NS

_TOOLS: Final = '→ POST /mcp\n  tools/list 1\n← 200 OK\n  result 1 {"tools":[]}'

SESSION_UNKNOWN: Final = Rule(
    name="session-unknown",
    title="Client keeps using an unknown session",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="The server answers 404 to a session that it gave out, and the client does not initialize again.",
    why="The session is gone, as after a restart of the server. All that the client sends in it fails from now on.",
    blame="The client: after 404 it has to begin a new session (2025-03-26 to 2025-11-25, basic/transports, session management).",
    example=(
        f"· HTTP\n· handshake 2025-11-25, server: tools\n{_TOOLS}\n→ POST /mcp\n  tools/list 2\n← 404 Not Found\n"
        "→ POST /mcp\n  tools/list 3\n← 404 Not Found"
    ),
    clean=(
        f"· HTTP\n· handshake 2025-11-25, server: tools\n{_TOOLS}\n→ POST /mcp\n  tools/list 2\n← 404 Not Found\n"
        "· session none\n· handshake 2025-11-25 again as 77aa, server: tools\n→ POST /mcp\n  tools/list 3\n"
        '← 200 OK\n  result 3 {"tools":[]}'
    ),
    fix="On 404, send initialize without Mcp-Session-Id and repeat the request; restart the client until it does.",
)

SESSION_MISSING: Final = Rule(
    name="session-missing",
    title="Request without its session",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="The server gave out a session, and the client asks without naming it and is refused.",
    why="The server cannot tell whose request it is.",
    blame="The client: it has to send Mcp-Session-Id with every request after initialize was answered with one.",
    example=(
        "· HTTP\n· handshake 2025-11-25, server: tools\n· session none\n→ POST /mcp\n  MCP-Protocol-Version: 2025-11-25\n"
        '  tools/list 1\n← 400 Bad Request\n  {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Missing session ID"}}'
    ),
    clean=f"· HTTP\n· handshake 2025-11-25, server: tools\n{_TOOLS}",
    fix="Keep the Mcp-Session-Id of the answer to initialize, and send it with every request. A proxy in between may drop it.",
)

SECOND_STREAM: Final = Rule(
    name="second-stream",
    title="Second GET stream refused",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="The client opens a second stream with GET while its first one is open, and is refused with 409.",
    why="SDK servers allow one for each session. Clients give up after a few tries, and get no more messages of the server.",
    blame="The client, or what stands between: as far as mcpspy sees, the first stream was never closed.",
    example=(
        "· HTTP\n· handshake 2025-11-25\n→ GET /mcp\n  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream\n"
        "→ GET /mcp\n  Accept: text/event-stream\n← 409 Conflict"
    ),
    clean=(
        "· HTTP\n· handshake 2025-11-25\n→ GET /mcp\n  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream\n"
        "· the client closes the stream\n→ GET /mcp\n  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream"
    ),
    fix="Close the first stream, and see that the closing arrives: a proxy may hold it open.",
)

MODERN_SESSION: Final = Rule(
    name="session-in-modern-era",
    title="Session in a revision without sessions",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A request of the revision 2026-07-28 or later, or the answer to one, has an Mcp-Session-Id.",
    why="That era has no sessions: clients ignore the field, and what the server keeps under it is lost.",
    blame="Whoever sent the field: the server that gives out a session, the client that names one.",
    example=(
        "· revision 2026-07-28\n→ POST /mcp\n  Mcp-Method: tools/list\n  tools/list 1\n"
        '← 200 OK\n  Mcp-Session-Id: 5f2c\n  result 1 {"tools":[]}'
    ),
    clean='· revision 2026-07-28\n→ POST /mcp\n  Mcp-Method: tools/list\n  tools/list 1\n← 200 OK\n  result 1 {"tools":[]}',
    fix="Keep no state between requests; what a later one needs goes into requestState, or into arguments.",
)

RULES: Final = (SESSION_UNKNOWN, SESSION_MISSING, SECOND_STREAM, MODERN_SESSION)

_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_SESSION_FIELD: Final = b"\nmcp-session-id:"


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """What went wrong with sessions."""
    transactions = facts.capture.transactions
    if not transactions:
        return
    initialized_ns = max((one.at_ns for one in facts.initializes), default=0)
    alive: set[str] = set()
    first_ns: int | None = None
    dead: dict[str, list[Transaction]] = {}
    streams: dict[str, Transaction] = {}
    ended: set[str] = set()
    for one in transactions.values():
        session = one.scope.session if one.scope.kind is ScopeKind.SESSION else ""
        if not session:
            yield from _without(facts, one, given_out=first_ns is not None and first_ns < one.at_ns)
            continue
        if one.method == "DELETE":
            ended.add(session)
        elif one.status == _NOT_FOUND and session in alive and session not in ended:
            dead.setdefault(session, []).append(one)
        elif 0 < one.status < _BAD_REQUEST:
            alive.add(session)
            first_ns = one.at_ns if first_ns is None else first_ns
            dead.pop(session, None)
        if one.method == "GET":
            yield from _second_stream(facts, one, streams.get(session))
            if one.is_stream:
                streams[session] = one
    for session, refused in dead.items():
        if initialized_ns <= refused[0].at_ns:
            yield _lost(facts, session, refused)


def _lost(facts: CaptureFacts, session: str, refused: list[Transaction]) -> Hit:
    again = len(refused) - 1
    more = f" It asked {'once' if again == 1 else f'{again} times'} more in it." if again else ""
    what = f"The session {session[:20]} was answered 404, and the client did not initialize again.{more}"
    left_ns = facts.capture.last_ns + facts.capture.shift_ns - refused[0].at_ns
    milder = None if more else Severity.WARNING if left_ns > PATIENCE_NS else Severity.INFO  # it may have had no time to
    return _about(SESSION_UNKNOWN, facts, refused[0], what, CLIENT, severity=milder)


def _without(facts: CaptureFacts, one: Transaction, *, given_out: bool) -> Iterator[Hit]:
    """Transactions without a session."""
    asked = facts.first_exchanges.get(one.number)
    if asked is None or one.request is None:
        return
    if asked.era is Era.MODERN:
        if _SESSION_FIELD in one.request.opened.head.lower() and revision(asked.request.raw) is not None:
            what = f"{asked.method}, of {asked.revision}, names a session."
            yield _about(MODERN_SESSION, facts, one, what, CLIENT, group="client")
        response = one.response
        if response is not None and not response.injected and _SESSION_FIELD in response.opened.head.lower():
            what = f"The answer to {asked.method}, of {asked.revision}, names a session."
            yield _about(MODERN_SESSION, facts, one, what, SERVER, group="one")
        return
    is_bare = _SESSION_FIELD not in one.request.opened.head.lower()
    if one.status == _BAD_REQUEST and is_bare and asked.method != "initialize" and given_out:
        what = f"{asked.method} came without {SESSION.title()} and was refused, after the server had given out a session."
        yield _about(SESSION_MISSING, facts, one, what, CLIENT, group=asked.method)


def _second_stream(facts: CaptureFacts, one: Transaction, first: Transaction | None) -> Iterator[Hit]:
    if one.status != _CONFLICT or first is None:
        return
    if first.ended_ns is None or first.ended_ns > one.at_ns:
        what = f"A second GET {one.target} in the session was refused with 409: the first stream was open."
        yield _about(SECOND_STREAM, facts, one, what, CLIENT, group=one.scope.session)


def _about(
    rule: Rule,
    facts: CaptureFacts,
    one: Transaction,
    what: str,
    culprit: str,
    *,
    group: str = "",
    severity: Severity | None = None,
) -> Hit:
    stream = one.response or one.request
    number = stream.opened.number if stream is not None else -1
    at_ns = stream.at_ns if stream is not None else one.at_ns
    return hit(
        rule, at_ns=at_ns, capture=one.capture, number=number, row=facts.row_of(one), what=what, culprit=culprit, group=group,
        severity=severity,
    )  # fmt: skip

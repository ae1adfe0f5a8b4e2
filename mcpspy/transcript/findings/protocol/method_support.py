"""Findings about methods: the wrong sender, the wrong kind of message, methods of another revision, deprecated methods.

Source: MCP specification, schema of each revision, as in `mcp.methods`. Where the revision is unknown, only what is wrong in all of
them is found. A method that no revision has is a custom one, which is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ....records import CLIENT, SERVER
from ...mcp.methods import MethodKind, MethodStanding, method_row, method_rows, method_standing
from ...mcp.revisions import Era, era
from ...model import Exchange, Kind
from ..rule import Hit, Severity, hit_in, protocol_rule

if TYPE_CHECKING:
    from ....records import Side
    from ..facts import CaptureFacts, MessageKey, Occurrences

WRONG_DIRECTION: Final = protocol_rule(
    name="wrong-direction",
    title="Message from the wrong side",
    severity=Severity.ERROR,
    what="A message was sent that only the other side may send.",
    why="The receiver does not implement the method: a request is rejected or waits forever, a notification is lost.",
    blame="The sender: the specification reserves the method for the other side.",
    example="· handshake 2025-11-25, server: tools\n← tools/list 1\n→ error 1 -32601 Method not found",
    clean='· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[]}',
    advice="Let the other side send it, or use a custom method.",
)

WRONG_KIND: Final = protocol_rule(
    name="wrong-kind",
    title="Request and notification confused",
    what="A request was sent as a notification, without an id, or a notification as a request.",
    why="A notification is never answered, and SDKs drop messages of the wrong kind.",
    blame="The sender: it decides whether a message has an id.",
    example="· handshake 2025-11-25\n→ ping",
    clean="· handshake 2025-11-25\n→ ping 1\n← result 1",
    advice="Send requests with an id and notifications without one.",
)

METHOD_NOT_IN_REVISION: Final = protocol_rule(
    name="method-not-in-revision",
    title="Method not in this revision",
    what="A method was used that the revision in force does not have yet, or no longer has.",
    why="A side that follows the revision rejects it with -32601, or never answers.",
    blame="The sender: the revision was agreed on, or is named in the message itself.",
    example=(
        '· handshake 2025-03-26, client: elicitation\n← elicitation/create 1 {"message":"City?","requestedSchema":{}}\n'
        "→ error 1 -32601 Method not found"
    ),
    clean=(
        '· handshake 2025-06-18, client: elicitation\n← elicitation/create 1 {"message":"City?","requestedSchema":{}}\n'
        '→ result 1 {"action":"decline"}'
    ),
    advice="Use a method of the revision in force, or agree on another revision.",
)

REQUEST_IN_MODERN_ERA: Final = protocol_rule(
    name="server-request-in-modern-era",
    title="Server request in a revision without them",
    severity=Severity.ERROR,
    what="The server sent a request to a client of revision 2026-07-28 or later, where servers send none.",
    why="The client does not answer, and the server waits for input that belongs into a result of the type input_required.",
    blame="The server: the client named its revision in its own request.",
    example=(
        '· revision 2026-07-28, client: roots\n→ tools/call 1 {"name":"files"}\n← roots/list 1\n'
        '← result 1 {"resultType":"complete","content":[]}\n→ error 1 -32601 Method not found'
    ),
    clean=(
        '· revision 2026-07-28, client: roots\n→ tools/call 1 {"name":"files"}\n'
        '← result 1 {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}},"requestState":"s"}\n'
        '→ tools/call 2 {"name":"files","inputResponses":{"roots":{"roots":[]}},"requestState":"s"}\n'
        '← result 2 {"resultType":"complete","content":[]}'
    ),
    advice="Return a result with resultType input_required, and put the request into its inputRequests.",
)

DEPRECATED_METHOD: Final = protocol_rule(
    name="deprecated-method",
    title="Deprecated method",
    severity=Severity.NOTE,
    what="A method was used that the revision in force marks as deprecated.",
    why="A later revision will remove it.",
    blame="The sender: it may still use the method, but should replace it.",
    example=(
        '· revision 2026-07-28\n→ tools/call 1 {"name":"add","_meta":{"io.modelcontextprotocol/logLevel":"info"}}\n'
        '← notifications/message {"level":"info","data":"adding","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}\n'
        '← result 1 {"resultType":"complete","content":[]}'
    ),
    clean=('· revision 2026-07-28\n→ tools/call 1 {"name":"add"}\n! adding\n← result 1 {"resultType":"complete","content":[]}'),
    advice="Use the replacement that the specification names in docs/specification/2026-07-28/deprecated.mdx.",
)

RULES: Final = (WRONG_DIRECTION, WRONG_KIND, METHOD_NOT_IN_REVISION, REQUEST_IN_MODERN_ERA, DEPRECATED_METHOD)


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find misused methods, once for each method, sender, revision and scope."""
    for key, use in facts.requests.items():
        yield from _used(key, use)
    for key, use in facts.notifications.items():
        yield from _used(key, use)
    yield from _server_requests_in_modern_era(facts)


def _used(key: MessageKey, use: Occurrences) -> Iterator[Hit]:
    method, sender, revision, _ = key
    first = use.first
    is_request = isinstance(first, Exchange)
    message = first.request if isinstance(first, Exchange) else first.message
    side = CLIENT if sender == CLIENT else SERVER
    standing = _standing(method, side, revision, is_request=is_request)
    name = f"the {'request' if is_request else 'notification'} {method}"
    if standing is MethodStanding.OTHER_SIDE:
        what = f"The {sender} sent {name}, which only the other side may send."
        yield hit_in(WRONG_DIRECTION, message, first.row, what, count=use.count)
    elif standing is MethodStanding.OTHER_KIND:
        kinds = f"notification {method} as a request" if is_request else f"request {method} as a notification, without an id"
        what = f"The {sender} sent the {kinds}."
        yield hit_in(WRONG_KIND, message, first.row, what, count=use.count)
    elif revision is None:
        return
    elif standing in (MethodStanding.OTHER_REVISION, MethodStanding.INSIDE_ONLY):
        if side == SERVER and is_request and era(revision) is Era.MODERN:
            return
        what = f"The {sender} sent {name}, which revision {revision} does not have."
        yield hit_in(METHOD_NOT_IN_REVISION, message, first.row, what, count=use.count)
    elif standing is MethodStanding.KNOWN:
        known = method_row(method, side, revision)
        if known is not None and known.deprecated and known.deprecated <= revision:
            what = f"{method} is deprecated since revision {known.deprecated}."
            yield hit_in(DEPRECATED_METHOD, message, first.row, what, count=use.count)


def _standing(method: str, side: Side, revision: str | None, *, is_request: bool) -> MethodStanding:
    """Look a method up in the revision, or in all revisions if none is known."""
    kind: MethodKind = "request" if is_request else "notification"
    if revision is not None:
        return method_standing(method, kind, side, revision)
    known = method_rows(method)
    if not known:
        return MethodStanding.UNKNOWN
    if known[0].kind != kind:
        return MethodStanding.OTHER_KIND
    return MethodStanding.KNOWN if any(entry.sender == side for entry in known) else MethodStanding.OTHER_SIDE


def _server_requests_in_modern_era(facts: CaptureFacts) -> Iterator[Hit]:
    """Find requests of the server to a client of a modern revision, if no handshake agreed on another."""
    agreed = any(exchange.response is not None and exchange.response.kind is Kind.RESULT for exchange in facts.initializes)
    modern_ns = min((use.first.at_ns for key, use in facts.requests.items() if _is_modern_and_answered(key, use)), default=None)
    for (method, sender, revision, _), use in facts.requests.items():
        first = use.first
        if (
            sender != SERVER
            or not isinstance(first, Exchange)
            or not any(entry.sender == SERVER for entry in method_rows(method))
        ):
            continue
        if revision is not None:
            is_modern = era(revision) is Era.MODERN
        elif first.transaction is not None:
            exchange = facts.first_exchanges.get(first.transaction.number)
            is_modern = exchange is not None and exchange.era is Era.MODERN
        else:
            is_modern = not agreed and modern_ns is not None and modern_ns < first.at_ns
        if is_modern:
            what = f"The server sent the request {method} to a client of the modern era, where servers send no requests."
            yield hit_in(REQUEST_IN_MODERN_ERA, first.request, first.row, what, count=use.count)


def _is_modern_and_answered(key: MessageKey, use: Occurrences) -> bool:
    first = use.first
    if key[1] != CLIENT or key[2] is None or not isinstance(first, Exchange) or era(key[2]) is not Era.MODERN:
        return False
    return first.response is None or first.response.kind is Kind.RESULT

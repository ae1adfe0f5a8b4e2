"""Findings about who sends what under which revision: directions, kinds, methods that came or went with a revision.

Source: MCP specification, schema of each revision, as `mcp_methods` has it. Where no revision is known, all of them have to say so;
methods that no revision has are somebody's own, which is legal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ....records import CLIENT, SERVER
from ...mcp.methods import MethodKind, MethodStanding, method_standing, row, rows
from ...mcp.revisions import Era, era
from ...model import Exchange, Kind
from ..rule import Family, Hit, Rule, Severity, hit_in

if TYPE_CHECKING:
    from ....records import Side
    from ..facts import CaptureFacts, MessageKey, Occurrences

WRONG_DIRECTION: Final = Rule(
    name="wrong-direction",
    title="Message from the wrong side",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="A side sends what only the other side may send.",
    why="The receiver has no such method: a request is refused or waits forever, a notification is lost.",
    blame="Whoever sent it: the specification gives the method to the other side.",
    example="· handshake 2025-11-25, server: tools\n← tools/list 1\n→ error 1 -32601 Method not found",
    clean='· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[]}',
    fix="Let the other side send it, or use a method of your own.",
)

WRONG_KIND: Final = Rule(
    name="wrong-kind",
    title="Request and notification confused",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A request was sent as a notification, without an id; or a notification as a request.",
    why="A notification is never answered, so what was asked is never told; SDKs drop both kinds of mistakes.",
    blame="Whoever sent it: the id, or the lack of one, is the sender's.",
    example="· handshake 2025-11-25\n→ ping",
    clean="· handshake 2025-11-25\n→ ping 1\n← result 1",
    fix="Send requests with an id, and notifications without.",
)

METHOD_NOT_IN_REVISION: Final = Rule(
    name="method-not-in-revision",
    title="Method not in this revision",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A method is used that the revision in force does not have: not yet, or no longer.",
    why="A peer that keeps to the revision refuses it with -32601, or never answers.",
    blame="Whoever sent it: the revision was agreed on, or is named in the message itself.",
    example=(
        '· handshake 2025-03-26, client: elicitation\n← elicitation/create 1 {"message":"City?","requestedSchema":{}}\n'
        "→ error 1 -32601 Method not found"
    ),
    clean=(
        '· handshake 2025-06-18, client: elicitation\n← elicitation/create 1 {"message":"City?","requestedSchema":{}}\n'
        '→ result 1 {"action":"decline"}'
    ),
    fix="Use what the revision has, or agree on another one.",
)

REQUEST_IN_MODERN_ERA: Final = Rule(
    name="server-request-in-modern-era",
    title="Server request in a revision without them",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="The server sends a request though the client speaks a revision from 2026-07-28 on, which has no such requests.",
    why="The client answers nothing, and the server waits: what it needs is asked for with a result of the type input_required.",
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
    fix="Answer with resultType input_required and the request in inputRequests.",
)

DEPRECATED_METHOD: Final = Rule(
    name="deprecated-method",
    title="Deprecated method",
    family=Family.PROTOCOL,
    severity=Severity.INFO,
    what="A method is used that the revision in force has, and calls deprecated.",
    why="A later revision will not have it.",
    blame="Whoever sent it; it is allowed for now.",
    example=(
        '· revision 2026-07-28\n→ tools/call 1 {"name":"add","_meta":{"io.modelcontextprotocol/logLevel":"info"}}\n'
        '← notifications/message {"level":"info","data":"adding","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}\n'
        '← result 1 {"resultType":"complete","content":[]}'
    ),
    clean=('· revision 2026-07-28\n→ tools/call 1 {"name":"add"}\n! adding\n← result 1 {"resultType":"complete","content":[]}'),
    fix="See docs/specification/2026-07-28/deprecated.mdx for what takes its place.",
)

RULES: Final = (WRONG_DIRECTION, WRONG_KIND, METHOD_NOT_IN_REVISION, REQUEST_IN_MODERN_ERA, DEPRECATED_METHOD)


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """One finding for each method, sender, revision and scope."""
    for key, use in facts.requests.items():
        yield from _used(key, use)
    for key, use in facts.notifications.items():
        yield from _used(key, use)
    yield from _asked_in_modern_era(facts)


def _used(key: MessageKey, use: Occurrences) -> Iterator[Hit]:
    method, sender, revision, _ = key
    first = use.first
    is_request = isinstance(first, Exchange)
    message = first.request if isinstance(first, Exchange) else first.message
    side = CLIENT if sender == CLIENT else SERVER
    said = _standing(method, side, revision, is_request=is_request)
    name = f"{method} {'request' if is_request else 'notification'}"
    if said is MethodStanding.OTHER_SIDE:
        what = f"The {sender} sent a {name}, which is the other side's to send."
        yield hit_in(WRONG_DIRECTION, message, first.row, what, count=use.count)
    elif said is MethodStanding.OTHER_KIND:
        kind = "notification, without an id, and it is a request" if not is_request else "request, and it is a notification"
        what = f"The {sender} sent {method} as a {kind}."
        yield hit_in(WRONG_KIND, message, first.row, what, count=use.count)
    elif revision is None:
        return
    elif said in (MethodStanding.OTHER_REVISION, MethodStanding.INSIDE_ONLY):
        if side == SERVER and is_request and era(revision) is Era.MODERN:
            return
        what = f"The {sender} sent a {name}, which {revision} does not have."
        yield hit_in(METHOD_NOT_IN_REVISION, message, first.row, what, count=use.count)
    elif said is MethodStanding.KNOWN:
        known = row(method, side, revision)
        if known is not None and known.deprecated and known.deprecated <= revision:
            what = f"{method} is deprecated since {known.deprecated}."
            yield hit_in(DEPRECATED_METHOD, message, first.row, what, count=use.count)


def _standing(method: str, side: Side, revision: str | None, *, is_request: bool) -> MethodStanding:
    """What the revision says of a method; where none is known, what all of them say."""
    kind: MethodKind = "request" if is_request else "notification"
    if revision is not None:
        return method_standing(method, kind, side, revision)
    known = rows(method)
    if not known:
        return MethodStanding.UNKNOWN
    if known[0].kind != kind:
        return MethodStanding.OTHER_KIND
    return MethodStanding.KNOWN if any(one.sender == side for one in known) else MethodStanding.OTHER_SIDE


def _asked_in_modern_era(facts: CaptureFacts) -> Iterator[Hit]:
    """Requests of the server where the client speaks a modern revision, and none was agreed on by a handshake."""
    agreed = any(one.response is not None and one.response.kind is Kind.RESULT for one in facts.initializes)
    modern_ns = min((use.first.at_ns for key, use in facts.requests.items() if _is_modern_and_answered(key, use)), default=None)
    for (method, sender, revision, _), use in facts.requests.items():
        first = use.first
        if sender != SERVER or not isinstance(first, Exchange) or not any(one.sender == SERVER for one in rows(method)):
            continue
        if revision is not None:
            is_modern = era(revision) is Era.MODERN
        elif first.transaction is not None:
            asked = facts.first_exchanges.get(first.transaction.number)
            is_modern = asked is not None and asked.era is Era.MODERN
        else:
            is_modern = not agreed and modern_ns is not None and modern_ns < first.at_ns
        if is_modern:
            what = f"The server sent the request {method} to a client of the modern era, which knows no requests of servers."
            yield hit_in(REQUEST_IN_MODERN_ERA, first.request, first.row, what, count=use.count)


def _is_modern_and_answered(key: MessageKey, use: Occurrences) -> bool:
    first = use.first
    if key[1] != CLIENT or key[2] is None or not isinstance(first, Exchange) or era(key[2]) is not Era.MODERN:
        return False
    return first.response is None or first.response.kind is Kind.RESULT

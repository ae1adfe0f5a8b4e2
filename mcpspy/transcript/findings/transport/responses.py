"""Findings about what HTTP says around the messages: statuses of errors, answers to what wants none, media types, methods that went.

Nothing is found over HTTP+SSE, which has rules of its own. Source: MCP specification, basic/transports of 2025-03-26 to 2025-11-25,
basic/transports/streamable-http of 2026-07-28.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from ....records import CLIENT, SERVER
from ...http.head import EVENT_STREAM, LAST_EVENT_ID
from ...http.transaction import ScopeKind, Transaction
from ...mcp.codes import HTTP_STATUSES, METHOD_NOT_FOUND, MODERN_CODES
from ...mcp.fields import revision
from ...mcp.revisions import Era, era
from ...model import HTTP_REDIRECTS, Exchange, Kind, Outcome
from ..facts import CaptureFacts, ScopeKey, agreed_revisions
from ..rule import Family, Hit, Rule, Severity, hit, hit_in
from ..words import call_name, quoted

_MODERN: Final = (
    '· revision 2026-07-28\n→ POST /mcp\n  Mcp-Method: tools/list\n  tools/list 1\n← 200 OK\n  result 1 {"resultType":"complete",'
    '"tools":[],"ttlMs":0,"cacheScope":"public"}\n'
)
_SESSION: Final = "· HTTP\n· handshake 2025-11-25, server: tools\n"
_LIST: Final = "→ POST /mcp\n  Accept: application/json, text/event-stream\n  tools/list 1\n"
_ROOTS: Final = _SESSION.replace("server:", "client: roots.listChanged, server:")
_CHANGED: Final = f"{_ROOTS}→ POST /mcp\n  notifications/roots/list_changed\n"
_LISTED: Final = '← 200 OK\n  result 1 {"tools":[]}'

ERROR_STATUS: Final = Rule(
    name="error-status",
    title="Wrong HTTP status for an error",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="An error of the revision 2026-07-28 or later comes with another HTTP status than the one that its code has.",
    why="Proxies and clients that look at the status alone take it for something else: 404 says that the method is not known.",
    blame="The server: it wrote both. Unknown methods are 404, refused headers, capabilities and revisions 400.",
    example=f"{_MODERN}→ POST /mcp\n  Mcp-Method: acme/paint\n  acme/paint 2\n← 200 OK\n  error 2 -32601 Method not found",
    clean=f"{_MODERN}→ POST /mcp\n  Mcp-Method: acme/paint\n  acme/paint 2\n← 404 Not Found\n  error 2 -32601 Method not found",
    fix="Answer -32601 with 404; -32700, -32600, -32602 and -32020 to -32022 with 400; all other errors with 200.",
)

NOTIFICATION_ANSWERED: Final = Rule(
    name="notification-answered",
    title="Notification not answered with 202",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A POST with a notification or a response, which wants no answer, is answered otherwise than with 202 and no body.",
    why="Clients may take the body for a message, or wait for a stream that has none.",
    blame="The server: it accepted the message, and said so in another way than its revision has.",
    example=f'{_CHANGED}← 200 OK\n  {{"ok":true}}',
    clean=f"{_CHANGED}← 202 Accepted",
    fix="Answer 202 Accepted with an empty body.",
)

NARROW_ACCEPT: Final = Rule(
    name="narrow-accept",
    title="Accept lacks a required type",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A request to Streamable HTTP does not accept both application/json and text/event-stream.",
    why="The server may answer with either; SDK servers refuse the request with 406.",
    blame="The client: its Accept has to list both.",
    example=(
        f"{_SESSION}→ POST /mcp\n  Accept: application/json\n  tools/list 1\n← 406 Not Acceptable\n"
        '  {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Client must accept both"}}'
    ),
    clean=f"{_SESSION}{_LIST}{_LISTED}",
    fix="Send Accept: application/json, text/event-stream with every POST.",
)

UNACCEPTED_TYPE: Final = Rule(
    name="unaccepted-type",
    title="Unexpected content type",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="A request is answered with 200 and a body that is neither application/json nor text/event-stream.",
    why="SDK clients look at the type before they read: the call fails, whatever the body says.",
    blame="The server: it named the type, and the client did not accept it.",
    example=f'{_SESSION}{_LIST}← 200 OK\n  Content-Type: text/plain\n  result 1 {{"tools":[]}}',
    clean=f"{_SESSION}{_LIST}{_LISTED}",
    fix="Send Content-Type: application/json with one message, text/event-stream with events.",
)

REMOVED_HTTP_METHOD: Final = Rule(
    name="removed-http-method",
    title="HTTP method that the revision removed",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="GET or DELETE is used on the MCP endpoint under 2026-07-28 or later, which has POST alone.",
    why="There is no stream to open and no session to end: what waits for the former gets nothing.",
    blame="The client, which names that revision; and the server, where it goes along instead of answering 405.",
    example=(f"{_MODERN}→ GET /mcp\n  MCP-Protocol-Version: 2026-07-28\n  Accept: text/event-stream\n← 405 Method Not Allowed"),
    clean=f"{_MODERN}→ GET /.well-known/oauth-protected-resource\n  MCP-Protocol-Version: 2026-07-28\n← 404 Not Found",
    fix="Ask for notifications with subscriptions/listen; servers answer 405 to all but POST.",
)

RESUME_IN_MODERN_ERA: Final = Rule(
    name="resume-in-modern-era",
    title="Resumption in a revision without it",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A request of the revision 2026-07-28 or later wants to resume a stream, with Last-Event-ID.",
    why="That era has no resumption: what a broken stream was to bring is lost, and the server ignores the field.",
    blame="The client: a request whose stream broke off has to be made again, under a new id.",
    example=(
        "· revision 2026-07-28\n→ POST /mcp\n  Mcp-Method: tools/list\n  Last-Event-ID: 7\n  tools/list 1\n← 200 OK\n"
        '  result 1 {"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}'
    ),
    clean=_MODERN.rstrip(),
    fix="Send the request again with another id, and without Last-Event-ID.",
)

RULES: Final = (
    ERROR_STATUS, NOTIFICATION_ANSWERED, NARROW_ACCEPT, UNACCEPTED_TYPE, REMOVED_HTTP_METHOD, RESUME_IN_MODERN_ERA,
)  # fmt: skip

_JSON: Final = "application/json"
_TYPES: Final = (_JSON, EVENT_STREAM)
_OK: Final = 200
_ACCEPTED: Final = 202
_NOT_ACCEPTABLE: Final = 406
_AGREED_ON: Final = frozenset({METHOD_NOT_FOUND, *MODERN_CODES})
"""Codes whose status is the same wherever servers were written; of the others some stay with 200."""

_BUSINESS: Final = frozenset({401, 403, 407, 413, 429})
"""Statuses of those who do not get as far as to the message."""

_accepts = re.compile(rb"\naccept:[ \t]*([^\r\n]*)").findall


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """What statuses, media types and methods of HTTP say otherwise than they should."""
    transactions = facts.capture.transactions
    if not transactions:
        return
    agreed = agreed_revisions(facts)
    yield from _error_statuses(facts)
    modern: set[str] = set()
    for exchange in facts.first_exchanges.values():
        one = exchange.transaction
        if one is not None and _is_streamable(exchange, one, agreed):
            yield from _media_types(exchange, one)
            if exchange.era is Era.MODERN:
                modern.add(one.target)
    unread = {one.message.stream for one in facts.malformed}
    for one in transactions.values():
        if one.request is None or (one.response is not None and one.response.injected):
            continue
        if one.method == "POST":
            yield from _unasked_answer(facts, one, agreed, unread)
        yield from _removed(facts, one, modern)


def _is_streamable(exchange: Exchange, one: Transaction, agreed: Mapping[ScopeKey, str]) -> bool:
    if one.scope.kind is ScopeKind.STREAM:
        return False
    return one.scope.session in agreed or revision(exchange.request.raw) is not None


def _error_statuses(facts: CaptureFacts) -> Iterator[Hit]:
    """Only of a server that speaks the modern era: what others say of it they say in their own way."""
    errors = [one for one in facts.errors if one.era is Era.MODERN and one.transaction is not None and one.sender == CLIENT]
    if not errors or not any(_is_modern_result(one) for one in facts.http):
        return
    for exchange in errors:
        one, response = exchange.transaction, exchange.response
        if one is None or response is None or one.is_stream or one.scope.kind is ScopeKind.STREAM:
            continue
        if one.response is None or one.response.injected or response.stream != one.response.opened.stream:
            continue
        error = response.error
        code = error.get("code") if isinstance(error, dict) else None
        if type(code) is not int or one.status in _BUSINESS or revision(exchange.request.raw) is None:
            continue
        due = HTTP_STATUSES.get(code, _OK)
        if one.status != due:
            what = f"{call_name(exchange)} was answered with the error {code} and HTTP {one.status} instead of {due}."
            severity = None if code in _AGREED_ON else Severity.INFO
            yield hit_in(ERROR_STATUS, response, exchange.row, what, group=str(code), severity=severity)


def _is_modern_result(exchange: Exchange) -> bool:
    response = exchange.response
    if response is None or response.kind is not Kind.RESULT or exchange.era is not Era.MODERN:
        return False
    return exchange.sender == CLIENT and b'"resultType"' in response.raw


def _media_types(exchange: Exchange, one: Transaction) -> Iterator[Hit]:
    assert one.request is not None
    listed = _accepts(one.request.opened.head.lower())
    wanted = b",".join(listed).decode("latin-1")
    missing = [name for name in _TYPES if not _takes(wanted, name)]
    if missing and (listed or (one.status == _NOT_ACCEPTABLE and exchange.outcome is not Outcome.PROBE)):
        what = f"{exchange.method} accepts {quoted(wanted.encode('latin-1')) if wanted else 'no type'}, and not {missing[0]}."
        yield hit_in(NARROW_ACCEPT, exchange.request, exchange.row, what, group=wanted)
    response = one.response
    if response is None or response.injected or one.status != _OK or not response.body_bytes:
        return
    named = response.head.media_type
    if named not in _TYPES and not (named and listed and _takes(wanted, named)):
        what = f"The answer to {call_name(exchange)} came as {quoted(named.encode()) if named else 'a body without a type'}."
        message = exchange.response or exchange.request
        yield hit_in(UNACCEPTED_TYPE, message, exchange.row, what, culprit=SERVER, group=named)


def _takes(accept: str, name: str) -> bool:
    """Whether a type is among those that are accepted; a weight of its own is no refusal here."""
    kind = name.partition("/")[0]
    ranges = {one.partition(";")[0].strip() for one in accept.split(",")}
    return not ranges.isdisjoint((name, f"{kind}/*", "*/*"))


def _unasked_answer(facts: CaptureFacts, one: Transaction, agreed: Mapping[ScopeKey, str], unread: set[int]) -> Iterator[Hit]:
    """What came back for notifications and responses, in a session of which the handshake was seen."""
    response, request = one.response, one.request
    if response is None or request is None or one.number in facts.first_exchanges or not one.request_messages:
        return
    if one.scope.kind is not ScopeKind.SESSION or one.scope.session not in agreed or request.opened.stream in unread:
        return
    if not _OK <= one.status < HTTP_REDIRECTS or (one.status == _ACCEPTED and not response.body_bytes):
        return
    body = f" and {response.body_bytes} bytes" if response.body_bytes else ""
    what = f"A POST that asks for nothing was answered with {one.status}{body}."
    severity = Severity.INFO if one.status == _ACCEPTED else None
    yield hit(
        NOTIFICATION_ANSWERED, at_ns=response.at_ns, capture=one.capture, number=response.opened.number, row=facts.row_of(one),
        what=what, culprit=SERVER, group=str(one.status), severity=severity,
    )  # fmt: skip


def _removed(facts: CaptureFacts, one: Transaction, modern: set[str]) -> Iterator[Hit]:
    """What the modern era does not have: other methods than POST at its endpoint, and streams that go on."""
    request = one.request
    assert request is not None
    raw = request.opened.head.lower()
    resumes = b"\nlast-event-id:" in raw
    if one.target not in modern or (one.method == "POST" and not resumes):
        return
    if one.method == "POST":
        asked = facts.first_exchanges.get(one.number)
        named = asked.revision if asked is not None and asked.era is Era.MODERN else ""
    else:
        named = request.head.get("mcp-protocol-version") if one.method in ("GET", "DELETE") else ""
    if not named or era(named) is not Era.MODERN:
        return
    if resumes:
        after = quoted(request.head.get(LAST_EVENT_ID).encode())
        what = f"{one.method} {one.target} wants to go on after the event {after}, under {named}."
        yield _about(RESUME_IN_MODERN_ERA, facts, one, what, CLIENT)
        return
    yield _about(REMOVED_HTTP_METHOD, facts, one, f"{one.method} {one.target} came under {named}.", CLIENT)
    if 0 < one.status < HTTP_REDIRECTS:
        what = f"{one.method} {one.target}, of {named}, was answered with {one.status} instead of 405."
        yield _about(REMOVED_HTTP_METHOD, facts, one, what, SERVER)


def _about(rule: Rule, facts: CaptureFacts, one: Transaction, what: str, culprit: str) -> Hit:
    stream = one.response if culprit == SERVER and one.response is not None else one.request
    assert stream is not None
    return hit(
        rule, at_ns=stream.at_ns, capture=one.capture, number=stream.opened.number, row=facts.row_of(one), what=what,
        culprit=culprit, group=one.method,
    )  # fmt: skip

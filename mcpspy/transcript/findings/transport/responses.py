"""Findings about HTTP around the messages: statuses of errors, responses to notifications, media types, removed methods.

Nothing is found over HTTP+SSE, which has rules of its own. Source: MCP specification, basic/transports of 2025-03-26 to 2025-11-25,
basic/transports/streamable-http of 2026-07-28.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT, SERVER
from ...http.head import EVENT_STREAM, LAST_EVENT_ID
from ...http.transaction import ScopeKind, Transaction
from ...mcp.blocks import member
from ...mcp.codes import HTTP_STATUSES, METHOD_NOT_FOUND, MODERN_CODES
from ...mcp.fields import revision
from ...mcp.revisions import Era, era
from ...model import HTTP_REDIRECTS, Exchange, Kind, Outcome
from ..facts import CaptureFacts, ScopeKey, agreed_revisions, client_requests
from ..hits import hit_on_stream
from ..protocol.answers import NOTIFICATION_ANSWERED
from ..rule import Hit, Severity, hit_in, protocol_rule
from ..words import call_name, quoted
from .redirects import lossy_redirects
from .sessions import asks_for_stream

_MODERN: Final = (
    '· revision 2026-07-28\n→ POST /mcp\n  Mcp-Method: tools/list\n  tools/list 1\n← 200 OK\n  result 1 {"resultType":"complete",'
    '"tools":[],"ttlMs":0,"cacheScope":"public"}\n'
)
_SESSION: Final = "· HTTP\n· handshake 2025-11-25, server: tools\n"
_LIST: Final = "→ POST /mcp\n  Accept: application/json, text/event-stream\n  tools/list 1\n"
_LISTED: Final = '← 200 OK\n  result 1 {"tools":[]}'

ERROR_STATUS: Final = protocol_rule(
    name="error-status",
    title="Wrong HTTP status for an error",
    what="An error under 2026-07-28 or later comes with the wrong HTTP status for its code.",
    why="Proxies and clients that only look at the status misread it: 404 means that the method is unknown.",
    blame="The server: it chose both the code and the status.",
    example=f"{_MODERN}→ POST /mcp\n  Mcp-Method: acme/paint\n  acme/paint 2\n← 200 OK\n  error 2 -32601 Method not found",
    clean=f"{_MODERN}→ POST /mcp\n  Mcp-Method: acme/paint\n  acme/paint 2\n← 404 Not Found\n  error 2 -32601 Method not found",
    advice="Answer -32601 with 404; -32700, -32600, -32602 and -32020 to -32022 with 400; all other errors with 200.",
)

NARROW_ACCEPT: Final = protocol_rule(
    name="narrow-accept",
    title="Accept lacks a required type",
    what="A request to Streamable HTTP does not accept both application/json and text/event-stream.",
    why="The server may answer with either, and SDK servers refuse the request with 406.",
    blame="The client: its Accept field has to list both.",
    example=(
        f"{_SESSION}→ POST /mcp\n  Accept: application/json\n  tools/list 1\n← 406 Not Acceptable\n"
        '  {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Client must accept both"}}'
    ),
    clean=f"{_SESSION}{_LIST}{_LISTED}",
    advice="Send Accept: application/json, text/event-stream with every POST.",
)

UNACCEPTED_TYPE: Final = protocol_rule(
    name="unaccepted-type",
    title="Unexpected content type",
    severity=Severity.ERROR,
    what=(
        "A request is answered with 200 and a body that is neither application/json nor text/event-stream; or a GET that asks for a "
        "stream with 200 and no stream."
    ),
    why="SDK clients look at the type before they read, so the call fails whatever the body holds; a GET is repeated in vain.",
    blame="The server: it chose a type that the client did not accept.",
    example=f'{_SESSION}{_LIST}← 200 OK\n  Content-Type: text/plain\n  result 1 {{"tools":[]}}',
    clean=f"{_SESSION}{_LIST}{_LISTED}",
    advice="Send Content-Type: application/json with one message, or text/event-stream with events.",
)

REMOVED_HTTP_METHOD: Final = protocol_rule(
    name="removed-http-method",
    title="HTTP method that the revision removed",
    what="GET or DELETE is used on the MCP endpoint under 2026-07-28 or later, which only has POST.",
    why="There is no stream to open and no session to end, so a client that opens a stream gets nothing.",
    blame="The client, which names that revision, or the server, if it does not answer 405.",
    example=(f"{_MODERN}→ GET /mcp\n  MCP-Protocol-Version: 2026-07-28\n  Accept: text/event-stream\n← 405 Method Not Allowed"),
    clean=f"{_MODERN}→ GET /.well-known/oauth-protected-resource\n  MCP-Protocol-Version: 2026-07-28\n← 404 Not Found",
    advice="Client: use subscriptions/listen for notifications; server: answer 405 to everything but POST.",
)

RESUME_IN_MODERN_ERA: Final = protocol_rule(
    name="resume-in-modern-era",
    title="Resumption in a revision without it",
    what="A request of 2026-07-28 or later tries to resume a stream with Last-Event-ID.",
    why="These revisions have no resumption: the server ignores the field, and the rest of the stream is lost.",
    blame="The client: it has to repeat a request whose stream broke off, under a new id.",
    example=(
        "· revision 2026-07-28\n→ POST /mcp\n  Mcp-Method: tools/list\n  Last-Event-ID: 7\n  tools/list 1\n← 200 OK\n"
        '  result 1 {"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}'
    ),
    clean=_MODERN.rstrip(),
    advice="Send the request again with another id and without Last-Event-ID.",
)

RULES: Final = (
    ERROR_STATUS, NOTIFICATION_ANSWERED, NARROW_ACCEPT, UNACCEPTED_TYPE, REMOVED_HTTP_METHOD, RESUME_IN_MODERN_ERA,
)  # fmt: skip

_JSON: Final = "application/json"
_TYPES: Final = (_JSON, EVENT_STREAM)
_OK: Final = 200
_ACCEPTED: Final = 202
_NOT_ACCEPTABLE: Final = 406
_COMMON_CODES: Final = frozenset({METHOD_NOT_FOUND, *MODERN_CODES})
"""Codes with one status in all servers; for the others some servers keep 200."""

_GATEKEEPERS: Final = frozenset({401, 403, 407, 413, 429})
"""Statuses of a server that did not read the message."""

_accepts = lazy_pattern(rb"\naccept:[ \t]*([^\r\n]*)")


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find statuses, media types and methods of HTTP that the revision does not allow."""
    transactions = facts.capture.transactions
    if not transactions:
        return
    agreed = agreed_revisions(facts)
    yield from _error_statuses(facts)
    modern_targets: set[str] = set()
    last = 0, 0
    for exchange, transaction, revision_agreed in client_requests(facts):
        (number, row), last = last, (transaction.number, exchange.row)
        if (number == transaction.number and row < exchange.row) or transaction.scope.kind is ScopeKind.STREAM:
            continue  # only the first request in each POST counts
        if revision_agreed is not None or revision(exchange.request.raw) is not None:
            yield from _media_types(exchange, transaction)
            modern_targets |= {transaction.target} if exchange.era is Era.MODERN else set()
    unreadable = {unpaired.message.stream for unpaired in facts.malformed}
    without_request = (number for number in transactions if number not in facts.first_exchanges)
    for transaction in transactions.values() if modern_targets else map(transactions.__getitem__, without_request):
        if transaction.request is None or (transaction.response is not None and transaction.response.injected):
            continue
        if transaction.method == "POST":
            yield from _notification_answer(facts, transaction, agreed, unreadable)
        yield from _removed(facts, transaction, modern_targets)
    yield from _no_streams(facts, modern_targets)


def _no_streams(facts: CaptureFacts, modern_targets: set[str]) -> Iterator[Hit]:
    """Find GETs that ask for a stream of events and get a page or JSON with 200.

    They are sent to an endpoint that POSTs are sent to, or nothing was posted, and they are sent to the URL of the server itself.
    """
    if not any(_is_no_stream(transaction) for transaction in facts.capture.transactions.values()):
        return
    redirected = {target for _, target in lossy_redirects(facts)}
    posted = {transaction.target for transaction in facts.capture.transactions.values() if transaction.request_messages}
    endpoints = posted - modern_targets - redirected if posted else {_own_target(facts)}
    refused: dict[tuple[str, str], list[Transaction]] = {}
    for transaction in facts.capture.transactions.values():
        response, target = transaction.response, transaction.target
        if response is not None and target in endpoints and _is_no_stream(transaction):
            refused.setdefault((target, response.head.media_type), []).append(transaction)
    for (target, sent), gets in refused.items():
        response = gets[0].response
        assert response is not None
        times = "" if len(gets) == 1 else f", {len(gets)} times"
        came = f"and {quoted(sent)} instead of a stream of events" if sent else "and no stream of events"
        what = f"GET {target}, which asks for a stream, was answered with 200 {came}{times}."
        if not posted:
            yield hit_on_stream(
                UNACCEPTED_TYPE, facts, gets[0], response, what, "unclear", blame=_BLAME, advice=_ADVICE, group=target
            )
            continue
        blame = "The server: on the MCP endpoint a GET gets text/event-stream, or 405 (basic/transports)."
        advice = (
            "Answer GET on this path with 405 Method Not Allowed if the server offers no stream; serve pages on other paths."
        )
        yield hit_on_stream(
            UNACCEPTED_TYPE, facts, gets[0], response, what, SERVER, blame=blame, advice=advice, severity=Severity.WARNING,
            group=f"GET {target}",
        )  # fmt: skip


def _is_no_stream(transaction: Transaction) -> bool:
    """Return whether a GET asked for a stream of events, and got something else with 200."""
    response = transaction.response
    if response is None or response.injected or transaction.status != _OK or transaction.is_stream:
        return False
    return asks_for_stream(transaction)


_BLAME: Final = "Unclear: the URL of the client is no endpoint of HTTP+SSE, or the server sends its stream under a wrong type."
_ADVICE: Final = (
    "Compare the path with the server's documentation, or try Streamable HTTP (type http); a server of HTTP+SSE sends its stream "
    "with Content-Type: text/event-stream."
)


def _own_target(facts: CaptureFacts) -> str:
    """Return the path of the URL that mcpspy was given; empty if there is none."""
    header = facts.capture.header
    url = "" if header is None else str(header.tapped.get("url") or "")
    return f"/{url.partition('://')[2].partition('/')[2]}" if url else ""


def _error_statuses(facts: CaptureFacts) -> Iterator[Hit]:
    """Find errors with a wrong status, only from a server that speaks the modern era: others answer it in ways of their own."""
    errors = (
        exchange
        for exchange in facts.errors
        if exchange.era is Era.MODERN and exchange.transaction is not None and exchange.sender == CLIENT
    )
    first = next(errors, None)
    if first is None or not any(_is_modern_result(exchange) for exchange in facts.http):
        return
    for exchange in chain((first,), errors):
        transaction, response = exchange.transaction, exchange.response
        if transaction is None or response is None or transaction.is_stream or transaction.scope.kind is ScopeKind.STREAM:
            continue
        stream = transaction.response
        if stream is None or stream.injected or response.stream != stream.number:
            continue
        code = member(response.error, "code")
        if type(code) is not int or transaction.status in _GATEKEEPERS or revision(exchange.request.raw) is None:
            continue
        due = HTTP_STATUSES.get(code, _OK)
        if transaction.status != due:
            what = f"{call_name(exchange)} was answered with the error {code} and HTTP {transaction.status} instead of {due}."
            severity = None if code in _COMMON_CODES else Severity.NOTE
            yield hit_in(ERROR_STATUS, response, exchange.row, what, group=str(code), severity=severity)


def _is_modern_result(exchange: Exchange) -> bool:
    response = exchange.response
    if response is None or response.kind is not Kind.RESULT or exchange.era is not Era.MODERN:
        return False
    return exchange.sender == CLIENT and b'"resultType"' in response.raw


def _media_types(exchange: Exchange, transaction: Transaction) -> Iterator[Hit]:
    assert transaction.request is not None
    fields = _accepts.findall(transaction.request.raw_head.lower())
    accept = b",".join(fields).decode("latin-1")
    missing = [name for name in _TYPES if not _takes(accept, name)]
    if missing and (fields or (transaction.status == _NOT_ACCEPTABLE and exchange.outcome is not Outcome.PROBE)):
        types = quoted(accept.encode("latin-1")) if accept else "no type"
        what = f"{exchange.method} accepts {types}, but not {missing[0]}."
        yield hit_in(NARROW_ACCEPT, exchange.request, exchange.row, what, group=accept)
    response = transaction.response
    if response is None or response.injected or transaction.status != _OK or not response.body_bytes:
        return
    sent = response.head.media_type
    if sent not in _TYPES and not (sent and fields and _takes(accept, sent)):
        what = f"The response to {call_name(exchange)} came as {quoted(sent) if sent else 'a body without a type'}."
        message = exchange.response or exchange.request
        yield hit_in(UNACCEPTED_TYPE, message, exchange.row, what, culprit=SERVER, group=sent or "no type")


def _takes(accept: str, name: str) -> bool:
    """Return whether a type is accepted; its weight is not looked at."""
    kind = name.partition("/")[0]
    ranges = {part.partition(";")[0].strip() for part in accept.split(",")}
    return not ranges.isdisjoint((name, f"{kind}/*", "*/*"))


def _notification_answer(
    facts: CaptureFacts, transaction: Transaction, agreed: Mapping[ScopeKey, str], unreadable: set[int]
) -> Iterator[Hit]:
    """Find POSTs without a request that were answered wrongly, in sessions whose handshake is in the capture."""
    response, request = transaction.response, transaction.request
    if response is None or request is None or transaction.number in facts.first_exchanges or not transaction.request_messages:
        return
    scope, status = transaction.scope, transaction.status
    if scope.kind is not ScopeKind.SESSION or scope.session not in agreed or request.number in unreadable:
        return
    if not _OK <= status < HTTP_REDIRECTS or (status == _ACCEPTED and not response.body_bytes):
        return
    body = f" and {response.body_bytes} bytes" if response.body_bytes else ""
    what = f"A POST without a request was answered with {status}{body}."
    severity = Severity.NOTE if status == _ACCEPTED else None
    yield hit_on_stream(NOTIFICATION_ANSWERED, facts, transaction, response, what, SERVER, group=str(status), severity=severity)


def _removed(facts: CaptureFacts, transaction: Transaction, modern_targets: set[str]) -> Iterator[Hit]:
    """Find methods other than POST, and resumed streams, at an endpoint of the modern era, which has neither."""
    request, method, target = transaction.request, transaction.method, transaction.target
    assert request is not None
    resumes = b"\nlast-event-id:" in request.raw_head.lower()
    if target not in modern_targets or (method == "POST" and not resumes):
        return
    if method == "POST":
        exchange = facts.first_exchanges.get(transaction.number)
        version = exchange.revision if exchange is not None and exchange.era is Era.MODERN else ""
    else:
        version = request.head.get("mcp-protocol-version") if method in ("GET", "DELETE") else ""
    if not version or era(version) is not Era.MODERN:
        return
    if resumes:
        after = quoted(request.head.get(LAST_EVENT_ID))
        what = f"{method} {target} resumes a stream after the event {after}, under {version}."
        yield hit_on_stream(RESUME_IN_MODERN_ERA, facts, transaction, request, what, CLIENT, group=method)
        return
    what = f"{method} {target} was sent under {version}."
    yield hit_on_stream(REMOVED_HTTP_METHOD, facts, transaction, request, what, CLIENT, group=method)
    if 0 < transaction.status < HTTP_REDIRECTS:
        what = f"{method} {target}, under {version}, was answered with {transaction.status} instead of 405."
        answer = transaction.response or request
        yield hit_on_stream(REMOVED_HTTP_METHOD, facts, transaction, answer, what, SERVER, group=method)

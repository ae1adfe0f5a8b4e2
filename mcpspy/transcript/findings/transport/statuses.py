"""Findings about HTTP: wrong statuses, endpoints of HTTP+SSE, and errors that mcpspy answered itself."""

from collections.abc import Iterator
from typing import Final

from ....records import MCPSPY, SERVER
from ...http.head import LAST_EVENT_ID, SESSION
from ...http.transaction import UNREAD, Anomaly, ScopeKind, Stream, Transaction
from ...model import HTTP_ERRORS, Exchange, Kind
from ..facts import CaptureFacts
from ..gateway_signs import gateway_field
from ..hits import hit_on_stream
from ..rule import CLEAN_POST, CONFIGURATION, Hit, HitDetails, Severity, hit, hit_in, transport_rule
from ..words import call_name, quoted, seconds

_CLEAN_STREAM: Final = "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages?session_id=5f2c"

UPSTREAM_FAILED: Final = transport_rule(
    name="upstream-failed",
    title="Server unreachable",
    severity=Severity.ERROR,
    what="mcpspy could not reach the server, or got no response from it, and answered the client with 502 or 504.",
    why="The client sees an HTTP error that the server did not send.",
    blame="The configuration, if nobody has ever answered at this URL; the server, if it answered before.",
    example='→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n· mcpspy answers 502: Connection refused',
    clean=CLEAN_POST,
    advice="Check that the server runs and that its URL is right.",
)

REQUEST_REFUSED: Final = transport_rule(
    name="request-refused",
    title="Request refused by mcpspy",
    what="mcpspy refused a request: it names another host or origin, or it is not valid HTTP.",
    why="The server never saw the request; the check keeps web pages away from servers that trust this machine.",
    blame="The client, unless it only uses the URL that its configuration has.",
    example="→ POST /mcp\n  Host: evil.example\n· mcpspy answers 421: evil.example is not an address of mcpspy",
    clean=CLEAN_POST,
    advice="Give the client the URL that mcpspy printed, or allow another host with --allowed-host.",
)

UNREADABLE_RESPONSE: Final = transport_rule(
    name="unreadable-response",
    title="Unreadable response",
    what="A response is not valid, unambiguous HTTP/1.x, or has a content coding that mcpspy cannot decode.",
    why="Clients read it differently, or refuse it. mcpspy passed every byte on, and does not know what the server answered.",
    blame="The server, or a proxy in front of it: it wrote the response.",
    example=(
        '→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
        "← 200 OK\n  Content-Type: application/json\n  Content-Encoding: lzma\n  7zXZ"
    ),
    clean=CLEAN_POST,
    advice="Let an HTTP library write it: chunks or Content-Length, never both, and only codings that the client accepts.",
)

STATUS_CONTRADICTS: Final = transport_rule(
    name="status-contradicts",
    title="Result with an HTTP error status",
    what="A result came with an HTTP status of 400 or higher.",
    why="Clients look at the status first and treat the call as failed.",
    blame="The server: it sent both the status and the result.",
    example=(
        '→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
        '← 500 Internal Server Error\n  {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
    ),
    clean=CLEAN_POST,
    advice="Send results with status 200.",
)

FOREIGN_ENDPOINT: Final = transport_rule(
    name="foreign-endpoint",
    title="Endpoint at another origin",
    severity=Severity.ERROR,
    what="The endpoint event of HTTP+SSE names another origin than the URL of its stream.",
    why="SDK clients refuse it, and the Python client then waits forever; localhost and 127.0.0.1 are two origins.",
    blame="The server: it builds the URL from its own address instead of the one that the client requested.",
    example="→ GET /sse\n← 200 OK\n  event: endpoint\n  data: http://localhost:3001/messages?session_id=5f2c",
    clean=_CLEAN_STREAM,
    advice="Announce a path without scheme and host: /messages?session_id=….",
)

ENDPOINT_USER: Final = transport_rule(
    name="endpoint-user",
    title="User name in the endpoint URL",
    severity=Severity.ERROR,
    what="The URL in the endpoint event of HTTP+SSE has a user name or a password before its host.",
    why="The Python SDK takes it for another server and refuses it; fetch in JavaScript refuses every such URL.",
    blame="The server: it builds the URL from one with a password in it.",
    example="→ GET /sse\n← 200 OK\n  event: endpoint\n  data: http://ada:tea@127.0.0.1:3001/messages?session_id=5f2c",
    clean=_CLEAN_STREAM,
    advice="Announce a path without scheme, user and host: /messages?session_id=….",
)

ENDPOINT_DIALECT: Final = transport_rule(
    name="endpoint-dialect",
    title="Endpoint sent as JSON",
    severity=Severity.ERROR,
    what="The endpoint event of HTTP+SSE holds JSON instead of a URI.",
    why="SDK clients use all of it as the URI, and their POST goes nowhere.",
    blame="The server: the specification wants the URI alone (2024-11-05, basic/transports).",
    example='→ GET /sse\n← 200 OK\n  event: endpoint\n  data: {"uri":"/messages?session_id=5f2c"}',
    clean=_CLEAN_STREAM,
    advice="Send the URI alone as the event's data.",
)

MISSING_ENDPOINT: Final = transport_rule(
    name="missing-endpoint",
    title="No endpoint announced",
    severity=Severity.ERROR,
    what="The stream of HTTP+SSE never announces an endpoint for POST.",
    why="SDK clients send nothing before the endpoint event; some wait forever.",
    blame="The server: HTTP+SSE begins with an endpoint event (2024-11-05, basic/transports).",
    example=(
        "→ GET /sse\n  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream\n· 5.0 s later\n"
        "· the client closes the stream"
    ),
    clean=_CLEAN_STREAM,
    advice="Send an endpoint event first; for a server with Streamable HTTP, give the client the URL for POST.",
)

FOREIGN_RESOURCE: Final = transport_rule(
    name="foreign-resource",
    title="Resource metadata names another origin",
    severity=Severity.ERROR,
    what="The metadata of a protected resource names another origin than the URL at which mcpspy reaches the server.",
    why="Clients refuse metadata of another resource (RFC 9728, section 3.3), and the login ends there.",
    blame="The server, or the URL that mcpspy was given: the two name different origins.",
    example=(
        "→ GET /.well-known/oauth-protected-resource/mcp\n← 200 OK\n  Content-Type: application/json\n"
        '  {"resource":"http://localhost:3001/mcp","authorization_servers":["https://login.example"]}'
    ),
    clean=(
        "→ GET /.well-known/oauth-protected-resource/mcp\n← 200 OK\n  Content-Type: application/json\n"
        '  {"resource":"http://127.0.0.1:3001/mcp","authorization_servers":["https://login.example"]}'
    ),
    advice="Tell the server its public URL, or give mcpspy the URL in the metadata; localhost and 127.0.0.1 differ.",
)

UNREWRITTEN_ADDRESS: Final = transport_rule(
    name="unrewritten-address",
    title="Server address not rewritten",
    severity=Severity.ERROR,
    what=(
        "Metadata for a login, `WWW-Authenticate`, a redirect, a link or an endpoint event still names the server: it was "
        "compressed, though mcpspy asked for it as it is; or it was larger than 1 MiB; or it has a form that mcpspy does not rewrite."
    ),
    why=(
        "The client knows the server by mcpspy's address: it refuses the metadata, and the login ends there. "
        "Or it goes on at the server itself, and mcpspy records nothing of that."
    ),
    blame="mcpspy: it could not write its own address in place of the server's.",
    example=(
        "→ GET /.well-known/oauth-protected-resource/mcp\n← 200 OK\n  Content-Type: application/json\n  Content-Encoding: gzip\n"
        "  \\x1f\\x8b\\x08\\x00\\x00\\x00\\x00\\x00\\x02\\x03\\xab\\x56\\x2a\\x4a\\x2d\\xce\\x2f\\x2d\\x4a\\x4e\\x55\\xb2"
        "\\x52\\xca\\x28\\x29\\x29\\xb0\\xd2\\xd7\\x37\\x34\\x32\\xd7\\x33\\x00\\x42\\x43\\x2b\\x63\\x03\\x03\\x43\\xfd"
        "\\xdc\\xe4\\x02\\xa5\\x5a\\x00\\x9e\\x81\\x85\\xba\\x28\\x00\\x00\\x00"
    ),
    clean=(
        "→ GET /.well-known/oauth-protected-resource/mcp\n← 200 OK\n  Content-Type: application/json\n"
        '  {"resource":"http://127.0.0.1:3001/mcp"}'
    ),
    advice="Give mcpspy a token, which needs no login: --header 'Authorization: Bearer …'. Or serve the metadata uncompressed.",
)

AMBIGUOUS_STREAM: Final = transport_rule(
    name="ambiguous-stream",
    title="Streams cannot be told apart",
    what="Several streams are open, and a POST could be answered on any: they announced no endpoint or the same one.",
    why="Two clients often use equal ids, so a response may be taken for another client's.",
    blame="The server: its endpoints do not tell its clients apart.",
    example=(
        "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages\n→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages"
    ),
    clean=(
        "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages?session_id=1\n"
        "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages?session_id=2"
    ),
    advice="Announce a different endpoint on each stream, with a session in its query.",
)

DONE_EVENT: Final = transport_rule(
    name="done-event",
    title="[DONE] event",
    severity=Severity.NOTE,
    what="An event holds [DONE], the end mark of chat completions.",
    why="It is not JSON, and strict clients log an error.",
    blame="The server: streams of MCP have no end mark.",
    example=(
        '→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"ping"}\n← 200 OK\n'
        '  data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n  data: [DONE]\n· the server closes the stream'
    ),
    clean=(
        '→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"ping"}\n← 200 OK\n'
        '  data: {"jsonrpc":"2.0","id":1,"result":{}}\n· the server closes the stream'
    ),
    advice="End the stream without a last event.",
)

DPOP_PROOF: Final = transport_rule(
    name="dpop-proof",
    title="DPoP proof for another URL",
    what="The client sends a DPoP proof for the URL that it knows, which is mcpspy's.",
    why="The server checks the proof against its own URL and refuses it; no reverse proxy can change that.",
    blame="mcpspy: its URL is not the server's, and it cannot sign for the client.",
    example=(
        '→ POST /mcp\n  DPoP: eyJ0eXAiOiJkcG9wK2p3dCJ9.e30.\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
        '← 401 Unauthorized\n  {"error":"invalid_dpop_proof"}'
    ),
    clean=CLEAN_POST,
    advice="Turn DPoP off while debugging, or give mcpspy a token: --header 'Authorization: Bearer …'.",
)

RULES: Final = (
    UPSTREAM_FAILED, REQUEST_REFUSED, UNREADABLE_RESPONSE, STATUS_CONTRADICTS, FOREIGN_ENDPOINT, ENDPOINT_USER,
    ENDPOINT_DIALECT, MISSING_ENDPOINT, FOREIGN_RESOURCE, UNREWRITTEN_ADDRESS, AMBIGUOUS_STREAM, DONE_EVENT, DPOP_PROOF,
)  # fmt: skip


_UPSTREAM_FAILED: Final = (502, 504)
_SWITCHING_PROTOCOLS: Final = 101
_REASON_LETTERS: Final = 160
_WAITED_NS: Final = 1_000_000_000
"""An endpoint comes at once."""

_ANOMALIES: Final = {
    "foreign-endpoint": (FOREIGN_ENDPOINT, "The stream of {target} announces an endpoint at another origin: {data}"),
    "endpoint-user": (ENDPOINT_USER, "The stream of {target} announces an endpoint with a user before {data}."),
    "endpoint-dialect": (ENDPOINT_DIALECT, "The stream of {target} announces its endpoint as JSON: {data}"),
    "foreign-resource": (FOREIGN_RESOURCE, "The server's metadata names a resource at another origin: {data}"),
    "unrewritten-address": (UNREWRITTEN_ADDRESS, "The response to {target} sends the client to the server itself: {data}"),
    "unread-metadata": (
        UNREWRITTEN_ADDRESS,
        "The metadata at {target} may name the server: mcpspy cannot read its coding {data}.",
    ),
    "no-endpoint": (MISSING_ENDPOINT, "The stream of {target} announces no endpoint, and answers what is POSTed to {data}."),
    "shared-endpoint": (AMBIGUOUS_STREAM, "Two open streams announced the same endpoint: {data}"),
    "ambiguous-resume": (AMBIGUOUS_STREAM, "A stream was resumed after the event {data}, the last one of several streams."),
    "done-event": (DONE_EVENT, "An event on the stream of {target} is {data}."),
}
"""By the name of an anomaly its rule, and what to say of it."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find faults of transactions that their messages do not show."""
    if not facts.capture.transactions:
        return
    for transaction in facts.capture.transactions.values():
        for anomaly in transaction.anomalies:
            yield from _anomaly(facts, transaction, anomaly)
        request = transaction.request
        if request is not None and _has_proof(request.raw_head):
            what = "A request has a DPoP proof."
            yield hit_on_stream(DPOP_PROOF, facts, transaction, request, what, "mcpspy", group="one")
    if not facts.capture.is_model:
        yield from _without_endpoint(facts)
    for row, message, _ in facts.flawed_by(("ambiguous-stream",)):
        what = "A response came on one of several open streams without an endpoint, so that only its id tells whose it is."
        yield hit_in(AMBIGUOUS_STREAM, message, row, what, group="response")
    has_failed = any(transaction.status >= HTTP_ERRORS for transaction in facts.capture.transactions.values())
    for exchange in facts.http if has_failed else ():
        yield from _contradiction(facts, exchange)


def _anomaly(facts: CaptureFacts, transaction: Transaction, anomaly: Anomaly) -> Iterator[Hit]:
    data, group = quoted(anomaly.data), anomaly.name
    culprit: str = SERVER
    blame = advice = ""
    if anomaly.name == "injected":
        has_failed = transaction.status in _UPSTREAM_FAILED
        from .unreachable import refusal_fault, upstream_fault  # seldom needed

        rule = UPSTREAM_FAILED if has_failed else REQUEST_REFUSED
        culprit, blame, advice = (upstream_fault if has_failed else refusal_fault)(facts, transaction, anomaly.data)
        name = f" {transaction.method} {transaction.target}".rstrip()
        data = group = quoted(anomaly.data, _REASON_LETTERS)
        what = f"mcpspy answered{name} with {transaction.status}: {data}"
    elif anomaly.name == UNREAD:
        is_switch = transaction.status == _SWITCHING_PROTOCOLS
        if not anomaly.data or (is_switch and not transaction.request_messages):
            return  # another request on its connection has the reason; or it became a WebSocket, as it was asked to
        from .unreachable import unread_fault  # seldom needed

        rule = UNREADABLE_RESPONSE
        exchange = facts.first_exchanges.get(transaction.number)
        call = f"{transaction.method} {transaction.target}" if exchange is None else call_name(exchange)
        what = f"The response to {call} could not be read: {anomaly.data.decode('utf-8', 'replace')}."
        culprit, blame, advice = unread_fault(anomaly.data)
        group = culprit
    elif anomaly.name in _ANOMALIES:
        rule, template = _ANOMALIES[anomaly.name]
        what = template.format(target=transaction.target.partition("?")[0], data=data)
    else:
        return
    if rule is UNREWRITTEN_ADDRESS:
        culprit = MCPSPY
    yield hit(
        rule, at_ns=anomaly.at_ns, capture=facts.capture.index, number=anomaly.number, row=facts.row_of(transaction), what=what,
        culprit=culprit, group=group, blame=blame, advice=advice,
    )  # fmt: skip


def _has_proof(head: bytes) -> bool:
    return b"\ndpop:" in head.lower()


def _without_endpoint(facts: CaptureFacts) -> Iterator[Hit]:
    """Find streams on which a client waited for an endpoint, in a capture without any message."""
    gets = []
    for transaction in facts.capture.transactions.values():
        if transaction.request_messages and transaction.status < HTTP_ERRORS:
            return
        if transaction.method == "GET" and transaction.scope.kind is ScopeKind.TRANSACTION and transaction.is_stream:
            gets.append(transaction)
    for get in gets:
        ended_ns = facts.capture.last_ns + facts.capture.shift_ns if get.ended_ns is None else get.ended_ns
        response, waited_ns = get.response, ended_ns - get.at_ns
        if response is not None and waited_ns >= _WAITED_NS and get.ended_by != SERVER:
            if response.events and not _is_of_older_transport(get):
                continue
            nothing = "" if response.body_bytes else "; not one byte of its body came"
            if response.events:
                nothing = f"; {response.events} event{'s' if response.events > 1 else ''} came, and none is named endpoint"
            what = f"The stream of {get.target} announced no endpoint, and the client waited {seconds(waited_ns)}{nothing}."
            culprit, details = _without_endpoint_by(get, response)
            yield hit_on_stream(MISSING_ENDPOINT, facts, get, response, what, culprit, **details)


def _is_of_older_transport(get: Transaction) -> bool:
    """Tell whether a client opens HTTP+SSE, by the path, and by what it lacks: a session, and an event to go on from."""
    head = None if get.request is None else get.request.head
    return (
        head is not None
        and "sse" in get.target.partition("?")[0].lower()
        and not (head.get(SESSION) or head.get(LAST_EVENT_ID))
    )


def _without_endpoint_by(get: Transaction, response: Stream) -> tuple[str, HitDetails]:
    """Tell a server of HTTP+SSE that announces nothing from a stream of Streamable HTTP, which never announces anything.

    A gateway that collects the response before it passes it on looks like the first; then its head comes, and nothing else.
    """
    path, comments = get.target.partition("?")[0].lower(), response.comments
    if "sse" in path:
        field = "" if response.body_bytes else gateway_field(response) or _web_server(response)
        return ("unclear", _held_endpoint(get, field)) if field else (SERVER, {"group": get.target})
    advice = f"Set the transport of the client to Streamable HTTP (type http) with the same URL, {get.target}."
    if comments or path.rstrip("/").endswith("/mcp"):
        blame = (
            "The configuration of the client: it waits as in HTTP+SSE, and this is what a stream of Streamable HTTP looks like, "
            "where the client has to POST first."
        )
        return CONFIGURATION, {"group": get.target, "blame": blame, "advice": advice}
    blame = (
        "Unclear: the server speaks Streamable HTTP, where the client has to POST first, or forgot to announce its endpoint."
    )
    return "unclear", {
        "group": get.target,
        "blame": blame,
        "advice": f"{advice} Else let the server send an endpoint event first.",
    }


def _held_endpoint(get: Transaction, field: str) -> HitDetails:
    blame = (
        f"Unclear: a gateway that collects the response before it passes it on ({field}), or the server, which has to begin with an "
        "endpoint event."
    )
    advice = (
        "Let the gateway pass events on at once (nginx: proxy_buffering off, or X-Accel-Buffering: no from the server; Apache: "
        "flushpackets=on); or ask the server without the gateway: if the endpoint event comes, the gateway holds it back."
    )
    return {"group": get.target, "blame": blame, "advice": advice}


def _web_server(response: Stream) -> str:
    """Quote a Server field of Apache, which serves programs itself or passes requests on to them."""
    server = response.head.get("server")
    return f"its field {quoted(f'Server: {server}')} shows one" if server[:6].lower() == "apache" else ""


def _contradiction(facts: CaptureFacts, exchange: Exchange) -> Iterator[Hit]:
    response = exchange.response
    if response is None or response.kind is not Kind.RESULT:
        return
    transaction = facts.capture.transaction_of(response.stream)
    if transaction is not None and transaction.status >= HTTP_ERRORS and response.sender == SERVER:
        what = f"The result of {call_name(exchange)} came with HTTP {transaction.status}."
        yield hit_in(STATUS_CONTRADICTS, response, exchange.row, what, group=str(transaction.status))

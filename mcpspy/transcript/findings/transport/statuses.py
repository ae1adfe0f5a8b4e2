"""Findings about HTTP: statuses that contradict, endpoints of HTTP+SSE, and what mcpspy itself had to answer."""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT, SERVER
from ...http.transaction import ScopeKind, Stream, Transaction
from ...model import HTTP_ERRORS, Exchange, Kind
from ..facts import CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit, hit_in
from ..words import call_name, quoted, seconds

_CLEAN_POST: Final = (
    '→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← 200 OK\n  {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
)
_CLEAN_STREAM: Final = "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages?session_id=5f2c"

UPSTREAM_FAILED: Final = Rule(
    name="upstream-failed",
    title="Server unreachable",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="mcpspy could not reach the server, or got no answer from it, and told the client so with 502 or 504.",
    why="The client sees an HTTP error that the server did not send.",
    blame="The server, or what lies before it: mcpspy was there and nobody answered; the reason stands in the finding.",
    example='→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n· mcpspy answers 502: Connection refused',
    clean=_CLEAN_POST,
    fix="See whether the server runs, and whether its URL is right.",
)

REQUEST_REFUSED: Final = Rule(
    name="request-refused",
    title="Request refused by mcpspy",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="mcpspy refused a request before it reached the server: it names another host or origin, or is no sound HTTP.",
    why="The server never saw it. Without the check any web page could reach a server that trusts this machine.",
    blame="The client, or who gave it the URL: the request did not name mcpspy's own address.",
    example="→ POST /mcp\n  Host: evil.example\n· mcpspy answers 421: evil.example is not an address of mcpspy",
    clean=_CLEAN_POST,
    fix="Give the client the URL that mcpspy printed; see --allowed-host for others.",
)

STATUS_CONTRADICTS: Final = Rule(
    name="status-contradicts",
    title="Result with an HTTP error status",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="A result came with an HTTP status of 400 or more.",
    why="Clients look at the status first, and take the call for failed.",
    blame="The server: both the status and the result are its own.",
    example=(
        '→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
        '← 500 Internal Server Error\n  {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
    ),
    clean=_CLEAN_POST,
    fix="Answer with 200 what went well.",
)

FOREIGN_ENDPOINT: Final = Rule(
    name="foreign-endpoint",
    title="Endpoint at another origin",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="The endpoint event of HTTP+SSE names another origin than the URL of the stream.",
    why="SDK clients refuse it, and the Python one then waits forever: localhost and 127.0.0.1 are two origins.",
    blame="The server: it makes the URL from an address of its own instead of the one that it was asked at.",
    example="→ GET /sse\n← 200 OK\n  event: endpoint\n  data: http://localhost:3001/messages?session_id=5f2c",
    clean=_CLEAN_STREAM,
    fix="Announce a path without scheme and host: /messages?session_id=….",
)

ENDPOINT_USER: Final = Rule(
    name="endpoint-user",
    title="User name in the endpoint URL",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="The URL in the endpoint event of HTTP+SSE has a user's name, or a password, before its host.",
    why="The Python SDK takes it for another server and refuses it; JavaScript's fetch refuses every such URL.",
    blame="The server: it makes the URL from one with a password in it, and mcpspy passes it on as it is.",
    example="→ GET /sse\n← 200 OK\n  event: endpoint\n  data: http://ada:tea@127.0.0.1:3001/messages?session_id=5f2c",
    clean=_CLEAN_STREAM,
    fix="Announce a path without scheme, user and host: /messages?session_id=….",
)

ENDPOINT_DIALECT: Final = Rule(
    name="endpoint-dialect",
    title="Endpoint sent as JSON",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="The endpoint event of HTTP+SSE holds JSON where a URI should stand alone.",
    why="SDK clients take all of it for the URI, and POST to nowhere.",
    blame="The server: the specification (2024-11-05, basic/transports) has the URI alone.",
    example='→ GET /sse\n← 200 OK\n  event: endpoint\n  data: {"uri":"/messages?session_id=5f2c"}',
    clean=_CLEAN_STREAM,
    fix="Send the URI alone as the data of the event.",
)

MISSING_ENDPOINT: Final = Rule(
    name="missing-endpoint",
    title="No endpoint announced",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="The stream of HTTP+SSE never says where to POST, and nothing else passes.",
    why="SDK clients wait for the endpoint event before they send anything, some for ever.",
    blame="The server: on this transport it has to announce an endpoint before all else (2024-11-05, basic/transports).",
    example=(
        "→ GET /sse\n  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream\n· 5.0 s later\n"
        "· the client closes the stream"
    ),
    clean=_CLEAN_STREAM,
    fix="Send an event of the type endpoint first, with the URI as its data. Of Streamable HTTP give the client the URL for POST.",
)

FOREIGN_RESOURCE: Final = Rule(
    name="foreign-resource",
    title="Resource metadata names another origin",
    family=Family.TRANSPORT,
    severity=Severity.ERROR,
    what="The metadata of a protected resource names another origin than the URL at which mcpspy asks the server.",
    why="Clients use no metadata of another resource than the one that they want (RFC 9728, section 3.3): the login ends there.",
    blame="The server: it makes the name from an address of its own; or whoever gave mcpspy another URL than clients are to use.",
    example=(
        "→ GET /.well-known/oauth-protected-resource/mcp\n← 200 OK\n  Content-Type: application/json\n"
        '  {"resource":"http://localhost:3001/mcp","authorization_servers":["https://login.example"]}'
    ),
    clean=(
        "→ GET /.well-known/oauth-protected-resource/mcp\n← 200 OK\n  Content-Type: application/json\n"
        '  {"resource":"http://127.0.0.1:3001/mcp","authorization_servers":["https://login.example"]}'
    ),
    fix="Tell the server its public URL, or mcpspy the one that the metadata names: localhost and 127.0.0.1 are two.",
)

AMBIGUOUS_STREAM: Final = Rule(
    name="ambiguous-stream",
    title="Streams cannot be told apart",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="Several streams are open, and what is POSTed could be answered on any: they announced no endpoint, or the same one.",
    why="Ids of two clients are equal more often than not; an answer may be taken for another client's.",
    blame="The server: it is the one that announces endpoints, and these do not tell its clients apart.",
    example=(
        "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages\n→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages"
    ),
    clean=(
        "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages?session_id=1\n"
        "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages?session_id=2"
    ),
    fix="Announce an endpoint of its own on each stream, with a session in its query.",
)

DONE_EVENT: Final = Rule(
    name="done-event",
    title="[DONE] event",
    family=Family.TRANSPORT,
    severity=Severity.INFO,
    what="An event with [DONE], the end mark of chat completions.",
    why="It is no JSON; strict clients log an error.",
    blame="The server: streams of MCP have no end mark.",
    example=(
        '→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"ping"}\n← 200 OK\n'
        '  data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n  data: [DONE]\n· the server closes the stream'
    ),
    clean=(
        '→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"ping"}\n← 200 OK\n'
        '  data: {"jsonrpc":"2.0","id":1,"result":{}}\n· the server closes the stream'
    ),
    fix="End the stream, and send nothing.",
)

DPOP_PROOF: Final = Rule(
    name="dpop-proof",
    title="DPoP proof for another URL",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="The client proves that it holds a key, by DPoP, for the URL that it knows: mcpspy's.",
    why="The server checks the proof against its own URL and refuses it. A reverse proxy cannot mend that.",
    blame="mcpspy: it stands at another URL than the server, and cannot sign in the client's name.",
    example=(
        '→ POST /mcp\n  DPoP: eyJ0eXAiOiJkcG9wK2p3dCJ9.e30.\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
        '← 401 Unauthorized\n  {"error":"invalid_dpop_proof"}'
    ),
    clean=_CLEAN_POST,
    fix="Turn DPoP off to debug, or give the server a token: --header 'Authorization: Bearer …'.",
)

RULES: Final = (
    UPSTREAM_FAILED, REQUEST_REFUSED, STATUS_CONTRADICTS, FOREIGN_ENDPOINT, ENDPOINT_USER, ENDPOINT_DIALECT, MISSING_ENDPOINT,
    FOREIGN_RESOURCE, AMBIGUOUS_STREAM, DONE_EVENT, DPOP_PROOF,
)  # fmt: skip

reads_model_api: Final = True

_UPSTREAM_FAILED: Final = (502, 504)
_WAITED_NS: Final = 1_000_000_000
"""An endpoint comes at once."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """What the transactions of a capture tell beside their messages."""
    if not facts.capture.transactions:
        return
    for transaction in facts.capture.transactions.values():
        row = facts.row_of(transaction)
        yield from _anomalies(facts, transaction, row)
        if transaction.request is not None and b"\ndpop:" in transaction.request.opened.head.lower():
            yield _of_stream(DPOP_PROOF, facts, transaction.request, row, "A request bears a DPoP proof.", "mcpspy")
    if not facts.capture.is_model:
        yield from _unannounced(facts)
    for row_number, message in facts.flawed:
        if "ambiguous-stream" in message.flaws:
            what = (
                "An answer came on one of several open streams of which none announced an endpoint: only ids tell whose it is."
            )
            yield hit_in(AMBIGUOUS_STREAM, message, row_number, what, group="answer")
    for exchange in facts.http:
        yield from _contradictions(facts, exchange)


def _anomalies(facts: CaptureFacts, transaction: Transaction, row: int | None) -> Iterator[Hit]:
    for anomaly in transaction.anomalies:
        said = quoted(anomaly.data)
        culprit, group = SERVER, anomaly.name
        match anomaly.name:
            case "foreign-endpoint":
                rule, what = FOREIGN_ENDPOINT, f"The stream of {transaction.target} announces the endpoint {said}, elsewhere."
            case "endpoint-user":
                rule, what = (
                    ENDPOINT_USER,
                    f"The stream of {transaction.target} announces its endpoint with a user before {said}.",
                )
            case "endpoint-dialect":
                rule, what = ENDPOINT_DIALECT, f"The stream of {transaction.target} announces its endpoint as JSON: {said}"
            case "foreign-resource":
                rule, what = FOREIGN_RESOURCE, f"The server says that it is the resource {said}, elsewhere."
            case "shared-endpoint":
                rule, what = AMBIGUOUS_STREAM, f"Two open streams announced the same endpoint: {said}"
            case "ambiguous-resume":
                rule, what = AMBIGUOUS_STREAM, f"A stream goes on after the event {said}, with which several had broken off."
            case "done-event":
                rule, what = DONE_EVENT, f"An event on the stream of {transaction.target} is {said}."
            case "injected":
                failed = transaction.status in _UPSTREAM_FAILED
                rule, culprit, group = (UPSTREAM_FAILED, SERVER, said) if failed else (REQUEST_REFUSED, CLIENT, said)
                what = f"{transaction.method} {transaction.target} was answered {transaction.status}: {said}"
            case _:
                continue
        index = facts.capture.index
        yield hit(
            rule, at_ns=anomaly.at_ns, capture=index, number=anomaly.number, row=row, what=what, culprit=culprit, group=group
        )


def _unannounced(facts: CaptureFacts) -> Iterator[Hit]:
    """Streams that a client kept open, or left, for want of an endpoint: nothing but them is there."""
    gets = []
    for one in facts.capture.transactions.values():
        if one.request_messages and one.status < HTTP_ERRORS:
            return
        if one.method == "GET" and one.scope.kind is ScopeKind.TRANSACTION and one.is_stream:
            gets.append(one)
    for get in gets:
        ended_ns = facts.capture.last_ns + facts.capture.shift_ns if get.ended_ns is None else get.ended_ns
        response, waited_ns = get.response, ended_ns - get.at_ns
        if response is not None and waited_ns >= _WAITED_NS and not response.events and get.ended_by != SERVER:
            what = f"The stream of {get.target} never said where to POST, and the client waited {seconds(waited_ns)}."
            yield _of_stream(MISSING_ENDPOINT, facts, response, facts.row_of(get), what, SERVER, get.target)


def _of_stream(
    rule: Rule, facts: CaptureFacts, stream: Stream, row: int | None, what: str, culprit: str, group: str = "one"
) -> Hit:
    index, number = facts.capture.index, stream.opened.number
    return hit(rule, at_ns=stream.at_ns, capture=index, number=number, row=row, what=what, culprit=culprit, group=group)


def _contradictions(facts: CaptureFacts, exchange: Exchange) -> Iterator[Hit]:
    response = exchange.response
    if response is None or response.kind is not Kind.RESULT:
        return
    carried = facts.capture.transaction_of(response.stream)
    if carried is not None and carried.status >= HTTP_ERRORS and response.sender == SERVER:
        what = f"The result of {call_name(exchange)} came with HTTP {carried.status}."
        yield hit_in(STATUS_CONTRADICTS, response, exchange.row, what, group=str(carried.status))

"""Sides that do not keep up with the other: ended streams, pages in place of streams, input that is not given, broken schemas.

Each has a correct twin, which is not accused.
"""

import json

import pytest

from mcpspy.transcript.findings.json_schema import dangling_reference
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.stats.outcomes import troubles
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records

ABOUT = '"capabilities":{},"clientInfo":{"name":"a","version":"1"}}'
OPEN = f'→ initialize 0 {{"protocolVersion":"%s",{ABOUT}\n'
ENDPOINT = "→ GET /sse\n  Accept: text/event-stream\n← 200 OK\n%s  event: endpoint\n  data: /messages?sessionId=7\n"
POST = '→ POST /messages?sessionId=7\n  tools/call 1 {"name":"search"}\n'
GONE = f"{POST}← 400 Bad Request\n  Content-Type: text/plain\n  No transport found for sessionId"
SERVED = f'{POST}← 202 Accepted\n← #1 data: result 1 {{"content":[]}}'
BROKEN = "· 4.0 s later\n· the server breaks off the stream, broken\n"
NGINX = "  Server: nginx/1.27.4\n"
SESSION = "· HTTP\n· handshake 2025-11-25, server: tools\n"
GET = "→ GET /mcp\n  Accept: text/event-stream\n"
PAGE = "← 200 OK\n  Content-Type: text/html\n  <!doctype html><title>App</title>\n"
LIST = '→ POST /mcp\n  Accept: application/json, text/event-stream\n  tools/list 1\n← 200 OK\n  result 1 {"tools":[]}\n'
CALL = '· revision 2026-07-28, client: %s\n→ tools/call 1 {"name":"remove"}\n'
FORM = (
    '{"method":"elicitation/create","params":{"mode":"form","message":"Sure?",'
    '"requestedSchema":{"type":"object","properties":{}}}}'
)
ASK = '← result 1 {"resultType":"input_required","inputRequests":{"q":%s},"requestState":"s"}\n'
DONE = '← result %d {"resultType":"complete","content":[]}\n'
DECLINE = '→ tools/call 2 {"name":"remove","requestState":"s","inputResponses":{"q":{"action":"decline"}}}\n' + DONE % 2
ELSE = '→ tools/call 3 {"name":"clock"}\n' + DONE % 3
ELICITS, ROOTS = CALL % "elicitation", CALL % "roots"
FORM_ASKED, ROOTS_ASKED = ASK % FORM, ASK % '{"method":"roots/list"}'
LATER = "· 9.0 s later\n"


def found(account: str) -> list[tuple[str, str, str]]:
    notes = {"deprecated-transport"}
    return [
        (finding.rule, finding.severity, finding.culprit)
        for finding in all_findings(transcribe(records(account)))
        if finding.rule not in notes
    ]


def tools(schema: object) -> str:
    tool = {"name": "a", "inputSchema": {"type": "object"}, "outputSchema": schema}
    return f"→ tools/list 1\n← result 1 {json.dumps({'tools': [tool]})}"


def schema(**keywords: object) -> dict[str, object]:
    return {"type": "object", "properties": {"note": {"$ref": "#/$defs/Note"}}, **keywords}


FAULTS = {
    "a stream of HTTP+SSE that broke off, and a client that goes on": (
        f"{ENDPOINT % ''}{BROKEN}{GONE}",
        [("idle-stream-cut", "warning", "unclear"), ("wrong-endpoint", "error", "client")],
    ),
    "a page in place of a stream": (f"{SESSION}{GET}{PAGE}{LIST}{GET}{PAGE}", [("unaccepted-type", "warning", "server")]),
    "JSON in place of a stream": (
        f'{SESSION}{GET}← 200 OK\n  Content-Type: application/json\n  {{"status":"ok"}}\n{LIST}',
        [("unaccepted-type", "warning", "server")],
    ),
    "input that is never given, while other calls go on": (
        f"{ELICITS}{FORM_ASKED}{LATER}{ELSE}",
        [("input-not-given", "warning", "client")],
    ),
    "a form that nobody fills in": (
        f"{ELICITS}{FORM_ASKED}{LATER}· the client closes stdin",
        [("input-not-given", "note", "unclear")],
    ),
    "roots that are never given": (
        f"{ROOTS}{ROOTS_ASKED}{LATER}· the client closes stdin",
        [("input-not-given", "warning", "client")],
    ),
    "an output schema without what it refers to": (
        tools(schema()),
        [("tool-schema-invalid", "error", "server")],
    ),
    "a revision that is refused in place of another that is offered": (
        f"{OPEN % '2025-11-25'}← error 0 -32602 Unsupported protocol version: 2025-11-25. Supported: 2024-11-05",
        [("refused-handshake", "error", "server")],
    ),
}

WELL = {
    "a stream of HTTP+SSE that is open": f"{ENDPOINT % ''}· 4.0 s later\n{SERVED}\n· the client closes the stream",
    "a stream that broke off, and a client that opens another": (
        f"{ENDPOINT % ''}{BROKEN}{(ENDPOINT % '').replace('Id=7', 'Id=8')}{POST.replace('Id=7', 'Id=8')}← 202 Accepted\n"
        '← #2 data: result 1 {"content":[]}\n· the client closes the stream'
    ),
    "a server without a stream": f"{SESSION}{GET}← 405 Method Not Allowed\n  Allow: POST\n{LIST}",
    "a page at another path": f"{SESSION}→ GET /docs\n  Accept: text/event-stream\n{PAGE}{LIST}",
    "a browser that opens the endpoint": f"{SESSION}→ GET /mcp\n  Accept: text/html\n{PAGE}{LIST}",
    "input that is given late": f"{ELICITS}{FORM_ASKED}{LATER}{ELSE}{DECLINE}",
    "a client that leaves at once": f"{ROOTS}{ROOTS_ASKED}· the client closes stdin",
    "a schema with what it refers to": tools(schema(**{"$defs": {"Note": {"type": "string"}}})),
    "a handshake with an older revision": (
        f"{OPEN % '2025-11-25'}"
        '← result 0 {"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"b","version":"1"}}\n'
        "→ notifications/initialized"
    ),
}

HELLO = '← result 0 {"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"1"}}\n'
NOTIFIED = f"{OPEN % '2025-06-18'}{HELLO}→ notifications/initialized\n"
UNKNOWN = '{"code":-32601,"message":"Method not found%s"}'
LISTED = '→ tools/list 1\n← result 1 {"tools":[]}\n'
FIRST = f"→ POST /mcp\n  {(OPEN % '2025-11-25')[2:]}"
MOVED = "← 301 Moved Permanently\n%s  Location: /mcp/\n  Content-Type: text/html\n  %s\n→ GET /mcp/\n← 405 Method Not Allowed"
MISDIRECTED = f"{FIRST}← 421 Misdirected Request\n%s  Content-Type: text/plain\n  Invalid Host header"

FAULTS |= {
    "an unknown notification that is answered under an old id": (
        f"{NOTIFIED}← error 0 -32601 Method not found: notifications/initialized\n{LISTED}",
        [("notification-answered", "warning", "server")],
    ),
    "an unknown notification that is answered without an id": (
        f'{NOTIFIED}← {{"jsonrpc":"2.0","id":null,"error":{UNKNOWN % ": notifications/initialized"}}}\n{LISTED}',
        [("notification-answered", "warning", "server")],
    ),
    "a notification whose answer does not name it": (
        f'{NOTIFIED}← {{"jsonrpc":"2.0","error":{UNKNOWN % ""}}}\n{LISTED}',
        [("notification-answered", "warning", "server")],
    ),
    "a redirect with the page of a gateway": (
        FIRST + MOVED % (NGINX, "<html><center>nginx/1.27.4</center></html>"),
        [("redirect-loses-body", "error", "gateway")],
    ),
    "a redirect with a page of its own, through a gateway": (
        FIRST + MOVED % (NGINX, "<html>Moved. Redirecting to /mcp/</html>"),
        [("redirect-loses-body", "error", "unclear")],
    ),
    "a host that a gateway may have changed": (MISDIRECTED % NGINX, [("host-refused", "error", "configuration")]),
    "a host that the server itself refuses": (MISDIRECTED % "", [("host-refused", "error", "server")]),
}

WELL |= {
    "a notification that nobody answers": f"{NOTIFIED}{LISTED}",
    "an error about a line that could not be read": (
        f'{NOTIFIED}← {{"jsonrpc":"2.0","id":null,"error":{{"code":-32700,"message":"Parse error"}}}}\n{LISTED}'
    ),
}


@pytest.mark.parametrize(("account", "expected"), FAULTS.values(), ids=list(FAULTS))
def test_the_side_that_did_not_keep_up_is_named(account: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(account) == expected


@pytest.mark.parametrize("account", WELL.values(), ids=list(WELL))
def test_a_side_that_kept_up_is_not_accused(account: str) -> None:
    assert found(account) == []


def test_a_revision_that_never_was_is_nobodys_fault_when_it_is_refused() -> None:
    account = f"{OPEN % '1.0.0'}← error 0 -32602 Unsupported protocol version"
    assert ("refused-handshake", "note", "unclear") in found(account)


def test_a_gateway_that_shows_itself_is_named_beside_the_server_for_a_stream_that_broke_off() -> None:
    cut = next(
        finding
        for finding in all_findings(transcribe(records(f"{ENDPOINT % NGINX}{BROKEN}{GONE}")))
        if finding.rule == "idle-stream-cut"
    )
    assert "nginx" in cut.blame


@pytest.mark.parametrize(
    "whole",
    [
        schema(definitions={"Note": {}}, properties={"note": {"$ref": "#/definitions/Note"}}),
        schema(properties={"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}}),
        schema(properties={"a/b c": {}, "d": {"$ref": "#/properties/a~1b%20c"}}),
        schema(properties={"a": {"anyOf": [{}, {}]}, "b": {"$ref": "#/properties/a/anyOf/1"}}),
        schema(properties={"$ref": {"type": "string"}, "default": {"type": "string"}}),
        schema(properties={"a": {"default": {"$ref": "#/nowhere"}, "const": {"$ref": "#/nowhere"}}}),
        schema(properties={"a": {"$ref": "#name"}, "b": {"$ref": "https://example.com/schema#/$defs/b"}, "c": {"$ref": "#"}}),
        schema(properties={"a": {"$id": "urn:a", "$defs": {"b": {}}, "items": {"$ref": "#/$defs/b"}}}),
    ],
)
def test_a_reference_that_leads_somewhere_or_elsewhere_is_well(whole: dict[str, object]) -> None:
    assert dangling_reference(whole) == ""


@pytest.mark.parametrize(
    ("broken", "reference"),
    [
        (schema(properties={"default": {"$ref": "#/$defs/b"}}), "#/$defs/b"),
        (schema(properties={"a": {"items": {"oneOf": [{}, {"$ref": "#/$defs/c"}]}}}), "#/$defs/c"),
        (schema(properties={"a": {"anyOf": [{}]}, "b": {"$ref": "#/properties/a/anyOf/1"}}), "#/properties/a/anyOf/1"),
        (schema(**{"$defs": {"Note": {"$ref": "#/components/schemas/Note"}}}), "#/components/schemas/Note"),
    ],
)
def test_a_reference_that_leads_nowhere_is_named(broken: dict[str, object], reference: str) -> None:
    assert dangling_reference(broken) == reference


CANCELLED = f'{NOTIFIED}→ tools/call 1 {{"name":"a"}}\n· 3.0 s later\n→ notifications/cancelled {{"requestId":1}}\n'


@pytest.mark.parametrize(
    ("account", "words"),
    [
        (f"{CANCELLED}· the server exits 1", "after it had sent notifications/cancelled"),
        (f"{NOTIFIED}· the server exits 1", "after it had sent notifications/initialized"),
        (f"{CANCELLED}· 5.0 s later\n· the server exits 1", "while the client was connected."),
        (f"{CANCELLED}→ tools/list 2\n← result 2\n· the server exits 1", "while the client was connected."),
    ],
    ids=["a cancellation", "the first notification", "long after it", "after another call"],
)
def test_a_server_that_dies_of_a_notification_is_said_to(account: str, words: str) -> None:
    (finding,) = [each for each in all_findings(transcribe(records(account))) if each.rule == "server-died"]
    assert words in finding.what


REPEATED = "→ POST /mcp/\n  ping 1\n"
OFFER = json.dumps({"tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"filter": {"type": "object"}}}}]})


@pytest.mark.parametrize(
    ("value", "words"),
    [('{"status":"open"}', "the text of filter"), ("[1]", ""), ('{"status":', ""), ("open", "")],
    ids=["an object as text", "a list as text", "a text that is cut", "a word"],
)
def test_an_argument_that_was_encoded_twice_is_named(value: str, words: str) -> None:
    call = json.dumps({"name": "a", "arguments": {"filter": value}})
    account = f"{NOTIFIED}→ tools/list 1\n← result 1 {OFFER}\n→ tools/call 2 {call}\n← error 2 -32602 Expected object"
    (finding,) = [each for each in all_findings(transcribe(records(account))) if each.rule == "arguments-invalid"]
    assert finding.culprit == "agent"
    assert words in finding.what
    assert ("text of" in finding.what) == bool(words)


@pytest.mark.parametrize(
    ("repeated", "refused"),
    [(f"{REPEATED}← 200 OK\n  result 1", 0), (f"{REPEATED}← 500 Internal Server Error", 2), ("", 1)],
    ids=["served at the other place", "refused there", "nobody followed"],
)
def test_a_call_that_was_redirected_is_refused_only_if_it_was_not_served_then(repeated: str, refused: int) -> None:
    account = f"→ POST /mcp\n  ping 1\n← 308 Permanent Redirect\n  Location: /mcp/\n{repeated}"
    assert troubles(transcribe(records(account))).refused_calls == refused

"""Responses over HTTP that are not what they claim, or come where no client reads: near misses, and other forms of the faults."""

import gzip
import json

import pytest

from mcpspy.records import Close
from mcpspy.transcript.findings.run import findings
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records
from tests.transcript.dialogue import request, result
from tests.transcript.traffic import Traffic

POST = "→ POST /mcp\n  tools/list 1\n"
RESULT = 'result 1 {"tools":[]}'
PAGE = "  Origin: http://localhost:5173\n"
ABOUT = '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}'
OPEN = f"→ POST /mcp\n{PAGE}  initialize 0 {ABOUT}\n"
HELLO = '  result 0 {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"b","version":"1"}}\n'
ALLOWED = "  Access-Control-Allow-Origin: *\n"
NEXT = f"→ POST /mcp\n{PAGE}  tools/list 1\n← 200 OK\n  {RESULT}\n"
PREFLIGHT = (
    f"→ OPTIONS /mcp\n{PAGE}  Access-Control-Request-Method: POST\n"
    "  Access-Control-Request-Headers: content-type, mcp-session-id\n"
)
STREAM = "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /messages?session_id=1\n"
OLD_POST = "→ POST /messages?session_id=1\n  tools/list 1\n"


def rules(account: str) -> list[tuple[str, str, str]]:
    return [(finding.rule, finding.severity, finding.culprit) for finding in findings(transcribe(records(account)))]


WELL = {
    "a permanent redirect that keeps the method": f"{POST}← 308 Permanent Redirect\n  Location: /mcp/\n{POST}← 200 OK\n  {RESULT}",
    "a redirect of a GET": "→ GET /mcp\n← 302 Found\n  Location: /login",
    "a page that the server lets read": f"{OPEN}← 200 OK\n{ALLOWED}{HELLO}{NEXT.replace('  result', f'{ALLOWED}  result')}",
    "a client that names an origin, and is no browser": f"{OPEN}← 200 OK\n{HELLO}{NEXT}",
    "a page of the server itself": f"{OPEN.replace('localhost:5173', '127.0.0.1:7777')}← 200 OK\n{HELLO}",
    "a browser's page of the same origin": f"{OPEN.replace(PAGE, PAGE + '  Sec-Fetch-Site: same-origin' + chr(10))}← 200 OK\n{HELLO}",
    "a preflight that is allowed": (
        f"{PREFLIGHT}← 204 No Content\n{ALLOWED}  Access-Control-Allow-Headers: Content-Type, Mcp-Session-Id\n"
    ),
    "an extension of a program as origin": f"{OPEN.replace('http://localhost:5173', 'vscode-file://app')}← 200 OK\n{HELLO}",
    "an answer on the stream of HTTP+SSE": f"{STREAM}{OLD_POST}← 202 Accepted\n← #1 data: {RESULT}",
    "an event of another name that is no message": f"{POST}← 200 OK\n  event: heartbeat\n  data: {{}}\n\n  data: {RESULT}",
    "a field that may come twice": f"{POST}← 200 OK\n  Set-Cookie: a=1\n  Set-Cookie: b=2\n  {RESULT}",
}


@pytest.mark.parametrize("account", WELL.values(), ids=list(WELL))
def test_nothing_is_found_where_nothing_is_wrong(account: str) -> None:
    assert rules(account) == []


FAULTS = {
    "a page without permission that does not go on": (f"{OPEN}← 200 OK\n{HELLO}", "browser-cannot-read", "warning"),
    "a page that does not see its session, and goes on without it": (
        f"{OPEN}← 200 OK\n  Mcp-Session-Id: 5f2c\n{ALLOWED}{HELLO}{NEXT.partition('← ')[0]}← 400 Bad Request\n{ALLOWED}  {{}}",
        "browser-cannot-read",
        "warning",
    ),
    "a preflight that does not allow a field": (f"{PREFLIGHT}← 204 No Content\n{ALLOWED}", "browser-cannot-read", "error"),
    "a preflight that is refused": (f"{PREFLIGHT}← 405 Method Not Allowed\n{ALLOWED}", "browser-cannot-read", "error"),
    "an answer in the body of a POST over HTTP+SSE": (f"{STREAM}{OLD_POST}← 200 OK\n  {RESULT}", "unheard-answer", "error"),
    "a content type that comes twice": (
        f"{POST}← 200 OK\n  Content-Type: application/json\n  Content-Type: text/html\n  {RESULT}",
        "duplicate-header",
        "error",
    ),
    "a redirect with 303 that nobody follows": (
        f"{POST}← 303 See Other\n  Location: /elsewhere",
        "redirect-loses-body",
        "error",
    ),
}


@pytest.mark.parametrize(("account", "rule", "severity"), FAULTS.values(), ids=list(FAULTS))
def test_a_response_that_the_client_cannot_use_is_the_servers_fault(account: str, rule: str, severity: str) -> None:
    assert rules(account) == [(rule, severity, "server")]


def test_a_client_that_sends_two_tokens_is_to_blame() -> None:
    account = (
        f"{POST.replace('  tools', '  Authorization: Bearer a' + chr(10) + '  Authorization: Bearer b' + chr(10) + '  tools')}"
    )
    assert rules(f"{account}← 200 OK\n  {RESULT}") == [("duplicate-header", "error", "client")]


def test_a_session_that_no_response_gave_out_was_lost_on_the_way() -> None:
    refused = "→ POST /mcp\n  tools/list 1\n← 400 Bad Request\n  error 1 -32600 Missing session ID"
    account = f"{OPEN.replace(PAGE, '')}← 200 OK\n{HELLO}{refused}"
    assert rules(account) == [("session-missing", "warning", "unclear")]


def body(data: bytes, encoding: str = "identity") -> Traffic:
    traffic = Traffic()
    traffic.post(request(1)).answer(200, data, Content_Type="application/json", Content_Encoding=encoding)
    return traffic


RAW = json.dumps(result(1)).encode()


def test_a_body_that_is_encoded_as_its_head_says_is_well() -> None:
    assert body(gzip.compress(RAW, mtime=0), "gzip").rules == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"event: message\ndata: " + RAW + b"\n\n", "a stream of events"),
        (gzip.compress(RAW, mtime=0), "gzip"),
        (b"<html></html>", "HTML"),
        (RAW.decode().encode("utf-16"), "UTF-16"),
        (RAW.decode().encode("utf-16-le"), "UTF-16"),
    ],
)
def test_a_body_of_json_that_is_something_else_is_named(data: bytes, words: str) -> None:
    finding = next(each for each in body(data).findings if each.rule == "malformed-message")
    assert (words in finding.what, finding.culprit) == (True, "server")


def test_json_under_the_type_of_events_is_no_stream() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().raw(RAW).close()
    assert traffic.rules == ["body-contradicts-head"]


def test_two_sessions_in_one_response_are_no_fault_of_a_client_that_sends_both() -> None:
    hello = f"{OPEN.replace(PAGE, '')}← 200 OK\n{HELLO}"
    once, twice = "  Mcp-Session-Id: aa\n", "  Mcp-Session-Id: aa\n  Mcp-Session-Id: bb\n"
    again = (
        "→ POST /mcp\n  Mcp-Session-Id: %s\n  tools/list 1\n← 404 Not Found\n  Content-Type: text/plain\n  Session not found\n"
    )
    for fields, expected in ((once, "client"), (twice, "server")):
        account = hello.replace("← 200 OK\n", f"← 200 OK\n{fields}") + again % "aa, bb" * 2
        assert ("session-unknown", "error", expected) in rules(account)


def cut(missing: object, data: bytes = RAW, how: str = "abort", by: str = "server", product: str = "lab") -> Traffic:
    traffic = Traffic()
    traffic.post(request(1)).answer(
        200, data, by=by, how=how, Content_Type="application/json", Content_Length="99", Server=product
    )
    closed = traffic.records[-1]
    assert isinstance(closed, Close)
    closed.extra = {} if missing is None else {"missing_bytes": missing}
    return traffic


@pytest.mark.parametrize(("product", "culprit"), [("uvicorn", "server"), ("nginx/1.27.4", "unclear")])
def test_a_whole_body_that_is_shorter_than_its_length_is_found(product: str, culprit: str) -> None:
    (finding,) = [each for each in cut(10, product=product).findings if each.rule == "body-contradicts-head"]
    assert (finding.culprit, finding.severity) == (culprit, "error")
    assert "ended 10 bytes short of its Content-Length, “99”" in finding.what


@pytest.mark.parametrize(
    "traffic",
    [
        cut(None, how="eof"),
        cut(None, how="reset"),
        cut(10, by="client"),
        cut(10, RAW[:-9]),
        cut("many"),
    ],
    ids=["whole", "reset after it", "a client that left", "a message that is not whole", "an odd record"],
)
def test_a_body_that_ends_in_another_way_is_not_too_short_for_its_length(traffic: Traffic) -> None:
    assert "body-contradicts-head" not in traffic.rules


GET_SSE = "→ GET /mcp\n  Accept: text/event-stream\n← 200 OK\n"


def test_json_in_the_place_of_the_stream_of_http_sse_is_found_without_any_message() -> None:
    assert rules(f'{GET_SSE}  {{"ok":true}}') == [("unaccepted-type", "error", "unclear")]


@pytest.mark.parametrize(
    "account",
    [
        f'{GET_SSE.replace("/mcp", "/health")}  {{"ok":true}}',
        '→ GET /mcp\n  Accept: */*\n← 200 OK\n  {"ok":true}',
        GET_SSE.replace("200 OK", "405 Method Not Allowed") + POST + f"← 200 OK\n  {RESULT}",
    ],
    ids=["another path", "a page that is read", "a client that goes on with POST"],
)
def test_a_get_that_has_to_give_no_stream_may_give_anything(account: str) -> None:
    assert "unaccepted-type" not in {rule for rule, _, _ in rules(account)}

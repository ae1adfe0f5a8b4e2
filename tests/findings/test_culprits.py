"""Faults whose culprit shows only beside other evidence: gateways, settings, cancellations; each with a twin."""

import pytest

from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records
from tests.findings.test_near_misses import GET, HANDSHAKE, HELLO, INITIALIZE, SESSION, SSE
from tests.findings.test_silences import findings_of

OLD = "→ GET /sse\n  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream\n"
WAITS = "· 9.0 s later\n· the client closes the stream"


@pytest.mark.parametrize(
    ("field", "sent", "culprit"),
    [
        ("  Server: Apache/2.4.62\n", "", "unclear"),
        ("  Via: 1.1 proxy\n", "", "unclear"),
        ("  Server: uvicorn\n  X-Accel-Buffering: no\n", "", "server"),
        ("  Server: Apache/2.4.62\n", "← : ping\n", "server"),
    ],
)
def test_an_endpoint_that_never_comes_may_be_held_back_by_a_gateway_that_shows_itself(
    field: str, sent: str, culprit: str
) -> None:
    (finding,) = findings_of(f"{OLD}{field}{sent}{WAITS}")
    assert (finding.rule, finding.culprit) == ("missing-endpoint", culprit)
    assert ("proxy_buffering" in finding.advice) is (culprit == "unclear")


def cut(field: str, silences: tuple[float, ...], *, together: bool = False) -> str:
    """Tell of a call whose stream broke off after the last silence, and of server streams that broke off after the others."""
    head, text = SSE.replace("← 200 OK\n", f"← 200 OK\n{field}"), SESSION
    opened = "".join(f"{GET}{head}" for _ in silences[:-1]) if together else ""
    for silent in () if together else silences[:-1]:
        text += f"{GET}{head}· {silent} s later\n· the server breaks off the stream, broken\n"
    text += f'{opened}→ POST /mcp\n  tools/call 1 {{"name":"report"}}\n{head}· {silences[-1]} s later\n'
    return text + "· the server breaks off the stream, broken\n" * (len(silences) if together else 1)


NGINX = "  Server: nginx/1.27.4\n"


@pytest.mark.parametrize(
    ("account", "culprit", "is_limit"),
    [
        (cut(NGINX, (4.0, 4.1, 4.0)), "gateway", True),
        (cut("", (4.0, 4.1, 4.0)), "unclear", True),
        (cut("", (4.0, 9.0, 2.0)), "server", False),
        (cut(NGINX, (4.0, 9.0, 2.0)), "unclear", False),
        (cut("", (4.0, 4.0)), "server", False),
        (cut("", (4.0, 4.0, 4.0), together=True), "server", False),
    ],
)
def test_streams_that_are_cut_after_equal_silences_meet_a_time_limit(account: str, culprit: str, *, is_limit: bool) -> None:
    (finding,) = [found for found in findings_of(account) if found.rule == "unanswered-request"]
    assert (finding.culprit, "is a time limit" in finding.blame) == (culprit, is_limit)


@pytest.mark.parametrize(("silences", "culprit"), [((4.0, 4.1, 4.0), "gateway"), ((4.0, 9.0, 2.0), "unclear")])
def test_a_call_that_timed_out_after_its_stream_was_cut_is_blamed_like_the_cut(
    silences: tuple[float, ...], culprit: str
) -> None:
    cancelled = '  notifications/cancelled {"requestId":1,"reason":"Request timed out"}\n← 202 Accepted\n'
    (finding,) = [
        found
        for found in findings_of(f"{cut(NGINX, silences)}· 9.0 s later\n→ POST /mcp\n{cancelled}")
        if found.rule == "timed-out"
    ]
    assert finding.culprit == culprit


PREFIXED = "← 200 OK\n  event: endpoint\n  data: /messages?s=1\n→ POST /messages?s=1\n"
PAGE = "  Content-Type: text/html\n  Server: nginx/1.27.4\n  <html><center>nginx</center></html>"


@pytest.mark.parametrize(
    ("path", "status", "expected"),
    [
        ("/weather/sse", "404 Not Found", ("wrong-endpoint", "configuration")),
        ("/sse", "404 Not Found", ("http-error", "gateway")),
        ("/weather/sse", "502 Bad Gateway", ("http-error", "gateway")),
    ],
)
def test_an_endpoint_without_the_beginning_of_the_path_is_said_also_where_a_gateway_refuses_it(
    path: str, status: str, expected: tuple[str, str]
) -> None:
    account = f"→ GET {path}\n  Accept: text/event-stream\n{PREFIXED}  tools/list 1\n← {status}\n{PAGE}"
    assert expected in [(finding.rule, finding.culprit) for finding in findings_of(account)]


REFUSED = '→ POST /mcp\n%s  tools/list 1\n← 401 Unauthorized\n%s  {"error":"no key"}\n'
METADATA = '  WWW-Authenticate: Bearer resource_metadata="http://127.0.0.1:7777/.well-known/oauth-protected-resource"\n'
LOOKED = '→ GET /.well-known/oauth-protected-resource\n← 200 OK\n  {"resource":"http://127.0.0.1:7777/mcp"}\n'


@pytest.mark.parametrize(
    ("account", "culprit"),
    [
        (REFUSED % ("", ""), "configuration"),
        (REFUSED % ("", '  WWW-Authenticate: Bearer realm="mcp"\n'), "configuration"),
        (REFUSED % ("", METADATA), "client"),
        (REFUSED % ("", "") + LOOKED, "client"),
        (REFUSED % ("  Authorization: Bearer redacted-aa\n", ""), "configuration"),
        (REFUSED % ("  X-API-Key: redacted-aa\n", ""), "configuration"),
    ],
)
def test_a_client_without_a_token_needs_a_setting_where_no_login_can_begin(account: str, culprit: str) -> None:
    found = [finding for finding in findings_of(account) if finding.rule == "http-error"]
    assert [finding.culprit for finding in found] == [culprit]


def test_a_client_that_has_a_token_and_leaves_it_out_needs_no_setting() -> None:
    request = "→ GET /sse\n  Accept: text/event-stream\n  Authorization: Bearer redacted-aa\n"
    stream = f"{request}← 200 OK\n  event: endpoint\n  data: /m?s=1\n"
    (finding,) = findings_of(f"{stream}→ POST /m?s=1\n  tools/list 1\n← 401 Unauthorized\n  {{}}\n")
    assert (finding.culprit, "left out the token" in finding.blame) == ("client", True)


def test_a_refused_token_is_quoted_with_the_reason_of_the_challenge() -> None:
    request = "→ POST /mcp\n  Authorization: Bearer redacted-aa\n  tools/list 1\n← 401 Unauthorized\n"
    challenge = '  WWW-Authenticate: Bearer error="invalid_token", error_description="The access token expired"\n'
    (finding,) = [found for found in findings_of((request + challenge) * 2) if found.rule == "token-refused"]
    assert "“The access token expired”" in finding.what


CRAWL = f'{HANDSHAKE}→ tools/call 1 {{"name":"crawl"}}\n· 1.5 s later\n→ notifications/cancelled {{"requestId":1}}\n'
NEXT = '· 0.3 s later\n→ tools/call 2 {"name":"find"}\n'
ANSWERED = "· 6.0 s later\n← result 1\n← result 2\n"


def test_a_server_that_keeps_the_next_call_waiting_for_a_cancelled_one_ignores_the_cancellation() -> None:
    (finding,) = findings_of(f"{CRAWL}{NEXT}{ANSWERED}")
    assert (finding.rule, finding.culprit, finding.severity) == ("cancellation-ignored", "server", "warning")
    assert "tools/call find (row 4) waited 6.0 s" in finding.what


@pytest.mark.parametrize(
    "account",
    [
        f"{CRAWL}{NEXT}← result 2\n· 6.0 s later\n← result 1\n",
        f"{CRAWL}{NEXT}· 6.0 s later\n← result 1\n· 3.0 s later\n← result 2\n",
        f"{CRAWL}· 6.0 s later\n{NEXT}← result 1\n← result 2\n",
        f"{CRAWL}{NEXT}← error 2 -32602 No such name\n· 6.0 s later\n← result 1\n",
        f"{CRAWL}{NEXT}← error 2 -32603 Another crawl is in progress\n",
        f"{CRAWL}{NEXT}← result 2\n",
        CRAWL,
    ],
)
def test_a_cancellation_that_held_nothing_up_is_nobodys_fault(account: str) -> None:
    assert [(finding.rule, finding.culprit, finding.severity) for finding in findings_of(account)] == [
        ("given-up", "unclear", "note")
    ]


def test_a_server_that_refuses_a_call_because_the_cancelled_one_still_runs_ignores_the_cancellation() -> None:
    (finding,) = findings_of(f"{CRAWL}{NEXT}← error 2 -32603 Another crawl is in progress\n· 6.0 s later\n← result 1\n")
    assert (finding.rule, finding.culprit, finding.severity) == ("cancellation-ignored", "server", "warning")
    assert finding.what.endswith("tools/call find (row 4) failed meanwhile, because something still ran.")


def test_a_cancellation_of_an_id_that_no_request_has_stops_nothing() -> None:
    account = f"{CRAWL}{NEXT}{ANSWERED}".replace('"requestId":1', '"requestId":"1"')
    assert {(finding.rule, finding.culprit) for finding in findings_of(account)} == {
        ("id-type-mismatch", "client"), ("given-up", "unclear"),
    }  # fmt: skip


STOCK = f'{HANDSHAKE}→ tools/call 1 {{"name":"stock"}}\n→ tools/call 2 {{"name":"stock"}}\n'
RESULT = '← result 2 {"content":[{"type":"text","text":"%s"}]}\n'


@pytest.mark.parametrize(
    ("account", "severity", "names_the_other"),
    [
        (STOCK + RESULT % "apples" + RESULT % "pears", "error", True),
        (STOCK + RESULT % "pears" + RESULT % "pears", "warning", False),
        (STOCK + RESULT % "apples" + RESULT % "pears" + (RESULT % "1").replace("2", "1", 1), "warning", False),
        (STOCK + RESULT % "apples" + '→ tools/call 3 {"name":"stock"}\n' + RESULT % "pears", "warning", False),
    ],
)
def test_a_second_answer_may_be_that_of_the_only_request_that_got_none(
    account: str, severity: str, *, names_the_other: bool
) -> None:
    (finding,) = (finding for finding in findings_of(account) if finding.rule == "duplicate-response")
    assert (finding.severity, "(row 3) was open too" in finding.blame) == (severity, names_the_other)


PROGRESS = "← Embedding: 40%|####   Embedding: 100%|########|"


@pytest.mark.parametrize(
    ("behind", "severity", "words"),
    [
        ('{"jsonrpc":"2.0","id":1,"result":{}}', "error", "The answer to tools/call stock (row 3) is behind it"),
        ('{"jsonrpc":"2.0","id":7,"result":{}}', "error", "An answer is behind it"),
        ('{"jsonrpc":"2.0","method":"notifications/x"}', "error", "The message notifications/x is behind it"),
        (' sent {"id": 4, "rows": 2}', "warning", ""),
        ("", "warning", ""),
    ],
)
def test_an_answer_that_text_stands_in_front_of_is_lost(behind: str, severity: str, words: str) -> None:
    account = f'{HANDSHAKE}→ tools/call 1 {{"name":"stock"}}\n{PROGRESS}{behind}\n'
    (finding,) = (finding for finding in findings_of(account) if finding.rule == "stdout-noise")
    assert finding.severity == severity
    assert words in finding.what


BLOCKED = "<!DOCTYPE html><h1>Access denied</h1>Request blocked by the web application firewall."


@pytest.mark.parametrize(
    ("status", "media_type", "body", "culprit"),
    [
        ("403 Forbidden", "text/html", BLOCKED, "gateway"),
        ("406 Not Acceptable", "text/html", "<html>This error was generated by Mod_Security</html>", "gateway"),
        ("403 Forbidden", "text/html", "<!doctype html><title>403 Forbidden</title><h1>Forbidden</h1>", "unclear"),
        ("403 Forbidden", "application/json", '{"error":"Request blocked"}', "unclear"),
    ],
)
def test_the_page_of_a_firewall_is_no_answer_of_the_server(status: str, media_type: str, body: str, culprit: str) -> None:
    account = f"{SESSION}→ POST /mcp\n  tools/list 1\n← {status}\n  Content-Type: {media_type}\n  {body}\n"
    assert [finding.culprit for finding in findings_of(account) if finding.rule == "http-error"] == [culprit]


LIMITED = "→ POST /mcp\n  tools/list 1\n← 429 Too Many Requests\n%s  Content-Type: text/plain\n  slow down\n"


@pytest.mark.parametrize(
    ("field", "words"),
    [("", "names no time to wait (Retry-After)."), ("  Retry-After: 7\n", "asks to wait (“Retry-After: 7”).")],
)
def test_a_request_over_a_limit_is_told_to_come_less_often(field: str, words: str) -> None:
    (finding,) = (finding for finding in findings_of(SESSION + LIMITED % field) if finding.rule == "http-error")
    assert (finding.culprit, finding.blame.endswith(words)) == ("unclear", True)
    assert finding.advice.startswith("Ask less often")


@pytest.mark.parametrize("status", ["404 Not Found", "405 Method Not Allowed"])
def test_what_is_refused_after_initialize_at_a_wrong_url_is_no_other_fault(status: str) -> None:
    refusal = f"← {status}\n  Content-Type: text/plain\n  No\n"
    account = f"→ POST /mcp\n  {INITIALIZE[2:]}{refusal}→ POST /mcp\n  tools/list 1\n{refusal}"
    assert [(finding.rule, finding.count) for finding in findings_of(account)] == [("wrong-endpoint", 1)]


def test_what_a_server_refuses_with_405_where_it_served_something_is_a_fault_of_its_own() -> None:
    account = f"{SESSION}→ POST /mcp\n  tools/list 1\n← 405 Method Not Allowed\n  Content-Type: text/plain\n  No\n"
    assert "http-error" in {finding.rule for finding in findings_of(account)}


FAILS = '→ tools/call {0} {{"name":"read"}}\n← result {0} {{"content":[{{"type":"text","text":"{1}"}}],"isError":true}}\n'


@pytest.mark.parametrize(("times", "severity"), [(3, "note"), (5, "warning")])
def test_equal_errors_again_and_again_are_a_loop(times: int, severity: str) -> None:
    account = HANDSHAKE + "".join(FAILS.format(at, "no such file") for at in range(1, times + 1))
    (finding,) = (finding for finding in findings_of(account) if finding.rule == "repeated-call")
    assert (finding.severity, finding.culprit) == (severity, "agent")


def test_errors_that_differ_are_no_loop() -> None:
    account = HANDSHAKE + "".join(FAILS.format(at, f"step {at} failed") for at in range(1, 9))
    assert "repeated-call" not in {finding.rule for finding in findings_of(account)}


def test_a_cancellation_that_nothing_followed_reads_like_no_fault() -> None:
    (finding,) = findings_of(f"{CRAWL}{NEXT}← result 2\n")
    assert finding.what == (
        "The client cancelled tools/call crawl after 1.5 s, and no answer followed, as is right; the later tools/call find (row 4) "
        "was answered after 1 ms."
    )


def test_an_error_that_only_answers_the_cancellation_is_not_the_answer() -> None:
    account = f'{HANDSHAKE}→ tools/call 1 {{"name":"crawl"}}\n· 6.0 s later\n'
    account += '→ notifications/cancelled {"requestId":1,"reason":"Request timed out"}\n← error 1 0 Request cancelled\n'
    (finding,) = findings_of(account)
    assert "answered the cancellation with the error “Request cancelled”" in finding.what
    assert "answered after" not in finding.what


@pytest.mark.parametrize(
    ("status", "words", "advice"),
    [
        ("504 Gateway Timeout", ", after ", "proxy_read_timeout"),
        ("502 Bad Gateway", "502 Bad Gateway", "right address"),
        ("413 Content Too Large", "the body of the request has ", "client_max_body_size"),
    ],
)
def test_each_error_of_a_gateway_has_its_own_advice(status: str, words: str, advice: str) -> None:
    account = (
        f"{SESSION}→ POST /mcp\n  tools/list 1\n← {status}\n  Server: nginx\n  Content-Type: text/html\n  <html>nginx</html>\n"
    )
    (finding,) = findings_of(account)
    assert words in finding.what
    assert advice in finding.advice


@pytest.mark.parametrize(("host", "is_offered"), [("127.0.0.1:7777", False), ("mcp.example", True)])
def test_a_name_of_this_machine_is_not_offered_in_the_place_of_itself(host: str, *, is_offered: bool) -> None:
    refusal = "← 421 Misdirected Request\n  Content-Type: text/plain\n  Invalid Host header\n"
    account = f"→ POST /mcp\n  Host: {host}\n  {INITIALIZE[2:]}{refusal}"
    (finding,) = findings_of(account)
    assert ("such as 127.0.0.1" in finding.advice) is is_offered


def test_letters_that_are_not_utf_8_are_quoted_as_windows_reads_them_and_the_client_that_left() -> None:
    line = '← {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"J\\xfcrgen"}]}}\n'
    account = f'{HANDSHAKE}→ tools/call 1 {{"name":"find"}}\n{line}'
    left, stayed = (
        findings_of(f"{account}· the client closes stdin\n"),
        findings_of(f"{account}→ ping 2\n← result 2\n· 3.0 s later\n"),
    )
    assert "0xFC" in left[0].what
    assert "Jürgen" in left[0].what
    assert ["The client left" in found[0].what for found in (left, stayed)] == [True, False]


@pytest.mark.parametrize(
    ("after", "is_stuck"), [("· 6.0 s later\n", True), ("→ notifications/initialized\n· 6.0 s later\n", False)]
)
def test_a_client_that_does_nothing_after_a_respelled_id_may_still_wait(after: str, *, is_stuck: bool) -> None:
    hello = INITIALIZE.replace("initialize 0", "initialize 1")
    result = HELLO.replace("result 0", 'result "1"')
    (finding,) = [
        found for found in findings_of(f"{hello}{result}{after}· the client closes stdin") if found.rule == "id-type-mismatch"
    ]
    assert ("did nothing after it for 6.0 s" in finding.what) is is_stuck


LISTED = '→ tools/list 1\n← result 1 {"tools":[{"name":"search_code","inputSchema":{"type":"object"}}]}\n'


@pytest.mark.parametrize(
    ("name", "nearest"), [("github_search_code", "search_code"), ("code_search", "search_code"), ("send_mail", "")]
)
def test_an_unknown_tool_is_named_with_the_nearest_that_is_listed(name: str, nearest: str) -> None:
    account = f'{HANDSHAKE}{LISTED}→ tools/call 2 {{"name":"{name}"}}\n← error 2 -32602 Unknown tool\n'
    (finding,) = all_findings(transcribe(records(account)))
    assert (f"the nearest name that it lists is {nearest}." in finding.what) is bool(nearest)


@pytest.mark.parametrize(
    ("schema", "more", "rules"),
    [
        ("{}", "", ["tool-schema-invalid"]),
        ("{}", ',"description":1', ["tool-schema-invalid", "not-as-specified"]),
        ('{"type":"object"}', ',"description":1', ["not-as-specified"]),
    ],
)
def test_a_schema_without_a_type_is_one_fault_and_hides_no_other(schema: str, more: str, rules: list[str]) -> None:
    account = f'{HANDSHAKE}→ tools/list 1\n← result 1 {{"tools":[{{"name":"a","inputSchema":{schema}{more}}}]}}'
    assert [finding.rule for finding in all_findings(transcribe(records(account)))] == rules


OPENING = f"→ POST /mcp\n%s  {INITIALIZE[2:]}← %s\n"


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (OPENING % ("", "400 Bad Request") + "  Content-Type: text/plain\n  Invalid host header\n", "host-refused server"),
        (
            OPENING % ("", "400 Bad Request")
            + "  Content-Type: text/html\n  Server: WSGIServer/0.2\n  <h1>DisallowedHost at /mcp</h1>\n",
            "host-refused server",
        ),
        (
            OPENING % ("", "403 Forbidden") + "  Content-Type: text/plain\n  Blocked by DNS rebinding protection\n",
            "host-refused server",
        ),
        (
            OPENING % ("", "400 Bad Request") + "  Content-Type: text/plain\n  The host parameter is empty\n",
            "http-error unclear",
        ),
        (OPENING % ("", "404 Not Found") + PAGE + "\n", "wrong-endpoint configuration"),
        (
            OPENING % ("  Accept: application/json\n", "406 Not Acceptable") + "  Content-Type: text/plain\n  No\n",
            "http-error client",
        ),
        (OPENING % ("  Accept: */*\n", "406 Not Acceptable") + "  Content-Type: text/plain\n  No\n", "http-error unclear"),
        (
            OPENING % ("  Content-Type: text/plain\n", "415 Unsupported Media Type") + "  Content-Type: text/plain\n  No\n",
            "http-error client",
        ),
        (
            OPENING % ("  Content-Type: text/plain\n", "400 Bad Request") + "  Content-Type: text/plain\n  Bad Content-Type\n",
            "http-error client",
        ),
        (
            OPENING % ("  Content-Type: application/json\n", "400 Bad Request")
            + "  Content-Type: text/plain\n  Bad Content-Type\n",
            "http-error unclear",
        ),
        (
            OPENING % ("  Content-Type: application/json\n", "415 Unsupported Media Type")
            + "  Content-Type: text/plain\n  No\n",
            "http-error unclear",
        ),
        (
            "→ GET /sse\n" + PREFIXED + "  tools/list 1\n← 400 Bad Request\n  Content-Type: text/plain\n  No transport found\n",
            "wrong-endpoint server",
        ),
        (
            "→ GET /sse\n" + PREFIXED + "  tools/list 1\n← 400 Bad Request\n  Content-Type: text/plain\n  No\n",
            "http-error unclear",
        ),
    ],
)
def test_a_refusal_is_judged_by_what_it_says_and_by_the_request(account: str, expected: str) -> None:
    found = [f"{finding.rule} {finding.culprit}" for finding in findings_of(account)]
    assert expected in found
    assert len({name for name in found if name.split()[0] in ("host-refused", "wrong-endpoint", "http-error")}) == 1


@pytest.mark.parametrize(
    ("status", "fields", "culprit"),
    [
        ("500 Internal Server Error", "  X-Powered-By: Express\n", "server"),
        ("503 Service Unavailable", "  Server: WSGIServer/0.2 CPython/3.12\n", "server"),
        ("500 Internal Server Error", "", "unclear"),
        ("503 Service Unavailable", "", "gateway"),
        ("503 Service Unavailable", "  Server: nginx\n", "gateway"),
    ],
)
def test_the_page_of_a_framework_is_the_servers(status: str, fields: str, culprit: str) -> None:
    page = f"← {status}\n{fields}  Content-Type: text/html\n  <!doctype html><h1>KeyError</h1>\n"
    (finding,) = findings_of(f"{SESSION}→ POST /mcp\n  tools/list 1\n{page}")
    assert (finding.rule, finding.culprit) == ("http-error", culprit)


def test_a_refused_name_is_not_said_to_be_a_refused_handshake_too() -> None:
    refusal = '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Invalid Host"}}'
    account = OPENING % ("", "403 Forbidden")
    assert [finding.rule for finding in findings_of(f"{account}  {refusal}\n")] == ["host-refused"]
    assert [finding.rule for finding in findings_of(f"{account}  {refusal.replace('Host', 'key')}\n")] != ["host-refused"]

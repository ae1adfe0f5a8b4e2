"""Clients that end the session of their own call, and gateways that want a login; and what looks like it."""

import pytest

from tests.findings.test_silences import findings_of

BEGIN = "· HTTP\n· handshake 2025-11-25, server: tools\n"
CALL = (
    '→ POST /mcp\n  tools/call 1 {"name":"report","_meta":{"progressToken":"t"}}\n← 200 OK\n  Content-Type: text/event-stream\n'
)
DELETE = "→ DELETE /mcp\n← 200 OK\n"
CLOSED = "· the server closes the stream of #3\n"
LEAVES = "· the client closes the stream of #3\n"
PROGRESS = '· 4.0 s later\n← #3 data: notifications/progress {"progressToken":"t","progress":1}\n'
OLD = "→ GET /sse\n  Accept: text/event-stream\n← 200 OK\n  event: endpoint\n  data: /m?s=1\n→ POST /m?s=1\n"
OLD += '  tools/call 1 {"name":"report"}\n← 202 Accepted\n'

ENDED = {
    "a session that the client ends": (f"{BEGIN}{CALL}· 7.0 s later\n{DELETE}{CLOSED}", "client", "warning"),
    "a session that the client ends at once": (f"{BEGIN}{CALL}{DELETE}{CLOSED}", "client", "warning"),
    "a session that the client ends, and the stream with it": (
        f"{BEGIN}{CALL}· 7.0 s later\n{DELETE}{LEAVES}",
        "client",
        "warning",
    ),
    "a session that the client ends after the server broke off": (
        f"{BEGIN}{CALL}· 7.0 s later\n{CLOSED}{DELETE}",
        "server",
        "error",
    ),
    "a session that the server does not end": (
        f"{BEGIN}{CALL}· 7.0 s later\n→ DELETE /mcp\n← 405 Method Not Allowed\n{CLOSED}",
        "server",
        "error",
    ),
    "a stream that the client closes while progress comes": (f"{BEGIN}{CALL}{PROGRESS}{PROGRESS}{LEAVES}", "client", "note"),
    "a stream that the client closes after a silence": (f"{BEGIN}{CALL}{PROGRESS}· 9.0 s later\n{LEAVES}", "server", "error"),
    "the only stream, which the client closes": (f"{OLD}· 1.0 s later\n· the client closes the stream\n", "client", "note"),
}


@pytest.mark.parametrize(("account", "culprit", "severity"), ENDED.values(), ids=list(ENDED))
def test_a_request_without_an_answer_is_blamed_on_the_side_that_ended_it(account: str, culprit: str, severity: str) -> None:
    found = [finding for finding in findings_of(account) if finding.rule == "unanswered-request"]
    assert [(finding.culprit, finding.severity) for finding in found] == [(culprit, severity)]


POST = "→ POST /mcp\n  tools/list 5\n"
PAGE = "→ GET {}\n← 200 OK\n  Content-Type: text/html\n  <html>\n"

LOGINS = {
    "a path": f"{POST}← 302 Found\n  Location: /login?next=%2Fmcp\n",
    "a path of a proxy": f"{POST}← 302 Found\n  Location: /oauth2/sign_in?rd=%2Fmcp\n",
    "a redirect that keeps the body": f"{POST}← 307 Temporary Redirect\n  Location: /auth/start\n",
    "another host": f"{POST}← 302 Found\n  Location: https://login.example.com/x\n",
    "a page at a path that says nothing": f"{POST}← 302 Found\n  Location: /hello\n{PAGE.format('/hello')}",
}


@pytest.mark.parametrize("account", LOGINS.values(), ids=list(LOGINS))
def test_a_redirect_to_a_login_page_is_a_gateways(account: str) -> None:
    (finding,) = [finding for finding in findings_of(f"{BEGIN}{account}") if finding.rule == "redirect-loses-body"]
    assert finding.culprit == "gateway"
    assert "401 with WWW-Authenticate" in finding.blame


NO_LOGINS = {
    "a slash": f"{POST}← 301 Moved Permanently\n  Location: /mcp/\n",
    "a path with a word that only begins so": f"{POST}← 302 Found\n  Location: /authors/mcp\n",
}


@pytest.mark.parametrize("account", NO_LOGINS.values(), ids=list(NO_LOGINS))
def test_another_redirect_is_the_servers(account: str) -> None:
    (finding,) = [finding for finding in findings_of(f"{BEGIN}{account}") if finding.rule == "redirect-loses-body"]
    assert finding.culprit == "server"


LISTED = "→ POST /mcp\n  tools/list 0\n← 200 OK\n  result 0\n"
LIST_TOOLS = "→ POST /mcp\n  tools/list 1\n"
VAGUE = '← 400 Bad Request\n  {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID provided"}}\n'


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (f"{BEGIN}{LISTED}{LIST_TOOLS}{VAGUE}", [("server", "error")]),
        (f"{BEGIN}{LISTED}{LIST_TOOLS}{VAGUE}· session none\n· handshake 2025-11-25 again as 77aa, server: tools\n", []),
        (f"{BEGIN}{LISTED}{LIST_TOOLS}{VAGUE}{LIST_TOOLS}← 200 OK\n  result 1\n", []),
        (f"{BEGIN}{LISTED}{LIST_TOOLS}← 400 Bad Request\n  error 1 -32602 No such cursor\n", []),
    ],
)
def test_a_session_that_is_refused_with_400_is_the_servers_fault(account: str, expected: list[tuple[str, str]]) -> None:
    found = [finding for finding in findings_of(account) if finding.rule == "session-unknown"]
    assert [(finding.culprit, finding.severity) for finding in found] == expected


ENDS_LATE = (
    "· handshake 2025-11-25\n· the client closes stdin\n· 2.0 s later\n· the client sends SIGTERM{}\n{}· the server exits by {}"
)
QUEUED = ", when the server has waited {} s for a processor"
KILLED = "· 1.0 s later\n· mcpspy sends SIGKILL\n"


@pytest.mark.parametrize(
    ("waited", "expected"),
    [
        ("", ("server", "note", "On a busy machine it may have been about to end")),
        (QUEUED.format(0.04), ("server", "note", "it had two seconds for that")),
        (QUEUED.format(1.6), None),
    ],
    ids=["a tap that did not count", "a server that slept", "a server that hardly had a processor"],
)
def test_a_server_that_had_no_processor_had_no_time_to_end(waited: str, expected: tuple[str, str, str] | None) -> None:
    found = [
        finding for finding in findings_of(ENDS_LATE.format(waited, "", "SIGTERM")) if finding.rule == "end-of-input-ignored"
    ]
    assert [(finding.culprit, finding.severity) for finding in found] == ([expected[:2]] if expected else [])
    assert all(expected is not None and expected[2] in finding.blame for finding in found)


@pytest.mark.parametrize(("waited_s", "expected"), [(0.04, ("server", "warning")), (1.6, ("unclear", "note"))])
def test_a_server_that_only_sigkill_ends_is_found_on_a_busy_machine_too(waited_s: float, expected: tuple[str, str]) -> None:
    found = findings_of(ENDS_LATE.format(QUEUED.format(waited_s), KILLED, "SIGKILL"))
    assert [(finding.culprit, finding.severity) for finding in found] == [expected]


def test_a_server_that_a_call_keeps_alive_has_to_cancel_it_at_the_end() -> None:
    account = ENDS_LATE.format("", "", "SIGTERM").replace(
        "· the client", '→ tools/call 1 {"name":"slow"}\n· 9.0 s later\n· the client', 1
    )
    (finding,) = [finding for finding in findings_of(account) if finding.rule == "end-of-input-ignored"]
    assert finding.what.endswith("a signal ended it. It had not answered tools/call slow.")
    assert finding.advice.startswith("Cancel what still runs")


HANDSHAKE = "· handshake 2025-11-25, server: tools\n"
CALLED = '→ tools/call 1 {"name":"report"}\n'
ANSWERED = f"{CALLED}← result 1 {{}}\n"


@pytest.mark.parametrize(
    ("account", "rules"),
    [
        (f"{HANDSHAKE}· the client closes stdin\n", []),
        (f"{HANDSHAKE}· the client closes stdin\n← goodbye\n", []),
        (f"{HANDSHAKE}{ANSWERED}· the client closes stdin\n", []),
        (f"{HANDSHAKE}{ANSWERED}· the client sends SIGTERM\n", []),
        (HANDSHAKE, ["capture-incomplete"]),
        (f"{HANDSHAKE}{ANSWERED}", ["capture-incomplete"]),
        (f"{HANDSHAKE}{ANSWERED}← goodbye\n", ["capture-incomplete"]),
        (f"{HANDSHAKE}{CALLED}", ["capture-incomplete"]),
        (f"{HANDSHAKE}{CALLED}· the client closes stdin\n", ["capture-incomplete"]),
        (f"{HANDSHAKE}{CALLED}· the client sends SIGTERM\n", ["capture-incomplete"]),
    ],
)
def test_a_capture_that_breaks_off_after_the_end_of_its_session_lacks_nothing(account: str, rules: list[str]) -> None:
    found = [finding.rule for finding in findings_of(f"{account}· the capture breaks off")]
    assert [rule for rule in found if rule == "capture-incomplete"] == rules

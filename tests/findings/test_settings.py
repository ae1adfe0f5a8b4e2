"""Faults of the client's entry for a server, beside twins in which the evidence names another side."""

import pytest

from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import Account
from tests.findings.test_near_misses import INITIALIZE, SESSION, TOOLS
from tests.findings.test_silences import findings_of

BEARER = "  Authorization: Bearer redacted-%s\n"
KEY = "  X-API-Key: redacted-%s\n"
EXPIRED = '  WWW-Authenticate: Bearer error="invalid_token", error_description="The access token expired"\n'
METADATA = '  WWW-Authenticate: Bearer resource_metadata="http://127.0.0.1:7777/.well-known/oauth-protected-resource"\n'
LOGIN = '→ GET /.well-known/oauth-protected-resource\n← 200 OK\n  {"resource":"http://127.0.0.1:7777/mcp"}\n'
NO_LOGIN = "→ GET /.well-known/oauth-protected-resource\n← 404 Not Found\n"
SCOPE = '← 403 Forbidden\n  WWW-Authenticate: Bearer error="insufficient_scope", scope="write"\n'


def asks(id: int, field: str, *, status: str = "401 Unauthorized", more: str = "") -> str:
    """Tell of a request that is refused."""
    return f"→ POST /mcp\n{field}  tools/list {id}\n← {status}\n{more}"


def served(id: int, field: str) -> str:
    """Tell of a request that is answered."""
    return f'→ POST /mcp\n{field}  tools/list {id}\n← 200 OK\n  result {id} {{"tools":[]}}\n'


def culprits(account: str, rule: str) -> list[str]:
    """Give the culprits of the findings of a rule."""
    return [finding.culprit for finding in findings_of(account) if finding.rule == rule]


OLD, NEW = BEARER % "aa", BEARER % "bb"


@pytest.mark.parametrize(
    ("account", "culprit"),
    [
        (asks(1, OLD) * 2, "configuration"),
        (asks(1, KEY % "aa") * 2, "configuration"),
        (asks(1, OLD, more=EXPIRED) * 2, "configuration"),
        (asks(1, OLD, more=METADATA) * 2, "configuration"),
        (asks(1, OLD) + NO_LOGIN + asks(2, OLD), "configuration"),
        (asks(1, "") + LOGIN + asks(2, OLD) + asks(3, OLD), "unclear"),
        (served(1, OLD) + asks(2, OLD, more=EXPIRED) + asks(3, OLD, more=EXPIRED), "configuration"),
        (LOGIN + served(1, OLD) + asks(2, OLD, more=EXPIRED) * 2, "client"),
        (served(1, OLD) + asks(2, OLD, more=METADATA) + asks(3, OLD, more=METADATA), "client"),
        (LOGIN + served(1, OLD) + asks(2, OLD) * 2, "client"),
        (served(1, OLD) + asks(2, OLD) * 2, "configuration"),
        (served(1, KEY % "aa") + asks(2, KEY % "aa", more=EXPIRED) * 2, "configuration"),
    ],
)
def test_a_refused_token_is_the_configurations_unless_the_client_could_get_another(account: str, culprit: str) -> None:
    assert culprits(account, "token-refused") == [culprit]


def test_a_client_that_renews_its_token_is_well() -> None:
    account = served(1, OLD) + asks(2, OLD, more=EXPIRED) + served(3, NEW)
    assert [finding.rule for finding in findings_of(account) if finding.severity != "note"] == []


def test_a_token_without_a_scope_is_the_clients_if_it_logs_in() -> None:
    refused = f"→ POST /mcp\n{OLD}  tools/list 2\n{SCOPE}"
    assert culprits(served(1, OLD) + refused, "insufficient-scope") == ["configuration"]
    assert culprits(LOGIN + served(1, OLD) + refused, "insufficient-scope") == ["client"]


FORBIDDEN = "403 Forbidden"


@pytest.mark.parametrize(
    ("account", "culprit"),
    [
        (asks(1, OLD, status=FORBIDDEN, more='  {"error":"invalid token"}\n'), "configuration"),
        (asks(1, KEY % "aa", status=FORBIDDEN, more='  {"message":"Forbidden"}\n'), "configuration"),
        (asks(1, OLD, status=FORBIDDEN), "configuration"),
        (asks(1, "", status=FORBIDDEN, more='  {"error":"API key required"}\n'), "configuration"),
        (asks(1, "", status=FORBIDDEN, more="  Content-Type: text/plain\n  Forbidden\n"), "unclear"),
        (asks(1, OLD, status=FORBIDDEN, more="  Content-Type: text/plain\n  not from this country\n"), "unclear"),
        (served(1, OLD) + asks(2, OLD, status=FORBIDDEN), "unclear"),
    ],
)
def test_a_credential_that_is_forbidden_from_the_start_is_the_configurations(account: str, culprit: str) -> None:
    assert culprits(account, "http-error") == [culprit]


OPENING = f"→ POST /%s\n  {INITIALIZE[2:]}"
STREAM = "→ GET /%s\n  Accept: text/event-stream\n"


@pytest.mark.parametrize(
    ("account", "culprit"),
    [
        (OPENING % "sse" + "← 405 Method Not Allowed\n", "configuration"),
        (
            OPENING % "mcp" + "← 501 Not Implemented\n  Content-Type: text/html\n  <html>Unsupported method</html>\n",
            "configuration",
        ),
        (STREAM % "mcp" + "← 405 Method Not Allowed\n", "configuration"),
        (STREAM % "mcp" + "← 400 Bad Request\n  Bad Request: Missing session ID\n", "configuration"),
        (OPENING % "mcp" + "← 400 Bad Request\n  Client sent an HTTP request to an HTTPS server.\n", "configuration"),
        (
            OPENING % "mcp" + "← 307 Temporary Redirect\n  Location: /api/mcp\n" + OPENING % "api/mcp" + "← 404 Not Found\n",
            "server",
        ),
    ],
)
def test_a_url_or_a_transport_that_the_server_does_not_serve_is_the_configurations(account: str, culprit: str) -> None:
    assert culprits(account, "wrong-endpoint") == [culprit]


def test_a_get_that_is_refused_beside_posts_is_no_wrong_transport() -> None:
    account = f"{SESSION}{TOOLS}→ GET /mcp\n  Accept: text/event-stream\n← 400 Bad Request\n  no session stream\n"
    assert culprits(account, "wrong-endpoint") == []


FAILS = "→ POST /mcp\n  tools/list %d\n· mcpspy answers %s: %s\n"
CLOSED = "the upstream closed the connection without a response"


@pytest.mark.parametrize(
    ("account", "culprit"),
    [
        (FAILS % (1, 502, "http://127.0.0.1:1 cannot be reached: Connection refused"), "configuration"),
        (FAILS % (1, 502, "http://weather:3000 cannot be reached: Name or service not known"), "configuration"),
        (FAILS % (1, 502, "http://weather:3000 cannot be reached: Temporary failure in name resolution"), "unclear"),
        (
            FAILS % (1, 502, "https://127.0.0.1:3001 cannot be reached: [SSL: WRONG_VERSION_NUMBER] wrong version number"),
            "configuration",
        ),
        (FAILS % (1, 502, "https://a.example cannot be reached: certificate verify failed: certificate has expired"), "server"),
        (
            FAILS % (1, 502, "https://a.example cannot be reached: certificate verify failed: self-signed certificate"),
            "unclear",
        ),
        (FAILS % (1, 504, "http://10.0.0.9 did not accept a connection within 30 s"), "unclear"),
        (FAILS % (1, 502, CLOSED), "unclear"),
        (served(1, "") + FAILS % (2, 502, "http://127.0.0.1:3001 cannot be reached: Connection refused"), "server"),
        (served(1, "") + FAILS % (2, 502, CLOSED), "server"),
        (FAILS % (1, 502, "http://127.0.0.1:3001 cannot be reached: Connection refused") + served(2, ""), "server"),
    ],
)
def test_nobody_at_a_url_is_the_servers_fault_only_if_it_answered_once(account: str, culprit: str) -> None:
    assert culprits(account, "upstream-failed") == [culprit]


def test_tls_that_is_spoken_to_mcpspy_is_the_configurations() -> None:
    account = "→ GET /mcp\n· mcpspy answers 400: it begins like TLS, and HTTP without TLS is spoken here\n"
    assert culprits(account, "request-refused") == ["configuration"]


REFUSES = "← error 0 -32000 %s\n"


@pytest.mark.parametrize(
    ("account", "culprit"),
    [
        (INITIALIZE + REFUSES % "Missing API key", "configuration"),
        (INITIALIZE + REFUSES % "Internal error", "server"),
        ('→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{}}\n' + REFUSES % "Invalid params", "client"),
    ],
)
def test_a_refused_handshake_is_blamed_on_what_the_error_asks_for(account: str, culprit: str) -> None:
    assert culprits(account, "refused-handshake") == [culprit]


SILENT = "· 60.0 s later\n→ notifications/cancelled %s\n"
CANCELS = SILENT % '{"requestId":0,"reason":"Request timed out"}'


@pytest.mark.parametrize(
    ("line", "culprit"),
    [
        ("INFO:     Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)", "configuration"),
        ("MCP server listening on port 3001", "configuration"),
        ("Weather server running on stdio", "server"),
        ("Dashboard: see http://127.0.0.1:8000", "server"),
    ],
)
def test_a_server_that_was_started_for_http_reads_no_stdin(line: str, culprit: str) -> None:
    assert culprits(f"! {line}\n{INITIALIZE}{CANCELS}", "cancelled-initialize") == [culprit]
    assert culprits(f"! {line}\n{INITIALIZE}· 30.0 s later\n· the client closes stdin", "unanswered-request") == [culprit]


@pytest.mark.parametrize(
    ("line", "culprit"), [("> weather@1.0.0 start", "configuration"), ("Weather server is ready", "server")]
)
def test_what_a_launcher_writes_to_stdout_is_the_configurations(line: str, culprit: str) -> None:
    assert culprits(f"← {line}\n", "stdout-noise") == [culprit]


@pytest.mark.parametrize(
    ("location", "culprit"),
    [("https://127.0.0.1/mcp", "configuration"), ("/mcp/", "server"), ("https://elsewhere.example/mcp", "unclear")],
)
def test_a_redirect_to_https_is_the_configurations(location: str, culprit: str) -> None:
    account = f"→ POST /mcp\n  tools/list 1\n← 301 Moved Permanently\n  Location: {location}\n"
    assert culprits(account, "redirect-loses-body") == [culprit]


@pytest.mark.parametrize(("field", "culprit"), [("", "configuration"), ("  Via: 1.1 proxy\n", "unclear")])
def test_a_page_in_place_of_the_first_answer_is_the_configurations(field: str, culprit: str) -> None:
    page = f"← 200 OK\n  Content-Type: text/html\n{field}  <html>Welcome</html>\n"
    assert culprits(OPENING % "" + page, "unanswered-request") == [culprit]
    assert culprits(f"{SESSION}→ POST /mcp\n  tools/list 1\n{page}", "unanswered-request") == ["unclear"]


@pytest.mark.parametrize(("signal", "culprit"), [("SIGTERM", "unclear"), ("SIGSEGV", "server"), ("SIGKILL", "server")])
def test_a_server_that_a_signal_from_outside_ended_did_not_die_by_itself(signal: str, culprit: str) -> None:
    assert culprits(f"→ tools/list 1\n· the server exits by {signal}", "server-died") == [culprit]


@pytest.mark.parametrize(("command", "culprit"), [("npx", "unclear"), ("weather", "server")])
def test_processes_that_a_launcher_may_have_left_are_not_only_the_servers(command: str, culprit: str) -> None:
    account = Account("· handshake 2025-11-25\n· the client closes stdin\n· the server exits 0, leaving node", command)
    (finding,) = transcribe(account.records).findings
    assert (finding.rule, finding.culprit) == ("descendants-left", culprit)

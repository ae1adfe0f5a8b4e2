"""A fault of delivery is the server's only where nothing in the capture shows a gateway that could have made it."""

import pytest

from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records

POST = '→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
LISTENING = "· HTTP\n· handshake 2025-11-25\n→ GET /mcp\n  Accept: text/event-stream\n"
LATE = "· 15.0 s later\n← 200 OK\n  %s: ping\n· the client closes the stream"


def moved(location: str, *fields: str) -> str:
    """Redirect a POST."""
    return f"{POST}← 302 Found\n  Location: {location}\n" + "".join(f"  {field}\n" for field in fields)


def cut(seconds: float) -> str:
    """Break the stream of an answer off after so many seconds of silence."""
    stream = f"{POST}← 200 OK\n  Content-Type: text/event-stream\n"
    return f"{stream}· {seconds} s later\n· the server breaks off the stream, broken"


CASES = {
    "a login page on another host": (moved("https://login.example/oauth?next=/mcp"), "redirect-loses-body", "gateway"),
    "another host": (moved("https://mirror.example/mcp"), "redirect-loses-body", "unclear"),
    "another path": (moved("/mcp/"), "redirect-loses-body", "server"),
    "another path, by nginx": (moved("/mcp/", "Server: nginx/1.27"), "redirect-loses-body", "unclear"),
    "another path, by a server's own name": (moved("/mcp/", "Server: uvicorn"), "redirect-loses-body", "server"),
    "another path, through a proxy": (moved("/mcp/", "Via: 1.1 edge"), "redirect-loses-body", "unclear"),
    "a cut at a usual limit": (cut(60.0), "unanswered-request", "unclear"),
    "a cut at another time": (cut(41.0), "unanswered-request", "server"),
}


@pytest.mark.parametrize(("account", "rule", "culprit"), CASES.values(), ids=list(CASES))
def test_evidence_of_a_gateway_decides(account: str, rule: str, culprit: str) -> None:
    found = {finding.rule: finding for finding in transcribe(records(account)).findings}
    assert found[rule].culprit == culprit


def test_a_fault_in_a_message_is_the_servers_whatever_carried_it() -> None:
    answer = '{"jsonrpc":"1.0","id":1,"result":{"tools":[]}}'
    account = f"{POST}← 200 OK\n  Via: 1.1 edge\n  Content-Type: application/json\n  {answer}"
    (finding,) = transcribe(records(account)).findings
    assert (finding.rule, finding.culprit) == ("jsonrpc-version", "server")

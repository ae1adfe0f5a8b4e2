"""Gateways between two captures: streams that no call joins, and requests of the server that were not passed on."""

from mcpspy.records import Header
from mcpspy.transcript.findings.rule import Finding
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records

GET = "→ GET /sse\n  Accept: text/event-stream\n"
HEAD = "← 200 OK\n  Content-Type: text/event-stream\n"
ENDPOINT = "← event: endpoint\n  data: /messages?s=1\n"
WAITS = "· 6.0 s later\n· the client closes the stream\n"


def findings_of(outer: str, inner: str) -> list[Finding]:
    """Find faults of two captures, the inner one of another URL."""
    hops = [records(outer), records(inner)]
    header = hops[1][0]
    assert isinstance(header, Header)
    header.tapped = {**header.tapped, "url": "http://127.0.0.1:4001/sse"}
    return [finding for finding in transcribe(*hops).findings if finding.severity == "error"]


def test_a_gateway_that_withholds_the_endpoint_is_to_blame_for_it() -> None:
    (finding,) = findings_of(f"{GET}· 0.5 s later\n{HEAD}{WAITS}", f"· 0.1 s later\n{GET}{HEAD}{ENDPOINT}{WAITS}")
    assert (finding.rule, finding.culprit) == ("missing-endpoint", "gateway")
    assert "and not a byte of it reached the client in 6.0 s" in finding.blame


def test_a_gateway_in_front_of_a_server_that_announces_nothing_is_not_to_blame() -> None:
    found = findings_of(f"{GET}· 0.5 s later\n{HEAD}{WAITS}", f"· 0.1 s later\n{GET}{HEAD}{WAITS}")
    assert {(finding.rule, finding.culprit) for finding in found} == {("missing-endpoint", "server")}


def test_a_stream_with_another_path_is_that_of_no_gateway() -> None:
    found = findings_of(
        f"{GET}· 0.5 s later\n{HEAD}{WAITS}", f"· 0.1 s later\n{GET.replace('sse', 'x')}{HEAD}{ENDPOINT}{WAITS}"
    )
    assert [(finding.rule, finding.culprit) for finding in found] == [("missing-endpoint", "server")]

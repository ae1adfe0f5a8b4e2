"""Requests that a gateway sent again or answered itself, and what clients and gateways may do instead."""

import pytest

from mcpspy.records import Header
from mcpspy.transcript.findings.rule import Finding
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records

BEGIN = "· HTTP\n· handshake 2025-11-25, server: tools\n"


def call(number: int, to: str = "x", *, tool: str = "pay", fields: str = "") -> str:
    return f'→ POST /mcp\n{fields}  tools/call {number} {{"name":"{tool}","arguments":{{"to":"{to}"}}}}\n'


def answer(number: int, text: str = "done", at: str = "") -> str:
    return f'← {at}200 OK\n  result {number} {{"content":[{{"type":"text","text":"{text}"}}]}}\n'


def findings_of(outer: str, inner: str = "") -> list[Finding]:
    """Find faults in the capture of a client's side, and of a server's, if there is one."""
    hops = [records(BEGIN + outer)] + ([records(f"{BEGIN}· 0.1 s later\n{inner}")] if inner else [])
    for hop in hops[1:]:
        header = hop[0]
        assert isinstance(header, Header)
        header.tapped = {**header.tapped, "url": "http://127.0.0.1:4001/mcp"}
    found = all_findings(transcribe(*hops))
    return [finding for finding in found if finding.rule != "unused-tools"]


WAITS = "· 2.0 s later\n"
VIA = "  Via: 1.1 edge\n"
ONCE = f"{call(1)}{WAITS}{answer(1)}"
AGAIN = call(1) + call(1)

REPEATED = {
    "two requests, one after the other": f"{call(1)}{answer(1)}{call(1)}{answer(1)}",
    "two requests at the same time": f"{AGAIN}{answer(1, at='#4 ')}{answer(1, at='#3 ')}",
    "two requests with ids of their own": f"{call(5)}{answer(5)}{call(6)}{answer(6)}",
    "a second request that is answered after the client is": f"{AGAIN}{answer(1, at='#3 ')}{WAITS}{answer(1, at='#4 ')}",
    "two requests that name the gateway": f"{call(1, fields=VIA)}{call(1, fields=VIA)}{answer(1, at='#4 ')}{answer(1, at='#3 ')}",
}


@pytest.mark.parametrize("inner", REPEATED.values(), ids=list(REPEATED))
def test_a_gateway_that_sends_a_request_twice_is_blamed_once(inner: str) -> None:
    (finding,) = findings_of(ONCE, inner)
    assert (finding.rule, finding.severity, finding.culprit) == ("repeated-by-gateway", "warning", "gateway")
    assert "and the gateway sent it 2 times to example" in finding.what


NOT_REPEATED = {
    "a gateway that tries again after a refusal": (ONCE, f"{call(1)}← 503 Service Unavailable\n{call(1)}{answer(1)}"),
    "a client that sends it twice": (
        f"{call(1)}{WAITS}{answer(1)}{call(2)}{WAITS}{answer(2)}",
        f"{call(1)}{answer(1)}· 2.0 s later\n{call(2)}{answer(2)}",
    ),
    "a gateway that passes on two calls that are not equal": (
        f"{call(1)}{WAITS}{answer(1)}{call(2, 'y')}{WAITS}{answer(2)}",
        f"{call(1)}{answer(1)}· 2.0 s later\n{call(2, 'y')}{answer(2)}",
    ),
}


@pytest.mark.parametrize(("outer", "inner"), NOT_REPEATED.values(), ids=list(NOT_REPEATED))
def test_a_request_that_was_made_again_for_a_reason_is_not_blamed_on_the_gateway(outer: str, inner: str) -> None:
    assert [finding.what for finding in findings_of(outer, inner) if finding.rule == "repeated-by-gateway"] == []


def test_a_second_call_of_a_tool_that_only_reads_is_a_note() -> None:
    tools = '→ POST /mcp\n  tools/list 9\n← 200 OK\n  result 9 {"tools":[{"name":"pay","inputSchema":{"type":"object"},'
    tools += '"annotations":{"readOnlyHint":true}}]}\n'
    (finding,) = findings_of(f"{tools}{ONCE}", f"{tools}{call(1)}{answer(1)}{call(1)}{answer(1)}")
    assert (finding.rule, finding.severity) == ("repeated-by-gateway", "note")


def test_two_equal_requests_with_a_gateways_field_are_the_gateways_where_they_run_at_once() -> None:
    both = call(1, fields=VIA) * 2
    (finding,) = findings_of(f"{both}{answer(1, at='#4 ')}{answer(1, at='#3 ')}")
    assert (finding.rule, finding.culprit) == ("repeated-by-gateway", "gateway")
    assert "Via: 1.1 edge" in finding.what


def test_two_equal_requests_with_a_gateways_field_are_unclear_where_the_second_came_later() -> None:
    (finding,) = findings_of(f"{call(1, fields=VIA)}{answer(1)}{WAITS}{call(1, fields=VIA)}{answer(1)}")
    assert (finding.rule, finding.culprit) == ("repeated-by-gateway", "unclear")


def test_two_equal_requests_without_a_sign_of_a_gateway_are_the_clients() -> None:
    (finding,) = findings_of(f"{call(1)}{answer(1)}{call(1)}{answer(1)}")
    assert (finding.rule, finding.culprit) == ("id-reused", "client")


SECOND = f"{call(2, 'y')}{WAITS}"
CAME = f"{call(1)}{answer(1, 'paid x')}"
OUTER = f"{call(1)}{WAITS}{answer(1, 'paid x')}"


def test_a_gateway_that_answers_with_the_answer_to_another_call_is_to_blame() -> None:
    (finding,) = findings_of(f"{OUTER}{SECOND}{answer(2, 'paid x')}", CAME)
    assert (finding.rule, finding.severity, finding.culprit) == ("answered-by-gateway", "warning", "gateway")
    assert finding.what.endswith("it is the answer to row 5, which asked with other params.")


@pytest.mark.parametrize("text", ["paid y", "nothing to do"])
def test_an_answer_that_the_server_never_gave_is_a_note_where_it_is_no_other_calls(text: str) -> None:
    (finding,) = findings_of(f"{OUTER}{SECOND}{answer(2, text)}", CAME)
    assert (finding.rule, finding.severity, finding.culprit) == ("answered-by-gateway", "note", "gateway")


def test_an_answer_out_of_a_cache_is_a_note() -> None:
    found = findings_of(f"{OUTER}{call(2, 'x')}{WAITS}{answer(2, 'paid x')}", CAME)
    assert ("answered-by-gateway", "note") in [(finding.rule, finding.severity) for finding in found]


OWN = {
    "a ping": "→ POST /mcp\n  ping 7\n← 200 OK\n  result 7 {}\n",
    "a list": '→ POST /mcp\n  tools/list 7\n← 200 OK\n  result 7 {"tools":[]}\n',
    "a tool of the gateway's own": f"{call(7, tool='status')}{answer(7, 'up')}",
    "a refusal": f"{call(7, 'z')}← 200 OK\n  error 7 -32000 Not allowed\n",
}


@pytest.mark.parametrize("own", OWN.values(), ids=list(OWN))
def test_what_a_gateway_may_answer_itself_is_no_finding(own: str) -> None:
    assert [finding.what for finding in findings_of(f"{OUTER}{own}", CAME)] == []

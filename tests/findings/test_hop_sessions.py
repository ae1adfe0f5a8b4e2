"""Gateways between two captures that leave Mcp-Session-Id out, and sessions that they did pass on."""

import pytest

from mcpspy.records import Header, Open, Record
from mcpspy.transcript.findings.rule import Finding
from mcpspy.transcript.stats.outcomes import troubles
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.text.line import plain
from mcpspy.views.timeline.timeline import timeline
from tests.findings.account import records

SESSION = "· HTTP\n· handshake 2025-11-25, server: tools\n"
CALL = '→ POST /mcp\n  tools/call %d {"name":"%s"}\nWAIT\n← %s\n  %s\nPAUSE\n'
GONE = "404 Not Found\n  Content-Type: text/plain", "Session not found"
REFUSED = CALL % (1, "a", *GONE) + CALL % (2, "b", *GONE)
SERVED = CALL % (3, "c", "200 OK", 'result 3 {"content":[]}')
CRASH = CALL % (4, "d", "500 Internal Server Error\n  Content-Type: text/plain", "oops")
NO_SESSION = "· session none\n"


def hop(account: str, *, is_inner: bool = False, drops: str = "") -> list[Record]:
    """Write one hop; the inner one begins later and is faster. It `drops` the session of what side sends."""
    before, after = ("0.05", "0.35") if is_inner else ("0.2", "0.2")
    account = account.replace("WAIT", f"· {before} s later").replace("PAUSE", f"· {after} s later")
    made = records(f"{SESSION}{'· 0.05 s later' + chr(10) if is_inner else ''}{account}")
    header = made[0]
    assert isinstance(header, Header)
    if is_inner:
        header.tapped = {**header.tapped, "url": "http://127.0.0.1:4001/mcp"}
    return without_session(made, drops)


def without_session(made: list[Record], *senders: str) -> list[Record]:
    """Leave the session out of the heads that these sides sent."""
    for record in made:
        if isinstance(record, Open) and record.sender in senders:
            record.head = record.head.replace(b"Mcp-Session-Id: 5f2c\r\n", b"")
    return made


def found(outer: list[Record], inner: list[Record]) -> list[Finding]:
    return [finding for finding in transcribe(outer, inner).findings if finding.severity != "note"]


def test_a_gateway_that_leaves_the_session_of_requests_out_is_to_blame_for_their_refusals() -> None:
    (finding,) = found(hop(REFUSED), hop(REFUSED, is_inner=True, drops="client"))
    assert (finding.rule, finding.severity, finding.culprit) == ("session-missing", "error", "gateway")
    assert "the client sent the field Mcp-Session-Id" in finding.blame
    assert len(finding.rows) == 4


def test_a_gateway_that_leaves_the_session_of_the_response_out_is_to_blame_for_refusals() -> None:
    outer = without_session(hop(REFUSED), "client", "server")
    (finding,) = found(outer, hop(REFUSED, is_inner=True, drops="client"))
    assert (finding.rule, finding.severity, finding.culprit) == ("session-missing", "error", "gateway")
    assert "did not pass on the field Mcp-Session-Id of the response" in finding.blame


def test_other_errors_behind_such_a_gateway_stay() -> None:
    hits = found(hop(REFUSED + CRASH), hop(REFUSED + CRASH, is_inner=True, drops="client"))
    assert ("http-error", "server") in {(finding.rule, finding.culprit) for finding in hits}


@pytest.mark.parametrize(
    ("outer", "inner", "rule"),
    [(SERVED + REFUSED, SERVED + REFUSED, "session-unknown"), (NO_SESSION + REFUSED, NO_SESSION + REFUSED, "session-missing")],
    ids=["forgotten by the server", "left out by the client"],
)
def test_a_session_that_the_gateway_passed_on_as_it_came_is_not_its_fault(outer: str, inner: str, rule: str) -> None:
    hits = found(hop(outer), hop(inner, is_inner=True))
    assert {(finding.rule, finding.culprit) for finding in hits} == {(rule, "client")}


def test_a_gateway_that_leaves_a_session_out_which_the_server_does_not_miss_is_not_blamed() -> None:
    assert found(hop(SERVED), hop(SERVED, is_inner=True, drops="client")) == []


def test_the_row_of_a_refused_call_gives_the_status_behind_the_gateway() -> None:
    lines = [plain(line) for line in timeline(transcribe(hop(REFUSED), hop(REFUSED, is_inner=True, drops="client")))]
    assert any(line.endswith("row 6: 404 Not Found") for line in lines)
    assert not any("no answer" in line for line in lines)


def test_refusals_that_both_sides_of_a_gateway_show_count_once() -> None:
    transcript = transcribe(hop(REFUSED), hop(REFUSED, is_inner=True, drops="client"))
    assert troubles(transcript).refused_calls == 2


def test_a_refusal_that_the_client_did_not_get_counts_too() -> None:
    transcript = transcribe(hop(SERVED + SERVED), hop(SERVED + REFUSED, is_inner=True))
    assert troubles(transcript).refused_calls == 2

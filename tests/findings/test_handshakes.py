"""Sessions without a handshake or without their id, and what looks like them."""

import pytest

from tests.findings.test_near_misses import HELLO, INITIALIZE, NO_SESSION
from tests.findings.test_silences import findings_of

GENERIC = "-32602 Invalid request parameters"
CALL = 'tools/call %d {"name":"list","arguments":{"folder":"/hr"}}'
STREAM = "→ GET /sse\n  Accept: text/event-stream\n← 200 OK\n  event: endpoint\n  data: /m?s=%d\n"
POST = "→ POST /m?s=%d\n  %s\n← 202 Accepted\n"
OPENED = (
    f"{STREAM % 1}{POST % (1, INITIALIZE[2:-1])}← #1 data: {HELLO[2:]}{POST % (1, 'notifications/initialized')}"
    f'{POST % (1, CALL % 1)}← #1 data: result 1 {{"content":[]}}\n· the client closes the stream of #1\n'
)
AGAIN = f"{STREAM % 2}{POST % (2, CALL % 5)}"
REFUSED_LATER = f"← #5 data: error 5 {GENERIC}\n"


def stateless(field: str = "") -> str:
    """Give a list and a call over Streamable HTTP without a session, each with a further field of its head."""
    requests = enumerate(("tools/list 1", CALL % 2), 1)
    head = f"  {field}\n" if field else ""
    return "".join(f"→ POST /mcp\n{head}  {request}\n← 200 OK\n  result {at}\n" for at, request in requests)


NEW_PROCESS = "· connections of a new process: 1 2"

LACKING = {
    "a client that never initializes": f"→ tools/list 1\n← error 1 {GENERIC}",
    "a client that is told so on stderr": (
        f"→ {CALL % 1}\n! WARNING  Failed to validate request: Received\n!    request before initialization was\n!    complete\n"
        "← error 1 -32602 list: parameters"
    ),
    "a client that is answered only on stderr": (
        "→ tools/list 1\n! RuntimeError: Received request before initialization was complete\n· 9.0 s later\n"
        "· the client closes stdin"
    ),
    "a client that opens its stream again": f"{OPENED}{AGAIN}{REFUSED_LATER}",
    "a client that never initializes over HTTP+SSE": f"{STREAM % 1}{POST % (1, 'tools/list 1')}← #1 data: error 1 {GENERIC}",
    "a client outside of any session": (
        "→ POST /mcp\n  tools/list 1\n← 400 Bad Request\n  error 1 -32000 Bad Request: Server not initialized"
    ),
}

WELL = {
    "a look whether anybody is there": "→ tools/list 1\n← result 1",
    "a client that is alive": "→ ping 1\n← result 1\n→ ping 2\n← result 2",
    "another protocol on JSON-RPC": "→ shop/find 1\n← result 1\n→ shop/pay 2\n← result 2",
    "a capture whose beginning is lost": f"· no space: 3 frames, 60 bytes\n→ tools/list 1\n← result 1\n→ {CALL % 2}\n← result 2",
    "an initialize that has no id": f"→ initialize\n→ tools/list 1\n← result 1\n→ {CALL % 2}\n← result 2",
    "an initialize that is no JSON": (
        f'→ {{"jsonrpc":"2.0","id":0,"method":"initialize","params":\n→ tools/list 1\n← result 1\n→ {CALL % 2}\n← result 2'
    ),
    "a revision that needs no handshake, and is served": (
        f"· revision 2026-07-28\n→ tools/list 1\n← result 1\n→ {CALL % 2}\n← result 2"
    ),
    "a call that is refused for its arguments": f"→ {CALL % 1}\n← error 1 -32602 folder: no such place",
    "a call of a tool that there is not": f"→ {CALL % 1}\n← error 1 -32602 Unknown tool: list",
    "a server that fails for another reason": f"→ {CALL % 1}\n← error 1 -32603 Disk full",
    "a client that says that it is initialized after what was not recorded": (
        f"· no space: 3 frames, 60 bytes\n→ notifications/initialized\n→ {CALL % 2}\n← result 2"
    ),
    "a client that says that it is initialized, and was": f"{INITIALIZE}{HELLO}→ notifications/initialized\n→ {CALL % 2}\n← result 2",
    "a revision that needs no handshake": f"· revision 2026-07-28\n→ tools/list 1\n← error 1 {GENERIC}",
    "a client that asked with server/discover": (
        '→ server/discover 1\n← result 1 {"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}\n'
        f"→ {CALL % 2}\n← error 2 {GENERIC}"
    ),
    "a stream that is opened again and initialized": (
        f"{OPENED}{STREAM % 2}{POST % (2, INITIALIZE[2:-1])}← #5 data: {HELLO[2:]}{POST % (2, 'notifications/initialized')}"
        f"{POST % (2, CALL % 5)}{REFUSED_LATER}"
    ),
    "a stream whose server keeps the session": f"{OPENED}{AGAIN}← #5 data: result 5",
    "a session that began before the capture": (
        "→ POST /mcp\n  Mcp-Session-Id: 5f2c\n  tools/list 1\n← 200 OK\n  error 1 -32602 Invalid request parameters"
    ),
    "a call that is slow where nobody asks for a handshake": "→ tools/list 1\n! listening\n· 2.0 s later\n· the client closes stdin",
}


@pytest.mark.parametrize("account", LACKING.values(), ids=list(LACKING))
def test_a_client_that_did_not_initialize_is_to_blame_for_the_refusal(account: str) -> None:
    found = [(finding.rule, finding.culprit) for finding in findings_of(account) if finding.rule != "deprecated-transport"]
    assert found == [("missing-initialize", "client")]


@pytest.mark.parametrize("account", WELL.values(), ids=list(WELL))
def test_nobody_is_blamed_for_a_handshake_that_nobody_asked_for(account: str) -> None:
    assert "missing-initialize" not in {finding.rule for finding in findings_of(account)}


def test_a_stream_that_was_opened_again_is_named_with_the_handshake_of_the_one_before() -> None:
    finding = findings_of(LACKING["a client that opens its stream again"])[-1]
    assert "The handshake (row 2) belongs to another stream" in finding.what


SERVED = f"→ tools/list 1\n← result 1\n→ {CALL % 2}\n"
PROBED = '→ server/discover 0 {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}\n← error 0 -32601 Method not found\n'
WITHOUT = {
    "a list and a call": f"{SERVED}← result 2",
    "a call that is refused for another reason": f"{SERVED}← error 2 {GENERIC}",
    "one call after the other": f"→ {CALL % 1}\n← result 1\n→ {CALL % 2}\n← result 2",
    "a client that learned that the server has the older era": f"{PROBED}{SERVED}← result 2",
    "a client of HTTP+SSE": (
        f"{STREAM % 1}{POST % (1, 'tools/list 1')}← #1 data: result 1\n{POST % (1, CALL % 2)}← #1 data: result 2\n{NEW_PROCESS}"
    ),
    "a client of Streamable HTTP": f"{stateless()}{NEW_PROCESS}",
}


@pytest.mark.parametrize("account", WITHOUT.values(), ids=list(WITHOUT))
def test_a_session_without_a_handshake_that_is_served_all_the_same_is_a_note(account: str) -> None:
    found = [finding for finding in findings_of(account) if finding.rule == "missing-initialize"]
    assert [(finding.severity, finding.culprit, finding.count) for finding in found] == [("note", "client", 1)]


SINCE_BEFORE = {
    "a process that is older than the capture": f"{stateless()}· connections of a process from before the capture: 1 2",
    "a process that nobody found": stateless(),
    "one of several processes that is older": (
        f"{stateless()}· connections of a new process: 1\n· connections of a process from before the capture: 2"
    ),
    "a revision that was agreed on": f"{stateless('MCP-Protocol-Version: 2025-06-18')}{NEW_PROCESS}",
    "a session that was given out before": f"{stateless('Mcp-Session-Id: 5f2c')}{NEW_PROCESS}",
    "a client behind another process": f"{stateless('X-Forwarded-For: 10.0.0.7')}{NEW_PROCESS}",
    "a stateless server, and a client that initialized": (
        f"→ POST /mcp\n  {INITIALIZE[2:]}← 200 OK\n  {HELLO[2:]}{stateless()}· connections of a new process: 1 2 3"
    ),
}


@pytest.mark.parametrize("account", SINCE_BEFORE.values(), ids=list(SINCE_BEFORE))
def test_a_client_that_may_have_initialized_before_the_capture_is_not_accused(account: str) -> None:
    assert "missing-initialize" not in {finding.rule for finding in findings_of(account)}


def test_of_other_requests_without_a_handshake_only_the_number_of_kinds_is_said() -> None:
    account = "".join(f"→ {method}/list {at}\n← result {at}\n" for at, method in enumerate(("tools", "prompts", "resources")))
    (finding,) = findings_of(account)
    assert finding.what == (
        "tools/list was sent in a session without initialize, which the server did not ask for. "
        "So were requests of 2 other kinds."
    )


def test_a_name_of_one_letter_is_not_found_in_every_refusal() -> None:
    account = f'→ tools/call 1 {{"name":"add","arguments":{{"a":1}}}}\n← error 1 {GENERIC}'
    assert [(finding.rule, finding.severity) for finding in findings_of(account)] == [("missing-initialize", "warning")]


def test_a_client_that_says_it_is_initialized_and_never_sent_initialize_is_to_blame_though_it_is_served() -> None:
    (finding,) = findings_of(f'→ notifications/initialized\n→ {CALL % 2}\n← result 2 {{"content":[]}}')
    assert (finding.rule, finding.severity, finding.culprit) == ("missing-initialize", "warning", "client")


OPENING = f"→ POST /mcp\n  {INITIALIZE[2:]}← 200 OK\n%s  {HELLO[2:]}"
INITIALIZED = f"→ POST /mcp\n  notifications/initialized\n← 400 Bad Request\n  {NO_SESSION}\n"


@pytest.mark.parametrize(("field", "culprit"), [("  Server: nginx/1.27.4\n", "gateway"), ("  Server: uvicorn\n", "unclear")])
def test_a_notification_that_is_refused_for_want_of_a_session_shows_who_lost_it(field: str, culprit: str) -> None:
    (finding,) = [found for found in findings_of(OPENING % field + INITIALIZED) if found.rule == "session-missing"]
    assert finding.culprit == culprit
    assert finding.what.startswith("notifications/initialized was refused")
    assert "sent nothing after it" in finding.what


def test_all_that_is_refused_for_want_of_one_session_is_one_finding() -> None:
    requests = "".join(
        f"→ POST /mcp\n  {method}/list {at}\n← 400 Bad Request\n  {NO_SESSION}\n"
        for at, method in ((1, "tools"), (2, "prompts"))
    )
    found = [finding for finding in findings_of(OPENING % "" + INITIALIZED + requests) if finding.rule == "session-missing"]
    assert [finding.count for finding in found] == [3]


@pytest.mark.parametrize("status", ["202 Accepted", '400 Bad Request\n  {"error":"no JSON"}'])
def test_a_notification_that_is_taken_or_refused_for_another_reason_lacks_no_session(status: str) -> None:
    account = f"{OPENING % ''}→ POST /mcp\n  notifications/initialized\n← {status}\n"
    assert "session-missing" not in {finding.rule for finding in findings_of(account)}

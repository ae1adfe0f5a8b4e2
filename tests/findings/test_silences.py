"""Requests without an answer: the one finding that says why, by what the capture shows, and near misses of it."""

import pytest

from mcpspy.transcript.findings.rule import Finding
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records
from tests.findings.test_near_misses import GET, HANDSHAKE, HELLO, INITIALIZE, SESSION, SSE, TOOLS

CALL = '→ POST /mcp\n  tools/call 1 {"name":"report"}\n'
TIMED_OUT = '  notifications/cancelled {"requestId":1,"reason":"Request timed out"}\n← 202 Accepted\n'
GIVE_UP = f"→ POST /mcp\n{TIMED_OUT}"
CLOSED = "· the server closes the stream\n"
ANSWER = '← data: result 1 {"content":[]}'
BEGUN = f"{SESSION}{CALL}{SSE}← id: 1\n  retry: 500\n  data:\n{CLOSED}· 0.5 s later\n"
RESUME = GET.replace("event-stream\n", "event-stream\n  Last-Event-ID: 1\n")
UNREADY = f"{INITIALIZE}{HELLO}"
LIST = "→ tools/list 1\n"
CANCEL = '→ notifications/cancelled {"requestId":1,"reason":"Request timed out"}\n'

WORKING = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"report","_meta":{"progressToken":1}}\n'
PROGRESS = '· 1.0 s later\n← notifications/progress {"progressToken":1,"progress":%d}\n'
REFUSED = "← 406 Not Acceptable\n  error 0 -32600 Not acceptable\n"
OPENING = "· HTTP\n→ POST /mcp\n  Accept: application/json%s\n  " + INITIALIZE.removeprefix("→ ")
LOST = "→ POST /mcp\n  tools/list 5\n← 404 Not Found\n"
TWO_TOOLS = '→ tools/list 1\n← result 1 {"tools":[{"name":"find","inputSchema":{}},{"name":"%s","inputSchema":{}}]}'

REASONS = {
    "a client that waits for less than the progress that comes": (
        f"{WORKING}{PROGRESS % 1}{PROGRESS % 2}· 0.5 s later\n{CANCEL}← result 1",
        [("timed-out", "client")],
    ),
    "progress that ended long before the client gave up": (
        f"{WORKING}{PROGRESS % 1}· 9.0 s later\n{CANCEL}",
        [("timed-out", "server")],
    ),
    "a client that leaves while progress comes": (
        f"{WORKING}{''.join(PROGRESS % at for at in range(1, 9))}· the client closes stdin\n· the server exits 0",
        [("unanswered-request", "client")],
    ),
    "a client that leaves long after the last progress": (
        f"{WORKING}{PROGRESS % 1}· 9.0 s later\n· the client closes stdin\n· the server exits 0",
        [("unanswered-request", "server")],
    ),
    "a handshake of a client that does not accept events": (OPENING % "" + REFUSED, [("refused-handshake", "client")]),
    "a handshake of a client that accepts both": (
        OPENING % ", text/event-stream" + REFUSED,
        [("refused-handshake", "server")],
    ),
    "two sessions that are unknown as soon as they are there": (
        f"{SESSION}{LOST}· session none\n· handshake 2025-11-25 again as 77aa, server: tools\n{LOST}",
        [("split-session", "gateway")],
    ),
    "a session that is unknown as soon as it is there": (f"{SESSION}{LOST}{LOST}", [("session-unknown", "client")]),
    "a stream that is refused to a client that accepts events": (
        f"{SESSION}{GET}← 406 Not Acceptable\n  Not Acceptable\n{TOOLS}",
        [("http-error", "server")],
    ),
    "a stream that is not offered": (f"{SESSION}{GET}← 405 Method Not Allowed\n{TOOLS}", []),
    "a GET that accepts no events": (f"{SESSION}→ GET /mcp\n  Accept: text/html\n← 406 Not Acceptable\n{TOOLS}", []),
    "an answer in a body that cannot be read": (
        f'{SESSION}{CALL}← 200 OK\n  {{"jsonrpc":"2.0","id":1,"result":{{"content":[}}}}',
        [("malformed-message", "server")],
    ),
    "a body that cannot be read, and another request without an answer": (
        (
            f'{SESSION}{CALL}← 200 OK\n  {{"jsonrpc":"2.0","id":1,"result":{{"content":[}}}}\n'
            f"{CALL.replace('call 1', 'call 2')}← 200 OK"
        ),
        [("malformed-message", "server"), ("unanswered-request", "server")],
    ),
    "two tools of one name": (TWO_TOOLS % "find", [("repeated-tool-name", "server"), ("tool-schema-invalid", "server")]),
    "two tools": (TWO_TOOLS % "find_all", [("tool-schema-invalid", "server")]),
    "a large number that a double holds": (
        '→ tools/call 1 {"name":"find","arguments":{"id":9007199254740996}}\n← result 1',
        [],
    ),
    "an answer whose event is not finished, and a client that gives up": (
        f"{SESSION}{CALL}{SSE}{ANSWER}…\n{CLOSED}· 3.0 s later\n{GIVE_UP}",
        [("unfinished-event", "server")],
    ),
    "an answer whose event is not finished, on the stream of HTTP+SSE": (
        (
            "→ GET /sse\n← 200 OK\n  event: endpoint\n  data: /m?s=1\n→ POST /m?s=1\n  tools/list 1\n← 202 Accepted\n"
            '← #1 data: result 1 {"tools":[]}…\n· the server closes the stream of #1\n'
        ),
        [("unfinished-event", "server")],
    ),
    "an answer whose event is cut by a broken connection": (
        f"{SESSION}{CALL}{SSE}{ANSWER}…\n· the server breaks off the stream, broken\n",
        [("unanswered-request", "server")],
    ),
    "progress whose event is not finished": (
        f'{SESSION}{CALL}{SSE}← data: notifications/message {{"level":"info","data":1}}…\n{CLOSED}· 3.0 s later\n{GIVE_UP}',
        [("timed-out", "server")],
    ),
    "a stream that was resumed in vain": (
        f"{BEGUN}{RESUME}{SSE}· 3.0 s later\n← : ping\n· 1.0 s later\n{GIVE_UP}",
        [("not-redelivered", "server")],
    ),
    "a stream that was resumed in vain, and that the server closed again": (
        f"{BEGUN}{RESUME}{SSE}· 3.0 s later\n← : ping\n{CLOSED}",
        [("not-redelivered", "server")],
    ),
    "a stream that was resumed, on which the answer came": (f"{BEGUN}{RESUME}{SSE}← id: 2\n  data: result 1\n{CLOSED}", []),
    "a stream that was resumed, on which the answer came late": (
        f"{BEGUN}{RESUME}{SSE}· 6.0 s later\n← id: 2\n  data: result 1\n{CLOSED}",
        [],
    ),
    "a stream that a user gave up soon after it was resumed": (
        f"{BEGUN}{RESUME}{SSE}· 0.5 s later\n← : ping\n{GIVE_UP.replace('Request timed out', 'no need')}",
        [("given-up", "unclear")],
    ),
    "a server that waits for notifications/initialized": (
        f"{UNREADY}{LIST}· 6.0 s later\n{CANCEL}",
        [("missing-initialized", "client")],
    ),
    "a server that waits for notifications/initialized until its client leaves": (
        f"{UNREADY}{LIST}· 6.0 s later\n· the client closes stdin",
        [("missing-initialized", "client")],
    ),
    "a server that is slow, and does not wait for notifications/initialized": (
        f"{UNREADY}→ tools/list 2\n← result 2\n{LIST}· 6.0 s later\n{CANCEL}",
        [("missing-initialized", "client"), ("timed-out", "server")],
    ),
    "a server that is slow, after notifications/initialized": (
        f"{HANDSHAKE}{LIST}· 6.0 s later\n{CANCEL}",
        [("timed-out", "server")],
    ),
}


def findings_of(account: str) -> list[Finding]:
    return transcribe(records(account)).findings


@pytest.mark.parametrize(("account", "expected"), REASONS.values(), ids=list(REASONS))
def test_a_request_without_an_answer_has_one_reason(account: str, expected: list[tuple[str, str]]) -> None:
    assert [(finding.rule, finding.culprit) for finding in findings_of(account)] == expected


def test_a_timeout_says_slow_only_of_a_side_that_answered_later() -> None:
    late = f"{HANDSHAKE}{LIST}· 6.0 s later\n{CANCEL}· 1.0 s later\n← result 1"
    silent = f"{HANDSHAKE}{LIST}· 6.0 s later\n{CANCEL}"
    ended = f"{SESSION}{CALL}{SSE}· 1.0 s later\n← : ping\n{CLOSED}· 5.0 s later\n{GIVE_UP}"
    assert [findings_of(account)[0].blame for account in (late, silent, ended)] == [
        "The server: it was slower than the 6.0 s that the client waits.",
        "The server: it received the request and never answered it, within 6.0 s.",
        "The server: it ended the stream 1.0 s after the request, without the answer.",
    ]
    assert not findings_of(silent)[0].advice.startswith("Raise")


def test_progress_under_another_spelling_of_its_token_is_found() -> None:
    account = f'{HANDSHAKE}→ tools/call 1 {{"name":"a","_meta":{{"progressToken":%s}}}}\n'
    report = '← notifications/progress {"progressToken":%s,"progress":1}\n← result 1'
    found = [findings_of((account + report) % tokens) for tokens in (("3", '"3"'), ('"3"', "3"), ("3", "3"), ('"3"', '"3"'))]
    assert [[(finding.rule, finding.culprit) for finding in of_account] for of_account in found] == [
        [("id-type-mismatch", "server")],
        [("id-type-mismatch", "server")],
        [],
        [],
    ]


SLOW_ONES = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"slow"}\n· %s s later\n← result 1\n'
SLOW_ONES += '→ tools/call 2 {"name":"slow"}\n'
SOON_AFTER = "· 5.5 s later\n"
LEAVES = "· the client closes stdin\n· the server exits 0"


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (SLOW_ONES % "7.0" + SOON_AFTER + LEAVES, ("client", "note")),
        (SLOW_ONES % "0.1" + SOON_AFTER + LEAVES, ("server", "error")),
        (SLOW_ONES % "7.0" + '→ tools/list 3\n← result 3 {"tools":[]}\n' + SOON_AFTER + LEAVES, ("server", "error")),
        (SLOW_ONES % "40.0" + "· 35.0 s later\n" + LEAVES, ("server", "error")),
    ],
    ids=["as slow as before", "slower than before", "a later request is answered", "half a minute"],
)
def test_a_client_that_waits_less_than_an_earlier_call_took_left_early(account: str, expected: tuple[str, str]) -> None:
    (finding,) = [finding for finding in findings_of(account) if finding.rule == "unanswered-request"]
    assert (finding.culprit, finding.severity) == expected


COMMENTS = "· 15.0 s later\n← : ping\n" * 3


@pytest.mark.parametrize(
    ("comments", "words"), [(COMMENTS, "answered nothing else, and sent 3 keep-alives on its stream."), ("", "nothing else.")]
)
def test_keep_alives_that_came_in_place_of_an_answer_are_mentioned(comments: str, words: str) -> None:
    account = f"{SESSION}{CALL}{SSE}{comments}· 20.0 s later\n{GIVE_UP}"
    (finding,) = [finding for finding in findings_of(account) if finding.rule == "timed-out"]
    assert finding.what.endswith(words)


def test_a_session_that_is_left_out_of_several_requests_is_one_finding() -> None:
    refusal = '← 400 Bad Request\n  {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Missing session ID"}}\n'
    field = "→ POST /mcp\n  MCP-Protocol-Version: 2025-11-25\n  %s\n"
    account = f"{SESSION}· session none\n{field % 'tools/list 1'}{refusal}{field % 'prompts/list 2'}{refusal}"
    (finding,) = [finding for finding in findings_of(account) if finding.rule == "session-missing"]
    assert (finding.count, len(finding.rows)) == (2, 2)


def test_a_message_that_is_framed_by_its_length_is_no_line_without_an_end_too() -> None:
    account = f'{INITIALIZE}← Content-Length: 38\\r\n← \\r\n← {{"jsonrpc":"2.0","id":0,"result":{{}}}}…\n· 9.0 s later\n'
    rules = [finding.rule for finding in findings_of(account)]
    assert "malformed-message" in rules
    assert "half-line" not in rules


STREAM = "→ GET /sse\n  Accept: text/event-stream\n← 200 OK\n  event: endpoint\n  data: /messages?s=1\n"
ACCEPTED = "→ POST /messages?s=1\n  tools/list 1\n← 202 Accepted\n"


@pytest.mark.parametrize(("waited", "culprit"), [("2.0", "client"), ("0.2", "server")])
def test_a_request_to_the_endpoint_of_a_stream_that_ended_is_the_clients_fault(waited: str, culprit: str) -> None:
    account = f"{STREAM}· 1.0 s later\n{CLOSED}· {waited} s later\n{ACCEPTED}"
    (finding,) = transcribe(records(account)).findings
    assert (finding.rule, finding.culprit) == ("unanswered-request", culprit)
    assert "-" not in finding.what
    assert ("was sent 2.0 s after the stream had ended" in finding.what) is (culprit == "client")


LEFT = "· 9.0 s later\n· the client closes the stream\n"
NAMELESS = f"→ GET /sse\n%s  Accept: text/event-stream\n← 200 OK\n  data: /messages?s=1\n{LEFT}"


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (NAMELESS % "", ["missing-endpoint"]),
        (NAMELESS % "  Last-Event-ID: 7\n", []),
        (NAMELESS.replace("/sse", "/mcp") % "", []),
    ],
)
def test_events_of_another_name_announce_no_endpoint(account: str, expected: list[str]) -> None:
    found = [finding.rule for finding in transcribe(records(account)).findings]
    assert [rule for rule in found if rule == "missing-endpoint"] == expected


def test_an_answer_with_an_id_of_nobody_is_said_to_be_no_answer() -> None:
    findings = transcribe(records(f"{SESSION}→ POST /mcp\n  tools/list 1\n← 200 OK\n  result 99\n")).findings
    (what,) = [finding.what for finding in findings if finding.rule == "unanswered-request"]
    assert "holds only messages that do not answer it" in what


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("sampling", {("unanswered-request", "client", "error")}),
        ("roots", {("unanswered-request", "server", "note"), ("undeclared-capability", "server", "warning")}),
    ],
)
def test_a_client_need_not_answer_what_it_did_not_declare(declared: str, expected: set[tuple[str, str, str]]) -> None:
    account = (
        f"· handshake 2025-11-25, client: {declared}, server: tools\n"
        '← sampling/createMessage 1 {"messages":[],"maxTokens":1}\n· 9.0 s later\n· the client closes stdin\n· the server exits 0'
    )
    assert {(finding.rule, finding.culprit, finding.severity) for finding in findings_of(account)} == expected


@pytest.mark.parametrize(("declared", "culprit"), [("sampling", "client"), ("roots", "server")])
def test_a_call_that_waits_for_what_the_client_did_not_declare_is_the_fault_of_its_server(declared: str, culprit: str) -> None:
    account = (
        f'· handshake 2025-11-25, client: {declared}, server: tools\n→ tools/call 1 {{"name":"report"}}\n'
        '← sampling/createMessage 1 {"messages":[],"maxTokens":1}\n· 9.0 s later\n· the client closes stdin\n· the server exits 0'
    )
    found = [finding for finding in findings_of(account) if finding.rule == "unanswered-request"]
    assert {finding.culprit for finding in found} == {culprit}
    assert len(found) == 2

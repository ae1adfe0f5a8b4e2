"""Calls that are repeated, tasks that are asked for too late, and endpoints that are missing or wrong; and near misses of each."""

import pytest

from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records
from tests.findings.test_silences import findings_of

TOOL = (
    "· handshake 2025-11-25, server: tools\n→ tools/list 1\n"
    '← result 1 {"tools":[{"name":"pay","inputSchema":{"type":"object"}%s}]}\n'
)
WRITES = TOOL % ',"annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false}'
FIRST = '→ tools/call 2 {"name":"pay","arguments":{"to":"x"}}\n· 3.0 s later\n'
GIVE_UP = '→ notifications/cancelled {"requestId":2,"reason":"timed out"}\n'
SECOND = FIRST.replace("call 2", "call 3").replace("3.0", "1.0")
ANSWERS = "← result 2\n← result 3\n"
TASK = '· handshake 2025-11-25, server: tools tasks.requests.tools.call\n→ tools/call 1 {"name":"a","task":{"ttl":3000}}\n'
MADE = '← result 1 {"task":{"taskId":"t","status":"working","ttl":3000,"pollInterval":500}}\n'
REFUSED = '→ tasks/%s %d {"taskId":"t"}\n← error %d -32602 Task not found\n'
WORKING = '→ tasks/get %d {"taskId":"t"}\n← result %d {"taskId":"t","status":"working","ttl":3000,"pollInterval":500}\n'
POLLED = "".join(f"· 0.5 s later\n{WORKING % (at, at)}" for at in range(2, 8))
WAITS = "  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream\n%s· 5.0 s later\n· the client closes the stream\n"
PING = "← : ping\n"
ANNOUNCED = "← 200 OK\n  event: endpoint\n  data: /messages?s=1\n→ POST /messages?s=1\n  initialize 0 {}\n← 404 Not Found\n"
LIMITED = '· HTTP\n· handshake 2025-11-25, server: tools\n→ POST /mcp\n  tools/call 2 {"name":"pay"}\n← 429 Too Many Requests\n'
AGAIN = '  Retry-After: 2\n· 2.5 s later\n→ POST /mcp\n  tools/call 3 {"name":"pay"}\n← 200 OK\n  result 3'

CASES = {
    "a call with an effect, carried out twice": (
        f"{WRITES}{FIRST}{GIVE_UP}{SECOND}{ANSWERS}",
        [("timed-out", "warning", "server"), ("carried-out-twice", "warning", "client")],
    ),
    "a call that a model repeats when it has heard of the timeout": (
        f"{WRITES}{FIRST}{GIVE_UP}· 1.0 s later\n{SECOND}{ANSWERS}",
        [("timed-out", "warning", "server"), ("carried-out-twice", "warning", "agent")],
    ),
    "a call of a tool that says nothing about its effects, carried out twice": (
        f"{TOOL % ''}{FIRST}{GIVE_UP}{SECOND}{ANSWERS}",
        [("timed-out", "warning", "server"), ("carried-out-twice", "note", "client")],
    ),
    "a call that a user cancels, and that is made again": (
        f"{WRITES}{FIRST}{GIVE_UP.replace('timed out', 'User pressed stop')}{SECOND}{ANSWERS}",
        [("carried-out-twice", "warning", "client"), ("cancellation-ignored", "warning", "server")],
    ),
    "a call of an idempotent tool, made twice": (
        TOOL % ',"annotations":{"idempotentHint":true}' + f"{FIRST}{GIVE_UP}{SECOND}{ANSWERS}",
        [("timed-out", "warning", "server")],
    ),
    "a call of a tool that only reads, made twice": (
        TOOL % ',"annotations":{"readOnlyHint":true}' + f"{FIRST}{GIVE_UP}{SECOND}{ANSWERS}",
        [("timed-out", "warning", "server")],
    ),
    "a call of which the first one failed": (
        f"{WRITES}{FIRST}{GIVE_UP}{SECOND}← error 2 -32000 down\n← result 3\n",
        [("timed-out", "warning", "server")],
    ),
    "a call of which only the second was answered": (
        f"{WRITES}{FIRST}{GIVE_UP}{SECOND}← result 3\n",
        [("timed-out", "warning", "server")],
    ),
    "a call that was cancelled after its answer, and made again": (
        f"{WRITES}{FIRST}← result 2\n{GIVE_UP}{SECOND}← result 3\n",
        [],
    ),
    "a second call with other arguments": (
        f"{WRITES}{FIRST}{GIVE_UP}{SECOND.replace('x', 'y')}{ANSWERS}",
        [("timed-out", "warning", "server")],
    ),
    "a call repeated after 429, as Retry-After says": (f"{LIMITED}{AGAIN}", []),
    "a task whose result is fetched after its ttl": (
        f"{TASK}{MADE}· 0.5 s later\n{WORKING % (2, 2)}· 4.0 s later\n{REFUSED % ('result', 3, 3)}",
        [("task-expired", "warning", "client")],
    ),
    "a task that is unknown before its ttl is over": (
        f"{TASK}{MADE}· 0.5 s later\n{REFUSED % ('get', 3, 3)}",
        [("task-lost", "warning", "server")],
    ),
    "a task that was polled in time until its ttl was over": (f"{TASK}{MADE}{POLLED}{REFUSED % ('get', 9, 9)}", []),
    "a task that is asked for late and is still there": (f"{TASK}{MADE}· 5.0 s later\n{WORKING % (2, 2)}", []),
    "a client of HTTP+SSE at a URL of Streamable HTTP": (
        f"→ GET /mcp\n{WAITS % PING}",
        [("missing-endpoint", "error", "configuration")],
    ),
    "a server of HTTP+SSE that announces nothing": (f"→ GET /sse\n{WAITS % PING}", [("missing-endpoint", "error", "server")]),
    "a stream without anything, at a path that says nothing": (
        f"→ GET /events\n{WAITS % ''}",
        [("missing-endpoint", "error", "unclear")],
    ),
    "an endpoint without the beginning of its stream's path": (
        f"→ GET /tools/acme/sse\n{ANNOUNCED}",
        [("wrong-endpoint", "error", "configuration")],
    ),
    "an endpoint beside its stream": (f"→ GET /sse\n{ANNOUNCED}", [("wrong-endpoint", "error", "server")]),
    "an endpoint below the path of its stream": (
        f"→ GET /tools/sse\n{ANNOUNCED.replace('/messages', '/tools/messages')}",
        [("wrong-endpoint", "error", "server")],
    ),
}


@pytest.mark.parametrize(("account", "expected"), CASES.values(), ids=list(CASES))
def test_a_repetition_or_a_wrong_place_is_blamed_on_the_side_that_chose_it(
    account: str, expected: list[tuple[str, str, str]]
) -> None:
    assert [(finding.rule, finding.severity, finding.culprit) for finding in findings_of(account)] == expected


def test_both_results_of_a_call_that_was_carried_out_twice_are_quoted() -> None:
    texts = [f'← result {at} {{"content":[{{"type":"text","text":"paid {at}"}}]}}\n' for at in (2, 3)]
    timed_out, finding = findings_of(f"{WRITES}{FIRST}{GIVE_UP}{SECOND}{''.join(texts)}")
    assert timed_out.rule == "timed-out"
    assert finding.what.endswith("both were carried out: “paid 2”, and “paid 3”.")


def test_the_session_in_a_sentence_is_whole() -> None:
    session = "redacted-0123456789ab"
    lost = "→ GET /mcp\n← 404 Not Found\n"
    account = f"· HTTP\n· handshake 2025-11-25 again as {session.replace('-', '')}\n{lost}{lost}"
    (finding,) = [finding for finding in findings_of(account) if finding.rule == "session-unknown"]
    assert session.replace("-", "") in finding.what


def test_all_mistakes_of_a_form_are_named() -> None:
    form = (
        '{"message":"When?","requestedSchema":{"type":"object","properties":{"date":{"type":"string"},"seats":{"type":"integer"}},'
        '"required":["date","seats"]}}'
    )
    account = f"· handshake 2025-11-25, client: elicitation\n← elicitation/create 1 {form}\n"
    account += '→ result 1 {"action":"accept","content":%s}'
    (finding,) = all_findings(transcribe(records(account % '{"seats":"two"}')), rules={"form-answer-invalid"})
    assert "'two' is not of type 'integer' (at seats)" in finding.what
    assert "'date' is a required property" in finding.what
    assert all_findings(transcribe(records(account % '{"seats":2,"date":"x"}')), rules={"form-answer-invalid"}) == []

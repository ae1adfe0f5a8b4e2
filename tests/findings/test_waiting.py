"""Requests that wait in a capture that is still being recorded, and how long they may."""

import pytest

from mcpspy.transcript.findings.run import findings
from mcpspy.transcript.transcribe import Transcriber
from tests.findings.account import records
from tests.findings.test_near_misses import ALICE, BOB, CALL, LISTEN, SESSION, SSE, TASK

COUNTING = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"slow","_meta":{"progressToken":1}}\n'
ASKING = '· handshake 2025-11-25, client: {}, server: tools\n→ tools/call 1 {{"name":"slow"}}\n'
RUNNING = '· handshake 2025-11-25, server: tools tasks.requests.tools.call\n→ tools/call 1 {"name":"a","task":{}}\n'
DONE = '→ tasks/get 2 {"taskId":"t"}\n← result 2 {"taskId":"t","status":"completed","ttl":60000}\n'

WAITING = {
    "less than five seconds": (CALL, 4, []),
    "five seconds and more": (CALL, 6, [("note", "unclear")]),
    "a server that is silent for thirty seconds": (CALL, 31, [("warning", "server")]),
    "a server that still writes its log": (f"{CALL}· 20.0 s later\n! working\n", 31, [("note", "unclear")]),
    "a subscription": (LISTEN, 60, []),
    "progress within five seconds": (
        f'{COUNTING}· 28.0 s later\n← notifications/progress {{"progressToken":1,"progress":1}}\n',
        31,
        [],
    ),
    "a call for which a person is asked": (
        ASKING.format("elicitation") + '← elicitation/create 1 {"message":"Who?","requestedSchema":{"type":"object"}}\n',
        60,
        [],
    ),
    "a call for which a model is asked": (
        ASKING.format("sampling") + '← sampling/createMessage 1 {"messages":[],"maxTokens":9}\n',
        60,
        [],
    ),
    "a call for which the client does not name its roots": (
        ASKING.format("roots") + "← roots/list 1\n",
        60,
        [("warning", "client")],
    ),
    "roots of a client that did not declare any": (
        ASKING.format("sampling") + "← roots/list 1\n",
        60,
        [("note", "server")],
    ),
    "the result of a task": (
        f'{RUNNING}{TASK}→ tasks/result 2 {{"taskId":"t"}}\n',
        60,
        [],
    ),
    "the result of a task that had ended": (
        f'{RUNNING}{TASK}{DONE}→ tasks/result 3 {{"taskId":"t"}}\n',
        20,
        [("note", "unclear")],
    ),
    "the result of a task that ends meanwhile": (
        f'{RUNNING}{TASK}→ tasks/result 3 {{"taskId":"t"}}\n· 20.0 s later\n{DONE}',
        24,
        [],
    ),
    "the result of a task that ended long ago": (
        f'{RUNNING}{TASK}→ tasks/result 3 {{"taskId":"t"}}\n{DONE}',
        60,
        [("warning", "server")],
    ),
    "a stream that is kept alive": (
        f'{SESSION}→ POST /mcp\n  tools/call 1 {{"name":"slow"}}\n{SSE}· 20.0 s later\n← : ping\n',
        31,
        [("note", "unclear")],
    ),
    "a call whose answer went to somebody else": (
        f"{ALICE}{BOB}tools/list 8\n{SSE}  data: result 7 {{}}\n\n  data: result 8\n· the server closes the stream\n",
        31,
        [],
    ),
    "a stream that is silent": (
        f'{SESSION}→ POST /mcp\n  tools/call 1 {{"name":"slow"}}\n{SSE}',
        31,
        [("warning", "server")],
    ),
}


@pytest.mark.parametrize(("account", "seconds", "expected"), WAITING.values(), ids=list(WAITING))
def test_a_call_that_waits_while_mcpspy_records(account: str, seconds: int, expected: list[tuple[str, str]]) -> None:
    transcriber = Transcriber()
    for record in records(f"{account}· the capture breaks off"):
        transcriber.feed(record)
    transcriber.transcript.captures[0].now_ns = seconds * 1_000_000_000
    waiting = [finding for finding in findings(transcriber.transcript) if finding.rule == "unanswered-request"]
    assert [(finding.severity, finding.culprit) for finding in waiting] == expected

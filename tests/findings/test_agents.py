"""Tests of who is at fault: the agent for what a model decides, the client for what the program around it does."""

import pytest

from mcpspy.transcript.findings.rule import Severity
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.check.model import CheckResult, culprit_name
from tests.findings.account import records

LISTED = (
    "· handshake 2025-11-25, server: tools\n→ tools/list 1\n"
    '← result 1 {"tools":[{"name":"pay.all","inputSchema":{"type":"object","required":["to"]}}]}\n'
)
CALL = '→ tools/call %d {"name":"pay.all","arguments":{"to":"x"}}\n'
ANSWER = '{"content":[]}'
UNKNOWN = "← error 2 -32602 Unknown tool\n"
CASES = {
    "equal calls with equal answers": (
        "".join(f"{CALL % at}← result {at} {ANSWER}\n" for at in (2, 3, 4)),
        [("repeated-call", "agent")],
    ),
    "a name that is made up": (CALL.replace("pay.all", "bribe") % 2 + UNKNOWN, [("unknown-tool", "agent")]),
    "a name that ends like another": (CALL.replace("pay.all", "repay.all") % 2 + UNKNOWN, [("unknown-tool", "agent")]),
    "a name with the server's before it": (CALL.replace("pay.all", "mcp__bank__pay.all") % 2 + UNKNOWN, [("unknown-tool", "client")]),
    "a name without the signs that models refuse": (CALL.replace("pay.all", "pay_all") % 2 + UNKNOWN, [("unknown-tool", "client")]),
    "arguments that do not fit the schema": (
        CALL.replace('"to"', '"from"') % 2 + "← error 2 -32602 to is missing\n",
        [("arguments-invalid", "agent")],
    ),
    "a call that a server refuses although it listed the tool": (CALL % 2 + UNKNOWN, []),
    "a cancellation of nothing": (
        '→ notifications/cancelled {"requestId":99}\n',
        [("cancelled-unknown-request", "client")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("account", "expected"), CASES.values(), ids=list(CASES))
def test_what_the_model_decides_is_the_agents(account: str, expected: list[tuple[str, str]]) -> None:
    findings = all_findings(transcribe(records(LISTED + account)))
    assert [(finding.rule, finding.culprit) for finding in findings] == expected


def test_calls_that_http_refuses_brought_no_answer_that_could_be_equal() -> None:
    gone = "← 404 Not Found\n  error {} -32001 Session not found\n"
    calls = "".join(f"→ POST /mcp\n  {(CALL % at).removeprefix('→ ')}{gone.format(at)}" for at in (2, 3, 4))
    transcript = transcribe(records(f"· HTTP\n· handshake 2025-11-25, server: tools\n{calls}"))
    assert [row.outcome.value for row in transcript.exchanges][1:] == ["error"] * 3
    assert "repeated-call" not in {finding.rule for finding in all_findings(transcript)}


def test_a_check_names_the_client_that_the_agent_is_behind() -> None:
    transcript = transcribe(records(LISTED + CALL.replace("pay.all", "bribe") % 2 + UNKNOWN))
    (finding,) = all_findings(transcript)
    check = CheckResult(transcript=transcript, findings=[finding], rules={}, fail_on=Severity.WARNING, paths={})
    assert culprit_name(check, finding) == f"agent behind {transcript.captures[0].client}"

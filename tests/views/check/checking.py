"""Checks for the tests of their formats: a dialogue with many findings, one with hostile text, one with none."""

from mcpspy.transcript.findings.registry import RULES
from mcpspy.transcript.findings.rule import Severity
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.model import Numbered
from mcpspy.views.check.model import CheckResult
from tests.transcript.dialogue import Dialogue, notification, request, result, tool_call

EVIL = "\x1b]0;owned\x07\u202e\u200b<b>&\"']]>%0A::error::x,y:z\x00￾\ud800\r\n| **x**"
TOOL = {"name": "forecast", "description": "The weather of tomorrow.", "inputSchema": {"type": "object"}}


def checked(dialogue: Dialogue, *, fail_on: Severity = Severity.WARNING, path: str = "captures/weather.mcpspy") -> CheckResult:
    """Check this dialogue by all rules."""
    transcript = dialogue.transcript
    findings = all_findings(transcript)
    return CheckResult(
        transcript=transcript,
        findings=findings,
        rules=RULES,
        fail_on=fail_on,
        paths={0: path},
        address="@",
        rows={row.row: row for row in transcript.rows if isinstance(row, Numbered)},
    )


def busy() -> Dialogue:
    """Make a dialogue with noise, a fault of the client, a call without an answer from a server that died, and equal calls."""
    dialogue = Dialogue().client(request(0, "initialize")).server(result(0)).client(notification())
    dialogue.client(request(1)).server(result(1, {"tools": [TOOL, {**TOOL, "name": "alerts"}]}))
    dialogue.server(b"INFO one\n").server(b"INFO two\n").client(b"hello\n")
    for id in (2, 3, 4):
        dialogue.client(tool_call(id)).server(result(id))
    dialogue.client(tool_call(5)).stderr(b"out of memory\n")
    return dialogue.exits(None, "SIGKILL").ends()


def hostile() -> Dialogue:
    """Make one with hostile names."""
    dialogue = Dialogue(label=EVIL.replace("\ud800", ""))
    dialogue.client(request(0, "initialize", {"clientInfo": {"name": EVIL}})).server(result(0, {"instructions": EVIL}))
    dialogue.server(EVIL.encode("utf-8", "surrogatepass") + b"\n").client(request(1))
    dialogue.server(result(1, {"tools": [{"name": EVIL, "description": EVIL}, TOOL]}))
    return dialogue.client(tool_call(2, EVIL)).stderr(EVIL.encode("utf-8", "surrogatepass") + b"\n").exits(1).ends()


def quiet() -> Dialogue:
    """Make one without findings."""
    dialogue = Dialogue().client(request(0, "initialize")).server(result(0)).client(notification())
    dialogue.client(request(1)).server(result(1, {"tools": [TOOL]})).client(tool_call(2)).server(result(2))
    return dialogue.closes()

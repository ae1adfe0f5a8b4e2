"""Captures of real programs have only true findings."""

from pathlib import Path

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.transcript.findings.rule import Severity
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe

FOLDER = Path(__file__).parents[2] / "captures"

TRUE = {
    "channels": {  # a published walkthrough has it so, and no specification
        "endpoint-dialect",
        "unknown-revision",
        "no-jsonrpc",
        "partial-result",
        "unpaired-response",
        "missing-initialized",
        "wrong-kind",
    },
    "prompts": {"missing-endpoint", "malformed-message", "no-jsonrpc", "partial-result", "unpaired-response"},  # and this
    # the client waits for one second, and says so; the server goes on for seconds
    "cancelled": {"timed-out", "cancellation-ignored"},
    "agent-model": {"use-id-mismatch"},  # the agent gives a tool use another id, as a published walkthrough does
    "question": {"unknown-tool"},  # the client calls an unknown tool on purpose
    "refused": {"server-died"},  # server-filesystem does not start with a folder that does not exist
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.mcpspy")), ids=lambda path: path.stem)
def test_a_capture_of_real_programs_has_the_findings_that_are_true(path: Path) -> None:
    findings = all_findings(transcribe(read(str(path))))
    assert {finding.rule for finding in findings if finding.severity is not Severity.NOTE} == TRUE.get(path.stem, set())

"""The captures of real programs have no findings but the true ones."""

from pathlib import Path

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.transcript.findings.rule import Severity
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe

FOLDER = Path(__file__).parents[2] / "captures"

TRUE = {
    "agent-model": {"use-id-mismatch"},  # the agent gives a tool use an id of its own, as a published walkthrough has it
    "question": {"unknown-tool"},  # the client calls a tool that there is not, to see what comes
    "refused": {"server-died"},  # server-filesystem does not start with a folder that there is not
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.mcpspy")), ids=lambda path: path.stem)
def test_a_capture_of_real_programs_has_the_findings_that_are_true(path: Path) -> None:
    found = all_findings(transcribe(read(str(path))))
    assert {one.rule for one in found if one.severity is not Severity.INFO} == TRUE.get(path.stem, set())

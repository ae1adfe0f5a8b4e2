"""Check that findings in the traffic of real programs are true: docs/known-problems.md lists each of them."""

from collections.abc import Sequence

from mcpspy.records import Record
from mcpspy.transcript.findings.rule import Severity
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe

ON_PURPOSE = {"unknown-tool", "arguments-invalid", "timed-out"}
"""Scenes call tools that there are not, and with arguments that are wrong, to see errors pass; and slow ones, to give them up."""


def faults(records: Sequence[Record]) -> list[str]:
    """List the findings at the default level or above, except those that the scenes cause on purpose."""
    findings = all_findings(transcribe(records))
    return [
        f"{finding.rule}: {finding.what}"
        for finding in findings
        if finding.severity is not Severity.NOTE and finding.rule not in ON_PURPOSE
    ]

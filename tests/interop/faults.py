"""What mcpspy finds in what real programs say to each other: nothing that is not true, and docs/known-problems.md lists that."""

from collections.abc import Sequence

from mcpspy.records import Record
from mcpspy.transcript.findings.rule import Severity
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe

ON_PURPOSE = {"unknown-tool", "arguments-invalid", "timed-out"}
"""Scenes call tools that there are not, and with arguments that are wrong, to see errors pass; and slow ones, to give them up."""


def faults(records: Sequence[Record]) -> list[str]:
    """What is found at the default level or above, but for what scenes do on purpose."""
    findings = all_findings(transcribe(records))
    return [
        f"{finding.rule}: {finding.what}"
        for finding in findings
        if finding.severity is not Severity.NOTE and finding.rule not in ON_PURPOSE
    ]

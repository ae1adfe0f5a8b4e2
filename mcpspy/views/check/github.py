"""A check as workflow commands of GitHub Actions: each finding annotates a line of its capture.

Source: docs.github.com, workflow commands for GitHub Actions: data escapes `%`, CR and LF; properties also `:` and `,`.
"""

from collections.abc import Iterator

from ...transcript.findings.rule import Finding, Severity
from ..text.escape import safe_text
from ..timeline.findings import rows_words
from .model import CheckResult, worst_first

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}

_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def github_lines(check: CheckResult) -> Iterator[str]:
    """Write a line for each finding, the worst first: GitHub shows ten of each kind."""
    for finding in worst_first(check.findings):
        yield _command(check, finding)


def _command(check: CheckResult, finding: Finding) -> str:
    properties = {"file": check.path(finding), "line": check.line(finding), "title": f"mcpspy: {finding.rule}"}
    fields = ",".join(
        f"{name}={safe_text(str(value)).translate(_PROPERTY)}" for name, value in properties.items() if value is not None
    )
    where = [rows_words(finding.rows)] if finding.rows else []
    where += [f"{finding.count} times"] if finding.count > 1 else []
    suffix = f" ({', '.join(where)})" if where else ""
    text = "\n".join(map(safe_text, (finding.what + suffix, finding.blame, finding.advice)))
    return f"::{_COMMANDS[finding.severity]} {fields}::{text.translate(_DATA)}"

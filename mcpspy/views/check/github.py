"""A check as workflow commands of GitHub Actions: each finding is an annotation of the line in its capture.

Source: docs.github.com, workflow commands for GitHub Actions: data escapes `%`, CR and LF; properties also `:` and `,`.
"""

from collections.abc import Iterator

from ...transcript.findings.rule import Finding, Severity
from ..text.escape import safe_text
from .model import Checked, worst_first

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}

_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def github_lines(checked: Checked) -> Iterator[str]:
    """A line for each finding, the worst first: GitHub shows ten of each kind."""
    for finding in worst_first(checked.findings):
        yield _command(checked, finding)


def _command(checked: Checked, finding: Finding) -> str:
    properties = {"file": checked.path(finding), "line": str(checked.line(finding)), "title": f"mcpspy: {finding.rule}"}
    told = ",".join(f"{name}={safe_text(value).translate(_PROPERTY)}" for name, value in properties.items())
    where = [f"row {finding.row}"] if finding.row is not None else []
    where += [f"{finding.count} times"] if finding.count > 1 else []
    suffix = f" ({', '.join(where)})" if where else ""
    text = "\n".join(safe_text(one) for one in (finding.what + suffix, finding.blame, finding.advice))
    return f"::{_COMMANDS[finding.severity]} {told}::{text.translate(_DATA)}"

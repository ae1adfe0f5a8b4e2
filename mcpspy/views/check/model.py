"""The result of a check: findings, the line of each in its file, and whether they fail the check. Each format shows it.

It reads no files: its maker says on which lines the records are.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...transcript.findings.rule import WORST_FIRST, Finding, Rule, Severity, Unchecked, is_at_least
from ...transcript.model import CaptureInfo, Numbered, Transcript


@dataclass(slots=True, frozen=True, kw_only=True)
class CheckResult:
    """Findings in `transcript` by the selected `rules`; those at or above `fail_on` fail the check.

    `paths` are the files of its captures, by their index. `lines` gives the line of a record, by capture and number, where it is not
    the number plus one. `address` is the WHAT that `mcpspy show` takes for a row; empty where there is none.
    """

    transcript: Transcript
    findings: list[Finding]
    rules: dict[str, Rule]
    fail_on: Severity
    paths: dict[int, str]
    address: str = ""
    since: str = ""
    """The `since 2026-11-21 09:30:00` of a check that looks only at what was alive then or later."""
    since_wall_ns: int | None = None
    """That moment, as Unix time."""
    lines: dict[tuple[int, int], int] = field(default_factory=dict)
    imported: frozenset[int] = frozenset()
    """The captures that were made of the files in `paths`, which have other lines."""
    unchecked: list[Unchecked] = field(default_factory=list)
    """Rules that did not look at everything."""
    rows: dict[int, Numbered] = field(default_factory=dict)
    """The rows that findings point at, by their numbers."""

    @property
    def counts(self) -> Counter[Severity]:
        """The number of findings of each severity."""
        return Counter(finding.severity for finding in self.findings)

    @property
    def failed(self) -> bool:
        """True if a finding is bad enough to fail the check."""
        return any(is_at_least(finding.severity, self.fail_on) for finding in self.findings)

    def path(self, finding: Finding) -> str:
        """Give the file of the capture that a finding is about."""
        return self.paths.get(finding.capture, "capture")

    def line(self, finding: Finding) -> int | None:
        """Give the line of a finding in that file, counted from 1; that of the header where it is about all of the capture.

        None if the file is not the capture, but was imported.
        """
        if finding.capture in self.imported:
            return None
        if finding.number < 0:
            return 1
        return self.lines.get((finding.capture, finding.number), finding.number + 1)

    def place(self, finding: Finding) -> str:
        """Give the file of a finding, and its line where the file has one."""
        line = self.line(finding)
        return self.path(finding) if line is None else f"{self.path(finding)}:{line}"

    def capture(self, finding: Finding) -> CaptureInfo:
        """Give the capture that a finding is about."""
        return self.transcript.captures[finding.capture]


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort by severity, then by time."""
    return sorted(findings, key=lambda finding: (WORST_FIRST.index(finding.severity), finding.at_ns))


def culprit_name(check: CheckResult, finding: Finding) -> str:
    """Name the culprit of a finding: `server weather`. The name is captured text, so a view has to escape it."""
    capture = check.capture(finding)
    match finding.culprit:
        case "server":
            return _named("server", capture.server)
        case "client" | "agent":
            row = None if finding.row is None else check.rows.get(finding.row)
            name = capture.client if row is None else capture.client_of(row)
            return _named("client", name) if finding.culprit == "client" else f"agent behind {name}"
        case "model":
            return _named("model", capture.server)
        case "api":
            return f"the API of {capture.server}"
        case "file":
            return "the capture file"
        case "disk":
            return "the disk"
        case "unclear":
            return "unattributed"
        case word:
            return word


def _named(side: str, name: str) -> str:
    """Name a side; a client that gave no name is `client` already, or `client 2`."""
    return name if name.split(" ", maxsplit=1)[0] == side else f"{side} {name}"

"""What a check comes to: findings, where each stands in its file, and how bad they are together. The formats of `check_*` show it.

Refuses to read files: whoever read the captures says where their records stand.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...transcript.findings.rule import Finding, Rule, Severity
from ...transcript.model import CaptureInfo, Numbered, Transcript

WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@dataclass(slots=True, frozen=True, kw_only=True)
class Checked:
    """Findings of `transcript` by the `rules` that were asked for; those at or above `fail_on` fail the check.

    `paths` are the files of its sources, by their index; `lines` says of records whose line is not their number and one, on which
    line they stand. `address` is the WHAT by which rows can be asked for; empty where that is not possible.
    """

    transcript: Transcript
    findings: list[Finding]
    rules: dict[str, Rule]
    fail_on: Severity
    paths: dict[int, str]
    address: str = ""
    since: str = ""
    """Where only what was alive since a moment was asked for: `since 2026-11-21 09:30:00`."""
    since_wall_ns: int | None = None
    """That moment, as Unix time."""
    lines: dict[tuple[int, int], int] = field(default_factory=dict)
    rows: dict[int, Numbered] = field(default_factory=dict)
    """The rows that findings point at, by their numbers."""

    @property
    def counts(self) -> Counter[Severity]:
        """How many findings there are of each severity."""
        return Counter(one.severity for one in self.findings)

    @property
    def failed(self) -> bool:
        """Whether there is a finding that must not be there."""
        return any(is_at_least(one.severity, self.fail_on) for one in self.findings)

    def path(self, finding: Finding) -> str:
        """The file of the capture that a finding is about."""
        return self.paths.get(finding.capture, "capture")

    def line(self, finding: Finding) -> int:
        """The line in that file, the first being 1; that of the header where the finding is about all of it."""
        if finding.number < 0:
            return 1
        return self.lines.get((finding.capture, finding.number), finding.number + 1)

    def source(self, finding: Finding) -> CaptureInfo:
        """The capture that it is about."""
        return self.transcript.captures[finding.capture]


def is_at_least(severity: Severity, limit: Severity) -> bool:
    """Whether one is as bad as the other, or worse."""
    return WORST_FIRST.index(severity) <= WORST_FIRST.index(limit)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """By severity, then by time."""
    return sorted(findings, key=lambda one: (WORST_FIRST.index(one.severity), one.at_ns))


def culprit_name(checked: Checked, finding: Finding) -> str:
    """Whom a finding blames, by name where it has one: `server weather`. Not yet safe to be shown."""
    source = checked.source(finding)
    match finding.culprit:
        case "server":
            return _named("server", source.server)
        case "client":
            row = None if finding.row is None else checked.rows.get(finding.row)
            return _named("client", source.client if row is None else source.client_of(row))
        case "model":
            return _named("model", source.server)
        case "api":
            return f"the API of {source.server}"
        case "file":
            return "the capture file"
        case "disk":
            return "the disk"
        case "unclear":
            return "unattributed"
        case word:
            return word


def _named(side: str, name: str) -> str:
    return side if name == side else f"{side} {name}"

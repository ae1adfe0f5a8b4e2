"""Findings as lines: what is wrong, where, and what to do. All are shown; there is one for each rule and culprit."""

from collections.abc import Iterator
from dataclasses import replace

from ...transcript.findings.rule import Finding, Severity
from ...transcript.model import Numbered, Transcript
from ..text.cells import wrapped
from ..text.escape import one_line, safe_text
from ..text.line import Line

STYLES = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.INFO: "dim"}

INDENT = "    "
MAX_LINES = 4
"""The most lines that a sentence takes on a screen."""


def finding_lines(transcript: Transcript, *, width: int | None = None) -> Iterator[Line]:
    """Yield the findings of a transcript, in their order."""
    several = len({capture.server for capture in transcript.captures}) > 1
    for finding in transcript.findings:
        server = safe_text(transcript.captures[finding.capture].server) if several else ""
        yield _heading(finding, server)
        yield from sentences(finding, width)


def row_finding_lines(transcript: Transcript, row: Numbered, *, width: int | None = None) -> Iterator[Line]:
    """Yield the findings about one row."""
    for finding in transcript.findings:
        if finding.row == row.row and finding.capture == row.capture:
            yield _heading(replace(finding, row=None), "")
            yield from sentences(finding, width)


def sentences(finding: Finding, width: int | None) -> Iterator[Line]:
    """Yield the sentences of a finding: what happened, and what to do."""
    for sentence, style in ((one_line(finding.what), ""), (one_line(finding.advice), "dim")):
        limit = None if width is None else width - len(INDENT)
        for part in [sentence] if limit is None else wrapped(sentence, max(limit, 1), MAX_LINES):
            if part:
                yield [(INDENT, ""), (part, style)]


def _heading(finding: Finding, server: str) -> Line:
    where = [server] if server else []
    where += [f"row {finding.row}"] if finding.row is not None else []
    where += [f"×{finding.count}"] if finding.count > 1 else []
    line: Line = [("⚑ ", STYLES[finding.severity]), (safe_text(finding.rule), STYLES[finding.severity])]
    return [*line, ("  " + ", ".join(where), "dim")] if where else line

"""Findings as lines: what is wrong, where, and what to do. All are shown; there is one for each rule and culprit."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from ...transcript.findings.finders import imported_rules
from ...transcript.findings.rule import Finding, Severity
from ...transcript.findings.words import listed
from ...transcript.model import Numbered, Transcript
from ..text.cells import wrapped
from ..text.escape import one_line, safe_text
from ..text.line import Line, Piece, fitted, line_cells

STYLES = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.NOTE: "dim"}

INDENT = "    "
MAX_LINES = 4
"""The most lines that a sentence takes on a screen."""
SENTENCE_LETTERS = 600
"""The most letters of a sentence, which may quote a line of a log in full."""

MAX_ROWS = 5
"""The most rows of one finding that are named; more are counted."""


def finding_lines(transcript: Transcript, *, width: int | None = None) -> Iterator[Line]:
    """Yield the findings of a transcript, in their order."""
    several = len({capture.server for capture in transcript.captures}) > 1
    for finding in transcript.findings:
        server = safe_text(transcript.captures[finding.capture].server) if several else ""
        yield from _finding(finding, server, width)


def row_finding_lines(transcript: Transcript, row: Numbered, *, width: int | None = None) -> Iterator[Line]:
    """Yield the findings about one row."""
    for finding in transcript.findings:
        if row.row in finding.rows:
            yield from _finding(replace(finding, rows=()), "", width)


def _finding(finding: Finding, server: str, width: int | None) -> Iterator[Line]:
    where = [safe_text(finding.hop)] if finding.hop else [server] if server else []
    where += [rows_words(finding.rows)] if finding.rows else []
    where += [f"×{finding.count}"] if finding.count > 1 else []
    style = STYLES[finding.severity]
    facts = "  ".join([safe_text(finding.rule), *([", ".join(where)] if where else [])])
    yield from titled([("⚑ ", style), (rule_title(finding.rule), style)], [facts], width)
    yield from sentence_lines(((finding.what, ""), (finding.advice, "dim")), width, MAX_LINES)


def rows_words(rows: Sequence[int]) -> str:
    """Name the first of these rows and count the others: `rows 2, 5 and 40 more`."""
    return f"{'row' if len(rows) == 1 else 'rows'} {listed(map(str, rows), MAX_ROWS)}"


def rule_title(name: str) -> str:
    """Return the title of a rule."""
    title = next((rule.title for rule in imported_rules() if rule.name == name), "")
    if not title:
        from ...transcript.findings.registry import RULES  # imports all rules, which takes 40 ms

        title = RULES[name].title
    return title


def titled(head: Line, facts: Sequence[str], width: int | None) -> Iterator[Line]:
    """Yield a title and its facts on one line, or the facts below it. `facts` are the same words, longer and shorter."""
    line: Line = [*head, (f"  {facts[0]}", "dim")]
    if width is None or line_cells(line) <= width:
        yield line
        return
    yield fitted(head, width)
    below: list[Line] = [[(INDENT, ""), (text, "dim")] for text in facts]
    yield fitted(next((line for line in below if line_cells(line) <= width), below[-1]), width)


def sentence_lines(sentences: Iterable[Piece], width: int | None, max_lines: int) -> Iterator[Line]:
    """Yield captured sentences indented, each in its style, on at most `max_lines` lines."""
    for sentence, style in sentences:
        for part in wrapped(one_line(sentence, SENTENCE_LETTERS), None if width is None else width - len(INDENT), max_lines):
            if part:
                yield [(INDENT, ""), (part, style)]

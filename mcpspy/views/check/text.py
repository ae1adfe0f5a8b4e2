"""A check for people: all findings by culprit, the worst first, each with what happened, who is to blame and what to do.

The last line has the totals.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ...transcript.findings.rule import Finding, Severity
from ...transcript.offers.baseline import ACCEPTED, Baseline, canonical
from ...transcript.offers.definitions import DefinitionKind
from ...transcript.stats.outcomes import outcomes
from ..text.cells import wrapped
from ..text.escape import one_line, safe_text
from ..text.line import Line, fitted, joined, line_cells
from ..text.units import counted, seconds
from ..timeline.findings import STYLES
from ..timeline.summary import shown_captures
from .model import WORST_FIRST, CheckResult, culprit_name, is_at_least, worst_first

INDENT = "    "
MAX_LINES = 6
"""A sentence takes so many lines at most."""

_BETWEEN = (" · ", "dim")


def check_lines(check: CheckResult, *, width: int | None = None) -> Iterator[Line]:
    """Show all findings and the totals, or the totals alone if there are none."""
    groups: dict[str, list[Finding]] = {}
    for finding in worst_first(check.findings):
        groups.setdefault(culprit_name(check, finding), []).append(finding)
    for name, findings in groups.items():
        yield fitted([(safe_text(name), "strong"), (": ", "dim"), (_counts_text(findings), "dim")], width)
        for finding in findings:
            yield from _heading(check, finding, width)
            yield from _sentences(finding, width)
        yield []
    yield fitted(_totals(check), width)


def _heading(check: CheckResult, finding: Finding, width: int | None) -> Iterator[Line]:
    """Give severity and title; rule, place, time and count follow on the same line, or on the next where there is no room.

    There the folder of a path is left out, if it has to be.
    """
    at_ns = finding.at_ns if check.address else finding.at_ns - check.capture(finding).shift_ns
    when = [f"{seconds(at_ns)} s", *([f"×{finding.count:,}"] if finding.count > 1 else [])]
    title = check.rules[finding.rule].title
    head: Line = [("  ", ""), (f"{finding.severity.value:7} ", STYLES[finding.severity]), (title, "strong")]
    facts = ["  ".join([finding.rule, place, *when]) for place in _places(check, finding)]
    line: Line = [*head, (f"  {facts[0]}", "dim")]
    if width is None or line_cells(line) <= width:
        yield line
        return
    yield fitted(head, width)
    below: list[Line] = [[(INDENT, ""), (text, "dim")] for text in facts]
    yield fitted(next((line for line in below if line_cells(line) <= width), below[-1]), width)


def _places(check: CheckResult, finding: Finding) -> list[str]:
    """Give the place of a finding, long and short: an address that `mcpspy show` takes, or else the file and its line."""
    if finding.row is not None and check.address:
        return [safe_text(f"{check.address}:{finding.row}")]
    path, line = check.path(finding), check.line(finding)
    return [safe_text(f"{name}, line {line}") for name in (path, path.rpartition("/")[2])]


def _sentences(finding: Finding, width: int | None) -> Iterator[Line]:
    limit = None if width is None else max(width - len(INDENT), 1)
    for words, style in ((finding.what, ""), (finding.blame, "dim"), (f"→ {finding.advice}", "")):
        text = one_line(words)
        for part in [text] if limit is None else wrapped(text, limit, MAX_LINES):
            if part:
                yield [(INDENT, ""), (part, style)]


def _totals(check: CheckResult) -> Line:
    calls = counted(outcomes(check.transcript).total(), "call")
    models = len(check.transcript.model_calls)
    calls += f" and {counted(models, 'model call')}" if models else ""
    captures = counted(len(shown_captures(check.transcript, check.since)), "capture")
    where = f"in {calls} of {captures} {check.since}".rstrip()
    if not check.findings:
        return [("✓ ", "good"), ("nothing found", "strong"), (f" {where}", "dim")]
    sign: Line = [("✗ ", "bad")] if check.failed else [("✓ ", "good")]
    counts = check.counts
    parts: list[Line] = [
        [(_counted(counts[severity], severity), STYLES[severity])] for severity in WORST_FIRST if counts[severity]
    ]
    parts.append([(where, "dim")])
    if not check.failed:
        parts.append([(f"none is as bad as {_article(check.fail_on)}", "dim")])
    return [*sign, *joined(parts, _BETWEEN)]


def _article(severity: Severity) -> str:
    return f"a {severity.value}" if severity is Severity.WARNING else f"an {severity.value}"


def _counts_text(findings: list[Finding]) -> str:
    counts = Counter(finding.severity for finding in findings)
    return ", ".join(_counted(counts[severity], severity) for severity in WORST_FIRST if counts[severity])


def _counted(count: int, severity: Severity) -> str:
    return counted(count, "note" if severity is Severity.INFO else severity.value)


def next_lines(check: CheckResult, width: int | None = None) -> list[Line]:
    """Name the next commands, after an empty line: one for the worst finding's row, one for its rule."""
    findings = worst_first(check.findings)
    if not findings:
        return []
    commands = [(f"mcpspy check --explain {findings[0].rule}", "explains this rule")]
    row = next((finding.row for finding in findings if finding.row is not None), None)
    if row is not None and check.address:
        commands.insert(0, (f"mcpspy show {_quoted(f'{check.address}:{row}')}", "shows this call in full"))
    if not is_at_least(findings[0].severity, Severity.WARNING):
        commands = commands[:1]
    longest = max(len(command) for command, _ in commands)
    return [
        [],
        *(fitted([(safe_text(command.ljust(longest)), "strong"), (f"   {why}", "dim")], width) for command, why in commands),
    ]


def _quoted(text: str) -> str:
    from shlex import quote

    return quote(text)


# --- What `mcpspy check --accept` wrote down ---

MAX_ACCEPTED_NAMES = 5
"""The number of tools, prompts or templates that are named in one line; of more, the count is shown."""

MAX_NAME_LETTERS = 80


def accepted_lines(written: Mapping[str, tuple[str, Baseline]], before: Mapping[str, Baseline]) -> Iterator[str]:
    """Yield a line for each server, by label. `written` has the file and its new baseline, `before` the old baselines."""
    for label, (path, baseline) in written.items():
        changes = _baseline_changes(before.get(label), baseline)
        yield f"mcpspy: accepted {safe_text(label[:MAX_NAME_LETTERS])}: {changes}; see {safe_text(path)}"
    if not written:
        yield "mcpspy: nothing to accept: the captures hold no complete list of tools, prompts or templates, and no instructions"


def _baseline_changes(before: Baseline | None, now: Baseline) -> str:
    changes: list[str] = []
    for part in ACCEPTED:
        old = before.by_kind.get(part, {}) if before else {}
        new = now.by_kind.get(part, {})
        changes += _part_changes(part, old, new)
    return ", ".join(changes) or "nothing changed"


def _part_changes(part: DefinitionKind, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    added = [name for name in new if name not in old]
    removed = [name for name in old if name not in new]
    changed = [name for name in new if name in old and canonical(new[name]) != canonical(old[name])]
    for verb, names in (("added", added), ("changed", changed), ("removed", removed)):
        if names and part is DefinitionKind.INSTRUCTIONS:
            yield f"instructions {verb}"
        elif names:
            listed = ", ".join(safe_text(name[:MAX_NAME_LETTERS]) for name in names[:MAX_ACCEPTED_NAMES])
            more = f" and {len(names) - MAX_ACCEPTED_NAMES} more" if len(names) > MAX_ACCEPTED_NAMES else ""
            yield f"{counted(len(names), part.value)} {verb} ({listed}{more})"

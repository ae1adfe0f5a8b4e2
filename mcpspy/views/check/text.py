"""A check for people: the findings by culprit, the worst first, each with what happened, whose fault it is and what to do.

Below stand the totals. Refuses to leave out a finding.
"""

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
from .model import WORST_FIRST, Checked, culprit_name, is_at_least, worst_first

INDENT = "    "
MAX_LINES = 6
"""So many lines a sentence may take on a screen."""

_BETWEEN = (" · ", "dim")


def check_lines(checked: Checked, *, width: int | None = None) -> Iterator[Line]:
    """All of it; the totals alone where there is nothing."""
    groups: dict[str, list[Finding]] = {}
    for finding in worst_first(checked.findings):
        groups.setdefault(culprit_name(checked, finding), []).append(finding)
    for name, findings in groups.items():
        yield fitted([(safe_text(name), "strong"), (": ", "dim"), (_counts_text(findings), "dim")], width)
        for finding in findings:
            yield from _heading(checked, finding, width)
            yield from _sentences(finding, width)
        yield []
    yield fitted(_totals(checked), width)


def _heading(checked: Checked, finding: Finding, width: int | None) -> Iterator[Line]:
    """Give severity and title; rule, place, time and count follow on the same line, or on the next where there is no room.

    There the folder of a path is left out, if it has to be.
    """
    at_ns = finding.at_ns if checked.address else finding.at_ns - checked.source(finding).shift_ns
    when = [f"{seconds(at_ns)} s", *([f"×{finding.count:,}"] if finding.count > 1 else [])]
    title = checked.rules[finding.rule].title
    head: Line = [("  ", ""), (f"{finding.severity.value:7} ", STYLES[finding.severity]), (title, "strong")]
    facts = ["  ".join([finding.rule, place, *when]) for place in _places(checked, finding)]
    line: Line = [*head, (f"  {facts[0]}", "dim")]
    if width is None or line_cells(line) <= width:
        yield line
        return
    yield fitted(head, width)
    below: list[Line] = [[(INDENT, ""), (text, "dim")] for text in facts]
    yield fitted(next((line for line in below if line_cells(line) <= width), below[-1]), width)


def _places(checked: Checked, finding: Finding) -> list[str]:
    """Where to look, the long way and the short one: an address that `mcpspy show` takes; else the file and its line."""
    if finding.row is not None and checked.address:
        return [safe_text(f"{checked.address}:{finding.row}")]
    path, line = checked.path(finding), checked.line(finding)
    return [safe_text(f"{one}, line {line}") for one in (path, path.rpartition("/")[2])]


def _sentences(finding: Finding, width: int | None) -> Iterator[Line]:
    limit = None if width is None else max(width - len(INDENT), 1)
    for words, style in ((finding.what, ""), (finding.blame, "dim"), (f"→ {finding.advice}", "")):
        text = one_line(words)
        for part in [text] if limit is None else wrapped(text, limit, MAX_LINES):
            if part:
                yield [(INDENT, ""), (part, style)]


def _totals(checked: Checked) -> Line:
    calls = counted(outcomes(checked.transcript).total(), "call")
    models = len(checked.transcript.model_calls)
    calls += f" and {counted(models, 'model call')}" if models else ""
    captures = counted(len(shown_captures(checked.transcript, checked.since)), "capture")
    where = f"in {calls} of {captures} {checked.since}".rstrip()
    if not checked.findings:
        return [("✓ ", "good"), ("nothing found", "strong"), (f" {where}", "dim")]
    sign: Line = [("✗ ", "bad")] if checked.failed else [("✓ ", "good")]
    counts = checked.counts
    parts: list[Line] = [[(_counted(counts[one], one), STYLES[one])] for one in WORST_FIRST if counts[one]]
    parts.append([(where, "dim")])
    if not checked.failed:
        parts.append([(f"none is as bad as {_article(checked.fail_on)}", "dim")])
    return [*sign, *joined(parts, _BETWEEN)]


def _article(severity: Severity) -> str:
    return f"a {severity.value}" if severity is Severity.WARNING else f"an {severity.value}"


def _counts_text(findings: list[Finding]) -> str:
    counts = {one: sum(finding.severity is one for finding in findings) for one in WORST_FIRST}
    return ", ".join(_counted(count, one) for one, count in counts.items() if count)


def _counted(count: int, severity: Severity) -> str:
    return counted(count, "note" if severity is Severity.INFO else severity.value)


def next_lines(checked: Checked, width: int | None = None) -> list[Line]:
    """Name the next commands, after an empty line: one for the worst finding's row, one for its rule."""
    found = worst_first(checked.findings)
    if not found:
        return []
    commands = [(f"mcpspy check --explain {found[0].rule}", "explains this rule")]
    row = next((one.row for one in found if one.row is not None), None)
    if row is not None and checked.address:
        commands.insert(0, (f"mcpspy show {_quoted(f'{checked.address}:{row}')}", "shows this call in full"))
    if not is_at_least(found[0].severity, Severity.WARNING):
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
        old = before.parts.get(part, {}) if before else {}
        new = now.parts.get(part, {})
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

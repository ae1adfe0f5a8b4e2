"""A check for people: all findings by culprit, the worst first, each with what happened, who is to blame and what to do.

The last line has the totals.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

from ...transcript.absent_facts import ABSENT
from ...transcript.definitions import ACCEPTED, Baseline, DefinitionKind, canonical
from ...transcript.findings.rule import WORST_FIRST, Finding, Severity, is_at_least
from ...transcript.outcome import Outcome
from ...transcript.stats.outcomes import Troubles, outcomes, troubles
from ..text.cells import wrapped
from ..text.escape import safe_text
from ..text.hint import command_lines
from ..text.line import Line, fitted
from ..text.units import counted, seconds
from ..timeline.findings import STYLES, rows_words, sentence_lines, titled
from ..timeline.summary import (
    FAILURES,
    headline,
    outcome_counts,
    session_sign,
    shown_captures,
    trouble_counts,
    unchecked_counts,
)
from .model import CheckResult, culprit_name, worst_first

MAX_LINES = 6
"""A sentence takes so many lines at most."""

MOST_NAMED = 4
"""So many rules that cannot run on an imported file are named."""


def check_lines(check: CheckResult, *, width: int | None = None) -> Iterator[Line]:
    """Show all findings and the totals, or the totals alone if there are none."""
    groups: dict[str, list[Finding]] = {}
    for finding in worst_first(check.findings):
        groups.setdefault(culprit_name(check, finding), []).append(finding)
    for name, findings in groups.items():
        yield fitted([(safe_text(name), "strong"), (": ", "dim"), (_counts_text(findings), "dim")], width)
        for finding in findings:
            yield from _heading(check, finding, width)
            sentences = ((finding.what, ""), (finding.blame, "dim"), (f"→ {finding.advice}", ""))
            yield from sentence_lines(sentences, width, MAX_LINES)
        yield []
    yield from _totals(check, width)


def _heading(check: CheckResult, finding: Finding, width: int | None) -> Iterator[Line]:
    """Give severity and title; rule, place, time and count follow on the same line, or on the next where there is no room.

    There the folder of a path is left out, if it has to be.
    """
    at_ns = finding.at_ns if check.address else finding.at_ns - check.capture(finding).shift_ns
    when = [f"{seconds(at_ns)} s", *([f"×{finding.count:,}"] if finding.count > 1 else [])]
    when += [rows_words(finding.rows)] if len(finding.rows) > 1 else []
    when += [safe_text(finding.hop)] if finding.hop else []
    title = check.rules[finding.rule].title
    head: Line = [("  ", ""), (f"{finding.severity.value:7} ", STYLES[finding.severity]), (title, "strong")]
    facts = ["  ".join([finding.rule, place, *when]) for place in _places(check, finding)]
    yield from titled(head, facts, width)


def _places(check: CheckResult, finding: Finding) -> list[str]:
    """Give the place of a finding, long and short: an address that `mcpspy show` takes, or else the file and its line.

    The lines of an imported file are not those of its capture, so only the file is named.
    """
    if finding.row is not None and check.address:
        return [safe_text(f"{check.address}:{finding.row}")]
    path = check.path(finding)
    line = "" if check.line(finding) is None else f", line {check.line(finding)}"
    return [safe_text(f"{name}{line}") for name in (path, path.rpartition("/")[2])]


def _totals(check: CheckResult, width: int | None) -> list[Line]:
    calls = outcomes(check.transcript)
    model_calls = Counter(call.outcome for call in check.transcript.model_calls)
    words = counted(calls.total(), "call")
    words += f" and {counted(model_calls.total(), 'model call')}" if model_calls else ""
    captures = counted(len(shown_captures(check.transcript, check.since)), "capture")
    where = f"in {words} of {captures} {check.since}".rstrip()
    trouble = troubles(check.transcript)
    unwell = _unwell(calls, model_calls, trouble)
    sign = session_sign(calls, model_calls, trouble, check.counts.keys(), check.fail_on)
    unwell += unchecked_counts(check.unchecked)
    reasons = list(_unchecked_lines(check, width))
    if not check.findings:
        return [*headline(sign, [[("nothing found", "strong"), (f" {where}", "dim")], *unwell], width), *reasons]
    counts = check.counts
    parts: list[Line] = [
        [(counted(counts[severity], severity), STYLES[severity])] for severity in WORST_FIRST if counts[severity]
    ]
    parts.append([(where, "dim")])
    parts += unwell
    if not check.failed:
        article = "an" if check.fail_on is Severity.ERROR else "a"
        parts.append([(f"none is as bad as {article} {check.fail_on}", "dim")])
    return [*headline(sign, parts, width), *reasons]


def _unchecked_lines(check: CheckResult, width: int | None) -> Iterator[Line]:
    """Yield the reasons why rules did not look at everything. Those of many rules that did not run at all are one sentence."""
    absent = [unchecked for unchecked in check.unchecked if unchecked.reason.startswith(ABSENT)]
    is_short = len({rule for unchecked in absent for rule in unchecked.rules}) <= MOST_NAMED
    if not is_short:
        words = f"{ABSENT}{', '.join(unchecked.reason.removeprefix(ABSENT) for unchecked in absent)}; --json lists the rules"
        yield from ([("  ", ""), (part, "dim")] for part in wrapped(words, None if width is None else width - 2, MAX_LINES))
    for unchecked in check.unchecked if is_short else (other for other in check.unchecked if other not in absent):
        names = ", ".join(unchecked.rules) or "all rules"
        words = f"{names}: {unchecked.reason}" if unchecked.did_run else f"{names} did not run: {unchecked.reason}"
        for part in wrapped(words, None if width is None else width - 2, MAX_LINES):
            yield [("  ", ""), (part, "dim")]


def _unwell(calls: Counter[Outcome], model_calls: Counter[Outcome], trouble: Troubles) -> list[Line]:
    """Count what failed, was given up, waits, was refused, ended by force or cut; empty where all went as it should."""
    counts = Counter({outcome: calls[outcome] for outcome in (*FAILURES, Outcome.PENDING)})
    parts = outcome_counts(counts + model_calls)
    parts += [[(counted(trouble.refused_calls, "refused call"), "warn")]] if trouble.refused_calls else []
    return parts + trouble_counts(trouble)


def _counts_text(findings: list[Finding]) -> str:
    counts = Counter(finding.severity for finding in findings)
    return ", ".join(counted(counts[severity], severity) for severity in WORST_FIRST if counts[severity])


def next_lines(check: CheckResult, width: int | None = None) -> list[Line]:
    """Name the next commands, after an empty line: one for the worst finding's row, one for its rule."""
    findings = worst_first(check.findings)
    if not findings:
        return []
    commands = [(f"mcpspy check --explain {findings[0].rule}", "explains this rule")]
    row = next((finding.row for finding in findings if finding.row is not None), None)
    if row is not None and check.address:
        commands.insert(0, (f"mcpspy show {quote(f'{check.address}:{row}')}", "shows this call in full"))
    if not is_at_least(findings[0].severity, Severity.WARNING):
        commands = commands[:1]
    return command_lines(commands, width)


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

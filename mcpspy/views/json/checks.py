"""Checks and trials as JSON for programs: docs/json.md describes every field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...replay.trial import Expectations, TrialResult
from ...transcript.findings.rule import WORST_FIRST, Finding, Rule
from ...transcript.stats.outcomes import outcomes
from ..check.model import CheckResult, culprit_name
from ..text.json_text import SCHEMA, with_lines
from .rows import capture_object, finding_object, unchecked_object


def check_json(check: CheckResult) -> str:
    """Return one object, with a finding per line."""
    captures = [{**capture_object(capture), "path": check.paths.get(capture.index)} for capture in check.transcript.captures]
    counts = {severity.value: check.counts[severity] for severity in WORST_FIRST}
    summary = {
        "calls": outcomes(check.transcript).total(),
        "findings": len(check.findings),
        **counts,
        "rules": len(check.rules),
        "unchecked": list(map(unchecked_object, check.unchecked)),
        "fail_on": check.fail_on.value,
        "failed": check.failed,
    }
    since = {} if check.since_wall_ns is None else {"since_wall_ns": check.since_wall_ns}
    head = {"schema": SCHEMA, "captures": captures, "summary": summary, **since}
    return with_lines(head, "findings", [_finding(check, finding) for finding in check.findings])


def rules_json(rules: Iterable[Rule]) -> str:
    """Return the texts of rules as one object, with a rule per line."""
    texts = [{name: str(getattr(rule, name)) for name in rule.__struct_fields__} for rule in rules]
    return with_lines({"schema": SCHEMA}, "rules", texts)


def _finding(check: CheckResult, finding: Finding) -> dict[str, Any]:
    rule = check.rules[finding.rule]
    return {
        **finding_object(finding),
        "title": rule.title,
        "family": rule.family.value,
        "culprit_name": culprit_name(check, finding),
        "path": check.path(finding),
        "line": check.line(finding),
    }


def trials_json(results: Sequence[TrialResult], expected: Expectations | None, facts: Mapping[str, Any], *, status: int) -> str:
    """Return one object, with a trial per line; `facts` say what was tried, and how."""
    head = {"schema": SCHEMA, "exit": status, **facts}
    return with_lines(head, "trials", (_trial(result, expected) for result in results))


def _trial(result: TrialResult, expected: Expectations | None) -> dict[str, Any]:
    return {
        "fault": result.fault,
        "what": result.words,
        "outcome": result.judgement.outcome.value,
        "after_ns": result.judgement.after_ns,
        "more": result.judgement.more or None,
        "expected": None if expected is None else expected.get(result.fault),
        "status": result.end.status,
        "took_ns": result.end.took_ns,
        "captures": result.captures,
        "log": result.log,
    }

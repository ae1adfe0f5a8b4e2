"""Trials as JSON for programs: docs/json.md describes every field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...replay.trial.result import Expectations, TrialResult
from ..text.json_text import SCHEMA, with_lines


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

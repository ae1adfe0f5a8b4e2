"""Trials as a table, and as JUnit XML: one line, or test case, for each fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from ...replay.trial import Expectations, TrialOutcome, TrialResult
from ..check.formats import xml_text, xml_value
from ..text.escape import safe_text
from ..text.line import Line, fitted
from ..text.units import counted, duration

_STYLES: Final = {
    TrialOutcome.WENT_ON: "good", TrialOutcome.ASKED_AGAIN: "good", TrialOutcome.REFUSED: "good", TrialOutcome.NOT_REACHED: "dim",
    TrialOutcome.HUNG: "bad", TrialOutcome.CRASHED: "bad", TrialOutcome.LOST_CALLS: "bad", TrialOutcome.NEVER_CAME_BACK: "bad",
}  # fmt: skip


def trial_lines(
    results: Sequence[TrialResult], expected: Expectations | None, bad: Collection[TrialOutcome], width: int | None
) -> Iterator[Line]:
    """Yield a summary, and a line for each trial; `expected` are the outcomes that are fine, else all that are not `bad`."""
    failed = [result for result in results if not result.is_fine(expected, bad)]
    counts = Counter(result.judgement.outcome for result in results)
    parts = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    sign: tuple[str, str] = ("✗ ", "bad") if failed else ("✓ ", "good")
    yield fitted([sign, (counted(len(results), "trial"), "strong"), (f" · {parts}", "")], width)
    yield []
    names = max((len(result.fault) for result in results), default=0)
    outcomes = max((len(outcome_words(result)) for result in results), default=0)
    for result in results:
        mark = "  " if result.is_fine(expected, bad) else "✗ "
        line: Line = [(mark, "bad"), (f"{result.fault:<{names}}  ", "strong")]
        line.append((f"{outcome_words(result):<{outcomes}}  ", _STYLES.get(result.judgement.outcome, "")))
        details = [result.judgement.more, expected_words(result, expected, bad), result.words]
        line.append((", ".join(filter(None, details[:2])), "warn" if mark.strip() else "dim"))
        line.append((f"{'  ' if any(details[:2]) else ''}({result.words})", "dim"))
        yield fitted(line, width)
    folder = next((capture.rpartition("/")[0] for result in results for capture in result.captures), "")
    if folder:
        yield []
        yield fitted([("captures: ", "dim"), (safe_text(folder), ""), ("/FAULT.mcpspy", "dim")], width)


def outcome_words(result: TrialResult) -> str:
    """Say what the peer did: `gave up after 60.0 s`."""
    after_ns = result.judgement.after_ns
    return f"{result.judgement.outcome}{'' if after_ns is None else f' after {duration(after_ns)}'}"


def expected_words(result: TrialResult, expected: Expectations | None, bad: Collection[TrialOutcome]) -> str:
    """Say what was expected; empty if that is what happened."""
    if expected is None or result.is_fine(expected, bad):
        return ""
    return f"expected: {' or '.join(expected[result.fault])}"


def trial_junit_lines(
    results: Sequence[TrialResult], expected: Expectations | None, bad: Collection[TrialOutcome], peer: str
) -> Iterator[str]:
    """Yield the document: a test case for each fault, which fails if the outcome is not fine."""
    failed = sum(not result.is_fine(expected, bad) for result in results)
    seconds = sum(result.end.took_ns for result in results) / 1e9
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="mcpspy trial" tests="{len(results)}" failures="{failed}" errors="0">'
    yield (
        f'  <testsuite name={xml_value(peer)} tests="{len(results)}" failures="{failed}" errors="0" skipped="0" time="{seconds:.3f}">'
    )
    for result in results:
        head = f'    <testcase name="{result.fault}" classname="mcpspy.trial" time="{result.end.took_ns / 1e9:.3f}"'
        details = ", ".join(filter(None, (outcome_words(result), result.judgement.more, *result.captures)))
        message = ", ".join(filter(None, (outcome_words(result), result.judgement.more, expected_words(result, expected, bad))))
        if result.is_fine(expected, bad):
            yield f"{head}><system-out>{xml_text(safe_text(details))}</system-out></testcase>"
        else:
            yield f"{head}><failure type={xml_value(result.judgement.outcome)} message={xml_value(message)}>"
            yield f"{xml_text(safe_text(details))}</failure></testcase>"
    yield "  </testsuite>"
    yield "</testsuites>"

"""A check as JUnit XML: a test suite for each capture, and in it a test case for each rule, which fails with its findings.

A finding below the limit is in the output of a case that passes. The format is what Jenkins and GitLab read: tests/views/junit.xsd
has its schema. XML has no escape for most control characters, so all captured text is made safe first.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from ...transcript.findings.rule import Finding, Rule, is_at_least
from ...transcript.model import CaptureInfo
from ..text.escape import safe_text
from ..timeline.findings import rows_words
from .model import CheckResult, culprit_name

_XML_SIGNS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
"""The escapes of `xml.sax.saxutils`, without its import of urllib (17 ms, CPython 3.11)."""


def junit_lines(check: CheckResult) -> Iterator[str]:
    """Write the document, line by line."""
    cases = len(check.rules) * len(check.transcript.captures)
    failures = len({(finding.capture, finding.rule) for finding in check.findings if _fails(check, finding)})
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="mcpspy check" tests="{cases}" failures="{failures}" errors="0">'
    for capture in check.transcript.captures:
        yield from _suite(check, capture)
    yield "</testsuites>"


def _suite(check: CheckResult, capture: CaptureInfo) -> Iterator[str]:
    by_rule: dict[str, list[Finding]] = {}
    for finding in check.findings:
        if finding.capture == capture.index:
            by_rule.setdefault(finding.rule, []).append(finding)
    failures = sum(any(_fails(check, finding) for finding in findings) for findings in by_rule.values())
    path = check.paths.get(capture.index, "capture")
    yield (
        f'  <testsuite name={xml_value(capture.server)} tests="{len(check.rules)}" failures="{failures}" errors="0" skipped="0"'
        f' time="{capture.last_ns / 1e9:.3f}"{_timestamp(capture)} file={xml_value(path)}>'
    )
    for rule in check.rules.values():
        yield from _case(check, rule, by_rule.get(rule.name, []), path)
    yield "  </testsuite>"


def _case(check: CheckResult, rule: Rule, findings: list[Finding], path: str) -> Iterator[str]:
    head = f'    <testcase name="{rule.name}" classname="mcpspy.{rule.family}" time="0" file={xml_value(path)}'
    if not findings:
        yield f"{head}/>"
        return
    line = check.line(findings[0])
    yield f"{head}>" if line is None else f'{head} line="{line}">'
    text = "\n\n".join(_description(check, finding) for finding in findings)
    failing = [finding for finding in findings if _fails(check, finding)]
    if failing:
        yield f'      <failure type="{failing[0].severity.value}" message={xml_value(failing[0].what)}>{xml_text(text)}</failure>'
    else:
        yield f"      <system-out>{xml_text(text)}</system-out>"
    yield "    </testcase>"


def _description(check: CheckResult, finding: Finding) -> str:
    row = f", {rows_words(finding.rows)}" if finding.rows else ""
    times = f", {finding.count} times" if finding.count > 1 else ""
    place = f"{check.place(finding)}{row}{times}"
    sentences = (
        f"{finding.severity.value}: {finding.what}",
        f"{culprit_name(check, finding)}: {finding.blame}",
        finding.advice,
    )
    return "\n".join(map(safe_text, (place, *sentences)))


def _fails(check: CheckResult, finding: Finding) -> bool:
    return is_at_least(finding.severity, check.fail_on)


def _timestamp(capture: CaptureInfo) -> str:
    """Write the time when the capture began, in UTC, as an attribute; nothing where that is not known."""
    if capture.header is None:
        return ""
    try:
        began = datetime.fromtimestamp(capture.header.wall_ns // 1_000_000_000, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return f' timestamp="{began:%Y-%m-%dT%H:%M:%S}"'


def xml_value(text: str) -> str:
    """Write an attribute's value, in quotation marks."""
    return f'"{xml_text(safe_text(text))}"'


def xml_text(text: str) -> str:
    """Escape what is markup in XML."""
    return text.translate(_XML_SIGNS)

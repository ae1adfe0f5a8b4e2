"""A check as JUnit XML: a test suite for each capture, a test case for each rule, which fails with what it found.

A finding below the limit is told in the output of a case that passes. Source of the format: what Jenkins and GitLab read, written
down in tests/views/junit.xsd. XML has no escape for most control characters, so all captured text is made safe first.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from ...transcript.findings.rule import Finding, Rule
from ...transcript.model import CaptureInfo
from ..text.escape import safe_text
from .model import Checked, culprit_name, is_at_least

_XML_SIGNS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
"""What `xml.sax.saxutils` escapes too, at the price of importing urllib (17 ms, CPython 3.11)."""


def junit_lines(checked: Checked) -> Iterator[str]:
    """The document, line by line."""
    cases = len(checked.rules) * len(checked.transcript.captures)
    failures = len({(one.capture, one.rule) for one in checked.findings if is_at_least(one.severity, checked.fail_on)})
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="mcpspy check" tests="{cases}" failures="{failures}" errors="0">'
    for source in checked.transcript.captures:
        yield from _suite(checked, source)
    yield "</testsuites>"


def _suite(checked: Checked, source: CaptureInfo) -> Iterator[str]:
    found: dict[str, list[Finding]] = {}
    for one in checked.findings:
        if one.capture == source.index:
            found.setdefault(one.rule, []).append(one)
    failures = sum(any(is_at_least(one.severity, checked.fail_on) for one in some) for some in found.values())
    path = checked.paths.get(source.index, "capture")
    yield (
        f'  <testsuite name={_value(source.server)} tests="{len(checked.rules)}" failures="{failures}" errors="0" skipped="0"'
        f' time="{source.last_ns / 1e9:.3f}"{_began(source)} file={_value(path)}>'
    )
    for rule in checked.rules.values():
        yield from _case(checked, rule, found.get(rule.name, []), path)
    yield "  </testsuite>"


def _case(checked: Checked, rule: Rule, findings: list[Finding], path: str) -> Iterator[str]:
    head = f'    <testcase name="{rule.name}" classname="mcpspy.{rule.family}" time="0" file={_value(path)}'
    if not findings:
        yield f"{head}/>"
        return
    yield f'{head} line="{checked.line(findings[0])}">'
    text = "\n\n".join(_told(checked, one) for one in findings)
    failing = [one for one in findings if is_at_least(one.severity, checked.fail_on)]
    if failing:
        yield f'      <failure type="{failing[0].severity.value}" message={_value(failing[0].what)}>{_text(text)}</failure>'
    else:
        yield f"      <system-out>{_text(text)}</system-out>"
    yield "    </testcase>"


def _told(checked: Checked, finding: Finding) -> str:
    row = f", row {finding.row}" if finding.row is not None else ""
    times = f", {finding.count} times" if finding.count > 1 else ""
    place = f"{checked.path(finding)}:{checked.line(finding)}{row}{times}"
    sentences = (
        f"{finding.severity.value}: {finding.what}",
        f"{culprit_name(checked, finding)}: {finding.blame}",
        finding.advice,
    )
    return "\n".join(safe_text(one) for one in (place, *sentences))


def _began(source: CaptureInfo) -> str:
    """When the capture began, in UTC, as an attribute; nothing where that is not known."""
    if source.header is None:
        return ""
    try:
        began = datetime.fromtimestamp(source.header.wall_ns // 1_000_000_000, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return f' timestamp="{began:%Y-%m-%dT%H:%M:%S}"'


def _value(text: str) -> str:
    """An attribute's value with its quotation marks."""
    return f'"{_text(safe_text(text))}"'


def _text(text: str) -> str:
    return text.translate(_XML_SIGNS)

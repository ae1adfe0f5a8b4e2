"""A check for other programs: as workflow commands of GitHub Actions, as JUnit XML, and as SARIF 2.1.0.

GitHub annotates a line of the capture for each finding. In its commands (docs.github.com, workflow commands) data escapes `%`,
CR and LF; properties also `:` and `,`.
JUnit XML has a test suite for each capture, and in it a test case for each rule, which fails with its findings; a finding below
the limit is in the output of a case that passes. The format is what Jenkins and GitLab read: tests/views/junit.xsd has its
schema. XML has no escape for most control characters, so all captured text is made safe first.
SARIF (OASIS, Static Analysis Results Interchange Format) is what code scanning and editors read: the rules, and a result for each
finding. A location is the line of the record in its capture.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from ...transcript.findings.rule import Finding, Rule, Severity, is_at_least
from ...transcript.model import CaptureInfo
from ..text.escape import json_text, safe_text
from ..timeline.findings import rows_words
from .model import CheckResult, culprit_name, worst_first
from .rules import rule_markdown

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}

_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})

_XML_SIGNS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
"""The escapes of `xml.sax.saxutils`, without its import of urllib (17 ms, CPython 3.11)."""

SCHEMA_URL = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def github_lines(check: CheckResult) -> Iterator[str]:
    """Write a line for each finding, the worst first: GitHub shows ten of each kind."""
    for finding in worst_first(check.findings):
        yield _command(check, finding)


def _command(check: CheckResult, finding: Finding) -> str:
    properties = {"file": check.path(finding), "line": check.line(finding), "title": f"mcpspy: {finding.rule}"}
    fields = ",".join(
        f"{name}={safe_text(str(value)).translate(_PROPERTY)}" for name, value in properties.items() if value is not None
    )
    where = [rows_words(finding.rows)] if finding.rows else []
    where += [f"{finding.count} times"] if finding.count > 1 else []
    suffix = f" ({', '.join(where)})" if where else ""
    text = "\n".join(map(safe_text, (finding.what + suffix, finding.blame, finding.advice)))
    return f"::{_COMMANDS[finding.severity]} {fields}::{text.translate(_DATA)}"


def junit_lines(check: CheckResult) -> Iterator[str]:
    """Write the document, line by line."""
    cases = len(check.rules) * len(check.transcript.captures)
    failures = len({(finding.capture, finding.rule) for finding in check.findings if _fails(check, finding)})
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="mcpspy check" tests="{cases}" failures="{failures}" errors="0">'
    for capture in check.transcript.captures:
        yield from _junit_suite(check, capture)
    yield "</testsuites>"


def _junit_suite(check: CheckResult, capture: CaptureInfo) -> Iterator[str]:
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
        yield from _junit_case(check, rule, by_rule.get(rule.name, []), path)
    yield "  </testsuite>"


def _junit_case(check: CheckResult, rule: Rule, findings: list[Finding], path: str) -> Iterator[str]:
    head = f'    <testcase name="{rule.name}" classname="mcpspy.{rule.family}" time="0" file={xml_value(path)}'
    if not findings:
        yield f"{head}/>"
        return
    line = check.line(findings[0])
    yield f"{head}>" if line is None else f'{head} line="{line}">'
    text = "\n\n".join(_junit_text(check, finding) for finding in findings)
    failing = [finding for finding in findings if _fails(check, finding)]
    if failing:
        yield f'      <failure type="{failing[0].severity.value}" message={xml_value(failing[0].what)}>{xml_text(text)}</failure>'
    else:
        yield f"      <system-out>{xml_text(text)}</system-out>"
    yield "    </testcase>"


def _junit_text(check: CheckResult, finding: Finding) -> str:
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


def check_sarif(check: CheckResult, version: str) -> str:
    """Write the document; `version` is mcpspy's."""
    names = list(check.rules)
    driver = {
        "name": "mcpspy",
        "semanticVersion": version,
        "rules": [_sarif_rule(rule) for rule in check.rules.values()],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": _uri(path)}, "mimeType": "application/jsonl"} for path in _paths(check)],
        "results": [_sarif_result(check, finding, names) for finding in check.findings],
    }
    document = {"$schema": SCHEMA_URL, "version": "2.1.0", "runs": [run]}
    return "\n".join(map(json_text, json.dumps(document, ensure_ascii=False, indent=2).split("\n"))) + "\n"


def _paths(check: CheckResult) -> list[str]:
    return list(dict.fromkeys(check.paths.values()))


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.what} {rule.why}"},
        "help": {"text": f"{rule.blame} {rule.advice}", "markdown": rule_markdown(rule)},
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {"tags": [rule.family.value]},
    }


def _sarif_result(check: CheckResult, finding: Finding, names: list[str]) -> dict[str, Any]:
    path, line = check.path(finding), check.line(finding)
    location = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(path), "index": _paths(check).index(path)},
            **({} if line is None else {"region": {"startLine": line}}),
        },
        "logicalLocations": [{"name": safe_text(culprit_name(check, finding)), "kind": "module"}],
    }
    capture = check.capture(finding)
    capture_id = capture.header.capture_id if capture.header else ""
    fingerprint = sha256(
        f"{capture_id}\n{finding.rule}\n{finding.number}\n{finding.what}".encode("utf-8", "replace")
    ).hexdigest()
    return {
        "ruleId": finding.rule,
        "ruleIndex": names.index(finding.rule),
        "level": finding.severity.value,
        "message": {"text": safe_text(f"{finding.what} {finding.blame} {finding.advice}")},
        "locations": [location],
        "occurrenceCount": finding.count,
        "partialFingerprints": {"mcpspy/v1": fingerprint},
        "properties": {"culprit": finding.culprit, "row": finding.row, "rows": list(finding.rows), "at_ns": finding.at_ns},
    }


def _uri(path: str) -> str:
    """Write a path as a URI; a relative path stays relative, to the folder where the check ran."""
    return ("file://" if path.startswith("/") else "") + quote(path)

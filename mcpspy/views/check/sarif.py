"""A check as SARIF 2.1.0, as GitHub's code scanning, Azure DevOps and editors read it: the rules, and a result for each finding.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0. A location is the line of the record in its capture.
"""

import json
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from ...transcript.findings.rule import Finding, Rule
from ..text.escape import json_text, safe_text
from .model import CheckResult, culprit_name
from .rules import rule_markdown

SCHEMA_URL = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def check_sarif(check: CheckResult, version: str) -> str:
    """Write the document; `version` is mcpspy's."""
    names = list(check.rules)
    driver = {
        "name": "mcpspy",
        "semanticVersion": version,
        "rules": [_rule(rule) for rule in check.rules.values()],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": _uri(path)}, "mimeType": "application/jsonl"} for path in _paths(check)],
        "results": [_result(check, finding, names) for finding in check.findings],
    }
    document = {"$schema": SCHEMA_URL, "version": "2.1.0", "runs": [run]}
    return "\n".join(map(json_text, json.dumps(document, ensure_ascii=False, indent=2).split("\n"))) + "\n"


def _paths(check: CheckResult) -> list[str]:
    return list(dict.fromkeys(check.paths.values()))


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.what} {rule.why}"},
        "help": {"text": f"{rule.blame} {rule.advice}", "markdown": rule_markdown(rule)},
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {"tags": [rule.family.value]},
    }


def _result(check: CheckResult, finding: Finding, names: list[str]) -> dict[str, Any]:
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

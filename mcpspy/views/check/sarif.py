"""A check as SARIF 2.1.0, which GitHub's code scanning, Azure DevOps and editors read: the rules, and a result for each finding.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0. A location is the line of the record in its capture.
"""

import json
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from ...transcript.findings.rule import Finding, Rule, Severity
from ..text.escape import json_text, safe_text
from .model import Checked, culprit_name
from .rules import rule_markdown

SCHEMA_URL = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def check_sarif(checked: Checked, version: str) -> str:
    """The document; `version` is mcpspy's."""
    names = list(checked.rules)
    driver = {
        "name": "mcpspy",
        "semanticVersion": version,
        "rules": [_rule(one) for one in checked.rules.values()],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": _uri(path)}, "mimeType": "application/jsonl"} for path in _paths(checked)],
        "results": [_result(checked, one, names) for one in checked.findings],
    }
    made = {"$schema": SCHEMA_URL, "version": "2.1.0", "runs": [run]}
    return "\n".join(map(json_text, json.dumps(made, ensure_ascii=False, indent=2).split("\n"))) + "\n"


def _paths(checked: Checked) -> list[str]:
    return list(dict.fromkeys(checked.paths.values()))


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.what} {rule.why}"},
        "help": {"text": f"{rule.blame} {rule.fix}", "markdown": rule_markdown(rule)},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.family.value]},
    }


def _result(checked: Checked, finding: Finding, names: list[str]) -> dict[str, Any]:
    path = checked.path(finding)
    location = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(path), "index": _paths(checked).index(path)},
            "region": {"startLine": checked.line(finding)},
        },
        "logicalLocations": [{"name": safe_text(culprit_name(checked, finding)), "kind": "module"}],
    }
    source = checked.source(finding)
    capture_id = source.header.capture_id if source.header else ""
    print_of = sha256(f"{capture_id}\n{finding.rule}\n{finding.number}\n{finding.what}".encode("utf-8", "replace")).hexdigest()
    return {
        "ruleId": finding.rule,
        "ruleIndex": names.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": safe_text(f"{finding.what} {finding.blame} {finding.advice}")},
        "locations": [location],
        "occurrenceCount": finding.count,
        "partialFingerprints": {"mcpspy/v1": print_of},
        "properties": {"culprit": finding.culprit, "row": finding.row, "at_ns": finding.at_ns},
    }


def _uri(path: str) -> str:
    """A path as a URI: relative ones stay relative, to wherever the check was made."""
    return ("file://" if path.startswith("/") else "") + quote(path)

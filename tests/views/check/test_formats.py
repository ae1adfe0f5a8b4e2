"""Checks for programs: each format is valid and has every finding, whatever was captured."""

import io
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import Failure, JUnitXml

from mcpspy.transcript.findings.registry import RULES
from mcpspy.transcript.findings.rule import Severity
from mcpspy.views.check.formats import check_sarif, github_lines, junit_lines
from mcpspy.views.check.text import check_lines
from mcpspy.views.json.checks import check_json
from mcpspy.views.text.line import line_cells
from tests.tiers import current_tier, slow_examples
from tests.transcript.dialogue import Dialogue
from tests.views.check.checking import EVIL, busy, checked, hostile, quiet

if TYPE_CHECKING:
    from xmlschema import XMLSchema

HERE = Path(__file__).parents[1]
SARIF_SCHEMA = json.loads((HERE / "sarif.schema.json").read_text(encoding="utf-8"))

each = pytest.mark.parametrize("dialogue", [busy(), hostile(), quiet()], ids=["busy", "hostile", "quiet"])


def junit(dialogue: Dialogue, fail_on: Severity = Severity.WARNING) -> str:
    return "\n".join(junit_lines(checked(dialogue, fail_on=fail_on))) + "\n"


@cache
def junit_schema() -> "XMLSchema":
    """Read the schema of JUnit files, which takes a second."""
    from xmlschema import XMLSchema

    return XMLSchema(str(HERE / "junit.xsd"))


def sarif(dialogue: Dialogue, **options: Any) -> Any:
    return json.loads(check_sarif(checked(dialogue, **options), "0.1.0"))


def commands(dialogue: Dialogue) -> list[str]:
    return list(github_lines(checked(dialogue)))


# --- JSON ---


def test_json_has_every_finding_with_its_place() -> None:
    check = checked(busy())
    document = json.loads(check_json(check))
    assert document["schema"] == 1
    assert [finding["rule"] for finding in document["findings"]] == [finding.rule for finding in check.findings]
    noise = next(finding for finding in document["findings"] if finding["rule"] == "stdout-noise")
    assert (noise["path"], noise["row"], noise["count"]) == ("captures/weather.mcpspy", 4, 2)
    assert noise["line"] == noise["record"] + 1
    assert (noise["family"], noise["culprit"], noise["culprit_name"]) == ("transport", "server", "server weather")
    assert noise["title"] == RULES["stdout-noise"].title


def test_json_sums_up() -> None:
    summary = json.loads(check_json(checked(busy())))["summary"]
    assert (summary["findings"], summary["error"], summary["warning"], summary["note"]) == (4, 2, 1, 1)
    assert (summary["fail_on"], summary["failed"], summary["rules"]) == ("warning", True, len(RULES))


@each
def test_json_is_one_finding_per_line_and_harmless(dialogue: Dialogue) -> None:
    text = check_json(checked(dialogue))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e]", text)
    assert len(text.splitlines()) == 1 + len(json.loads(text)["findings"])


# --- JUnit ---


@each
def test_junit_is_valid(dialogue: Dialogue) -> None:
    junit_schema().validate(io.StringIO(junit(dialogue)))


def test_a_wrong_suite_is_not_valid() -> None:
    from xmlschema import XMLSchemaException

    with pytest.raises(XMLSchemaException):
        junit_schema().validate(io.StringIO(junit(busy()).replace(' failures="3"', ' failures="many"')))


def test_junit_has_a_case_for_each_rule_and_a_failure_for_each_that_was_broken() -> None:
    (suite,) = JUnitXml.fromstring(junit(busy()).encode())
    failed = [case.name for case in suite if any(isinstance(result, Failure) for result in case.result)]
    assert (suite.name, suite.tests, suite.failures) == ("weather", len(RULES), 3)
    assert sorted(failed) == ["malformed-message", "server-died", "stdout-noise"]


def test_a_finding_below_the_limit_is_in_the_output_of_a_case_that_passes() -> None:
    (suite,) = JUnitXml.fromstring(junit(busy()).encode())
    (case,) = [case for case in suite if case.name == "repeated-call"]
    assert case.is_passed
    assert "3 times in a row" in case.system_out


def test_a_failure_says_where_and_why() -> None:
    (suite,) = JUnitXml.fromstring(junit(busy()).encode())
    (failure,) = next(case for case in suite if case.name == "stdout-noise").result
    assert "captures/weather.mcpspy:" in failure.text
    assert "rows 4, 5, 2 times" in failure.text


def test_text_that_would_end_an_element_stays_text() -> None:
    assert "owned" in junit(hostile())
    assert "<b>" not in junit(hostile())


# --- SARIF ---


@each
def test_sarif_is_valid(dialogue: Dialogue) -> None:
    from sarif_pydantic import Sarif

    document = sarif(dialogue)
    jsonschema.validate(document, SARIF_SCHEMA)
    Sarif.model_validate(document)


@pytest.mark.parametrize("member", ["level", "message", "locations"])
def test_wrong_sarif_is_not_valid(member: str) -> None:
    document = sarif(busy())
    document["runs"][0]["results"][0][member] = 7
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SARIF_SCHEMA)


def test_sarif_explains_each_rule() -> None:
    rules = sarif(quiet())["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    assert all(RULES[rule["id"]].why in rule["help"]["markdown"] for rule in rules)


def test_a_result_refers_to_its_rule_and_to_the_line_of_its_record() -> None:
    run = sarif(busy())["runs"][0]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    noise = next(result for result in run["results"] if result["ruleId"] == "stdout-noise")
    place = noise["locations"][0]["physicalLocation"]
    number = next(finding.number for finding in checked(busy()).findings if finding.rule == "stdout-noise")
    assert place["artifactLocation"] == {"uri": "captures/weather.mcpspy", "index": 0}
    assert place["region"]["startLine"] == number + 1


def test_severities_are_levels() -> None:
    levels = {result["ruleId"]: result["level"] for result in sarif(busy())["runs"][0]["results"]}
    assert levels == {"stdout-noise": "warning", "malformed-message": "error", "server-died": "error", "repeated-call": "note"}


def test_the_same_finding_has_the_same_fingerprint() -> None:
    first, again = (sarif(busy())["runs"][0]["results"][0]["partialFingerprints"] for _ in range(2))
    assert first == again


def test_a_path_is_a_uri() -> None:
    def uri(path: str) -> str:
        return str(sarif(busy(), path=path)["runs"][0]["artifacts"][0]["location"]["uri"])

    assert uri("a b#c.mcpspy") == "a%20b%23c.mcpspy"
    assert uri("/tmp/ü.mcpspy") == "file:///tmp/%C3%BC.mcpspy"


# --- GitHub ---

COMMAND = re.compile(r"::(error|warning|notice) file=[^,:\r\n]+,line=\d+,title=mcpspy%3A [a-z-]+::[^\r\n]+")


@each
def test_a_finding_is_one_workflow_command(dialogue: Dialogue) -> None:
    lines = commands(dialogue)
    assert len(lines) == len(checked(dialogue).findings)
    assert all(COMMAND.fullmatch(line) for line in lines)


def test_severities_are_commands_and_the_worst_come_first() -> None:
    assert [line.split(" ")[0] for line in commands(busy())] == ["::error", "::error", "::warning", "::notice"]


def test_a_path_with_signs_of_the_commands_is_escaped() -> None:
    (first, *_) = github_lines(checked(busy(), path="a,b:c%d\n.mcpspy"))
    assert first.startswith("::error file=a%2Cb%3Ac%25d\\n.mcpspy,line=")


def test_a_message_keeps_its_sentences_apart() -> None:
    (first, *_) = commands(busy())
    assert first.count("%0A") == 2


# --- Any traffic ---

LINES = st.lists(
    st.tuples(st.integers(0, 2), st.text(max_size=30) | st.sampled_from([EVIL, '{"jsonrpc":"2.0","id":1}'])), max_size=8
)


@settings(max_examples=slow_examples(current_tier()))
@given(LINES, st.text(max_size=8))
def test_every_format_is_valid_for_any_traffic(lines: list[tuple[int, str]], label: str) -> None:
    dialogue = Dialogue(label=label)
    for stream, text in lines:
        dialogue.line(stream, text.encode("utf-8", "surrogatepass") + b"\n")
    check = checked(dialogue.closes())
    junit_schema().validate(io.StringIO("\n".join(junit_lines(check))))
    jsonschema.validate(json.loads(check_sarif(check, "0.1.0")), SARIF_SCHEMA)
    assert len(json.loads(check_json(check))["findings"]) == len(check.findings)
    assert all(COMMAND.fullmatch(line) for line in github_lines(check))
    assert max(line_cells(line) for line in check_lines(check, width=60)) <= 60

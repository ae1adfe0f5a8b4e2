"""Each rule finds its example, names its culprit, and is silent about the twin that has not the fault.

After a change of a rule: `python -m tests.findings.make`.
"""

from pathlib import Path

import pytest

from mcpspy.capture.file.reader import Reader
from mcpspy.transcript.finding import Finding
from mcpspy.transcript.findings.cost import RULES as COST_RULES
from mcpspy.transcript.findings.invisible_text import HIDDEN_CHARACTERS
from mcpspy.transcript.findings.llm.costs import RULES as OFFER_RULES
from mcpspy.transcript.findings.llm.run import asked_model_findings
from mcpspy.transcript.findings.llm.schemas import RULES as USE_RULES
from mcpspy.transcript.findings.optional import examined
from mcpspy.transcript.findings.protocol.schemas import RULES as SCHEMA_RULES
from mcpspy.transcript.findings.protocol.schemas import schema_findings
from mcpspy.transcript.findings.protocol.types import NOT_AS_SPECIFIED, shape_findings
from mcpspy.transcript.findings.registry import RULES
from mcpspy.transcript.findings.rule import Family, Rule
from mcpspy.transcript.findings.trust import NOT_ACCEPTED, SHARED_TOOL_NAME, TOOL_REDEFINED
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.offers.baseline import Baseline, label_of
from mcpspy.transcript.offers.definitions import offers
from mcpspy.transcript.transcribe import transcribe
from tests.findings.make import captures

FOLDER = Path(__file__).parent

ALSO: dict[str, set[str]] = {
    "half-line": {"no-final-newline"},
    "ambiguous-pairing": {"fractional-id"},
    "unasked-log": {"deprecated-method"},
}
"""What else the example of a rule has, where one fault brings another with it."""

UNCOMPARED = (*COST_RULES, HIDDEN_CHARACTERS, SHARED_TOOL_NAME, TOOL_REDEFINED)
"""Rules that have to be asked for, and need no baseline."""

CULPRITS = {"client", "server", "model", "api", "mcpspy", "disk", "file", "unclear"}

each = pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))


def told(name: str) -> Transcript:
    """What is in the capture of this name, and in that of another server beside it."""
    captures = []
    for path in (FOLDER / f"{name}.mcpspy", FOLDER / f"{name}.other.mcpspy"):
        if path.exists():
            reader = Reader()
            captures.append([*reader.feed(path.read_bytes()), *reader.close()])
    return transcribe(*captures)


def found(name: str) -> list[Finding]:
    """What is found in the example of this name. What has to be asked for is asked for; the twin without the fault was accepted."""
    rule = RULES[name.removesuffix(".clean")]
    if rule is NOT_AS_SPECIFIED:
        return [*told(name).findings, *(one.finding for one in shape_findings(told(name)))]
    if rule in SCHEMA_RULES:
        return [*told(name).findings, *(one.finding for one in schema_findings(told(name)))]
    if rule in (*OFFER_RULES, *USE_RULES):
        return [*told(name).findings, *(one.finding for one in asked_model_findings(told(name)))]
    if rule.family not in (Family.COST, Family.TRUST):
        return told(name).findings
    accepted: dict[str, Baseline] = {}
    for one in [] if rule is NOT_ACCEPTED else offers(told(f"{rule.name}.clean")):
        label = label_of(one.source)
        accepted[label] = Baseline(label).taken(one)
    asked = examined(told(name), None if rule in UNCOMPARED else accepted)
    return [one for one in asked if RULES[one.rule] not in (*SCHEMA_RULES, NOT_AS_SPECIFIED)]  # definitions are short there


def test_the_captures_are_those_of_the_rules() -> None:
    assert {path.name: path.read_bytes() for path in FOLDER.glob("*.mcpspy")} == captures()


@each
def test_a_rule_finds_its_example_and_no_other_rule_does(rule: Rule) -> None:
    assert {one.rule for one in found(rule.name)} == {rule.name} | ALSO.get(rule.name, set())


@each
def test_a_rule_is_silent_where_all_is_well(rule: Rule) -> None:
    assert [f"{one.rule}: {one.what}" for one in found(f"{rule.name}.clean")] == []


@each
def test_a_finding_says_what_happened_whose_fault_it_is_and_what_to_do(rule: Rule) -> None:
    (one, *_) = [one for one in found(rule.name) if one.rule == rule.name]
    assert one.culprit in CULPRITS
    for sentence in (one.what, one.blame, one.advice):
        assert sentence
        assert sentence[-1] in ".:”…" or sentence.endswith("?")


@each
def test_the_example_is_as_bad_as_the_rule_says(rule: Rule) -> None:
    assert next(one.severity for one in found(rule.name) if one.rule == rule.name) == rule.severity

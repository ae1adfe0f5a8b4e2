"""Each rule finds its example, names its culprit, and is silent about the twin that has not the fault.

After a change of a rule: `python -m tests.findings.make`.
"""

from pathlib import Path

import pytest

from mcpspy.capture.file.reader import Reader
from mcpspy.transcript.findings.invisible_text import HIDDEN_CHARACTERS
from mcpspy.transcript.findings.llm.costs import RULES as OFFER_RULES
from mcpspy.transcript.findings.llm.schemas import RULES as USE_RULES
from mcpspy.transcript.findings.protocol.schemas import RULES as SCHEMA_RULES
from mcpspy.transcript.findings.protocol.types import RULES as TYPE_RULES
from mcpspy.transcript.findings.registry import RULES
from mcpspy.transcript.findings.rule import Family, Finding, Rule
from mcpspy.transcript.findings.run import all_findings
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

UNCOMPARED = (HIDDEN_CHARACTERS, SHARED_TOOL_NAME, TOOL_REDEFINED)
"""Rules of trust that need no baseline."""

EXACT = (SCHEMA_RULES, TYPE_RULES, OFFER_RULES, USE_RULES)
"""Rules that are asked for in their own examples alone: definitions in the others are shorter than they should be."""

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
    """What is found in the example of this name. Optional rules are asked for; the twin without the fault was accepted."""
    rule = RULES[name.removesuffix(".clean")]
    wanted = RULES.keys() - {other.name for rules in EXACT for other in rules if rule not in rules}
    if rule.family not in (Family.COST, Family.TRUST):
        wanted -= {other.name for other in RULES.values() if other.family is Family.COST and other is not rule}
    if rule.family is not Family.TRUST or rule in UNCOMPARED:
        return all_findings(told(name), rules=wanted)
    accepted: dict[str, Baseline] = {}
    for offer in [] if rule is NOT_ACCEPTED else offers(told(f"{rule.name}.clean")):
        label = label_of(offer.capture_info)
        accepted[label] = Baseline(label).updated(offer)
    return all_findings(told(name), accepted, wanted)


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

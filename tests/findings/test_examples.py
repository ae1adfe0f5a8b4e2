"""Each rule finds its example and names its culprit, and finds nothing in the same without the fault.

After a change of a rule: `python -m tests.findings.make`.
"""

from pathlib import Path

import pytest

from mcpspy.capture.file.reader import Reader, read
from mcpspy.cli.credential_search import CredentialSearch
from mcpspy.transcript.definitions import Baseline, offers
from mcpspy.transcript.findings.credentials import CREDENTIAL_SHOWN
from mcpspy.transcript.findings.facts import capture_facts
from mcpspy.transcript.findings.finders import (
    CAPTURE_FINDERS,
    LEFT_TO_CHECK,
    MODEL_FINDERS,
    TRANSCRIPT_FINDERS,
    concerns,
    finder,
    is_optional,
)
from mcpspy.transcript.findings.invisible_text import HIDDEN_CHARACTERS
from mcpspy.transcript.findings.llm.arguments import RULES as USE_RULES
from mcpspy.transcript.findings.llm.costs import RULES as OFFER_RULES
from mcpspy.transcript.findings.protocol.schemas import RULES as SCHEMA_RULES
from mcpspy.transcript.findings.protocol.types import RULES as TYPE_RULES
from mcpspy.transcript.findings.registry import RULES
from mcpspy.transcript.findings.rule import Family, Finding, Rule
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.findings.trust import NOT_ACCEPTED, OFFER_REDEFINED, SHARED_TOOL_NAME, TOOL_REDEFINED
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import transcribe
from tests.conftest import ROOT
from tests.findings.make import FOLDER, PARTS, captures, files

ALSO: dict[str, set[str]] = {
    "ambiguous-pairing": {"fractional-id"},
    "unasked-log": {"deprecated-method"},
    "cancellation-ignored": {"given-up"},
    "carried-out-twice": {"timed-out"},
}
"""Other rules that the example of a rule breaks, because one fault brings another."""

UNCOMPARED = (CREDENTIAL_SHOWN, HIDDEN_CHARACTERS, OFFER_REDEFINED, SHARED_TOOL_NAME, TOOL_REDEFINED)
"""Rules about trust that need no baseline."""

EXACT = (SCHEMA_RULES, TYPE_RULES, OFFER_RULES, USE_RULES)
"""Rules that are asked for only in their own examples: definitions in the others are shorter than they should be."""

CULPRITS = {"client", "agent", "server", "model", "api", "gateway", "mcpspy", "configuration", "disk", "file", "unclear"}

each = pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))


def transcript_of(name: str) -> Transcript:
    """Read the capture of this name, together with those of another server, of other sessions, or of a model."""
    read = []
    for file in (f"{name}{part}.mcpspy" for part in PARTS):
        if file in captures():
            reader = Reader()
            read.append([*reader.feed(captures()[file]), *reader.close()])
    return transcribe(*read, credentials=CredentialSearch())


def findings_in(name: str) -> list[Finding]:
    """Find what is in the capture of this name. Optional rules are asked for; the twin without the fault was accepted."""
    rule = RULES[name.removesuffix(".clean")]
    wanted = RULES.keys() - {other.name for rules in EXACT for other in rules if rule not in rules}
    if rule.family not in (Family.COST, Family.TRUST):
        wanted -= {other.name for other in RULES.values() if other.family is Family.COST and other is not rule}
    if rule.family is not Family.TRUST or rule in UNCOMPARED:
        return all_findings(transcript_of(name), rules=wanted)
    accepted: dict[str, Baseline] = {}
    for offer in [] if name == NOT_ACCEPTED.name else offers(transcript_of(f"{rule.name}.clean")):
        label = offer.capture_info.baseline
        accepted[label] = Baseline(label).updated(offer)
    return all_findings(transcript_of(name), accepted, wanted)


def test_the_files_are_the_captures_of_the_rules() -> None:
    assert {path.name: path.read_bytes() for path in FOLDER.glob("*.mcpspy")} == files()


@each
def test_a_rule_finds_its_example_and_no_other_rule_does(rule: Rule) -> None:
    assert {finding.rule for finding in findings_in(rule.name)} == {rule.name} | ALSO.get(rule.name, set())


@each
def test_a_rule_finds_nothing_where_all_is_well(rule: Rule) -> None:
    assert [f"{finding.rule}: {finding.what}" for finding in findings_in(f"{rule.name}.clean")] == []


@each
def test_a_finding_says_what_happened_whose_fault_it_is_and_what_to_do(rule: Rule) -> None:
    finding = next(finding for finding in findings_in(rule.name) if finding.rule == rule.name)
    assert finding.culprit in CULPRITS
    for sentence in (finding.what, finding.blame, finding.advice):
        assert sentence
        assert sentence[-1] in ".:”…" or sentence.endswith("?")


@each
def test_a_title_is_a_few_words_and_no_sentence(rule: Rule) -> None:
    assert len(rule.title) <= 45
    assert not rule.title.endswith(".")


@each
def test_the_example_is_as_bad_as_the_rule_says(rule: Rule) -> None:
    assert next(finding.severity for finding in findings_in(rule.name) if finding.rule == rule.name) == rule.severity


def test_a_module_that_is_not_asked_about_a_capture_would_have_found_nothing() -> None:
    for name in sorted({name.partition(".")[0] for name in captures()}):
        for facts in capture_facts(transcript_of(name)):
            if not facts.capture.is_model:
                left_out = [name for name in CAPTURE_FINDERS if not concerns(name, facts)]
                assert [hit for module in left_out for hit in finder(module).find(facts)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "captures").glob("*.mcpspy")), ids=lambda path: path.stem)
def test_a_module_that_is_not_asked_about_a_recording_would_have_found_nothing(path: Path) -> None:
    for facts in capture_facts(transcribe(read(path))):
        if not facts.capture.is_model:
            left_out = [name for name in CAPTURE_FINDERS if not concerns(name, facts)]
            assert [hit for module in left_out for hit in finder(module).find(facts)] == []


def test_the_rules_that_only_a_check_runs_are_named() -> None:
    optional = [name for name in (*CAPTURE_FINDERS, *TRANSCRIPT_FINDERS, *MODEL_FINDERS) if is_optional(name)]
    assert tuple(rule.name for name in optional for rule in finder(name).RULES) == LEFT_TO_CHECK
    assert f"`{len(LEFT_TO_CHECK)} rules left to check`" in (ROOT / "docs" / "check.md").read_text()

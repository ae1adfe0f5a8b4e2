"""The page on findings says what the table of rules says, and its examples show what they claim to show.

After a change of the rules: `MCPSPY_WRITE_DOCS=1 pytest tests/views/test_rules_page.py`, and look at the difference.
"""

import os
from pathlib import Path

import pytest

from mcpspy.transcript.flaws import FLAWS
from mcpspy.transcript.rules import RULES, Rule
from mcpspy.views.rules_page import rules_page
from tests.transcript.dialogue import Dialogue

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"


def test_the_page_is_what_the_rules_say() -> None:
    page = rules_page(RULES.values(), FLAWS.values())
    if os.environ.get("MCPSPY_WRITE_DOCS"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8").splitlines() == page.splitlines()


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_a_rule_says_what_it_sees_why_that_is_bad_what_it_looks_like_and_what_to_do(rule: Rule) -> None:
    page = rules_page([rule], [])
    assert all(words and words in page for words in (rule.name, rule.what, rule.why, rule.example, rule.fix))


def test_every_flaw_stands_with_its_rule() -> None:
    page = rules_page(RULES.values(), FLAWS.values())
    section = page.partition("\n## flawed-message\n")[2].partition("\n## ")[0]
    assert all(flaw.what in section and flaw.fix in section for flaw in FLAWS.values())


def played(example: str) -> Dialogue:
    """The dialogue of an example on stdio, and its usual end."""
    told = Dialogue()
    for line in example.splitlines():
        sign, text = line[:1], line[1:].strip()
        if sign == "·":
            return told.exits(1).ends() if text == "the server exited 1" else told.closes()
        told.line(0 if sign == "→" else 1, f"{text}\n".encode())
    return told.closes()


SHOWN_BY_MESSAGES = (
    "stdout-noise", "malformed-message", "blank-line", "flawed-message", "unanswered-request", "unpaired-response",
    "duplicate-response", "id-type-mismatch", "server-died",
)  # fmt: skip


@pytest.mark.parametrize("name", SHOWN_BY_MESSAGES)
def test_an_example_of_messages_is_found_by_its_rule_and_no_other(name: str) -> None:
    assert {finding.rule for finding in played(RULES[name].example).findings} == {name}

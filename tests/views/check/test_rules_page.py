"""The page on findings says what the rules say.

After a change of the rules: `MCPSPY_WRITE_DOCS=1 pytest tests/views/check/test_rules_page.py`, and look at the difference.
"""

import os
from pathlib import Path

import pytest

from mcpspy.transcript.findings.registry import RULES
from mcpspy.transcript.findings.rule import Rule
from mcpspy.views.check.rules_page import rules_page

PAGE = Path(__file__).parents[3] / "docs" / "findings.md"


def test_the_page_is_what_the_rules_say() -> None:
    page = rules_page(RULES.values())
    if os.environ.get("MCPSPY_WRITE_DOCS"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8").splitlines() == page.splitlines()


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_a_rule_says_what_it_sees_why_that_is_bad_whose_fault_it_is_what_it_looks_like_and_what_to_do(rule: Rule) -> None:
    page = rules_page([rule])
    said = (rule.name, rule.family, rule.what, rule.why, rule.blame, rule.example, rule.clean, rule.fix)
    assert all(words and words in page for words in said)

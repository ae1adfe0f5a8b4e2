"""The pages on findings say what the rules say.

After a change of the rules: `MCPSPY_WRITE_DOCS=1 pytest tests/findings/test_pages.py`, and look at the difference.
"""

import os
import re
from pathlib import Path

import pytest

from mcpspy.transcript.findings.registry import RULES
from mcpspy.transcript.findings.rule import Family, Rule
from tests.findings.pages import MAX_COLUMNS, pages

DOCS = Path(__file__).parents[2] / "docs"
PAGES = pages(RULES.values())
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_rules_say(name: str) -> None:
    if os.environ.get("MCPSPY_WRITE_DOCS"):
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(PAGES[name], encoding="utf-8")
    assert (DOCS / name).read_text(encoding="utf-8").splitlines() == PAGES[name].splitlines()


def test_there_is_a_page_for_each_family_and_no_other() -> None:
    assert {path.stem for path in (DOCS / "findings").iterdir()} == set(Family)


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_a_rule_says_what_it_sees_why_that_is_bad_whose_fault_it_is_what_it_looks_like_and_what_to_do(rule: Rule) -> None:
    page = PAGES[f"findings/{rule.family}.md"]
    assert all(text and text in page for text in (rule.name, rule.title, rule.family, rule.example, rule.clean))
    assert all(text and text in page.replace("\n", " ") for text in (rule.what, rule.why, rule.blame, rule.advice))


def test_no_sentence_of_a_page_is_wider_than_a_diff_shows() -> None:
    prose = [line for page in PAGES.values() for line in FENCE.sub("", page).split("\n") if not line.startswith("|")]
    assert not [line for line in prose if len(line) > MAX_COLUMNS]

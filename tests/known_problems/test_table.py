"""docs/known-problems.md says what is played here, and no more."""

import importlib
import re
from pathlib import Path
from typing import NamedTuple

from mcpspy.transcript.findings.registry import RULES
from tests.findings.pages import link
from tests.known_problems.stage import Case

PAGE = (Path(__file__).parents[2] / "docs" / "known-problems.md").read_text(encoding="utf-8")
MODULES = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py") if path.stem != "test_table")


class Problem(NamedTuple):
    """A row of the page's table."""

    number: int
    links: list[str]
    text: str


def problems() -> list[Problem]:
    """Read the page's table."""
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    return [Problem(int(number), [] if links == "none" else links.split(", "), text) for number, links, text in rows]


def rule_names(problem: Problem) -> list[str]:
    return [re.findall(r"`([a-z0-9-]+)`", text)[0] for text in problem.links]


def cases() -> list[Case]:
    """Everything that is played."""
    return [case for name in MODULES for case in importlib.import_module(f"tests.known_problems.{name}").CASES]


def test_every_rule_in_the_table_is_played_and_what_is_played_is_in_the_table() -> None:
    in_table = {(problem.number, rule) for problem in problems() for rule in rule_names(problem)}
    assert {(case.problem, case.rule) for case in cases()} == in_table


def test_every_rule_in_the_table_exists_and_has_a_link_to_its_page() -> None:
    for problem in problems():
        assert problem.links == [link(RULES[name]) for name in rule_names(problem)]


def test_a_problem_that_no_rule_finds_says_why() -> None:
    assert [problem.number for problem in problems() if not problem.links and not problem.text.strip()] == []


def test_the_problems_are_numbered_in_their_order() -> None:
    assert [problem.number for problem in problems()] == list(range(1, 36))

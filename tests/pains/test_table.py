"""The table of pains in docs/findings.md says what is played here, and no more."""

import importlib
from pathlib import Path

from mcpspy.transcript.findings.registry import RULES
from mcpspy.views.check.complaints import PAINS
from tests.pains.stage import Scene

PLAYED = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py") if path.stem != "test_table")


def scenes() -> list[Scene]:
    """All that are played."""
    return [scene for name in PLAYED for scene in importlib.import_module(f"tests.pains.{name}").SCENES]


def test_every_rule_in_the_table_is_played_and_what_is_played_is_in_the_table() -> None:
    said = {(pain.number, rule) for pain in PAINS for rule in pain.rules}
    assert {(scene.pain, scene.rule) for scene in scenes()} == said


def test_every_rule_in_the_table_exists() -> None:
    assert {rule for pain in PAINS for rule in pain.rules} <= set(RULES)


def test_a_pain_that_no_rule_finds_says_why() -> None:
    assert [pain.number for pain in PAINS if not pain.rules and not pain.said] == []


def test_the_pains_are_numbered_in_their_order() -> None:
    assert [pain.number for pain in PAINS] == list(range(1, 28))

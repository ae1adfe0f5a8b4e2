"""The project gets lighter, or says why it does not: tests/weight.toml."""

from collections import Counter
from pathlib import Path

from tests.conftest import ROOT
from tests.weight import limits, lowered, problems, statements, weights


def test_no_limit_is_exceeded_and_none_is_left_where_it_was() -> None:
    wrong = problems(weights(limits()["groups"]), limits()["limits"])
    assert not wrong, "\n".join(wrong)


def test_a_scaffold_stands_no_longer_than_its_stage() -> None:
    known = limits()
    stages: list[str] = known["stages"]
    late = [item["path"] for item in known.get("scaffold", []) if stages.index(item["until"]) < stages.index(known["stage"])]
    gone = [item["path"] for item in known.get("scaffold", []) if not (ROOT / item["path"]).exists()]
    assert (late, gone) == ([], [])


def test_what_weighs_more_less_or_lies_in_no_group_is_named() -> None:
    weight = Counter({"light": 100, "heavy": 201, "no group": 1, "right": 199})
    found = problems(weight, {"light": 200, "heavy": 200, "right": 200})
    assert [line.partition(":")[0] for line in found] == ["heavy", "light", "no group"]


def test_limits_fall_and_never_rise() -> None:
    text = '[limits]\nheavy = 1_000\n"of docs" = 2_000\nlight = 300\n'
    assert lowered(text, Counter({"heavy": 1_001, "of docs": 1_999, "light": 30})) == (
        '[limits]\nheavy = 1_000\n"of docs" = 1_999\nlight = 30\n'
    )


def test_statements_are_counted_without_docstrings_and_whatever_their_width(tmp_path: Path) -> None:
    wide = '"""Doc."""\ndef f():\n    """Doc."""\n    return [\n        1,\n        2,\n    ]\n'
    assert statements(wide) == statements("def f(): return [1, 2]") == 2
    (tmp_path / "mcpspy" / "deep").mkdir(parents=True)
    (tmp_path / "mcpspy" / "deep" / "a.py").write_text(wide, encoding="utf-8")
    (tmp_path / "mcpspy" / "b.py").write_text("x = 1\n", encoding="utf-8")
    assert weights({"own": ["mcpspy"]}, tmp_path) == {"own": 1, "no group": 2, "modules": 2}

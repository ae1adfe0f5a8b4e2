"""Ignore rules: the values they select, and the errors for paths that cannot be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import PathError
from mcpspy.json_path import Step, segments_of
from mcpspy.replay.compare.difference import path_of
from mcpspy.replay.compare.ignore import Ignore

TEXT: tuple[Step, ...] = ("result", "content", 0, "text")


@pytest.mark.parametrize(
    "path",
    [
        "$.result.content[*].text", "$.result.content[0].text", "$..text", "$.result", "$.result.*", "$['result'][\"content\"]",
        "$.*",
        "$..content[*].text", "$.result..text", "$..[0]", "$..*", "$..['text']", " $.result.content[ 0 ].text ", "$[*]", "$.*.*.*.*",
        "result.content[0].text", "..text", "result.content.*.text", 'result."content"[0]["text"]',
    ],
)  # fmt: skip
def test_a_rule_leaves_out_the_place_it_names(path: str) -> None:
    assert Ignore.of([path]).into(*TEXT) is None


@pytest.mark.parametrize(
    "path",
    [
        "$.content",
        "$.result.content[1].text",
        "$.text",
        "$.result.content.text",
        "$..data",
        "$.result.content['0'].text",
        "$.*.*.*.*.*",
    ],
)
def test_a_rule_leaves_all_other_places_alone(path: str) -> None:
    assert Ignore.of([path]).into(*TEXT) is not None


def test_a_path_may_begin_at_the_message_or_at_the_params() -> None:
    for path in ("$.arguments.city", "arguments.city", "$.params.arguments.city", "params.arguments.city"):
        assert Ignore.of([path]).into("arguments", "city") is None
        assert Ignore.of([path]).into("arguments", "country") is not None


def test_of_several_rules_one_is_enough() -> None:
    assert Ignore.of(["$.other", "$..text", "$.result.isError"]).into(*TEXT) is None


def test_without_rules_everything_counts() -> None:
    assert Ignore().into(*TEXT) is not None
    assert not Ignore()


def test_quotes_hold_any_name() -> None:
    assert Ignore.of([r"$['it\'s']"]).into("it's") is None
    assert Ignore.of(['$["a.b [0]"]']).into("a.b [0]") is None


@pytest.mark.parametrize(
    ("path", "column"),
    [
        ("", 1), ("$", 1), ("$.", 3), ("$.a[", 4), ("$.a[-1]", 4), ("$.a[?(@.b)]", 4), ("$.a b", 4), ("$a", 2), ("$.a['b']c", 9),
        ("$.a=1", 4), (r"$.a['\x']", 4),
    ],
)  # fmt: skip
def test_a_path_that_cannot_be_read_is_pointed_at(path: str, column: int) -> None:
    with pytest.raises(PathError) as refused:
        segments_of(path)
    assert refused.value.column == column
    assert refused.value.exit_status == 2


@given(st.text(max_size=12))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    try:
        segments_of(text)
    except PathError as error:
        message = str(error)
    else:
        message = "read"
    assert message


@given(st.lists(st.text(max_size=5) | st.integers(min_value=0, max_value=99), min_size=1, max_size=5))
def test_the_path_of_a_place_is_a_rule_for_it(steps: list[Step]) -> None:
    rules = Ignore.of([path_of(steps)])
    assert rules.into(*steps) is None
    assert rules.into(*steps[:-1]) is not None
    assert rules.into("another", *steps) is not None

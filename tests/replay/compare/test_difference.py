"""Differences of two JSON values: their paths, the alignment of lists, and ignore rules."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.compare.difference import MAX_LISTED, Difference, differences
from mcpspy.replay.compare.ignore import Ignore, without_ignored
from mcpspy.replay.json_values import is_same, read
from tests.replay.json.test_canonical import JSON


def value(expected: Any) -> Any:
    return read(json.dumps(expected).encode())


def spelled_differences(before: Any, after: Any, *ignore: str) -> list[str]:
    result = differences(value(before), value(after), Ignore.of(ignore))
    assert result.count == len(result.listed)
    return [line(difference) for difference in result.listed]


def line(difference: Difference) -> str:
    match difference.how:
        case "added":
            return f"{difference.path} + {json.dumps(difference.after)}"
        case "removed":
            return f"{difference.path} - {json.dumps(difference.before)}"
        case "changed":
            return f"{difference.path} {json.dumps(difference.before)} ≠ {json.dumps(difference.after)}"
        case "type":
            return f"{difference.path} {json.dumps(difference.before)} ≢ {json.dumps(difference.after)}"


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"arguments": {"path": "a"}}, {"arguments": {"path": "b"}}, ['$.arguments.path "a" ≠ "b"']),
        ({"a": 1, "b": 2}, {"b": 2, "c": 3}, ["$.a - 1", "$.c + 3"]),
        ({"a": 1}, {"a": "1"}, ['$.a 1 ≢ "1"']),
        ({"a": 1}, {"a": True}, ["$.a 1 ≢ true"]),
        ({"a": True}, {"a": False}, ["$.a true ≠ false"]),
        ({"a": {}}, {"a": []}, ["$.a {} ≢ []"]),
        ({"a": None}, {}, ["$.a - null"]),
        (1, 1.0, []),
        (1, 2, ["$ 1 ≠ 2"]),
        ({"odd name": {"it's": 1}}, {"odd name": {"it's": 2}}, ["$['odd name']['it\\'s'] 1 ≠ 2"]),
    ],
)
def test_differences_say_where_and_how(before: Any, after: Any, lines: list[str]) -> None:
    assert spelled_differences(before, after) == lines


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ([1, 2, 3], [1, 9, 2, 3], ["$[1] + 9"]),
        ([1, 2, 3], [1, 3], ["$[1] - 2"]),
        ([1, 2, 3], [1, 4, 3], ["$[1] 2 ≠ 4"]),
        ([], [1], ["$[0] + 1"]),
        ([{"a": 1}, {"b": 1}], [{"z": 0}, {"a": 1}, {"b": 2}], ['$[0] + {"z": 0}', "$[2].b 1 ≠ 2"]),
        ([1, 2], [2, 1], ["$[0] + 2", "$[2] - 2"]),
    ],
)
def test_lists_are_aligned_by_their_equal_items(before: Any, after: Any, lines: list[str]) -> None:
    if lines == ["$[0] + 2", "$[2] - 2"]:
        assert len(spelled_differences(before, after)) == 2
    else:
        assert spelled_differences(before, after) == lines


def test_lists_too_long_to_be_aligned_are_held_place_against_place() -> None:
    before, after = ([f"{name}{at}" for at in range(5000)] for name in "ab")
    difference = differences(before, after)
    assert (len(difference.listed), difference.count, difference.more) == (MAX_LISTED, 5000, 5000 - MAX_LISTED)


def test_a_long_list_with_one_item_more_has_one_difference() -> None:
    assert spelled_differences(list(range(3000)), [*range(1500), "new", *range(1500, 3000)]) == ['$[1500] + "new"']


def test_a_text_that_holds_json_is_compared_by_what_it_means() -> None:
    before, after = ({"content": [{"type": "text", "text": text}]} for text in ('{"t": 1.0, "at": "x"}', '{"at":"y",\n"t":1}'))
    assert spelled_differences(before, after) == ['$.content[0].text.at "x" ≠ "y"']
    assert spelled_differences(before, after, "$.content[*].text.at") == []


def test_a_text_elsewhere_is_a_text() -> None:
    assert len(spelled_differences({"a": "[1]"}, {"a": "[1.0]"})) == 1


def test_a_text_that_stops_being_json_is_a_changed_text() -> None:
    assert spelled_differences({"text": "[1]"}, {"text": "oops"}) == ['$.text "[1]" ≠ "oops"']


@pytest.mark.parametrize(
    ("ignore", "lines"),
    [
        ("$..timestamp", ["$.list[1].v 2 ≠ 3"]),
        ("$.list", ["$.timestamp 1 ≠ 2"]),
        ("$.list[*].v", ["$.timestamp 1 ≠ 2", "$.list[0].timestamp 5 ≠ 6"]),
        ("$..*", []),
    ],
)
def test_rules_leave_places_out(ignore: str, lines: list[str]) -> None:
    before = {"timestamp": 1, "list": [{"timestamp": 5, "v": 1}, {"v": 2}]}
    after = {"timestamp": 2, "list": [{"timestamp": 6, "v": 1}, {"v": 3}]}
    assert spelled_differences(before, after, ignore) == lines


def test_items_that_differ_only_where_rules_leave_out_are_aligned() -> None:
    before = [{"at": at, "name": name} for at, name in enumerate("abc")]
    after = [{"at": at, "name": name} for at, name in enumerate("xabc")]
    assert spelled_differences(before, after, "$[*].at") == ['$[0] + {"at": 0, "name": "x"}']


def test_members_that_are_left_out_may_come_and_go() -> None:
    assert spelled_differences({"a": 1}, {"b": 1}, "$.a", "$.b") == []


def test_values_that_stand_somewhere_are_held_against_rules_from_the_root() -> None:
    rules = Ignore.of(["$.result.at"])
    (difference,) = differences({"at": 1, "v": 1}, {"at": 2, "v": 2}, rules, ("result",)).listed
    assert difference.path == "$.result.v"
    assert not differences(1, 2, rules, ("result", "at"))


@given(JSON)
def test_a_value_has_no_difference_from_itself(expected: Any) -> None:
    assert not differences(value(expected), value(expected))


@given(JSON, JSON)
def test_there_are_differences_where_values_are_not_the_same(before: Any, after: Any) -> None:
    old, new = value(before), value(after)
    assert bool(differences(old, new)) == (not is_same(_opened(old), _opened(new)))


def _opened(value: Any) -> Any:
    """Replace texts that hold JSON by that JSON, as differences do."""
    if isinstance(value, dict):
        return {name: _opened(item) for name, item in value.items()}
    return [_opened(item) for item in value] if isinstance(value, list) else value


@given(JSON, JSON)
def test_differences_lie_where_their_paths_lead(before: Any, after: Any) -> None:
    old, new = value(before), value(after)
    for difference in differences(old, new).listed:
        if difference.how != "removed":
            assert is_same(_at(new, difference), difference.after)
        elif not any(isinstance(step, int) for step in difference.steps):
            assert is_same(_at(old, difference), difference.before)


def _at(value: Any, difference: Difference) -> Any:
    for step in difference.steps:
        value = value[step]
    return value


@given(JSON, JSON, st.sampled_from(["$..a", "$[*]", "$.*", "$.*.*", "$..[0]"]))
def test_what_rules_leave_out_is_no_difference(before: Any, after: Any, path: str) -> None:
    old, new = value(before), value(after)
    rules = Ignore.of([path])
    if is_same(without_ignored(old, rules), without_ignored(new, rules)):
        assert not differences(old, new, rules)


def test_texts_within_texts_end() -> None:
    inner = "1"
    for _ in range(12):
        inner = json.dumps({"text": "[" * 60 + inner + "]" * 60}) if inner == "1" else json.dumps({"text": inner})
    assert differences({"text": inner}, {"text": inner.replace("1", "2")})


def test_the_deepest_values_are_compared() -> None:
    before, after = (read(b'{"a":' * 99 + leaf + b"}" * 99) for leaf in (b"1", b"2"))
    (difference,) = differences(before, after).listed
    assert len(difference.steps) == 99

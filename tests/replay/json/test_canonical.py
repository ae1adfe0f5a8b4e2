"""Canonical JSON: equal and different values, and repeated members."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.json_values import (
    MAX_DIGITS,
    MAX_LEVELS,
    UnrepresentableValue,
    canonical,
    embedded_json,
    is_same,
    read,
    readable_json,
    reading,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def equal(one: str, other: str) -> bool:
    before, after = read(one.encode()), read(other.encode())
    assert is_same(before, after) == (canonical(before) == canonical(after))
    return is_same(before, after)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "1.0"), ("1", "1e0"), ("10", "1E+1"), ("0", "-0.0"), ("0.1", "0.10"), ("1e-400", "0"),
        ("1e23", "1" + "0" * 23), ("9007199254740993.0", "9007199254740993"),
        ("1e5000", "10e4999"), ("1" + "0" * 5000, "1e5000"), ("-1e5000", "-1" + "0" * 5000),
        ('{"a": 1, "b": 2}', '{"b":2.0,"a":1}'), ('{"a": 1, "a": 2}', '{"a": 2}'), ('"\\u00e9"', '"é"'), ("[ ]", "[]"),
        ("NaN", "NaN"), ('"\\ud800"', '"\\uD800"'),
    ],
)  # fmt: skip
def test_values_that_mean_the_same_are_equal(one: str, other: str) -> None:
    assert equal(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "true"), ("0", "false"), ("1", '"1"'), ("null", "false"), ("[]", "{}"), ("[1,2]", "[2,1]"), ("{}", '{"a":null}'),
        ("9007199254740993", "9007199254740992"), ("9007199254740993", "9007199254740993.5e1"),
        ("1" + "0" * 5000 + "1", "1" + "0" * 5001),
        ("1e5000", "1e5001"), ("NaN", "Infinity"), ("NaN", '"NaN"'), ("NaN", "null"), ('[{"a":true}]', '[{"a":1}]'), ("0.1", "0.2"),
        ('"a"', '"A"'), ("1e5000", '"1e5000"'),
    ],
)  # fmt: skip
def test_values_that_mean_something_else_differ(one: str, other: str) -> None:
    assert not equal(one, other)


def test_integers_of_thirty_digits_are_exact() -> None:
    assert read(b"123456789012345678901234567890") == 123456789012345678901234567890


@given(JSON)
def test_a_value_is_equal_to_itself_however_it_is_spelled(value: Any) -> None:
    turned = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
    assert is_same(read(json.dumps(value).encode()), read(turned.encode("utf-8", "surrogatepass")))


@given(JSON, JSON)
def test_canonical_text_is_equal_for_equal_values_alone(one: Any, other: Any) -> None:
    def typed(value: Any) -> Any:
        """Convert a value so that Python's `==` compares it as JSON: numbers exactly, and true differs from 1."""
        if isinstance(value, bool) or value is None:
            return ("word", value)
        if isinstance(value, int | float):
            return ("number", Decimal(value))
        if isinstance(value, list):
            return [typed(item) for item in value]
        return {name: typed(item) for name, item in value.items()} if isinstance(value, dict) else value

    before, after = (read(json.dumps(value).encode()) for value in (one, other))
    assert (canonical(before) == canonical(after)) == (typed(before) == typed(after))


@given(st.integers(), st.integers(min_value=0, max_value=40))
def test_a_number_is_the_same_with_its_point_elsewhere(number: int, zeros: int) -> None:
    assert equal(str(number), f"{number}.{'0' * (zeros + 1)}")
    assert equal(str(number), f"{number * 10**zeros}e-{zeros}") or abs(number) >= 2**53


@given(JSON)
def test_short_values_are_read_as_long_ones_are(expected: Any) -> None:
    text = json.dumps(expected)
    assert (
        canonical(read(text.encode()))
        == canonical(read((text + " " * MAX_DIGITS).encode()))
        == canonical(reading(text.encode()).value)
    )


@given(st.binary(max_size=200))
def test_any_bytes_have_a_value(raw: bytes) -> None:
    assert isinstance(canonical(read(raw)), str)
    assert isinstance(readable_json(read(raw)), str)


def test_repeated_members_are_said_and_the_last_one_holds() -> None:
    result = reading(b'{"a": 1, "b": {"c": 1, "c": 2, "c": 3}, "a": 4}')
    assert result.value == {"a": 4, "b": {"c": 3}}
    assert set(result.repeated) == {"a", "c"}


def test_what_is_nested_too_deep_goes_by_its_digest() -> None:
    deep = b"[" * (MAX_LEVELS + 1) + b"]" * (MAX_LEVELS + 1)
    assert isinstance(read(deep), UnrepresentableValue)
    assert not isinstance(read(deep[1:-1]), UnrepresentableValue)
    assert is_same(read(deep), read(deep))
    assert not is_same(read(deep), read(b" " + deep))


def test_brackets_in_texts_and_side_by_side_nest_nothing() -> None:
    assert read(json.dumps(["[" * 1000]).encode()) == ["[" * 1000]
    assert len(read(b"[" + b",".join([b"[]"] * 1000) + b"]")) == 1000


def test_a_hundred_thousand_levels_are_read_in_time() -> None:
    assert isinstance(read(b"[" * 100_000), UnrepresentableValue)


def test_a_number_of_a_million_digits_is_read_in_time() -> None:
    assert isinstance(read(b"7" * 1_000_000), UnrepresentableValue)
    assert isinstance(read(b"7" * (MAX_DIGITS + 1)), UnrepresentableValue)
    assert isinstance(read(b"1e99999999999999999999999"), UnrepresentableValue | int | float)


@pytest.mark.parametrize(("text", "value"), [('{"a": 1}', {"a": 1}), (" [1]", [1]), ("1", None), ("[1", None), ("text", None)])
def test_a_text_may_hold_an_object_or_a_list(text: str, value: Any) -> None:
    assert embedded_json(text) == value


def test_what_is_shown_keeps_its_order_and_its_letters() -> None:
    assert readable_json(read('{"b": 1, "a": "é", "c": 1e5000}'.encode())) == '{"b": 1, "a": "é", "c": "1e5000"}'

"""Raw slices of JSON: both readers give the same bytes, numbers keep their spelling, and nothing raises that should not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire.json_slices import TrailingDataError, anomalies, check, items, members, scanned_members, string, token

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=5)
INDENTS = st.sampled_from([None, 0, 2])


def spelled(value: Any, indent: int | None, ascii_only: bool) -> bytes:  # noqa: FBT001 - drawn by hypothesis
    return json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


@given(OBJECTS, INDENTS, st.booleans())
def test_the_slices_of_an_object_are_its_values(value: dict[str, Any], indent: int | None, ascii_only: bool) -> None:  # noqa: FBT001
    found = members(spelled(value, indent, ascii_only))
    assert {name: json.loads(bytes(item)) for name, item in found.items()} == value


@given(OBJECTS, INDENTS, st.booleans())
def test_both_readers_give_the_same_slices(value: dict[str, Any], indent: int | None, ascii_only: bool) -> None:  # noqa: FBT001
    raw = spelled(value, indent, ascii_only)
    slow = {name: bytes(item) for name, item in scanned_members(raw).items()}
    assert {name: bytes(item) for name, item in members(raw).items()} == slow


@given(st.lists(VALUES, max_size=5), INDENTS)
def test_the_slices_of_an_array_are_its_items(value: list[Any], indent: int | None) -> None:
    assert [json.loads(bytes(item)) for item in items(spelled(value, indent, ascii_only=True))] == value


@given(st.binary())
def test_arbitrary_bytes_have_no_members_and_raise_nothing(data: bytes) -> None:
    assert isinstance(members(data), dict)


@given(st.text(alphabet='{}[]",:\\ 1eNa\n\ud800', max_size=12))
def test_the_slow_reader_takes_nothing_that_json_refuses(text: str) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    try:
        scanned_members(raw)
    except ValueError:
        return
    assert isinstance(json.loads(raw.decode("latin-1")), dict)


def test_the_last_of_equal_names_counts() -> None:
    assert bytes(members(b'{"a":1,"a":2}')["a"]) == b"2"


def test_an_escaped_name_is_the_name_it_spells() -> None:
    assert bytes(members(b'{"i\\u0064":7}')["id"]) == b"7"


@pytest.mark.parametrize("value", [b"NaN", b"-Infinity", b"1e400", b'"\\ud800"', b'"\xff"', b"9" * 5000])
def test_a_value_that_only_one_reader_takes_keeps_its_bytes(value: bytes) -> None:
    assert bytes(members(b'{ "a" : %s , "b" : [] }' % value)["a"]) == value


@pytest.mark.parametrize("value", [b"7", b"7.0", b"-0", b"1e400", b"123456789012345678901234567890", b"null", b"true"])
def test_a_token_is_spelled_as_it_came(value: bytes) -> None:
    assert token(value) == value.decode()


@pytest.mark.parametrize(
    ("spelling", "shortest"),
    [
        (rb'"a"', '"a"'),
        (rb'"\u0061"', '"a"'),
        (rb'"\/"', '"/"'),
        (rb'"\u00e9"', '"é"'),
        (rb'"\u0022"', r'"\""'),
        (rb'"\ud83d\ude00"', '"😀"'),
        (rb'"\ud800"', r'"\ud800"'),
    ],
)
def test_a_string_token_has_the_shortest_spelling(spelling: bytes, shortest: str) -> None:
    assert token(spelling) == shortest


@given(st.text())
def test_however_a_string_is_spelled_its_token_is_the_same(text: str) -> None:
    assert token(json.dumps(text).encode()) == token(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))


@given(st.text(st.characters(codec="utf-8")))
def test_tokens_of_different_strings_differ_from_numbers(text: str) -> None:
    assert json.loads(token(json.dumps(text).encode())) == text


@pytest.mark.parametrize(("value", "expected"), [(b'"a"', "a"), (b'"\xff"', "\ufffd"), (b"7", None), (b"", None), (b'"', None)])
def test_a_string_is_read_and_nothing_else_is_one(value: bytes, expected: str | None) -> None:
    assert string(value) == expected


@pytest.mark.parametrize("value", [b"{}", b"5", b"", b"[", b"[1,]", b"[1 2]", b"[1] 2"])
def test_what_is_no_array_has_no_items(value: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the docstring promises no narrower class
        items(value)


def test_a_second_value_on_the_line_is_told_from_broken_json() -> None:
    with pytest.raises(TrailingDataError):
        check(b"1 2")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(b'{"a":[NaN]}', ("nan",)), (b'{"a":"\\ud800"}', ("lone-surrogate",)), (b'{"a":"NaN"}', ()), (b'["\\ud83d\\ude00"]', ())],
)
def test_what_strict_readers_refuse_is_named(value: bytes, expected: tuple[str, ...]) -> None:
    assert anomalies(value) == expected

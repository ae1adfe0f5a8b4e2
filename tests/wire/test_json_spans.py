"""Values in the bytes of JSON: both readers give the same bytes, numbers keep their spelling, and nothing raises that should not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire.json_spans import (
    JsonWalk,
    TrailingDataError,
    anomalies,
    check,
    id_key,
    items,
    members,
    scanned_members,
    span_at,
    string,
)

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
    slices = members(spelled(value, indent, ascii_only))
    assert {name: json.loads(bytes(item)) for name, item in slices.items()} == value


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
def test_an_id_key_is_spelled_as_it_came(value: bytes) -> None:
    assert id_key(value) == value.decode()


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
def test_the_id_key_of_a_string_has_the_shortest_spelling(spelling: bytes, shortest: str) -> None:
    assert id_key(spelling) == shortest


@given(st.text())
def test_the_id_key_of_a_string_is_the_same_however_it_is_spelled(text: str) -> None:
    assert id_key(json.dumps(text).encode()) == id_key(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))


@given(st.text(st.characters(codec="utf-8")))
def test_id_keys_of_strings_differ_from_those_of_numbers(text: str) -> None:
    assert json.loads(id_key(json.dumps(text).encode())) == text


@pytest.mark.parametrize(("value", "expected"), [(b'"a"', "a"), (b'"\xff"', "\ufffd"), (b"7", None), (b"", None), (b'"', None)])
def test_a_string_is_read_and_nothing_else_is_one(value: bytes, expected: str | None) -> None:
    assert string(value) == expected


@pytest.mark.parametrize("value", [b"{}", b"5", b"", b"[", b"[1,]", b"[1 2]", b"[1] 2"])
def test_other_values_than_arrays_have_no_items(value: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the docstring promises no narrower class
        items(value)


def test_a_second_value_on_the_line_differs_from_broken_json() -> None:
    with pytest.raises(TrailingDataError):
        check(b"1 2")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(b'{"a":[NaN]}', ("nan",)), (b'{"a":"\\ud800"}', ("lone-surrogate",)), (b'{"a":"NaN"}', ()), (b'["\\ud83d\\ude00"]', ())],
)
def test_anomalies_that_strict_readers_refuse_are_named(value: bytes, expected: tuple[str, ...]) -> None:
    assert anomalies(value) == expected


# --- The value at a path ---


def value_at(payload: bytes, *path: str) -> bytes | None:
    span = span_at(payload, path)
    return None if span is None else payload[slice(*span)]


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        (b'{"id":7}', b"7"),
        (b' {\t"jsonrpc" : "2.0" ,\r\n "id" : "a\\"}b" } ', b'"a\\"}b"'),
        (b'{"id":1,"params":{"id":2},"id":3}', b"3"),
        (b'{"\\u0069d":"x"}', b'"x"'),
        ('{"ü":{"id":1},"id":"ü"}'.encode(), '"ü"'.encode()),
        (b'{"x":"\xff","id":NaN}', b"NaN"),
        (b'\xef\xbb\xbf{"id":12345678901234567890123456789012}', b"12345678901234567890123456789012"),
    ],
)
def test_a_span_is_that_of_the_value_as_it_was_written(payload: bytes, value: bytes) -> None:
    assert value_at(payload, "id") == value


@pytest.mark.parametrize(
    "payload", [b"", b"{", b'{"id"', b'{"id":', b'{"id":}', b"[1]", b"7", b'{"a":1}', b'{"id" 7}', b"\x00"]
)
def test_a_value_that_is_not_there_has_no_span(payload: bytes) -> None:
    assert span_at(payload, ("id",)) is None


@given(st.dictionaries(st.text(), VALUES, max_size=3), VALUES, st.dictionaries(st.text(), VALUES, max_size=3))
def test_exchanging_the_bytes_of_a_span_changes_nothing_else(
    before: dict[str, object], value: object, after: dict[str, object]
) -> None:
    message = {"jsonrpc": "2.0", "params": {**before, "_meta": {"progressToken": value}, **after}}
    payload = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    span = span_at(payload, ("params", "_meta", "progressToken"))
    if "_meta" in after:
        return
    assert span is not None
    changed = payload[: span[0]] + b'"new"' + payload[span[1] :]
    message["params"]["_meta"]["progressToken"] = "new"  # type: ignore[index]
    assert json.loads(changed.decode("utf-8", "surrogatepass")) == message


@given(st.binary(max_size=60))
def test_arbitrary_bytes_raise_nothing_and_may_have_a_span(payload: bytes) -> None:
    span_at(payload, ("params", "id"))


@pytest.mark.parametrize(
    ("payload", "path", "value"),
    [
        (b'{"a":[1, {"b":[ "x" ,"y"]} ]}', ("a", 1, "b", 1), b'"y"'),
        (b"[[],[0]]", (1, 0), b"0"),
        (b"[[],[0]]", (0, 0), None),
        (b'[1,"\xc3\xbc",2]', (2,), b"2"),
        (b"[1]", (1,), None),
        (b"[1]", (-1,), None),
        (b'{"0":1}', (0,), None),
        ('{"é":{"\\u00fc":1}}'.encode(), ("é", "ü"), b"1"),
        (b"[1,", (1,), None),
    ],
)
def test_an_item_is_found_by_its_index(payload: bytes, path: tuple[str | int, ...], value: bytes | None) -> None:
    span = span_at(payload, path)
    assert (None if span is None else payload[slice(*span)]) == value


# --- Every name and value ---


UTF8_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


def flat(value: Any, steps: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    """List the leaves of a value, each with its path."""
    if isinstance(value, dict):
        return [leaf for name, inner in value.items() for leaf in flat(inner, (*steps, name))]
    if isinstance(value, list):
        return [leaf for at, inner in enumerate(value) for leaf in flat(inner, (*steps, at))]
    return [(steps, value)]


@given(value=UTF8_VALUES, indent=st.sampled_from([None, 1]), is_ascii=st.booleans())
def test_a_walk_yields_every_value_with_its_path(*, value: Any, indent: int | None, is_ascii: bool) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()
    walk = JsonWalk(data)
    leaves = []
    for leaf in walk.leaves():
        if not leaf.is_name:
            text = data[leaf.start : leaf.end]
            leaves.append((tuple(walk.steps), json.loads(b'"%b"' % text if leaf.is_string else text)))
    assert leaves == flat(value)
    assert walk.is_sound


@given(st.binary(max_size=60) | st.text('{}[]":,\\u12ab tru', max_size=40).map(str.encode))
def test_a_walk_goes_through_any_bytes(data: bytes) -> None:
    walk = JsonWalk(data)
    for leaf in walk.leaves():
        assert 0 <= leaf.start <= leaf.end <= len(data)
        assert all(isinstance(step, str | int) for step in walk.steps)


@pytest.mark.parametrize("text", ['{"a":"b', '{"a":1}}', "{a:1}", '{"a":1} x', "[1,2", "", '"a" "b"', '{"a":tru}'])
def test_a_walk_tells_what_is_no_json(text: str) -> None:
    walk = JsonWalk(text.encode())
    list(walk.leaves())
    assert not walk.is_sound


def test_items_have_the_name_of_their_array() -> None:
    data = b'{"a":["x",["y"],{"b":"z"},"w"]}'
    assert [(data[leaf.start : leaf.end], leaf.name) for leaf in JsonWalk(data).leaves() if not leaf.is_name] == [
        (b"x", b"a"),
        (b"y", b"a"),
        (b"z", b"b"),
        (b"w", b"a"),
    ]

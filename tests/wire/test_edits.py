"""Values put into the bytes of a message by their paths."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire.edits import ValueEdit, with_values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("payload", "steps", "wanted"),
    [
        (b'{ "a" : 1.0 }', ("a",), b'{ "a" : "x" }'),
        (b'{"a":[1, {"b":2}]}', ("a", 1, "b"), b'{"a":[1, {"b":"x"}]}'),
        (b'{"a":[1]}', ("a", 1), b'{"a":[1,"x"]}'),
        (b'{"a":[1]}', ("a", 2), b'{"a":[1]}'),
        (b"{}", ("a", 0, "b"), b'{"a":[{"b":"x"}]}'),
        (b'{"a":1}', ("b",), b'{"a":1,"b":"x"}'),
        (b'{"a":{ }}', ("a", "b"), b'{"a":{"b":"x" }}'),
        (b"{}", ("a", "b"), b'{"a":{"b":"x"}}'),
        (b'{"a":1 }\n', ("b",), b'{"a":1,"b":"x" }\n'),
        (b'{"a":1}', ("a", "b"), b'{"a":1}'),
        (b"[1]", ("a",), b"[1]"),
    ],
)
def test_a_value_is_put_in_its_place_or_added(payload: bytes, steps: tuple[str | int, ...], wanted: bytes) -> None:
    assert with_values(payload, [ValueEdit(steps, b'"x"', adds=True)]) == wanted


def test_nothing_is_added_without_adds() -> None:
    assert with_values(b'{"a":1}', [ValueEdit(("b",), b"2")]) == b'{"a":1}'


@given(st.dictionaries(st.text(), JSON, max_size=3), st.lists(st.text(), min_size=1, max_size=3), JSON)
def test_an_added_value_can_be_read_and_nothing_else_changes(before: dict[str, Any], names: list[str], value: Any) -> None:
    at: Any = before
    for name in names[:-1]:
        at = at.get(name, {}) if isinstance(at, dict) else None
    payload = json.dumps(before, ensure_ascii=False).encode("utf-8", "surrogatepass")
    after = with_values(payload, [ValueEdit(tuple(names), json.dumps(value).encode(), adds=True)])
    if not isinstance(at, dict):
        assert after == payload
        return
    decoded = json.loads(after.decode("utf-8", "surrogatepass"))
    for name in names[:-1]:
        before, decoded = before.get(name, {}), decoded[name]
    assert decoded == {**before, names[-1]: value}

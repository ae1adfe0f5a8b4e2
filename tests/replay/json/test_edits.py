"""Values exchanged in the bytes of a message, and what `--set` makes of a path and JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import PathError
from mcpspy.replay.json.edits import Edit, edited
from mcpspy.replay.json.overrides import edits_of, setting_of
from tests.transcript.dialogue import Dialogue, request, result, tool_call

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
        (b'{"a":[1]}', ("a", 1), b'{"a":[1]}'),
        (b'{"a":1}', ("b",), b'{"a":1,"b":"x"}'),
        (b'{"a":{ }}', ("a", "b"), b'{"a":{"b":"x"}}'),
        (b"{}", ("a", "b"), b'{"a":{"b":"x"}}'),
        (b'{"a":1 }\n', ("b",), b'{"a":1,"b":"x"}\n'),
        (b'{"a":1}', ("a", "b"), b'{"a":1}'),
        (b"[1]", ("a",), b"[1]"),
    ],
)
def test_a_value_is_put_in_its_place_or_added(payload: bytes, steps: tuple[str | int, ...], wanted: bytes) -> None:
    assert edited(payload, [Edit(steps, b'"x"', adds=True)]) == wanted


def test_nothing_is_added_unless_that_is_meant() -> None:
    assert edited(b'{"a":1}', [Edit(("b",), b"2")]) == b'{"a":1}'


@given(st.dictionaries(st.text(), JSON, max_size=3), st.lists(st.text(), min_size=1, max_size=3), JSON)
def test_what_is_added_can_be_read_and_nothing_else_changes(before: dict[str, Any], names: list[str], value: Any) -> None:
    at: Any = before
    for name in names[:-1]:
        at = at.get(name, {}) if isinstance(at, dict) else None
    payload = json.dumps(before, ensure_ascii=False).encode("utf-8", "surrogatepass")
    after = edited(payload, [Edit(tuple(names), json.dumps(value).encode(), adds=True)])
    if not isinstance(at, dict):
        assert after == payload
        return
    told = json.loads(after.decode("utf-8", "surrogatepass"))
    for name in names[:-1]:
        before, told = before.get(name, {}), told[name]
    assert told == {**before, names[-1]: value}


@pytest.mark.parametrize(
    ("text", "steps", "value"),
    [
        ('$.arguments.path="/srv"', ("arguments", "path"), b'"/srv"'),
        ("$.a[0]=[1.0, 2e5]", ("a", 0), b"[1.0, 2e5]"),
        ('$["a=b"]=1', ("a=b",), b"1"),
        ('$.a= "x=y" ', ("a",), b'"x=y"'),
    ],
)
def test_a_setting_is_a_path_and_json(text: str, steps: tuple[str | int, ...], value: bytes) -> None:
    found = setting_of(text)
    assert (found.steps, found.value) == (steps, value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$.a", "there is no value"),
        ("a=1", "a path begins with $"),
        ("$=1", "$ alone is all of the params. Name a member of them, as in $.arguments={}."),
        ("$.a=NaN", "the value is no JSON"),
        ("$.a=/srv", "the value is no JSON. A text stands in quotes: '$.a=\"/srv\"'."),
        ("$.a[*]=1", "many places"),
        ("$..a=1", "many places"),
    ],
)
def test_a_setting_that_makes_no_sense_says_what_to_write(text: str, said: str) -> None:
    with pytest.raises(PathError, match=r"^the path") as found:
        setting_of(text)
    assert said in str(found.value)


CALLS = (
    Dialogue()
    .client(tool_call(1, path="a"))
    .server(result(1))
    .client(tool_call(2, path="b"))
    .server(result(2))
    .client(request(3))
    .server(result(3))
    .exchanges
)


def test_a_value_is_exchanged_in_every_request_that_has_the_place() -> None:
    found = edits_of([setting_of("$.arguments.path=1")], CALLS, CALLS)
    assert found == {row: [Edit(("params", "arguments", "path"), b"1")] for row in (1, 2)}


def test_a_value_that_is_nowhere_comes_to_the_request_that_was_asked_for() -> None:
    assert edits_of([setting_of("$.x=1")], CALLS, CALLS[2:]) == {3: [Edit(("params", "x"), b"1", adds=True)]}


@pytest.mark.parametrize("text", ["$.arguments[0]=1", "$.arguments.path.x=1", "$.arguments.list[2]=1"])
def test_a_value_that_cannot_be_added_is_refused_rather_than_not_sent(text: str) -> None:
    with pytest.raises(PathError, match="only a member of an object can be added"):
        edits_of([setting_of(text)], CALLS, CALLS[:1])


def test_a_value_that_is_nowhere_has_no_place_among_several() -> None:
    with pytest.raises(PathError, match="no request that is sent has this place"):
        edits_of([setting_of("$.x=1")], CALLS, CALLS)

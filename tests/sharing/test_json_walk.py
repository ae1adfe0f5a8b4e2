"""Walks through JSON: what stands where, under which name; through what is no JSON too."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.compare.ignore import Ignore
from mcpspy.sharing.encodings import JSON
from mcpspy.sharing.json_walk import Walk
from mcpspy.sharing.user_paths import NOWHERE, Place

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


def flat(value: Any, steps: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    """The leaves of a value with the way to each."""
    if isinstance(value, dict):
        return [one for name, inner in value.items() for one in flat(inner, (*steps, name))]
    if isinstance(value, list):
        return [one for at, inner in enumerate(value) for one in flat(inner, (*steps, at))]
    return [(steps, value)]


@given(value=VALUES, indent=st.sampled_from([None, 1]), is_ascii=st.booleans())
def test_a_walk_comes_by_every_value_and_knows_the_way(*, value: Any, indent: int | None, is_ascii: bool) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()
    walk = Walk(data)
    found = []
    for leaf in walk.leaves():
        if not leaf.is_name:
            text = data[leaf.start : leaf.end]
            found.append((tuple(walk.steps), json.loads(b'"%b"' % text if leaf.is_string else text)))
    assert found == flat(value)
    assert walk.is_sound


@given(st.binary(max_size=60) | st.text('{}[]":,\\u12ab tru', max_size=40).map(str.encode))
def test_what_is_no_json_is_walked_too(data: bytes) -> None:
    walk = Walk(data, Place(Ignore.of(["$..a[0]"])), is_message=True)
    for leaf in walk.leaves():
        assert 0 <= leaf.start <= leaf.end <= len(data)
        assert all(isinstance(step, str | int) for step in walk.steps)


@pytest.mark.parametrize("text", ['{"a":"b', '{"a":1}}', "{a:1}", '{"a":1} x', "[1,2", "", '"a" "b"', '{"a":tru}'])
def test_what_is_no_json_is_said_to_be_none(text: str) -> None:
    walk = Walk(text.encode())
    list(walk.leaves())
    assert not walk.is_sound


@pytest.mark.parametrize(
    ("path", "text", "taken"),
    [
        ("$.arguments.a", '{"method":"x","params":{"arguments":{"a":"yes","b":"no"}}}', ["yes"]),
        ("$.params.arguments.a", '{"method":"x","params":{"arguments":{"a":"yes","b":"no"}}}', ["yes"]),
        ("$.result.content[1].text", '{"result":{"content":[{"text":"no"},{"text":"yes"}]}}', ["yes"]),
        ("$.error.data", '{"error":{"message":"no","data":{"a":["yes","yes"]}}}', ["yes", "yes"]),
        ("$..a", '{"params":{"x":[{"a":"yes"}],"a":"yes"},"b":"no"}', ["yes", "yes"]),
        ("$.x[*]", '[{"params":{"x":["yes"]}},{"params":{"y":["no"]}}]', ["yes"]),
        ("$['caf\\u00e9']", '{"params":{"caf\\u00e9":"yes"}}', ["yes"]),
        ("$.token", '{"token":"yes"}', ["yes"]),
    ],
)
def test_a_path_takes_what_it_names(path: str, text: str, taken: list[str]) -> None:
    data = text.encode()
    walk = Walk(data, Place(Ignore.of([path])), is_message=True)
    assert [data[leaf.start : leaf.end].decode() for leaf in walk.leaves() if leaf.place.taken] == taken


def test_items_are_called_as_their_array_is() -> None:
    data = b'{"a":["x",["y"],{"b":"z"},"w"]}'
    assert [(data[one.start : one.end], JSON.read(one.name)) for one in Walk(data).leaves() if not one.is_name] == [
        (b"x", b"a"),
        (b"y", b"a"),
        (b"z", b"b"),
        (b"w", b"a"),
    ]


def test_no_path_leads_nowhere() -> None:
    assert not NOWHERE
    assert all(leaf.place is NOWHERE for leaf in Walk(b'{"a":["b"]}').leaves())

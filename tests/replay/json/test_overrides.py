"""Overrides of `--set`: the path, the JSON value, and the requests that get it."""

import pytest

from mcpspy.errors import PathError
from mcpspy.replay.json.overrides import override_edits, override_of
from mcpspy.wire.edits import ValueEdit
from tests.transcript.dialogue import Dialogue, request, result, tool_call


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
    override = override_of(text)
    assert (override.steps, override.value) == (steps, value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("$.a", "there is no value"),
        ("a=1", "a path begins with $"),
        ("$=1", "$ alone is all of the params. Name a member of them, as in $.arguments={}."),
        ("$.a=NaN", "the value is no JSON"),
        ("$.a=/srv", "the value is no JSON. Put text in quotes: '$.a=\"/srv\"'."),
        ("$.a[*]=1", "fits many values"),
        ("$..a=1", "fits many values"),
    ],
)
def test_a_setting_that_makes_no_sense_says_what_to_write(text: str, sentence: str) -> None:
    with pytest.raises(PathError, match=r"^the path") as caught:
        override_of(text)
    assert sentence in str(caught.value)


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


def test_a_value_is_replaced_in_every_request_that_has_the_path() -> None:
    edits = override_edits([override_of("$.arguments.path=1")], CALLS, CALLS)
    assert edits == {row: [ValueEdit(("params", "arguments", "path"), b"1")] for row in (1, 2)}


def test_a_value_that_is_nowhere_comes_to_the_request_that_was_asked_for() -> None:
    assert override_edits([override_of("$.x=1")], CALLS, CALLS[2:]) == {3: [ValueEdit(("params", "x"), b"1", adds=True)]}


@pytest.mark.parametrize("text", ["$.arguments[0]=1", "$.arguments.path.x=1", "$.arguments.list[2]=1"])
def test_a_value_that_cannot_be_added_is_refused_rather_than_not_sent(text: str) -> None:
    with pytest.raises(PathError, match="only a member of an object can be added"):
        override_edits([override_of(text)], CALLS, CALLS[:1])


def test_a_path_that_no_request_has_is_refused_if_several_are_selected() -> None:
    with pytest.raises(PathError, match="no request that is sent has this path"):
        override_edits([override_of("$.x=1")], CALLS, CALLS)

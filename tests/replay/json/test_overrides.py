"""Overrides of `--set`: the path, the JSON value, and the requests that get it."""

import json

import pytest

from mcpspy.errors import PathError
from mcpspy.replay.client.arguments import override_edits, override_of
from mcpspy.wire.edits import ValueEdit, with_values
from tests.transcript.dialogue import Dialogue, result, tool_call


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
        ("$.a", "the value is missing"),
        ("$a=1", "this is not a step of a path"),
        ("$.a=1 2", "the value ends here"),
        ("$=1", "a path is missing"),
        ("$.a=NaN", "the value is not JSON"),
        ("$.a=/srv", 'the value is not JSON. Put a text in quotation marks: "/srv".'),
        ("$.a[*]=1", "can match several values"),
        ("$..a=1", "can match several values"),
    ],
)
def test_a_setting_that_makes_no_sense_says_what_to_write(text: str, sentence: str) -> None:
    with pytest.raises(PathError, match=r"^the path") as caught:
        override_of(text)
    assert sentence in str(caught.value)


CALL = Dialogue().client(tool_call(1, path="a")).server(result(1)).exchanges[0].request


def test_a_value_is_replaced_where_it_is() -> None:
    (edit,) = override_edits([override_of("$.arguments.path=1")], CALL)
    assert json.loads(with_values(CALL.raw, [edit]))["params"]["arguments"] == {"path": 1}


def test_a_value_that_is_nowhere_is_added() -> None:
    assert override_edits([override_of("$.x=1")], CALL) == [ValueEdit(("params", "x"), b"1", adds=True)]


def test_one_value_can_be_put_into_another_that_is_added() -> None:
    edits = override_edits([override_of('$._meta={"a":1}'), override_of("$._meta.a=2")], CALL)
    assert json.loads(with_values(CALL.raw, edits))["params"]["_meta"] == {"a": 2}


@pytest.mark.parametrize("text", ["$.arguments[0]=1", "$.arguments.path.x=1", "$.arguments.list[2]=1"])
def test_a_value_that_cannot_be_added_is_refused_rather_than_not_sent(text: str) -> None:
    with pytest.raises(PathError, match="it cannot be added"):
        override_edits([override_of(text)], CALL)

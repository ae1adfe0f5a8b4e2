"""Arguments of a tool from words: each value of the type that the schema has for it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.client.arguments import ArgumentError, arguments_of, call_message, like_of, parameter_words
from tests.transcript.dialogue import Dialogue, request, result

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"type": ["string", "number"]},
        "flag": {"type": "boolean"},
        "kind": {"enum": ["1", "two"]},
        "list": {"type": "array"},
        "other": {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]},
        "any": {},
    },
    "required": ["text"],
}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("text=1", "1"),
        ("text=a=b:=c", "a=b:=c"),
        ("text=", ""),
        ("count=3", 3),
        ("maybe=null", None),
        ("maybe=7", 7),
        ("either=1", "1"),
        ("flag=true", True),
        ("kind=1", "1"),
        ('list=["a"]', ["a"]),
        ("other=x", "x"),
        ("any=1", "1"),
        ("unknown=1", "1"),
        ("unknown:=1", 1),
        ('text:={"a": [1.50]}', {"a": [1.5]}),
    ],
)
def test_a_value_has_the_type_of_the_schema_and_one_after_a_colon_is_json(word: str, value: Any) -> None:
    (raw,) = arguments_of([word], SCHEMA).values()
    assert json.loads(raw) == value


@pytest.mark.parametrize(
    "schema", [None, [], {}, {"properties": []}, {"properties": {"a": 1}}, {"properties": {"a": {"type": 7}}}]
)
def test_a_schema_that_says_nothing_makes_texts_unless_a_colon_says_more(schema: Any) -> None:
    assert arguments_of(["b=1"], schema) == {"b": b'"1"'}
    parameter_words(schema)


@pytest.mark.parametrize("word", ["x", "=1", ":=1", "", "count=x", "flag=yes", "any:=NaN", "any:={"])
def test_a_word_that_is_no_argument_is_refused(word: str) -> None:
    with pytest.raises(ArgumentError):
        arguments_of([word], SCHEMA)


def test_json_keeps_its_spelling_in_the_call() -> None:
    data = call_message('a"b', arguments_of(["x:=1.50e3", "y=é"], None), None)
    assert data.decode().partition('"params":')[2] == '{"name":"a\\"b","arguments":{"x":1.50e3,"y":"é"}}}'


def test_a_call_says_of_its_client_what_the_last_request_said() -> None:
    names = ("protocolVersion", "clientInfo", "clientCapabilities", "logLevel")
    meta = {f"io.modelcontextprotocol/{name}": {"a": 1} for name in names}
    said = Dialogue().client(request(1, params={"_meta": {**meta, "progressToken": 5}})).server(result(1)).exchanges
    data = call_message("add", {}, like_of(exchange.request for exchange in said))
    assert list(json.loads(data)["params"]["_meta"]) == list(meta)[:3]


def test_the_parameters_of_a_tool_are_named_with_their_types() -> None:
    words = parameter_words(SCHEMA)
    assert words.startswith("text (string), count (integer, optional), maybe (integer or null, optional)")


@given(st.text(), st.text())
def test_any_text_comes_through_as_it_is(name: str, text: str) -> None:
    clean = name.replace("=", "").rstrip(":") or "x"
    arguments = arguments_of([f"{clean}={text}"], None)
    assert json.loads(call_message("t", arguments, None))["params"]["arguments"] == {clean: text}

"""Names and schemas of tools that APIs of models refuse, and those that they take."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records

STRING = {"type": "string"}


def found(name: str = "find", **schema: Any) -> list[tuple[str, str, str]]:
    tools = [{"name": name, "inputSchema": {"type": "object"} | schema}]
    account = f"→ tools/list 1\n← result 1 {json.dumps({'tools': tools})}"
    rules = ("tool-name-refused", "schema-refused")
    return [(hit.rule, hit.severity, hit.what) for hit in all_findings(transcribe(records(account)), rules=rules)]


@pytest.mark.parametrize("name", ["find", "find_files", "find-files", "user.find", "F1", "x" * 64])
def test_plain_names_are_taken(name: str) -> None:
    assert found(name) == []


@pytest.mark.parametrize(
    ("name", "severity", "words"),
    [
        ("x" * 65, "note", "has 65 letters in its name"),
        ("find files", "warning", "has a blank in its name"),
        ("user/find", "warning", "has “/” in its name"),
        ("größe", "warning", "has “ß”, “ö” in its name"),
        ("", "warning", "has 0 letters in its name"),
    ],
)
def test_other_names_are_refused(name: str, severity: str, words: str) -> None:
    ((rule, actual, what),) = found(name)
    assert (rule, actual) == ("tool-name-refused", severity)
    assert words in what


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": STRING, "b": {"type": ["string", "null"]}}, "required": ["a"]},
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}}},
        {"properties": {"a": {"$ref": "#/properties/b"}, "b": STRING}},
        {"properties": {"a": {"anyOf": [STRING, {"type": "null"}]}}},
        {"properties": {"a": {"type": "array", "prefixItems": [STRING]}}},
        {"properties": {"type": STRING, "items": STRING, "$ref": STRING, "required": {"type": "boolean"}}},
        {"properties": {"a": {"enum": [1, 2]}, "b": {"const": {"type": "list"}}, "c": {"default": {"type": "list"}}}},
        {},
    ],
)
def test_plain_schemas_are_taken(schema: dict[str, Any]) -> None:
    assert found(**schema) == []


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"anyOf": [{"required": ["a"]}]}, "has anyOf at its top"),
        ({"properties": {"a": {"type": "list"}}}, "the type “list” at $.properties.a"),
        ({"properties": {"a": {"type": ["str"]}}}, "the type “str” at $.properties.a"),
        ({"properties": {"a": {"type": "array"}}}, "an array without items at $.properties.a"),
        ({"properties": {"a": {"items": {"type": "array"}}}}, "an array without items at $.properties.a.items"),
        ({"properties": {"a": {"$ref": "#/$defs/A"}}}, "a $ref to “#/$defs/A” at $.properties.a"),
        ({"properties": {"a": {"$ref": "https://example.org/a.json"}}}, "a $ref to “https://example.org/a.json”"),
        ({"properties": {"a b": STRING}}, "the property “a b”"),
        ({"properties": {"a": {"type": "string", "required": True}}}, "required: true at $.properties.a, where a list belongs"),
    ],
)
def test_other_schemas_are_refused(schema: dict[str, Any], words: str) -> None:
    ((rule, _, what),) = found(**schema)
    assert rule == "schema-refused"
    assert words in what


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["object", "array", "#/x", "#", "$defs"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "$ref", "properties", "items", "anyOf", "required", "$defs"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["type", "$ref", "properties", "items", "anyOf", "required"]), VALUES))
def test_no_schema_is_too_strange(schema: dict[str, Any]) -> None:
    found(**schema)

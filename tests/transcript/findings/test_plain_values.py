"""A value that fits a schema of usual keywords fits it for jsonschema too."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from mcpspy.transcript.findings.json_schema import Validators, fits_plainly

SCHEMAS: tuple[Any, ...] = (
    {}, {"type": "object"}, {"type": "integer"}, {"type": "number", "minimum": 1, "maximum": 2}, {"type": ["string", "null"]},
    {"type": "string", "minLength": 2, "maxLength": 3}, {"type": "boolean"}, {"type": "array", "minItems": 1, "maxItems": 2},
    {"enum": [1, "a", True, None]}, {"enum": [True]}, {"enum": [0]}, {"enum": []}, {"items": {"type": "integer"}}, {"items": False},
    {"items": [{"type": "integer"}]}, {"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"required": ["b"]},
    {"properties": {"a": {}}, "additionalProperties": False}, {"additionalProperties": {"type": "string"}},
    {"additionalProperties": True, "properties": {"a": False}}, {"properties": {"a": True}, "additionalProperties": False},
    {"anyOf": [{"type": "string"}]}, {"not": {}}, {"const": 1}, {"$ref": "#/a"}, {"minimum": 2}, {"minLength": 2}, {"minItems": 1},
    {"maximum": True}, {"minLength": 1.5}, {"exclusiveMinimum": 1}, {"multipleOf": 2}, {"patternProperties": {"a": False}},
    {"if": {}, "then": False}, {"prefixItems": [False]}, {"type": "unknown"}, {"type": []}, {"dependentRequired": {"a": ["b"]}},
    {"contains": {"type": "integer"}}, {"propertyNames": {"maxLength": 0}}, {"minProperties": 2}, {"allOf": [False]}, True, False,
    {"enum": [[True]]}, {"const": [1]}, {"const": {"a": 1}}, {"const": 1.0}, {"const": False}, {"exclusiveMaximum": 2},
    {"multipleOf": 0}, {"multipleOf": 0.5}, {"maxProperties": 1}, {"anyOf": []}, {"oneOf": []}, {"allOf": []},
    {"oneOf": [{"type": "string"}, {"type": "null"}]}, {"oneOf": [{"type": "number"}, {"type": "integer"}]}, {"oneOf": [{}, {}]},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"allOf": [{"minimum": 1}, {"maximum": 2}]},
    {"$ref": "#/$defs/number", "$defs": {"number": {"type": "integer"}}}, {"$ref": "#/$defs/none", "$defs": {}},
    {"$ref": "#/$defs/self", "$defs": {"self": {"$ref": "#/$defs/self"}}}, {"$defs": {"number": False}},
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 3, 1.0, 1.5, "", "a", "ab", "abcd", [], [1], ["a"], [1, 2, 3], [True], {}, {"a": 1}, {"a": "a"},
    {"a": None}, {"b": "a"}, {"a": 1, "b": "a"}, {"a": [1]}, {"a": {"a": 1}}, {"a": True}, [1.0], 10**400, float("nan"),
)  # fmt: skip

CAPTURES = Path(__file__).parents[3] / "captures"


@pytest.mark.parametrize("validator", [Draft7Validator, Draft202012Validator])
def test_what_fits_plainly_fits(validator: Any) -> None:
    nested = [{"properties": {"a": schema}} for schema in SCHEMAS] + [{"items": schema} for schema in SCHEMAS]
    plain = [(schema, value) for schema, value in product([*SCHEMAS, *nested], VALUES) if fits_plainly(schema, value, [100])]
    assert len(plain) > 500
    assert [(schema, value) for schema, value in plain if not validator(schema).is_valid(value)] == []


NAMES = st.sampled_from(["a", "b"])
SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 1.0, 1.5, "", "a", "ab", 10**30])
ANY_VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=2), max_leaves=6
)
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null", "any"])
LIMITS = st.sampled_from([0, 1, 2, 1.5, True, "1"])
LIMITED = (
    "minProperties", "maxProperties", "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum",
)  # fmt: skip
DRAFTS = st.sampled_from(["http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-04/schema#", 1])
REFERENCES = st.sampled_from(
    ["#/$defs/a", "#/$defs/b", "#/definitions/a", "#/$defs/c", "#", "#a", "a", "#/$defs", "#/properties/a", 1]
)


def keywords(inner: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    """Return what keywords may hold, those that are plain and some that are not."""
    by_name, parts = st.dictionaries(NAMES, inner, min_size=1, max_size=2), st.lists(inner, max_size=3)
    return {
        "type": TYPES | st.lists(TYPES, max_size=2), "enum": st.lists(ANY_VALUES, max_size=3), "const": ANY_VALUES,
        "properties": by_name, "required": st.lists(NAMES, max_size=2), "additionalProperties": inner, "propertyNames": inner,
        "items": inner | parts, "anyOf": parts, "allOf": parts, "oneOf": parts, "$ref": REFERENCES,
        "$defs": by_name, "definitions": by_name, "nullable": st.booleans(), "description": st.just("a"),
        "multipleOf": st.sampled_from([1, 2, 0, 0.5, True]), **dict.fromkeys(LIMITED, LIMITS),
        "$schema": DRAFTS, "$id": st.sampled_from(["a", "http://a/"]), "$anchor": st.just("a"),
        "pattern": st.just("z"), "format": st.just("date"), "uniqueItems": st.just(True),
        "not": inner, "patternProperties": by_name, "prefixItems": parts, "contains": inner, "if": inner, "then": inner,
        "dependentRequired": st.just({"a": ["b"]}), "unevaluatedProperties": inner,
    }  # fmt: skip


@st.composite
def schema_of(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Make a schema of a few keywords: one with many fits hardly anything."""
    table = keywords(inner)
    names = draw(st.lists(st.sampled_from(sorted(table)), min_size=1, max_size=3, unique=True))
    return {name: draw(table[name]) for name in names}


SCHEMAS_OF_ALL_KINDS = st.recursive(schema_of(st.booleans()), schema_of, max_leaves=4)


@given(SCHEMAS_OF_ALL_KINDS, st.dictionaries(NAMES, SCHEMAS_OF_ALL_KINDS, max_size=2), ANY_VALUES)
def test_jsonschema_finds_no_mistake_in_what_fits_plainly(
    schema: dict[str, Any], definitions: dict[str, Any], value: Any
) -> None:
    whole = {"$defs": definitions, "definitions": definitions, **schema}
    if fits_plainly(whole, value, [1000]):
        assert Validators().mistake_by_jsonschema(whole, value) == ""


def test_a_part_of_another_draft_does_not_fit_plainly() -> None:
    part = {"$schema": "http://json-schema.org/draft-04/schema#", "pattern": "z"}
    assert not fits_plainly({"properties": {"a": part}}, {"a": "a"}, [10])
    assert Validators().mistake({"properties": {"a": part}}, {"a": "a"})


def test_a_value_that_takes_too_many_steps_does_not_fit_plainly() -> None:
    assert fits_plainly({"items": {"type": "integer"}}, [1] * 5, [6])
    assert not fits_plainly({"items": {"type": "integer"}}, [1] * 6, [6])


def test_a_value_that_is_deeper_than_the_stack_does_not_fit_plainly() -> None:
    schema = {"$ref": "#/$defs/list", "$defs": {"list": {"items": {"$ref": "#/$defs/list"}}}}
    value: list[Any] = []
    for _ in range(900):
        value = [value]
    assert not fits_plainly(schema, value, [10_000])


def test_the_schemas_of_official_servers_are_plain() -> None:
    tools = [tool for path in sorted(CAPTURES.glob("*.mcpspy")) for tool in listed(path)]
    schemas = [schema for tool in tools for name in ("inputSchema", "outputSchema") if (schema := tool.get(name)) is not None]
    assert len(schemas) > 50
    assert [schema for schema in schemas if not fits_plainly(schema, example(schema, schema), [1000])] == []


def listed(path: Path) -> list[dict[str, Any]]:
    """Return the tools that a capture lists on stdio."""
    texts = (json.loads(line).get("text", "") for line in path.read_text().splitlines())
    results = (json.loads(text).get("result", {}) for text in texts if text.startswith("{") and '"inputSchema"' in text)
    return [tool for result in results for tool in result.get("tools", [])]


def example(schema: Any, root: Any) -> Any:
    """Make a value that fits a schema."""
    if schema is True or not schema:
        return 1
    if "$ref" in schema:
        return example(root[schema["$ref"].split("/")[1]][schema["$ref"].split("/")[2]], root)
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return example(schema[name][0], root)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    kind = schema.get("type", "object")
    if kind == "object":
        return {name: example(part, root) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [example(schema.get("items", True), root)] * max(1, schema.get("minItems", 1))
    least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    return {"string": "a" * schema.get("minLength", 1), "boolean": True, "null": None}.get(kind, least)

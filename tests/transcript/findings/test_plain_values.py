"""A value that fits a schema of usual keywords fits it for jsonschema too."""

from itertools import product
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from mcpspy.transcript.findings.json_schema import fits_plainly

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
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 3, 1.0, 1.5, "", "a", "ab", "abcd", [], [1], ["a"], [1, 2, 3], [True], {}, {"a": 1}, {"a": "a"},
    {"a": None}, {"b": "a"}, {"a": 1, "b": "a"}, {"a": [1]}, {"a": {"a": 1}},
)  # fmt: skip


@pytest.mark.parametrize("validator", [Draft7Validator, Draft202012Validator])
def test_what_fits_plainly_fits(validator: Any) -> None:
    nested = [{"properties": {"a": schema}} for schema in SCHEMAS] + [{"items": schema} for schema in SCHEMAS]
    plain = [(schema, value) for schema, value in product([*SCHEMAS, *nested], VALUES) if fits_plainly(schema, value, [100])]
    assert len(plain) > 300
    assert [(schema, value) for schema, value in plain if not validator(schema).is_valid(value)] == []


def test_a_value_that_takes_too_many_steps_does_not_fit_plainly() -> None:
    assert fits_plainly({"items": {"type": "integer"}}, [1] * 5, [6])
    assert not fits_plainly({"items": {"type": "integer"}}, [1] * 6, [6])

"""A literal of Python has the captured value, and no effect."""

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.views.text.python_literal import MAX_DEPTH, has_literal, literal, quoted, text_literal

TEXTS = st.text(st.characters(codec=None), max_size=40)  # lone surrogates too: JSON can spell them
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def spelled(value: Any) -> str:
    """Spell a value as JSON, in which `1`, `1.0` and `true` differ."""
    return json.dumps(value)


@given(VALUES, st.integers(0, 120))
def test_python_reads_a_literal_back_to_its_value(value: Any, cells: int) -> None:
    assert has_literal(value)
    assert spelled(ast.literal_eval(literal(value, cells=cells))) == spelled(value)


@given(VALUES, st.integers(0, 120))
def test_a_literal_is_one_expression_in_any_context(value: Any, cells: int) -> None:
    source = f"def f():\n    if g():\n        return {literal(value, indent=' ' * 8, cells=cells)}\n"
    [function] = ast.parse(source.encode()).body
    assert isinstance(function, ast.FunctionDef)
    [condition] = function.body
    assert isinstance(condition, ast.If)
    [statement] = condition.body
    assert isinstance(statement, ast.Return)
    assert statement.value is not None
    assert spelled(ast.literal_eval(statement.value)) == spelled(value)


@given(TEXTS, st.integers(0, 120))
def test_python_reads_a_text_literal_back_to_its_text(text: str, cells: int) -> None:
    assert ast.literal_eval(text_literal(text, cells=cells)) == text


@given(TEXTS)
def test_a_quoted_text_is_printable(text: str) -> None:
    assert quoted(text).isprintable()


def test_texts_are_quoted_as_python_formatters_quote_them() -> None:
    assert [quoted(text) for text in ("a", "it's", 'say "x"', "'\"")] == ['"a"', '"it\'s"', "'say \"x\"'", "'\\'\"'"]


def test_a_text_of_several_lines_is_written_line_by_line() -> None:
    assert text_literal("one\ntwo\n", cells=5) == '(\n    "one\\n"\n    "two\\n"\n)'


def test_a_value_that_fits_is_on_one_line() -> None:
    assert literal({"a": [1, None, True]}) == '{"a": [1, None, True]}'


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_the_deepest_literal_is_one_that_python_reads() -> None:
    value = nested(MAX_DEPTH)
    assert has_literal(value)
    assert ast.literal_eval(literal(value)) == value


@pytest.mark.parametrize(
    "value",
    [float("nan"), [float("inf")], {"a": -float("inf")}, nested(MAX_DEPTH + 1), nested(5_000), 10**5_000],
    ids=["NaN", "infinity", "minus infinity", "too deep", "far too deep", "too many digits"],
)
def test_a_value_without_a_literal_is_rejected(value: Any) -> None:
    assert not has_literal(value)

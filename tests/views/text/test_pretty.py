"""JSON is laid out from its bytes: nothing of its spelling is lost, however deep, long or broken."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.views.text.line import line_cells, plain
from mcpspy.views.text.pretty import broken, pretty

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def laid_out(raw: bytes, *, width: int | None = None) -> list[str]:
    return [plain(line) for line in pretty(raw, width=width)]


def test_members_and_items_have_a_line_each() -> None:
    raw = b'{"a":[1,{"b":null}],"c":{},"d":[ ]}'
    assert laid_out(raw) == [
        "{",
        '  "a": [',
        "    1,",
        "    {",
        '      "b": null',
        "    }",
        "  ],",
        '  "c": {},',
        '  "d": []',
        "}",
    ]


@pytest.mark.parametrize(
    "token", ["123456789012345678901234567890", "1e400", "1.0", "-0.0", "NaN", r'"\u00e9\/\ud800"', '"é天"', "true"]
)
def test_every_value_is_spelled_as_it_came(token: str) -> None:
    assert laid_out(f'{{"a":{token}}}'.encode())[1] == f'  "a": {token}'


def test_a_member_that_comes_twice_is_shown_twice() -> None:
    assert laid_out(b'{"a":1,"a":2}')[1:3] == ['  "a": 1,', '  "a": 2']


@given(JSON_VALUES)
def test_without_a_width_it_is_the_same_json(value: Any) -> None:
    raw = json.dumps(value, ensure_ascii=False).encode()
    assert json.loads("\n".join(laid_out(raw))) == value


@given(JSON_VALUES, st.integers(40, 120))
def test_with_a_width_it_is_the_same_text_in_pieces(value: Any, width: int) -> None:
    raw = json.dumps(value, ensure_ascii=False).encode()
    whole = "".join("".join(line.split()) for line in laid_out(raw))
    assert "".join("".join(line.split()) for line in laid_out(raw, width=width)) == whole


@given(st.dictionaries(st.text(max_size=6), st.text(), max_size=3), st.integers(48, 120))
def test_long_strings_are_broken_to_the_width(value: Any, width: int) -> None:
    """A name is not broken: six letters take up to 38 cells with their quotes."""
    raw = json.dumps({"result": value}, ensure_ascii=False).encode()
    assert all(line_cells(line) <= width for line in pretty(raw, width=width))


def test_a_long_string_is_broken_at_its_own_line_ends_first() -> None:
    raw = json.dumps({"text": "first line\nsecond line that is a little longer\nend"}).encode()
    assert laid_out(raw, width=46) == [
        "{",
        '  "text": "first line\\n',
        "           second line that is a little",
        "           longer\\n",
        '           end"',
        "}",
    ]


@given(st.text(), st.integers(2, 30))
def test_a_broken_text_is_the_text(text: str, limit: int) -> None:
    assert "".join(broken(text, limit)) == text


@given(st.binary())
def test_bytes_that_are_not_json_do_not_make_it_raise(data: bytes) -> None:
    assert isinstance(laid_out(data, width=80), list)


def test_a_hundred_thousand_levels_are_laid_out_without_a_hundred_thousand_indents() -> None:
    depth = 100_000
    lines = laid_out(b"[" * depth + b"]" * depth)
    assert len(lines) == 2 * depth - 1
    assert max(map(len, lines)) < 100

"""The code that is read from an error's bytes is the one that parsing finds, or none."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.transcript.mcp.error_code import plain_error_code

CODES = st.one_of(st.integers(), st.integers(-40_000, 0), st.floats(), st.text(max_size=5), st.none(), st.booleans())
ERRORS = st.one_of(
    st.fixed_dictionaries({}, optional={"code": CODES, "message": st.one_of(st.text(), st.none()), "data": CODES}),
    st.lists(CODES, max_size=2),
    CODES,
)


@given(ERRORS)
def test_a_code_that_is_read_is_that_of_the_parsed_error(error: Any) -> None:
    raw = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()
    code = plain_error_code(raw)
    if code is not None:
        assert (type(error["code"]), error["code"]) == (int, code)
        assert isinstance(error["message"], str)


@pytest.mark.parametrize("code", [-32002, -32601, 0, 404])
def test_usual_codes_are_read(code: int) -> None:
    assert plain_error_code(json.dumps({"id": 1, "error": {"code": code, "message": "no", "data": {}}}).encode()) == code


@pytest.mark.parametrize("code", ["-32601.0", "-3.2601e4", '"-32601"', "123456789"])
def test_a_code_of_another_spelling_is_left_to_others(code: str) -> None:
    assert plain_error_code(b'{"id":1,"error":{"code":%s,"message":"no"}}' % code.encode()) is None


@given(st.binary())
def test_nothing_raises(raw: bytes) -> None:
    plain_error_code(raw)

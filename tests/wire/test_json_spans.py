"""Where values stand in a message's bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire.json_spans import place

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def value_at(payload: bytes, *path: str) -> bytes | None:
    found = place(payload, path)
    return None if found is None else payload[found[0] : found[1]]


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        (b'{"id":7}', b"7"),
        (b' {\t"jsonrpc" : "2.0" ,\r\n "id" : "a\\"}b" } ', b'"a\\"}b"'),
        (b'{"id":1,"params":{"id":2},"id":3}', b"3"),
        (b'{"\\u0069d":"x"}', b'"x"'),
        ('{"ü":{"id":1},"id":"ü"}'.encode(), '"ü"'.encode()),
        (b'{"x":"\xff","id":NaN}', b"NaN"),
        (b'\xef\xbb\xbf{"id":12345678901234567890123456789012}', b"12345678901234567890123456789012"),
    ],
)
def test_a_place_is_that_of_the_value_as_it_was_written(payload: bytes, value: bytes) -> None:
    assert value_at(payload, "id") == value


@pytest.mark.parametrize(
    "payload", [b"", b"{", b'{"id"', b'{"id":', b'{"id":}', b"[1]", b"7", b'{"a":1}', b'{"id" 7}', b"\x00"]
)
def test_what_is_not_there_has_no_place(payload: bytes) -> None:
    assert place(payload, ("id",)) is None


@given(st.dictionaries(st.text(), JSON, max_size=3), JSON, st.dictionaries(st.text(), JSON, max_size=3))
def test_exchanging_the_value_at_a_place_changes_nothing_else(
    before: dict[str, object], value: object, after: dict[str, object]
) -> None:
    told = {"jsonrpc": "2.0", "params": {**before, "_meta": {"progressToken": value}, **after}}
    payload = json.dumps(told, ensure_ascii=False).encode("utf-8", "surrogatepass")
    found = place(payload, ("params", "_meta", "progressToken"))
    if "_meta" in after:
        return
    assert found is not None
    changed = payload[: found[0]] + b'"new"' + payload[found[1] :]
    told["params"]["_meta"]["progressToken"] = "new"  # type: ignore[index]
    assert json.loads(changed.decode("utf-8", "surrogatepass")) == told


@given(st.binary(max_size=60))
def test_no_bytes_are_too_odd(payload: bytes) -> None:
    place(payload, ("params", "id"))


@pytest.mark.parametrize(
    ("payload", "path", "value"),
    [
        (b'{"a":[1, {"b":[ "x" ,"y"]} ]}', ("a", 1, "b", 1), b'"y"'),
        (b"[[],[0]]", (1, 0), b"0"),
        (b"[[],[0]]", (0, 0), None),
        (b'[1,"\xc3\xbc",2]', (2,), b"2"),
        (b"[1]", (1,), None),
        (b"[1]", (-1,), None),
        (b'{"0":1}', (0,), None),
        (b"[1,", (1,), None),
    ],
)
def test_an_item_is_found_by_its_index(payload: bytes, path: tuple[str | int, ...], value: bytes | None) -> None:
    found = place(payload, path)
    assert (None if found is None else payload[slice(*found)]) == value

"""JSON-RPC from bytes: the kind of each payload, its flaws, and that nothing a peer sends raises."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire.jsonrpc import Piece, cut, may_begin, parse

DEEP = b"[" * 100_000


def only(payload: bytes) -> Piece:
    (piece,) = cut(payload)
    return piece


def message(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


# --- What a payload is ---


def test_a_method_with_an_id_is_a_request() -> None:
    piece = only(message(id=7, method="tools/list", params={"cursor": "x"}))
    assert (piece.kind, piece.id, piece.method, bytes(piece.content)) == ("request", "7", "tools/list", b'{"cursor": "x"}')


def test_a_method_without_an_id_is_a_notification() -> None:
    piece = only(message(method="notifications/initialized"))
    assert (piece.kind, piece.id, bytes(piece.content)) == ("notification", None, b"")


def test_a_result_is_a_result() -> None:
    piece = only(message(id="x", result={}))
    assert (piece.kind, piece.id, bytes(piece.content)) == ("result", '"x"', b"{}")


def test_an_error_is_an_error() -> None:
    piece = only(message(id=0, error={"code": -32601, "message": "no"}))
    assert (piece.kind, piece.id, piece.method) == ("error", "0", None)


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b'{"id":1,"result":2,"error":null}', "result"),
        (b'{"id":1,"result":null,"error":{}}', "error"),
        (b'{"id":1,"error":null}', "error"),
        (b'{"id":1,"result":null}', "result"),
        (b'{"id":1,"method":null,"result":1}', "result"),
    ],
)
def test_null_members_of_older_dialects_do_not_hide_the_others(payload: bytes, kind: str) -> None:
    assert only(payload).kind == kind


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "blank"),
        (b" \r\n", "blank"),
        (b"Server started\n", "not JSON"),
        (b"{'id': 1}\n", "not JSON"),
        (b'{"id":1,"result":{}\n', "not JSON"),
        (b"{\n", "not JSON"),
        (b"\x00{}", "not JSON"),
        (b'{"id":"a\tb"}', "not JSON"),
        (b"42\n", "not an object"),
        (b'"text"', "not an object"),
        (b"NaN", "not an object"),
        (b"{} {}\n", "more than one value"),
        (b"1 2", "more than one value"),
        (b"[] {}", "more than one value"),
        (b"[]", "empty batch"),
        (b"{}", "no method, result or error"),
        (b'{"id":1,"method":null}', "no method, result or error"),
        (b'{"id":1,"method":5}', "the method is no string"),
        (b'{"id":true,"method":"x"}', "the id is no string and no number"),
        (b'{"id":{},"result":1}', "the id is no string and no number"),
        (DEEP, "nested too deep"),
        (b'{"id":1,"result":' + DEEP, "nested too deep"),
    ],
    ids=lambda value: str(value[:24]),
)
def test_a_malformed_piece_says_why(payload: bytes, reason: str) -> None:
    piece = only(payload)
    assert (piece.kind, piece.reason, piece.raw) == ("malformed", reason, payload)


@given(st.binary())
def test_arbitrary_bytes_raise_nothing(data: bytes) -> None:
    assert cut(data)


@given(st.text(alphabet='{}[]",:\\ 1eNaidmethodresult\n\ufeff', max_size=40))
def test_almost_json_raises_nothing_and_keeps_its_bytes(text: str) -> None:
    payload = text.encode()
    pieces = cut(payload)
    assert all(piece.raw in payload for piece in pieces)


# --- Ids ---


@pytest.mark.parametrize("id", ["7", "7.0", "7e0", "-7", '"7"', "123456789012345678901234567890", "9007199254740993"])
def test_ids_keep_their_spelling(id: str) -> None:
    assert only(b'{"jsonrpc":"2.0","id":%s,"result":1}' % id.encode()).id == id


def test_an_absent_id_differs_from_null() -> None:
    assert (only(b'{"result":1}').id, only(b'{"id":null,"result":1}').id) == (None, "null")


def test_the_last_of_two_ids_counts() -> None:
    assert only(b'{"id":1,"id":2,"result":3}').id == "2"


# --- Flaws ---


@pytest.mark.parametrize(
    ("payload", "flaw"),
    [
        (b'{"result":{}}', "no-jsonrpc"),
        (b'{"jsonrpc":"1.0","method":"x"}', "jsonrpc-version"),
        (b'{"jsonrpc":2.0,"method":"x"}', "jsonrpc-version"),
        (b'{"jsonrpc":"2.0","result":{}}', "no-id"),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', "null-id"),
        (b'{"jsonrpc":"2.0","id":7.5,"method":"x"}', "fractional-id"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","result":1}', "ambiguous"),
        (b'{"jsonrpc":"2.0","id":1,"result":1,"error":{}}', "ambiguous"),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"x"}', "bom"),
        (b'{"jsonrpc":"2.0","method":"x","params":{"a":"\xff"}}', "invalid-utf-8"),
        (b'{"jsonrpc":"2.0","id":1,"result":NaN}', "nan"),
        (b'{"jsonrpc":"2.0","id":1,"result":"\\ud800"}', "lone-surrogate"),
    ],
    ids=lambda value: str(value[-16:]),
)
def test_the_flaws_of_a_readable_message_are_named(payload: bytes, flaw: str) -> None:
    piece = only(payload)
    assert piece.kind != "malformed"
    assert flaw in piece.flaws


@pytest.mark.parametrize(
    "payload",
    [
        message(id=1, method="x"),
        message(id="1.5", method="x"),
        message(id=-1, result=1.5),
        message(method="é\u2028"),
        b'{"jsonrpc":"2.0","id":1,"result":1e400}',
    ],
)
def test_an_ordinary_message_has_no_flaw(payload: bytes) -> None:
    assert only(payload).flaws == ()


def test_invalid_utf8_in_a_method_is_read_as_both_sdks_read_it() -> None:
    assert only(b'{"method":"a\xff"}').method == "a\ufffd"


# --- Batches ---


def test_a_batch_is_cut_into_its_members() -> None:
    first, second = b'{"jsonrpc":"2.0","id":1,"method":"a"}', b'{ "jsonrpc":"2.0","method":"b" }'
    batch = b"[ %s ,%s]\n" % (first, second)
    assert [(piece.raw, piece.kind, piece.batch) for piece in cut(batch)] == [
        (first, "request", batch),
        (second, "notification", batch),
    ]


def test_a_member_that_is_no_message_does_not_spoil_the_batch() -> None:
    assert [piece.kind for piece in cut(b'[{"method":"a"},5,[],{"result":NaN}]')] == [
        "notification",
        "malformed",
        "malformed",
        "result",
    ]


def test_members_of_a_batch_keep_bytes_that_are_not_utf8() -> None:
    member = b'{"method":"\xff"}'
    assert only(b"[%s]" % member).raw == member


# --- Values ---


def test_parsed_integers_are_exact() -> None:
    assert parse(b'{"id":123456789012345678901234567890}')["id"] == 123456789012345678901234567890


def test_an_integer_that_python_will_not_convert_comes_as_text() -> None:
    assert parse(b"[" + b"9" * 5000 + b"]") == ["9" * 5000]


def test_parsing_strips_a_bom_and_replaces_what_is_not_utf8() -> None:
    assert parse(b'\xef\xbb\xbf"\xff"') == "\ufffd"


@given(st.binary())
def test_parsing_arbitrary_bytes_raises_nothing(data: bytes) -> None:
    parse(data)


def test_parsing_values_that_are_nested_too_deep_raises_nothing() -> None:
    assert parse(DEEP) is None


@given(st.integers(0, 2000))
def test_every_payload_that_can_be_cut_can_be_parsed_however_deep(depth: int) -> None:
    payload = b'{"id":1,"result":' + b"[" * depth + b"]" * depth + b"}"
    assert (only(payload).kind == "malformed") or parse(payload) is not None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(
    st.dictionaries(st.text(), VALUES) | st.lists(VALUES, min_size=1),
    st.sampled_from(["ascii", "utf-8"]),
    st.sampled_from(["", "\ufeff", " \r\n"]),
    st.data(),
)
def test_every_beginning_of_a_message_may_begin_one(value: Any, letters: str, before: str, data: st.DataObject) -> None:
    payload = (before + json.dumps(value, ensure_ascii=letters == "ascii")).encode("utf-8", "surrogatepass")
    assert may_begin(payload[: data.draw(st.integers(len(before.encode()), len(payload)))])


@pytest.mark.parametrize(
    "data", [b"garbage", b"\xff\x00", b'"text"', b"{{{{", b'{"a":1}{"b":2}', b"[1 2", b"{a:1}", b'{"a" "b"']
)
def test_what_no_reader_can_read_begins_no_message(data: bytes) -> None:
    assert not may_begin(data + b"," * 20)

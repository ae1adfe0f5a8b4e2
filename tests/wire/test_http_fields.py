"""Fields of a head: changing one changes nothing else, and no value gets out of its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire.http_head import fields, values, with_field, with_mapped_values, with_value, without_field

HEAD = b"GET / HTTP/1.1\r\nhost:\t a:1 \r\nX-Host: host: b\r\nOrigin:http://a:1\r\nVary: x\r\nvary:\r\n\r\n"

TOKENS = st.from_regex(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,6}", fullmatch=True)
VALUES = st.from_regex(rb"([!-~]([ \t!-~]{0,8}[!-~])?)?", fullmatch=True)
FIELDS = st.lists(st.tuples(TOKENS, VALUES), max_size=6)


def head_of(pairs: list[tuple[bytes, bytes]]) -> bytes:
    return b"GET / HTTP/1.1\r\n" + b"".join(b"%b: %b\r\n" % field for field in pairs) + b"\r\n"


def test_a_value_is_replaced_and_the_space_around_it_stays() -> None:
    assert with_mapped_values(HEAD, b"Host", lambda _: b"b:22") == HEAD.replace(b"\t a:1 ", b"\t b:22 ")


def test_every_field_of_the_name_is_mapped() -> None:
    assert with_mapped_values(HEAD, b"vary", lambda value: value + b"y") == HEAD.replace(b"Vary: x", b"Vary: xy").replace(
        b"vary:", b"vary:y"
    )


def test_an_unchanged_head_is_the_same_object() -> None:
    assert with_mapped_values(HEAD, b"origin", lambda value: value) is HEAD
    assert with_mapped_values(HEAD, b"absent", lambda value: b"x") is HEAD
    assert without_field(HEAD, b"absent") is HEAD


def test_a_field_is_removed_with_its_line() -> None:
    assert without_field(HEAD, b"VARY") == HEAD.replace(b"Vary: x\r\nvary:\r\n", b"")


def test_a_new_field_follows_the_others() -> None:
    assert with_field(HEAD, b"Accept-Encoding", b"identity") == HEAD[:-2] + b"Accept-Encoding: identity\r\n\r\n"


def test_a_head_without_fields_gets_its_first() -> None:
    assert with_field(b"GET / HTTP/1.0\r\n\r\n", b"A", b"b") == b"GET / HTTP/1.0\r\nA: b\r\n\r\n"


def test_a_value_is_set_where_there_is_one() -> None:
    assert with_value(HEAD, b"Host", b"b") == with_mapped_values(HEAD, b"Host", lambda _: b"b")


def test_a_value_is_set_in_every_field_of_the_name() -> None:
    assert values(with_value(HEAD, b"Vary", b"z"), b"vary") == [b"z", b"z"]


def test_a_value_is_added_where_there_is_none() -> None:
    assert with_value(HEAD, b"A", b"b") == with_field(HEAD, b"A", b"b")


@pytest.mark.parametrize("value", [b"a\r\nEvil: b", b"a\n", b"\r", b"\0"])
def test_a_value_cannot_break_out_of_its_line(value: bytes) -> None:
    with pytest.raises(ValueError, match="CR, LF or NUL"):
        with_mapped_values(HEAD, b"Host", lambda _: value)
    with pytest.raises(ValueError, match="CR, LF or NUL"):
        with_field(HEAD, b"Host", value)


@pytest.mark.parametrize("name", [b"", b"a b", b"a:", b"a\r\n", b"\xc3\xa4"])
def test_a_name_is_a_token(name: bytes) -> None:
    with pytest.raises(ValueError, match="not a field name"):
        with_field(HEAD, name, b"x")


def test_a_head_that_is_not_whole_gets_no_field() -> None:
    with pytest.raises(ValueError, match="empty line"):
        with_field(b"GET / HTTP/1.1\r\nHost: a\r\n", b"A", b"b")


@given(FIELDS)
def test_fields_are_read_as_written(pairs: list[tuple[bytes, bytes]]) -> None:
    assert fields(head_of(pairs)) == pairs


@given(FIELDS, TOKENS, VALUES)
def test_mapping_changes_the_values_of_that_name_alone(pairs: list[tuple[bytes, bytes]], name: bytes, value: bytes) -> None:
    expected = [(own, value if own.lower() == name.lower() else old) for own, old in pairs]
    assert fields(with_mapped_values(head_of(pairs), name, lambda _: value)) == expected


@given(FIELDS, TOKENS)
def test_removing_leaves_all_fields_of_other_names(pairs: list[tuple[bytes, bytes]], name: bytes) -> None:
    assert without_field(head_of(pairs), name) == head_of([field for field in pairs if field[0].lower() != name.lower()])


@given(FIELDS, TOKENS, VALUES)
def test_a_value_that_was_set_is_read_back(pairs: list[tuple[bytes, bytes]], name: bytes, value: bytes) -> None:
    assert set(values(with_value(head_of(pairs), name, value), name)) == {value}


@given(st.binary())
def test_arbitrary_bytes_have_fields_or_none_and_raise_nothing(data: bytes) -> None:
    assert isinstance(fields(data), list)
    assert isinstance(values(data, b"a"), list)

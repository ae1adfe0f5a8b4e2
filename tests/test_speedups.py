"""speedups.c against its reference: for any arguments the same bytes, or an error of the same class."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy import __version__, compiled, plain_lines
from mcpspy.sharing import credentials
from mcpspy.wire import http_body, sse
from tests.deadlines import DEADLINE_S

BUILT = compiled.speedups
pytestmark = pytest.mark.skipif(BUILT is None, reason="built without speedups, or switched off")

MAX_LENGTH = 100_000
numbers = st.integers(0, 2**64 - 100) | st.integers(0, 10**6)
of_any_length = st.builds(
    lambda piece, length: (piece * (length // max(len(piece), 1) + 1))[:length],
    st.binary(min_size=1, max_size=40),
    st.integers(0, MAX_LENGTH),
)
texts = st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass"))
json_texts = st.text(alphabet='{}[]:,"\\ab\n\t\x00\x1f\x7f \x80é€😀', max_size=600).map(str.encode)
payloads = st.binary(max_size=300) | texts | json_texts | of_any_length
line_ends = st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n", b"\r\n\r\n", b"\r\n\n", b"", b"data: x", b"data: \xff", b":"])
events = st.lists(line_ends, max_size=8).map(b"".join)


def outcome(function: Callable[..., Any], *arguments: object) -> object:
    """Return the value of a call, or the class of its error."""
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, both raise it
        return type(error)


def assert_same(reference: Callable[..., Any], *arguments: object) -> None:
    """Call the reference and the function in C that has its name."""
    in_c = getattr(BUILT, reference.__name__)
    assert outcome(in_c, *arguments) == outcome(reference, *arguments)


@given(numbers, numbers, numbers, payloads)
@example(1, 2, 3, b"")
@example(1, 2, 3, bytes(range(128)))
@example(1, 2, 3, b"x" * 65_535 + "é".encode())
@example(1, 2, 3, b"x" * 65_534 + "😀".encode() + b"\xff")
@example(1, 2, 3, b"x" * 70_000 + b"\xe2\x82")
@example(1, 2, 3, b"\xed\xa0\x80")
@example(2**64 - 1, 2**63 - 1, 0, b'"')
def test_lines_of_a_frame_and_of_an_event_are_the_same(number: int, stream: int, at_ns: int, data: bytes) -> None:
    for is_event in (False, True):
        assert_same(plain_lines.message_lines, number, stream, at_ns, "", [data], "", is_event)


@pytest.mark.parametrize("byte", range(256))
def test_each_byte_is_the_same_at_each_place_of_a_block(byte: int) -> None:
    for before in range(10):
        for after in (0, 1, 9):
            assert_same(plain_lines.message_lines, 1, 0, 1, "", [b"a" * before + bytes([byte]) + b'"' * after], "", False)


@given(
    st.integers(1, 10**9),
    numbers,
    numbers,
    st.text(max_size=60),
    st.lists(payloads, max_size=5),
    st.sampled_from(["", "client"]),
    st.booleans(),
)
def test_lines_of_a_message_are_the_same(
    number: int,
    stream: int,
    at_ns: int,
    opening: str,
    frames: list[bytes],
    by: str,
    is_event: bool,  # noqa: FBT001
) -> None:
    assert_same(plain_lines.message_lines, number, stream, at_ns, opening, frames, by, is_event)


@given(
    events | payloads, st.sampled_from(["%x", "%X", "0%x", "%x ", "-%x", "", "ffffffffffffffff%x", "%x;a"]), st.integers(-2, 2)
)
def test_an_event_of_a_chunk_is_the_same(event: bytes, size: str, more: int) -> None:
    length = max(0, len(event) + more)
    line = (size % length if "%" in size else size).encode()
    for ending in (b"\r\n", b"\n", b"\r", b""):
        assert_same(sse.event_of_chunk, line + b"\r\n" + event + ending)


@given(
    st.lists(payloads | st.sampled_from([b"0\r\n\r\n", b"5;a=b\r\n"]), max_size=5), st.binary(max_size=20), st.integers(0, 20)
)
def test_whole_chunks_are_the_same(parts: list[bytes], rest: bytes, cut: int) -> None:
    data = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + rest
    assert_same(http_body.whole_chunks, data, 0)
    assert_same(http_body.whole_chunks, data[: max(0, len(data) - cut)], min(cut, max(0, len(data) - cut)))


@given(st.binary(max_size=30))
def test_an_event_of_any_bytes_is_the_same(data: bytes) -> None:
    assert_same(sse.event_of_chunk, data)


words = st.lists(
    st.sampled_from(
        [b"ghp_", b"sk-", b"eyJ", b"hvs.", b"\\n", b"x" * 19, b"0" * 20, b"a-b_c+d", b" ", b".", b'"', b"\xc3\xa9"]
    ),
    max_size=30,
)


@given(words.map(b"".join) | payloads, st.integers(2, 30))
@example(b"e." + b"x" * 20, 20)
@example(b"." + b"x" * 20 + b".", 20)
@example(b"x" * 39 + b" ghp_" + b"x" * 16, 20)
def test_places_of_tokens_are_the_same(data: bytes, shortest: int) -> None:
    assert_same(credentials.token_places, data, credentials.KINDS, shortest)


def test_kinds_of_another_size_and_words_of_one_letter_are_refused() -> None:
    for kinds, shortest in ((credentials.KINDS[1:], 20), (credentials.KINDS, 1), (credentials.KINDS, -1)):
        with pytest.raises(ValueError, match="takes the kinds"):
            BUILT.token_places(b"x" * 40, kinds, shortest)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["message_lines", "whole_chunks", "relay_event", "token_places"])
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (1,),
        (1, 2, 3),
        ("1", 2, 3, b""),
        (1, 2, 3, "text"),
        (b"", "1"),
        ("", 1),
        (2**64, 2, 3, b""),
        (1, 2, 3, [b"", 4]),
        (1, 2, 3, None, 5, 6, 7),
        (1, 2, 3, "", None, "", 7),
        (1, 2, 3, "", [b"", 4], "", 7),
        (1, 2, 3, "4", 5, 6),
    ],
    ids=repr,
)
def test_wrong_arguments_are_errors(name: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises((TypeError, OverflowError)):
        getattr(BUILT, name)(*arguments)


def test_a_variable_switches_them_off() -> None:
    for value, suffix in (("1", b""), ("", b", with speedups in C")):
        command = [sys.executable, "-m", "mcpspy", "--version"]
        printed = subprocess.check_output(command, env={**os.environ, "MCPSPY_PURE": value}, timeout=DEADLINE_S)
        assert printed == b"mcpspy, version %b%b\n" % (__version__.encode(), suffix)


def test_lines_of_a_mebibyte_are_the_same() -> None:
    for data in (b"x" * (1 << 20), "é".encode() * (1 << 19), b'"' * (1 << 20), b"\x01" * (1 << 20)):
        assert_same(plain_lines.message_lines, 1, 0, 1, "", [data], "", False)

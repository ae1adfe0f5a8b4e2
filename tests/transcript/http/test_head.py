"""Recorded HTTP heads, and the chunks that begin in frames."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.records import Frame
from mcpspy.transcript.http.head import read_head
from mcpspy.transcript.http.payloads import chunk_sizes
from mcpspy.transcript.http.transaction import OpenChunk


def test_a_request_line_has_a_method_and_a_target() -> None:
    head = read_head(b"POST /messages?s=a%20b HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (head.method, head.target, head.status) == ("POST", "/messages?s=a%20b", 0)


def test_a_status_line_has_a_status_and_a_reason() -> None:
    head = read_head(b"HTTP/1.1 404 Not Found\r\n\r\n")
    assert (head.status, head.reason) == (404, "Not Found")


@pytest.mark.parametrize("raw", [b"HTTP/1.1 200\r\n\r\n", b"HTTP/1.1 200 \n\n"])
def test_a_reason_may_be_missing(raw: bytes) -> None:
    assert (read_head(raw).status, read_head(raw).reason) == (200, "")


def test_fields_keep_their_order_their_case_and_their_repetitions() -> None:
    head = read_head(b"GET / HTTP/1.1\r\nB: 1\r\na:\t2 \r\nb: 3\r\n\r\n")
    assert head.fields == (("B", "1"), ("a", "2"), ("b", "3"))
    assert head.get("b") == "1"


def test_a_folded_line_belongs_to_the_one_before() -> None:
    assert read_head(b"GET / HTTP/1.1\r\nA: 1\r\n  2\r\n\r\n").fields == (("A", "1 2"),)


def test_a_media_type_comes_without_its_parameters() -> None:
    assert (
        read_head(b"HTTP/1.1 200\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\r\n").media_type == "text/event-stream"
    )


@given(st.binary())
def test_no_bytes_raise(raw: bytes) -> None:
    head = read_head(raw)
    assert isinstance(head.status, int)
    assert isinstance(head.target + head.method + head.reason + head.media_type, str)


def frames(*pieces: tuple[int, tuple[int, ...]]) -> list[Frame]:
    return [Frame(0, 0, 0, b"x" * length, chunks=chunks) for length, chunks in pieces]


def beginning(frames: list[Frame]) -> list[tuple[int, ...]]:
    """Return the sizes of the chunks that begin in each frame."""
    open_chunk: OpenChunk = None
    sizes = []
    for frame in frames:
        new, open_chunk = chunk_sizes(frame, open_chunk)
        sizes.append(new)
    return sizes


@pytest.mark.parametrize(
    ("pieces", "begun"),
    [
        ([(81, (81,)), (20, (20,))], [(81,), (20,)]),
        ([(30, (81,)), (51, (81,)), (5, (5,))], [(81,), (), (5,)]),
        ([(100, (64, 36)), (10, (10,))], [(64, 36), (10,)]),
        ([(50, (81,)), (41, (81, 10))], [(81,), (10,)]),
        ([(81, (81,)), (81, (81,))], [(81,), (81,)]),
        ([(5, ())], [()]),
    ],
)
def test_a_chunk_begins_in_one_frame_and_may_go_on_in_others(
    pieces: list[tuple[int, tuple[int, ...]]], begun: list[tuple[int, ...]]
) -> None:
    assert beginning(frames(*pieces)) == begun


@given(st.lists(st.integers(1, 20), min_size=1, max_size=12), st.lists(st.integers(1, 20), min_size=1, max_size=12))
def test_every_chunk_begins_once_however_chunks_and_frames_lie(sizes: list[int], lengths: list[int]) -> None:
    ends, at = [], 0
    for size in sizes:
        ends.append((at, at + size, size))
        at += size
    made, start = [], 0
    for length in [*lengths, at]:
        stop = min(start + length, at)
        if stop > start:
            made.append((stop - start, tuple(size for begin, end, size in ends if begin < stop and end > start)))
        start = stop
    assert [size for begun in beginning(frames(*made)) for size in begun] == sizes

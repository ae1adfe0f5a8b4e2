"""Bodies as one unit, in bounded memory, and the framing of a body."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire import http_body
from mcpspy.wire.http_body import WholeBody, body_framing
from mcpspy.wire.lines import MAX_HELD_BYTES
from tests.wire.cutting import CUTS, reads


def pieces(data: list[bytes]) -> list[bytes]:
    machine = WholeBody()
    return [piece for read in data for piece in machine.feed(read)] + machine.close()


# --- One unit ---


@given(st.binary(), CUTS)
def test_a_short_body_is_one_piece_however_it_arrives(data: bytes, sizes: list[int]) -> None:
    assert pieces(reads(data, sizes)) == ([data] if data else [])


@given(st.binary(), CUTS)
def test_the_parts_of_a_long_body_joined_are_the_body(data: bytes, sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_body, "MAX_HELD_BYTES", 8)
        assert b"".join(pieces(reads(data, sizes))) == data


@given(st.binary(min_size=1), CUTS)
def test_something_is_left_to_complete_a_body(data: bytes, sizes: list[int]) -> None:
    machine = WholeBody()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_body, "MAX_HELD_BYTES", 8)
        for read in reads(data, sizes):
            assert b"" not in machine.feed(read)
            assert machine.held_bytes == len(machine.held) > 0
        assert len(machine.close()) == 1


@given(st.text(min_size=1), CUTS)
def test_parts_of_utf8_are_utf8(text: str, sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_body, "MAX_HELD_BYTES", 8)
        for piece in pieces(reads(text.encode(), sizes)):
            piece.decode()


def test_no_more_than_the_bound_and_one_read_is_held() -> None:
    machine = WholeBody()
    for _ in range(64):
        machine.feed(b"x" * (1 << 16))
        assert machine.held_bytes < MAX_HELD_BYTES


def test_after_the_close_nothing_is_held() -> None:
    machine = WholeBody()
    machine.feed(b"a")
    machine.close()
    assert (machine.close(), machine.held_bytes) == ([], 0)


# --- Which framing ---


@pytest.mark.parametrize(
    ("content_type", "encoding", "expected"),
    [
        (b"text/event-stream", None, "sse"),
        (b"Text/Event-Stream ; charset=utf-8", b"", "sse"),
        (b"text/event-stream", b"identity", "sse"),
        (b"text/event-stream", b"gzip", "body"),
        (b"text/event-streams", None, "body"),
        (b"application/x-ndjson", None, "lines"),
        (b"application/jsonl", b"br", "body"),
        (b"application/json", None, "body"),
        (b"\xff", None, "body"),
        (None, None, "body"),
    ],
)
def test_a_body_is_cut_by_its_type_unless_it_is_compressed(
    content_type: bytes | None, encoding: bytes | None, expected: str
) -> None:
    assert body_framing(content_type, encoding) == expected

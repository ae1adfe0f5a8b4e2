"""The stdio framing: nothing is lost, nothing is cut but at LF, and how the bytes arrived makes no difference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire import lines
from mcpspy.wire.lines import Lines

PARTICLES = [b"\n", b"\r\n", b"a", b"{}", "\u2028".encode(), "é".encode(), b"\xff", b"\x85"]
STREAMS = st.lists(st.sampled_from(PARTICLES)).map(b"".join)
CUTS = st.lists(st.integers(1, 7), min_size=1)


def chunks(data: bytes, sizes: list[int]) -> list[bytes]:
    """Cut `data` into pieces of these sizes, repeated until the data ends."""
    parts: list[bytes] = []
    at = 0
    while at < len(data):
        size = sizes[len(parts) % len(sizes)]
        parts.append(data[at : at + size])
        at += size
    return parts


def pieces(data: list[bytes]) -> list[bytes]:
    framing = Lines()
    return [piece for chunk in data for piece in framing.feed(chunk)] + framing.close()


def joined(parts: list[bytes]) -> list[bytes]:
    """Join pieces that may be parts to whole lines."""
    whole, held = [], b""
    for piece in parts:
        held += piece
        if held.endswith(b"\n"):
            whole.append(held)
            held = b""
    return [*whole, held] if held else whole


@given(STREAMS, CUTS)
def test_any_cutting_of_the_input_gives_the_same_lines(data: bytes, sizes: list[int]) -> None:
    assert pieces(chunks(data, sizes)) == pieces([data])


@given(st.lists(st.binary(min_size=1)))
def test_the_pieces_joined_are_the_stream(data: list[bytes]) -> None:
    assert b"".join(pieces(data)) == b"".join(data)


@given(STREAMS)
def test_every_piece_but_the_last_ends_in_its_only_lf(data: bytes) -> None:
    assert all(piece.find(b"\n") == len(piece) - 1 for piece in pieces([data])[:-1])


@given(STREAMS, CUTS)
def test_long_lines_come_in_parts_that_join_to_the_same_lines(data: bytes, sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "MAX_HELD_BYTES", 4)
        assert joined(pieces(chunks(data, sizes))) == joined(pieces([data]))


@given(st.text(min_size=1), CUTS)
def test_parts_of_utf8_are_utf8(text: str, sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "MAX_HELD_BYTES", 5)
        for piece in pieces(chunks(text.encode(), sizes)):
            piece.decode()


def test_no_more_than_the_bound_and_one_chunk_is_held() -> None:
    framing = Lines()
    for _ in range(64):
        framing.feed(b"x" * (1 << 16))
        assert framing.held_bytes < lines.MAX_HELD_BYTES


def test_bytes_that_wait_for_their_end_can_be_looked_at() -> None:
    framing = Lines()
    framing.feed(b"a\nbc")
    framing.feed(b"d")
    assert framing.held == b"bcd"


def test_u2028_and_nel_do_not_end_a_line() -> None:
    line = '"\u2028\u2029\u0085"\n'.encode()
    assert pieces([line]) == [line]


def test_a_last_line_without_end_comes_at_the_close() -> None:
    framing = Lines()
    framing.feed(b"a\nb")
    assert framing.close() == [b"b"]


def test_after_the_close_nothing_is_held() -> None:
    framing = Lines()
    framing.feed(b"b")
    framing.close()
    assert (framing.close(), framing.held_bytes) == ([], 0)

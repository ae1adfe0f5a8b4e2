"""Bodies as one unit, the framing that a body has, and what compressed ones say: bounded, whatever they are."""

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire import body
from mcpspy.wire.body import MAX_DECODED_BYTES, Whole, decoded, framing
from mcpspy.wire.lines import MAX_HELD_BYTES
from tests.wire.cutting import CUTS, reads


def pieces(data: list[bytes]) -> list[bytes]:
    machine = Whole()
    return [piece for read in data for piece in machine.feed(read)] + machine.close()


# --- One unit ---


@given(st.binary(), CUTS)
def test_a_short_body_is_one_piece_however_it_came(data: bytes, sizes: list[int]) -> None:
    assert pieces(reads(data, sizes)) == ([data] if data else [])


@given(st.binary(), CUTS)
def test_the_parts_of_a_long_body_joined_are_the_body(data: bytes, sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body, "MAX_HELD_BYTES", 8)
        assert b"".join(pieces(reads(data, sizes))) == data


@given(st.binary(min_size=1), CUTS)
def test_something_is_left_to_complete_a_body(data: bytes, sizes: list[int]) -> None:
    machine = Whole()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body, "MAX_HELD_BYTES", 8)
        for read in reads(data, sizes):
            assert b"" not in machine.feed(read)
            assert machine.held_bytes == len(machine.held) > 0
        assert len(machine.close()) == 1


@given(st.text(min_size=1), CUTS)
def test_parts_of_utf8_are_utf8(text: str, sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body, "MAX_HELD_BYTES", 8)
        for piece in pieces(reads(text.encode(), sizes)):
            piece.decode()


def test_no_more_than_the_bound_and_one_read_is_held() -> None:
    machine = Whole()
    for _ in range(64):
        machine.feed(b"x" * (1 << 16))
        assert machine.held_bytes < MAX_HELD_BYTES


def test_after_the_close_nothing_is_held() -> None:
    machine = Whole()
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
    assert framing(content_type, encoding) == expected


# --- What compressed bodies say ---


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@given(st.binary())
def test_what_was_compressed_is_read(data: bytes) -> None:
    assert decoded(gzip.compress(data), b"gzip") == data
    assert decoded(gzip.compress(data), b"X-GZip") == data
    assert decoded(zlib.compress(data), b"deflate") == data
    assert decoded(gzip.compress(zlib.compress(data)), b"deflate, identity, gzip") == data
    assert decoded(data, b"identity") == decoded(data, b"") == data


@given(st.binary(min_size=1))
def test_deflate_without_its_header_is_read_as_clients_do(data: bytes) -> None:
    packed = raw_deflate(data)
    assert decoded(packed, b"deflate") == data


@given(st.lists(st.binary(max_size=20), min_size=1))
def test_all_members_of_gzip_are_read(members: list[bytes]) -> None:
    assert decoded(b"".join(map(gzip.compress, members)), b"gzip") == b"".join(members)


def test_bytes_behind_the_end_are_left_out() -> None:
    assert decoded(gzip.compress(b"a") + b"\0\0junk", b"gzip") == b"a"
    assert decoded(zlib.compress(b"a") + gzip.compress(b"b"), b"deflate") == b"a"


@given(st.binary(min_size=1, max_size=200), st.integers(0, 60))
def test_what_was_cut_short_is_read_as_far_as_it_goes(data: bytes, size: int) -> None:
    assert data.startswith(decoded(gzip.compress(data)[:size], b"gzip"))


@given(st.binary() | st.binary().map(lambda data: gzip.compress(b"abc" * 100)[:20] + data), st.binary(max_size=8))
def test_arbitrary_bytes_raise_nothing_but_value_error(data: bytes, encoding: bytes) -> None:
    for coding in (b"gzip", b"deflate", b"gzip, deflate", encoding):
        try:
            decoded(data, coding)
        except ValueError:
            continue


@pytest.mark.parametrize("coding", [b"br", b"zstd", b"gzip, br", b"\xff"])
def test_an_unknown_coding_is_said(coding: bytes) -> None:
    with pytest.raises(ValueError, match="no decoder for"):
        decoded(b"x", coding)


def test_more_codings_than_anybody_sends_are_refused() -> None:
    with pytest.raises(ValueError, match="4 content codings"):
        decoded(b"", b"gzip, gzip, gzip, gzip")


@pytest.mark.parametrize("members", [1, 2])
def test_a_bomb_is_refused_before_it_is_unpacked(members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "MAX_DECODED_BYTES", 1 << 20)
    bomb = gzip.compress(b"\0" * ((1 << 20) // members + 1)) * members
    with pytest.raises(ValueError, match="decodes to more than 1 MiB"):
        decoded(bomb, b"gzip")


def test_a_bomb_takes_no_more_memory_than_what_may_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "MAX_DECODED_BYTES", 1 << 20)
    bomb = gzip.compress(b"\0" * (1 << 20)) + gzip.compress(b"\0" * (1 << 25))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="decodes to more"):
            decoded(bomb, b"gzip")
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()


def test_what_is_as_large_as_it_may_be_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "MAX_DECODED_BYTES", 1 << 20)
    assert decoded(gzip.compress(b"\0" * (1 << 20)), b"gzip") == b"\0" * (1 << 20)


def test_the_limit_is_what_the_documentation_says() -> None:
    assert MAX_DECODED_BYTES == 64 << 20

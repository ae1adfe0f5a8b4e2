"""Chunk sizes: the chunks in which a part of a body came, as a packet capture would show them."""

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire.http_body import ChunkSizes


def test_an_event_that_is_a_chunk_has_its_size() -> None:
    sizes = ChunkSizes()
    sizes.add((7,))
    assert sizes.take(7) == (7,)


def test_an_event_over_several_chunks_has_all_their_sizes() -> None:
    sizes = ChunkSizes()
    sizes.add((3, 4))
    sizes.add((5,))
    assert sizes.take(12) == (3, 4, 5)


def test_a_chunk_with_several_events_counts_for_each() -> None:
    sizes = ChunkSizes()
    sizes.add((10, 4))
    assert [sizes.take(3), sizes.take(3), sizes.take(5), sizes.take(3)] == [(10,), (10,), (10, 4), (4,)]


def test_a_body_without_chunks_has_no_sizes() -> None:
    assert ChunkSizes().take(5) == ()


def test_an_empty_part_came_in_no_chunk() -> None:
    sizes = ChunkSizes()
    sizes.add((3,))
    assert (sizes.take(0), sizes.take(3)) == ((), (3,))


@given(st.lists(st.integers(1, 5)), st.lists(st.integers(1, 7)))
def test_a_part_came_in_the_chunks_that_it_overlaps(chunks: list[int], stretches: list[int]) -> None:
    owner = [number for number, size in enumerate(chunks) for _ in range(size)]
    sizes = ChunkSizes()
    sizes.add(chunks)
    at = 0
    for length in stretches:
        expected = sorted(set(owner[at : at + length]))
        if at + length <= len(owner):
            assert sizes.take(length) == tuple(chunks[number] for number in expected)
        at += length

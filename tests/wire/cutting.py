"""Streams cut into reads of every size, for tests that hold that the reads make no difference."""

from hypothesis import strategies as st

CUTS = st.lists(st.integers(1, 9), min_size=1)
"""Sizes of reads, repeated until the data ends."""


def reads(data: bytes, sizes: list[int]) -> list[bytes]:
    """Cut `data` into pieces of these sizes."""
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(data[at : at + size])
        at += size
    return pieces

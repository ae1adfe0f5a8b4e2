"""Streams cut into reads of every size, for tests that say: however the bytes arrive, the same comes out."""

from hypothesis import strategies as st

CUTS = st.lists(st.integers(1, 9), min_size=1)
"""Sizes of reads, used over and over."""


def reads(data: bytes, sizes: list[int]) -> list[bytes]:
    """`data` cut into pieces of these sizes."""
    found: list[bytes] = []
    at = 0
    while at < len(data):
        size = sizes[len(found) % len(sizes)]
        found.append(data[at : at + size])
        at += size
    return found

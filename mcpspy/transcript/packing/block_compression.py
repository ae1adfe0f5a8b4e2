"""Blocks of MessagePack to bytes to keep: the first blocks as they are, later ones compressed.

Compression makes a block five times smaller and takes 1.4 µs a row. A capture of a million messages has 6,000 blocks; few blocks
take so little memory that the time is better saved. Inside `kept_in` blocks are kept as they are outside of memory, and here only
their names.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

PLAIN_BLOCKS: Final = 2048
"""So many blocks are kept as they are: about 30 MB."""

ALWAYS: Final = 1 << 31
"""The `before` of a block that is to be compressed whatever its number is."""

_SIGN: Final = b"\x78"
"""The first byte of what zlib compresses, which no array of MessagePack begins with."""

_ELSEWHERE: Final = b"\0"
"""Put before the name of a block that is kept outside of memory. Neither kind of block begins with this byte."""


class BlockPlace(Protocol):
    """A place for blocks outside of memory. `add` returns the name of a block there, under which `get` returns it."""

    def add(self, block: bytes, /) -> bytes: ...

    def get(self, name: bytes, /) -> bytes: ...


_places: Final[list[BlockPlace]] = []


@contextmanager
def kept_in(place: BlockPlace) -> Iterator[None]:
    """Keep all blocks in this place until the context ends. Afterwards they cannot be read."""
    _places.append(place)
    try:
        yield
    finally:
        _places.pop()


def compressed(data: bytes, before: int) -> bytes:
    """Return a block to keep; `before` is the number of blocks before it."""
    if _places:
        return _ELSEWHERE + _places[-1].add(data)
    return data if before < PLAIN_BLOCKS else zlib.compress(data, 1)


def decompressed(block: bytes) -> bytes:
    """Return the MessagePack of a block."""
    if block[:1] == _ELSEWHERE:
        return _places[-1].get(block[1:])
    return zlib.decompress(block) if block[:1] == _SIGN else block

"""What stands between the heads of an HTTP/1.x connection: pieces of bodies, their ends and their faults; and chunk sizes.

The grammar of chunks and trailers is that of RFC 9112, section 7.1. Refuses to hold a body.
"""

import re
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

MAX_CHUNK_LINE_BYTES: Final = 1 << 13
"""A chunk's size with its extensions, which hardly anybody sends; a longer line is refused."""


class Body(msgspec.Struct, frozen=True, gc=False):
    """The part of a body that came with one read: `payload` without, `raw` with the framing of chunks.

    `chunks` are the sizes of the HTTP/1.1 chunks that began in it; the last one may go on in later pieces.
    """

    raw: bytes
    payload: bytes
    chunks: tuple[int, ...] = ()


class BodyEnd(msgspec.Struct, frozen=True, gc=False):
    """A message is complete. `raw` is what came behind the last byte of a chunked body, its trailer section (`trailers`) included."""

    raw: bytes = b""
    trailers: bytes = b""


class BlankLines(msgspec.Struct, frozen=True, gc=False):
    """Empty lines where a head was to begin, which belong to no message (RFC 9112, section 2.2)."""

    raw: bytes


class OpaqueBytes(msgspec.Struct, frozen=True, gc=False):
    """Bytes that are not ours to cut: of another protocol after an upgrade, or whatever follows a refusal."""

    raw: bytes


class RefusedBytes(msgspec.Struct, frozen=True, gc=False):
    """From here on the connection is not HTTP that everybody reads in the same way; `raw` is the rest of the read.

    A request like this is to be answered 400, a response to be relayed as it comes until the close.
    """

    raw: bytes
    reason: str


class IncompleteMessage(msgspec.Struct, frozen=True, gc=False):
    """The connection closed within a message; `raw` is what was still held back of it.

    `missing_bytes` of payload are known to be missing: of the Content-Length, or of the last chunk. None where nobody can tell:
    within a head, between chunks, in trailers.
    """

    raw: bytes
    missing_bytes: int | None = None


END: Final = BodyEnd()
"""The end of every message that was not chunked."""

_field = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n"

chunk_line = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;[^\r\n\0]*)?\r\n").match
is_trailers = re.compile(rb"(?:%b)*" % _field).fullmatch


class ChunkSizes:
    """Tells in which chunks a stretch of a body came: people compare with a packet capture.

    `add` takes what `Body.chunks` has; `take` goes on by so many bytes of payload, and returns the sizes of the chunks that they
    lie in. A chunk that holds the end of one stretch and the beginning of the next counts for both.
    """

    __slots__ = ("_sizes", "_taken")

    def __init__(self) -> None:
        self._sizes: deque[int] = deque()
        self._taken = 0

    def add(self, sizes: Sequence[int]) -> None:
        self._sizes.extend(sizes)

    @property
    def is_between(self) -> bool:
        """Whether all that came has been taken."""
        return not self._sizes

    def take_each(self, lengths: list[int]) -> bool:
        """Whether so many bytes of payload, one after the other, came in one chunk each. If so, they are taken."""
        sizes = self._sizes
        if self._taken or lengths != list(islice(sizes, len(lengths))):
            return False
        for _ in lengths:
            sizes.popleft()
        return True

    def take(self, length: int) -> tuple[int, ...]:
        sizes = self._sizes
        if not length or not sizes:
            return ()
        length += self._taken
        first = sizes[0]
        if length == first:  # one event, one chunk: as most servers send them
            self._taken = 0
            return (sizes.popleft(),)
        if length < first:
            self._taken = length
            return (first,)
        found = []
        while sizes and length >= sizes[0]:
            length -= sizes[0]
            found.append(sizes.popleft())
        if length and sizes:
            found.append(sizes[0])
        self._taken = length
        return tuple(found)

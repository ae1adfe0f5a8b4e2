"""Pieces of an HTTP/1.x connection that are not heads: parts of bodies, their ends and faults; chunk sizes; and whole bodies.

The grammar of chunks and trailers is that of RFC 9112, section 7.1. A body that is one unit is kept as it was sent, whole or
in parts; `encodings` decodes it when somebody looks at it.
"""

import re
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

from .lines import MAX_HELD_BYTES, character_boundary

MAX_CHUNK_LINE_BYTES: Final = 1 << 13
"""Limit of a chunk's size with its extensions, which hardly anybody sends; a longer line is refused."""

_LINE_TYPES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/jsonlines")


class Body(msgspec.Struct, frozen=True, gc=False):
    """The part of a body that came with one read: `payload` without, `raw` with the framing of chunks.

    `chunks` are the sizes of the HTTP/1.1 chunks that began in it; the last one may go on in later pieces.
    """

    raw: bytes
    payload: bytes
    chunks: tuple[int, ...] = ()


class BodyEnd(msgspec.Struct, frozen=True, gc=False):
    """The end of a message. `raw` is what follows the last byte of a chunked body, including its trailer section (`trailers`)."""

    raw: bytes = b""
    trailers: bytes = b""


class BlankLines(msgspec.Struct, frozen=True, gc=False):
    """Empty lines where a head should begin; they belong to no message (RFC 9112, section 2.2)."""

    raw: bytes


class OpaqueBytes(msgspec.Struct, frozen=True, gc=False):
    """Bytes that are not cut: of another protocol after an upgrade, or after a refusal."""

    raw: bytes


class RefusedBytes(msgspec.Struct, frozen=True, gc=False):
    """Bytes from which on the connection is not HTTP that everybody reads in the same way; `raw` is the rest of the read.

    Such a request should be answered with 400; such a response should be relayed as it comes until the close.
    """

    raw: bytes
    reason: str


class IncompleteMessage(msgspec.Struct, frozen=True, gc=False):
    """A message within which the connection closed; `raw` is what was still held of it.

    `missing_bytes` counts the payload bytes known to be missing: of the Content-Length, or of the last chunk. It is None where
    nobody can tell: within a head, between chunks, in trailers.
    """

    raw: bytes
    missing_bytes: int | None = None


END: Final = BodyEnd()
"""The end of every message that was not chunked."""

_field = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n"

chunk_line = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;[^\r\n\0]*)?\r\n").match
is_trailers = re.compile(rb"(?:%b)*" % _field).fullmatch

_CRLF: Final = b"\r\n"
_HEX: Final = b"0123456789abcdefABCDEF"
_USUAL_LINE_BYTES: Final = 12


def whole_chunks(data: bytes, at: int) -> tuple[int, list[bytes]]:
    """Take the chunks at `at` that came whole, without extensions. Returns their end, and their payloads."""
    payloads = []
    while (begin := data.find(_CRLF, at, at + _USUAL_LINE_BYTES) + 2) - 2 > at:
        digits = data[at : begin - 2]
        end = begin if digits.strip(_HEX) else begin + int(digits, 16)
        if end == begin or not data.startswith(_CRLF, end):
            break
        payloads.append(data[begin:end])
        at = end + 2
    return at, payloads


class ChunkSizes:
    """The chunks in which parts of a body came, for comparison with a packet capture.

    `add` takes the value of `Body.chunks`; `take` advances by so many bytes of payload, and returns the sizes of their chunks.
    A chunk that has the end of one part and the beginning of the next counts for both.
    """

    __slots__ = ("_sizes", "_taken")

    def __init__(self) -> None:
        self._sizes: deque[int] = deque()
        self._taken = 0

    def add(self, sizes: Sequence[int]) -> None:
        self._sizes.extend(sizes)

    @property
    def is_between(self) -> bool:
        """True if all payload so far has been taken."""
        return not self._sizes

    def take_each(self, lengths: list[int]) -> bool:
        """Return whether parts of these lengths, one after the other, came in one chunk each. If so, take them."""
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
        touched = []
        while sizes and length >= sizes[0]:
            length -= sizes[0]
            touched.append(sizes.popleft())
        if length and sizes:
            touched.append(sizes[0])
        self._taken = length
        return tuple(touched)


class WholeBody:
    """A body as one frame, from chunks cut anywhere: complete when it closes, in parts from `max_held_bytes` on.

    `feed` and `close` return pieces; joined, the pieces are the body. What `feed` returns is a part, and more of the body follows;
    what `close` returns completes it: nothing only if the body was empty. A part ends on a character boundary where the bytes are
    UTF-8.
    """

    name = "body"
    frame_name = "a body"
    end_name = "end of the body"
    is_part = True
    """True at all times: `feed` returns parts only."""
    is_between = False
    """False at all times: the stream is one frame."""

    __slots__ = ("_held", "_max_held_bytes", "held_bytes")

    def __init__(self, max_held_bytes: int = MAX_HELD_BYTES) -> None:
        self._max_held_bytes = max_held_bytes
        self._held: list[bytes] = []
        self.held_bytes = 0
        """The number of bytes that wait for the end of the body."""

    @property
    def held(self) -> bytes:
        """The bytes that wait for the end of the body, without those of earlier parts."""
        return b"".join(self._held)

    def feed(self, data: bytes) -> list[bytes]:
        """Return nothing, or one part: all bytes held but the last character, so that something is left to complete the body."""
        self._held.append(data)
        self.held_bytes += len(data)
        if self.held_bytes < self._max_held_bytes:
            return []
        held = self.held
        part = held[: character_boundary(held[:-1])]
        self._held = [held[len(part) :]]
        self.held_bytes = len(held) - len(part)
        return [part] if part else []

    def close(self) -> list[bytes]:
        """Return the body, or the last piece of it."""
        rest = self.held
        self._held.clear()
        self.held_bytes = 0
        return [rest] if rest else []


def body_framing(content_type: bytes | None, content_encoding: bytes | None = None) -> str:
    """Name the framing of a body with these header fields. A compressed body is one unit, whatever is in it."""
    if content_encoding is not None and content_encoding.strip().lower() not in (b"", b"identity"):
        return "body"
    media_type = (content_type or b"").partition(b";")[0].strip().lower().decode("latin-1")
    if media_type == "text/event-stream":
        return "sse"
    return "lines" if media_type in _LINE_TYPES else "body"

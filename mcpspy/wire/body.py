"""Bodies that are one unit, JSON or anything; which framing a body has; and what a compressed one says.

Refuses to decode what passes: a body is kept as it was sent, and decoded when somebody looks at it (RFC 9110, section 8.4).
"""

import zlib
from typing import Final, Literal

from .lines import MAX_HELD_BYTES, character_boundary

MAX_DECODED_BYTES: Final = 1 << 26
"""What decodes to more is not decoded: 64 KiB of gzip can stand for as much."""

_MAX_CODINGS: Final = 3
_INPUT_BYTES: Final = 1 << 14
_GZIP: Final = 16 + zlib.MAX_WBITS
_LINE_TYPES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/jsonlines")


class Whole:
    """A body as one frame, from chunks cut anywhere: complete when it closes, in parts from 1 MiB on.

    `feed` and `close` return pieces; joined, the pieces are the body. What `feed` returns is a part, and more of the body follows;
    what `close` returns completes it: nothing only if the body was empty. A part ends on a character boundary where the bytes are
    UTF-8.
    """

    __slots__ = ("_held", "held_bytes")

    is_part = True
    """As in `sse.Events`, for what `feed` returns."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self.held_bytes = 0
        """How many bytes wait for the end of the body."""

    @property
    def held(self) -> bytes:
        """The bytes that wait for the end of the body, those of earlier parts not included."""
        return b"".join(self._held)

    def feed(self, data: bytes) -> list[bytes]:
        """Nothing, or one part: all that is held but for the last character, so that something is left to complete the body."""
        self._held.append(data)
        self.held_bytes += len(data)
        if self.held_bytes < MAX_HELD_BYTES:
            return []
        held = self.held
        part = held[: character_boundary(held[:-1])]
        self._held = [held[len(part) :]]
        self.held_bytes = len(held) - len(part)
        return [part]

    def close(self) -> list[bytes]:
        """The body, or the last piece of it."""
        rest = self.held
        self._held.clear()
        self.held_bytes = 0
        return [rest] if rest else []


def framing(content_type: bytes | None, content_encoding: bytes | None = None) -> Literal["lines", "sse", "body"]:
    """How a body with these header fields is cut. A compressed one cannot be: it is one unit, whatever is in it."""
    if content_encoding is not None and content_encoding.strip().lower() not in (b"", b"identity"):
        return "body"
    media_type = (content_type or b"").partition(b";")[0].strip().lower().decode("latin-1")
    if media_type == "text/event-stream":
        return "sse"
    return "lines" if media_type in _LINE_TYPES else "body"


def decoded(data: bytes, encoding: bytes) -> bytes:
    """What `data` says, given its Content-Encoding: gzip, deflate, identity, or several of them in the order of the field.

    Of data that was cut short, what could be decoded. Bytes behind the end are left out, as clients do.

    Raises:
        ValueError: if a coding is unknown (br and zstd are), there are more than three, the data is not what the coding says, or
            it would decode to more than `MAX_DECODED_BYTES`.
    """
    codings = [coding.strip().lower() for coding in encoding.split(b",")]
    if len(codings) > _MAX_CODINGS:
        raise ValueError(f"{len(codings)} content codings")
    for coding in reversed(codings):
        if coding in (b"gzip", b"x-gzip"):
            data = _inflated(data, _GZIP)
        elif coding == b"deflate":
            data = _deflated(data)
        elif coding not in (b"", b"identity"):
            raise ValueError(f"no decoder for the content coding {coding.decode('latin-1')}")
    return data


def _deflated(data: bytes) -> bytes:
    """`deflate` is zlib's format by RFC 9110, and raw deflate by some servers."""
    try:
        return _inflated(data, zlib.MAX_WBITS)
    except ValueError:
        return _inflated(data, -zlib.MAX_WBITS)


def _inflated(data: bytes, window_bits: int) -> bytes:
    pieces: list[bytes] = []
    room = MAX_DECODED_BYTES
    at = 0
    while at < len(data):
        inflater = zlib.decompressobj(window_bits)
        while at < len(data) and not inflater.eof:
            waiting = data[at : at + _INPUT_BYTES]  # little at a time: what is behind the end is copied for every member
            at += len(waiting)
            while waiting:
                try:
                    piece = inflater.decompress(waiting, room + 1)
                except zlib.error as error:
                    raise ValueError(str(error)) from error
                pieces.append(piece)
                room -= len(piece)
                if room < 0:
                    raise ValueError(f"decodes to more than {MAX_DECODED_BYTES >> 20} MiB")
                waiting = inflater.unconsumed_tail
        at -= len(inflater.unused_data)
        if window_bits != _GZIP or data[at : at + 2] != b"\x1f\x8b":
            break  # only gzip has members (RFC 1952, section 2.2)
    return b"".join(pieces)

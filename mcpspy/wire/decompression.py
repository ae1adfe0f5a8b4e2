"""Compressed streams (gzip, deflate, br, zstd), decoded piece by piece, so that events keep the times of their bytes.

`encodings` decodes a whole body; here the same limit counts. Nothing raises: what cannot be decoded becomes a flaw.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from .encodings import MAX_DECODED_BYTES, MissingDecoderError, decode_body, zstd_module

_Decode: TypeAlias = Callable[[bytes, int], bytes]
"""Decodes a piece, to one byte more than the second argument at most. Raises: ValueError."""

_GZIP: Final = 16 + zlib.MAX_WBITS
_MEMBER: Final = b"\x1f\x8b"
_ZLIB_HEAD_BYTES: Final = 2
_DEFLATED: Final = 8


class Decompressor:
    """A decoder of one body, given its Content-Encoding, from pieces cut anywhere.

    `feed` and `close` return bytes; joined, they are what `encodings.decoded` would return. After a piece that cannot be decoded
    nothing more comes, and `flaw` says why, as a sentence.
    """

    __slots__ = ("_decode", "_encoding", "_held", "_room", "flaw")

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.strip().lower()
        self._held: list[bytes] = []
        self._room = MAX_DECODED_BYTES
        self.flaw = ""
        self._decode: _Decode | None = None
        make = _MAKERS.get(self._encoding)
        if make is not None:
            try:
                self._decode = make()
            except MissingDecoderError as error:
                self._fail(f"compressed with {error.coding}, which cannot be read here")

    def feed(self, data: bytes) -> bytes:
        """Return the bytes that this piece adds."""
        if self.flaw or not data:
            return b""
        if self._decode is None:  # several codings, or one that nobody knows
            self._held.append(data)
            return b""
        try:
            piece = self._decode(data, self._room)
        except ValueError as error:
            return self._fail(f"the stream is not {self._encoding}: {error}")
        self._room -= len(piece)
        return piece if self._room >= 0 else self._fail(f"decodes to more than {MAX_DECODED_BYTES >> 20} MiB")

    def close(self) -> bytes:
        """Return the bytes that could not be decoded before the end."""
        data, self._held = b"".join(self._held), []
        if not data or self.flaw:
            return b""
        try:
            return decode_body(data, self._encoding.encode("utf-8", "replace"))
        except ValueError as error:
            return self._fail(str(error))

    def _fail(self, why: str) -> bytes:
        self.flaw = why
        return b""


def _inflating(window_bits: int) -> _Decode:
    inflater = zlib.decompressobj(window_bits)

    def decode(data: bytes, room: int) -> bytes:
        nonlocal inflater
        made: list[bytes] = []
        while data and room >= 0:
            if inflater.eof:
                if window_bits != _GZIP or not data.startswith(_MEMBER[: len(data)]):
                    break  # only gzip has members (RFC 1952, section 2.2); other bytes are left out
                inflater = zlib.decompressobj(window_bits)
            try:
                made.append(inflater.decompress(data, room + 1))
            except zlib.error as error:
                raise ValueError(str(error)) from error
            room -= len(made[-1])
            data = inflater.unused_data
        return b"".join(made)

    return decode


def _deflating() -> _Decode:
    """Decode `deflate`, zlib's format by RFC 9110 and raw deflate by some servers: two bytes tell (RFC 1950, section 2.2)."""
    held = b""
    inflate: _Decode | None = None

    def decode(data: bytes, room: int) -> bytes:
        nonlocal held, inflate
        if inflate is None:
            data = held = held + data
            if len(held) < _ZLIB_HEAD_BYTES:
                return b""
            is_zlib = held[0] & 0x0F == _DEFLATED and int.from_bytes(held[:_ZLIB_HEAD_BYTES], "big") % 31 == 0
            inflate = _inflating(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)
        return inflate(data, room)

    return decode


def _unbrotlying() -> _Decode:
    try:
        import brotli  # type: ignore[import-untyped]  # it comes without types
    except ImportError as error:
        raise MissingDecoderError("br") from error
    decoder: Any = brotli.Decompressor()

    def decode(data: bytes, room: int) -> bytes:
        if decoder.is_finished():
            return b""
        made = []
        try:
            made.append(decoder.process(data, output_buffer_limit=room + 1))
            while not decoder.can_accept_more_data() and sum(map(len, made)) <= room:
                made.append(decoder.process(b"", output_buffer_limit=room + 1))
        except brotli.error as error:
            raise ValueError(str(error)) from error
        return b"".join(made)

    return decode


def _unzstding() -> _Decode:
    zstd = zstd_module()
    decoder = zstd.ZstdDecompressor()

    def decode(data: bytes, room: int) -> bytes:
        nonlocal decoder
        made: list[bytes] = []
        try:
            while data:
                if decoder.eof:
                    decoder = zstd.ZstdDecompressor()
                made.append(decoder.decompress(data, room + 1))
                data = decoder.unused_data if decoder.eof else b""
                while not decoder.eof and not decoder.needs_input and sum(map(len, made)) <= room:
                    made.append(decoder.decompress(b"", room + 1))
        except zstd.ZstdError as error:
            raise ValueError(str(error)) from error
        return b"".join(made)

    return decode


_MAKERS: Final[dict[str, Callable[[], _Decode]]] = {
    "gzip": lambda: _inflating(_GZIP),
    "x-gzip": lambda: _inflating(_GZIP),
    "deflate": _deflating,
    "br": _unbrotlying,
    "zstd": _unzstding,
}

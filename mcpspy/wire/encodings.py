"""Compressed bodies, decoded: gzip and deflate, and where their libraries are installed br and zstd (RFC 9110, section 8.4.1).

Decoding is bounded, for 64 KiB in any of these codings can stand for any size. A stream is decoded piece by piece, so that
events keep the times of their bytes; what cannot be decoded becomes a flaw there.
"""

import zlib
from collections.abc import Callable
from typing import Any, Final, TypeAlias

MAX_DECODED_BYTES: Final = 1 << 26
"""A body that decodes to more is not decoded."""

EVERYDAY_RATIO: Final = 20
"""Ratio of decoded to encoded length that a stream may keep up: JSON rarely shrinks so far."""

PACKAGES: Final = {"br": "brotli", "zstd": "backports.zstd"}
"""The package that has to be installed for a coding."""

_MAX_CODINGS: Final = 3
_INPUT_BYTES: Final = 1 << 14
_GZIP: Final = 16 + zlib.MAX_WBITS
_ZLIB_HEAD_BYTES: Final = 2
_DEFLATED: Final = 8

_Decode: TypeAlias = Callable[[bytes, int], bytes]
"""Decodes a piece, to one byte more than the second argument at most. Raises: ValueError."""


class MissingDecoderError(ValueError):
    """A coding whose library is not installed: `PACKAGES` has its name."""

    def __init__(self, coding: str) -> None:
        super().__init__(f"no decoder for the content coding {coding}")
        self.coding = coding


class Decoding:
    """Decodes a body in this Content-Encoding piece by piece: gzip, deflate, br, zstd, identity, or several as the field orders them.

    Bytes after the end are left out, as clients do, except in br. Of a long stream, what it decodes to may be `EVERYDAY_RATIO` times
    its length, and `MAX_DECODED_BYTES` more.

    Raises: MissingDecoderError: if a library is needed that is not installed.
        ValueError: if a coding is unknown, or there are more than three.
    """

    __slots__ = ("_decoders", "_room")

    def __init__(self, encoding: bytes) -> None:
        codings = [coding.strip().lower() for coding in encoding.split(b",")]
        if len(codings) > _MAX_CODINGS:
            raise ValueError(f"{len(codings)} content codings")
        self._decoders = [_decoder(coding) for coding in reversed(codings) if coding not in (b"", b"identity")]
        self._room = [MAX_DECODED_BYTES for _ in self._decoders]

    def feed(self, data: bytes) -> bytes:
        """Return what these bytes decode to. Raises: ValueError: if they are not what the coding says, or decode to too much."""
        self._room = [room + EVERYDAY_RATIO * len(data) for room in self._room]
        return self._decoded(data, 0)

    def _decoded(self, data: bytes, stage: int) -> bytes:
        if stage == len(self._decoders):
            return data
        pieces: list[bytes] = []
        for at in range(0, len(data), _INPUT_BYTES):  # little at a time: the rest after the end is copied for every member
            made = self._decoders[stage](data[at : at + _INPUT_BYTES], self._room[stage])
            self._room[stage] -= len(made)
            if self._room[stage] < 0:
                raise ValueError(f"decodes to more than {MAX_DECODED_BYTES >> 20} MiB")
            pieces.append(self._decoded(made, stage + 1))
        return b"".join(pieces)


def decode_body(data: bytes, encoding: bytes) -> bytes:
    """Decode `data`, given its Content-Encoding. Data that was cut short is decoded as far as it goes.

    Raises: MissingDecoderError, ValueError: as `Decoding` does.
    """
    return Decoding(encoding).feed(data)


def _decoder(coding: bytes) -> _Decode:
    make = DECODERS.get(coding)
    if make is None:
        raise ValueError(f"no decoder for the content coding {coding.decode('latin-1')}")
    return make()


def _members(make: Callable[[], Any], error_type: type[Exception], begin: bytes = b"") -> _Decode:
    """Decode members, one after the other, each of which begins with these bytes; other bytes after the end are left out."""
    member = make()
    is_over = False

    def decode(data: bytes, room: int) -> bytes:
        nonlocal member, is_over
        made: list[bytes] = []
        while data and room >= 0 and not is_over:
            if member.eof:
                is_over = not begin or not data.startswith(begin[: len(data)])
                member = make()
                continue
            try:
                made.append(member.decompress(data, room + 1))
            except error_type as error:
                raise ValueError(str(error)) from error
            room -= len(made[-1])
            data = member.unused_data
        return b"".join(made)

    return decode


def _gzip() -> _Decode:
    """RFC 1952, section 2.2."""
    return _members(lambda: zlib.decompressobj(_GZIP), zlib.error, b"\x1f\x8b")


def _deflate() -> _Decode:
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
            window_bits = zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS
            inflate = _members(lambda: zlib.decompressobj(window_bits), zlib.error)
        return inflate(data, room)

    return decode


def _brotli() -> _Decode:
    """RFC 7932."""
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


def _zstd() -> _Decode:
    """RFC 8878: frames, one after the other. By the standard library, or its backport for Python before 3.14."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # from Python 3.14 on
    except ImportError:
        try:
            from backports import zstd
        except ImportError as error:
            raise MissingDecoderError("zstd") from error
    return _members(zstd.ZstdDecompressor, zstd.ZstdError, b"\x28\xb5\x2f\xfd")


DECODERS: Final[dict[bytes, Callable[[], _Decode]]] = {
    b"gzip": _gzip,
    b"x-gzip": _gzip,
    b"deflate": _deflate,
    b"br": _brotli,
    b"zstd": _zstd,
}
"""For each coding, what makes a decoder of one stream. Raises: MissingDecoderError."""


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
        make = DECODERS.get(self._encoding.encode("utf-8", "replace"))
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

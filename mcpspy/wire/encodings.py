"""Compressed bodies, decoded: gzip and deflate, and where their libraries are installed br and zstd (RFC 9110, section 8.4.1).

Decoding is bounded, for 64 KiB in any of these codings can stand for any size.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

MAX_DECODED_BYTES: Final = 1 << 26
"""A body that decodes to more is not decoded."""

EXTRA: Final = "mcpspy[encodings]"
"""The extra that has to be installed for br and zstd."""

_MAX_CODINGS: Final = 3
_INPUT_BYTES: Final = 1 << 14
_GZIP: Final = 16 + zlib.MAX_WBITS


class MissingDecoderError(ValueError):
    """A coding whose library is not installed: `EXTRA` brings it."""

    def __init__(self, coding: str) -> None:
        super().__init__(f"no decoder for the content coding {coding}")
        self.coding = coding


class _TooLargeError(ValueError):
    """A body that would decode to more than `MAX_DECODED_BYTES`."""

    def __init__(self) -> None:
        super().__init__(f"decodes to more than {MAX_DECODED_BYTES >> 20} MiB")


def decode_body(data: bytes, encoding: bytes) -> bytes:
    """Decode `data`, given its Content-Encoding: gzip, deflate, br, zstd, identity, or several in the order of the field.

    Data that was cut short is decoded as far as it goes. Bytes after the end are left out, as clients do, except in br.

    Raises:
        MissingDecoderError: if a library is needed that is not installed.
        ValueError: if a coding is unknown, there are more than three, the data is not what the coding says, or it would decode to
            more than `MAX_DECODED_BYTES`.
    """
    codings = [coding.strip().lower() for coding in encoding.split(b",")]
    if len(codings) > _MAX_CODINGS:
        raise ValueError(f"{len(codings)} content codings")
    for coding in reversed(codings):
        if coding in (b"", b"identity"):
            continue
        decode = _DECODERS.get(coding)
        if decode is None:
            raise ValueError(f"no decoder for the content coding {coding.decode('latin-1')}")
        data = decode(data)
    return data


def _gunzipped(data: bytes) -> bytes:
    return _inflated(data, _GZIP)


def _deflated(data: bytes) -> bytes:
    """`deflate` is zlib's format by RFC 9110, and raw deflate by some servers."""
    try:
        return _inflated(data, zlib.MAX_WBITS)
    except _TooLargeError:
        raise
    except ValueError:
        return _inflated(data, -zlib.MAX_WBITS)


class _DecodedBytes:
    """The bytes that were decoded so far; `add` raises once they are too many."""

    __slots__ = ("_pieces", "room")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.room = MAX_DECODED_BYTES

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.room -= len(piece)
        if self.room < 0:
            raise _TooLargeError

    @property
    def data(self) -> bytes:
        return b"".join(self._pieces)


def _inflated(data: bytes, window_bits: int) -> bytes:
    out = _DecodedBytes()
    at = 0
    while at < len(data):
        inflater = zlib.decompressobj(window_bits)
        while at < len(data) and not inflater.eof:
            waiting = data[at : at + _INPUT_BYTES]  # little at a time: the rest after the end is copied for every member
            at += len(waiting)
            while waiting:
                try:
                    out.add(inflater.decompress(waiting, out.room + 1))
                except zlib.error as error:
                    raise ValueError(str(error)) from error
                waiting = inflater.unconsumed_tail
        at -= len(inflater.unused_data)
        if window_bits != _GZIP or data[at : at + 2] != b"\x1f\x8b":
            break  # only gzip has members (RFC 1952, section 2.2)
    return out.data


def _unbrotlied(data: bytes) -> bytes:
    """RFC 7932."""
    try:
        import brotli  # type: ignore[import-untyped]  # it comes without types
    except ImportError as error:
        raise MissingDecoderError("br") from error
    out, decoder = _DecodedBytes(), brotli.Decompressor()
    try:
        for piece in _slices(data):
            out.add(decoder.process(piece, output_buffer_limit=out.room + 1))
            while not decoder.can_accept_more_data():
                out.add(decoder.process(b"", output_buffer_limit=out.room + 1))
    except brotli.error as error:
        raise ValueError(str(error)) from error
    return out.data


def _unzstd(data: bytes) -> bytes:
    """RFC 8878: frames, one after the other."""
    zstd = zstd_module()
    out, at = _DecodedBytes(), 0
    while at < len(data):
        decoder = zstd.ZstdDecompressor()
        try:
            while at < len(data) and not decoder.eof:
                piece = data[at : at + _INPUT_BYTES]
                at += len(piece)
                out.add(decoder.decompress(piece, out.room + 1))
                while not decoder.eof and not decoder.needs_input:
                    out.add(decoder.decompress(b"", out.room + 1))
        except zstd.ZstdError as error:
            raise ValueError(str(error)) from error
        at -= len(decoder.unused_data)
        if data[at : at + 4] != b"\x28\xb5\x2f\xfd":
            break
    return out.data


def zstd_module() -> Any:
    """Import the standard library's module, or its backport for Python before 3.14. Raises: MissingDecoderError."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # from Python 3.14 on
    except ImportError:
        try:
            from backports import zstd
        except ImportError as error:
            raise MissingDecoderError("zstd") from error
    return zstd


def _slices(data: bytes) -> Iterator[bytes]:
    return (data[at : at + _INPUT_BYTES] for at in range(0, len(data), _INPUT_BYTES))


_DECODERS: Final[dict[bytes, Callable[[bytes], bytes]]] = {
    b"gzip": _gunzipped,
    b"x-gzip": _gunzipped,
    b"deflate": _deflated,
    b"br": _unbrotlied,
    b"zstd": _unzstd,
}

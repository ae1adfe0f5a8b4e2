"""Compressed streams (gzip, deflate, br, zstd), decoded piece by piece, so that events keep the times of their bytes.

`encodings` decodes a whole body; here the same limit counts. Nothing raises: what cannot be decoded becomes a flaw.
"""

from .encodings import DECODERS, MAX_DECODED_BYTES, Decode, MissingDecoderError, decode_body


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
        self._decode: Decode | None = None
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

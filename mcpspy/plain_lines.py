"""Lines of the usual records of a capture: frames that came whole in one read and are UTF-8, and messages made of one.

The reference of speedups.c, which does the same where it was built (`compiled`). `capture.file.format` writes every other record.
Bytes in, bytes out, as `usual_lines` is the other way round.
"""

from __future__ import annotations

from _codecs import utf_8_decode  # `codecs` re-exports it
from _json import encode_basestring as _quoted  # `json.encoder` re-exports it, and imports `re` on the way
from binascii import crc32

LARGE_BYTES = 1 << 10
"""From this size on, text with few quotes is escaped by passes over all of it: 0.7 ms per MiB, where the escaper that looks at
each character takes 2.1. With many quotes the passes take 3.8 ms (CPython 3.11)."""

SLICE_BYTES = 1 << 16
"""Large text is escaped in slices of this size: decoded at once, a message that is not ASCII would need four times its length."""

SAMPLE_BYTES = 512
MAX_ESCAPES = 20
"""Up to so many quotes and backslashes in a sample from the middle, passes are faster: both ways are equal at one in 20 bytes."""

_CONTROLS = bytes(range(0x20))


def plain_frame_line(number: int, stream: int, at_ns: int, data: bytes) -> bytes:
    """Write the line of a whole frame that came in one read: 1.1 µs for 200 bytes. Raises: UnicodeDecodeError."""
    if len(data) < LARGE_BYTES:
        body = f'{{"n":{number},"at_ns":{at_ns},"kind":"frame","stream":{stream},"text":{_quoted(data.decode())}'.encode()
        return body + b',"crc":"' + crc32(body).to_bytes(4, "big").hex().encode() + b'"}\n'
    return joined([b'{"n":%d,"at_ns":%d,"kind":"frame","stream":%d,"text":' % (number, at_ns, stream), *text_pieces(data)])


def plain_event_line(number: int, stream: int, at_ns: int, data: bytes) -> bytes:
    """Write the line of an event that came in one read and in one chunk. Raises: UnicodeDecodeError."""
    if len(data) < LARGE_BYTES:
        return event_text_line(number, stream, at_ns, data.decode(), len(data))
    head = b'{"n":%d,"at_ns":%d,"kind":"frame","stream":%d,"text":' % (number, at_ns, stream)
    return joined([head, *text_pieces(data), b',"chunks":[%d]' % len(data)])


def event_text_line(number: int, stream: int, at_ns: int, text: str, length: int) -> bytes:
    """Write the line of an event whose `text` has so many bytes of UTF-8, and is short."""
    body = (
        f'{{"n":{number},"at_ns":{at_ns},"kind":"frame","stream":{stream},"text":{_quoted(text)},"chunks":[{length}]'.encode()
    )
    return body + b',"crc":"' + crc32(body).to_bytes(4, "big").hex().encode() + b'"}\n'


def message_lines(
    number: int,
    stream: int,
    at_ns: int,
    opening: str,
    frames: list[bytes],
    by: str,
    is_event: bool,  # noqa: FBT001
) -> bytes:
    """Write the lines of a stream's `open`, of its frames that came whole in one read, and of its `close`, each if there is one.

    They are numbered from `number`. `opening` is from an `OpenTemplate`, and `by` closed the stream in good order. If each frame
    `is_event`, it is the payload of one chunk. Raises: UnicodeDecodeError.
    """
    line_of = plain_event_line if is_event else plain_frame_line
    lines = b""
    if opening:
        body = f'{{"n":{number},"at_ns":{at_ns},"kind":"open","stream":{stream}{opening}'.encode()
        lines = body + b',"crc":"' + crc32(body).to_bytes(4, "big").hex().encode() + b'"}\n'
        number += 1
    if len(frames) == 1:  # nearly always
        lines += line_of(number, stream, at_ns, frames[0])
        number += 1
    elif frames:
        lines += b"".join([line_of(number + index, stream, at_ns, data) for index, data in enumerate(frames)])
        number += len(frames)
    if by:
        body = f'{{"n":{number},"at_ns":{at_ns},"kind":"close","stream":{stream},"by":"{by}","how":"eof"'.encode()
        lines += body + b',"crc":"' + crc32(body).to_bytes(4, "big").hex().encode() + b'"}\n'
    return lines


def joined(pieces: list[bytes]) -> bytes:
    """Join the pieces of a line, and add its CRC as last member. Copies once: escapes may have made the line six times as long."""
    crc = 0
    for piece in pieces:
        crc = crc32(piece, crc)
    pieces.append(b',"crc":"%08x"}\n' % crc)
    return b"".join(pieces)


def text_pieces(data: bytes) -> list[bytes]:
    """Write `data` as a JSON string, in pieces. Raises: UnicodeDecodeError."""
    if len(data) < LARGE_BYTES:
        return [_quoted(data.decode()).encode()]
    pieces = [b'"']
    at, size = 0, len(data) - data.endswith(b"\n")  # the line end is nearly always the only control character
    while at < size:
        piece = data[at : min(at + SLICE_BYTES, size)]
        text, used = utf_8_decode(piece, "strict", at + len(piece) >= size)
        pieces.append(_escaped(piece[:used], text))
        at += used
    pieces.append(b'\\n"' if size < len(data) else b'"')
    return pieces


def _escaped(data: bytes, text: str) -> bytes:
    """Escape `data`, which is `text`, for the inside of quotes."""
    middle = len(data) // 2
    escapes = data.count(b'"', middle, middle + SAMPLE_BYTES) + data.count(b"\\", middle, middle + SAMPLE_BYTES)
    if escapes > MAX_ESCAPES or len(data.translate(None, _CONTROLS)) != len(data):
        return _quoted(text)[1:-1].encode()
    return data.replace(b"\\", b"\\\\").replace(b'"', b'\\"')

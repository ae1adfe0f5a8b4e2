"""How many pixels an image has, from its first bytes: PNG, GIF, JPEG and WebP. Refuses to decode images, and never raises."""

from typing import Final, TypeAlias

Pixels: TypeAlias = tuple[int, int]
"""Width and height."""

HEAD_BYTES: Final = 1 << 16
"""So much of an image is enough: before the frame of a JPEG there may be a thumbnail."""

_SIZES_IN_JPEG: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE_IN_JPEG: Final = frozenset({0x01, *range(0xD0, 0xD9)})


def pixels(image: bytes) -> Pixels | None:
    """Width and height of an image, of which the beginning is enough; None if it does not say."""
    if image.startswith(b"\x89PNG\r\n\x1a\n") and len(image) >= 24:
        return _big(image, 16, 4), _big(image, 20, 4)
    if image[:6] in (b"GIF87a", b"GIF89a") and len(image) >= 10:
        return _little(image, 6, 2), _little(image, 8, 2)
    if image.startswith(b"\xff\xd8"):
        return _of_jpeg(image)
    if image.startswith(b"RIFF") and image[8:12] == b"WEBP" and len(image) >= 30:
        return _of_webp(image)
    return None


def _of_jpeg(image: bytes) -> Pixels | None:
    at = 2
    while at + 9 <= len(image) and image[at] == 0xFF:
        marker = image[at + 1]
        if marker in _SIZES_IN_JPEG:
            return _big(image, at + 7, 2), _big(image, at + 5, 2)
        if marker == 0xFF:
            at += 1
        else:
            at += 2 if marker in _ALONE_IN_JPEG else 2 + max(_big(image, at + 2, 2), 2)
    return None


def _of_webp(image: bytes) -> Pixels | None:
    match image[12:16]:
        case b"VP8 ":
            return _little(image, 26, 2) & 0x3FFF, _little(image, 28, 2) & 0x3FFF
        case b"VP8L":
            bits = _little(image, 21, 4)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return _little(image, 24, 3) + 1, _little(image, 27, 3) + 1
        case _:
            return None


def _big(data: bytes, at: int, count: int) -> int:
    return int.from_bytes(data[at : at + count], "big")


def _little(data: bytes, at: int, count: int) -> int:
    return int.from_bytes(data[at : at + count], "little")

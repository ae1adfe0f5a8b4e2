"""Images are measured by their first bytes, and contents become facts that are small whatever they hold."""

import struct
import zlib
from base64 import b64encode
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.transcript.mcp.blocks import binary, block, contents, texts
from mcpspy.transcript.mcp.capabilities import capabilities, implementation
from mcpspy.transcript.mcp.image_size import pixels

PNG = (
    b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"\x08\x06\0\0\0" + zlib.crc32(b"").to_bytes(4, "big")
)
GIF = b"GIF89a" + struct.pack("<HH", 12, 7) + b"\0\0\0"
FRAME = struct.pack(">BBHBHH", 0xFF, 0xC0, 17, 8, 200, 300) + bytes(10)
JPEG = b"\xff\xd8" + b"\xff\xe0\0\x10JFIF\0" + bytes(9) + b"\xff\xdb\0\x05\0\0\0" + FRAME
VP8 = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 320, 240)
VP8L = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", (99 - 1) | (55 - 1) << 14) + bytes(8)
VP8X = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + (1000 - 1).to_bytes(3, "little") + (700 - 1).to_bytes(3, "little")


@pytest.mark.parametrize(
    ("image", "size"),
    [(PNG, (640, 480)), (GIF, (12, 7)), (JPEG, (300, 200)), (VP8, (320, 240)), (VP8L, (99, 55)), (VP8X, (1000, 700))],
    ids=["png", "gif", "jpeg", "webp", "webp lossless", "webp extended"],
)
def test_an_image_tells_its_size_in_its_first_bytes(image: bytes, size: tuple[int, int]) -> None:
    assert pixels(image) == size


@pytest.mark.parametrize("image", [PNG, GIF, JPEG, VP8, VP8L, VP8X])
def test_the_beginning_of_an_image_tells_its_size_or_nothing(image: bytes) -> None:
    assert {pixels(image[:length]) for length in range(len(image))} <= {None, pixels(image)}


@given(st.sampled_from([b"", PNG[:8], GIF[:6], JPEG[:2], VP8[:12], VP8[:16]]), st.binary(max_size=80))
@example(b"\xff\xd8", b"\xff" * 80)
@example(b"\xff\xd8", b"\xff\xe0\0\0" * 20)
def test_no_bytes_are_too_odd_to_be_measured(head: bytes, rest: bytes) -> None:
    found = pixels(head + rest)
    assert found is None or min(found) >= 0


def test_a_jpeg_of_empty_segments_is_measured_in_linear_time() -> None:
    assert pixels(b"\xff\xd8" + b"\xff\xe0\0\0" * 16_000) is None


def test_base64_becomes_size_digest_and_pixels() -> None:
    expected = {"bytes": len(PNG), "sha256": sha256(PNG).hexdigest(), "width": 640, "height": 480}
    assert binary(b64encode(PNG).decode()) == expected


@pytest.mark.parametrize("data", ["not Base64!", "AAA", "é"])
def test_what_should_be_base64_and_is_not_is_counted(data: str) -> None:
    assert binary(data) == {"base64_letters": len(data)}


@pytest.mark.parametrize(
    ("value", "facts"),
    [
        ({"type": "text", "text": "hi"}, {"type": "text", "bytes": 2, "text": "hi"}),
        ({"type": "text", "text": "é" * 300}, {"type": "text", "bytes": 600, "text": "é" * 200, "more": True}),
        ({"type": "text", "text": "\ud800"}, {"type": "text", "bytes": 3, "text": "\ud800"}),
        ({"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}, {"mime_type": "audio/wav", "bytes": 3}),
        ({"type": "resource_link", "uri": "a:b", "size": 9}, {"type": "resource_link", "uri": "a:b", "bytes": 9}),
        ({"type": "resource", "resource": {"uri": "a:b", "text": "x"}}, {"uri": "a:b", "bytes": 1, "text": "x"}),
        ({"type": "tool_use", "name": "f", "id": "1", "input": {"b": 1, "a": 2}}, {"name": "f", "arguments": ["a", "b"]}),
        ({"type": "tool_result", "toolUseId": "1", "isError": True, "content": []}, {"id": "1", "is_error": True}),
        ({"type": "hologram"}, {"type": "hologram"}),
        ({}, {"type": "unknown"}),
        (None, {"type": "unknown"}),
    ],
)
def test_a_block_is_told_by_its_type(value: Any, facts: dict[str, Any]) -> None:
    assert block(value).items() >= facts.items()


def test_a_resource_is_a_text_or_bytes() -> None:
    assert contents({"uri": "a:b", "mimeType": "text/plain", "text": "ab"})["bytes"] == 2
    assert contents({"uri": "a:b", "blob": "AAAA"})["bytes"] == 3


def test_members_of_another_shape_are_left_out() -> None:
    assert texts({"name": ["no"], "title": "", "size": 3}, name="name", title="title", bytes="size") == {"bytes": 3}


def test_capabilities_are_paths_and_what_is_false_is_not_declared() -> None:
    declared: dict[str, Any] = {
        "tools": {"listChanged": True},
        "resources": {"subscribe": False},
        "logging": {},
        "sampling": None,
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    }
    expected = ["tools", "tools.listChanged", "resources", "logging", "extensions.io.modelcontextprotocol/tasks"]
    assert capabilities(declared) == expected


@pytest.mark.parametrize("declared", [None, 3, [], "tools"])
def test_what_is_no_object_declares_nothing(declared: Any) -> None:
    assert capabilities(declared) == []
    assert implementation(declared) == {}

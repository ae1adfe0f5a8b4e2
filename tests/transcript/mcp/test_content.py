"""Contents as facts, which are small whatever the contents hold."""

from base64 import b64encode
from hashlib import sha256
from typing import Any

import pytest

from mcpspy.transcript.mcp.blocks import binary, block, capabilities, contents, implementation, texts


def test_base64_becomes_size_and_digest() -> None:
    image = b"\x89PNG\r\n\x1a\n"
    assert binary(b64encode(image).decode()) == {"bytes": len(image), "sha256": sha256(image).hexdigest()}


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
def test_the_facts_of_a_block_follow_its_type(value: Any, facts: dict[str, Any]) -> None:
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

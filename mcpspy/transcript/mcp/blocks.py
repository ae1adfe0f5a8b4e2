"""Content blocks, resources, capabilities and implementations, from parsed JSON to facts for a person.

Base64 becomes a size and a digest. A member of another shape than the schema wants is left out; nothing here raises, whatever a peer
sent. Source: MCP specification, schema (`ContentBlock`, `ResourceContents`, `SamplingMessageContentBlock`, `ClientCapabilities`,
`ServerCapabilities`, `Implementation`).
"""

from base64 import b64decode
from typing import Any, Final, TypeAlias

Facts: TypeAlias = dict[str, Any]
"""Facts about a message or a part of it, under the names of docs/json.md; the values are JSON values."""

PREVIEW_LETTERS: Final = 200
"""Letters of a text that are kept for display."""

MAX_DEPTH: Final = 8
"""Levels of nesting that are read; what is nested deeper is left out."""


def listed(value: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects of an array member; items that are not objects are left out."""
    items = value.get(name) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def member(value: Any, *path: str) -> Any:
    """Return the value at `path` in nested objects, or None if the path leads nowhere."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def texts(value: Any, /, **names: str) -> Facts:
    """Return members that are strings or numbers, under our names for them: `texts(tool, name="name", mime_type="mimeType")`."""
    members = {ours: member(value, theirs) for ours, theirs in names.items()}
    return {ours: text for ours, text in members.items() if isinstance(text, str | int | float) and text != ""}


def block(value: Any, depth: int = 0) -> Facts:
    """Return the facts of one content block of any type. `depth` counts the tool results around it."""
    kind = member(value, "type")
    facts: Facts = {"type": kind if isinstance(kind, str) else "unknown"}
    match kind:
        case "text":
            return facts | _text(value.get("text"))
        case "image" | "audio":
            return facts | texts(value, mime_type="mimeType") | binary(value.get("data"))
        case "resource":
            return facts | contents(value.get("resource"))
        case "resource_link":
            return facts | texts(value, uri="uri", name="name", title="title", mime_type="mimeType", bytes="size")
        case "tool_use":
            arguments = value.get("input")
            names = sorted(arguments) if isinstance(arguments, dict) else []
            return facts | texts(value, name="name", id="id") | {"arguments": names}
        case "tool_result":
            inner = [block(item, depth + 1) for item in listed(value, "content")] if depth < MAX_DEPTH else []
            return facts | texts(value, id="toolUseId") | {"is_error": value.get("isError") is True, "content": inner}
        case _:
            return facts


def blocks(value: Any) -> list[Facts]:
    """Return the facts of content that is one block or an array of blocks."""
    if isinstance(value, list):
        return [block(item) for item in value if isinstance(item, dict)]
    return [block(value)] if isinstance(value, dict) else []


def contents(value: Any) -> Facts:
    """Return the facts of a resource's contents: a text, or bytes as Base64."""
    facts = texts(value, uri="uri", mime_type="mimeType")
    if isinstance(member(value, "text"), str):
        return facts | _text(value["text"])
    return facts | binary(member(value, "blob"))


def binary(data: Any) -> Facts:
    """Return size and digest of the bytes that Base64 encodes."""
    if not isinstance(data, str):
        return {}
    try:
        content = b64decode(data, validate=True)
    except ValueError:
        return {"base64_letters": len(data)}
    from hashlib import sha256  # takes 4 ms, for it opens OpenSSL

    return {"bytes": len(content), "sha256": sha256(content).hexdigest()}


def capabilities(declared: Any) -> list[str]:
    """Return declared capabilities as dotted paths: `tools`, `tools.listChanged`, `extensions.io.modelcontextprotocol/tasks`.

    A capability declared as false or null counts as not declared. Paths end at the name of an extension or of an experiment.
    """
    if not isinstance(declared, dict):
        return []
    paths: list[str] = []
    for name, value in declared.items():
        if not _is_declared(value):
            continue
        inner = [key for key, option in value.items() if _is_declared(option)] if isinstance(value, dict) else []
        if name not in ("extensions", "experimental"):
            paths.append(name)
        paths += [f"{name}.{key}" for key in inner]
    return paths


def implementation(info: Any) -> Facts:
    """Return `name`, `version` and `title` of a peer; empty if it declares no name."""
    return texts(info, name="name", version="version", title="title") if isinstance(member(info, "name"), str) else {}


def _is_declared(value: Any) -> bool:
    return value is not False and value is not None


def _text(value: Any) -> Facts:
    if not isinstance(value, str):
        return {}
    facts: Facts = {"bytes": len(value.encode("utf-8", "surrogatepass")), "text": value[:PREVIEW_LETTERS]}
    return facts if len(value) <= PREVIEW_LETTERS else facts | {"more": True}

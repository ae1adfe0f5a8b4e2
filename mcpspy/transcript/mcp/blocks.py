"""Contents that MCP carries, as facts: texts, images, sounds, resources, uses of tools. What is Base64 becomes a size and a digest.

Source: MCP specification, schema (`ContentBlock`, `ResourceContents`, `SamplingMessageContentBlock`). Refuses to raise and to
keep payloads; a member of another shape than the schema wants is left out.
"""

from base64 import b64decode
from hashlib import sha256
from typing import Any, Final, TypeAlias

from .image_size import HEAD_BYTES, pixels

Facts: TypeAlias = dict[str, Any]
"""What is said of a message or of a part of it, under the names of docs/json.md; values that JSON knows."""

PREVIEW_LETTERS: Final = 200
"""Of a text so much is kept to be shown."""

MAX_DEPTH: Final = 8
"""What is nested deeper is not told."""


def listed(value: Any, name: str) -> list[dict[str, Any]]:
    """The objects in a member that is an array; what else stands in it is left out."""
    found = value.get(name) if isinstance(value, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def member(value: Any, *path: str) -> Any:
    """What stands at `path` in nested objects; None if it leads nowhere."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def texts(value: Any, /, **names: str) -> Facts:
    """Members that are strings or numbers, under our names for them: `texts(tool, name="name", mime_type="mimeType")`."""
    found = {ours: member(value, theirs) for ours, theirs in names.items()}
    return {ours: one for ours, one in found.items() if isinstance(one, str | int | float) and one != ""}


def block(value: Any, depth: int = 0) -> Facts:
    """One block of content, whatever its type; `depth` counts the results of tools that it stands in."""
    kind = member(value, "type")
    made: Facts = {"type": kind if isinstance(kind, str) else "unknown"}
    match kind:
        case "text":
            return made | _text(value.get("text"))
        case "image" | "audio":
            return made | texts(value, mime_type="mimeType") | binary(value.get("data"))
        case "resource":
            return made | contents(value.get("resource"))
        case "resource_link":
            return made | texts(value, uri="uri", name="name", title="title", mime_type="mimeType", bytes="size")
        case "tool_use":
            given = value.get("input")
            return made | texts(value, name="name", id="id") | {"arguments": sorted(given) if isinstance(given, dict) else []}
        case "tool_result":
            inner = [block(one, depth + 1) for one in listed(value, "content")] if depth < MAX_DEPTH else []
            return made | texts(value, id="toolUseId") | {"is_error": value.get("isError") is True, "content": inner}
        case _:
            return made


def blocks(value: Any) -> list[Facts]:
    """Content that is one block or an array of them."""
    if isinstance(value, list):
        return [block(one) for one in value if isinstance(one, dict)]
    return [block(value)] if isinstance(value, dict) else []


def contents(value: Any) -> Facts:
    """What a resource holds: a text, or bytes as Base64."""
    made = texts(value, uri="uri", mime_type="mimeType")
    if isinstance(member(value, "text"), str):
        return made | _text(value["text"])
    return made | binary(member(value, "blob"))


def binary(data: Any) -> Facts:
    """Base64 as the size and the digest of what it holds, and of an image its pixels."""
    if not isinstance(data, str):
        return {}
    try:
        held = b64decode(data, validate=True)
    except ValueError:
        return {"base64_letters": len(data)}
    made: Facts = {"bytes": len(held), "sha256": sha256(held).hexdigest()}
    size = pixels(held[:HEAD_BYTES])
    return made if size is None else made | {"width": size[0], "height": size[1]}


def _text(value: Any) -> Facts:
    if not isinstance(value, str):
        return {}
    made: Facts = {"bytes": len(value.encode("utf-8", "surrogatepass")), "text": value[:PREVIEW_LETTERS]}
    return made if len(value) <= PREVIEW_LETTERS else made | {"more": True}

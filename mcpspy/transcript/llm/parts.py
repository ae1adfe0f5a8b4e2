"""Parts of a turn's content: the text of each, and a short name for an image or a file.

Does not keep images and files: a prompt may repeat megabytes of them with each call.
"""

from collections.abc import Iterable
from typing import Any, Final

from .json_values import items, members, string

_TEXTS: Final = {"text", "input_text", "output_text", "summary_text", "reasoning_text"}
_DATA: Final = "data:"
MAX_URL_LETTERS: Final = 200


def text_of(content: Any) -> str:
    """Return the text of a content, which is a string or a list of parts, joined by line feeds."""
    if isinstance(content, str):
        return content
    return joined(part_text(part) for part in items(content))


def joined(texts: Iterable[str]) -> str:
    """Join those of `texts` that are not empty, each on a line of its own."""
    return "\n".join(text for text in texts if text)


def part_text(part: Any) -> str:
    """Return the text of one part, or its name in brackets if it is not text; empty for a refusal, which is kept elsewhere."""
    if isinstance(part, str):
        return part
    fields = members(part)
    kind = string(fields.get("type"))
    if kind in _TEXTS or (not kind and "text" in fields):
        return string(fields.get("text"))
    if kind == "refusal" or not fields:
        return ""
    return f"[{_named(kind, fields)}]"


def _named(kind: str, part: dict[str, Any]) -> str:
    """Name a part that is not text: chat's `image_url`, `input_audio`, `file`; `input_image`, `input_file`; Anthropic's `image`."""
    source = members(part.get("source"))
    inner = next(
        (members(part[name]) for name in ("image_url", "input_audio", "file") if isinstance(part.get(name), dict)), part
    )
    name = string(inner.get("filename")) or string(part.get("title")) or string(part.get("tool_name"))
    url = _url(part, inner, source)
    if url.startswith(_DATA):
        media_type, _, data = url.removeprefix(_DATA).partition(",")
        return _sized(media_type.partition(";")[0] or kind, data, name)
    data = string(source.get("data")) or string(inner.get("data"))
    if data and string(source.get("type")) == "text":
        return f"{string(source.get('media_type')) or kind}, {len(data):,} letters"
    if data:
        return _sized(string(source.get("media_type")) or string(inner.get("format")) or kind, data, name)
    where = url[:MAX_URL_LETTERS] or name or string(inner.get("file_id")) or string(source.get("file_id"))
    return f"{kind} {where}" if where else kind


def _url(part: dict[str, Any], inner: dict[str, Any], source: dict[str, Any]) -> str:
    urls = (inner.get("url"), part.get("image_url"), inner.get("file_data"), inner.get("file_url"), source.get("url"))
    return next((url for url in urls if isinstance(url, str) and url), "")


def _sized(kind: str, base64: str, name: str) -> str:
    """Name base64 data by its type and its decoded size: `image/png, 1,234 bytes`."""
    size = len(base64) * 3 // 4 - base64[-2:].count("=")
    return ", ".join(word for word in (kind, name, f"{size:,} bytes") if word)

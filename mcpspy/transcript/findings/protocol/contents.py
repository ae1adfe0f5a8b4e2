"""Findings about content that is not what its message says: base64, media types, sizes. They are optional.

Only the first results of each tool, prompt and resource are looked at, and of long data only the beginning.
"""

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any, Final

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT
from ...mcp.blocks import listed, member
from ...message import RESULT
from ...model import Exchange, Message
from ..facts import CaptureFacts
from ..rule import Hit, Severity, Unchecked, hit_in, protocol_rule
from ..words import call_name, quoted

_CALL: Final = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"shot"}\n'
_IMAGE: Final = '← result 1 {{"content":[{{"type":"image","mimeType":"image/{}","data":"/9j/4AAQSkZJRgABAQEASABIAAA="}}]}}'

CONTENT_MISLABELLED: Final = protocol_rule(
    name="content-mislabelled",
    title="Content is not what it claims to be",
    what=(
        "The data of an image, a sound or a resource is not base64, is of another type than its mimeType, or has another size; "
        "or a text stands where data belong, or is not JSON as it is said to be."
    ),
    why="Models and clients reject such content, often with an error that does not name it.",
    blame="The server: it wrote both the data and what they are said to be.",
    example=f"{_CALL}{_IMAGE.format('png')}",
    clean=f"{_CALL}{_IMAGE.format('jpeg')}",
    advice="Encode the bytes themselves with standard base64, and take mimeType and size from these bytes.",
)

RULES: Final = (CONTENT_MISLABELLED,)


MAX_EACH: Final = 50
"""Number of results of one call that are looked at."""

PSEUDONYM: Final = "redacted-"
"""The beginning of a pseudonym, which has another length and other letters than what it stands for."""

_HEAD_BYTES: Final = 4096
"""A result with data names them in so many bytes."""

_DATA: Final = lazy_pattern(rb'"(?:data|blob)"')
_DATA_OR_TELLING_TYPE: Final = lazy_pattern(rb'"(?:data"|blob"|mimeType"\s*:\s*"[^"]*(?i:image|audio|json))')
"""Data, or a type of which a text can be seen not to be."""

_MAX_DECODED: Final = 1 << 20
_PREFIX: Final = 64
_LIMIT: Final = Unchecked(
    rules=(CONTENT_MISLABELLED.name,),
    reason=f"only the first {MAX_EACH} results of each tool, prompt and resource are looked at",
)
_METHODS: Final = {"tools/call", "prompts/get", "resources/read"}

_SIGNS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"<svg", "image/svg+xml"),
    (b"<!DOCTYPE html", "text/html"),
    (b"<!doctype html", "text/html"),
    (b"<html", "text/html"),
)
_ALWAYS_SIGNED: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types that begin with their sign, so that data without it are of no such type."""
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_ALIASES: Final = {
    "image/jpg": "image/jpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
}
_KNOWN: Final = {*(name for _, name in _SIGNS), *_RIFF.values()}


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find mislabelled content in the results of a capture."""
    seen: dict[tuple[str, str | None], int] = {}
    for exchange in facts.exchanges:
        request, response = exchange.request, exchange.response
        if response is None or request.method not in _METHODS or request.sender != CLIENT or response.kind is not RESULT:
            continue
        raw = response.raw
        shown = _DATA_OR_TELLING_TYPE.search(raw, 0, _HEAD_BYTES)
        if shown is None or (request.method != "resources/read" and _DATA.search(raw, 0, _HEAD_BYTES) is None):
            continue
        key = (exchange.method, exchange.target)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= MAX_EACH:
            yield from _mislabelled(exchange, response)
        else:
            facts.limits[_LIMIT] = None
    yield from _sizes(facts)


def _mislabelled(exchange: Exchange, response: Message) -> Iterator[Hit]:
    for block in _blocks(response.result):
        data = next((value for name in ("data", "blob") if isinstance(value := block.get(name), str)), None)
        claimed = block.get("mimeType")
        wrong = (
            ""
            if data is None or PSEUDONYM in data[:_MAX_DECODED]
            else _mistake(data, claimed if isinstance(claimed, str) else "")
        )
        if wrong:
            what = f"The result of {call_name(exchange)} has {_name(block)} whose data {wrong}."
            yield hit_in(CONTENT_MISLABELLED, response, exchange.row, what, group=f"{call_name(exchange)} {wrong[:20]}")
        text = block.get("text")
        if data is None and isinstance(text, str) and isinstance(claimed, str) and (wrong := _text_mistake(text, claimed)):
            what = f"The result of {call_name(exchange)} has {_name(block)} whose text {wrong}."
            yield hit_in(
                CONTENT_MISLABELLED, response, exchange.row, what, group=f"{call_name(exchange)} text",
                severity=Severity.NOTE if "JSON" in wrong else None,
            )  # fmt: skip


def _text_mistake(text: str, claimed: str) -> str:
    """Say in a few words why a text is not of the type that it is said to be; empty if it may be."""
    media_type = claimed.partition(";")[0].strip().lower()
    if not text.strip() or PSEUDONYM in text[:_MAX_DECODED]:
        return ""
    if media_type.startswith(("image/", "audio/")) and not media_type.endswith(("xml", "xpixmap", "xbitmap")):
        return f"stands for data that are said to be {claimed[:60]}: they belong into blob, as base64"
    if media_type == "application/json" and len(text) <= _MAX_DECODED and not _is_json(text):
        return f"is not JSON, but is said to be {claimed[:60]}: {quoted(text[:_PREFIX])}"
    return ""


def _is_json(text: str) -> bool:
    """Tell whether a text is one JSON value, or one on each of its lines."""
    for part in (text, *text.splitlines()[:1]):
        try:
            json.loads(part)
        except (ValueError, RecursionError):
            continue
        return True
    return False


def _blocks(result: Any) -> Iterator[dict[str, Any]]:
    """Yield the content blocks and the resources of a result."""
    yield from listed(result, "contents")
    blocks = listed(result, "content") + [
        message["content"] for message in listed(result, "messages") if isinstance(message.get("content"), dict)
    ]
    for block in blocks:
        resource = block.get("resource")
        yield resource if isinstance(resource, dict) else block


def _name(block: dict[str, Any]) -> str:
    kind = block.get("type")
    return {"image": "an image", "audio": "a sound"}.get(kind if isinstance(kind, str) else "", "a resource")


def _mistake(data: str, claimed: str) -> str:
    """Say in a few words what is wrong with base64 and its media type; empty if nothing is."""
    if data.startswith("data:"):
        return f"begin with “{data.partition(',')[0][:40]},”: a data URL instead of base64"
    media_type = claimed.partition(";")[0].strip().lower()
    media_type = _ALIASES.get(media_type, media_type)
    text = "".join(data.split()) if len(data) <= _MAX_DECODED else data[:_PREFIX]
    try:
        decoded = b64decode(text, validate=True)
    except ValueError:
        return f"are not base64: {quoted(data[:_PREFIX])}"
    if not decoded and media_type in _KNOWN:
        return f"are empty, but are said to be {media_type}"
    actual = _type_of(decoded)
    if decoded and not actual and media_type in _ALWAYS_SIGNED:
        return f"are said to be {claimed[:60]}, and do not begin like that: {quoted(decoded[:_PREFIX])}"
    if actual and actual != media_type and (media_type in _KNOWN or media_type.startswith(("image/", "audio/", "text/"))):
        return f"are {actual}, but are said to be {claimed[:60]}"
    return ""


def _type_of(data: bytes) -> str:
    """Recognise a media type by the first bytes; empty if they tell nothing."""
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12], "")
    return next((name for sign, name in _SIGNS if data.startswith(sign)), "")


def _sizes(facts: CaptureFacts) -> Iterator[Hit]:
    """Find resources whose listed size counts characters, or the letters of base64, instead of bytes."""
    sizes = {
        uri: size
        for listing in facts.listings
        if listing.method == "resources/list" and listing.response is not None and b'"size"' in listing.response.raw
        for resource in listed(listing.response.result, "resources")
        if isinstance(uri := resource.get("uri"), str) and type(size := resource.get("size")) is int
    }
    if not sizes:
        return
    for exchange in facts.exchanges:
        response, size = exchange.response, sizes.get(exchange.target or "")
        if exchange.method != "resources/read" or size is None or response is None or response.kind is not RESULT:
            continue
        contents = listed(response.result, "contents")
        is_whole = len(contents) == 1 and PSEUDONYM.encode() not in response.raw
        found = _size(contents[0]) if is_whole else None
        if found is not None and found[0] != size:
            bytes_, letters, unit = found
            counted = f": the size counts {unit}" if letters == size else ""
            what = f"{call_name(exchange)} has {bytes_:,} bytes, but resources/list says {size:,}{counted}."
            severity = None if counted else Severity.NOTE  # it may have changed since
            yield hit_in(CONTENT_MISLABELLED, response, exchange.row, what, group=f"size {exchange.target}", severity=severity)


def _size(content: dict[str, Any]) -> tuple[int, int, str] | None:
    """Return the bytes of a resource, what a wrong size would count, and its unit; None if that cannot be told."""
    text, blob = member(content, "text"), member(content, "blob")
    if isinstance(text, str):
        return len(text.encode("utf-8", "surrogatepass")), len(text), "characters, not bytes"
    if isinstance(blob, str) and len(blob) <= _MAX_DECODED:
        try:
            return len(b64decode(blob, validate=True)), len(blob), "the letters of base64"
        except ValueError:
            return None
    return None

"""The params of a message and the head of its result in a few words, for rows and diagrams: one rule for all methods.

    {"name": "read", "arguments": {"path": "a.md"}}                   path = “a.md”
    {"content": [{"type": "text", "text": "Hello"}], "isError": false}   “Hello”

Values are slices of the payload and are read no further than they are shown, so that a large payload costs no more than a small one.
Every text is one line that is safe for a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from json import loads
from typing import Final

from ...lazy_pattern import lazy_pattern
from ...transcript.mcp.methods import TARGETS
from ...transcript.message import Message
from ...wire.json_spans import Slice, content_members, members, objects, string, string_head
from ..text.escape import decoded, one_line


class Detail(StrEnum):
    """Amount of a message that a row or a diagram shows."""

    NAMES = "names"
    """The method and its target."""
    PARAMS = "params"
    """And the params and the head of the result, in a few words."""
    FULL = "full"
    """And the payload below, cut if it is long."""


MAX_LETTERS: Final = 120
"""The most letters of the params of a call, or of the head of a result."""

VALUE_LETTERS: Final = 60
"""The most letters of one value of several."""

ROOMY_CELLS: Final = 100
"""From this width on, a row shows params and results; below it they get lines of their own, if the user wants them."""

MAX_ITEMS: Final = 12
"""The most members or items that are looked at."""

_EMPTY: Final = (b"{}", b"[]", b"null", b"")
_ENVELOPE: Final = ("_meta", "capabilities", "task", "resultType", "isError", "nextCursor", "ttlMs", "cacheScope")
"""Members of params and results that say nothing about this call."""

_NAMES: Final = ("name", "uri", "uriTemplate", "taskId", "title")
"""The members by which an item of a list is named, the best first."""

_escapes: Final = lazy_pattern(r"(?<!\\)\\u(?:[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|[0-9a-fA-F]{4})")


def row_detail(width: int | None, wanted: Detail | None) -> Detail:
    """Return the amount that rows show: what the user wants, else the params where the screen has room for them."""
    if wanted is not None:
        return wanted
    return Detail.PARAMS if has_room(width) else Detail.NAMES


def has_room(width: int | None) -> bool:
    """Return whether a line of this width has room for params and results."""
    return width is None or width >= ROOMY_CELLS


def params_words(message: Message) -> str:
    """Return the params of a request or a notification: `path = “a.md”, lines = 3`. Its target, which a row has, is left out."""
    values = content_members(message.raw)
    if not values:
        return ""
    if message.method == "tools/call" and "arguments" in values and "inputResponses" not in values:  # most rows have no more
        return _joined(_parts(members(values["arguments"])))
    target = "ref" if "ref" in values else TARGETS.get(message.method or "", "")
    return _joined(_members(name, value) for name, value in values.items() if name != target and name not in _ENVELOPE)


def result_words(message: Message) -> str:
    """Return the head of a result: the words of its content, else its members."""
    values = content_members(message.raw)
    text = _content_words(values["content"]) if "content" in values else ""
    if text and not (text.startswith(("“{", "“[")) and "structuredContent" in values):
        return one_line(text)
    structured = members(values.get("structuredContent", b""))
    if structured:
        return _joined(_parts(structured))
    if text:
        return one_line(text)
    return _joined(_members(name, value) for name, value in values.items() if name not in _ENVELOPE)


def readable(text: str) -> str:
    r"""Replace `\u` escapes by their characters: `\u5317` is 北. ASCII and invisible characters stay escaped."""
    return _escapes.sub(
        lambda match: sign if (sign := loads(f'"{match[0]}"')) > "\x7f" and sign.isprintable() else match[0], text
    )


def _joined(parts: Iterable[str]) -> str:
    """Join parts that are not empty, no more than there is room for."""
    made: list[str] = []
    letters = 0
    for part in filter(None, parts):
        made.append(part)
        letters += len(part) + 2
        if letters > MAX_LETTERS:
            break
    return one_line(", ".join(made), MAX_LETTERS)


def _members(name: str, value: Slice) -> str:
    """Return the words for a member of params or of a result, which may have a shape of its own."""
    if name in _READERS:
        return _READERS[name](value)
    raw = bytes(value)
    return "" if raw in _EMPTY else _named_list(name, raw) or f"{name} = {_value(raw, VALUE_LETTERS)}"


def _parts(values: Mapping[str, Slice]) -> Iterator[str]:
    """Yield a name and its value for each member, whatever it is called."""
    letters = MAX_LETTERS if len(values) == 1 else VALUE_LETTERS
    return (f"{name} = {_value(bytes(value), letters)}" for name, value in values.items())


def _value(raw: bytes, letters: int) -> str:
    if raw[:1] == b'"':
        return _quoted(raw, letters)
    head = decoded(raw[: 2 * letters])
    text = readable(head) if "\\" in head else head
    return text if len(text) <= letters and len(raw) == len(head) else text[: letters - 1] + "…"


def _quoted(raw: Slice, letters: int = MAX_LETTERS) -> str:
    plain = bytes(raw) if len(raw) <= letters else b""
    if plain[:1] == b'"' and plain.isascii() and b"\\" not in plain:  # most need no reader
        return f"“{plain[1:-1].decode('ascii')}”"
    text = string_head(raw, letters + 1) or ""
    return f"“{text}”" if len(text) <= letters else f"“{text[: letters - 1]}…”"


def _arguments(value: Slice) -> str:
    return ", ".join(_parts(members(value)))


def _argument(value: Slice) -> str:
    """Return the argument to be completed, which is an object of its name and its value."""
    named = members(value)
    name = string(named.get("name", b"")) or "?"
    return f"{name} = {_value(bytes(named.get('value', b'')), MAX_LETTERS)}"


def _messages(value: Slice) -> str:
    """Return the text of the last of several messages."""
    every = objects(value)
    return _content_words(every[-1].get("content", b"")) if every else ""


def _implementation(value: Slice) -> str:
    """Return name and version of a client or a server."""
    named = members(value)
    return " ".join(string(named[name]) or "" for name in ("name", "version") if name in named)


def _fields(value: Slice) -> str:
    """Return the names of the fields of a form."""
    names = list(members(members(value).get("properties", b"")))
    return "{" + ", ".join(names[:MAX_ITEMS]) + "}" if names else ""


def _content_words(content: Slice) -> str:
    """Return the texts of content, which is one block or several, and the types of other blocks."""
    return ", ".join(filter(None, map(_block_words, (objects(content) or [members(content)])[:MAX_ITEMS])))


def _block_words(block: dict[str, Slice]) -> str:
    return _quoted(block["text"]) if "text" in block else string(block.get("type", b"")) or ""


_READERS: Final = {
    "arguments": _arguments,
    "argument": _argument,
    "messages": _messages,
    "message": lambda value: _value(bytes(value), MAX_LETTERS),
    "requestedSchema": _fields,
    "clientInfo": _implementation,
    "content": _content_words,
}
"""The words for members that have a shape of their own, wherever they occur."""


def _named_list(name: str, raw: bytes) -> str:
    """Return the count and the names of a list of objects that have names: `tools: 3 (add, sub, mul)`; empty for other values."""
    if raw[:1] != b"[":
        return ""
    every = objects(raw)
    names = [found for item in every[:MAX_ITEMS] if (found := _name_of(item))]
    return f"{len(every)} {name}: {', '.join(names)}" if names else ""


def _name_of(item: dict[str, Slice]) -> str:
    return next((text for name in _NAMES if name in item and (text := string(item[name]))), "")

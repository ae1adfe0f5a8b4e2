"""Facts about an outgoing message that HTTP needs: its ids, its revision, and the header fields that repeat parts of it.

Source: MCP specification 2026-07-28, basic/transports/streamable-http (request headers, custom headers from tool parameters).
A message that cannot be read goes out as it is, without such fields.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final

from ...transcript.http.head import decoded_value
from ...transcript.mcp.fields import notification_facts, request_facts
from ...transcript.mcp.methods import CANCELLED, INITIALIZE, NAMED_IN_HEADERS
from ...transcript.mcp.revisions import Era, era
from ...wire.jsonrpc import cut, parse

TOOL_CALL: Final = "tools/call"
TOOLS_LIST: Final = "tools/list"

_PREFIX: Final = "Mcp-Param-"
_MARK: Final = "x-mcp-header"
_is_plain = re.compile(r"[!-~](?:[ -~]*[!-~])?").fullmatch
_is_name = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch


class UpstreamMessage:
    """A message or a batch; `data` is the body of its request.

    `ids` are the id keys of its requests, `method` is that of its first message, `revision` the one that a message of 2026-07-28 or
    later names itself, `cancelled_id` the id key that a cancellation names.
    """

    __slots__ = ("_target", "cancelled_id", "data", "ids", "method", "revision")

    def __init__(self, data: bytes) -> None:
        self.data = data.rstrip(b"\r\n")
        pieces = cut(self.data)
        self.ids = tuple(piece.id for piece in pieces if piece.kind == "request" and piece.id is not None)
        first = pieces[0]
        self.method = first.method or ""
        facts = notification_facts if first.kind == "notification" else request_facts
        message_facts = facts(self.method, first.content) if self.method and not first.batch else (None, None, None)
        self._target, self.cancelled_id, self.revision = message_facts

    @property
    def is_modern(self) -> bool:
        return self.revision is not None and era(self.revision) is Era.MODERN

    @property
    def is_cancellation(self) -> bool:
        return self.method == CANCELLED and self.cancelled_id is not None

    @property
    def opens(self) -> bool:
        """True if it begins a session."""
        return self.method == INITIALIZE

    def fields(self, mirrored: MirroredArguments) -> list[tuple[bytes, bytes]]:
        """Return the fields that a message of 2026-07-28 or later needs."""
        fields = [("MCP-Protocol-Version", self.revision or ""), ("Mcp-Method", self.method)]
        if self.method in NAMED_IN_HEADERS and self._target is not None:
            fields.append(("Mcp-Name", self._target))
        if self.method == TOOL_CALL and self._target is not None:
            fields += mirrored.fields(self._target, self.data)
        return [(name.encode(), field_value(value)) for name, value in fields]


class MirroredArguments:
    """The arguments of tools that are repeated in header fields, learned from the results of `tools/list`."""

    __slots__ = ("_of_tool",)

    def __init__(self) -> None:
        self._of_tool: dict[str, list[tuple[tuple[str, ...], str]]] = {}

    def learn(self, answer: bytes) -> None:
        """Learn from one result of `tools/list`."""
        for tool in _listed(parse(answer), "result", "tools"):
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                self._of_tool[name] = list(_marked(tool.get("inputSchema"), ()))

    def fields(self, tool: str, call: bytes) -> Iterator[tuple[str, str]]:
        """Yield name and value of a field for each marked argument of a call of this tool."""
        for path, name in self._of_tool.get(tool, ()):
            value = parse(call)
            for step in ("params", "arguments", *path):
                value = value.get(step) if isinstance(value, dict) else None
            if isinstance(value, bool):
                yield _PREFIX + name, "true" if value else "false"
            elif isinstance(value, str | int):
                yield _PREFIX + name, str(value)


def field_value(value: str) -> bytes:
    """Write a field's value; in Base64 if it would not arrive unchanged, or if it looks like Base64 of this kind."""
    if _is_plain(value) and decoded_value(value) == value and not value.startswith("=?base64?"):
        return value.encode()
    return b"=?base64?%b?=" % b64encode(value.encode("utf-8", "replace"))


def _marked(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path of each marked argument and the name of its field. Only `properties` are followed."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or len(path) > _MAX_DEPTH:
        return
    for name, inner in properties.items():
        mark = inner.get(_MARK) if isinstance(inner, dict) else None
        if isinstance(mark, str) and _is_name(mark):
            yield (*path, name), mark
        yield from _marked(inner, (*path, name))


_MAX_DEPTH: Final = 32


def _listed(value: Any, *steps: str) -> list[Any]:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, list) else []

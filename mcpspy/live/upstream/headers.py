"""What HTTP has to know of a message that goes out: its ids, its revision, and the header fields that repeat what it says.

Source: MCP specification 2026-07-28, basic/transports/streamable-http (request headers, custom headers from tool parameters).
Refuses to hold what it cannot read: such a message goes out as it is, with no fields of its own.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final

from ...transcript.http.head import meaning
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


class OutgoingMessage:
    """A message, or a batch: `data` is what goes into the body.

    `ids` are the tokens of the ids of its requests; `method` is that of the first message; `revision` the one that a message of
    2026-07-28 or later names itself; `token` the id that a cancellation names.
    """

    __slots__ = ("_target", "data", "ids", "method", "revision", "token")

    def __init__(self, data: bytes) -> None:
        self.data = data.rstrip(b"\r\n")
        pieces = cut(self.data)
        self.ids = tuple(piece.id for piece in pieces if piece.kind == "request" and piece.id is not None)
        first = pieces[0]
        self.method = first.method or ""
        facts = notification_facts if first.kind == "notification" else request_facts
        said = facts(self.method, first.content) if self.method and not first.batch else (None, None, None)
        self._target, self.token, self.revision = said

    @property
    def is_modern(self) -> bool:
        return self.revision is not None and era(self.revision) is Era.MODERN

    @property
    def is_cancellation(self) -> bool:
        return self.method == CANCELLED and self.token is not None

    @property
    def opens(self) -> bool:
        """Whether it begins a session."""
        return self.method == INITIALIZE

    def fields(self, mirrored: Mirrored) -> list[tuple[bytes, bytes]]:
        """The fields that a message of 2026-07-28 or later needs."""
        found = [("MCP-Protocol-Version", self.revision or ""), ("Mcp-Method", self.method)]
        if self.method in NAMED_IN_HEADERS and self._target is not None:
            found.append(("Mcp-Name", self._target))
        if self.method == TOOL_CALL and self._target is not None:
            found += mirrored.fields(self._target, self.data)
        return [(name.encode(), spelled(value)) for name, value in found]


class Mirrored:
    """Which arguments of which tools are repeated in fields, from the answers to `tools/list`."""

    __slots__ = ("_of_tool",)

    def __init__(self) -> None:
        self._of_tool: dict[str, list[tuple[tuple[str, ...], str]]] = {}

    def learn(self, answer: bytes) -> None:
        """Take in one answer to `tools/list`."""
        for tool in _listed(parse(answer), "result", "tools"):
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                self._of_tool[name] = list(_marked(tool.get("inputSchema"), ()))

    def fields(self, tool: str, call: bytes) -> Iterator[tuple[str, str]]:
        """The fields of a call of this tool: of each argument that is there and marked."""
        for path, name in self._of_tool.get(tool, ()):
            value = parse(call)
            for step in ("params", "arguments", *path):
                value = value.get(step) if isinstance(value, dict) else None
            if isinstance(value, bool):
                yield _PREFIX + name, "true" if value else "false"
            elif isinstance(value, str | int):
                yield _PREFIX + name, str(value)


def spelled(value: str) -> bytes:
    """The value of a field, in Base64 where it would not arrive as it is, or would be taken for that."""
    if _is_plain(value) and meaning(value) == value and not value.startswith("=?base64?"):
        return value.encode()
    return b"=?base64?%b?=" % b64encode(value.encode("utf-8", "replace"))


def _marked(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The places of marked arguments and the names of their fields: those that `properties` alone lead to."""
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

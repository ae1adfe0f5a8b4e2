"""Facts about an outgoing message that HTTP needs: its ids, its revision, and the header fields that repeat parts of it.

Source: MCP specification 2026-07-28, basic/transports/streamable-http (request headers, custom headers from tool parameters).
A message that cannot be read goes out as it is, without such fields.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ...transcript.http.head import decoded_value
from ...transcript.mcp.fields import notification_facts, request_facts
from ...transcript.mcp.methods import CANCELLED, INITIALIZE, NAMED_IN_HEADERS
from ...transcript.mcp.revisions import Era, era
from ...wire.http_head import fields as fields_of
from ...wire.http_head import first_value, with_value, without_field
from ...wire.json_spans import members
from ...wire.jsonrpc import cut, parse

VERSION: Final = b"MCP-Protocol-Version"
TOOL_CALL: Final = "tools/call"
TOOLS_LIST: Final = "tools/list"

_PREFIX: Final = "Mcp-Param-"
_MARK: Final = "x-mcp-header"
MARK: Final = _MARK.encode()
"""The member of a schema that names the field in which an argument is repeated."""
_is_plain = re.compile(r"[!-~](?:[ -~]*[!-~])?").fullmatch
_is_name = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch


class UpstreamMessage:
    """A message or a batch; `data` is the body of its request.

    `ids` are the id keys of its requests, `method` and `target` are those of its first message, `revision` the one that a message of
    2026-07-28 or later names itself, `cancelled_id` the id key that a cancellation names.
    """

    __slots__ = ("cancelled_id", "data", "ids", "method", "revision", "target")

    def __init__(self, data: bytes) -> None:
        self.data = data.rstrip(b"\r\n")
        pieces = cut(self.data)
        self.ids = tuple(piece.id for piece in pieces if piece.kind == "request" and piece.id is not None)
        first = pieces[0]
        self.method = first.method or ""
        facts = notification_facts if first.kind == "notification" else request_facts
        message_facts = facts(self.method, first.content) if self.method and not first.batch else (None, None, None)
        self.target, self.cancelled_id, self.revision = message_facts

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
        fields = [(VERSION.decode(), self.revision)] if self.revision else []
        fields += [("Mcp-Method", self.method)] if self.method else []
        if self.method in NAMED_IN_HEADERS and self.target is not None:
            fields.append(("Mcp-Name", self.target))
        if self.method == TOOL_CALL:
            fields += mirrored.fields(self.target or "", self.data)
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

    def of_edit(self, head: bytes, before: UpstreamMessage, after: UpstreamMessage) -> MirroredArguments:
        """Return what is repeated of a call with this head before and after an edit.

        For a tool that no list has named, it is told by values: of several arguments with the value of a field, it is the one that
        has the name of the field. A tool that becomes another one that is not known keeps its marks.
        """
        both = MirroredArguments()
        marks = self._of_tool.get(before.target or "")
        if marks is None:
            marks = list(_marks_in(head, list(_texts((), _at(parse(before.data), "params", "arguments")))))
        both._of_tool = {before.target or "": marks, after.target or "": marks, **self._of_tool}
        return both

    def fields(self, tool: str, call: bytes) -> Iterator[tuple[str, str]]:
        """Yield name and value of a field for each marked argument of a call of this tool."""
        for path, name in self._of_tool.get(tool, ()):
            value = _at(parse(call), "params", "arguments", *path)
            if isinstance(value, str | int):
                yield _PREFIX + name, _text(value)


def with_mirrored(head: bytes, before: bytes, after: bytes, mirrored: MirroredArguments) -> bytes:
    """Return the head of a request for a body that was changed: fields that repeat what was changed follow it, all others stay.

    Only a head that names a method has such fields. `mirrored` are arguments that are known to be repeated.
    """
    if first_value(head, head.lower(), b"mcp-method") is None or not members(after):
        return head
    messages = UpstreamMessage(before), UpstreamMessage(after)
    both = mirrored.of_edit(head, *messages)
    old, new = (dict(message.fields(both)) for message in messages)
    for name in {**old, **new}:
        if name in new and old.get(name) != new[name]:
            head = with_value(head, name, new[name])
        elif name not in new and name != VERSION:
            head = without_field(head, name)
    return head


def field_value(value: str) -> bytes:
    """Write a field's value; in Base64 if it would not arrive unchanged, or if it looks like Base64 of this kind."""
    if _is_plain(value) and decoded_value(value) == value and not value.startswith("=?base64?"):
        return value.encode()
    return b"=?base64?%b?=" % b64encode(value.encode("utf-8", "replace"))


def _text(value: str | int) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _texts(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the paths of the arguments that a field can repeat, each with its text."""
    if isinstance(value, dict) and len(path) < _MAX_DEPTH:
        for name, inner in value.items():
            yield from _texts((*path, name), inner)
    elif path and isinstance(value, str | int):
        yield path, _text(value)


def _marks_in(head: bytes, texts: Sequence[tuple[tuple[str, ...], str]]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path of each argument that a field repeats, and the name of the field, as `_marked` does."""
    for field, raw in fields_of(head):
        name, value = field.decode("latin-1"), decoded_value(raw.decode("utf-8", "replace"))
        if name.lower().startswith(_PREFIX.lower()) and _is_name(name):
            paths = [path for path, text in texts if text == value]
            paths = [path for path in paths if path[-1].lower() == name[len(_PREFIX) :].lower()] or paths
            yield from [(path, name[len(_PREFIX) :]) for path in paths if len(paths) == 1]


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
    value = _at(value, *steps)
    return value if isinstance(value, list) else []


def _at(value: Any, *steps: str) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value

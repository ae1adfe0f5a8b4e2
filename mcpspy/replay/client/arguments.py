"""Arguments of a call from words: `city=Rome days:=3`, the call of a tool that has them, and the values of `--set`.

A value after `=` is of the type that the tool's input schema has for it: `days=3` is a number if the schema says so, else a
text. A value after `:=` is JSON, whatever the schema says.

`--set '$.arguments.path="/srv"'` becomes an edit of a request. `$` is the request's `params`; a path from the root of the
message, as `params.arguments.path`, is the same one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from ...errors import PathError
from ...json_path import Step, assignment_at
from ...transcript.mcp.methods import OPENINGS
from ...transcript.model import Message
from ...wire.edits import ValueEdit, has_value, with_values
from ...wire.json_spans import members
from .outgoing import CALL

MODERN_META: Final = (
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
)
"""The members by which each request of the modern era describes its client (MCP specification, basic, `_meta`)."""


class ArgumentError(ValueError):
    """A word that is no argument; the text says why, and what to write."""


def arguments_of(words: Sequence[str], schema: Any) -> dict[str, bytes]:
    """Read `name=value` and `name:=JSON`, as JSON by name. Raises: ArgumentError."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    arguments: dict[str, bytes] = {}
    for word in words:
        before, sign, text = word.partition("=")
        name = before.removesuffix(":")
        if not sign or not name:
            raise ArgumentError(f"{word} is no argument: write name=value, or name:=JSON.")
        if name in arguments:
            raise ArgumentError(f"{name} has two values: write a list as {name}:='[…]'.")
        wanted = properties.get(name) if isinstance(properties, dict) else None
        arguments[name] = _json(name, text) if name != before else _typed(name, text, wanted)
    return arguments


def call_message(tool: str, arguments: dict[str, bytes], like: Message | None) -> bytes:
    """Write a call of a tool. Of `like`, a request of the same client, it has what each request must say of its client."""
    inside = b",".join(_quoted(name) + b":" + value for name, value in arguments.items())
    meta = members(members(members(like.raw).get("params", b"")).get("_meta", b"")) if like is not None else {}
    like_meta = b",".join(_quoted(name) + b":" + bytes(meta[name]) for name in MODERN_META if name in meta)
    more = b',"_meta":{%b}' % like_meta if like_meta else b""
    params = b'{"name":%b,"arguments":{%b}%b}' % (_quoted(tool), inside, more)
    return b'{"jsonrpc":"2.0","id":1,"method":"%b","params":%b}' % (CALL.encode(), params)


def like_of(requests: Iterable[Message]) -> Message | None:
    """Choose the request of a client that another one is to be like: the last that is no opening."""
    return next((request for request in reversed(list(requests)) if request.method not in OPENINGS), None)


def parameter_words(schema: Any) -> str:
    """Name the parameters of a tool, with their types: `city (string), days (integer, optional)`; empty if it has none."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    required = schema.get("required") if isinstance(schema, dict) else None
    words = []
    for name, wanted in properties.items() if isinstance(properties, dict) else ():
        types = " or ".join(sorted(_types(wanted)))
        is_required = isinstance(required, list) and name in required
        inside = ", ".join(filter(None, (types, "" if is_required else "optional")))
        words.append(f"{name} ({inside})" if inside else str(name))
    return ", ".join(words)


def _typed(name: str, text: str, wanted: Any) -> bytes:
    """Read a value as the type that its schema has: as a text, wherever that may be one."""
    types = _types(wanted)
    if not types or "string" in types:
        return _quoted(text)
    try:
        return _json(name, text)
    except ArgumentError:
        raise ArgumentError(f"{name} must be of type {' or '.join(sorted(types))}, and {text!r} is not.") from None


def _types(wanted: Any) -> set[str]:
    """Return the types that a schema names itself or in its alternatives; none if it does not say."""
    if not isinstance(wanted, dict):
        return set()
    own = wanted.get("type", [])
    types = {str(name) for name in (own if isinstance(own, list) else [own])}
    for alternative in (*_list(wanted.get("anyOf")), *_list(wanted.get("oneOf"))):
        types |= _types(alternative) or {"string"}
    if not types and isinstance(values := wanted.get("enum"), list):
        types = {_NAMES[type(value)] for value in values if type(value) in _NAMES}
    return types


_NAMES: Final = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _json(name: str, text: str) -> bytes:
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        quoted = json.dumps(text, ensure_ascii=False)
        raise ArgumentError(f"The value of {name} is no JSON: {text}. Put text in quotes, as in {name}:='{quoted}'.") from None
    return " ".join(text.splitlines()).encode("utf-8", "surrogatepass")


def _refuse_constant(word: str) -> None:
    """Refuse `NaN` and `Infinity`: Python's reader takes them, and JSON has none (RFC 8259, section 6)."""
    raise ValueError(word)


def _quoted(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")


class Override(NamedTuple):
    """A JSON value, and where it goes in the `params` of a request; `path` is the path as it was written."""

    path: str
    steps: tuple[Step, ...]
    value: bytes


def override_of(text: str) -> Override:
    """Parse the value of one `--set`. Raises: PathError: if the path, the value, or JSON is missing."""
    setting = text.strip()
    steps, path, value, end = assignment_at(setting, 0)
    if end < len(setting):
        raise PathError(text, end + 1, "the value ends here", "Leave out what follows it.")
    return Override(path, steps, value)


def override_edits(overrides: Sequence[Override], request: Message) -> list[ValueEdit]:
    """Return the edits of a request: a value is replaced, or added to what is around it.

    Raises: PathError: if neither can be done.
    """
    edits: list[ValueEdit] = []
    for override in overrides:
        steps = ("params", *override.steps)
        if override.steps[0] == "params" and len(override.steps) > 1 and not has_value(request.raw, ("params", "params")):
            steps = override.steps
        edits.append(ValueEdit(steps, override.value, adds=True))
        if not has_value(with_values(request.raw, edits), steps):
            reason = "the request has no such path, and it cannot be added"
            raise PathError(override.path, 1, reason, "Set what is around it as a whole.")
    return edits

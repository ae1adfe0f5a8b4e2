"""The usual messages of MCP on stdio, decoded in one step with the members that a transcript is built on.

Whatever is not usual is left to `decoder` and `wire.jsonrpc`, which do all that this module does: flaws, batches, errors, ids that
need a second look, params of another shape. To understand mcpspy, skip this module; a test holds the two ways against each other.
"""

from sys import intern
from typing import Final, Literal, TypeAlias

import msgspec

from ...records import Side
from ...usual_lines import FrameLine
from ...wire.json_spans import UNREADABLE
from ..message import NOTIFICATION, REQUEST, RESULT, Message, UsualMessage
from .codes import PROGRESS_TOKEN, PROTOCOL_VERSION
from .methods import CANCELLED, OPENINGS, PROGRESS, TARGETS

_ABSENT: Final = msgspec.Raw(b"")
_UNSET: Final = msgspec.UNSET


_Key: TypeAlias = int | str | msgspec.UnsetType
"""An id or a token. What is neither a number without a fraction nor a string is not usual, and neither is `null`."""


class _MetaMembers(msgspec.Struct, gc=False):
    token: _Key = msgspec.field(name=PROGRESS_TOKEN, default=_UNSET)
    revision: str | None = msgspec.field(name=PROTOCOL_VERSION, default=None)


class _ParamsMembers(msgspec.Struct, gc=False):
    name: str | None = None
    uri: str | None = None
    level: str | None = None
    token: _Key = msgspec.field(name="progressToken", default=_UNSET)
    request: _Key = msgspec.field(name="requestId", default=_UNSET)
    meta: _MetaMembers | None = msgspec.field(name="_meta", default=None)


class _ResultMembers(msgspec.Struct, gc=False):
    is_error: bool = msgspec.field(name="isError", default=False)
    type: msgspec.Raw = msgspec.field(name="resultType", default=_ABSENT)
    task: msgspec.Raw = _ABSENT
    is_complete: msgspec.Raw = msgspec.field(name="isComplete", default=_ABSENT)


class _MessageMembers(msgspec.Struct, gc=False):
    jsonrpc: Literal["2.0"]
    id: _Key = _UNSET
    method: str | None = None
    params: _ParamsMembers | None = None
    result: _ResultMembers | msgspec.UnsetType = _UNSET
    error: msgspec.Raw = _ABSENT


_decode = msgspec.json.Decoder(_MessageMembers).decode

_UNUSUAL: Final = OPENINGS | {"completion/complete"} | {
    method for method, member in TARGETS.items() if member not in ("name", "uri", "level")
}  # fmt: skip
"""Methods that are left to others: they open a session, or have their target somewhere else."""


def usual_message(line: FrameLine, capture: int, sender: Side, shift_ns: int) -> Message | None:
    """Return the message on a line of stdin or stdout; None if it is not usual."""
    text = line.text
    if line.part or line.chunks or text[-2:] != "}\n":
        return None
    try:
        fields = _decode(text)
    except UNREADABLE:
        return None
    method, result = fields.method, fields.result
    id = None if fields.id is _UNSET else _id_key(fields.id)
    if id == "":
        return None
    if (result is _UNSET) is (method is None) or fields.error is not _ABSENT:
        return None
    at_ns, first_ns = line.at_ns, line.first_ns
    if shift_ns:
        at_ns, first_ns = at_ns + shift_ns, None if first_ns is None else first_ns + shift_ns
    first_ns = at_ns if first_ns is None else first_ns
    if method is not None:
        if method in _UNUSUAL:
            return None
        kind = NOTIFICATION if id is None else REQUEST
        message = UsualMessage(
            capture, line.number, line.stream, sender, at_ns, first_ns, kind, text.encode(), id, intern(method)
        )
        if fields.params is not None and not _take_params(message, method, fields.params):
            return None
        return message
    if id is None or not (result.type is result.task is result.is_complete is _ABSENT):  # type: ignore[union-attr]  # it is set
        return None
    message = UsualMessage(capture, line.number, line.stream, sender, at_ns, first_ns, RESULT, text.encode(), id)
    if result.is_error:  # type: ignore[union-attr]
        message.is_error = True
    return message


def _take_params(message: Message, method: str, params: _ParamsMembers) -> bool:
    """Set what params say about a message, as `fields.request_facts` and `fields.notification_facts` do. False if it is not usual."""
    member = TARGETS.get(method)
    if member is not None:
        target = params.name if member == "name" else params.uri if member == "uri" else params.level
        if target is not None:
            message.target = intern(target)
    meta = params.meta
    if message.kind is NOTIFICATION:
        key = params.token if method == PROGRESS else params.request if method == CANCELLED else _UNSET
    else:
        key = _UNSET if meta is None else meta.token
    if key is not _UNSET:
        message.correlation_key = _id_key(key)
    if meta is not None and meta.revision:
        message.revision = intern(meta.revision)
    return message.correlation_key != ""


def _id_key(key: int | str) -> str:
    """Return what `json_spans.id_key` returns for the spelling of a key; empty if that is not known."""
    if isinstance(key, int):
        return str(key) if key > 0 else ""  # 0 may have been spelled -0
    return f'"{key}"' if key.isprintable() and '"' not in key and "\\" not in key else ""

"""The usual messages of MCP on stdio, decoded in one step with the members that a transcript is built on.

Whatever is not usual is left to `decoder` and `wire.jsonrpc`, which do all that this module does: flaws, batches, errors, ids that
need a second look, params of another shape. To understand mcpspy, skip this module; a test holds the two ways against each other.
"""

from sys import intern
from typing import Final, Literal

import msgspec

from ...frame_line import FrameLine
from ...records import Side
from ...wire.json_spans import UNREADABLE, id_key
from ..message import NOTIFICATION, REQUEST, RESULT, Message
from .codes import PROGRESS_TOKEN, PROTOCOL_VERSION
from .methods import CANCELLED, OPENINGS, PROGRESS, TARGETS

_ABSENT: Final = msgspec.Raw(b"")


class _MetaMembers(msgspec.Struct, gc=False):
    token: msgspec.Raw = msgspec.field(name=PROGRESS_TOKEN, default=_ABSENT)
    revision: str | None = msgspec.field(name=PROTOCOL_VERSION, default=None)


class _ParamsMembers(msgspec.Struct, gc=False):
    name: str | None = None
    uri: str | None = None
    level: str | None = None
    token: msgspec.Raw = msgspec.field(name="progressToken", default=_ABSENT)
    request: msgspec.Raw = msgspec.field(name="requestId", default=_ABSENT)
    meta: _MetaMembers | None = msgspec.field(name="_meta", default=None)


class _ResultMembers(msgspec.Struct, gc=False):
    is_error: bool = msgspec.field(name="isError", default=False)
    type: msgspec.Raw = msgspec.field(name="resultType", default=_ABSENT)
    task: msgspec.Raw = _ABSENT
    is_complete: msgspec.Raw = msgspec.field(name="isComplete", default=_ABSENT)


class _MessageMembers(msgspec.Struct, gc=False):
    jsonrpc: Literal["2.0"]
    id: msgspec.Raw = _ABSENT
    method: str | None = None
    params: _ParamsMembers | None = None
    result: _ResultMembers | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw = _ABSENT


_decode = msgspec.json.Decoder(_MessageMembers).decode

_UNUSUAL: Final = OPENINGS | {"completion/complete"} | {
    method for method, member in TARGETS.items() if member not in ("name", "uri", "level")
}  # fmt: skip
"""Methods that are left to others: they open a session, or have their target somewhere else."""


def usual_message(line: FrameLine, capture: int, sender: Side, shift_ns: int) -> Message | None:
    """Return the message on a line of stdin or stdout; None if it is not usual."""
    text = line.text
    if line.part or text[-1:] != "\n" or text[-2:-1] == "\r":
        return None
    try:
        fields = _decode(text)
    except UNREADABLE:
        return None
    id, method, result = None, fields.method, fields.result
    if fields.id is not _ABSENT:
        id = str(fields.id, "utf-8")
        if not id.isdigit() and (id[0] != '"' or "\\" in id):
            return None
    if (result is msgspec.UNSET) is (method is None) or fields.error is not _ABSENT:
        return None
    at_ns = line.at_ns + shift_ns if shift_ns else line.at_ns
    first_ns = at_ns if line.first_ns is None else line.first_ns + shift_ns
    raw = text.encode()
    if method is not None:
        if method in _UNUSUAL:
            return None
        kind = NOTIFICATION if id is None else REQUEST
        message = Message(capture, line.number, line.stream, sender, at_ns, first_ns, kind, raw, id, intern(method))
        if fields.params is not None:
            _take_params(message, method, fields.params)
        return message
    if id is None or result is msgspec.UNSET or not (result.type is result.task is result.is_complete is _ABSENT):
        return None
    message = Message(capture, line.number, line.stream, sender, at_ns, first_ns, RESULT, raw, id)
    message.is_error = result.is_error
    return message


def _take_params(message: Message, method: str, params: _ParamsMembers) -> None:
    """Set what params say about a message, as `fields.request_facts` and `fields.notification_facts` do."""
    member = TARGETS.get(method)
    if member is not None:
        target = getattr(params, member)
        message.target = None if target is None else intern(target)
    meta = params.meta
    if message.kind is REQUEST:
        key = _ABSENT if meta is None else meta.token
    else:
        key = params.token if method == PROGRESS else params.request if method == CANCELLED else _ABSENT
    if key is not _ABSENT:
        message.correlation_key = id_key(key)
    if meta is not None and meta.revision:
        message.revision = intern(meta.revision)

"""Payloads to messages: one typed decoder for nearly all, and a strict reader for what does not fit it.

The typed decoder takes only those members that a transcript needs, and refuses whatever is odd: flaws, batches, ids that need a
second look, params of another shape. The strict reader (`wire.jsonrpc`) reads that, and names what is wrong. Both return the same
for a message that both can read; a test compares them.
"""

from __future__ import annotations

from sys import intern
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import msgspec

from ..records import Frame, Side
from ..wire.json_spans import UNREADABLE
from ..wire.jsonrpc import Piece, cut, is_utf8
from .mcp.codes import COMPLETE, PROGRESS_TOKEN, PROTOCOL_VERSION
from .mcp.fields import notification_facts, request_facts, result_facts
from .mcp.methods import CANCELLED, METHODS, OPENINGS, PROGRESS, TARGETS
from .message import ERROR, NOTIFICATION, REQUEST, RESULT, Kind, Message, Place
from .model import CaptureInfo

if TYPE_CHECKING:
    from ..usual_lines import FrameLine

if TYPE_CHECKING:  # a member that is absent is None, and one that is `null` does not fit
    _Key: TypeAlias = int | str | None
    _Error: TypeAlias = msgspec.Raw | None
else:
    _Key = Annotated[int, msgspec.Meta(gt=0)] | str  # no fraction, and not 0, which may have been spelled -0
    _Error = msgspec.Raw

_Nothing: TypeAlias = Literal[""]
"""The type of a member that a result without anything odd does not have."""


class _MetaMembers(msgspec.Struct, gc=False):
    token: _Key = msgspec.field(name=PROGRESS_TOKEN, default=None)
    revision: str | None = msgspec.field(name=PROTOCOL_VERSION, default=None)


class _ParamsMembers(msgspec.Struct, gc=False):
    name: str | None = None
    uri: str | None = None
    level: str | None = None
    meta: _MetaMembers | None = msgspec.field(name="_meta", default=None)
    token: _Key = msgspec.field(name="progressToken", default=None)
    request: _Key = msgspec.field(name="requestId", default=None)


class _ResultMembers(msgspec.Struct, gc=False):
    is_error: bool = msgspec.field(name="isError", default=False)
    type: Literal["complete"] = msgspec.field(name="resultType", default=COMPLETE)
    task: _Nothing = ""
    is_complete: _Nothing = msgspec.field(name="isComplete", default="")


if TYPE_CHECKING:
    _Result: TypeAlias = _ResultMembers | None
else:
    _Result = _ResultMembers


class _MessageMembers(msgspec.Struct, gc=False):
    jsonrpc: Literal["2.0"]
    id: _Key = None
    method: str | None = None
    params: _ParamsMembers | None = None
    result: _Result = None
    error: _Error = None


_decode: Final = msgspec.json.Decoder(_MessageMembers).decode

_STRICT_METHODS: Final = OPENINGS | {"completion/complete"} | {
    method for method, member in TARGETS.items() if member not in ("name", "uri", "level")
}  # fmt: skip
"""Methods that have their target somewhere else."""

_KNOWN: Final[dict[str, tuple[str, str | None]]] = {
    **{row.name: (intern(row.name), TARGETS.get(row.name, "")) for row in METHODS},
    **dict.fromkeys(_STRICT_METHODS, ("", None)),
}
"""The one string that all messages of a method share, and the member of params with the target; None for the strict reader's."""

_KINDS: Final = {kind.value: kind for kind in Kind}


def messages(info: CaptureInfo, sender: Side, frame: Frame, payload: bytes) -> list[Message]:
    """Return the messages in the payload of a frame, on the transcript's clock: one, or one per member of a batch."""
    message = typed_message(info, sender, frame, payload)
    return [message_of(info, sender, frame, piece) for piece in cut(payload)] if message is None else [message]


def typed_message(
    info: CaptureInfo, sender: Side, frame: Frame | FrameLine, payload: bytes | str, place: Place | None = None
) -> Message | None:
    """Do the same for a message without anything odd; None for what the strict reader has to read. `place` is where it is."""
    try:
        members = _decode(payload)
        key, params = members.id, members.params
        id = None if key is None else f"{key}" if isinstance(key, int) else _key_of(key)
        method, result, error = members.method, members.result, members.error
        target = token = revision = None
        if method is None:
            if id is None or (result is None) is (error is None):
                return None
            kind = ERROR if result is None else RESULT
        else:
            method, about = _KNOWN.get(method) or (intern(method), "")
            if about is None or result is not None or error is not None:
                return None
            kind = NOTIFICATION if id is None else REQUEST
            if params is not None:
                if params.meta is not None:
                    token, revision = _named(params.meta)
                if id is None:
                    token = _correlation_key(method, params)
                if about:
                    target = params.name if about == "name" else params.uri if about == "uri" else params.level
                    target = None if target is None else intern(target)
        if isinstance(payload, str):
            payload = payload.encode()
        elif not payload.isascii() and not is_utf8(payload):
            return None
    except UNREADABLE:
        return None
    shift_ns, at_ns, first_ns = info.shift_ns, frame.at_ns, frame.first_ns
    first_ns = at_ns if first_ns is None else first_ns
    if shift_ns:
        at_ns, first_ns = at_ns + shift_ns, first_ns + shift_ns
    return Message(
        info.index, frame.number, frame.stream, sender, at_ns, first_ns, kind, payload, id, method, target,
        (), "", b"", result is not None and result.is_error, token, 0, None, revision, place,
    )  # fmt: skip


def message_of(info: CaptureInfo, sender: Side, frame: Frame, piece: Piece) -> Message:
    """Return the message for `piece` of `frame`, on the transcript's clock."""
    shift_ns = info.shift_ns
    at_ns = frame.at_ns + shift_ns if shift_ns else frame.at_ns
    first_ns = at_ns if frame.first_ns == frame.at_ns else frame.first_ns + shift_ns
    kind = _KINDS[piece.kind]
    method = piece.method
    target = token = revision = result_type = None
    is_error = False
    if kind is Kind.REQUEST:
        target, token, revision = request_facts(method or "", piece.content)
    elif kind is Kind.RESULT:
        is_error, result_type = result_facts(piece.content)
    elif kind is Kind.NOTIFICATION:
        target, token, revision = notification_facts(method or "", piece.content)
    return Message(
        info.index,
        frame.number,
        frame.stream,
        sender,
        at_ns,
        first_ns,
        kind,
        piece.raw,
        piece.id,
        method,
        target,
        piece.flaws,
        piece.reason,
        piece.batch,
        is_error,
        token,
        0 if frame.data else frame.length,
        result_type,
        revision,
    )


def _named(meta: _MetaMembers) -> tuple[str | None, str | None]:
    """Return the progress token and the revision that a message names. Raises: ValueError: if the token is odd."""
    token, revision = meta.token, meta.revision
    return (
        None if token is None else f"{token}" if isinstance(token, int) else _key_of(token),
        intern(revision) if revision else None,
    )


def _correlation_key(method: str, params: _ParamsMembers) -> str | None:
    """Return the correlation key of a notification. Raises: ValueError: if it is odd."""
    key = params.token if method == PROGRESS else params.request if method == CANCELLED else None
    return None if key is None else f"{key}" if isinstance(key, int) else _key_of(key)


def _key_of(text: str) -> str:
    """Return what `json_spans.id_key` returns for the spelling of a string. Raises: ValueError: if that is not known."""
    if not text.isprintable() or '"' in text or "\\" in text:
        raise ValueError(text)
    return f'"{text}"'

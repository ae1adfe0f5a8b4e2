"""The usual messages of MCP on stdio, decoded and paired in one loop with only those members that a transcript needs.

Whatever is not usual is left to `decoder`, `wire.jsonrpc` and `correlator`, which do all that this module does: flaws, batches, ids
that need a second look, params of another shape, ids that are in use. To understand mcpspy, skip this module; a test compares what
both return. The loop calls few functions, because calls would take most of the time of a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from sys import intern
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import msgspec

from ..records import OTHER_SIDE, Side
from ..usual_lines import FrameLine
from ..wire.json_spans import UNREADABLE
from .correlator import Correlator, SideRequests, appended
from .exchange import Exchange, UnpairedMessage
from .mcp.codes import COMPLETE, PROGRESS_TOKEN, PROTOCOL_VERSION
from .mcp.methods import CANCELLED, METHODS, OPENINGS, PROGRESS, TARGETS
from .message import ERROR, NOTIFICATION, REQUEST, RESULT, Message, UsualMessage
from .model import CaptureInfo, Row

if TYPE_CHECKING:
    from .calls.join import CallJoiner

if TYPE_CHECKING:  # a member that is absent is None, and one that is `null` is not usual
    _Key: TypeAlias = int | str | None
    _Error: TypeAlias = msgspec.Raw | None
else:
    _Key = Annotated[int, msgspec.Meta(gt=0)] | str  # no fraction, and not 0, which may have been spelled -0
    _Error = msgspec.Raw

_Nothing: TypeAlias = Literal[""]
"""The type of a member that a usual result does not have."""


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

_NOT_USUAL: Final = (KeyError, *UNREADABLE)
"""Errors that a line raises if it is not usual: of a stream without a sender, or in its members."""

_LEFT_METHODS: Final = OPENINGS | {"completion/complete"} | {
    method for method, member in TARGETS.items() if member not in ("name", "uri", "level")
}  # fmt: skip
"""Methods that are left to others: they open a session, or have their target somewhere else."""

_Known: TypeAlias = tuple[str, str | None]
"""The one string that all messages of a method share, and the member of params with the target; None if it is left to others."""

_KNOWN: Final[dict[str, _Known]] = {
    **{row.name: (intern(row.name), TARGETS.get(row.name, "")) for row in METHODS},
    **dict.fromkeys(_LEFT_METHODS, ("", None)),
}

_LEFT: Final[_Known] = ("", None)
_NEITHER: Final = (None, None)
_END: Final = slice(-2, None)


class UsualPairing:
    """The usual messages of a capture of stdio: lines in, rows out."""

    __slots__ = ("_calls", "_capture", "_correlator", "_join", "_known", "_next_row", "knows_client")

    def __init__(
        self, info: CaptureInfo, correlator: Correlator, joiner: CallJoiner | None, next_row: Callable[[], int]
    ) -> None:
        self._capture = info.index
        self._calls = info.calls
        self._correlator = correlator
        self._next_row = next_row
        self._join: Callable[[Exchange | UnpairedMessage, Message], object] = _leave if joiner is None else joiner.feed
        self.knows_client = False
        """True once the client's name is known. Until then, requests that may tell it are left to others."""
        self._known = _KNOWN if joiner is None else {**_KNOWN, **dict.fromkeys(joiner.methods, _LEFT)}

    def take(self, lines: Iterable[FrameLine], senders: Mapping[int, Side], rows: list[Row]) -> FrameLine | None:
        """Take the messages on lines from these senders. Return the first line that is left to others; None if none is."""
        capture, calls, known, next_row, end = self._capture, self._calls, self._known, self._next_row, _END
        sides, is_plain, negotiation = self._sides(senders), self._correlator.is_plain, self._correlator.negotiation
        for line in lines:
            text = line.text
            try:
                sender, own, asked = sides[line.stream]
                members = _decode(text)
                key, params = members.id, members.params
                id = f"{key}" if isinstance(key, int) else None if key is None else _key_of(key)
                token, revision = _NEITHER if params is None or params.meta is None else _named(params.meta)
            except _NOT_USUAL:
                return line
            if line.part or text[end] != "}\n":
                return line
            first_ns = line.at_ns if line.first_ns is None else line.first_ns
            method, result = members.method, members.result
            if members.error is not None or not is_plain:
                pass  # `_pair` takes it
            elif id is None:
                if method == PROGRESS and self._is_progress_taken(line, members, first_ns, sender, asked, revision):
                    continue
            elif method is None:
                exchange = asked.waiting.get(id)
                if result is not None and exchange is not None and (request := exchange.request).method not in OPENINGS:
                    exchange.response = message = UsualMessage(
                        capture, line.number, line.stream, sender, line.at_ns, first_ns, RESULT, text.encode(), request.id, None,
                        None, (), "", b"", result.is_error, None, 0, None, request.revision,
                    )  # fmt: skip
                    exchange.over = True
                    del asked.waiting[id]
                    asked.answered[request.id or ""] = exchange  # an equal string: one less to keep
                    if calls:
                        self._join(exchange, message)
                    continue
            elif result is None and id not in own.waiting:
                method, about = known.get(method) or (intern(method), "")
                if about is None or (not self.knows_client and "clientInfo" in text):
                    return line
                message = UsualMessage(
                    capture, line.number, line.stream, sender, line.at_ns, first_ns, REQUEST, text.encode(), id, method,
                    _target(params, about) if about and params is not None else None,
                    (), "", b"", False, token, 0, None, revision or negotiation.revision,
                )  # fmt: skip
                own.waiting[id] = exchange = Exchange(next_row(), message)
                rows.append(exchange)
                if revision is not None:
                    negotiation.last_named = revision
                if token is not None:
                    own.give_out(token, exchange)
                if calls:
                    self._join(exchange, message)
                continue
            other = self._message(line, members, first_ns, id, sender, token, revision)
            if other is None:
                return line
            self._pair(other, rows)
            is_plain = self._correlator.is_plain
        return None

    def _sides(self, senders: Mapping[int, Side]) -> dict[int, tuple[Side, SideRequests, SideRequests]]:
        """Return by stream its sender, the requests of that side, and those of the other one."""
        requests = self._correlator.requests
        return {stream: (sender, requests[sender], requests[OTHER_SIDE[sender]]) for stream, sender in senders.items()}

    def _is_progress_taken(
        self, line: FrameLine, members: _MessageMembers, first_ns: int, sender: Side, asked: SideRequests, revision: str | None
    ) -> bool:
        """Add progress to the request that waits for its answer. Return False if it is not certain which one that is."""
        key = None if members.params is None else members.params.token
        exchange = asked.by_token.get(f"{key}") if isinstance(key, int) else None
        if exchange is None or exchange.over or asked.sharing or members.result is not None:
            return False
        message = UsualMessage(
            self._capture, line.number, line.stream, sender, line.at_ns, first_ns, NOTIFICATION, line.text.encode(), None, PROGRESS,
            None, (), "", b"", False, f"{key}", 0, None, revision or exchange.request.revision,
        )  # fmt: skip
        exchange.notifications = appended(exchange.notifications, message)
        if self._calls:
            self._join(exchange, message)
        return True

    def _message(
        self, line: FrameLine, members: _MessageMembers, first_ns: int, id: str | None, sender: Side, token: str | None,
        revision: str | None,
    ) -> Message | None:  # fmt: skip
        """Return a message of any kind; None if it is not usual."""
        method, params, result, target = members.method, members.params, members.result, None
        if method is None:
            if id is None or (result is None) is (members.error is None):
                return None
            kind, is_error = (ERROR, False) if result is None else (RESULT, result.is_error)
            token = revision = None
        else:
            kind, is_error = NOTIFICATION if id is None else REQUEST, False
            method, about = self._known.get(method) or (intern(method), "")
            if about is None or result is not None or members.error is not None:
                return None
            if kind is NOTIFICATION:
                try:
                    token = None if params is None else _correlation_key(method, params)
                except ValueError:
                    return None
            elif not self.knows_client and "clientInfo" in line.text:
                return None
            target = _target(params, about) if about and params is not None else None
        of_kind = Message if kind is ERROR else UsualMessage
        return of_kind(
            self._capture, line.number, line.stream, sender, line.at_ns, first_ns, kind, line.text.encode(), id, method, target,
            (), "", b"", is_error, token, 0, None, revision,
        )  # fmt: skip

    def _pair(self, message: Message, rows: list[Row]) -> None:
        """Pair a message in the way of all messages that are not usual."""
        row = self._correlator.feed(message)
        if isinstance(row, UnpairedMessage) or row.request is message:
            rows.append(row)
        if self._calls or message.kind is ERROR:
            self._join(row, message)


def _target(params: _ParamsMembers, about: str) -> str | None:
    """Return the target of a message, which is the member `about` of its params."""
    target = params.name if about == "name" else params.uri if about == "uri" else params.level
    return None if target is None else intern(target)


def _named(meta: _MetaMembers) -> tuple[str | None, str | None]:
    """Return the progress token and the revision that a message names. Raises: ValueError: if the token is not usual."""
    token, revision = meta.token, meta.revision
    return (
        None if token is None else f"{token}" if isinstance(token, int) else _key_of(token),
        intern(revision) if revision else None,
    )


def _correlation_key(method: str, params: _ParamsMembers) -> str | None:
    """Return the correlation key of a notification. Raises: ValueError: if it is not usual."""
    key = params.token if method == PROGRESS else params.request if method == CANCELLED else None
    return None if key is None else f"{key}" if isinstance(key, int) else _key_of(key)


def _key_of(text: str) -> str:
    """Return what `json_spans.id_key` returns for the spelling of a string. Raises: ValueError: if that is not known."""
    if not text.isprintable() or '"' in text or "\\" in text:
        raise ValueError(text)
    return f'"{text}"'


def _leave(row: Exchange | UnpairedMessage, message: Message) -> None:
    """Join no calls."""

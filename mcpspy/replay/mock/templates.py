"""Template of a recorded line: its bytes, with placeholders for the ids and tokens that belong to a session, and live ids for these.

Live values fill the placeholders; every other byte goes out as it was recorded. Source: MCP specification, basic/utilities
(progress, cancellation, tasks), basic/patterns/subscriptions (2026-07-28).

Servers generate ids: of tasks, `requestState`, cursors, elicitation ids. When a call is played for the first time, they are
the recorded ones. When it is played again, or when the capture has only a pseudonym, they are new, so that two live calls
never share one. All requests with ids of one call form a call context. Knows one live client only.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

from ...transcript.correlator import spellings
from ...transcript.mcp.codes import SUBSCRIPTION_ID
from ...transcript.mcp.methods import CANCELLED, LISTEN, PROGRESS
from ...transcript.model import Exchange, Kind, Message
from ...wire.json_spans import id_key, span_at
from ..json_values import is_redacted
from .matching import MatchCursor


class PlaceholderKind(Enum):
    """The live value that fills a placeholder."""

    REQUEST_ID = auto()
    """The id of the request that is answered."""
    PROGRESS_TOKEN = auto()
    """The progress token of the request that the message is about."""
    OWN_ID = auto()
    """A new id for a request of the server."""
    SERVER_REQUEST_ID = auto()
    """The live id of a request of the server, whose recorded id is `recorded`."""
    SUBSCRIPTION_ID = auto()
    """The live id of a subscription, whose recorded id is `recorded`."""
    GENERATED_ID = auto()
    """The live id in place of the one that the server generated, `recorded`."""
    CLIENT_TASK_ID = auto()
    """The live id of a task that the client runs for the server, whose recorded id is `recorded`."""
    TASK_TIME = auto()
    """A time of the task whose recorded id is `recorded`."""


class Placeholder:
    """A place for a live value. `recorded` is the recorded id that decides which; `recorded_bytes` are the bytes at the place.

    `requested` is the id key that the recorded client gave, where a live one goes.
    """

    __slots__ = ("kind", "recorded", "recorded_bytes", "requested")

    def __init__(self, *, kind: PlaceholderKind, recorded: str = "") -> None:
        self.kind = kind
        self.recorded = recorded
        self.recorded_bytes = b""
        self.requested: str | None = None


TemplatePart = bytes | Placeholder

_Placed: TypeAlias = "tuple[Sequence[str | int], Placeholder]"
"""A JSON path, and the placeholder that goes there."""

_ID_MEMBERS: Final = (b'"taskId', b'"requestState"', b'"cursor"', b'"nextCursor"', b'"elicitationId"')
"""A message without one of these holds no id that a server generates."""

_TIMES: Final = ("createdAt", "lastUpdatedAt")

_PATHS: Final = {
    "id": ("id",),
    "progress": ("params", "progressToken"),
    "cancelled": ("params", "requestId"),
    "subscription": ("params", "_meta", SUBSCRIPTION_ID),
    "subscription result": ("result", "_meta", SUBSCRIPTION_ID),
}


def line_template(message: Message, exchange: Exchange | None, *, listeners: Container[str] = ()) -> list[TemplatePart]:
    """Cut a message of the server into parts, with every byte as recorded: a framing of lines makes one line of it.

    `exchange` is the one that it belongs to, if any; `listeners` are the recorded ids of subscriptions (2026-07-28). Live ids are
    spelled as the server spelled the recorded ones.
    """
    data = message.raw
    placeholders: list[tuple[int, int, Placeholder]] = []
    for path, placeholder in _placeholders(message, exchange, listeners):
        span = span_at(data, path)
        if span is not None:
            placeholder.recorded_bytes = data[span[0] : span[1]]
            placeholder.requested = _requested(placeholder.kind, exchange)
            placeholders.append((*span, placeholder))
    parts: list[TemplatePart] = []
    at = 0
    for start, end, placeholder in sorted(placeholders, key=lambda placed: placed[0]):
        parts += [data[at:start], placeholder]
        at = end
    return [*parts, data[at:]]


def spelled(live: str, placeholder: Placeholder) -> str:
    """Spell a live id key as the recorded server spelled the recorded one: for 2 perhaps "2", 2.0 or 2e0."""
    recorded, requested = placeholder.recorded_bytes, placeholder.requested
    key = id_key(recorded)
    if requested is None or key == requested:
        return live
    if live == requested or (key not in spellings(requested) and requested not in spellings(key)):
        return recorded.decode("utf-8", "replace")  # of that request, or another id, or null: nobody asked with it
    text = live[1:-1] if live[:1] == '"' else live
    if not spellings(live):
        return live
    if b"." in recorded and "." not in text:
        text += ".0"
    elif b"." not in recorded and text.endswith(".0"):
        text = text[:-2]
    if b"e" in recorded.lower() and "e" not in text.lower():
        text += "e0"
    return f'"{text}"' if recorded[:1] == b'"' else text


def _requested(kind: PlaceholderKind, exchange: Exchange | None) -> str | None:
    if exchange is None:
        return None
    if kind is PlaceholderKind.REQUEST_ID:
        return exchange.request.id
    return exchange.request.correlation_key if kind is PlaceholderKind.PROGRESS_TOKEN else None


def _placeholders(message: Message, exchange: Exchange | None, listeners: Container[str]) -> list[_Placed]:
    placed: list[_Placed]
    match message.kind:
        case Kind.RESULT | Kind.ERROR if exchange is not None:
            placed = [(_PATHS["id"], Placeholder(kind=PlaceholderKind.REQUEST_ID))]
            if exchange.method == LISTEN:
                placed.append((_PATHS["subscription result"], Placeholder(kind=PlaceholderKind.REQUEST_ID)))
        case Kind.REQUEST:
            placed = [(_PATHS["id"], Placeholder(kind=PlaceholderKind.OWN_ID, recorded=message.id or ""))]
        case Kind.NOTIFICATION:
            placed = _in_notification(message, exchange, listeners)
        case _:
            return []
    if any(name in message.raw for name in _ID_MEMBERS):
        placed += _generated_ids(message, exchange)
    return placed


def _generated_ids(message: Message, exchange: Exchange | None) -> list[_Placed]:
    """Place the ids that the server generated, and the times at which its tasks were created and changed."""
    from ..client.correlate.values import INPUT, TASK_ID, issued_values  # which few captures need

    method = (message.method if exchange is None else exchange.method) or ""
    is_clients_task = message.kind is Kind.REQUEST and method.startswith("tasks/")
    kind = PlaceholderKind.CLIENT_TASK_ID if is_clients_task else PlaceholderKind.GENERATED_ID
    placed: list[_Placed] = []
    for generated, steps, is_name in issued_values(message, method, message.body):
        if is_name or generated.what == INPUT:
            continue
        placed.append((steps, Placeholder(kind=kind, recorded=generated.value)))
        if generated.what == TASK_ID:
            time = PlaceholderKind.TASK_TIME
            placed += [((*steps[:-1], name), Placeholder(kind=time, recorded=generated.value)) for name in _TIMES]
    return placed


def _in_notification(message: Message, exchange: Exchange | None, listeners: Container[str]) -> list[_Placed]:
    placed: list[_Placed] = []
    if message.method == PROGRESS:  # progress of an unknown request belongs to none now
        kind = PlaceholderKind.SERVER_REQUEST_ID if exchange is None else PlaceholderKind.PROGRESS_TOKEN
        placed.append((_PATHS["progress"], Placeholder(kind=kind)))
    if message.method == CANCELLED and message.correlation_key is not None:
        is_subscription = message.correlation_key in listeners
        kind = PlaceholderKind.SUBSCRIPTION_ID if is_subscription else PlaceholderKind.SERVER_REQUEST_ID
        placed.append((_PATHS["cancelled"], Placeholder(kind=kind, recorded=message.correlation_key)))
    if SUBSCRIPTION_ID.encode() in message.raw:
        span = span_at(message.raw, _PATHS["subscription"])
        if span is not None:
            id_key = message.raw[span[0] : span[1]].decode("utf-8", "replace")
            placed.append((_PATHS["subscription"], Placeholder(kind=PlaceholderKind.SUBSCRIPTION_ID, recorded=id_key)))
    return placed


class CallContext:
    """The requests that are connected by generated ids. The first context holds everything that is played for the first time.

    `number` is 0 for the first; `played` are the rows whose replies it has played, `ids` the live ids by the recorded ones.
    """

    __slots__ = ("finder", "ids", "number", "played")

    def __init__(self, finder: MatchCursor, number: int = 0) -> None:
        self.finder = finder
        self.number = number
        self.played: set[int] = set()
        self.ids: dict[str, str] = {}


class GeneratedId(NamedTuple):
    """The origin of a live id: its call context, the recorded id, and how much later it was given than that."""

    call_context: CallContext
    recorded: str
    later_ns: int


class GeneratedIds:
    """The ids that were given to one live client."""

    __slots__ = ("_latest", "_origins", "first")

    def __init__(self, finder: MatchCursor) -> None:
        self.first = CallContext(finder)
        self._origins: dict[str, GeneratedId] = {}
        self._latest: dict[str, str] = {}

    def call_context_of(self, request: Message) -> tuple[CallContext, Message]:
        """Find the call context that a request belongs to; return the request with the recorded ids too."""
        if not self._origins or not any(name in request.raw for name in _ID_MEMBERS):
            return self.first, request
        from ..client.correlate.values import INPUT, returned_values

        call_context, edits = self.first, []
        for returned, steps, is_name in returned_values(request, request.body):
            origin = self._origins.get(returned.value)
            if origin is None or is_name or returned.what == INPUT:
                continue
            call_context = origin.call_context
            span = None if origin.recorded == returned.value else span_at(request.raw, steps)
            if span is not None:
                edits.append((span, _as_json(origin.recorded)))
        return call_context, _edited(request, edits, self._origins) if edits else request

    def branch(self, call_context: CallContext, exchange: Exchange) -> CallContext:
        """Return a new call context for an exchange that this one has played before."""
        return CallContext(call_context.finder.branch(exchange), call_context.number + 1)

    def give(self, recorded: str, call_context: CallContext, later_ns: int) -> str:
        """Return the live id for a recorded one; make it if there is none."""
        live = call_context.ids.get(recorded)
        if live is None:
            live = self._new_id(recorded, call_context)
            call_context.ids[recorded] = self._latest[recorded] = live
            self._origins[live] = GeneratedId(call_context, recorded, later_ns)
        return live

    def find(self, recorded: str, call_context: CallContext) -> str | None:
        """Return the live id if there is one: that of the call context, else the latest."""
        return call_context.ids.get(recorded) or self._latest.get(recorded)

    def later_ns(self, live: str) -> int:
        """Return how much later a live id was given than the recorded one."""
        origin = self._origins.get(live)
        return 0 if origin is None else origin.later_ns

    def _new_id(self, recorded: str, call_context: CallContext) -> str:
        stem = "mock" if is_redacted(recorded) else recorded
        if stem == recorded and call_context is self.first and recorded not in self._origins:
            return recorded
        number = call_context.number + 1
        while (live := f"{stem}-{number}") in self._origins:
            number += 1
        return live


def text_at(raw: bytes, path: tuple[str, ...]) -> str | None:
    """Read the text at a JSON path of a message; None if there is none."""
    span = span_at(raw, path)
    try:
        value = None if span is None else json.loads(raw[span[0] : span[1]])
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _edited(request: Message, edits: list[tuple[tuple[int, int], bytes]], origins: dict[str, GeneratedId]) -> Message:
    from copy import copy

    raw = request.raw
    for (start, end), value in sorted(edits, reverse=True):
        raw = raw[:start] + value + raw[end:]
    edited = copy(request)
    edited.raw = raw
    if request.target in origins:
        edited.target = origins[request.target].recorded
    return edited


def _as_json(id: str) -> bytes:
    return json.dumps(id).encode()


def id_as_json(live: str, recorded: bytes) -> bytes:
    """Spell a live id as JSON: with the recorded bytes, if they are this id."""
    try:
        if json.loads(recorded) == live:
            return recorded
    except ValueError:
        pass
    return _as_json(live)


def shifted_time(recorded: bytes, later_ns: int) -> bytes:
    """Move a time (ISO 8601, in quotes) by so much, in its own spelling; leave what is no time."""
    import re
    from datetime import datetime, timedelta

    text = recorded.decode("latin-1")
    match = re.fullmatch(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)"', text) if later_ns else None
    if match is None:
        return recorded

    digits = (match[2] or ".")[1:]
    try:
        seconds = datetime.fromisoformat(match[1])
        total_ns = int(digits.ljust(9, "0")) + later_ns
        seconds += timedelta(seconds=total_ns // 10**9)
    except (ValueError, OverflowError):
        return recorded
    fraction = f".{total_ns % 10**9:09}"[: len(digits) + 1] if digits else ""
    return f'"{seconds.isoformat()}{fraction}{match[3]}"'.encode()

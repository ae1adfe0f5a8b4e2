"""What a recorded server said, as a line with blanks: the recorded bytes, but for ids and tokens, which belong to a session.

A blank is filled with the live value; every other byte goes out as it came, never written anew. Source of what names what: MCP
specification, basic/utilities (progress, cancellation, tasks), basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, TypeAlias

from ...transcript.mcp.codes import SUBSCRIPTION_ID
from ...transcript.mcp.methods import CANCELLED, LISTEN, PROGRESS
from ...transcript.model import Exchange, Kind, Message
from ...wire.json_spans import span_at
from ...wire.lines import one_line

if TYPE_CHECKING:
    from collections.abc import Container, Sequence


class PlaceholderKind(Enum):
    """Which live value a blank wants."""

    ID = auto()
    """The id of the request that is answered."""
    TOKEN = auto()
    """The progress token of the request that is told about."""
    OWN_ID = auto()
    """An id for a request of the server's."""
    ASKED = auto()
    """The id that a request of the server's got, of which `token` is the recorded one."""
    LISTENS = auto()
    """The id of the subscription of which `token` is the recorded one."""
    NAME = auto()
    """The live name of what the server gave out as `token`."""
    TASK = auto()
    """The live id of the task that the client runs for the server, and had given out as `token`."""
    TIME = auto()
    """The time, `recorded` being that of the task which the server gave out as `token`."""


class Placeholder:
    """Where a live value goes; `token` is the recorded one, `recorded` its bytes."""

    __slots__ = ("recorded", "token", "wants")

    def __init__(self, *, wants: PlaceholderKind, token: str = "") -> None:
        self.wants = wants
        self.token = token
        self.recorded = b""


TemplatePart = bytes | Placeholder

_Placed: TypeAlias = "tuple[Sequence[str | int], Placeholder]"

ID_MEMBERS: Final = (b'"taskId', b'"requestState"', b'"cursor"', b'"nextCursor"', b'"elicitationId"')
"""A message without these words names nothing that a server gives out to be named by later."""

_TIMES: Final = ("createdAt", "lastUpdatedAt")

_PATHS: Final = {
    "id": ("id",),
    "progress": ("params", "progressToken"),
    "cancelled": ("params", "requestId"),
    "subscription": ("params", "_meta", SUBSCRIPTION_ID),
    "subscription result": ("result", "_meta", SUBSCRIPTION_ID),
}


def line_template(message: Message, exchange: Exchange | None, *, listeners: Container[str] = ()) -> list[TemplatePart]:
    """The parts of the line that says `message` of the server's, with its end.

    `exchange` is the one that it belongs to, if any; `listeners` are the recorded ids of subscriptions (2026-07-28).
    """
    data = one_line(message.raw)
    blanks: list[tuple[int, int, Placeholder]] = []
    for path, blank in _blanks(message, exchange, listeners):
        found = span_at(data, path)
        if found is not None:
            blank.recorded = data[found[0] : found[1]]
            blanks.append((*found, blank))
    parts: list[TemplatePart] = []
    at = 0
    for start, end, blank in sorted(blanks, key=lambda one: one[0]):
        parts += [data[at:start], blank]
        at = end
    return [*parts, data[at:]]


def _blanks(message: Message, exchange: Exchange | None, listeners: Container[str]) -> list[_Placed]:
    found: list[_Placed]
    match message.kind:
        case Kind.RESULT | Kind.ERROR if exchange is not None:
            found = [(_PATHS["id"], Placeholder(wants=PlaceholderKind.ID))]
            if exchange.method == LISTEN:
                found.append((_PATHS["subscription result"], Placeholder(wants=PlaceholderKind.ID)))
        case Kind.REQUEST:
            found = [(_PATHS["id"], Placeholder(wants=PlaceholderKind.OWN_ID, token=message.id or ""))]
        case Kind.NOTIFICATION:
            found = _of_notification(message, exchange, listeners)
        case _:
            return []
    if any(word in message.raw for word in ID_MEMBERS):
        found += _names(message, exchange)
    return found


def _names(message: Message, exchange: Exchange | None) -> list[_Placed]:
    """What the server gave out to be named by later, and when a task of its was made and changed."""
    from ..client.correlate.values import INPUT, TASK_ID, issued_values  # which few recordings want

    method = (message.method if exchange is None else exchange.method) or ""
    wants = PlaceholderKind.TASK if message.kind is Kind.REQUEST and method.startswith("tasks/") else PlaceholderKind.NAME
    found: list[_Placed] = []
    for named, steps, is_member in issued_values(message, method, message.body):
        if is_member or named.what == INPUT:
            continue
        found.append((steps, Placeholder(wants=wants, token=named.value)))
        if named.what == TASK_ID:
            found += [((*steps[:-1], name), Placeholder(wants=PlaceholderKind.TIME, token=named.value)) for name in _TIMES]
    return found


def _of_notification(message: Message, exchange: Exchange | None, listeners: Container[str]) -> list[_Placed]:
    found: list[_Placed] = []
    if message.method == PROGRESS:  # of which nobody knows whose it is, that is nobody's now
        wants = PlaceholderKind.ASKED if exchange is None else PlaceholderKind.TOKEN
        found.append((_PATHS["progress"], Placeholder(wants=wants)))
    if message.method == CANCELLED and message.correlation_key is not None:
        wants = PlaceholderKind.LISTENS if message.correlation_key in listeners else PlaceholderKind.ASKED
        found.append((_PATHS["cancelled"], Placeholder(wants=wants, token=message.correlation_key)))
    if SUBSCRIPTION_ID.encode() in message.raw:
        named = span_at(message.raw, _PATHS["subscription"])
        if named is not None:
            token = message.raw[named[0] : named[1]].decode("utf-8", "replace")
            found.append((_PATHS["subscription"], Placeholder(wants=PlaceholderKind.LISTENS, token=token)))
    return found

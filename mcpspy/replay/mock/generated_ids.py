"""Generated ids: the live ids for those that a recorded server generated, as task ids, `requestState`, cursors, elicitation ids.

When a call is played for the first time, they are the recorded ones. When it is played again, or when the capture has only a
pseudonym, they are new, so that two live calls never share one. All requests with ids of one call form a call context. Knows one
live client only.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from ...transcript.model import Exchange, Message
from ...wire.json_spans import span_at
from ..json.redacted import is_redacted
from .matching import MatchCursor
from .templates import ID_MEMBERS


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
        if not self._origins or not any(name in request.raw for name in ID_MEMBERS):
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

"""Live names for what a recorded server gave out to be named by later: task ids, `requestState`, cursors, elicitation ids.

Where a call is played for the first time, they are the recorded ones; where it is played again, and where the recording has only a
pseudonym, they are made up anew, so that two live calls never share one. All that is asked under such a name goes on with its call:
a call context. Refuses to know what was given to other live clients.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...wire.json_spans import span_at
from ..json.redacted import is_redacted
from .templates import ID_MEMBERS

if TYPE_CHECKING:
    from ...transcript.model import Exchange, Message
    from .miss import Miss
    from .owner import Owner


class ExchangeFinder(Protocol):
    """Finds for what one client asks the recorded exchange that is to be played, as a walk of a matcher does."""

    @property
    def owner(self) -> Owner | None:
        """The recorded client on whose way it is."""

    def match(self, request: Message) -> Exchange | Miss:
        """The exchange, which counts as given then; or why there is none."""

    def branch(self, exchange: Exchange) -> ExchangeFinder:
        """Another that stands behind this exchange, and to which nothing was given yet."""


class CallContext:
    """What hangs together by names that the server gave out; the first call context is all that was played for the first time.

    `number` is 0 for the first; `played` are the rows whose scenes it has played, `names` the live names by the recorded ones.
    """

    __slots__ = ("finder", "names", "number", "played")

    def __init__(self, finder: ExchangeFinder, number: int = 0) -> None:
        self.finder = finder
        self.number = number
        self.played: set[int] = set()
        self.names: dict[str, str] = {}


class GeneratedId(NamedTuple):
    """What a live name stands for: the recorded one, within a call context; and by how much later it was given than that."""

    call_context: CallContext
    recorded: str
    later_ns: int


class GeneratedIds:
    """The names that were given to one live client."""

    __slots__ = ("_given", "_latest", "first")

    def __init__(self, finder: ExchangeFinder) -> None:
        self.first = CallContext(finder)
        self._given: dict[str, GeneratedId] = {}
        self._latest: dict[str, str] = {}

    def call_context_of(self, request: Message) -> tuple[CallContext, Message]:
        """Which call context a request goes on with, and the request as it would have been in the recording."""
        if not self._given or not any(word in request.raw for word in ID_MEMBERS):
            return self.first, request
        from ..client.correlate.values import INPUT, returned_values

        call_context, edits = self.first, []
        for named, steps, is_member in returned_values(request, request.body):
            given = self._given.get(named.value)
            if given is None or is_member or named.what == INPUT:
                continue
            call_context = given.call_context
            at = None if given.recorded == named.value else span_at(request.raw, steps)
            if at is not None:
                edits.append((at, _spelled(given.recorded)))
        return call_context, _edited(request, edits, self._given) if edits else request

    def again(self, call_context: CallContext, exchange: Exchange) -> CallContext:
        """A new call context for an exchange that was played on this one before."""
        return CallContext(call_context.finder.branch(exchange), call_context.number + 1)

    def give(self, recorded: str, call_context: CallContext, later_ns: int) -> str:
        """The live name that is given out for a recorded one."""
        live = call_context.names.get(recorded)
        if live is None:
            live = self._fresh(recorded, call_context)
            call_context.names[recorded] = self._latest[recorded] = live
            self._given[live] = GeneratedId(call_context, recorded, later_ns)
        return live

    def known(self, recorded: str, call_context: CallContext) -> str | None:
        """The live name, if one was given out; within the call context, else the latest."""
        return call_context.names.get(recorded) or self._latest.get(recorded)

    def later_ns(self, live: str) -> int:
        """By how much later a name was given out than the recorded one."""
        given = self._given.get(live)
        return 0 if given is None else given.later_ns

    def _fresh(self, recorded: str, call_context: CallContext) -> str:
        stem = "mock" if is_redacted(recorded) else recorded
        if stem == recorded and call_context is self.first and recorded not in self._given:
            return recorded
        number = call_context.number + 1
        while (live := f"{stem}-{number}") in self._given:
            number += 1
        return live


def text_at(raw: bytes, path: tuple[str, ...]) -> str | None:
    """The text at a place of a message; None where there is none."""
    at = span_at(raw, path)
    try:
        value = None if at is None else json.loads(raw[at[0] : at[1]])
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _edited(request: Message, edits: list[tuple[tuple[int, int], bytes]], given: dict[str, GeneratedId]) -> Message:
    from copy import copy

    raw = request.raw
    for (start, end), value in sorted(edits, reverse=True):
        raw = raw[:start] + value + raw[end:]
    made = copy(request)
    made.raw = raw
    if request.target in given:
        made.target = given[request.target].recorded
    return made


def _spelled(name: str) -> bytes:
    return json.dumps(name).encode()


def id_as_json(live: str, recorded: bytes) -> bytes:
    """A live name as JSON; as it was spelled, where it is the recorded one."""
    try:
        if json.loads(recorded) == live:
            return recorded
    except ValueError:
        pass
    return _spelled(live)


def shifted_time(recorded: bytes, later_ns: int) -> bytes:
    """A time (ISO 8601, in quotes) moved by so much, spelled as it was; what is none stays as it is."""
    import re
    from datetime import datetime, timedelta

    text = recorded.decode("latin-1")
    found = re.fullmatch(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)"', text) if later_ns else None
    if found is None:
        return recorded

    digits = (found[2] or ".")[1:]
    try:
        whole = datetime.fromisoformat(found[1])
        total_ns = int(digits.ljust(9, "0")) + later_ns
        whole += timedelta(seconds=total_ns // 10**9)
    except (ValueError, OverflowError):
        return recorded
    fraction = f".{total_ns % 10**9:09}"[: len(digits) + 1] if digits else ""
    return f'"{whole.isoformat()}{fraction}{found[3]}"'.encode()

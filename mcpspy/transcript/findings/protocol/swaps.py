"""Findings about answers that a server gave to the wrong ones of several calls, all of one tool and all running at the same time.

    tools/call weather {"city":"Rome"}   ── row 3 ──►  Weather in Paris: rain
    tools/call weather {"city":"Paris"}  ── row 4 ──►  Weather in Rome: sun

An argument of the other call alone proves nothing, because texts speak of many things. So each answer has to show the other call's
value, and not its own, at one place: under the argument's name in JSON, or after the same words in a text. And it goes in a circle:
the other answer shows the value of this call, or of a third one, until the last shows that of the first.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT
from ....wire.json_spans import UNREADABLE, members
from ...mcp.blocks import listed, member
from ...model import Exchange, Kind
from ..rule import Hit, Severity, Unchecked, hit_in, protocol_rule
from ..words import call_name, quoted
from ..words import listed as enumerated
from .repeats import arguments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..facts import CaptureFacts

_CALLS: Final = (
    '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"weather","arguments":{"city":"Rome"}}\n'
    '→ tools/call 2 {"name":"weather","arguments":{"city":"Paris"}}\n'
)
_ANSWER: Final = '← result %d {"content":[{"type":"text","text":"Weather in %s: sun"}]}\n'

SWAPPED_ANSWERS: Final = protocol_rule(
    name="swapped-answers",
    title="Answers to the wrong calls",
    severity=Severity.ERROR,
    what="Of several calls that ran at the same time, each got the answer that belongs to another.",
    why="The model takes them for what it asked for, and nothing tells it otherwise.",
    blame="The server: it gave each answer the id of another request, for each shows an argument of that one and not its own.",
    example=_CALLS + _ANSWER % (1, "Paris") + _ANSWER % (2, "Rome"),
    clean=_CALLS + _ANSWER % (2, "Paris") + _ANSWER % (1, "Rome"),
    advice="Keep the id and the arguments of a request in variables of that request alone, not in ones that all requests share.",
)

RULES: Final = (SWAPPED_ANSWERS,)

MAX_OTHERS: Final = 16
"""A call is compared with so many others that run at the same time."""
MAX_CALLS: Final = 5_000
"""So many calls that ran beside others are looked at."""
MAX_BYTES: Final = 64 << 10
"""Larger arguments and answers are not looked at."""
_LIMIT: Final = Unchecked(
    rules=(SWAPPED_ANSWERS.name,), reason=f"only the first {MAX_CALLS:,} calls of a capture that ran beside others are compared"
)

_SHORTEST: Final = 3
"""Shorter values are found everywhere, and fewer words before a value do not make a place."""
_LETTERS_AFTER: Final = 12
_MAX_LEAVES: Final = 500
_MAX_ROWS: Final = 8
_LETTERS: Final = 40

_Place: TypeAlias = tuple[str, ...]
_is_part_of_word = lazy_pattern(r"[\w-]")


class _Running(NamedTuple):
    """A call, its arguments by name, and its answer: values by the names of members, and texts."""

    exchange: Exchange
    arguments: dict[str, str]
    values: dict[str, set[str]]
    texts: list[str]


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find calls whose answers show each other's arguments."""
    beside = _Beside(facts.calls)
    if len(beside.exchanges) > MAX_CALLS:
        facts.limits[_LIMIT] = None
    running = {row: call for row, exchange in beside.exchanges.items() if (call := _running(exchange)) is not None}
    done: set[int] = set()
    edges = {
        row: _edges(call, [running[other] for other in beside.others[row] if other in running]) for row, call in running.items()
    }
    for row in sorted(running):
        for place in edges[row]:
            circle = _circle(row, place, edges)
            if circle and done.isdisjoint(circle):
                done.update(circle)
                yield from _hits([running[other] for other in circle], place)


class _Beside:
    """Calls that ran while others of the same tool did, by their rows, and the rows of those others."""

    def __init__(self, calls: Iterable[Exchange]) -> None:
        self.exchanges: dict[int, Exchange] = {}
        self.others: dict[int, list[int]] = {}
        self._before: list[Exchange] = []
        self._last: Exchange | None = None
        self._busy_until_ns = 0
        for call in calls:
            response = call.response
            if response is None:
                continue
            if call.request.at_ns >= self._busy_until_ns:  # no call runs, as is usual
                if self._before:
                    self._before.clear()
                self._last, self._busy_until_ns = call, response.at_ns
            elif len(self.exchanges) <= MAX_CALLS:
                self._busy_until_ns = max(self._busy_until_ns, response.at_ns)
                self._add(call)

    def _add(self, call: Exchange) -> None:
        """Note a call that began while others ran."""
        before = self._before
        if self._last is not None:
            before.append(self._last)
            self._last = None
        at_ns = call.request.at_ns
        before = [other for other in before[-MAX_OTHERS:] if other.response is not None and other.response.at_ns > at_ns]
        for other in before if _is_answer(call) else ():
            if other.target == call.target and _is_answer(other):
                for exchange, neighbour in ((call, other), (other, call)):
                    self.exchanges[exchange.row] = exchange
                    self.others.setdefault(exchange.row, []).append(neighbour.row)
        before.append(call)
        self._before = before


def _is_answer(call: Exchange) -> bool:
    response = call.response
    return response is not None and response.kind is Kind.RESULT and not response.flaws and call.sender == CLIENT


def _running(exchange: Exchange) -> _Running | None:
    """Read a call; None if it has no arguments that could be told apart, or is too large."""
    response = exchange.response
    assert response is not None
    if max(exchange.request.size, response.size) > MAX_BYTES or exchange.request.unkept_bytes or response.unkept_bytes:
        return None
    try:
        given = json.loads(arguments(exchange.request.raw) or b"{}")
        result = json.loads(bytes(members(response.raw).get("result", b"{}")))
    except UNREADABLE:
        return None
    named = {name: text for name, value in given.items() if (text := _value(value))} if isinstance(given, dict) else {}
    if not named:
        return None
    values: dict[str, set[str]] = {}
    _collect(member(result, "structuredContent"), values)
    texts = [block["text"] for block in listed(result, "content") if isinstance(block.get("text"), str)]
    for written in texts:
        _collect(_json(written), values)
    return _Running(exchange, named, values, texts)


def _value(value: Any) -> str:
    """Return a text or a number as text; empty if it is neither, or so short that it is found everywhere."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    text = str(value).strip()
    return text if len(text) >= _SHORTEST else ""


def _json(text: str) -> Any:
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except UNREADABLE:
        return None


def _collect(value: Any, values: dict[str, set[str]]) -> None:
    """Collect the values of members by their names."""
    waiting = [value]
    for _ in range(_MAX_LEAVES):
        if not waiting:
            return
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item[:_MAX_LEAVES]
        elif isinstance(item, dict):
            for name, inner in item.items():
                if isinstance(inner, dict | list):
                    waiting.append(inner)
                elif text := _value(inner):
                    values.setdefault(name, set()).add(text)


def _edges(call: _Running, others: list[_Running]) -> dict[_Place, int]:
    """Return the rows of the calls whose values this one's answer shows in the place of its own, by that place."""
    edges: dict[_Place, int] = {}
    for name, own in call.arguments.items():
        if own in call.values.get(name, ()) or any(_at(text, own) >= 0 for text in call.texts):
            continue
        for other in others:
            value = other.arguments.get(name, own)
            if value == own or value in call.arguments.values() or own in other.arguments.values():
                continue
            if value in call.values.get(name, ()):
                edges.setdefault((name,), other.exchange.row)
            for text in call.texts:
                if place := _place(text, value):
                    edges.setdefault((name, *place), other.exchange.row)
    return edges


def _at(text: str, value: str) -> int:
    """Return where a text has this value as a word of its own; -1 if it has not."""
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        if not (at and _is_part_of_word.match(text, at - 1)) and not _is_part_of_word.match(text, end):
            return at
        at = text.find(value, at + 1)
    return -1


def _place(text: str, value: str) -> _Place:
    """Return the words before a value, or where there are none those after it; empty if it has no place among words."""
    at = _at(text, value)
    if at < 0:
        return ()
    before, after = text[:at], text[at + len(value) :][:_LETTERS_AFTER]
    if len(before.strip()) >= _SHORTEST:
        return ("before", before)
    return ("after", after) if len(after.strip()) >= _SHORTEST else ()


def _circle(row: int, place: _Place, edges: dict[int, dict[_Place, int]]) -> list[int]:
    """Return the rows on the way from a row back to it, whose answers all show the next one's value at this place."""
    circle = [row]
    while (after := edges.get(circle[-1], {}).get(place)) is not None:
        if after == row:
            return circle
        if after in circle:
            break
        circle.append(after)
    return []


def _hits(calls: list[_Running], place: _Place) -> Iterator[Hit]:
    """Yield a hit for each call of a circle; they are one finding."""
    name, first, second = place[0], calls[0], calls[1]
    rows = enumerated((str(row) for row in sorted(call.exchange.row for call in calls)), _MAX_ROWS)
    values = [quoted(call.arguments[name], _LETTERS) for call in (first, second)]
    what = (
        f"The answers to {call_name(first.exchange)} in rows {rows} are exchanged: row {first.exchange.row} asked for "
        f"{name[:_LETTERS]} {values[0]}, and its answer shows {values[1]}, which row {second.exchange.row} asked for."
    )
    for call in sorted(calls, key=lambda call: call.exchange.row):
        response = call.exchange.response
        assert response is not None
        yield hit_in(SWAPPED_ANSWERS, response, call.exchange.row, what, group=rows)

"""What `mcpspy export share --verify` found in captures that should hold nothing secret: as lines and as JSON.

Takes what was found, of which the secrets are no part; refuses to look at files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..text.escape import one_line, safe_text
from ..text.json_text import SCHEMA, as_json
from ..text.line import Line, fitted
from ..text.units import counted

MAX_PLACES = 3
"""Of what stands in several places so many are told."""

_ANYWAY = "mcpspy export share takes it out"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakLine:
    """One thing that should not be there. `row` is that of the timeline, 0 for none; of itself `shown` and `length` are told."""

    record: int
    row: int
    where: str
    kind: str
    name: str
    shown: str
    length: int
    option: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLeaks:
    """One capture. `more` things are counted only; `unread` bodies could not be looked into."""

    path: str
    leaks: tuple[LeakLine, ...]
    more: int
    unread: int


def report_lines(found: CaptureLeaks, *, width: int | None) -> Iterator[Line]:
    """A line on the capture, and two for each thing: what it is and where, and the option that takes it out."""
    count = len(found.leaks) + found.more
    path = safe_text(found.path)
    if not count:
        yield fitted([("✓ ", "good"), (f"{path}: nothing slipped through", "")], width)
    else:
        yield fitted([("✗ ", "bad"), (f"{path}: {counted(count, 'thing')} to look at", "")], width)
    for same in _alike(found.leaks):
        yield from _lines(same, width)
    if found.more:
        yield [(f"  … {found.more:,} more", "dim")]
    if found.unread:
        unread = f"{counted(found.unread, 'body', 'bodies')} could not be looked into: compressed, or too long"
        yield fitted([("  ", ""), (unread, "warn")], width)


def leaks_json(captures: list[CaptureLeaks]) -> str:
    """The JSON of `mcpspy export share --verify --json`: docs/json.md says what its members mean."""
    return as_json({"schema": SCHEMA, "captures": [_object(one) for one in captures]}) + "\n"


def _alike(leaks: tuple[LeakLine, ...]) -> list[list[LeakLine]]:
    """What is the same by all that is told of it, together."""
    found: dict[tuple[str, str, str, int], list[LeakLine]] = {}
    for one in leaks:
        found.setdefault((one.kind, one.name, one.shown, one.length), []).append(one)
    return list(found.values())


def _lines(same: list[LeakLine], width: int | None) -> Iterator[Line]:
    first = same[0]
    what = f"{first.kind} {first.name}".rstrip()
    shown = f"“{one_line(first.shown)}…”, " if first.shown else ""
    places = ", ".join(_where(one) for one in same[:MAX_PLACES])
    more = f" and {counted(len(same) - MAX_PLACES, 'more place')}" if len(same) > MAX_PLACES else ""
    yield fitted([("  ", ""), (one_line(what), "warn"), (f"  {shown}{counted(first.length, 'byte')}", "strong")], width)
    yield fitted([(f"      {places}{more}", "dim")], width)
    for option in dict.fromkeys(one.option for one in same[:MAX_PLACES]):
        yield fitted([("      ", ""), (one_line(option) or _ANYWAY, "key")], width)


def _where(one: LeakLine) -> str:
    row = f" (row {one.row})" if one.row else ""
    return f"record {one.record}{row} {one_line(one.where)}"


def _object(found: CaptureLeaks) -> dict[str, Any]:
    return {
        "path": found.path,
        "leaks": [
            {
                "record": one.record,
                "row": one.row or None,
                "where": one.where,
                "kind": one.kind,
                "name": one.name or None,
                "shown": one.shown,
                "length": one.length,
                "option": one.option,
            }
            for one in found.leaks
        ],
        "more": found.more,
        "unread": found.unread,
    }

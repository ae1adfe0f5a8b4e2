"""The leaks that `mcpspy export share --verify` found in captures, as lines and as JSON. The secrets themselves are not shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..text.escape import one_line, safe_text
from ..text.json_text import SCHEMA, as_json
from ..text.line import Line, fitted
from ..text.units import counted

MAX_PLACES = 3
"""The most places of one leak that are listed."""

_BY_DEFAULT = "mcpspy export share removes it"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakLine:
    """One leak. `row` is that of the timeline, 0 for none; of the secret only the beginning `shown` and its `length` are known."""

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
    """The leaks of one capture. `more` leaks are only counted; `unread` bodies could not be searched."""

    path: str
    leaks: tuple[LeakLine, ...]
    more: int
    unread: int


def report_lines(leaks: CaptureLeaks, *, width: int | None) -> Iterator[Line]:
    """Yield a line about the capture, and for each leak what it is, where, and the option that removes it."""
    count = len(leaks.leaks) + leaks.more
    path = safe_text(leaks.path)
    if not count:
        yield fitted([("✓ ", "good"), (f"{path}: no leaks found", "")], width)
    else:
        yield fitted([("✗ ", "bad"), (f"{path}: {counted(count, 'possible leak')}", "")], width)
    for same in _alike(leaks.leaks):
        yield from _lines(same, width)
    if leaks.more:
        yield [(f"  … {leaks.more:,} more", "dim")]
    if leaks.unread:
        unread = f"{counted(leaks.unread, 'body', 'bodies')} could not be searched: compressed, or too long"
        yield fitted([("  ", ""), (unread, "warn")], width)


def leaks_json(captures: list[CaptureLeaks]) -> str:
    """Return the JSON of `mcpspy export share --verify --json`. docs/json.md describes its members."""
    return as_json({"schema": SCHEMA, "captures": [_object(capture) for capture in captures]}) + "\n"


def _alike(leaks: tuple[LeakLine, ...]) -> list[list[LeakLine]]:
    """Group the leaks that look the same."""
    groups: dict[tuple[str, str, str, int], list[LeakLine]] = {}
    for leak in leaks:
        groups.setdefault((leak.kind, leak.name, leak.shown, leak.length), []).append(leak)
    return list(groups.values())


def _lines(same: list[LeakLine], width: int | None) -> Iterator[Line]:
    first = same[0]
    what = f"{first.kind} {first.name}".rstrip()
    shown = f"“{one_line(first.shown)}…”, " if first.shown else ""
    places = ", ".join(_where(leak) for leak in same[:MAX_PLACES])
    more = f" and {counted(len(same) - MAX_PLACES, 'more place')}" if len(same) > MAX_PLACES else ""
    yield fitted([("  ", ""), (one_line(what), "warn"), (f"  {shown}{counted(first.length, 'byte')}", "strong")], width)
    yield fitted([(f"      {places}{more}", "dim")], width)
    for option in dict.fromkeys(leak.option for leak in same[:MAX_PLACES]):
        yield fitted([("      ", ""), (one_line(option) or _BY_DEFAULT, "key")], width)


def _where(leak: LeakLine) -> str:
    row = f" (row {leak.row})" if leak.row else ""
    return f"record {leak.record}{row} {one_line(leak.where)}"


def _object(leaks: CaptureLeaks) -> dict[str, Any]:
    return {
        "path": leaks.path,
        "leaks": [
            {
                "record": leak.record,
                "row": leak.row or None,
                "where": leak.where,
                "kind": leak.kind,
                "name": leak.name or None,
                "shown": leak.shown,
                "length": leak.length,
                "option": leak.option,
            }
            for leak in leaks.leaks
        ],
        "more": leaks.more,
        "unread": leaks.unread,
    }

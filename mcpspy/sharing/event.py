"""Edits of an event of SSE: its data is one text, however many lines it stands on (WHATWG HTML, section 9.2)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from .edits import Edit
from .json_walk import BOM

_DATA = b"data:"


def event_edits(event: bytes, payload: Callable[[bytes], list[Edit]], text: Callable[[bytes], list[Edit]]) -> list[Edit]:
    """What `payload` finds in the data, and `text` in every other line, as edits of the event. In order; none overlap."""
    found: list[Edit] = []
    begins: list[int] = []  # of each line of the data: where it begins in the data
    places: list[int] = []  # and in the event
    lines: list[bytes] = []
    length = 0
    for start, line in _lines(event):
        if not line.startswith(_DATA):
            found += (Edit(one.start + start, one.end + start, one.new, one.kind) for one in text(line))
            continue
        value = line[len(_DATA) :].removeprefix(b" ")
        begins.append(length)
        places.append(start + len(line) - len(value))
        lines.append(value)
        length += len(value) + 1
    for one in payload(b"\n".join(lines)) if lines else ():
        first = bisect_right(begins, one.start) - 1
        last = max(bisect_left(begins, one.end) - 1, 0)
        start = min(places[first] + one.start - begins[first], places[first] + len(lines[first]))
        end = min(places[last] + one.end - begins[last], places[last] + len(lines[last]))
        found.append(Edit(start, max(start, end), one.new, one.kind))
    return sorted(found, key=lambda edit: edit.start)


def _lines(event: bytes) -> Iterator[tuple[int, bytes]]:
    """Where each line begins, and the line without its end; a byte order mark is no part of the first."""
    at = len(BOM) if event.startswith(BOM) else 0
    for line in event[at:].splitlines(keepends=True):
        yield at, line.rstrip(b"\r\n")
        at += len(line)

"""Edits of bytes: a span and its replacement, so that all bytes around it stay as they were.

An edit names its span (`Edit`) or the path of a JSON value (`ValueEdit`).
Edits of the data of an SSE event become edits of the event.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .json_spans import addition_place, removal_spans, span_at
from .sse import BOM

_QUOTES = b'\\"'
_DATA = b"data:"


class Edit(NamedTuple):
    """A replacement: `data[start:end]` becomes `new`. `kind` is that of a capture's `redacted`, where somebody counts kinds."""

    start: int
    end: int
    new: bytes
    kind: str = ""


def apply_edits(data: bytes, edits: Iterable[Edit]) -> bytes:
    """Make these edits, which are in order and do not overlap."""
    pieces: list[bytes] = []
    done = 0
    for edit in edits:
        pieces += (data[done : edit.start], edit.new)
        done = edit.end
    return b"".join((*pieces, data[done:]))


def shift(edits: Iterable[Edit], offset: int) -> Iterator[Edit]:
    """Move edits of a part to the whole that has this part at `offset`."""
    return (Edit(edit.start + offset, edit.end + offset, edit.new, edit.kind) for edit in edits)


def without_overlaps(data: bytes, edits: Iterable[Edit], replace: Callable[[bytes], bytes]) -> list[Edit]:
    """Put edits in order and resolve overlaps: of two nested edits the outer counts, of equal spans the first edit.

    Edits that overlap in part become one, whose replacement `replace` makes of the bytes that they cover together.
    """
    ordered: list[Edit] = []
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        last = ordered[-1] if ordered else None
        if last is None or edit.start >= last.end:
            ordered.append(edit)
        elif edit.end > last.end:
            ordered[-1] = Edit(last.start, edit.end, replace(data[last.start : edit.end]), last.kind)
    return ordered


def with_kinds(edits: Iterable[Edit], kinds: Mapping[tuple[int, int], str]) -> list[Edit]:
    """Give the edits of these spans these kinds; the others keep theirs."""
    return [edit._replace(kind=kinds.get((edit.start, edit.end), edit.kind)) for edit in edits]


def edited_parts(parts: Sequence[bytes], edits: Sequence[Edit]) -> list[tuple[bytes, tuple[tuple[int, int, str], ...]]]:
    """Make edits of the joined parts in each part. Return each part with `(offset, length, kind)` of its replacements.

    An edit without a kind is not listed.
    A replacement that begins in one part and ends in another is put whole into the part in which it ends.
    """
    made: list[tuple[bytes, tuple[tuple[int, int, str], ...]]] = []
    begin = at = 0
    waiting = list(reversed(edits))
    for part in parts:
        end = begin + len(part)
        pieces: list[bytes] = []
        ranges: list[tuple[int, int, str]] = []
        length = 0
        while waiting and waiting[-1].end <= end:
            edit = waiting.pop()
            before = part[max(at, begin) - begin : max(edit.start - begin, 0)]
            pieces += (before, edit.new)
            bare = edit.new.strip(_QUOTES)  # without the quotes of a number that has become a text
            if edit.kind:
                ranges.append((length + len(before) + edit.new.find(bare), len(bare), edit.kind))
            length += len(before) + len(edit.new)
            at = edit.end
        stop = end if not waiting else min(max(waiting[-1].start, begin), end)
        pieces.append(part[max(at, begin) - begin : stop - begin])
        at = max(at, stop)
        begin = end
        made.append((b"".join(pieces), tuple(ranges)))
    return made


# --- Values of JSON ---


class ValueEdit(NamedTuple):
    """A JSON value and the path it goes to, from the root of a message, as `("params", "arguments", "path")`.

    `adds` says that a member or the next item that is missing is added.
    """

    steps: tuple[str | int, ...]
    value: bytes
    adds: bool = False


def with_values(payload: bytes, edits: Iterable[ValueEdit]) -> bytes:
    """Put these values at their paths, one after the other. An edit whose path is not there changes nothing."""
    for edit in edits:
        span = span_at(payload, edit.steps)
        if span is not None:
            payload = apply_edits(payload, [Edit(*span, edit.value)])
        elif edit.adds:
            payload = _with_added(payload, edit)
    return payload


def has_value(payload: bytes, steps: Sequence[str | int]) -> bool:
    """Return whether there is a value at this path."""
    return span_at(payload, steps) is not None


def without_value(payload: bytes, steps: Sequence[str | int]) -> bytes:
    """Cut out the value at a path, with its name; nothing if it is not there."""
    return apply_edits(payload, [Edit(*span, b"") for span in removal_spans(payload, steps)])


def _with_added(payload: bytes, edit: ValueEdit) -> bytes:
    """Add the member or the next item, and what is around it where that is missing too."""
    *outer, step = edit.steps
    new = json.dumps(step).encode() + b":" + edit.value if isinstance(step, str) else edit.value
    if (place := addition_place(payload, edit.steps)) is not None:
        at, is_first = place
        return apply_edits(payload, [Edit(at, at, new if is_first else b"," + new)])
    if step not in (0, str(step)) or not outer or has_value(payload, outer):
        return payload
    around = b"{%b}" if isinstance(step, str) else b"[%b]"
    return _with_added(payload, ValueEdit(tuple(outer), around % new, adds=True))


# --- Events of SSE ---


def event_edits(event: bytes, in_data: Callable[[bytes], list[Edit]], in_line: Callable[[bytes], list[Edit]]) -> list[Edit]:
    """Return the edits of an event that `in_data` makes of its data and `in_line` of every other line. In order; none overlap.

    The data is one text, however many lines it is on (WHATWG HTML, section 9.2).
    """
    edits: list[Edit] = []
    begins: list[int] = []  # of each data line: where its value begins in the data
    offsets: list[int] = []  # and in the event
    values: list[bytes] = []
    length = 0
    for start, line in _lines(event):
        if not line.startswith(_DATA):
            edits += shift(in_line(line), start)
            continue
        value = line[len(_DATA) :].removeprefix(b" ")
        begins.append(length)
        offsets.append(start + len(line) - len(value))
        values.append(value)
        length += len(value) + 1
    for edit in in_data(b"\n".join(values)) if values else ():
        first = bisect_right(begins, edit.start) - 1
        last = max(bisect_left(begins, edit.end) - 1, 0)
        start = min(offsets[first] + edit.start - begins[first], offsets[first] + len(values[first]))
        end = min(offsets[last] + edit.end - begins[last], offsets[last] + len(values[last]))
        edits.append(Edit(start, max(start, end), edit.new, edit.kind))
    return sorted(edits, key=lambda edit: edit.start)


def _lines(event: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the offset of each line, and the line without its end; a byte order mark is no part of the first."""
    at = len(BOM) if event.startswith(BOM) else 0
    for line in event[at:].splitlines(keepends=True):
        yield at, line.rstrip(b"\r\n")
        at += len(line)

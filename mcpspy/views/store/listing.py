"""The captures of a store, by recording: the lines of `mcpspy list`, and its JSON.

Takes facts that were gathered already; refuses to look at a store, a clock or a time zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from ..text.cells import cells, cut, padded, padded_left
from ..text.escape import one_line, safe_text
from ..text.json_text import SCHEMA, as_json
from ..text.line import Line, fitted
from ..text.units import counted, duration, size

LABEL_CELLS = 48
MIN_LABEL_CELLS = 16
"""Where labels would get less, columns are left out: the size first, then how long it took, then when."""

WIDE_CELLS = 120
"""From this width on each capture says which file it is."""

_CLOCK = "22:37:01"
_GAP = "  "


class CaptureState(StrEnum):
    """Whether all of a capture is there."""

    LIVE = "live"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"


_STYLES = {CaptureState.LIVE: "good", CaptureState.COMPLETE: "dim", CaptureState.INCOMPLETE: "warn"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLine:
    """One capture: `begin` in the reader's time zone; `messages` are at least so many unless `counted`."""

    path: str
    file: str
    capture_id: str
    label: str
    begin: datetime
    begin_ns: int
    lasted_ns: int
    messages: int
    counted: bool
    size_bytes: int
    gaps: int
    state: CaptureState
    is_model: bool = False
    """Whether its leg is the model's: how many pieces an answer came in is no measure of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingLine:
    """One client and its captures, the oldest first. `address` is its WHAT; empty where nothing was said."""

    address: str
    client: str
    client_pid: int | None
    captures: tuple[CaptureLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableFile:
    """A file of the store that cannot be read as a capture."""

    path: str
    file: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUsage:
    """What the whole store holds and may hold (None: no quota), and what was removed from it so far."""

    captures: int
    size_bytes: int
    max_bytes: int | None
    gone_captures: int
    gone_bytes: int
    gone_wall_ns: int | None


def listing(recordings: list[RecordingLine], unusable: list[UnreadableFile], *, width: int | None) -> Iterator[Line]:
    """A line per recording and one per capture below it, in `width` cells; None: as long as they are."""
    columns = _Columns(recordings, width)
    for number, recording in enumerate(recordings):
        if number:
            yield []
        yield fitted(_recording_line(recording, columns), width)
        for capture in recording.captures:
            yield fitted(_capture_line(recording, capture, columns), width)
    if unusable:
        if recordings:
            yield []
        yield fitted([("not readable", "warn")], width)
        for one in unusable:
            yield fitted([("    " + safe_text(one.file), ""), (f"  {one_line(one.reason)}", "dim")], width)


def listing_json(store: str, recordings: list[RecordingLine], unusable: list[UnreadableFile], kept: StoreUsage) -> str:
    """The JSON of `mcpspy list --json`: docs/json.md says what its members mean."""
    found = {
        "schema": SCHEMA,
        "store": store,
        "recordings": [_recording_object(one) for one in recordings],
        "unreadable": [{"path": one.path, "reason": one.reason} for one in unusable],
        "kept": {
            "captures": kept.captures,
            "bytes": kept.size_bytes,
            "max_bytes": kept.max_bytes,
            "removed": {"captures": kept.gone_captures, "bytes": kept.gone_bytes, "last_wall_ns": kept.gone_wall_ns},
        },
    }
    return as_json(found) + "\n"


class _Columns:
    """How wide the columns are that all lines share; 0 where there is no room for one."""

    def __init__(self, recordings: list[RecordingLine], width: int | None) -> None:
        captures = [one for recording in recordings for one in recording.captures]
        self.files = width is None or width >= WIDE_CELLS
        self.address = max(1, _widest(one.address for one in recordings))
        self.label = min(_widest(one_line(one.label) for one in captures), LABEL_CELLS)
        self.clock = len(_CLOCK)
        self.lasted = _widest(duration(one.lasted_ns) for one in captures)
        self.messages = _widest(map(_messages, captures))
        self.size = _widest(size(one.size_bytes) for one in captures)
        if width is not None:
            self._fit(width - _widest(_state(one) for one in captures) - self.address - 1 - len(_GAP))

    def _fit(self, room: int) -> None:
        """Make the columns take `room` cells: what a label can spare first, then whole columns."""
        for name in ("", "size", "lasted", "clock"):
            if name:
                setattr(self, name, 0)
            taken = sum(len(_GAP) + one for one in (self.clock, self.lasted, self.messages, self.size) if one)
            if room - taken >= min(self.label, MIN_LABEL_CELLS):
                break
        self.label = max(1, min(self.label, room - taken))


def _widest(texts: Iterable[str]) -> int:
    return max(map(cells, texts), default=0)


def _recording_line(recording: RecordingLine, columns: _Columns) -> Line:
    begin = recording.captures[0].begin
    client = one_line(recording.client) or "unknown client"
    pid = "" if recording.client_pid is None else f" (pid {recording.client_pid})"
    return [
        (padded(recording.address, columns.address) + " ", "key"),
        (f"{begin:%Y-%m-%d %H:%M:%S}", "strong"),
        ("  " + client, "strong"),
        (pid, "dim"),
    ]


def _capture_line(recording: RecordingLine, capture: CaptureLine, columns: _Columns) -> Line:
    label = cut(one_line(capture.label), columns.label)
    line: Line = [(" " * (columns.address + 1) + padded(label, columns.label), "")]
    if columns.clock:
        line.append((_GAP + f"{capture.begin:%H:%M:%S}", "dim"))
    if columns.lasted:
        line.append((_GAP + padded_left(duration(capture.lasted_ns), columns.lasted), ""))
    line.append((_GAP + padded_left(_messages(capture), columns.messages), ""))
    if columns.size:
        line.append((_GAP + padded_left(size(capture.size_bytes), columns.size), "dim"))
    line.append((_GAP + _state(capture), "bad" if capture.gaps else _STYLES[capture.state]))
    if capture.begin.date() != recording.captures[0].begin.date():
        line.append((_GAP + f"{capture.begin:%Y-%m-%d}", "dim"))
    if columns.files:
        line.append((_GAP + safe_text(capture.file), "dim"))
    return line


def _state(capture: CaptureLine) -> str:
    """Whether all of it is there, and how often recording failed."""
    return f"{capture.state}, {counted(capture.gaps, 'gap')}" if capture.gaps else str(capture.state)


def _messages(capture: CaptureLine) -> str:
    if capture.is_model:
        return "model's leg"
    return counted(capture.messages, "message") + ("" if capture.counted else " or more")


def _recording_object(recording: RecordingLine) -> dict[str, Any]:
    return {
        "address": recording.address or None,
        "client": recording.client,
        "client_pid": recording.client_pid,
        "captures": [_capture_object(one) for one in recording.captures],
    }


def _capture_object(capture: CaptureLine) -> dict[str, Any]:
    made = {
        "path": capture.path,
        "id": capture.capture_id,
        "label": capture.label,
        "leg": "model" if capture.is_model else "mcp",
        "wall_ns": capture.begin_ns,
        "begin": capture.begin.isoformat(timespec="milliseconds"),
        "lasted_ns": capture.lasted_ns,
        "messages": capture.messages,
        "size_bytes": capture.size_bytes,
        "gaps": capture.gaps,
        "complete": capture.state is CaptureState.COMPLETE,
        "live": capture.state is CaptureState.LIVE,
    }
    return made if capture.counted else {**made, "counted": False}

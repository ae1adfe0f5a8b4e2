"""The captures of a store as `mcpspy list`, `verify` and `export share --verify` show them: as lines, and as JSON.

Takes facts that were gathered already. Does not look at a store, a clock or a time zone.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from .text.cells import cells, cut, padded, padded_left
from .text.escape import one_line, safe_text
from .text.json_text import SCHEMA, as_json
from .text.line import Line, fitted
from .text.units import counted, duration, size

LABEL_CELLS = 48
MIN_LABEL_CELLS = 16
"""If labels would get fewer cells, columns are left out: first the size, then the duration, then the time."""

WIDE_CELLS = 120
"""From this width on, the file of each capture is shown."""

_CLOCK = "22:37:01"
_GAP = "  "


class CaptureState(StrEnum):
    """The completeness of a capture."""

    LIVE = "live"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed to start"
    """It is complete: its server could not be started, or ended with a failure before it had a message."""


_STYLES = {
    CaptureState.LIVE: "good",
    CaptureState.COMPLETE: "dim",
    CaptureState.INCOMPLETE: "warn",
    CaptureState.FAILED: "bad",
}


class CaptureLine(msgspec.Struct, frozen=True, kw_only=True):
    """One capture. `begin` is in the reader's time zone; unless `counted`, there are at least as many `messages`."""

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
    """True for a capture of a model API, whose number of messages is not shown."""
    is_part: bool = False
    """True for one client's part of a capture over HTTP: `messages` counts those of all its clients."""
    is_shared: bool = False
    """True if the capture has several clients."""


class RecordingLine(msgspec.Struct, frozen=True, kw_only=True):
    """One client and its captures, the oldest first. `address` is its WHAT; empty where `@` does not count it, `id` names it always.

    `client` is the name and version that the client gave, else that of its process, which is `client_process`.
    """

    address: str
    client: str
    client_pid: int | None
    captures: tuple[CaptureLine, ...]
    id: str = ""
    client_process: str = ""


class UnreadableFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the store that cannot be read as a capture."""

    path: str
    file: str
    reason: str


class StoreUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the whole store, its quota (None: no quota), and what was removed from it so far."""

    captures: int
    size_bytes: int
    max_bytes: int | None
    gone_captures: int
    gone_bytes: int
    gone_wall_ns: int | None


def listing(recordings: list[RecordingLine], unusable: list[UnreadableFile], *, width: int | None) -> Iterator[Line]:
    """Yield a line for each recording and one for each of its captures, in `width` cells; None means unbounded."""
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
        yield fitted([("unreadable", "warn")], width)
        for file in unusable:
            yield fitted([("    " + safe_text(file.file), ""), (f"  {one_line(file.reason)}", "dim")], width)


def listing_json(store: str, recordings: list[RecordingLine], unusable: list[UnreadableFile], kept: StoreUsage) -> str:
    """Return the JSON of `mcpspy list --json`. docs/json.md describes its members."""
    members = {
        "schema": SCHEMA,
        "store": store,
        "recordings": [_recording_object(recording) for recording in recordings],
        "unreadable": [{"path": file.path, "reason": file.reason} for file in unusable],
        "kept": {
            "captures": kept.captures,
            "bytes": kept.size_bytes,
            "max_bytes": kept.max_bytes,
            "removed": {"captures": kept.gone_captures, "bytes": kept.gone_bytes, "last_wall_ns": kept.gone_wall_ns},
        },
    }
    return as_json(members) + "\n"


class _Columns:
    """The widths of the columns that all lines share; 0 for a column that is left out."""

    def __init__(self, recordings: list[RecordingLine], width: int | None) -> None:
        captures = [capture for recording in recordings for capture in recording.captures]
        self.files = width is None or width >= WIDE_CELLS
        self.address = max(1, _widest(recording.address for recording in recordings))
        self.label = min(_widest(one_line(capture.label) for capture in captures), LABEL_CELLS)
        self.clock = len(_CLOCK)
        self.lasted = _widest(duration(capture.lasted_ns) for capture in captures)
        self.messages = _widest(map(_messages, captures))
        self.size = _widest(size(capture.size_bytes) for capture in captures)
        if width is not None:
            self._fit(width - _widest(_state(capture) for capture in captures) - self.address - 1 - len(_GAP))

    def _fit(self, room: int) -> None:
        """Fit the columns into `room` cells: shorten the labels first, then drop whole columns."""
        for name in ("", "size", "lasted", "clock"):
            if name:
                setattr(self, name, 0)
            shown = [cells for cells in (self.clock, self.lasted, self.messages, self.size) if cells]
            taken = sum(shown) + len(_GAP) * len(shown)
            if room - taken >= min(self.label, MIN_LABEL_CELLS):
                break
        self.label = max(1, min(self.label, room - taken))


def _widest(texts: Iterable[str]) -> int:
    return max(map(cells, texts), default=0)


def _recording_line(recording: RecordingLine, columns: _Columns) -> Line:
    begin = min(capture.begin for capture in recording.captures)
    client = one_line(recording.client) or "unknown client"
    pid = "" if recording.client_pid is None else f" (pid {recording.client_pid})"
    return [
        (padded(recording.address, columns.address) + " ", "key"),
        (f"{begin:%Y-%m-%d %H:%M:%S}", "strong"),
        ("  " + client, "strong"),
        (pid, "dim"),
        (f"  @{recording.id}" if recording.id else "", "dim"),
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
    """Return the completeness of a capture, and the number of its gaps."""
    return f"{capture.state}, {counted(capture.gaps, 'gap')}" if capture.gaps else str(capture.state)


def _messages(capture: CaptureLine) -> str:
    if capture.is_model:
        return "model API"
    if capture.is_shared:
        return f"up to {counted(capture.messages, 'message')}"
    return ("" if capture.counted else "at least ") + counted(capture.messages, "message")


def _recording_object(recording: RecordingLine) -> dict[str, Any]:
    return {
        "address": recording.address or None,
        "id": recording.id,
        "client": recording.client,
        "client_process": recording.client_process or None,
        "client_pid": recording.client_pid,
        "captures": [_capture_object(capture) for capture in recording.captures],
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
        "complete": capture.state in (CaptureState.COMPLETE, CaptureState.FAILED),
        "failed_to_start": capture.state is CaptureState.FAILED,
        "live": capture.state is CaptureState.LIVE,
        "part": capture.is_part,
    }
    return made if capture.counted else {**made, "counted": False}


def keeping_line(files: int, taken_bytes: int, max_bytes: int | None) -> str:
    """Return the size of the store and when captures are deleted; `max_bytes` is the store's quota, None for no quota."""
    held = f"{counted(files, 'capture')}, {size(taken_bytes)}"
    if max_bytes is None:
        return f"{held}; no quota: nothing is deleted until you run mcpspy prune"
    rule = "beyond that, the oldest recordings are deleted (mcpspy prune --quota none removes the quota)"
    return f"{held} of at most {size(max_bytes)}; {rule}"


def gone_line(recordings: int, captures: int, gone_bytes: int, *, when: str, by_quota: bool) -> str:
    """Return what was deleted so far, and when something was deleted last; `when` is a date in words."""
    what = counted(recordings, "older recording") if recordings else counted(captures, "older capture")
    why = "to keep the store below its quota" if by_quota else "with mcpspy prune"
    return f"{what} ({size(gone_bytes)}) deleted {why}, the last on {when}."

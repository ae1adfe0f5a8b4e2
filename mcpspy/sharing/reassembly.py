"""Brings the parts of a frame together again, that they may be read as one, and lets no record pass another.

Holds what came since a part whose frame has not ended, up to a bound: a frame past it is given up. Refuses to read what it joins.
"""

from __future__ import annotations

from collections import deque
from typing import Final, TypeAlias

from ..records import Close, End, Frame, Open, Partial, Record

MAX_HELD_BYTES: Final = 1 << 26
"""So many bytes wait for the end of a frame at the most."""


class FrameParts:
    """The parts of one frame, in order. `is_cut_off`: its end never came."""

    __slots__ = ("frames", "is_complete", "is_cut_off", "is_given_up")

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.is_complete = False
        self.is_cut_off = False
        self.is_given_up = False
        """It was too long to be read: its parts, and those that come yet, keep their lengths alone."""


Ready: TypeAlias = FrameParts | Record
"""A record, or a frame with all its parts; a group comes before the records of its parts."""


class Reassembly:
    """Records and groups. `feed` and `close` give what is ready: a group, then, in the order seen, the records that it held up."""

    __slots__ = ("_bytes", "_joined", "_open", "_queue", "given_up")

    def __init__(self) -> None:
        self.given_up = 0
        """How many frames were too long."""
        self._queue: deque[tuple[Record, FrameParts | None]] = deque()
        self._open: dict[int, FrameParts] = {}
        self._joined: set[int] = set()
        self._bytes = 0

    def join(self, stream: int) -> None:
        """Of this stream all frames are one group."""
        self._joined.add(stream)

    def feed(self, record: Record) -> list[Ready]:
        """Take the next record."""
        if isinstance(record, Frame):
            return self._frame(record)
        ready: list[Ready] = []
        if isinstance(record, Close):
            ready += self._cut_off(record.stream, is_whole=record.how == "eof")
        elif isinstance(record, End):
            ready += self.close()
        self._queue.append((record, None))
        self._bytes += _size(record)
        return [*ready, *self._passed()]

    def close(self) -> list[Ready]:
        """No more will come."""
        ready: list[Ready] = []
        for stream in list(self._open):
            ready += self._cut_off(stream)
        return [*ready, *self._passed()]

    def _frame(self, frame: Frame) -> list[Ready]:
        group = self._open.pop(frame.stream, None) or FrameParts()
        if group.is_given_up:
            empty(frame)
        else:
            group.frames.append(frame)
        self._queue.append((frame, group))
        self._bytes += len(frame.data)
        if frame.part or frame.stream in self._joined:
            self._open[frame.stream] = group
            self._bound()
            return self._passed()
        return [*self._completed(group), *self._passed()]

    def _completed(self, group: FrameParts) -> list[Ready]:
        if group.is_given_up:
            return []
        group.is_complete = True
        return [group]

    def _cut_off(self, stream: int, *, is_whole: bool = False) -> list[Ready]:
        """No more comes of this stream; `is_whole`: nor should it, if it is one group."""
        group = self._open.pop(stream, None)
        if group is None:
            return []
        is_part = stream not in self._joined or not group.frames or group.frames[-1].part
        group.is_cut_off = is_part or not is_whole
        self._joined.discard(stream)
        return self._completed(group)

    def _bound(self) -> None:
        """Give up what keeps too much waiting."""
        if self._bytes <= MAX_HELD_BYTES:
            return
        for group in self._open.values():
            if not group.is_given_up:
                self.given_up += 1
                group.is_given_up = group.is_complete = True
                for frame in group.frames:
                    self._bytes -= len(frame.data)
                    empty(frame)
                group.frames.clear()

    def _passed(self) -> list[Ready]:
        """The records at the front that wait for nothing."""
        ready: list[Ready] = []
        while self._queue and ((group := self._queue[0][1]) is None or group.is_complete):
            record, _ = self._queue.popleft()
            self._bytes -= _size(record)
            ready.append(record)
        return ready


def empty(frame: Frame) -> None:
    """Leave the length of a frame, and nothing of what it says."""
    frame.rare["length"] = frame.length
    for name in ("sha256", "forwarded", "redacted"):
        frame.rare.pop(name, None)
    frame.data = b""


def _size(record: Record) -> int:
    match record:
        case Frame() | Partial():
            return len(record.data)
        case Open():
            return len(record.head)
    return 0

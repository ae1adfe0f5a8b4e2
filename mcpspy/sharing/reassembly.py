"""Frames in parts, joined so that they can be read whole: records in, records and frames out; no record overtakes another.

Records wait while a frame among them has not ended. The waiting bytes are bounded: a frame that is too long is given up.
"""

from collections import deque
from typing import Final, TypeAlias

from ..records import Close, End, Frame, Open, Partial, Record

MAX_HELD_BYTES: Final = 1 << 26
"""Limit of the bytes that wait for the end of a frame."""


class FrameParts:
    """The parts of one frame, in order. `is_cut_off`: its end never came."""

    __slots__ = ("frames", "is_complete", "is_cut_off", "is_given_up")

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.is_complete = False
        self.is_cut_off = False
        self.is_given_up = False
        """True if it is too long to be read: its parts, and those that are still to come, keep only their lengths."""


Ready: TypeAlias = FrameParts | Record
"""A record, or a frame with all its parts; a group comes before the records of its parts."""


class Reassembly:
    """Reassembly of frames. `feed` and `close` return what is ready: a frame's parts, then in order the records that waited."""

    __slots__ = ("_bytes", "_joined", "_open", "_queue", "given_up")

    def __init__(self) -> None:
        self.given_up = 0
        """The number of frames that were too long."""
        self._queue: deque[tuple[Record, FrameParts | None]] = deque()
        self._open: dict[int, FrameParts] = {}
        self._joined: set[int] = set()
        self._bytes = 0

    def join(self, stream: int) -> None:
        """Treat all frames of this stream as parts of one."""
        self._joined.add(stream)

    def is_joined(self, stream: int) -> bool:
        """Return whether all frames of this stream are parts of one."""
        return stream in self._joined

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
        """Return the rest: no more records will come."""
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
        """End the group of this stream. `is_whole`: the stream ended as it should, so if it is one group, that is complete."""
        group = self._open.pop(stream, None)
        if group is None:
            return []
        is_part = stream not in self._joined or not group.frames or group.frames[-1].part
        group.is_cut_off = is_part or not is_whole
        self._joined.discard(stream)
        return self._completed(group)

    def _bound(self) -> None:
        """Give up the frames for which too many bytes wait."""
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
        """Take the records from the front of the queue that wait for nothing."""
        ready: list[Ready] = []
        while self._queue and ((group := self._queue[0][1]) is None or group.is_complete):
            record, _ = self._queue.popleft()
            self._bytes -= _size(record)
            ready.append(record)
        return ready


def empty(frame: Frame) -> None:
    """Remove the content of a frame, and keep its length."""
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

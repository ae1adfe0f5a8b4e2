"""The places of a capture's records, found in one pass over its lines, and of the payloads in them."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Container, Iterator
from typing import Final

from ..capture.file.payloads import Payloads
from ..capture.file.reader import sound_record
from ..platform.files import BINARY, NOFOLLOW
from ..records import Close, Frame, Open
from ..transcript.http.transaction import Stream
from ..transcript.stored_rows import FOREVER
from ..wire.sse import parse
from .entries import Reference, event_data
from .transactions import Place

_CHUNK_BYTES: Final = 1 << 20
_IS_FRAME: Final = b'"kind":"frame"'
_IS_END: Final = b'"kind":"end"'
_IS_TEXT: Final = b'"text":"'
_IS_ESCAPE: Final = b"\\u"
_IS_SLASH: Final = b"\\/"
_of_letter = re.compile(rb"(?<!\\)(?:\\\\)*\\(?:/|u(?!00[01]))").search
"""An escape that no tap writes into a payload: it may be of any letter. Before it are escaped backslashes."""
_announces = re.compile(rb'(?:"text":"|\\[nr])(?:\xef\xbb\xbf)?event: ?endpoint(?:\\[nr]|")').search
_names_id = re.compile(rb'(?:"text":"|\\[nr])(?:\xef\xbb\xbf)?id:').search
_frame_of = re.compile(rb'\{"n":\d+,"at_ns":\d+,"kind":"frame","stream":(\d+),').match


class NotIndexedError(Exception):
    """Something in a capture for which an index has no words."""


class Places:
    """The places of a capture's records; with `has_frames` also those of the frames of each stream.

    Raises: NotIndexedError: if a record has none.
    """

    __slots__ = (
        "_begins",
        "_announcing",
        "_before",
        "_first",
        "_has_parts",
        "_is_damaged",
        "_is_ended",
        "_last",
        "_odd",
        "_parts",
        "_unfinished",
        "_until",
        "_with_id",
        "block_begins",
        "block_ends",
        "source",
    )

    def __init__(self, path: str, size: int, *, has_frames: bool, is_damaged: bool) -> None:
        self.source = Payloads(os.open(path, os.O_RDONLY | NOFOLLOW | BINARY), path)
        self._begins = array("Q")
        self._before = array("I")
        """For each record the number of the frame before it on the same stream; 0 if there is none."""
        self._last: dict[int, int] = {}
        self._unfinished: set[int] = set()
        """The streams whose last frame came in parts, without its last one."""
        self._parts: set[int] = set()
        """The records that are such parts."""
        self._with_id = array("I")
        """The records that may be events with an id."""
        self._announcing: set[int] = set()
        """The records that may be events which announce an endpoint."""
        self._has_parts = has_frames
        self._is_damaged = is_damaged
        self._is_ended = False
        self._odd = bytearray()
        """1 for each record whose payload is not on its line as taps write text."""
        self.block_begins, self.block_ends = array("Q"), array("Q")
        """For each block of rows the offsets between which its payloads are; `FOREVER` as the end if they may be anywhere."""
        self._first, self._until = FOREVER, 0
        begin = 0
        with open(path, "rb") as file:
            for number, line in enumerate(file):
                if begin >= size:
                    break  # recorded since
                if not line.endswith(b"\n") and sound_record(line) is None:
                    break  # torn
                if not line.startswith(b'{"n":%d,' % number if number else b'{"mcpspy"'):
                    raise NotIndexedError(number)
                self._begins.append(begin)
                if b'"part"' in line or self._unfinished:  # with escaped quotes where it is text
                    self._part(line, number)
                is_plain = _IS_TEXT in line and not ((_IS_ESCAPE in line or _IS_SLASH in line) and _of_letter(line))
                self._odd.append(not is_plain)
                if has_frames:
                    self._before.append(self._frame(line, number))
                    if b"endpoint" in line and _announces(line):
                        self._announcing.add(number)
                    if (b"id:" in line and _names_id(line)) or not (is_plain or _IS_FRAME not in line):
                        self._with_id.append(number)
                begin += len(line)
        self._begins.append(begin)

    def __len__(self) -> int:
        """The number of lines."""
        return len(self._begins) - 1

    @property
    def ends_in_parts(self) -> bool:
        """True if a frame lacks its last part."""
        return bool(self._unfinished)

    def place(self, number: int) -> Place:
        """Return the offset and the number of a record."""
        if not 0 <= number < len(self._begins) - 1:
            raise NotIndexedError(number)
        return self._begins[number], number

    def cannot_be_searched(self) -> None:
        """Note a payload in which a text cannot be looked for where it is in the capture."""
        self._until = FOREVER

    def next_block(self) -> None:
        """Note between which offsets the payloads are that were asked for since the last call."""
        self.block_begins.append(min(self._first, self._until))
        self.block_ends.append(self._until)
        self._first, self._until = FOREVER, 0

    def reference(self, number: int, raw: bytes) -> Reference:
        """Return what an index has for the payload of a record, or of the record that has its last part."""
        begin, _ = self.place(number)
        if self._odd[number]:
            self.cannot_be_searched()
        else:
            self._first, self._until = min(self._first, begin), max(self._until, self._begins[number + 1])
        is_there = self._begins[number + 1] - begin > len(raw)  # escaping makes text longer, never shorter
        if is_there:
            if raw[-2:] == b"}\n" and not self._has_parts:
                return begin
            data = self.source.data(begin, number)
            if data == raw:
                return begin
            if event_data(data) == raw:
                return -begin
        self.cannot_be_searched()
        if is_there or len(raw) < _CHUNK_BYTES:
            return raw
        return tuple(self._parts_back(number, len(raw)))[::-1]

    def body(self, stream: Stream | None, payload: bytes) -> Reference:
        """Return what an index has for the body of a stream: the places of its frames, unless it is compressed."""
        parts = [] if stream is None else self.frames(stream.opened, stream.close)
        return tuple(parts) if b"".join(self.source.data(*part) for part in parts) == payload else payload

    def frames(self, opened: Open, close: Close | None = None) -> list[Place]:
        """Return the places of the frames of a stream, in their order."""
        return [self.place(number) for event in self.events(opened, close) for number in event]

    def events(self, opened: Open, close: Close | None = None) -> list[list[int]]:
        """Return the numbers of the frames of a stream, in their order: those that are parts together with the last part."""
        events: list[list[int]] = []
        number = self._last.get(opened.stream, 0)
        while number > opened.number:
            if close is None or number < close.number:
                if number in self._parts and events:
                    events[-1].append(number)
                else:
                    events.append([number])
            number = self._before[number]
        return [event[::-1] for event in reversed(events)]

    def may_announce(self, event: list[int]) -> bool:
        """Return whether an event of a stream may announce an endpoint."""
        return any(self._odd[number] or number in self._announcing for number in event)

    def ids(self, streams: Container[int]) -> Iterator[tuple[int, str]]:
        """Yield the ids of events, each with the number of its stream, one of these. Raises: NotIndexedError: if one is in parts."""
        for number in self._with_id:
            record = self.source.record(*self.place(number))
            if isinstance(record, Frame) and record.stream in streams:
                if record.part or self._before[number] in self._parts:
                    raise NotIndexedError(number)
                if id := parse(record.data).id:
                    yield record.stream, id

    def parts_of(self, number: int, raw: bytes) -> list[int]:
        """Return the numbers of the records that have a payload, the last of which is this one."""
        begin, _ = self.place(number)
        if self._begins[number + 1] - begin > len(raw) or len(raw) < _CHUNK_BYTES:
            return [number]
        return [part for _, part in self._parts_back(number, len(raw))]

    def _part(self, line: bytes, number: int) -> None:
        """Take in a line that may be of a frame in parts, or the last of one."""
        record = sound_record(line.rstrip(b"\n"))
        self._has_parts = True
        if isinstance(record, Frame):
            (self._unfinished.add if record.part else self._unfinished.discard)(record.stream)
            if record.part:
                self._parts.add(number)

    def _frame(self, line: bytes, number: int) -> int:
        """Take in a line. Return the number of the frame before it on its stream."""
        match = None if self._is_ended else _frame_of(line)
        if match is None:
            self._is_ended |= _IS_END in line
            if _IS_FRAME in line:  # which is spelled in another way, or comes after the end
                raise NotIndexedError(number)
            return 0
        if self._is_damaged and sound_record(line.rstrip(b"\n")) is None:
            return 0
        stream = int(match[1])
        before = self._last.get(stream, 0)
        self._last[stream] = number
        return before

    def _parts_back(self, number: int, missing: int) -> Iterator[Place]:
        """Yield the places of the parts of a payload, the last one first."""
        stream: int | None = None
        while missing > 0:
            place = self.place(number)
            record = self.source.record(*place)
            if isinstance(record, Frame) and stream in (None, record.stream):
                stream = record.stream
                missing -= len(record.data)
                yield place
            number -= 1
        if missing:
            raise NotIndexedError(number)

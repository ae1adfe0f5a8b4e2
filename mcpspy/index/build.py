"""A transcript of a large capture to its index: rows in blocks, and what is known of all of them.

Only captures of stdio whose records all have their places are indexed, with at most a torn end; for others there is no index.
"""

from __future__ import annotations

import os
from array import array
from binascii import crc32
from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import astuple

from ..capture.file.payloads import Payloads
from ..errors import CaptureError
from ..records import Damage, Frame
from ..transcript.log_matches import log_matches
from ..transcript.message import Message
from ..transcript.model import CaptureInfo, ChannelEvent, Exchange, Log, Numbered, Outcome, Row, Transcript, UnpairedMessage
from ..transcript.phases import Lifecycle
from ..transcript.stats.outcomes import outcomes
from ..transcript.stored_rows import BLOCK_ROWS, RowFigures
from ..transcript.waiting import waited_ns
from .entries import Reference
from .facts import Facts, Place, call_entries, copied, encode
from .file import Identity, IndexWriter, identity

_RAW: Final = Message.__struct_fields__.index("raw")
_CHUNK_BYTES: Final = 1 << 20

MAX_CALLS: Final = 10_000
"""A capture with more calls of several rows has no index: their rows would all be held."""

MAX_LOG_MATCHES: Final = 100_000


class _NotIndexedError(Exception):
    """Something in a capture for which an index has no words."""


def can_be_indexed(transcript: Transcript) -> bool:
    """Return whether a transcript is of one capture of stdio, with few enough calls of several rows."""
    info = transcript.captures[0]
    is_plain = len(transcript.captures) == 1 and not info.transactions and not info.is_model and info.header is not None
    return is_plain and info.shift_ns == 0 and len(info.calls) <= MAX_CALLS and info.closed


def write_index(path: str, transcript: Transcript, of: Identity, version: str, widths: tuple[int, int, int, int, int]) -> bool:
    """Write the index of the capture at `path`, which was `of` this identity before it was read. Return whether there is one now.

    `widths` are those of `RowFigures`. An index that cannot be written, because of the capture or of the disk, is none.
    """
    if not can_be_indexed(transcript):
        return False
    try:
        writer = IndexWriter(path)
    except OSError:
        return False
    try:
        _write(writer, path, transcript, widths)
        if identity(path) != of:
            raise _NotIndexedError
        writer.finish(of, version)
    except (_NotIndexedError, CaptureError, OSError):
        writer.discard()
        return False
    return True


def _write(writer: IndexWriter, path: str, transcript: Transcript, widths: tuple[int, int, int, int, int]) -> None:
    places = _Places(path)
    begins, crcs, longest = array("Q", [writer.offset]), array("I"), array("Q")
    firsts, others = array("I"), array("I")
    rows, next_row = transcript.rows, 1
    for begin in range(0, len(rows), BLOCK_ROWS):
        block = rows[begin : begin + BLOCK_ROWS]
        numbers = [row.row for row in block if isinstance(row, Numbered)]
        firsts.append(numbers[0] if numbers else next_row)
        next_row = numbers[-1] + 1 if numbers else next_row
        longest.append(max((_took_ns(row, transcript.captures[0]) for row in block), default=0))
        others.extend(begin + at for at, row in enumerate(block) if not isinstance(row, Numbered))
        data = encode([_entry(row, places) for row in block])
        crcs.append(crc32(data))
        writer.append(data)
        begins.append(writer.offset)
    sections = {"begins": begins, "crcs": crcs, "firsts": firsts, "others": others, "longest": longest}
    for name, column in sections.items():
        writer.section(name, column.tobytes())
    writer.section("facts", encode(_facts(transcript, places, widths)))


def _took_ns(row: Row, info: CaptureInfo) -> int:
    """Return the time that an exchange took, or waited."""
    return max(0, row.duration_ns or waited_ns(row, info) or 0) if isinstance(row, Exchange) else 0


def _facts(transcript: Transcript, places: _Places, widths: tuple[int, int, int, int, int]) -> Facts:
    info = transcript.captures[0]
    return Facts(
        rows=len(transcript.rows),
        info=copied(info),
        exit=None if info.exit is None else places.place(info.exit.number),
        streams=[places.place(opened.number) for opened in info.streams.values()],
        findings=transcript.findings,
        calls=call_entries(info),
        figures=_figures(transcript, widths),
    )


def _figures(transcript: Transcript, widths: tuple[int, int, int, int, int]) -> RowFigures:
    info, lifecycle = transcript.captures[0], Lifecycle(transcript.captures[0])
    waits: list[tuple[int, int]] = []
    firsts: dict[Outcome, int] = {}
    slowest, slowest_ns, numbered = 0, -1, 0
    for row in transcript.rows:
        lifecycle.feed(row)
        numbered += isinstance(row, Numbered)
        if isinstance(row, Exchange):
            if not row.over:
                waits.append((row.at_ns, waited_ns(row, info) or 0))
            firsts.setdefault(row.outcome, row.row)
            if (row.duration_ns or 0) > slowest_ns:
                slowest, slowest_ns = row.row, row.duration_ns or 0
    matches = log_matches(transcript.rows)
    if len(matches) > MAX_LOG_MATCHES:
        raise _NotIndexedError
    return RowFigures(
        outcomes={outcome.value: count for outcome, count in outcomes(transcript).items()},
        waits=waits,
        lifecycle=lifecycle.state(),
        notable=sorted({*firsts.values(), slowest} - {0}),
        log_matches=[
            (number, match.row, match.message.number, match.gap_ns, match.begin, match.end)
            for (_, number), match in matches.items()
        ],
        widths=widths,
        numbered=numbered,
    )


def _entry(row: Row, places: _Places) -> tuple[Any, ...]:
    """Return what MessagePack has for a row, as the classes of `entries` declare it."""
    if isinstance(row, Exchange):
        response, cancelled = row.response, row.cancelled
        return (
            "exchange",
            row.row,
            _message(row.request, places),
            None if response is None else _message(response, places),
            [_message(message, places) for message in row.notifications],
            None if cancelled is None else _message(cancelled, places),
            [_message(message, places) for message in row.more_responses],
            [_message(message, places) for message in row.partials],
            row.over,
            None,
            row.left_ns,
            row.is_probe,
        )
    if isinstance(row, UnpairedMessage):
        return "unpaired", row.row, _message(row.message, places), row.candidates
    if isinstance(row, Log):
        return "log", row.capture, row.number, row.at_ns, places.reference(row.number, row.raw)
    if isinstance(row, ChannelEvent):
        record = row.record
        if isinstance(record, Damage):
            return "event", row.capture, row.at_ns, {name: getattr(record, name) for name in Damage.__annotations__}
        return "event", row.capture, row.at_ns, places.place(record.number)
    raise _NotIndexedError


def _message(message: Message, places: _Places) -> list[Any]:
    fields = list(astuple(message))
    raw = message.raw
    fields[_RAW] = raw if message.batch or message.unkept_bytes else places.reference(message.number, raw)
    return fields


class _Places:
    """The places of a capture's records. Raises: _NotIndexedError: if a record has none."""

    __slots__ = ("_begins", "_has_parts", "_source")

    def __init__(self, path: str) -> None:
        self._source = Payloads(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), path)
        self._begins = array("Q")
        self._has_parts = False
        begin = 0
        with open(path, "rb") as file:
            for number, line in enumerate(file):
                if not line.endswith(b"\n"):
                    break  # torn
                if not line.startswith(b'{"n":%d,' % number if number else b'{"mcpspy"'):
                    raise _NotIndexedError(number)
                self._begins.append(begin)
                self._has_parts |= b'"part"' in line  # with escaped quotes where it is text
                begin += len(line)
        self._begins.append(begin)

    def place(self, number: int) -> Place:
        """Return the offset and the number of a record."""
        if not 0 <= number < len(self._begins) - 1:
            raise _NotIndexedError(number)
        return self._begins[number], number

    def reference(self, number: int, raw: bytes) -> Reference:
        """Return what an index has for the payload of a record, or of the record that has its last part."""
        begin, _ = self.place(number)
        if self._begins[number + 1] - begin > len(raw):  # escaping makes text longer, never shorter
            if (raw[-2:] == b"}\n" and not self._has_parts) or self._source.data(begin, number) == raw:
                return begin
            return raw
        if len(raw) < _CHUNK_BYTES:
            return raw
        return tuple(self._parts(number, len(raw)))[::-1]

    def _parts(self, number: int, missing: int) -> Iterator[Place]:
        """Yield the places of the parts of a payload, the last one first."""
        stream: int | None = None
        while missing > 0:
            place = self.place(number)
            record = self._source.record(*place)
            if isinstance(record, Frame) and stream in (None, record.stream):
                stream = record.stream
                missing -= len(record.data)
                yield place
            number -= 1
        if missing:
            raise _NotIndexedError(number)

"""Events of a text/event-stream: chunks in, events as they are on the wire out; and one event, read (WHATWG HTML, section 9.2).

Line ends are LF, CRLF or CR, in any mixture. Comments alone, unknown fields and empty lines between events are frames like any other:
the bytes that come in are the bytes that come out.
"""

import re
from typing import Final

import msgspec

from .lines import MAX_HELD_BYTES, character_boundary

BOM: Final = b"\xef\xbb\xbf"

_HEX: Final = b"0123456789abcdefABCDEF"
_SHORTEST: Final = 4
_LF: Final = 10
_CR: Final = 13
_MAX_RETRY_DIGITS: Final = 18

_JUNCTIONS: Final = (b"\n\n", b"\n\r", b"\r\r")
"""Any two line ends in a row have one of these in their middle."""

_TAIL_BYTES: Final = 3
"""The end of an event has four bytes at most, so at most so many of them came with earlier chunks."""

# A CR at the end of the bytes may be half of a CRLF, so it waits for what follows. There is one exception, so that no complete
# event waits: after a line that ended in CR alone, CR is the empty line, and an LF after it is another.
_find_end = re.compile(rb"\n(?:\n|\r\n|\r(?=[^\n]))|\r(?:\r|\n(?:\n|\r\n|\r(?=[^\n])))").search
_empty_line = re.compile(rb"\n|\r\n|\r(?=[^\n])").match


class SseEvents:
    """Events with the empty lines that end them, from chunks cut anywhere.

    `feed` and `close` return pieces; joined, the pieces are the stream. `is_part` says that the last piece returned is a part: more
    of the same event follows, possibly from `close`. Every other piece completes an event. Events over 1 MiB come in parts as they
    arrive; a part ends on a character boundary where the bytes are UTF-8. An empty line with nothing before it is a piece of its
    own. A piece from `close` lacks its end, or the LF that a last CR might have had.
    """

    name = "sse"
    frame_name = "an event"
    end_name = "end of an event"

    __slots__ = ("_held", "_tail", "held_bytes", "is_part")

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._tail = b""
        self.held_bytes = 0
        """The number of bytes that wait for the end of their event."""
        self.is_part = False

    @property
    def held(self) -> bytes:
        """The bytes that wait for the end of their event, without those of earlier parts."""
        return b"".join(self._held)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the pieces that `data` completes."""
        if self.is_between and is_one_event(data):
            return [data]
        if not self._may_end(data):
            return self._hold(data)
        # what was held has no end in it, so its last bytes are looked at again, and the others are not
        tail = self._tail
        events = _cut(tail + data, begun=self.is_part or self.held_bytes > len(tail))
        if not events:
            return self._hold(data)
        rest = data[sum(map(len, events)) - len(tail) :]
        if self._held:
            events[0] = self.held[: self.held_bytes - len(tail)] + events[0]
        self._forget()
        return events + self._hold(rest)

    @property
    def is_between(self) -> bool:
        """True while the next bytes begin an event. Then an event that comes whole and alone need not be fed."""
        return not self._held and not self.is_part

    def close(self) -> list[bytes]:
        """Return the last event if its end has not come; otherwise nothing."""
        rest = self.held
        self._forget()
        return [rest] if rest else []

    def _forget(self) -> None:
        self._held.clear()
        self._tail = b""
        self.held_bytes = 0
        self.is_part = False

    def _may_end(self, data: bytes) -> bool:
        """Return whether `data` may hold, or complete, the end of an event."""
        tail = self._tail
        if not tail or tail == b"\r" or tail[-2:] == b"\n\r" or tail[-1:] + data[:1] in _JUNCTIONS:
            return True
        # one byte is sought ten times faster than two, and hardly any data of a large event has a line end
        if b"\n" in data and (b"\n\n" in data or b"\n\r" in data):
            return True
        return b"\r" in data and b"\r\r" in data

    def _hold(self, data: bytes) -> list[bytes]:
        if not data:
            return []
        self._held.append(data)
        self._tail = (self._tail + data[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        self.held_bytes += len(data)
        if self.held_bytes < MAX_HELD_BYTES:
            return []
        held = self.held
        # its last line ends stay, for they may begin the end of the event; and so does one character, for `close`
        part = held[: character_boundary(held[:-1].rstrip(b"\r\n"))]
        rest = held[len(part) :]
        self._held = [rest]
        self._tail = rest[-_TAIL_BYTES:]
        self.held_bytes = len(rest)
        self.is_part = True
        return [part]


def is_one_event(data: bytes) -> bool:
    """Return whether this is one event and nothing else, with one kind of line ends, as nearly every read is."""
    if data.endswith(b"\n\n"):
        return data[0] != _LF and data.find(b"\n\n") == len(data) - 2 and b"\r" not in data
    if data.endswith(b"\r\n\r\n"):
        return data[0] != _CR and data.find(b"\r\n\r\n") == len(data) - 4 and _has_only_crlf(data)
    return False


def event_of_chunk(data: bytes) -> bytes | None:
    """Return the event if `data` is one HTTP chunk with one event with one kind of line ends; None for everything else.

    A relay calls this for each read of a steady stream, so it takes as few steps as possible: when the machine has done other
    things in between, each costs 0.5 µs.
    """
    digits, _, rest = data.partition(b"\r\n")
    size = len(rest) - 2
    if size < _SHORTEST or digits.strip(_HEX) or not digits or int(digits, 16) != size or rest[0] in b"\r\n":
        return None
    if rest.find(b"\r") == size:  # the chunk's own
        return rest[:size] if rest.find(b"\n\n") == size - 2 and rest.endswith(b"\n") else None
    if rest.find(b"\r\n\r\n") == size - 4 and rest.endswith(b"\r\n"):
        return rest[:size] if _has_only_crlf(rest) else None
    return None


def _has_only_crlf(data: bytes) -> bool:
    return data.count(b"\r\n") == data.count(b"\n") == data.count(b"\r")


def _cut(whole: bytes, *, begun: bool) -> list[bytes]:
    """Return the complete events that `whole` begins with. `begun`: the first one began before."""
    line_end = b"\r\n" if b"\r" in whole else b"\n"
    end = 2 * line_end
    uniform = line_end == b"\n" or _has_only_crlf(whole)
    if uniform and end + line_end not in whole and (begun or not whole.startswith(line_end)):
        events = whole.split(end)
        events.pop()
        return [event + end for event in events]
    events = []
    at = 0
    while at < len(whole):
        end_match = (None if begun else _empty_line(whole, at)) or _find_end(whole, at)
        if not end_match:
            break
        events.append(whole[at : end_match.end()])
        at = end_match.end()
        begun = False
    return events


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """The content of an event. `type` is `message` unless it names another; `data` are the values of its data lines, joined with LF.

    `data` is None if there is no data line: then nothing is dispatched, while a line without a value dispatches an empty text. It
    is bytes, for JSON in it has its own way to read invalid UTF-8. `id` and `retry_ms` are those of this event; the stream keeps
    the last id. `others` are unknown fields, and those whose values do not count: an id with NUL, a retry that is not made of
    digits. `is_terminated` is false if the empty line is missing: then the event should be discarded.
    """

    type: str = "message"
    data: bytes | None = None
    id: str | None = None
    retry_ms: int | None = None
    comments: tuple[bytes, ...] = ()
    others: tuple[tuple[bytes, bytes], ...] = ()
    is_terminated: bool = True

    @property
    def is_dispatched(self) -> bool:
        """True if a client that follows the specification passes it to the application."""
        return self.is_terminated and self.data is not None

    @property
    def text(self) -> str:
        """The data as text, invalid UTF-8 as U+FFFD; empty if there is none."""
        return (self.data or b"").decode("utf-8", "replace")


def parse(event: bytes, *, is_first: bool = False) -> SseEvent:
    """Read an event, which may hold any bytes. A byte order mark is ignored at the start of the first event of a stream."""
    lines = (event.removeprefix(BOM) if is_first else event).splitlines()
    kind = b""
    data: list[bytes] = []
    id = retry_ms = None
    comments: list[bytes] = []
    others: list[tuple[bytes, bytes]] = []
    for line in lines:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value
        elif name == b"id" and b"\0" not in value:
            id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            retry_ms = int(value)
        elif name:
            others.append((name, value))
        elif line:
            comments.append(value)
    return SseEvent(
        type=kind.decode("utf-8", "replace") or "message",
        data=b"\n".join(data) if data else None,
        id=id,
        retry_ms=retry_ms,
        comments=tuple(comments),
        others=tuple(others),
        is_terminated=bool(lines) and not lines[-1],
    )


def with_data(event: bytes, data: bytes, *, is_first: bool = False) -> bytes:
    """Return the event with other data and all else as it was: `parse` returns `data`. Each of its lines goes where one was.

    Raises:
        ValueError: if the event has no data, or the new data holds a CR.
    """
    if b"\r" in data:
        raise ValueError("CR ends a line of an event: no data can hold it")
    mark = BOM if is_first and event.startswith(BOM) else b""
    values = data.split(b"\n")
    lines: list[bytes] = []
    after_data = 0
    space = line_end = b""
    for line in event[len(mark) :].splitlines(keepends=True):
        content = line.rstrip(b"\r\n")
        name, _, value = content.partition(b":")
        if name != b"data":
            lines.append(line)
            continue
        line_end = line[len(content) :]
        space = b" " if value.startswith(b" ") else b""
        if values:
            lines.append(_data_line(values.pop(0), space, line_end))
        after_data = len(lines)
    if not after_data:
        raise ValueError("the event has no data")
    lines[after_data:after_data] = [_data_line(value, space, line_end or b"\n") for value in values]
    return mark + b"".join(lines)


def _data_line(value: bytes, space: bytes, line_end: bytes) -> bytes:
    if value.startswith(b" "):
        space = b" "  # a parser takes one away
    return b"data:%b%b%b" % (space, value, line_end)

"""Texts that a model's answer streams in pieces, one per event: events in, edits out for secrets that the pieces cut.

    data: {"delta":{"text":"my key is sk-"}}         →   data: {"delta":{"text":"my key is redacted-5f1d0c2a9b7e"}}
    data: {"delta":{"text":"0123456789abcdef"}}      →   data: {"delta":{"text":""}}

A piece is any string below a member `delta` (or `textDelta` and the like), the text of a choice, a candidate or a token, or
the content or response beside `done` (Ollama, whose events are lines), `stop` (llama.cpp) or a word for a piece, such as
`"type":"token"`: the shape tells, whatever the capture is of. The pieces of one text are joined, and edits of the text become
edits of its pieces. Where events have ids, the pieces of each id are joined too: some servers give an id to each text, others
to each event.

Frames that are recorded in parts are joined too, so that they can be read whole: records in, records and frames out; no
record overtakes another. Records wait while a frame among them has not ended. The waiting bytes are bounded: a frame that is
too long is given up.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ..records import Close, End, Frame, Open, Partial, Record
from ..wire.edits import Edit, event_edits, shift
from ..wire.json_spans import JsonWalk
from ..wire.jsonrpc import parse
from .encodings import JSON

_ENDS: Final = (b'"done"', b'"stop"', b'"token"', b'"chunk"', b'"completion"', b'"answer"', b'"append"', b'Chunk"')
_SIGNS: Final = (b'elta"', b'"choices"', b'"candidates"', *_ENDS)
_FLAT: Final = {
    ("message", "content"), ("message", "thinking"), ("response",), ("thinking",), ("content",), ("text",), ("chunk",),
    ("completion",), ("answer",), ("v",), ("data",), ("data", "chunk", "content"), (0, "content"),
    ("result", "artifact", "parts", 0, "text"),
}  # fmt: skip
"""Steps to a piece in an object that says by one of `_ENDS` that it is one, or whether it is the last."""

_OF_TOKEN: Final = ("token", "text")
"""Steps to a piece of Text Generation Inference, whose events have the index and the id of each token."""

_LISTS: Final = {"choices", "candidates"}
_TEXTS: Final = {"text", "content"}
_IDS: Final = ("id", "item_id", "messageId", "toolCallId", "progressToken")
_INDEXES: Final = ("index", "output_index", "content_index", "summary_index")
_JSON_NAMES: Final = {"arguments", "partial_json"}
"""Members whose joined pieces spell JSON."""

_Find: TypeAlias = Callable[[bytes], list[Edit]]
_Split: TypeAlias = Callable[[bytes, _Find, _Find], list[Edit]]
"""`event_edits` or `line_edits`: edits of an event by its data and by its other lines."""

MAX_HELD_BYTES: Final = 1 << 26
"""Limit of the bytes that wait for the end of a frame."""


class _Piece(NamedTuple):
    """A piece of a text: the number of its event, its offset in the data, its bytes as written, and the text that they mean."""

    event: int
    start: int
    raw: bytes
    text: bytes


class _Key(NamedTuple):
    """A key that is equal for the pieces of one text: whether it spells JSON, the type of the events, and the path in them."""

    is_json: bool
    kind: str
    path: tuple[Hashable, ...]


_Joined: TypeAlias = dict[_Key, dict[Hashable, list[_Piece]]]
"""Pieces by the key of their text, and by the ids of their events."""


def may_have_pieces(event: bytes) -> bool:
    """Return whether an event, or a part of one, may have a piece of a text."""
    return any(sign in event for sign in _SIGNS)


def pieces_of_body(body: bytes) -> list[bytes]:
    """Return the events of a body whose type does not say that it has some: lines of JSON, or an array of them; else none."""
    is_array = body.lstrip()[:1] == b"["
    if not (is_array or (body.startswith(b"{") and b"\n{" in body)) or not may_have_pieces(body):
        return []
    return [body] if is_array else body.splitlines(keepends=True)


def line_edits(line: bytes, in_data: _Find, _in_line: _Find) -> list[Edit]:
    """Return the edits of an event that is one line of JSON, as `event_edits` does."""
    return in_data(line.rstrip(b"\r\n"))


def has_pieces(event: bytes, split: _Split = event_edits) -> bool:
    """Return whether an event, or a part of one, has a piece of a text."""
    if not may_have_pieces(event):
        return False
    joined: _Joined = {}
    split(event, lambda data: _collect(joined, 0, data), _no_edits)
    return bool(joined)


def delta_edits(events: Sequence[bytes], payload: _Find, text: _Find, split: _Split = event_edits) -> list[Edit]:
    """Return edits of the joined events: those that `payload` makes of texts that spell JSON, and `text` of other texts.

    Edits of one event may overlap.
    """
    joined: _Joined = {}
    for number, event in enumerate(events):
        if may_have_pieces(event):
            split(event, lambda data, at=number: _collect(joined, at, data), _no_edits)  # type: ignore[misc]
    by_event: dict[int, list[Edit]] = {}
    for key, ids in joined.items():
        for pieces in _texts(ids):
            edits = (payload if key.is_json else text)(b"".join(piece.text for piece in pieces))
            for number, edit in _edits_of_pieces(pieces, edits):
                by_event.setdefault(number, []).append(edit)
    stream_edits: list[Edit] = []
    begin = 0
    for number, event in enumerate(events):
        edits = sorted(by_event.get(number, ()))
        moved = split(event, lambda _, edits=edits: edits, _no_edits) if edits else ()  # type: ignore[misc]
        stream_edits += shift(moved, begin)
        begin += len(event)
    return stream_edits


def _texts(by_ids: Mapping[Hashable, list[_Piece]]) -> Iterator[list[_Piece]]:
    """Yield the pieces of one key as one text, and where their events have several ids, those of each id."""
    if len(by_ids) == 1:
        yield from by_ids.values()
        return
    yield sorted(piece for pieces in by_ids.values() for piece in pieces)
    yield from (pieces for pieces in by_ids.values() if len(pieces) > 1)


def _no_edits(_: bytes) -> list[Edit]:
    return []


def _collect(joined: _Joined, number: int, data: bytes) -> list[Edit]:
    """Collect the pieces in an event's data; edit nothing."""
    message: Any = None
    walk = JsonWalk(data)
    is_flat = any(end in data for end in _ENDS)
    for leaf in walk.leaves(bare=False):
        if leaf.is_name or not leaf.is_string:
            continue
        steps = walk.steps
        if _is_piece(steps) or (is_flat and tuple(steps) in _FLAT):
            message = parse(data) if message is None else message
            raw = data[leaf.start : leaf.end]
            by_ids = joined.setdefault(_key(steps, message), {})
            by_ids.setdefault(_ids(steps, message), []).append(_Piece(number, leaf.start, raw, JSON.read(raw)))
    return []


def _is_piece(steps: Sequence[str | int]) -> bool:
    if tuple(steps) == _OF_TOKEN or any(_is_delta(step) for step in steps):
        return True
    return bool(steps) and steps[-1] in _TEXTS and not _LISTS.isdisjoint(steps)


def _is_delta(step: str | int) -> bool:
    return isinstance(step, str) and step.endswith(("delta", "Delta"))


def _ids(steps: Sequence[str | int], message: Any) -> Hashable:
    """Return the ids of the objects around the deltas."""
    ids: list[str] = []
    value = message
    for step in steps:
        if isinstance(value, dict):
            ids += (f"{name}={value[name]}" for name in _IDS if isinstance(value.get(name), str | int))
        if _is_delta(step):
            break
        value = _inner(value, step)
    return tuple(ids)


def _key(steps: Sequence[str | int], message: Any) -> _Key:
    """Return the key of the text that the piece at `steps` belongs to: objects that have an index are known by it."""
    if tuple(steps) == _OF_TOKEN:
        return _Key(is_json=False, kind="", path=_OF_TOKEN)
    path: list[Hashable] = []
    value = message
    kind = message.get("type") if isinstance(message, dict) else None
    kind = kind if isinstance(kind, str) else ""
    is_json = steps[-1] in _JSON_NAMES or any(name in kind for name in _JSON_NAMES)
    for step in steps:
        if isinstance(value, dict):
            path += (value[name] for name in _INDEXES if isinstance(value.get(name), int))
        value = _inner(value, step)
        has_index = isinstance(value, dict) and isinstance(value.get("index"), int)
        path.append(None if isinstance(step, int) and (has_index or not path) else step)
    return _Key(is_json, kind, tuple(path))


def _inner(value: Any, step: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    return value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else None


def _edits_of_pieces(pieces: Sequence[_Piece], edits: Sequence[Edit]) -> Iterator[tuple[int, Edit]]:
    """Turn edits of the joined text into edits of the data of events. A replacement goes into the piece in which it begins."""
    begin = first = 0
    for piece in pieces:
        end = begin + len(piece.text)
        while first < len(edits) and edits[first].end <= begin:
            first += 1
        own: list[Edit] = []
        for edit in edits[first:]:
            if edit.start >= end:
                break
            start = max(edit.start, begin)
            new = edit.new if start == edit.start else b""
            own.append(Edit(start - begin, min(edit.end, end) - begin, new, edit.kind))
        yield from ((piece.event, edit) for edit in JSON.back(piece.raw, own, piece.start))
        begin = end


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

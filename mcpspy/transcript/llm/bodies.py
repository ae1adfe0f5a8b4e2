"""Bodies of model API traffic, from frames: `Payload` joins and decompresses one, `AnswerDecoder` makes an answer of a response.

How an API spells the data of an event is left to its assembler (`apis`). A body that cannot be read is empty and has a flaw.
"""

from typing import Final

import msgspec

from ...records import Frame
from ...wire.encodings import Decompressor, MissingDecoderError, decode_body
from ...wire.sse import SseEvent, SseEvents, parse
from ..http.head import EVENT_STREAM, Head
from ..outcome import HTTP_ERRORS
from .apis import assembler
from .json_values import json_value, refusal_text
from .prompt import Answer, Api

_LIKE_EVENTS: Final = (b"data:", b"event:", b":")
"""Beginnings of an event stream, whatever content type its head names."""


class Payload:
    """A body that is collected and then decoded in one piece. `flaw` is set by `take`."""

    __slots__ = ("_encoding", "_frames", "flaw")

    def __init__(self, head: Head) -> None:
        self._encoding = head.get("content-encoding")
        self._frames: list[Frame] = []
        self.flaw = ""

    def add(self, frame: Frame) -> None:
        """Append a frame."""
        self._frames.append(frame)

    def take(self) -> bytes:
        """Return the body, decoded, and let go of its frames."""
        frames, self._frames = self._frames, []
        if any(not frame.data and frame.length for frame in frames):
            self.flaw = "the body was not recorded"
            return b""
        data = b"".join(frame.data for frame in frames)
        try:
            return decode_body(data, self._encoding.encode("utf-8", "replace")) if self._encoding else data
        except MissingDecoderError as error:
            self.flaw = f"the body is compressed with {error.coding}, which cannot be decoded here"
        except ValueError as error:
            self.flaw = f"the body is not in its content encoding: {error}"
        return b""


class AnswerDecoder:
    """The answer in one response, fed its frames. `first_ns` is the time of the first event with content."""

    __slots__ = (
        "_assembler", "_cut", "_flaws", "_is_first", "_last", "_made", "_parts", "_payload", "_status", "_unpacking", "comments",
        "events", "first_ns",
    )  # fmt: skip

    def __init__(self, api: Api, head: Head, *, is_cut_into_events: bool) -> None:
        self._assembler = assembler(api)
        self._status = head.status
        is_stream = is_cut_into_events or head.media_type == EVENT_STREAM
        self._payload = None if is_stream else Payload(head)
        self._unpacking = Decompressor(head.get("content-encoding")) if is_stream and not is_cut_into_events else None
        self._cut = SseEvents()
        self._parts: list[Frame] = []
        self._is_first = True
        self._last: SseEvent | None = None
        self._flaws: dict[str, None] = {}
        self._made: Answer | None = None
        self.events = 0
        self.comments = 0
        self.first_ns: int | None = None

    @property
    def answer(self) -> Answer:
        """The answer, as far as it was received."""
        if self._made is None:
            made = self._assembler.answer
            self._made = msgspec.structs.replace(made, flaws=(*made.flaws, *self._flaws)) if self._flaws else made
        return self._made

    @property
    def id(self) -> str:
        """The answer's id, by which a prompt may continue it; empty until it is known."""
        return self._assembler.draft.id

    def feed(self, frame: Frame, at_ns: int) -> None:
        """Take in a frame of the response."""
        if self._payload is not None:
            self._payload.add(frame)
            return
        self._made = None
        if not frame.data and frame.length:
            self._flaws["a part of the stream was not recorded"] = None
        elif self._unpacking is not None:
            self._read_bytes(self._unpacking.feed(frame.data), at_ns)
        elif frame.part:
            self._parts.append(frame)
        else:
            data = b"".join((*(part.data for part in self._parts), frame.data)) if self._parts else frame.data
            self._parts.clear()
            self._read_event(data, at_ns)

    def close(self, at_ns: int, *, is_cut: bool) -> None:
        """End the response; `is_cut`: before its framing ended."""
        self._made = None
        if self._payload is not None:
            self._read_body(self._payload, at_ns, is_cut=is_cut)
        else:
            self._end_stream(at_ns, is_cut=is_cut)
        self._assembler.close(is_cut=is_cut)
        answer = self.answer
        if is_cut and not answer.is_whole:
            self._flaws["the answer is cut short"] = None
        elif answer.deltas and not answer.is_whole and not answer.error:
            self._flaws["the stream ended without the event that ends an answer"] = None
        self._made = None

    def damage(self) -> None:
        """Add a flaw: records of the capture were lost while the response went on."""
        self._made = None
        self._flaws["records of the capture were lost here"] = None

    # A stream

    def _read_bytes(self, data: bytes, at_ns: int) -> None:
        """Cut decompressed bytes into events."""
        for piece in self._cut.feed(data):
            self._read_event(piece, at_ns)

    def _read_event(self, data: bytes, at_ns: int) -> None:
        event = parse(data, is_first=self._is_first)
        self._is_first = False
        self.comments += len(event.comments)
        if event.data is None:
            return
        self.events += 1
        if event.is_terminated:
            self._assemble(event, at_ns)
        else:
            self._last = event

    def _assemble(self, event: SseEvent, at_ns: int) -> None:
        if self._assembler.feed(event.type, event.data or b"", at_ns) and self.first_ns is None:
            self.first_ns = at_ns

    def _end_stream(self, at_ns: int, *, is_cut: bool) -> None:
        if self._unpacking is not None:
            self._read_bytes(self._unpacking.close(), at_ns)
            for piece in self._cut.close():
                self._read_event(piece, at_ns)
            if self._unpacking.flaw:
                self._flaws[self._unpacking.flaw] = None
        is_cut = is_cut or bool(self._parts)
        if self._last is not None and not is_cut:
            self._flaws["the last event lacks the empty line that ends it"] = None
            self._assemble(self._last, at_ns)
        elif self._last is not None or self._parts:
            self._flaws["the last event is cut short"] = None

    # A body

    def _read_body(self, payload: Payload, at_ns: int, *, is_cut: bool) -> None:
        data = payload.take()
        if payload.flaw:
            self._flaws[payload.flaw] = None
        if self._status >= HTTP_ERRORS:
            self._assembler.draft.refuse(refusal_text(json_value(data), data))
        elif data.lstrip().startswith(_LIKE_EVENTS):
            self._flaws["the response is an event stream, but its content type says otherwise"] = None
            for piece in (*self._cut.feed(data), *self._cut.close()):
                self._read_event(piece, at_ns)
            self._payload = None
            self._end_stream(at_ns, is_cut=is_cut)
        elif isinstance(body := json_value(data), dict):
            self._assembler.feed_body(body, at_ns)
        elif not payload.flaw and not is_cut:
            self._flaws["the body is not a JSON object"] = None

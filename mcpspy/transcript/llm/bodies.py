"""An answer on its way: frames of a response in, the answer as far as it came out. Bodies, events, and either of them compressed.

Refuses to know how an API spells what an event says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ...wire.decompression import Decompressor
from ...wire.encodings import MissingDecoderError, decoded
from ...wire.sse import SseEvent, SseEvents, parse
from ..http.head import EVENT_STREAM
from ..outcome import HTTP_ERRORS
from .apis import assembler
from .json_values import refusal_text, value

if TYPE_CHECKING:
    from ...records import Frame
    from ..http.head import Head
    from .model import Answer, Api


class Payload:
    """A body under way. `flaw` is known once it was asked for whole."""

    __slots__ = ("_encoding", "_frames", "flaw")

    def __init__(self, head: Head) -> None:
        self._encoding = head.get("content-encoding")
        self._frames: list[Frame] = []
        self.flaw = ""

    def add(self, frame: Frame) -> None:
        """More of it came."""
        self._frames.append(frame)

    def whole(self) -> bytes:
        """All that came. It is kept no longer."""
        frames, self._frames = self._frames, []
        if any(not frame.data and frame.length for frame in frames):
            self.flaw = "it was not recorded"
            return b""
        data = b"".join(frame.data for frame in frames)
        try:
            return decoded(data, self._encoding.encode("utf-8", "replace")) if self._encoding else data
        except MissingDecoderError as error:
            self.flaw = f"it is compressed with {error.coding}, which cannot be read here"
        except ValueError as error:
            self.flaw = f"it is not what its content encoding says: {error}"
        return b""


_LIKE_EVENTS: Final = (b"data:", b"event:", b":")
"""How a stream of events begins, whatever its head says it is."""


class AnswerDecoder:
    """The answer to one prompt. `first_ns` is when the first content came in an event; `id` the answer's, once it is known."""

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
        """As far as it came."""
        if self._made is None:
            made = self._assembler.answer
            self._made = msgspec.structs.replace(made, flaws=(*made.flaws, *self._flaws)) if self._flaws else made
        return self._made

    @property
    def id(self) -> str:
        """The answer's id, by which a prompt may go on with it."""
        return self._assembler.id

    def frame(self, frame: Frame, at_ns: int) -> None:
        """More of the response came."""
        if self._payload is not None:
            self._payload.add(frame)
            return
        self._made = None
        if not frame.data and frame.length:
            self._flaws["a part of the stream was not recorded"] = None
        elif self._unpacking is not None:
            self._bytes(self._unpacking.feed(frame.data), at_ns)
        elif frame.part:
            self._parts.append(frame)
        else:
            data = b"".join((*(part.data for part in self._parts), frame.data)) if self._parts else frame.data
            self._parts.clear()
            self._event(data, at_ns)

    def close(self, at_ns: int, *, is_cut: bool) -> None:
        """The response ended; `is_cut`: without what says that it is whole."""
        self._made = None
        if self._payload is not None:
            self._body(self._payload, at_ns, is_cut=is_cut)
        else:
            self._end_of_stream(at_ns, is_cut=is_cut)
        self._assembler.close(is_cut=is_cut)
        answer = self.answer
        if is_cut and not answer.is_whole:
            self._flaws["the answer is cut short"] = None
        elif answer.deltas and not answer.is_whole and not answer.error:
            self._flaws["the stream ended without a word that the answer is whole"] = None
        self._made = None

    def damage(self) -> None:
        """Records were lost."""
        self._made = None
        self._flaws["records of the capture were lost here"] = None

    # A stream

    def _bytes(self, data: bytes, at_ns: int) -> None:
        """What a compressed stream says next."""
        for piece in self._cut.feed(data):
            self._event(piece, at_ns)

    def _event(self, data: bytes, at_ns: int) -> None:
        event = parse(data, is_first=self._is_first)
        self._is_first = False
        self.comments += len(event.comments)
        if event.data is None:
            return
        self.events += 1
        if event.is_terminated:
            self._feed(event, at_ns)
        else:
            self._last = event

    def _feed(self, event: SseEvent, at_ns: int) -> None:
        if self._assembler.feed(event.type, event.data or b"", at_ns) and self.first_ns is None:
            self.first_ns = at_ns

    def _end_of_stream(self, at_ns: int, *, is_cut: bool) -> None:
        if self._unpacking is not None:
            self._bytes(self._unpacking.close(), at_ns)
            for piece in self._cut.close():
                self._event(piece, at_ns)
            if self._unpacking.flaw:
                self._flaws[self._unpacking.flaw] = None
        is_cut = is_cut or bool(self._parts)
        if self._last is not None and not is_cut:
            self._flaws["the last event lacks the empty line that ends it"] = None
            self._feed(self._last, at_ns)
        elif self._last is not None or self._parts:
            self._flaws["the last event is cut short"] = None

    # A body

    def _body(self, payload: Payload, at_ns: int, *, is_cut: bool) -> None:
        data = payload.whole()
        if payload.flaw:
            self._flaws[payload.flaw] = None
        if self._status >= HTTP_ERRORS:
            self._assembler.refused(refusal_text(value(data), data))
        elif data.lstrip().startswith(_LIKE_EVENTS):
            self._flaws["the response is a stream of events, and does not say so"] = None
            for piece in (*self._cut.feed(data), *self._cut.close()):
                self._event(piece, at_ns)
            self._payload = None
            self._end_of_stream(at_ns, is_cut=is_cut)
        elif isinstance(body := value(data), dict):
            self._assembler.whole(body, at_ns)
        elif not payload.flaw and not is_cut:
            self._flaws["the body is no JSON object"] = None

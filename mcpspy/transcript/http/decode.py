"""Frames of HTTP to bodies and SSE events, decompressed, with the JSON-RPC messages in them.

The stages are those of stdio's `decoder`: parts are joined, payloads are decoded, flaws are named. Nothing is paired here.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from ...records import SERVER, Frame, Side
from ...wire.encodings import DECODERS, Decoding, MissingDecoderError, decode_body
from ...wire.jsonrpc import malformed
from ...wire.sse import BOM, SseEvent, SseEvents, parse
from ..correlator import appended
from ..decoder import join_parts
from ..envelope import message_of, messages, typed_message
from ..message import SEALED, Message, Place
from ..model import CaptureInfo
from .head import Head
from .payloads import DONE, body_pieces

_SIGNS: Final = {"gzip": b"\x1f\x8b", "x-gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
"""The first bytes of what is encoded (RFC 1952, section 2.3.1; RFC 8878, section 3.1.1)."""

_TRANSFER_CODINGS: Final = ("", "chunked", "identity")
_CONTENT_CODINGS: Final = ("", "identity", *(coding.decode() for coding in DECODERS))

MESSAGE: Final = "message"
"""The type of events that carry messages, and of events that name no type."""


class Unit(NamedTuple):
    """The content of one frame: its messages, and on a stream of events the event itself."""

    frame: Frame
    messages: Sequence[Message] = ()
    event: SseEvent | None = None
    damaged: bool = False
    """True if records were lost within it, or just before it."""
    anomaly: str = ""
    """The name of an anomaly, if its bytes are not what the head says: `not-encoded`, `json-for-events`."""


class BodyReader(msgspec.Struct, eq=False, gc=False):
    """The reader of a body that `sender` sends. `answers` says that JSON-RPC is due."""

    info: CaptureInfo
    sender: Side
    head: Head
    answers: bool

    def unit(self, frame: Frame, *, damaged: bool) -> Unit:
        """Return the unit of a whole body."""
        is_json, encoding, unread_coding = body_facts(self.head)
        data, anomaly = frame.data, ""
        if not data and frame.length:
            return Unit(frame, self.unread(frame, "not recorded"), None, damaged)
        if encoding:
            if not damaged and not is_encoded(frame, encoding):
                anomaly = "not-encoded"
            try:
                data = _read(data, encoding)
            except MissingDecoderError as error:
                return Unit(frame, self.unread(frame, f"{SEALED} {error.coding}"), None, damaged, anomaly)
        message = typed_message(self.info, self.sender, frame, data)
        if message is not None:
            return Unit(frame, (message,), None, damaged, anomaly)
        pieces = body_pieces(data, is_json=is_json and not unread_coding, answers=self.answers)
        return Unit(frame, [message_of(self.info, self.sender, frame, piece) for piece in pieces], None, damaged, anomaly)

    def unread(self, frame: Frame, reason: str) -> Sequence[Message]:
        """Return a message that cannot be read, if one is due."""
        is_due = self.answers and body_facts(self.head)[0]
        return (message_of(self.info, self.sender, frame, malformed(frame.data, reason)),) if is_due else ()


def body_facts(head: Head) -> tuple[bool, str, str]:
    """Return whether a body is JSON, its content encoding, and the coding of it that nobody here can undo."""
    if head.body is None:
        is_json = head.media_type == "application/json" or head.media_type.endswith("+json")
        head.body = is_json, head.get("content-encoding"), _unread_coding(head)
    return head.body


class EventReader(msgspec.Struct, eq=False, gc=False):
    """The reader of a server's stream of events."""

    info: CaptureInfo
    is_first: bool = True

    def unit(self, frame: Frame, *, damaged: bool) -> Unit:
        """Return the unit of a whole event."""
        if not frame.data and frame.length:
            return Unit(frame, self.unread(frame, "not recorded"), damaged=damaged)
        event = parse(frame.data, is_first=self.is_first)
        self.is_first = False
        anomaly = "json-for-events" if event.data is None and frame.data.lstrip()[:1] == b"{" else ""
        return Unit(frame, self._messages(frame, event), event, damaged, anomaly)

    def _messages(self, frame: Frame, event: SseEvent) -> Sequence[Message]:
        if not carries_message(event):
            return ()
        if not event.is_terminated:
            return (message_of(self.info, SERVER, frame, malformed(event.data or b"", "cut short")),)
        return messages(self.info, SERVER, frame, event.data or b"")

    def unread(self, frame: Frame, reason: str) -> Sequence[Message]:
        """Return a message that cannot be read."""
        return (message_of(self.info, SERVER, frame, malformed(frame.data, reason)),)


class FrameDecoder(msgspec.Struct, eq=False, gc=False):
    """The units of a stream: one for each frame, joined from its parts."""

    reader: BodyReader | EventReader
    held: Sequence[Frame] = ()
    damaged: bool = False

    def feed(self, frame: Frame) -> Sequence[Unit]:
        """Return the unit that `frame` completed."""
        if frame.part or self.held:
            self.held = appended(self.held, frame)
            if frame.part:
                return ()
            frame, self.held = join_parts(self.held), ()
        unit = self.reader.unit(frame, damaged=self.damaged)
        self.damaged = False
        return (unit,)

    def forget(self) -> None:
        """Forget the parts of a frame whose last part is not fed."""
        self.held = ()

    def close(self) -> Sequence[Unit]:
        """Return what was cut short: no reader takes half a body, or half an event (WHATWG HTML, section 9.2.6)."""
        if not self.held:
            return ()
        frame, self.held = join_parts(self.held), ()
        return (Unit(frame, self.reader.unread(frame, "cut short")),)


class CompressedEventDecoder:
    """The units of a stream of events in a content encoding."""

    __slots__ = ("_decoder", "_encoding", "_events", "_has_begun", "_info", "damaged")

    def __init__(self, info: CaptureInfo, encoding: str) -> None:
        self._info = info
        self._encoding = encoding
        self._events = CompressedEvents(encoding)
        self._decoder = FrameDecoder(EventReader(info))
        self._has_begun = False
        self.damaged = False

    def feed(self, frame: Frame) -> list[Unit]:
        """Return the events that `frame` completed."""
        units: list[Unit] = []
        if not self._has_begun and frame.data:
            self._has_begun = True
            if not self.damaged and not is_encoded(frame, self._encoding):
                units.append(Unit(frame, anomaly="not-encoded"))
        self._decoder.damaged, self.damaged = self._decoder.damaged or self.damaged, False
        return units + [unit for event in self._events.feed(frame) for unit in self._decoder.feed(event)]

    def forget(self) -> None:
        """Do nothing: its frames pass without intercepts."""

    def close(self) -> list[Unit]:
        """Return the event that was cut short, and what could not be read."""
        units = [unit for event in self._events.close() for unit in self._decoder.feed(event)] + [*self._decoder.close()]
        if self._events.unread:
            unread = join_parts(self._events.unread)
            message = message_of(self._info, SERVER, unread, malformed(unread.data, self._events.why))
            units.append(Unit(unread, (message,), damaged=self._decoder.damaged))
        return units


class CompressedEvents:
    """Frames of compressed events to frames of the events, as soon as they can be read; these have the numbers of the former.

    Their times are those of the bytes that completed them, a nanosecond apart, so that they stay in order. What cannot be read is
    `unread`, and `why` says why not.
    """

    __slots__ = ("_cut", "_decoding", "_encoding", "_first_ns", "_last", "unread", "why")

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.encode("utf-8", "replace")
        self._cut = SseEvents()
        self._decoding: Decoding | None = None
        self._first_ns: int | None = None
        """The time of the first byte of an event that has not ended."""
        self._last: Frame | None = None
        self.unread: list[Frame] = []
        self.why = ""

    def feed(self, frame: Frame) -> list[Frame]:
        """Return the events that `frame` completed, and parts of a large one."""
        if self.unread or not frame.length:
            self.unread += [frame] if self.unread else []
            return []
        try:
            data = self._decoded(frame)
        except MissingDecoderError as error:
            self.why = f"{SEALED} {error.coding}"
        except ValueError:
            self.why = "cannot be decompressed"
        else:
            self._last = frame
            return self._frames(frame, self._cut.feed(data), is_part=self._cut.is_part)
        self.unread.append(frame)
        return []

    def close(self) -> list[Frame]:
        """Return the event whose end has not come."""
        return [] if self._last is None else self._frames(self._last, self._cut.close())

    def _decoded(self, frame: Frame) -> bytes:
        """Decode a frame; return all as they are if the encoding is unknown, or wrong from the beginning. Raises: ValueError."""
        if not frame.data:
            raise ValueError("not recorded")
        if self._decoding is not None:
            return self._decoding.feed(frame.data)
        try:
            self._decoding = Decoding(self._encoding)
            return self._decoding.feed(frame.data)
        except MissingDecoderError:
            raise
        except ValueError:
            self._decoding = Decoding(b"")
            return frame.data

    def _frames(self, frame: Frame, pieces: list[bytes], *, is_part: bool = False) -> list[Frame]:
        frames: list[Frame] = []
        for at, piece in enumerate(pieces):
            first_ns = frame.first_ns if at or self._first_ns is None else self._first_ns
            part = is_part and piece is pieces[-1]
            frames.append(Frame(frame.stream, frame.at_ns + at, first_ns, piece, part, frame.number))
        if pieces or self._first_ns is None:
            self._first_ns = frame.first_ns if self._cut.held_bytes else None
        return frames


def place_message(units: Sequence[Unit], frame: Frame, place: Place) -> None:
    """Let the only message of a frame know where it is in the capture's file, if its bytes are there as they are."""
    if len(units) == 1 and units[0].frame is frame and len(units[0].messages) == 1:
        event, message = units[0].event, units[0].messages[0]
        place.is_event = event is not None
        if message.payload == (frame.data if event is None else event.data) and not frame.data.startswith(BOM):
            message.place = place


StreamDecoder: TypeAlias = FrameDecoder | CompressedEventDecoder


def _read(data: bytes, encoding: str) -> bytes:
    """Decode a body; return it as it is if its encoding is unknown or wrong. Raises: MissingDecoderError: if a library is missing."""
    if not encoding:
        return data
    try:
        return decode_body(data, encoding.encode("utf-8", "replace"))
    except MissingDecoderError:
        raise
    except ValueError:
        return data


def is_encoded(frame: Frame, encoding: str) -> bool:
    """Return whether a whole body begins as its only encoding does, if that is gzip or zstd: the others have no sign of their own."""
    sign = _SIGNS.get(encoding.strip().lower()) if encoding else None
    return sign is None or not frame.data or frame.data.startswith(sign)


def _unread_coding(head: Head) -> str:
    for name, known in (("transfer", _TRANSFER_CODINGS), ("content", _CONTENT_CODINGS)):
        for coding in head.get(f"{name}-encoding").lower().split(","):
            if (coding := coding.strip()) not in known:
                return f"the {name} coding {coding}"
    return ""


def readable(data: bytes, encoding: str) -> bytes:
    """Decode a body as far as that is possible here; empty if it is not."""
    try:
        return _read(data, encoding)
    except MissingDecoderError:
        return b""


def carries_message(event: SseEvent) -> bool:
    """Return whether an event carries a message: not if it has no data, another type, or the end mark of chat completions."""
    return event.type == MESSAGE and bool(event.data) and (event.data or b"").strip() != DONE

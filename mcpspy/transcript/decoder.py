"""Frames of stdio to messages and log lines: parts are joined, payloads are cut, flaws are named.

A frame of stdin or stdout is a payload, a line on stderr is a line of the server's log. `http.decode` does the same for HTTP.
Nothing is paired here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from ..records import BESIDE, CLIENT, SERVER, Frame, Intercept, Open, Side
from ..wire.jsonrpc import Piece, malformed, may_begin
from ..wire.lines import Lines, flaw_of
from .envelope import message_of, messages, typed_message
from .message import Place
from .model import CaptureInfo, ChannelEvent, Kind, Log, Message, Row

if TYPE_CHECKING:
    from ..usual_lines import FrameLine
    from .intercepts import InterceptedFrames

_END: Final = slice(-2, None)

Decoded: TypeAlias = Message | Log | ChannelEvent

_STDIO: Final[tuple[tuple[Side, str], ...]] = ((CLIENT, "stdin"), (SERVER, "stdout"), (SERVER, "stderr"))
"""Sender and name of a stdio tap's streams, by their numbers: for captures whose `open` records are missing."""


class _StdioStream:
    """One stream: the parts of an unfinished frame, and whether records are missing since the last whole frame.

    `left_out_bytes` is the size of parts that are not held, after the first part of a frame that `is_noise`.
    """

    __slots__ = ("damaged", "held", "is_log", "is_noise", "left_out_bytes", "sender")

    def __init__(self, sender: Side, name: str) -> None:
        self.sender: Side = sender
        self.is_log = name == "stderr"
        self.held: list[Frame] = []
        self.is_noise = False
        self.left_out_bytes = 0
        self.damaged = False

    def hold(self, part: Frame, *, keeps_noise: bool) -> None:
        """Hold a part until the frame is whole."""
        if self.is_noise and self.held:
            self.left_out_bytes += part.length
            return
        if not self.held:
            self.is_noise = not keeps_noise and (self.is_log or not may_begin(part.data))
        self.held.append(part)

    def take(self, *last: Frame) -> Frame:
        """Return the held parts and the last one as one frame."""
        return join_parts([*self.held, *last])

    def forget(self) -> None:
        """Hold nothing any more."""
        self.held = []
        self.left_out_bytes = 0
        self.damaged = False


class Decoder:
    """Messages and log lines from the frames of one capture; a channel event for a frame of an unknown stream.

    `open` makes a stream known, `damage` says that records are missing here, `close` returns the frames that were cut short.
    Unless it `keeps_noise`, it reads only the first and the last part of a frame that is a line of a log, or cannot be a message.
    """

    __slots__ = ("_info", "_intercepted", "_keeps_noise", "_streams")

    def __init__(self, info: CaptureInfo, *, keeps_noise: bool = True) -> None:
        self._info = info
        self._keeps_noise = keeps_noise
        self._streams: dict[int, _StdioStream] = {}
        self._intercepted: InterceptedFrames | None = None

    def intercept(self, record: Intercept) -> tuple[()]:
        """Take in what was done to the next frame. Nothing is complete with that."""
        self._frames().add(record)
        return ()

    def restart(self) -> tuple[()]:
        """Take in that mcpspy restarts the server: from now on it sends messages of its own."""
        self._info.restarted = True
        self._frames()
        return ()

    def _frames(self) -> InterceptedFrames:
        if self._intercepted is None:
            from .intercepts import InterceptedFrames  # hardly any capture has intercepts

            self._intercepted = InterceptedFrames(self._info)
        return self._intercepted

    def mark_requests(self, rows: Sequence[Row]) -> list[Row]:
        """Mark the requests among `rows` whose answers an intercept kept back, and return their rows."""
        return [] if self._intercepted is None else self._intercepted.mark_requests(rows)

    def open(self, record: Open) -> None:
        """Take in the beginning of a stream."""
        self._info.streams[record.stream] = record
        is_apart = record.transaction or record.connection or BESIDE in record.extra
        if not is_apart and record.framing == Lines.name:
            self._streams[record.stream] = _StdioStream(record.sender, record.name)

    def damage(self) -> None:
        """Note that records are missing here: the next frame of each stream may lack its beginning, or its middle."""
        for stream in self._streams.values():
            stream.damaged = True

    def feed(self, frame: Frame) -> Sequence[Decoded]:
        """Return what `frame` completed, on the transcript's clock."""
        stream = self._streams.get(frame.stream) or self._unopened(frame)
        if stream is None:
            return [ChannelEvent(self._info.index, frame.at_ns + self._info.shift_ns, frame)]
        if frame.part:
            stream.hold(frame, keeps_noise=self._keeps_noise)
            return []
        if self._intercepted is not None and not stream.is_log:
            return self._intercepted.decoded(frame, lambda seen: self._whole(stream, seen), stream.forget)
        return self._whole(stream, frame)

    def _whole(self, stream: _StdioStream, frame: Frame) -> Sequence[Decoded]:
        """Return what the last part of a frame completed."""
        if stream.held or stream.damaged:
            return self._doubtful(stream, frame)
        return [self._log(frame)] if stream.is_log else self._messages(stream, frame)

    def message_on(self, line: FrameLine) -> Message | None:
        """Return the message on a line of the capture; None if `feed` has to look at its record."""
        stream = self._streams.get(line.stream)
        if stream is None or line.part or stream.held or stream.damaged or stream.is_log or self._intercepted is not None:
            return None
        text = line.text
        if text[_END] != "}\n":
            return None
        frames = self._info.frames
        place = None if line.place is None or frames is None else Place(frames, line.place)
        return typed_message(self._info, stream.sender, line, text, place)

    def close(self) -> list[Decoded]:
        """Return the frames whose last part never came."""
        return [self._cut_short(stream) for stream in self._streams.values() if stream.held]

    def _unopened(self, frame: Frame) -> _StdioStream | None:
        header = self._info.header
        is_stdio = header is None or header.tapped.get("transport", "stdio") == "stdio"
        if not is_stdio or frame.stream in self._info.streams or not 0 <= frame.stream < len(_STDIO):
            return None
        sender, name = _STDIO[frame.stream]
        self.open(Open(at_ns=frame.at_ns, stream=frame.stream, sender=sender, name=name))
        return self._streams[frame.stream]

    def _doubtful(self, stream: _StdioStream, frame: Frame) -> Sequence[Decoded]:
        """Return the messages of the last part of a frame, or of a frame before which records are missing."""
        damaged, has_parts = stream.damaged, bool(stream.held)
        if stream.is_log:
            log = self._log(stream.take(frame))
            stream.forget()
            return [log]
        decoded = self._messages(stream, stream.take(frame))
        if damaged and has_parts and decoded[0].kind is Kind.MALFORMED:
            # The end of the held frame is missing, or its middle: `frame` is read better by itself.
            return [self._cut_short(stream), *self._messages(stream, frame)]
        decoded[0].unkept_bytes += stream.left_out_bytes
        stream.forget()
        for message in decoded:
            if damaged and (has_parts or message.kind is Kind.MALFORMED):
                message.flaws = (*message.flaws, "damaged")
        return decoded

    def _cut_short(self, stream: _StdioStream) -> Message | Log:
        frame, left_out_bytes = stream.take(), stream.left_out_bytes
        stream.forget()
        if stream.is_log:
            return self._log(frame)
        message = self._message(stream, frame, malformed(frame.data, "cut short"))
        message.unkept_bytes += left_out_bytes
        return message

    def _log(self, frame: Frame) -> Log:
        return Log(self._info.index, frame.number, frame.at_ns + self._info.shift_ns, frame.data)

    def _messages(self, stream: _StdioStream, frame: Frame) -> list[Message]:
        data = frame.data
        if not data and frame.length:
            return [self._message(stream, frame, malformed(data, "not recorded"))]
        in_frame = messages(self._info, stream.sender, frame, data)
        if flaw := flaw_of(data):
            for message in in_frame:
                message.flaws = (*message.flaws, flaw)
        return in_frame

    def _message(self, stream: _StdioStream, frame: Frame, piece: Piece) -> Message:
        return message_of(self._info, stream.sender, frame, piece)


def join_parts(parts: Sequence[Frame]) -> Frame:
    """Return one frame for its parts; without data if one of the parts was not recorded."""
    if len(parts) == 1:
        return parts[0]
    first, last = parts[0], parts[-1]
    length = sum(part.length for part in parts)
    data = b"".join(part.data for part in parts) if all(part.data for part in parts) else b""
    return Frame(last.stream, last.at_ns, first.first_ns, data, length=length, number=last.number)

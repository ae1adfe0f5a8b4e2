"""Recorded events of HTTP streams: those that carry no message, and the bytes around the messages of the others.

Needs a transcript that keeps frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from ....lazy_pattern import lazy_pattern
from ....records import SERVER, Frame
from ....transcript.decoder import join_parts
from ....transcript.envelope import message_of
from ....transcript.http.assemble import ENDPOINT
from ....transcript.http.decode import CompressedEvents, carries_message
from ....transcript.http.head import EVENT_STREAM
from ....transcript.http.transaction import ScopeKind, Stream
from ....transcript.model import HTTP_REDIRECTS, CaptureInfo, Message, Transcript, UnpairedMessage
from ....wire.jsonrpc import malformed
from ....wire.sse import parse, with_data
from .answer import Transport

BARE_EVENT: Final = "an event without a message"
"""The reason of a message made of such an event: its bytes are the whole event."""

_id_value = lazy_pattern(rb"((?:\A|(?<=[\r\n]))id: ?)[^\r\n]*")


def bare_events(capture: CaptureInfo) -> Iterator[UnpairedMessage]:
    """Yield the events that carry no message, such as `[DONE]` or a comment, as malformed messages.

    An `endpoint` is a mock's own, with what came before it, and so is an event that only gives a stream of Streamable HTTP an id.
    """
    info = CaptureInfo(capture.index, shift_ns=capture.shift_ns)
    for transaction in capture.transactions.values():
        response = transaction.response
        if response is None or response.injected or transaction.status >= HTTP_REDIRECTS:
            continue
        is_announced = response.endpoint is None
        for at, frame in enumerate(event_frames(response)):
            event = parse(frame.data, is_first=at == 0)
            is_announced = is_announced or event.type == ENDPOINT
            if not is_announced:
                continue
            is_position = event.id is not None and not event.data and transaction.scope.kind is not ScopeKind.STREAM
            is_known = frame.number in transaction.redelivered or event.type == ENDPOINT or carries_message(event)
            if frame.data and not is_position and not is_known:
                yield UnpairedMessage(0, message_of(info, SERVER, frame, malformed(frame.data, BARE_EVENT)))


class RecordedEvents:
    """The bytes of the events of a transcript, as far as they were recorded over this transport. Live clients share it."""

    __slots__ = ("_captures", "_frames", "_is_sse")

    def __init__(self, transcript: Transcript, transport: Transport) -> None:
        self._captures = transcript.captures
        self._is_sse = transport == "sse"
        self._frames: dict[tuple[int, int], dict[tuple[int, int], bytes]] = {}
        """By capture and stream: the events by the numbers of their records and their times. Read when the first is needed."""

    def event(self, recorded: Message, data: bytes, id: str | None) -> bytes | None:
        """Return the recorded event with other data, and with this id if it had one; None if it is not known."""
        frame = self._frame(recorded)
        if frame is None:
            return None
        try:
            event = frame if recorded.reason == BARE_EVENT else with_data(frame, data)
        except ValueError:
            return None
        return event if id is None else _id_value.sub(rb"\g<1>" + id.encode(), event, 1)

    def _frame(self, recorded: Message) -> bytes | None:
        capture = self._captures[recorded.capture]
        transaction = capture.transaction_of(recorded.stream)
        if transaction is None or (transaction.scope.kind is ScopeKind.STREAM) != self._is_sse:
            return None
        response = transaction.response
        if response is None or response.number != recorded.stream:
            return None
        key = recorded.capture, recorded.stream
        if key not in self._frames:
            self._frames[key] = {(frame.number, frame.at_ns): frame.data for frame in event_frames(response)}
        return self._frames[key].get((recorded.number, recorded.at_ns - capture.shift_ns))


def event_frames(stream: Stream) -> Iterator[Frame]:
    """Yield the events of a stream as frames, those in parts as one; nothing for a body that is no stream of events."""
    frames: Iterable[Frame] = stream.kept
    if stream.framing != "sse":
        if stream.head.media_type != EVENT_STREAM:
            return
        compressed = CompressedEvents(stream.head.get("content-encoding"))
        frames = chain(chain.from_iterable(map(compressed.feed, stream.kept)), compressed.close())
    held: list[Frame] = []
    for frame in frames:
        held.append(frame)
        if not frame.part:
            yield join_parts(held)
            held = []

"""The rows of an index: exchanges and messages without their payloads, which are read from the capture on request.

Each class adds to one of `transcript` how it is decoded from MessagePack: 0.7 µs an exchange, where reading the capture takes 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from ..capture.file.payloads import Payloads
from ..records import Damage
from ..transcript.model import ChannelEvent, Exchange, Log, Message, Row, UnpairedMessage

Reference: TypeAlias = int | bytes | tuple[tuple[int, int], ...]
"""A payload: the offset of its record's line; or itself; or offset and number of the record of each of its parts."""


class RecordedMessage(Message, eq=False, gc=False, array_like=True):
    """A message whose payload is in the capture."""

    sender: Literal["client", "server"]
    raw: Reference  # type: ignore[assignment]  # read through the property below
    source: Any = None


class RecordedLog(Log, eq=False, gc=False, array_like=True, tag="log"):
    """A line of the log whose bytes are in the capture."""

    raw: Reference  # type: ignore[assignment]  # as above
    source: Any = None


_of_message: Final = Message.raw
_of_log: Final = Log.raw


def _payload(reference: Reference, source: Payloads, number: int) -> bytes:
    if isinstance(reference, bytes):
        return reference
    if isinstance(reference, int):
        return source.data(reference, number)
    return b"".join(source.data(*part) for part in reference)


RecordedMessage.raw = property(  # type: ignore[assignment]  # the field keeps where the bytes are
    lambda message: _payload(_of_message.__get__(message), message.source, message.number)  # type: ignore[attr-defined]
)
RecordedLog.raw = property(  # type: ignore[assignment]
    lambda log: _payload(_of_log.__get__(log), log.source, log.number)  # type: ignore[attr-defined]
)


class RecordedExchange(Exchange, eq=False, gc=False, array_like=True, tag="exchange"):
    """An exchange of recorded messages."""

    request: RecordedMessage
    response: RecordedMessage | None = None
    notifications: Sequence[RecordedMessage] = ()
    cancelled: RecordedMessage | None = None
    more_responses: Sequence[RecordedMessage] = ()
    partials: Sequence[RecordedMessage] = ()
    transaction: None = None


class RecordedUnpaired(UnpairedMessage, eq=False, gc=False, array_like=True, tag="unpaired"):
    """An unpaired message whose payload is in the capture."""

    message: RecordedMessage


class EventEntry(msgspec.Struct, gc=False, array_like=True, tag="event"):
    """An event of the channel: offset and number of its record, or the members of damage, which no line has."""

    capture: int
    at_ns: int
    record: tuple[int, int] | dict[str, Any]

    def event(self, source: Payloads) -> ChannelEvent:
        """Return the event."""
        record = Damage(**self.record) if isinstance(self.record, dict) else source.record(*self.record)
        return ChannelEvent(self.capture, self.at_ns, record)


Entry: TypeAlias = RecordedExchange | RecordedUnpaired | RecordedLog | EventEntry

_decode = msgspec.msgpack.Decoder(list[Entry]).decode


def rows_from(block: bytes, source: Payloads) -> list[Row]:
    """Return the rows of a block. Raises: ValueError: if it is none; CaptureError."""
    try:
        entries = _decode(block)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError("no block of an index") from error
    return [_row(entry, source) for entry in entries]


def _row(entry: Entry, source: Payloads) -> Row:
    if isinstance(entry, RecordedExchange):
        entry.request.source = source
        if entry.response is not None:
            entry.response.source = source
        if entry.notifications or entry.more_responses or entry.partials or entry.cancelled:
            _join_messages(entry, source)
        return entry
    if isinstance(entry, EventEntry):
        return entry.event(source)
    if isinstance(entry, RecordedLog):
        entry.source = source
    else:
        entry.message.source = source
    return entry


def _join_messages(entry: RecordedExchange, source: Payloads) -> None:
    """Give the other messages of an exchange their source; its cancellation is one of the notifications."""
    for message in (*entry.notifications, *entry.more_responses, *entry.partials):
        message.source = source
    cancelled = entry.cancelled
    if cancelled is not None:
        entry.cancelled = next((message for message in entry.notifications if message.number == cancelled.number), cancelled)
        entry.cancelled.source = source

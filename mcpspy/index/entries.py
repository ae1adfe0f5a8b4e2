"""The rows of an index: exchanges and messages without their payloads, which are read from the capture on request.

Each class adds to one of `transcript` how it is decoded from MessagePack: 0.7 µs an exchange, where reading the capture takes 8.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from ..records import Damage
from ..transcript.llm.model_call import ModelCall
from ..transcript.model import ChannelEvent, Exchange, Log, Message, Row, UnpairedMessage
from ..wire.sse import parse
from .transactions import IndexedCapture, Place

Reference: TypeAlias = int | bytes | tuple[Place, ...]
"""A payload: the offset of its record's line, negative for the data of the event there; or itself; or the places of its parts."""


class RecordedMessage(Message, eq=False, gc=False, array_like=True):
    """A message whose payload is in the capture."""

    sender: Literal["client", "server"]
    raw: Reference  # type: ignore[assignment]  # read through the property below
    raw_bytes: int = 0
    source: Any = None

    @property
    def size(self) -> int:
        """The size of the payload, which is not read."""
        return self.raw_bytes + self.unkept_bytes


class RecordedLog(Log, eq=False, gc=False, array_like=True, tag="log"):
    """A line of the log whose bytes are in the capture."""

    raw: Reference  # type: ignore[assignment]  # as above
    source: Any = None


_of_message: Final = Message.raw
_of_log: Final = Log.raw


def _payload(reference: Reference, source: IndexedCapture, number: int) -> bytes:
    if isinstance(reference, bytes):
        return reference
    payloads = source.payloads
    if isinstance(reference, tuple):
        return b"".join(payloads.data(*part) for part in reference)
    return payloads.data(reference, number) if reference >= 0 else event_data(payloads.data(-reference, number))


def event_data(event: bytes) -> bytes:
    """Return the data of an event of SSE."""
    return parse(event, is_first=False).data or b""


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
    transaction: int | None = None  # type: ignore[assignment]  # its number, read through the property below


_of_exchange: Final = Exchange.transaction


def _carrier(exchange: RecordedExchange) -> Any:
    value: Any = _of_exchange.__get__(exchange)  # type: ignore[union-attr]
    if isinstance(value, int):
        value = exchange.request.source.transactions[value]
        _of_exchange.__set__(exchange, value)  # type: ignore[union-attr]
    return value


RecordedExchange.transaction = property(_carrier)  # type: ignore[assignment]


class RecordedUnpaired(UnpairedMessage, eq=False, gc=False, array_like=True, tag="unpaired"):
    """An unpaired message whose payload is in the capture."""

    message: RecordedMessage


class RecordedModelCall(ModelCall, eq=False, array_like=True, tag="model"):
    """A call of a model whose prompt is in the capture, and whose answer is MessagePack until somebody asks for it."""

    api: Literal["chat", "responses", "messages"]
    transaction: int  # type: ignore[assignment]  # its number, until it is joined
    payload: Reference = b""  # type: ignore[assignment]  # read through the property below
    assembly: msgspec.Raw | None = None  # type: ignore[assignment]
    source: Any = None

    @property
    def answer(self) -> Any:
        """The answer; None if there was no response."""
        from ..transcript.llm.prompt import Answer  # only where there are models

        if self.assembly is None:
            return None
        try:
            return msgspec.msgpack.decode(self.assembly, type=Answer)
        except msgspec.ValidationError:
            return msgspec.convert(json.loads(msgspec.msgpack.decode(self.assembly)), Answer)


def answer_entry(answer: Any) -> msgspec.Raw:
    """Return an answer as MessagePack: a map, or JSON in bytes if it has what MessagePack has not, such as half a character."""
    try:
        return msgspec.Raw(msgspec.msgpack.encode(answer))
    except (ValueError, OverflowError):
        return msgspec.Raw(msgspec.msgpack.encode(json.dumps(msgspec.to_builtins(answer)).encode()))


_of_call: Final = ModelCall.payload

RecordedModelCall.payload = property(  # type: ignore[assignment]
    lambda call: _payload(_of_call.__get__(call), call.source, 0)  # type: ignore[attr-defined]
)


class TransactionEntry(msgspec.Struct, gc=False, array_like=True, tag="transaction"):
    """A transaction that has a row of its own, by its number."""

    number: int


class EventEntry(msgspec.Struct, gc=False, array_like=True, tag="event"):
    """An event of the channel: offset and number of its record, or the members of damage, which no line has."""

    capture: int
    at_ns: int
    record: Place | dict[str, Any]

    def event(self, source: IndexedCapture) -> ChannelEvent:
        """Return the event."""
        record = Damage(**self.record) if isinstance(self.record, dict) else source.payloads.record(*self.record)
        return ChannelEvent(self.capture, self.at_ns, record)


Entry: TypeAlias = RecordedExchange | RecordedUnpaired | RecordedLog | EventEntry | TransactionEntry | RecordedModelCall

_decode = msgspec.msgpack.Decoder(list[Entry]).decode


def rows_from(block: bytes, source: IndexedCapture) -> list[Row]:
    """Return the rows of a block. Raises: ValueError: if it is none; CaptureError."""
    try:
        entries = _decode(block)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError("no block of an index") from error
    return [_row(entry, source) for entry in entries]


def _row(entry: Entry, source: IndexedCapture) -> Row:
    if isinstance(entry, RecordedExchange):
        entry.request.source = source
        if entry.response is not None:
            entry.response.source = source
        if entry.notifications or entry.more_responses or entry.partials or entry.cancelled:
            _join_messages(entry, source)
        return entry
    if isinstance(entry, TransactionEntry):
        return source.transactions[entry.number]
    if isinstance(entry, EventEntry):
        return entry.event(source)
    if isinstance(entry, RecordedModelCall):
        number: Any = entry.transaction
        entry.transaction = source.transactions[number]  # type: ignore[assignment]
        entry.source = source
        return entry
    if isinstance(entry, RecordedLog):
        entry.source = source
    else:
        entry.message.source = source
    return entry


def _join_messages(entry: RecordedExchange, source: IndexedCapture) -> None:
    """Give the other messages of an exchange their source; its cancellation is one of the notifications."""
    for message in (*entry.notifications, *entry.more_responses, *entry.partials):
        message.source = source
    cancelled = entry.cancelled
    if cancelled is not None:
        entry.cancelled = next((message for message in entry.notifications if message.number == cancelled.number), cancelled)
        entry.cancelled.source = source

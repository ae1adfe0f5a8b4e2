"""A part of a capture: chosen rows in, the records of these rows out, with the handshake that playing them needs.

First `see` every record, then ask which records it `keeps`.
"""

from collections.abc import Iterable

from ..records import Close, End, Exit, Frame, Gap, Header, Intercept, Note, Open, Partial, Record, Spawn, Stall
from ..transcript.http.transaction import Transaction
from ..transcript.mcp.methods import INITIALIZED, OPENINGS
from ..transcript.model import CaptureInfo, ChannelEvent, Exchange, Log, ModelCall, Row, Transcript, UnpairedMessage
from ..wire.sse import parse


class Excerpt:
    """The records of one capture of a transcript that these rows are made of. A batch is kept whole."""

    def __init__(self, transcript: Transcript, capture: CaptureInfo, rows: Iterable[Row]) -> None:
        self._numbers: set[int] = set()
        """The records of the chosen messages; of a frame in parts the last one."""
        self._transactions: set[int] = set()
        self._bodies: set[int] = set()
        """Streams of transactions that were chosen themselves: frames without a message are kept too."""
        self._others = {message.number for message in transcript.messages if message.capture == capture.index}
        self._streams: set[int] = set()
        self._events: set[int] = set()
        self._parts: dict[int, list[int]] = {}
        self._first: set[tuple[int, int]] = set()
        handshake = [row for row in transcript.rows if _opens(row)]
        for row in (*handshake, *rows):
            if row.capture == capture.index:
                self._choose(capture, row)
        self._others -= self._numbers

    def see(self, record: Record) -> None:
        """Take note of a record: which parts a frame has is known at its end."""
        if isinstance(record, Open):
            if not record.transaction or record.transaction in self._transactions:
                self._streams.add(record.stream)
                if record.framing == "sse":
                    self._events.add(record.stream)
        elif isinstance(record, Frame):
            parts = self._parts.setdefault(record.stream, [])
            parts.append(record.number)
            if record.part:
                return
            if record.number in self._numbers:
                self._numbers.update(parts)
                self._first.add((record.stream, record.first_ns))
            elif record.number in self._others:
                self._others.update(parts)
            parts.clear()
        elif isinstance(record, Close):
            self._others.update(self._parts.pop(record.stream, ()))

    def keeps(self, record: Record) -> bool:
        """Return whether a record belongs to the chosen rows, or is one that every capture has."""
        match record:
            case Header() | Spawn() | Exit() | End():
                return True
            case Open() | Close() | Stall():
                return record.stream in self._streams
            case Frame():
                return record.number in self._numbers or self._is_bare(record)
            case Partial():
                return (record.stream, record.first_ns) in self._first
            case Note():
                transaction = record.extra.get("transaction", 0)
                return not transaction or transaction in self._transactions
            case Gap():
                return True
            case Intercept():
                return record.frame in self._numbers
        return False

    def _is_bare(self, frame: Frame) -> bool:
        """Return whether a frame of a chosen stream has no message: an event without data, or one that names the endpoint."""
        if frame.number in self._others or frame.stream not in self._streams or frame.part:
            return False
        if frame.stream in self._events:
            event = parse(frame.data)
            return not event.data or event.type == "endpoint"
        return frame.stream in self._bodies

    def _choose(self, capture: CaptureInfo, row: Row) -> None:
        match row:
            case Exchange():
                self._numbers.update(message.number for message in row.messages)
            case UnpairedMessage():
                self._numbers.add(row.message.number)
            case Log():
                self._numbers.add(row.number)
            case ChannelEvent():
                self._numbers.add(row.record.number)
            case Transaction() | ModelCall():
                transaction = row.transaction if isinstance(row, ModelCall) else row
                for stream in (transaction.request, transaction.response):
                    if stream is not None:
                        self._bodies.add(stream.number)
        if isinstance(row, Exchange) and row.transaction is not None:
            self._transactions.add(row.transaction.number)
        if isinstance(row, Exchange | UnpairedMessage | Transaction | ModelCall):
            self._transactions.update(transaction.number for transaction in capture.transactions_of(row))


def _opens(row: Row) -> bool:
    """Return whether a row belongs to a handshake."""
    return (isinstance(row, Exchange) and row.method in OPENINGS) or (
        isinstance(row, UnpairedMessage) and row.message.method == INITIALIZED
    )

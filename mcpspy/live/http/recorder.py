"""Records of one HTTP message, from its head and pieces of its body: its `open`, its frames, its `close`.

The body is cut by its framing; a frame longer than 1 MiB comes in parts, so that memory stays bounded. Used by taps, mocks
and the clients of live servers. Bytes that are not HTTP, those after an upgrade and those from the point on where a message
is refused, are one endless body for each side; each read is a part of it.
"""

from __future__ import annotations

from os.path import basename

from ...records import CLIENT, SERVER, Close, Frame, Note, Open, Partial, Record, Side
from ...wire.framing import FRAMINGS, Framing
from ...wire.http_body import Body, ChunkSizes, WholeBody
from ...wire.sse import SseEvents

FLOW_BYTES = 8
"""A flowing body is recorded from this many bytes on; less waits for what comes next, so that something is left to complete it."""


class Numbers:
    """The numbers of a capture's streams, transactions and connections: the last that were given, and the next."""

    __slots__ = ("last_connection", "last_stream", "last_transaction")

    def __init__(self) -> None:
        self.last_connection = 0
        self.last_stream = -1
        self.last_transaction = 0

    def connection(self) -> int:
        self.last_connection += 1
        return self.last_connection

    def stream(self) -> int:
        self.last_stream += 1
        return self.last_stream

    def transaction(self) -> int:
        self.last_transaction += 1
        return self.last_transaction


class StreamRecorder:
    """One stream, from its head to its end. Each method returns the records that became due.

    `sender` is the side that sent it. Times are on the tap's clock. If the body `flows`, each piece of it is recorded as a part.
    """

    __slots__ = ("_framing", "_first_ns", "_flows", "_sizes", "_reported_ns", "framing", "is_open", "number", "sender")

    def __init__(self, number: int, sender: Side, framing: str, *, flows: bool = False) -> None:
        self.number = number
        self.sender: Side = sender
        self.is_open = True
        self.framing = framing
        self._framing: Framing = WholeBody(FLOW_BYTES) if flows else FRAMINGS[framing]()
        self._flows = flows
        self._sizes: ChunkSizes | None = None  # few requests and no short responses are chunked
        self._first_ns = 0
        self._reported_ns = -1

    def open(
        self,
        now_ns: int,
        head: bytes,
        *,
        transaction: int,
        connection: int,
        forwarded: bytes | None = None,
        injected: bool = False,
    ) -> Open:
        """Return the stream's `open` record."""
        return Open(
            at_ns=now_ns,
            stream=self.number,
            sender=self.sender,
            name="request" if self.sender == CLIENT else "response",
            framing=self.framing,
            connection=connection,
            transaction=transaction,
            head=head,
            forwarded=forwarded,
            injected=injected,
        )

    def feed(self, body: Body, now_ns: int, run: list[bytes] | None = None) -> list[Record]:
        """Return the frames that this piece of the body completed.

        With `run`, events that came in one chunk each go there instead, if they are the last of these frames.
        """
        was_begun = self._framing.held_bytes > 0
        began_ns = self._first_ns if was_begun else now_ns
        if body.chunks:
            if self._sizes is None:
                self._sizes = ChunkSizes()
            self._sizes.add(body.chunks)
        pieces = self._framing.feed(body.payload)
        records: list[Record] = []
        if (
            run is not None
            and pieces
            and self._sizes is not None
            and self.framing == SseEvents.name
            and not self._framing.is_part
        ):
            if was_begun:
                records.append(self._frame(pieces.pop(0), now_ns, began_ns))
                began_ns = now_ns
            if self._sizes.take_each(list(map(len, pieces))):
                run += pieces
                pieces = []
        for piece in pieces:
            records.append(self._frame(piece, now_ns, began_ns))
            began_ns = now_ns
        if pieces and self._framing.is_part:
            records[-1].part = True  # type: ignore[union-attr]  # it is a frame
        self._first_ns = began_ns
        return records

    @property
    def waits_since_ns(self) -> int | None:
        """The time since which the beginning of a frame waits for its end; None if none waits, or if that is recorded."""
        if self._flows:  # the few bytes held go with what comes next
            return None
        return self._first_ns if self.is_open and self._framing.held_bytes and self._reported_ns != self._first_ns else None

    def partial(self, now_ns: int) -> Partial:
        """Return the record of a frame that waits for its end, once for each."""
        self._reported_ns = self._first_ns
        return Partial(at_ns=now_ns, stream=self.number, first_ns=self._first_ns, data=self._framing.held)

    @property
    def held(self) -> bytes:
        """The bytes that wait for the end of a frame."""
        return self._framing.held

    @property
    def is_untouched(self) -> bool:
        """True if the body is one frame, and nothing of it has come."""
        return self.framing == WholeBody.name and not self._flows and not self._framing.held_bytes

    @property
    def is_between_events(self) -> bool:
        """True if a whole event that comes next, in a chunk of its own, is a frame that need not be fed."""
        return self.framing == SseEvents.name and self._framing.is_between and (self._sizes is None or self._sizes.is_between)

    def close(self, now_ns: int, by: str, how: str, *, trailers: bytes = b"", missing_bytes: int | None = None) -> list[Record]:
        """Return the rest of the body, and the stream's `close` record."""
        began_ns = self._first_ns if self._framing.held_bytes else now_ns
        records: list[Record] = [self._frame(rest, now_ns, began_ns) for rest in self._framing.close()]
        extra: dict[str, object] = {}
        if trailers:
            extra["trailers"] = trailers.decode("latin-1")
        if missing_bytes is not None:
            extra["missing_bytes"] = missing_bytes
        self.is_open = False
        records.append(Close(at_ns=now_ns, stream=self.number, by=by, how=how, extra=extra))
        return records

    def _frame(self, data: bytes, now_ns: int, began_ns: int) -> Frame:
        frame = Frame(self.number, now_ns, began_ns, data)
        if self._sizes is not None and (chunks := self._sizes.take(len(data))):
            frame.rare["chunks"] = chunks
        return frame


def note(now_ns: int, topic: str, text: str, connection: int, transaction: int = 0, *, by: str = "") -> Note:
    """Make a note about a connection, and about a transaction on it; 0 is none."""
    extra: dict[str, int | str] = {}
    if connection:
        extra["connection"] = connection
    if transaction:
        extra["transaction"] = transaction
    if by:
        extra["by"] = by
    return Note(at_ns=now_ns, topic=topic, text=text, extra=extra)


def half_closed(now_ns: int, connection: int, transaction: int) -> Note:
    """Note that the client closed its half of the connection before the response to a transaction ended."""
    text = "the client closed its half of the connection; it may wait for the response, or have left"
    return note(now_ns, "half-closed", text, connection, transaction, by=CLIENT)


def fault_text(error: BaseException) -> str:
    """Describe a fault of our own by its type and where it was raised, never by its message, which may hold a secret."""
    place, trace = "", error.__traceback__
    while trace is not None:
        place = f" in {basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"a fault of mcpspy's own, {type(error).__name__}{place}: it ends one connection, the others go on"


class OpaqueStreams:
    """The opaque bytes of one connection in both directions. Each method returns the records that became due."""

    __slots__ = ("_connection", "_numbers", "_streams")

    def __init__(self, numbers: Numbers, connection: int) -> None:
        self._numbers = numbers
        self._connection = connection
        self._streams: dict[str, StreamRecorder] = {}

    def feed(self, side: str, data: bytes, now_ns: int) -> list[Record]:
        """Record bytes that `side` sent."""
        if not data:
            return []
        records: list[Record] = []
        stream = self._streams.get(side)
        if stream is None:
            stream = StreamRecorder(self._numbers.stream(), CLIENT if side == CLIENT else SERVER, "body")
            self._streams[side] = stream
            records.append(stream.open(now_ns, b"", transaction=0, connection=self._connection))
        if stream.is_open:
            records.append(Frame(stream.number, now_ns, now_ns, data, part=True))
        return records

    def close(self, now_ns: int, by: str, how: str) -> list[Record]:
        """Record the end of the connection."""
        return [record for stream in self._streams.values() if stream.is_open for record in stream.close(now_ns, by, how)]

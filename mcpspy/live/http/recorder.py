"""What an HTTP tap writes down of one message: its stream opened, the frames of its body, its end.

Refuses to forward, and to know sockets. A body of events is cut into events, any other is one frame; what is longer than 1 MiB comes
in parts, so that memory stays bounded.
"""

from __future__ import annotations

from os.path import basename
from typing import TYPE_CHECKING

from ...records import CLIENT, Close, Frame, Note, Open, Partial, Record
from ...wire.body import WholeBody
from ...wire.framing import FRAMINGS
from ...wire.http_body import Body, ChunkSizes
from ...wire.sse import SseEvents

if TYPE_CHECKING:
    from ...records import Side
    from ...wire.framing import Framing

FLOW_BYTES = 8
"""Of a body that flows so much is recorded at once; less waits for what comes next, so that something is left to complete it."""


class Numbers:
    """Hands out the numbers of a capture's streams, transactions and connections."""

    __slots__ = ("connections", "streams", "transactions")

    def __init__(self) -> None:
        self.connections = 0
        self.streams = -1
        self.transactions = 0

    def connection(self) -> int:
        self.connections += 1
        return self.connections

    def stream(self) -> int:
        self.streams += 1
        return self.streams

    def transaction(self) -> int:
        self.transactions += 1
        return self.transactions


class Recorded:
    """One stream of a transaction, from its head to its end: each method returns the records that became due.

    `sender` is the side whose bytes these are. Times are those of the tap's clock. Of a body that `flows` each stretch is a part.
    """

    __slots__ = ("_cut", "_first_ns", "_flows", "_sizes", "_told_ns", "framing", "is_open", "number", "sender")

    def __init__(self, number: int, sender: Side, framing: str, *, flows: bool = False) -> None:
        self.number = number
        self.sender: Side = sender
        self.is_open = True
        self.framing = framing
        self._cut: Framing = WholeBody(FLOW_BYTES) if flows else FRAMINGS[framing]()
        self._flows = flows
        self._sizes: ChunkSizes | None = None  # few requests and no short responses are chunked
        self._first_ns = 0
        self._told_ns = -1

    def begun(
        self,
        now_ns: int,
        head: bytes,
        *,
        transaction: int,
        connection: int,
        forwarded: bytes | None = None,
        injected: bool = False,
    ) -> Open:
        """The stream's `open` record."""
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

    def took(self, body: Body, now_ns: int, run: list[bytes] | None = None) -> list[Record]:
        """The frames that this stretch of the body completed.

        Where `run` is given, events that follow them and came in one chunk each are put there instead.
        """
        was_begun = self._cut.held_bytes > 0
        began_ns = self._first_ns if was_begun else now_ns
        if body.chunks:
            if self._sizes is None:
                self._sizes = ChunkSizes()
            self._sizes.add(body.chunks)
        pieces = self._cut.feed(body.payload)
        records: list[Record] = []
        if run is not None and pieces and self._sizes is not None and self.framing == SseEvents.name and not self._cut.is_part:
            if was_begun:
                records.append(self._frame(pieces.pop(0), now_ns, began_ns))
                began_ns = now_ns
            if self._sizes.take_each(list(map(len, pieces))):
                run += pieces
                pieces = []
        for piece in pieces:
            records.append(self._frame(piece, now_ns, began_ns))
            began_ns = now_ns
        if pieces and self._cut.is_part:
            records[-1].part = True  # type: ignore[union-attr]  # it is a frame
        self._first_ns = began_ns
        return records

    @property
    def waits_since_ns(self) -> int | None:
        """Since when the beginning of a frame waits for its end; None where none does, or it has been told."""
        if self._flows:  # what it holds back does not wait, but goes with what comes next
            return None
        return self._first_ns if self.is_open and self._cut.held_bytes and self._told_ns != self._first_ns else None

    def partial(self, now_ns: int) -> Partial:
        """What waits for its end, told once."""
        self._told_ns = self._first_ns
        return Partial(at_ns=now_ns, stream=self.number, first_ns=self._first_ns, data=self._cut.held)

    @property
    def is_between_events(self) -> bool:
        """Whether a whole event that comes next, in a chunk of its own, is a frame that need not be taken."""
        return self.framing == SseEvents.name and self._cut.is_between and (self._sizes is None or self._sizes.is_between)

    def ended(self, now_ns: int, by: str, how: str, *, trailers: bytes = b"", missing_bytes: int | None = None) -> list[Record]:
        """What is left of the body, and the stream's `close` record."""
        began_ns = self._first_ns if self._cut.held_bytes else now_ns
        records: list[Record] = [self._frame(rest, now_ns, began_ns) for rest in self._cut.close()]
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
    """What a tap has to say of a connection, and of a transaction on it where it knows which; 0 is none."""
    extra: dict[str, int | str] = {}
    if connection:
        extra["connection"] = connection
    if transaction:
        extra["transaction"] = transaction
    if by:
        extra["by"] = by
    return Note(at_ns=now_ns, topic=topic, text=text, extra=extra)


def fault_text(error: BaseException) -> str:
    """Describe a fault of our own by its type and the place where it was raised, never by its message: that may be a secret."""
    place, trace = "", error.__traceback__
    while trace is not None:
        place = f" in {basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"a fault of mcpspy's own, {type(error).__name__}{place}: it ends one connection, the others go on"

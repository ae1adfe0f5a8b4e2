"""HTTP as it comes, of captures that grow: each head, chunk, event and end once, when it is there; as lines, or as JSON.

Refuses to wait: who follows a capture feeds it.
"""

from collections.abc import Iterable, Iterator, Sequence

from ...transcript.http.transaction import Stream, Transaction
from ...transcript.model import CaptureInfo, ModelCall, Numbered, Row, UnpairedMessage
from ..json.transactions import wire_state
from ..text.line import Line, fitted
from ..text.units import SECOND_NS
from .http_wire import CHUNK_NOTE, cut_note, heading, margin, note, room, timed_lines
from .wire_entries import TransactionEntries, WireEntry, WireLayout

EXPECTED_NS = 9_999 * SECOND_NS
"""What the margin is made for, since nobody knows how long it will last."""


class OngoingTransaction:
    """A transaction that goes on, and the rows that it carried by now."""

    __slots__ = ("_rows", "capture", "transaction")

    def __init__(self, transaction: Transaction, capture: CaptureInfo) -> None:
        self.transaction = transaction
        self.capture = capture
        self._rows: dict[int, None] = {}

    @property
    def rows(self) -> list[int]:
        """Their numbers, as they came."""
        return list(self._rows)

    @property
    def streams(self) -> Iterator[Stream]:
        """What was sent by now, in its order."""
        one = self.transaction
        yield from (stream for stream in (one.request, *one.interim, one.response) if stream is not None)

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        request = self.transaction.request
        return self.capture.closed or (self.transaction.over and (request is None or request.close is not None))

    def carries(self, row: int) -> None:
        """It carried a message of this row."""
        self._rows[row] = None


class _Transactions:
    """The transactions of captures that grow. Each is given out as long as it goes on, and once more."""

    __slots__ = ("_going", "_only_rows", "_rows", "_seen")

    def __init__(self, *, only_rows: bool) -> None:
        self._only_rows = only_rows
        self._going: dict[tuple[int, int], OngoingTransaction] = {}
        self._rows: list[Numbered] = []
        self._seen: dict[int, int] = {}  # how many of each capture are known

    def row(self, row: Row) -> None:
        """A row is new, or has changed."""
        if isinstance(row, Numbered):
            self._rows.append(row)

    def feed(self, captures: Sequence[CaptureInfo]) -> list[OngoingTransaction]:
        """Those that may have changed."""
        for capture in captures:
            count, known = len(capture.transactions), self._seen.get(capture.index, 0)
            self._seen[capture.index] = count
            newest = [one for _, one in zip(range(count - known), reversed(capture.transactions.values()), strict=False)]
            self._going.update(((capture.index, one.number), OngoingTransaction(one, capture)) for one in reversed(newest))
        for row in self._rows:
            for transaction in _of_row(row, captures[row.capture]):
                if going := self._going.get((row.capture, transaction.number)):
                    going.carries(row.row)
        self._rows = []
        found = [one for one in self._going.values() if one.rows or not self._only_rows]
        self._going = {key: one for key, one in self._going.items() if not one.over}
        return found


class LiveWire:
    """`row` takes what a transcript says is new, `feed` gives the lines; `only_rows`: of transactions with a row that was given."""

    __slots__ = ("_entries", "_explained", "_is_begun", "_layout", "_told", "_transactions", "_width")

    def __init__(self, width: int | None, *, only_rows: bool = False) -> None:
        self._width = width
        self._layout = WireLayout(room(width, margin(EXPECTED_NS)))
        self._transactions = _Transactions(only_rows=only_rows)
        self._entries: dict[OngoingTransaction, TransactionEntries] = {}
        self._is_begun = False
        self._told: Transaction | None = None
        self._explained: set[str] = set()

    def measure(self, width: int | None) -> None:
        """The screen is so wide now."""
        self._width, self._layout.room = width, room(width, margin(EXPECTED_NS))

    def interrupt(self) -> None:
        """Somebody else was told of between: it has to be said again whose the next lines are."""
        self._told = None

    def row(self, row: Row) -> None:
        """A row is new, or has changed: its transactions carry its number."""
        self._transactions.row(row)

    def feed(self, captures: Sequence[CaptureInfo]) -> list[Line]:
        """What came since the last time, of all transactions in the order in which it came."""
        found: list[tuple[int, int, WireEntry, OngoingTransaction]] = []
        is_chunked = False
        for going in self._transactions.feed(captures):
            entries = self._entries.get(going)
            if entries is None:
                entries = self._entries[going] = TransactionEntries(going.transaction, going.capture, self._layout)
            found += ((entry.at_ns or 0, entry.number, entry, going) for entry in entries.feed())
            is_chunked = is_chunked or entries.is_chunked
            if going.over:
                del self._entries[going]
        found.sort(key=lambda one: one[:2])
        lines = [line for _, _, entry, going in found for line in self._told_lines(entry, going)]
        return [fitted(line, self._width) for line in [*lines, *self._notes(is_chunked=is_chunked)]]

    def _told_lines(self, entry: WireEntry, going: OngoingTransaction) -> Iterator[Line]:
        """The lines of an entry, with a heading where it is another transaction's than the one before."""
        if going.transaction is not self._told:
            if self._is_begun:
                yield []
            yield heading(going.transaction, going.capture, going.rows)
            self._is_begun, self._told = True, going.transaction
        yield from timed_lines(entry, margin(EXPECTED_NS))

    def _notes(self, *, is_chunked: bool) -> Iterator[Line]:
        """What has to be said once."""
        for text, is_due in ((CHUNK_NOTE, is_chunked), (cut_note(()), self._layout.cuts > 0)):
            if is_due and text not in self._explained:
                self._explained.add(text)
                self._told = None
                yield []
                yield from note(text, self._width)


class LiveWireJson:
    """The same as JSON: an object for each transaction of which something came, with the frames that are new."""

    __slots__ = ("_told", "_transactions")

    def __init__(self, *, only_rows: bool = False) -> None:
        self._transactions = _Transactions(only_rows=only_rows)
        self._told: dict[OngoingTransaction, tuple[object, ...]] = {}

    def row(self, row: Row) -> None:
        """A row is new, or has changed."""
        self._transactions.row(row)

    def feed(self, captures: Sequence[CaptureInfo]) -> list[str]:
        """A line for each transaction that has changed since the last time."""
        lines: list[str] = []
        for going in self._transactions.feed(captures):
            one = going.transaction
            frames = {stream.opened.stream: len(stream.kept) for stream in going.streams}
            closes = [stream.close is None for stream in going.streams]
            state = (frames, closes, one.left_by, len(one.notes), going.rows)
            before = self._told.get(going)
            if state != before:
                told = before[0] if before is not None else {}
                assert isinstance(told, dict)
                lines.append(wire_state(one, going.capture, going.rows, told))
                self._told[going] = state
            if going.over:
                del self._told[going]
        return lines


def _of_row(row: Numbered, capture: CaptureInfo) -> Iterable[Transaction]:
    """The transactions that began and ended a row. Those between it names too, but to look for them at each change is quadratic."""
    if isinstance(row, Transaction):
        return (row,)
    if isinstance(row, ModelCall):
        return (row.transaction,)
    messages = [row.message] if isinstance(row, UnpairedMessage) else [row.request, row.response]
    found = (capture.transaction_of(message.stream) for message in messages if message is not None)
    return [one for one in found if one is not None]

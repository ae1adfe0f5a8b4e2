"""HTTP of captures that still grow: each head, chunk, event and end once, as soon as it is there.

Does not wait: the caller follows the captures and feeds what is new.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from ...transcript.http.transaction import Stream, Transaction
from ...transcript.model import CaptureInfo, ModelCall, Numbered, Row, UnpairedMessage
from ..text.line import Line, fitted
from ..text.units import SECOND_NS
from .http_wire import CHUNK_NOTE, cut_note, heading, margin, note, room, timed_lines
from .wire_entries import TransactionEntries, WireEntry, WireLayout

EXPECTED_NS = 9_999 * SECOND_NS
"""The time that fits into the margin, since nobody knows how long the capture will last."""


class OngoingTransaction:
    """A transaction that has not ended, and the rows it has carried so far."""

    __slots__ = ("_rows", "capture", "transaction")

    def __init__(self, transaction: Transaction, capture: CaptureInfo) -> None:
        self.transaction = transaction
        self.capture = capture
        self._rows: dict[int, None] = {}

    @property
    def rows(self) -> list[int]:
        """The numbers of the rows, in the order in which they came."""
        return list(self._rows)

    @property
    def streams(self) -> list[Stream]:
        """The streams that exist so far, in their order."""
        return self.transaction.streams

    @property
    def over(self) -> bool:
        """True if nothing more will come."""
        request = self.transaction.request
        return self.capture.closed or (self.transaction.over and (request is None or request.close is not None))

    def carries(self, row: int) -> None:
        """Note that the transaction carried a message of this row."""
        self._rows[row] = None


class OngoingTransactions:
    """The transactions of captures that grow. `feed` returns each until it has ended, and once after that."""

    __slots__ = ("_going", "_only_rows", "_rows", "_seen")

    def __init__(self, *, only_rows: bool) -> None:
        self._only_rows = only_rows
        self._going: dict[tuple[int, int], OngoingTransaction] = {}
        self._rows: list[Numbered] = []
        self._seen: dict[int, int] = {}  # the number of known transactions of each capture

    def row(self, row: Row) -> None:
        """Take a row that is new or has changed."""
        if isinstance(row, Numbered):
            self._rows.append(row)

    def feed(self, captures: Sequence[CaptureInfo]) -> list[OngoingTransaction]:
        """Return the transactions that may have changed."""
        for capture in captures:
            count, known = len(capture.transactions), self._seen.get(capture.index, 0)
            self._seen[capture.index] = count
            newest = list(islice(reversed(capture.transactions.values()), count - known))
            for transaction in reversed(newest):
                self._going[capture.index, transaction.number] = OngoingTransaction(transaction, capture)
        for row in self._rows:
            for transaction in _of_row(row, captures[row.capture]):
                if going := self._going.get((row.capture, transaction.number)):
                    going.carries(row.row)
        self._rows = []
        changed = [going for going in self._going.values() if going.rows or not self._only_rows]
        self._going = {key: going for key, going in self._going.items() if not going.over}
        return changed


class LiveWire:
    """Lines of HTTP as it comes. `row` takes the rows that are new, `feed` returns the new lines.

    `only_rows` leaves out transactions that carried none of these rows.
    """

    __slots__ = ("_entries", "_explained", "_is_begun", "_layout", "_shown", "_transactions", "_width")

    def __init__(self, width: int | None, *, only_rows: bool = False) -> None:
        self._width = width
        self._layout = WireLayout(room(width, margin(EXPECTED_NS)))
        self._transactions = OngoingTransactions(only_rows=only_rows)
        self._entries: dict[OngoingTransaction, TransactionEntries] = {}
        self._is_begun = False
        self._shown: Transaction | None = None
        self._explained: set[str] = set()

    def measure(self, width: int | None) -> None:
        """Take the new width of the screen."""
        self._width, self._layout.room = width, room(width, margin(EXPECTED_NS))

    def interrupt(self) -> None:
        """Note that other lines were shown in between, so that the next lines need a heading."""
        self._shown = None

    def row(self, row: Row) -> None:
        """Take a row that is new or has changed."""
        self._transactions.row(row)

    def feed(self, captures: Sequence[CaptureInfo]) -> list[Line]:
        """Return the lines of all transactions since the last call, in the order in which they came."""
        new: list[tuple[int, int, WireEntry, OngoingTransaction]] = []
        is_chunked = False
        for going in self._transactions.feed(captures):
            entries = self._entries.get(going)
            if entries is None:
                entries = self._entries[going] = TransactionEntries(going.transaction, going.capture, self._layout)
            new += ((entry.at_ns or 0, entry.number, entry, going) for entry in entries.feed())
            is_chunked = is_chunked or entries.is_chunked
            if going.over:
                del self._entries[going]
        new.sort(key=lambda item: item[:2])
        lines = [line for _, _, entry, going in new for line in self._entry_lines(entry, going)]
        return [fitted(line, self._width) for line in [*lines, *self._notes(is_chunked=is_chunked)]]

    def _entry_lines(self, entry: WireEntry, going: OngoingTransaction) -> Iterator[Line]:
        """Yield the lines of an entry, after a heading if the entry before it was another transaction's."""
        if going.transaction is not self._shown:
            if self._is_begun:
                yield []
            yield heading(going.transaction, going.capture, going.rows)
            self._is_begun, self._shown = True, going.transaction
        yield from timed_lines(entry, margin(EXPECTED_NS))

    def _notes(self, *, is_chunked: bool) -> Iterator[Line]:
        """Yield the explanations that are shown once."""
        for text, is_due in ((CHUNK_NOTE, is_chunked), (cut_note(()), self._layout.cuts > 0)):
            if is_due and text not in self._explained:
                self._explained.add(text)
                self._shown = None
                yield []
                yield from note(text, self._width)


def _of_row(row: Numbered, capture: CaptureInfo) -> Iterable[Transaction]:
    """Return the transactions that began and ended a row.

    Those in between carried messages of the row as well, but to look for them at each change would take quadratic time.
    """
    if isinstance(row, Transaction):
        return (row,)
    if isinstance(row, ModelCall):
        return (row.transaction,)
    messages = [row.message] if isinstance(row, UnpairedMessage) else [row.request, row.response]
    transactions = (capture.transaction_of(message.stream) for message in messages if message is not None)
    return [transaction for transaction in transactions if transaction is not None]

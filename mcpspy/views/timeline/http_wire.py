"""HTTP as it was on the wire, transaction by transaction: heads, chunks, events and bodies, in the order in which they came."""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from ...lazy_pattern import lazy_pattern
from ...transcript.http.transaction import Transaction
from ...transcript.model import CaptureInfo, Transcript
from ..text.cells import wrapped
from ..text.escape import safe_text
from ..text.line import Line, fitted
from ..text.units import microseconds
from .wire_entries import TransactionEntries, WireEntry, WireLayout

CHUNK_NOTE = (
    "chunk 0x51 81 is a chunk of 81 bytes. HTTP/1.1 sends the size in hex before each chunk, so a packet capture shows 51 before"
    " the event. It is not an event id."
)

MAX_ROWS_NAMED = 8

_rows = lazy_pattern(r":\d+(\.\.\d+)?$")


def wire_lines(
    transcript: Transcript,
    transactions: Iterable[tuple[Transaction, list[int]]],
    *,
    width: int | None = None,
    whole: bool = False,
    whats: Sequence[str] = (),
) -> Iterator[Line]:
    """Yield the lines of `transactions`, each with the rows it carried. The transcript has to keep frames.

    `whole` leaves long lines uncut. `whats` are the user's WHATs, for the command that shows more.
    """
    transactions = list(transactions)
    last_ns = max((transaction.ended_ns or transaction.at_ns for transaction, _ in transactions), default=0)
    margin_cells = margin(last_ns)
    layout = WireLayout(room(width, margin_cells), whole=whole)
    is_chunked = False
    for transaction, rows in transactions:
        capture = transcript.captures[transaction.capture]
        entries = TransactionEntries(transaction, capture, layout)
        yield fitted(heading(transaction, capture, rows), width)
        for entry in entries.feed():
            yield from (fitted(line, width) for line in timed_lines(entry, margin_cells))
        yield []
        is_chunked = is_chunked or entries.is_chunked
    if is_chunked:
        yield from note(CHUNK_NOTE, width)
    if layout.cuts:
        yield from note(cut_note(whats), width)


def heading(transaction: Transaction, capture: CaptureInfo, rows: list[int]) -> Line:
    """Return the heading of a transaction: its number, its connection, the rows it carried, client and server."""
    words = [f"transaction {transaction.number}", capture.connection_words(transaction.connection)]
    if rows:
        named = ", ".join(map(str, rows[:MAX_ROWS_NAMED]))
        words.append(f"row{'s' if len(rows) > 1 else ''} {named}{'…' if len(rows) > MAX_ROWS_NAMED else ''}")
    lanes = f"{safe_text(capture.client_of(transaction))} → {safe_text(capture.server)}"
    return [(" · ".join(words), "strong"), (f" · {lanes}", "dim")]


def cut_note(whats: Sequence[str]) -> str:
    """Return the sentence that says which command shows long lines in full."""
    what = f"{_rows.sub('', whats[0])}:ROW" if len(whats) == 1 else "@:ROW" if not whats else "WHAT:ROW"
    command = f"mcpspy show --http {safe_text(shlex.quote(what))}"
    return f"Long lines are cut. `{command}` shows those of a row in full, and so does --json."


def note(text: str, width: int | None) -> Iterator[Line]:
    """Yield a sentence for the reader."""
    for line in wrapped(text, width, len(text)):
        yield fitted([(line, "dim")], width)


def margin(last_ns: int) -> int:
    """Return the cells that the times take."""
    return len(microseconds(last_ns)) + 1


def room(width: int | None, margin_cells: int) -> int | None:
    """Return the cells after a time and an arrow."""
    return None if width is None else max(width - margin_cells - 3, 8)


def timed_lines(entry: WireEntry, margin_cells: int) -> Iterator[Line]:
    """Yield the lines of an entry after its time and its arrow."""
    time = "" if entry.at_ns is None else microseconds(entry.at_ns)
    for at, line in enumerate(entry.lines):
        first = at == 0
        yield [(f"{time if first else '':>{margin_cells}} ", "dim"), (f"{entry.arrow if first else ' '} ", ""), *line]

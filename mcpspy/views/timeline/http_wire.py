"""HTTP as it was on the wire, transaction by transaction: heads, chunks, events and bodies, in the order in which they came.

Refuses to say what a message means: `mcpspy show` does.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from ...transcript.http.transaction import Transaction
from ...transcript.model import CaptureInfo, Transcript
from ..text.cells import wrapped
from ..text.escape import safe_text
from ..text.line import Line, fitted
from ..text.units import MICROSECOND_NS, SECOND_NS
from .wire_entries import TransactionEntries, WireEntry, WireLayout

CHUNK_NOTE = (
    "chunk 0x51 81: a chunk of 81 bytes. HTTP/1.1 sends its size in hex before it, so that a packet capture shows 51 before"
    " an event: that is no event id."
)

MAX_ROWS_NAMED = 8

_rows = re.compile(r":\d+(\.\.\d+)?$").sub


def wire_lines(
    transcript: Transcript,
    transactions: Iterable[tuple[Transaction, list[int]]],
    *,
    width: int | None = None,
    whole: bool = False,
    whats: Sequence[str] = (),
) -> Iterator[Line]:
    """The lines of `transactions`, each with the rows that it carried; of a transcript that keeps frames.

    `whole`: no long line is cut. `whats` are the WHATs that were given, for the command that shows more.
    """
    transactions = list(transactions)
    margin_cells = margin(max((one.ended_ns or one.at_ns for one, _ in transactions), default=0))
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
    """Which transaction it is, on which connection, which rows it carried, and between whom."""
    words = [f"transaction {transaction.number}", f"connection {transaction.connection}"]
    if rows:
        named = ", ".join(map(str, rows[:MAX_ROWS_NAMED]))
        words.append(f"row{'s' if len(rows) > 1 else ''} {named}{'…' if len(rows) > MAX_ROWS_NAMED else ''}")
    lanes = f"{safe_text(capture.client_of(transaction))} → {safe_text(capture.server)}"
    return [(" · ".join(words), "strong"), (f" · {lanes}", "dim")]


def cut_note(whats: Sequence[str]) -> str:
    """Where what was left out stands."""
    what = f"{_rows('', whats[0])}:ROW" if len(whats) == 1 else "@:ROW" if not whats else "WHAT:ROW"
    return f"Long lines are cut here. `mcpspy show --http {safe_text(shlex.quote(what))}` shows all of a row's, and so does --json."


def note(text: str, width: int | None) -> Iterator[Line]:
    """A word for the reader."""
    for line in [text] if width is None else wrapped(text, width, len(text)):
        yield fitted([(line, "dim")], width)


def margin(last_ns: int) -> int:
    """The cells before the times."""
    return len(_microseconds(last_ns)) + 1


def room(width: int | None, margin_cells: int) -> int | None:
    """The cells behind a time and an arrow."""
    return None if width is None else max(width - margin_cells - 3, 8)


def timed_lines(entry: WireEntry, margin_cells: int) -> Iterator[Line]:
    """The lines of an entry behind its time and its arrow."""
    time = "" if entry.at_ns is None else _microseconds(entry.at_ns)
    for at, line in enumerate(entry.lines):
        first = at == 0
        yield [(f"{time if first else '':>{margin_cells}} ", "dim"), (f"{entry.arrow if first else ' '} ", ""), *line]


def _microseconds(at_ns: int) -> str:
    """A point in time in seconds, to the microsecond."""
    whole, rest = divmod(at_ns, SECOND_NS)
    return f"{whole}.{rest // MICROSECOND_NS:06d}"

"""HTTP as it was on the wire, transaction by transaction: heads, chunks, events and bodies, in the order in which they came.

Bytes are shown as they were, but for what a terminal obeys. Refuses to lay JSON out: `show @:7` does.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..records import CLIENT, Frame
from ..transcript.chunks import Chunks
from ..transcript.model import Source, Transcript
from ..transcript.transaction import Stream, Transaction
from ..wire.body import decoded as decompressed
from .cells import cells, chopped, wrapped
from .escape import decoded, safe_text
from .head_lines import head_lines
from .line import Line, Piece, fitted
from .phrases import one_line
from .transaction import chunk_words, ended_words
from .units import MICROSECOND_NS, SECOND_NS, counted, duration, size

MAX_LINES = 6
"""So many lines of a screen are given to one line of an event or a body; `show @:7` has all of it."""

MAX_BODY_LINES = 40
"""So many lines of a body are shown on a screen."""

CHUNK_NOTE = (
    "chunk 0x51 81: a chunk of 81 bytes. HTTP/1.1 sends its size in hex before it, so that a packet capture shows 51 before"
    " an event: that is no event id."
)


class _Entry(NamedTuple):
    """Something on the wire: its record's number orders it, its lines go behind its time and its arrow."""

    number: int
    at_ns: int | None
    arrow: str
    lines: list[Line]


def wire_lines(
    transcript: Transcript, transactions: Iterable[tuple[Transaction, list[int]]], *, width: int | None = None
) -> Iterator[Line]:
    """The lines of `transactions`, each with the rows that it carried; of a transcript that keeps frames."""
    transactions = list(transactions)
    margin = _margin(transactions)
    chunked = False
    for transaction, rows in transactions:
        source = transcript.sources[transaction.capture]
        yield fitted(_heading(transaction, source, rows), width)
        for entry in sorted(_entries(transaction, source, None if width is None else max(width - margin - 3, 8))):
            yield from (fitted(line, width) for line in _placed(entry, margin))
        yield []
        chunked = chunked or any(one is not None and one.chunks for one in (transaction.request, transaction.response))
    if chunked:
        for text in [CHUNK_NOTE] if width is None else wrapped(CHUNK_NOTE, width, len(CHUNK_NOTE)):
            yield fitted([(text, "dim")], width)


def _heading(transaction: Transaction, source: Source, rows: list[int]) -> Line:
    words = [f"transaction {transaction.number}", f"connection {transaction.connection}"]
    if rows:
        words.append(f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows[:8]))}{'…' if len(rows) > 8 else ''}")
    lanes = f"{safe_text(source.client_of(transaction))} → {safe_text(source.server)}"
    return [(" · ".join(words), "strong"), (f" · {lanes}", "dim")]


def _margin(transactions: list[tuple[Transaction, list[int]]]) -> int:
    last_ns = max((one.ended_ns or one.at_ns for one, _ in transactions), default=0)
    return len(_microseconds(last_ns)) + 1


def _placed(entry: _Entry, margin: int) -> Iterator[Line]:
    time = "" if entry.at_ns is None else _microseconds(entry.at_ns)
    for at, line in enumerate(entry.lines):
        first = at == 0
        yield [(f"{time if first else '':>{margin}} ", "dim"), (f"{entry.arrow if first else ' '} ", ""), *line]


def _entries(transaction: Transaction, source: Source, room: int | None) -> Iterator[_Entry]:
    for stream in (transaction.request, *transaction.interim, transaction.response):
        if stream is not None:
            yield from _stream(stream, transaction, source, room)
    for note in transaction.notes:
        text = one_line(f"{note.topic}: {note.text}")
        yield _Entry(note.number, note.at_ns + source.shift_ns, "·", [[(text, "warn" if note.topic == "left" else "dim")]])


def _stream(stream: Stream, transaction: Transaction, source: Source, room: int | None) -> Iterator[_Entry]:
    opened = stream.opened
    arrow = "→" if opened.sender == CLIENT else "←"
    if opened.head:
        by = [[("written by mcpspy", "warn")]] if opened.forged else []
        yield _Entry(opened.number, stream.at_ns, arrow, [*head_lines(opened, room), *by])
    chunks = Chunks()
    said = _decompressed(stream, room) if opened.framing == "body" else []
    for frame in stream.kept:
        lines = _frame(frame, stream, chunks, room, hides=bool(said))
        if frame.number in transaction.redelivered:
            lines.append([("redelivered: this event came before, and is not counted again", "warn")])
        if said and frame is stream.kept[-1]:
            lines += said
        yield _Entry(frame.number, frame.at_ns + source.shift_ns, arrow, lines)
    close = stream.close
    if close is not None and (opened.sender != CLIENT or close.how != "eof"):
        lines = [[(f"{opened.name} {ended_words(stream)}", "dim" if close.how == "eof" else "warn")]]
        lines += [[(f"{name}: {one_line(str(value))}", "dim")] for name, value in close.extra.items()]
        yield _Entry(close.number, stream.closed_ns, "·", lines)


def _frame(frame: Frame, stream: Stream, chunks: Chunks, room: int | None, *, hides: bool) -> list[Line]:
    """A frame's chunks, and its bytes, unless what they mean is shown instead."""
    begun = chunks.begun(frame)
    lines: list[Line] = []
    if begun:
        lines += _wrapped("chunk " + chunk_words(begun) if len(begun) == 1 else "chunks " + chunk_words(begun), "key", room)
    elif frame.chunks:
        lines.append([("in the chunk above", "key")])
    if frame.first_ns < frame.at_ns:
        lines.append([(f"first byte {duration(frame.at_ns - frame.first_ns)} before", "dim")])
    if not frame.data and frame.length:
        return [*lines, [(f"{size(frame.length)}, not recorded: sha256 {safe_text(frame.sha256)}", "warn")]]
    if frame.part:
        lines.append([(f"a part of {size(frame.length)}", "dim")])
    is_event = stream.opened.framing == "sse"
    lines += [] if hides else _texts(frame.data, room, is_event=is_event)
    if frame.forwarded is not None:
        lines.append([("sent on as", "warn")])
        lines += _texts(frame.forwarded, room, is_event=is_event)
    return lines


def _texts(data: bytes, room: int | None, *, is_event: bool) -> list[Line]:
    """Captured bytes line by line. Of an event, the names of its fields stand out."""
    texts = decoded(data).replace("\r\n", "\n").removesuffix("\n").split("\n")
    if is_event and texts and not texts[-1]:
        texts.pop()  # the empty line that ends it
    shown = texts if room is None else texts[:MAX_BODY_LINES]
    lines = [line for text in shown for line in _text(text, room, is_event=is_event)]
    if len(shown) < len(texts):
        lines.append([(f"… {counted(len(texts) - len(shown), 'more line')}", "dim")])
    return lines


def _text(text: str, room: int | None, *, is_event: bool) -> list[Line]:
    looked_at = text if room is None else text[: room * (MAX_LINES + 1)]
    safe = safe_text(looked_at)
    pieces = [safe] if room is None or cells(safe) <= room else chopped(safe, room)
    lines: list[Line] = [[(piece, "")] for piece in pieces[: MAX_LINES if room is not None else None]]
    if len(lines) < len(pieces) or len(looked_at) < len(text):
        lines.append([(f"… {size(len(text.encode('utf-8', 'replace')))} in all", "dim")])
    if is_event and lines:
        name, colon, rest = pieces[0].partition(":")
        field: Piece = (name + colon, "dim") if name else (colon, "dim")
        lines[0] = [field, (rest, "" if name else "dim")]
    return lines


def _decompressed(stream: Stream, room: int | None) -> list[Line]:
    """What a compressed body says; nothing of one that is not compressed, or that nobody can decode."""
    encoding = stream.head.get("content-encoding")
    data = b"".join(frame.data for frame in stream.kept)
    if not encoding or not data:
        return []
    try:
        said = decompressed(data, encoding.encode("utf-8", "replace"))
    except ValueError:
        return []
    sizes = f"{size(len(data))} of {one_line(encoding)}, decoded {size(len(said))}:"
    return [[(sizes, "dim")], *_texts(said, room, is_event=False)]


def _wrapped(text: str, style: str, room: int | None) -> list[Line]:
    return [[(piece, style)] for piece in ([text] if room is None else chopped(text, room))]


def _microseconds(at_ns: int) -> str:
    """A point in time in seconds, to the microsecond."""
    whole, rest = divmod(at_ns, SECOND_NS)
    return f"{whole}.{rest // MICROSECOND_NS:06d}"

"""HTTP as it was on the wire: the heads, chunks, events, bodies and ends of each transaction, in the order in which they came.

Each is shown once, as soon as it is there, also in captures that still grow. Does not wait: the caller follows the captures and feeds
what is new. Bytes are shown as they were, but safe for a terminal. JSON is not laid out; `show @:7` does that.
"""

import shlex
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ...lazy_pattern import lazy_pattern
from ...records import CLIENT, Frame
from ...transcript.http.head import decoded_value
from ...transcript.http.payloads import chunk_sizes
from ...transcript.http.transaction import OpenChunk, Stream, Transaction
from ...transcript.model import CaptureInfo, ModelCall, Numbered, Row, Transcript, UnpairedMessage
from ...wire.encodings import PACKAGES, MissingDecoderError
from ...wire.encodings import decode_body as decompressed
from ..text.cells import cells, chopped, wrapped
from ..text.escape import decoded, one_line, safe_text
from ..text.line import Line, Piece, fitted
from ..text.units import SECOND_NS, counted, duration, microseconds, size
from .transaction import chunk_words, close_words, packet_words

MAX_LINES = 6
"""The most lines of a screen that one line of an event or a body takes."""

MAX_LETTERS = 2_000
"""The most letters of a line of an event or a body that are shown on a pipe."""

SPARED_LETTERS = 200
"""A line that is longer than MAX_LETTERS by no more than this is not cut."""

MAX_BODY_LINES = 40
"""The most lines of a body shown on a screen."""

_HEAD_INDENT: Piece = ("    ", "")
"""The beginning of the further lines of a head's line."""
_CHUNK_NOTE = (
    "chunk 0x51 81 is a chunk of 81 bytes. HTTP/1.1 sends the size in hex before each chunk, so a packet capture shows 51 before"
    " the event. It is not an event id."
)

MAX_ROWS_NAMED = 8

_rows = lazy_pattern(r":\d+(\.\.\d+)?$")

EXPECTED_NS = 9_999 * SECOND_NS
"""The time that fits into the margin, since nobody knows how long the capture will last."""


class _WireLayout:
    """The room for lines: `room` in cells, None on a pipe. `whole` leaves nothing out. `cuts` counts the lines that were cut."""

    __slots__ = ("cuts", "room", "whole")

    def __init__(self, room: int | None, *, whole: bool = False) -> None:
        self.room = room
        self.whole = whole
        self.cuts = 0


class _WireEntry(NamedTuple):
    """Something on the wire, ordered by the number of its record; its lines follow its time and its arrow."""

    number: int
    at_ns: int | None
    arrow: str
    lines: list[Line]


class _TransactionEntries:
    """A reader of one transaction; `feed` returns what came since the last call, in the order of the records."""

    __slots__ = ("_layout", "_notes", "_capture", "_streams", "transaction")

    def __init__(self, transaction: Transaction, capture: CaptureInfo, layout: _WireLayout) -> None:
        self.transaction = transaction
        self._capture = capture
        self._layout = layout
        self._streams: dict[int, _StreamEntries] = {}
        self._notes = 0

    @property
    def is_chunked(self) -> bool:
        """True if HTTP/1.1 chunks came."""
        streams = (self.transaction.request, self.transaction.response)
        return any(stream is not None and stream.chunks for stream in streams)

    def feed(self) -> list[_WireEntry]:
        """Return the new entries."""
        transaction = self.transaction
        redelivered = set(transaction.redelivered)
        new: list[_WireEntry] = []
        for stream in transaction.streams:
            number = stream.number
            entries = self._streams.get(number)
            if entries is None:
                entries = self._streams[number] = _StreamEntries(stream, self._capture, self._layout)
            new += entries.feed(redelivered)
        for note in transaction.notes[self._notes :]:
            text = one_line(f"{note.topic}: {note.text}")
            style = "warn" if note.topic == "left" else "dim"
            new.append(_WireEntry(note.number, note.at_ns + self._capture.shift_ns, "·", [[(text, style)]]))
        self._notes = len(transaction.notes)
        return sorted(new)


class _StreamEntries:
    """A reader of one stream of a transaction."""

    __slots__ = (
        "_encoding",
        "_frames",
        "_is_begun",
        "_is_ended",
        "_layout",
        "_open_chunk",
        "_compressed",
        "_capture",
        "_stream",
    )

    def __init__(self, stream: Stream, capture: CaptureInfo, layout: _WireLayout) -> None:
        self._stream = stream
        self._capture = capture
        self._layout = layout
        self._encoding = stream.head.get("content-encoding") if stream.framing == "body" else ""
        self._open_chunk: OpenChunk = None
        self._is_begun = self._is_ended = False
        self._frames = 0
        self._compressed: list[bytes] = []  # parts of a compressed body, which mean nothing before its end

    def feed(self, redelivered: set[int]) -> Iterator[_WireEntry]:
        stream = self._stream
        arrow = "→" if stream.sender == CLIENT else "←"
        if stream.raw_head and not self._is_begun:
            by: list[Line] = [[("sent by mcpspy", "warn")]] if stream.injected else []
            yield _WireEntry(stream.record, stream.at_ns, arrow, [*head_lines(stream, self._layout.room), *by])
        self._is_begun = True
        for frame in stream.kept[self._frames :]:
            lines = self._frame(frame)
            if frame.number in redelivered:
                lines.append([("redelivered: this event came before and is not counted again", "warn")])
            yield _WireEntry(frame.number, frame.at_ns + self._capture.shift_ns, arrow, lines)
        self._frames = len(stream.kept)
        close = stream.close
        if close is not None and not self._is_ended:
            self._is_ended = True
            lines = self._decoded_body() if self._compressed else []
            if stream.sender != CLIENT or close.how != "eof":
                lines.append([(f"{stream.name} {close_words(close)}", "dim" if close.how == "eof" else "warn")])
                lines += [[(f"{name}: {one_line(str(value))}", "dim")] for name, value in close.extra.items()]
            if lines:
                yield _WireEntry(close.number, stream.closed_ns, "·", lines)

    def _frame(self, frame: Frame) -> list[Line]:
        """Return a frame's chunks and its bytes, decoded if they are compressed."""
        lines = self._facts(frame)
        if not frame.data and frame.length:
            return [*lines, [(f"{size(frame.length)}, not recorded: sha256 {safe_text(frame.sha256)}", "warn")]]
        if frame.part:
            lines.append([(f"part of a frame, {size(frame.length)}", "dim")])
        if self._encoding:
            self._compressed.append(frame.data)
            lines += [] if frame.part else self._decoded_body()
        else:
            lines += self._texts(frame.data)
        if frame.forwarded is not None:
            lines.append([("forwarded as", "warn")])
            lines += self._texts(frame.forwarded)
        return lines

    def _facts(self, frame: Frame) -> list[Line]:
        begun, self._open_chunk = chunk_sizes(frame, self._open_chunk)
        lines: list[Line] = []
        if begun:
            word = "chunk " if len(begun) == 1 else "chunks "
            lines += _wrapped(word + chunk_words(begun), "key", self._layout.room)
        elif frame.chunks:
            lines.append([("in the chunk above", "key")])
        lines += [[(words, "dim")] for words in packet_words(frame)]
        if frame.first_ns < frame.at_ns:
            lines.append([(f"first byte {duration(frame.at_ns - frame.first_ns)} earlier", "dim")])
        return lines

    def _decoded_body(self) -> list[Line]:
        """Return the decoded text of a compressed body, or its bytes as they are if they cannot be decoded."""
        data, self._compressed = b"".join(self._compressed), []
        try:
            text = decompressed(data, self._encoding.encode("utf-8", "replace"))
        except MissingDecoderError as error:
            words = f"{size(len(data))} of {one_line(error.coding)}: pip install {PACKAGES[error.coding]} to read them"
            return _wrapped(words, "warn", self._layout.room)
        except ValueError:
            return self._texts(data)
        sizes = f"{size(len(data))} of {one_line(self._encoding)}, decoded {size(len(text))}:"
        return [[(sizes, "dim")], *self._texts(text)]

    def _texts(self, data: bytes) -> list[Line]:
        """Return captured bytes line by line. The field names of an event have a style of their own."""
        is_event, layout = self._stream.framing == "sse", self._layout
        texts = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n").removesuffix("\n").split("\n")
        if is_event and texts and not texts[-1]:
            texts.pop()  # the empty line that ends it
        shown = texts if layout.room is None or layout.whole else texts[:MAX_BODY_LINES]
        lines = [line for text in shown for line in _text(text, layout, is_event=is_event)]
        if len(shown) < len(texts):
            layout.cuts += 1
            lines.append([(f"… {counted(len(texts) - len(shown), 'more line')}", "dim")])
        return lines


def _text(text: str, layout: _WireLayout, *, is_event: bool) -> list[Line]:
    """Return one captured line, on as many lines of the screen as it may take."""
    shown = text if layout.whole else _beginning(text, layout.room)
    lines: list[Line] = [[(piece, "")] for piece in _pieces(shown, layout.room)]
    if len(shown) < len(text):
        layout.cuts += 1
        lines.append([(f"… {counted(len(_raw(text[len(shown) :])), 'more byte')}", "dim")])
    if is_event:
        name, colon, rest = lines[0][0][0].partition(":")
        field: Piece = (name + colon, "dim") if name else (colon, "dim")
        lines[0] = [field, (rest, "" if name else "dim")]
    return lines


def _beginning(text: str, room: int | None) -> str:
    """Return the beginning of a line that fits into the room it may take; all of the line if it fits."""
    if room is None:
        return text if len(text) <= MAX_LETTERS + SPARED_LETTERS else text[:MAX_LETTERS]
    shown = text[: room * (MAX_LINES + 1)]
    if len(shown) == len(text) and len(_pieces(shown, room)) <= MAX_LINES + 1:
        return text  # the note about a cut last line would take a line, too
    shown = text[: room * MAX_LINES]
    while (lines := len(_pieces(shown, room))) > MAX_LINES:  # wide letters, and those that are spelled out
        shown = shown[: min(len(shown) * MAX_LINES // lines, len(shown) - 1)]
    return shown


def _pieces(text: str, room: int | None) -> list[str]:
    """Divide a line into safe pieces of `room` cells."""
    safe = safe_text(decoded(_raw(text)))
    return [safe] if room is None or cells(safe) <= room else chopped(safe, room)


def _raw(text: str) -> bytes:
    """Return the bytes that a text was decoded from."""
    return text.encode("utf-8", "surrogateescape")


def _wrapped(text: str, style: str, room: int | None) -> list[Line]:
    return [[(piece, style)] for piece in ([text] if room is None else chopped(text, room))]


def head_lines(opened: Stream, room: int | None) -> list[Line]:
    """Return the lines of a head, in `room` cells. Below each changed line is what was forwarded, at the end what was added."""
    received = _numbered_lines(opened.raw_head)
    sent = [line for _, line in (received if opened.forwarded is None else _numbered_lines(opened.forwarded))]
    gone = Counter(line for _, line in received) - Counter(sent)
    new = _by_name(sent, Counter(sent) - Counter(line for _, line in received))
    lines: list[Line] = []
    for number, (offset, raw) in enumerate(received):
        lines += _head_line(raw, offset, opened, room, style="strong" if number == 0 else "")
        value = raw.partition(b":")[2].strip()
        if value.startswith(b"=?base64?") and (means := decoded_value(decoded(value))) != decoded(value):
            lines += _note("  decoded ", means, room)
        if not gone[raw]:
            continue
        gone[raw] -= 1
        instead = new.get(_field_name(raw, is_first=number == 0))
        if instead:
            lines += _note("  forwarded as ", decoded(instead.popleft()), room)
        else:
            lines.append([("  not forwarded", "warn")])
    for raw in (line for those in new.values() for line in those):
        lines += _note("  added ", decoded(raw), room)
    return lines


def _by_name(sent: list[bytes], new: Counter[bytes]) -> dict[bytes, deque[bytes]]:
    """Group the forwarded lines that were not received by the names of their fields."""
    by_name: dict[bytes, deque[bytes]] = {}
    for number, line in enumerate(sent):
        if new[line]:
            new[line] -= 1
            by_name.setdefault(_field_name(line, is_first=number == 0), deque()).append(line)
    return by_name


def _numbered_lines(head: bytes) -> list[tuple[int, bytes]]:
    """Return the lines that are not empty, each with its offset in the head."""
    lines: list[tuple[int, bytes]] = []
    offset = 0
    for line in head.split(b"\n"):
        text = line.removesuffix(b"\r")
        if text:
            lines.append((offset, text))
        offset += len(line) + 1
    return lines


def _field_name(line: bytes, *, is_first: bool) -> bytes:
    """Return the field name of a line, in lower case; empty for the first line."""
    return b"" if is_first else line.partition(b":")[0].strip().lower()


def _head_line(raw: bytes, offset: int, opened: Stream, room: int | None, *, style: str) -> list[Line]:
    """Return one line of the head, with the redacted parts marked."""
    pieces: Line = []
    at = 0
    for begin, length, _ in sorted(opened.redacted):
        start, end = max(begin - offset, at), begin - offset + length
        if start < len(raw) and end > start:
            pieces += [(safe_text(decoded(raw[at:start])), style), (safe_text(decoded(raw[start:end])), "warn")]
            at = min(end, len(raw))
    pieces.append((safe_text(decoded(raw[at:])), style))
    return _broken([piece for piece in pieces if piece[0]], room)


def _note(word: str, text: str, room: int | None) -> list[Line]:
    return _broken([(word, "warn"), (safe_text(text), "dim")], room)


def _broken(line: Line, room: int | None) -> list[Line]:
    """Break `line` into lines of `room` cells."""
    if room is None:
        return [line]
    lines: list[Line] = [[]]
    left = room
    for text, style in line:
        rest = text
        while rest:
            if cells(rest) <= left:
                lines[-1].append((rest, style))
                left -= cells(rest)
                break
            piece = chopped(rest, left)[0] if left > 1 else ""
            if piece:
                lines[-1].append((piece, style))
            rest = rest[len(piece) :]
            lines.append([_HEAD_INDENT])
            left = room - len(_HEAD_INDENT[0])
    return lines


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
    margin_cells = _margin(last_ns)
    layout = _WireLayout(room(width, margin_cells), whole=whole)
    is_chunked = False
    for transaction, rows in transactions:
        capture = transcript.captures[transaction.capture]
        entries = _TransactionEntries(transaction, capture, layout)
        yield fitted(_heading(transaction, capture, rows), width)
        for entry in entries.feed():
            yield from (fitted(line, width) for line in _timed_lines(entry, margin_cells))
        yield []
        is_chunked = is_chunked or entries.is_chunked
    if is_chunked:
        yield from note(_CHUNK_NOTE, width)
    if layout.cuts:
        yield from note(_cut_note(whats), width)


def _heading(transaction: Transaction, capture: CaptureInfo, rows: list[int]) -> Line:
    """Return the heading of a transaction: its number, its connection, the rows it carried, client and server."""
    words = [f"transaction {transaction.number}", capture.connection_words(transaction.connection)]
    if rows:
        named = ", ".join(map(str, rows[:MAX_ROWS_NAMED]))
        words.append(f"row{'s' if len(rows) > 1 else ''} {named}{'…' if len(rows) > MAX_ROWS_NAMED else ''}")
    lanes = f"{safe_text(capture.client_of(transaction))} → {safe_text(capture.server)}"
    return [(" · ".join(words), "strong"), (f" · {lanes}", "dim")]


def _cut_note(whats: Sequence[str]) -> str:
    """Return the sentence that says which command shows long lines in full."""
    what = f"{_rows.sub('', whats[0])}:ROW" if len(whats) == 1 else "@:ROW" if not whats else "WHAT:ROW"
    command = f"mcpspy show --http {safe_text(shlex.quote(what))}"
    return f"Long lines are cut. `{command}` shows those of a row in full, and so does --json."


def note(text: str, width: int | None) -> Iterator[Line]:
    """Yield a sentence for the reader."""
    for line in wrapped(text, width, len(text)):
        yield fitted([(line, "dim")], width)


def _margin(last_ns: int) -> int:
    """Return the cells that the times take."""
    return len(microseconds(last_ns)) + 1


def room(width: int | None, margin_cells: int) -> int | None:
    """Return the cells after a time and an arrow."""
    return None if width is None else max(width - margin_cells - 3, 8)


def _timed_lines(entry: _WireEntry, margin_cells: int) -> Iterator[Line]:
    """Yield the lines of an entry after its time and its arrow."""
    time = "" if entry.at_ns is None else microseconds(entry.at_ns)
    for at, line in enumerate(entry.lines):
        first = at == 0
        yield [(f"{time if first else '':>{margin_cells}} ", "dim"), (f"{entry.arrow if first else ' '} ", ""), *line]


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
        self._layout = _WireLayout(room(width, _margin(EXPECTED_NS)))
        self._transactions = OngoingTransactions(only_rows=only_rows)
        self._entries: dict[OngoingTransaction, _TransactionEntries] = {}
        self._is_begun = False
        self._shown: Transaction | None = None
        self._explained: set[str] = set()

    def measure(self, width: int | None) -> None:
        """Take the new width of the screen."""
        self._width, self._layout.room = width, room(width, _margin(EXPECTED_NS))

    def interrupt(self) -> None:
        """Note that other lines were shown in between, so that the next lines need a heading."""
        self._shown = None

    def row(self, row: Row) -> None:
        """Take a row that is new or has changed."""
        self._transactions.row(row)

    def feed(self, captures: Sequence[CaptureInfo]) -> list[Line]:
        """Return the lines of all transactions since the last call, in the order in which they came."""
        new: list[tuple[int, int, _WireEntry, OngoingTransaction]] = []
        is_chunked = False
        for going in self._transactions.feed(captures):
            entries = self._entries.get(going)
            if entries is None:
                entries = self._entries[going] = _TransactionEntries(going.transaction, going.capture, self._layout)
            new += ((entry.at_ns or 0, entry.number, entry, going) for entry in entries.feed())
            is_chunked = is_chunked or entries.is_chunked
            if going.over:
                del self._entries[going]
        new.sort(key=lambda item: item[:2])
        lines = [line for _, _, entry, going in new for line in self._entry_lines(entry, going)]
        return [fitted(line, self._width) for line in [*lines, *self._notes(is_chunked=is_chunked)]]

    def _entry_lines(self, entry: _WireEntry, going: OngoingTransaction) -> Iterator[Line]:
        """Yield the lines of an entry, after a heading if the entry before it was another transaction's."""
        if going.transaction is not self._shown:
            if self._is_begun:
                yield []
            yield _heading(going.transaction, going.capture, going.rows)
            self._is_begun, self._shown = True, going.transaction
        yield from _timed_lines(entry, _margin(EXPECTED_NS))

    def _notes(self, *, is_chunked: bool) -> Iterator[Line]:
        """Yield the explanations that are shown once."""
        for text, is_due in ((_CHUNK_NOTE, is_chunked), (_cut_note(()), self._layout.cuts > 0)):
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

"""HTTP transactions in words: a phrase for a row, and a few lines below the messages that a transaction carried.

Heads and bodies are not shown here; `http_wire` shows them.
"""

from bisect import bisect_left
from collections.abc import Iterator

from ...records import SERVER, Frame
from ...transcript.http.transaction import Closing, Stream, Transaction
from ...transcript.model import HTTP_REDIRECTS, CaptureInfo, Exchange, Message, UnpairedMessage
from ..text.escape import one_line, safe_text
from ..text.line import Line, line_cells
from ..text.units import counted, duration, size
from .phrases import Phrase, raw_phrase, refusal_phrase, status_words

HTTP_OK = 200
HTTP_FAILURES = 500

USUAL = (HTTP_OK, 202)
"""Statuses that are not shown for a message that succeeded."""

MAX_CHUNKS = 12
"""The most chunk sizes of one frame that are listed; more are counted."""


def transaction_phrase(transaction: Transaction, *, closed: bool = True) -> Phrase:
    """Return the status of a transaction, and what came with it. Unless its capture is `closed`, a response may still come."""
    response = transaction.response
    if response is None and not (transaction.over or closed):
        return Phrase("pending", "wait")
    if response is None:
        return Phrase("no response", "warn", _left_words(transaction) if transaction.over else "before the capture ended")
    return Phrase(
        str(transaction.status or "?"), _style(transaction.status), ", ".join(filter(None, _details(transaction, response)))
    )


def body_bytes(transaction: Transaction) -> int:
    """Return the size of both bodies, as far as they came."""
    return sum(stream.body_bytes for stream in (transaction.request, transaction.response) if stream is not None)


def status_note(row: Exchange | UnpairedMessage | Message, capture: CaptureInfo) -> str:
    """Return `HTTP 404` where a message went over HTTP and its status is worth showing; else empty.

    A message without a response has the text of its refusal too: `HTTP 404: session not found`.
    """
    if isinstance(row, Exchange):
        answering = None if row.response is None else capture.transaction_of(row.response.stream)
        transaction = answering if row.sender == "server" and answering is not None else row.transaction
    else:
        message = row.message if isinstance(row, UnpairedMessage) else row
        transaction = capture.transaction_of(message.stream) if message.sender == "client" else None
    status = 0 if transaction is None else transaction.status
    if transaction is None or not status or status in USUAL:
        return ""
    text = refusal_phrase(transaction) if isinstance(row, UnpairedMessage) else ""
    return f"HTTP {status}: {text}" if text else f"HTTP {status}"


def fact_lines(transaction: Transaction, capture: CaptureInfo, width: int | None) -> Iterator[Line]:
    """Yield the facts about a transaction: its numbers, its request, each note, its response."""
    numbers = f"transaction {transaction.number} · {capture.connection_words(transaction.connection)}"
    scope = transaction.scope
    where = f" · session {safe_text(scope.session)}" if scope.session else ""
    where += f" · answered on transaction {scope.stream}" if scope.stream and scope.stream != transaction.number else ""
    request, response = transaction.request, transaction.response
    yield [(numbers, "strong"), (where, "dim")]
    if request is not None:
        words = one_line(f"{transaction.method} {transaction.target}")
        yield from with_facts([("→ ", ""), (words, "")], list(_facts(request, transaction)), width)
    for note in transaction.notes:
        yield [("· ", "dim"), (one_line(f"{note.topic}: {note.text}"), "dim")]
    if response is not None:
        by = " sent by mcpspy" if response.injected else ""
        words = status_words(transaction) + by
        yield from with_facts([("← ", ""), (words, _style(transaction.status))], list(_facts(response, transaction)), width)
    elif transaction.over:
        yield [("← ", ""), (f"no response: {_left_words(transaction)}", "warn")]


def packet_words(frame: Frame) -> list[str]:
    """Name the packet that completed a frame; nothing if the capture was not made of packets."""
    packet = packet_of(frame)
    return [] if packet is None else [f"packet {packet}"]


def packet_of(frame: Frame) -> int | None:
    """Return the number that Wireshark gives the packet that completed a frame; None if the capture was not made of packets."""
    packet = frame.extra.get("packet")
    return packet if isinstance(packet, int) and packet > 0 else None


def carrying_frame(transaction: Transaction, message: Message) -> Frame | None:
    """Return the frame that a message came in; None if the transcript keeps no frames."""
    for stream in (transaction.request, transaction.response):
        if stream is not None and stream.number == message.stream:
            at = bisect_left(stream.kept, message.number, key=lambda frame: frame.number)
            if at < len(stream.kept) and stream.kept[at].number == message.number:
                return stream.kept[at]
    return None


def chunk_words(sizes: tuple[int, ...]) -> str:
    """Spell chunk sizes as a packet capture shows them, and in decimal: `0x51 81, 0x10 16`."""
    words = ", ".join(f"{count:#x} {count}" for count in sizes[:MAX_CHUNKS])
    more = len(sizes) - MAX_CHUNKS
    return f"{words}, {counted(more, 'more chunk')}" if more > 0 else words


def with_facts(line: Line, facts: list[str], width: int | None) -> Iterator[Line]:
    """Append facts to `line`, separated by `·`, on as many lines as they take."""
    between = "  "
    for fact in facts:
        longer: Line = [*line, (between + fact, "dim")]
        if width is not None and line_cells(longer) > width:
            yield line
            longer = [("  ", ""), (fact, "dim")]
        line, between = longer, " · "
    yield line


def _details(transaction: Transaction, response: Stream) -> Iterator[str]:
    head = response.head
    if transaction.status != HTTP_OK:
        yield status_words(transaction).partition(" ")[2]
    if response.injected:
        body = next((anomaly.data for anomaly in transaction.anomalies if anomaly.name == "injected"), b"")
        yield raw_phrase(body) if body.startswith(b"mcpspy") else "sent by mcpspy"
    if transaction.is_stream:
        yield counted(response.events, "event")
        if transaction.redelivered:
            yield f"{len(transaction.redelivered)} redelivered"
        yield "open" if response.close is None else ended_words(transaction)
    elif text := "" if response.injected else refusal_phrase(transaction):
        yield text
    elif head.media_type and response.body_bytes and not response.injected:
        yield one_line(head.media_type)
    if not transaction.is_stream and response.close is not None and response.close.how != "eof":
        yield ended_words(transaction)


def _facts(stream: Stream, transaction: Transaction) -> Iterator[str]:
    """Yield when a stream of a transaction came, its size, and how it ended."""
    began_ns = transaction.at_ns
    if stream.at_ns > began_ns:
        yield f"head after {duration(stream.at_ns - began_ns)}"
    head = stream.head
    if head.media_type and stream.body_bytes:
        yield one_line(head.media_type)
    if stream.events or stream.comments:
        comments = [counted(stream.comments, "comment")] if stream.comments else []
        yield ", ".join([counted(stream.events, "event"), *comments])
    if stream.body_bytes:
        yield size(stream.body_bytes) + (f" in {counted(stream.chunks, 'chunk')}" if stream.chunks else "")
    if stream.first_ns is not None and stream.last_ns is not None and stream.last_ns > stream.at_ns:
        first = f"first byte after {duration(stream.first_ns - began_ns)}, " if stream.first_ns < stream.last_ns else ""
        yield f"{first}last byte after {duration(stream.last_ns - began_ns)}"
    if stream.close is not None and (stream.sender == SERVER or stream.close.how != "eof"):
        yield ended_words(transaction) if stream is transaction.response else close_words(stream.close)


def _left_words(transaction: Transaction) -> str:
    """Return who closed the connection before the response, or before the end of the request."""
    return f"{one_line(transaction.ended_by)} closed the connection" if transaction.left_by else "the connection was closed"


def ended_words(transaction: Transaction) -> str:
    """Return who ended the response to a transaction first, and how."""
    close = None if transaction.response is None else transaction.response.close
    if close is None:
        return "open"
    return close_words(close) if transaction.ended_by == close.by else f"disconnected by {transaction.ended_by}"


def close_words(close: Closing) -> str:
    """Return who closed a stream, and how."""
    how = {"eof": "closed", "abort": "aborted", "broken": "disconnected"}.get(close.how, one_line(close.how))
    return f"{how} by {one_line(close.by)}"


def _style(status: int) -> str:
    """Return the style of a status. A 4xx is a warning, because clients often just try: a GET answered by 405, metadata by 404."""
    if status >= HTTP_FAILURES:
        return "bad"
    return "warn" if status >= HTTP_REDIRECTS or status == 0 else "dim"

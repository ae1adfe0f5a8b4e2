"""What is said of an HTTP transaction: in a few words for a row, in a few lines beside the messages that it carried.

Refuses to show heads and bodies: `http_wire` does.
"""

from collections.abc import Iterator

from ...records import SERVER
from ...transcript.http.transaction import Stream, Transaction
from ...transcript.model import HTTP_REDIRECTS, CaptureInfo, Exchange, Message, UnpairedMessage
from ..text.escape import one_line, safe_text
from ..text.line import Line, line_cells
from ..text.units import counted, duration, size
from .phrases import Phrase, raw_phrase, status_words

HTTP_OK = 200
HTTP_FAILURES = 500

USUAL = (HTTP_OK, 202)
"""Statuses that go without saying where a message went well."""

MAX_CHUNKS = 12
"""So many chunk sizes are listed of one frame; more are counted."""


def transaction_phrase(transaction: Transaction) -> Phrase:
    """How a transaction went: its status, and what came with it."""
    response = transaction.response
    if response is None:
        return Phrase("no response", "warn", _left_words(transaction)) if transaction.over else Phrase("pending", "wait")
    return Phrase(
        str(transaction.status or "?"), _style(transaction.status), ", ".join(filter(None, _details(transaction, response)))
    )


def body_bytes(transaction: Transaction) -> int:
    """The size of both bodies, as far as they came."""
    return sum(one.body_bytes for one in (transaction.request, transaction.response) if one is not None)


def status_note(row: Exchange | UnpairedMessage | Message, capture: CaptureInfo) -> str:
    """`HTTP 404` where a message went over HTTP and its status is one that should be told; else empty."""
    if isinstance(row, Exchange):
        asked, answered = row.transaction, None if row.response is None else capture.transaction_of(row.response.stream)
        told = answered if row.sender == "server" and answered is not None else asked
    else:
        message = row.message if isinstance(row, UnpairedMessage) else row
        told = capture.transaction_of(message.stream) if message.sender == "client" else None
    return f"HTTP {told.status}" if told is not None and told.status and told.status not in USUAL else ""


def fact_lines(transaction: Transaction, width: int | None) -> Iterator[Line]:
    """What is known of a transaction beside its messages: of its request, of its response, and each note."""
    numbers = f"transaction {transaction.number} · connection {transaction.connection}"
    scope = transaction.scope
    where = f" · session {safe_text(scope.session)}" if scope.session else ""
    where += f" · answered on transaction {scope.stream}" if scope.stream and scope.stream != transaction.number else ""
    request, response = transaction.request, transaction.response
    yield [(numbers, "strong"), (where, "dim")]
    if request is not None:
        words = one_line(f"{transaction.method} {transaction.target}")
        yield from with_facts([("→ ", ""), (words, "")], list(_facts(request, transaction.at_ns)), width)
    for note in transaction.notes:
        yield [("· ", "dim"), (one_line(f"{note.topic}: {note.text}"), "dim")]
    if response is not None:
        by = " by mcpspy" if response.injected else ""
        words = status_words(transaction) + by
        yield from with_facts(
            [("← ", ""), (words, _style(transaction.status))], list(_facts(response, transaction.at_ns)), width
        )
    elif transaction.over:
        yield [("← ", ""), (f"no response: {_left_words(transaction)}", "warn")]


def chunk_words(sizes: tuple[int, ...]) -> str:
    """Chunk sizes as a packet capture shows them, and in decimal: `0x51 81, 0x10 16`."""
    words = ", ".join(f"{one:#x} {one}" for one in sizes[:MAX_CHUNKS])
    more = len(sizes) - MAX_CHUNKS
    return f"{words}, {counted(more, 'more chunk')}" if more > 0 else words


def with_facts(line: Line, facts: list[str], width: int | None) -> Iterator[Line]:
    """`line` and what is known of it, on as many lines as that takes."""
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
        said = next((one.data for one in transaction.anomalies if one.name == "injected"), b"")
        yield raw_phrase(said) if said.startswith(b"mcpspy") else "by mcpspy"
    if transaction.is_stream:
        yield counted(response.events, "event")
        if transaction.redelivered:
            yield f"{len(transaction.redelivered)} redelivered"
        yield "open" if response.close is None else ended_words(response)
    elif head.media_type and response.body_bytes and not response.injected:
        yield one_line(head.media_type)
    if not transaction.is_stream and response.close is not None and response.close.how != "eof":
        yield ended_words(response)


def _facts(stream: Stream, began_ns: int) -> Iterator[str]:
    """When it came, how much, and how it ended."""
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
    if stream.close is not None and (stream.opened.sender == SERVER or stream.close.how != "eof"):
        yield ended_words(stream)


def _left_words(transaction: Transaction) -> str:
    """Who did not wait for the response, or not for the end of the request."""
    return f"{one_line(transaction.left_by) or 'somebody'} closed the connection"


def ended_words(stream: Stream) -> str:
    """Who ended a stream, and how."""
    close = stream.close
    if close is None:
        return "open"
    how = {"eof": "closed by", "reset": "reset by", "abort": "broken off by", "broken": "left by"}.get(close.how)
    by = one_line(close.by)
    return f"{how} {by}" if how else f"{one_line(close.how)} by {by}"


def _style(status: int) -> str:
    """What a server refuses is often only asked for to find out: a GET answered by 405, metadata by 404."""
    if status >= HTTP_FAILURES:
        return "bad"
    return "warn" if status >= HTTP_REDIRECTS or status == 0 else "dim"

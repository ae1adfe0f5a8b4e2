"""One row in full: an exchange with its request, its answer and all that belongs to it, or a message that is alone in its row.

Payloads are laid out from the bytes as they came. Nothing is left out but the messages of other rows.
"""

from collections.abc import Iterable, Iterator

from ...transcript.absent_facts import TIMES, lacks
from ...transcript.http.transaction import Transaction
from ...transcript.mcp.content import content_facts
from ...transcript.model import CaptureInfo, Exchange, Kind, Message, ModelCall, Numbered, Row, Transcript, UnpairedMessage
from ..text.cells import MIN_CHOP_CELLS, cells, chopped
from ..text.escape import decoded, one_line, safe_text
from ..text.line import Line, Piece, fitted, joined
from ..text.pretty import INDENT, broken, pretty
from ..text.units import duration, microseconds, size
from .about import about_lines
from .calls import call_lines, part_phrase
from .findings import row_finding_lines
from .logs import meanwhile
from .phrases import outcome_phrase, unpaired_phrase
from .transaction import carrying_frame, chunk_words, fact_lines, packet_words, transaction_phrase, with_facts

_BETWEEN: Piece = (" · ", "dim")


def messages_of(row: Numbered) -> list[Message]:
    """Return the messages of a row, by time. A transaction with a row of its own carried none."""
    if isinstance(row, Transaction | ModelCall):
        return []
    if isinstance(row, UnpairedMessage):
        return [row.message]
    return sorted(row.messages, key=lambda message: (message.at_ns, message.number))


def first_message(row: Numbered) -> Message | None:
    """Return the message that a row began with; None for a transaction without one."""
    return (
        None if isinstance(row, Transaction | ModelCall) else row.message if isinstance(row, UnpairedMessage) else row.request
    )


def carrying_transactions(transcript: Transcript, rows: Iterable[Row]) -> list[tuple[Transaction, list[int]]]:
    """Return the transactions that carried `rows`, by time, each with the numbers of its rows."""
    by_identity: dict[int, tuple[Transaction, list[int]]] = {}
    for row in rows:
        if isinstance(row, Numbered):
            for transaction in transcript.captures[row.capture].transactions_of(row):
                by_identity.setdefault(id(transaction), (transaction, []))[1].append(row.row)
    return sorted(by_identity.values(), key=lambda pair: (pair[0].at_ns, pair[0].number))


def row_lines(transcript: Transcript, row: Numbered, *, width: int | None = None, stderr: bool = True) -> Iterator[Line]:
    """Yield everything about `row`. `width` in cells; with None no line is broken, and each payload is valid JSON."""
    if isinstance(row, ModelCall):
        from ...transcript.llm.tool_trips import tool_trips
        from .model_call import model_call_lines

        yield from model_call_lines(transcript, row, tool_trips(transcript), width=width)
        return
    capture = transcript.captures[row.capture]
    for line in _headings(row, capture):
        yield fitted(line, width)
    yield from row_finding_lines(transcript, row, width=width)
    if isinstance(row, Exchange) and row.method == "tools/call" and transcript.model_calls:
        from .model_call import tool_use_lines

        yield from (fitted(line, width) for line in tool_use_lines(transcript, row))
    if not isinstance(row, Transaction):
        yield from call_lines(row, capture, width)
    for message in messages_of(row):
        yield []
        yield from (fitted(line, width) for line in _message_heading(row, message, capture, width))
        yield from _about(row, message, width)
        yield from _payload(message, width)
    for transaction in capture.transactions_of(row):
        yield []
        yield from (fitted(line, width) for line in fact_lines(transaction, capture, width))
    yield from meanwhile(transcript, row, width, stderr=stderr)


def _headings(row: Exchange | UnpairedMessage | Transaction, capture: CaptureInfo) -> list[Line]:
    client, server = safe_text(capture.client_of(row)), safe_text(capture.server)
    sender, id = "client", None
    if isinstance(row, Transaction):
        phrase = transaction_phrase(row, closed=capture.closed)
        words = one_line(f"{row.method} {row.target}")
        parts: list[Line] = [[(f"row {row.row}", "strong")], [(words, "strong")], [(phrase.word, phrase.style)]]
        if row.duration_ns is not None:
            parts.append([(duration(row.duration_ns), "")])
    elif isinstance(row, UnpairedMessage):
        phrase = unpaired_phrase(row, capture)
        parts = [[(f"row {row.row}", "strong")], [(phrase.word, phrase.style)]]
        sender, id = row.message.sender, row.message.id
    else:
        call = capture.calls.get(row.row)
        phrase = outcome_phrase(row) if call is None else part_phrase(outcome_phrase(row), row, call)
        words = one_line(f"{row.method} {row.target or ''}")
        outcome = phrase._replace(style="good") if phrase.word == "ok" else phrase
        parts = [[(f"row {row.row}", "strong")], [(words, "strong")], outcome.line()]
        if row.duration_ns is not None:
            parts.append([(duration(row.duration_ns), "")])
        sender, id = row.sender, row.request.id
    between = f"{client} → {server}" if sender == "client" else f"{server} → {client}"
    where: list[Line] = [[(between, "dim")]]
    if id is not None:
        where.append([(f"id {one_line(id)}", "dim")])
    if (message := first_message(row)) is not None and message.revision is not None:
        where.append([(f"revision {one_line(message.revision)}", "dim")])
    return [joined(parts, _BETWEEN), joined(where, _BETWEEN)]


def _message_heading(row: Numbered, message: Message, capture: CaptureInfo, width: int | None) -> Iterator[Line]:
    arrow = "→" if message.sender == "client" else "←"
    name = one_line(message.method or "") if message.kind is Kind.NOTIFICATION else message.kind.value
    if isinstance(row, Exchange) and any(message is partial for partial in row.partials):
        name = f"partial {name}"
    times = "" if lacks(capture, TIMES) else f"at {microseconds(message.at_ns)} s"
    if message.first_ns < message.at_ns:
        times += f", first byte {duration(message.at_ns - message.first_ns)} earlier"
    if times and isinstance(row, Exchange) and message is not row.request:
        times += f" (+{duration(message.at_ns - row.at_ns)})"
    facts = [*([times] if times else []), f"record {message.number}", size(message.size)]
    facts += [safe_text(flaw) for flaw in message.flaws]
    facts += ["in a batch"] if message.batch else []
    facts += _frame_facts(message, capture)
    yield from with_facts([(f"{arrow} {name}", "strong"), (" ", "")], facts, width)


def _frame_facts(message: Message, capture: CaptureInfo) -> list[str]:
    """Return the HTTP transaction that carried a message, and its chunks and packet, where the transcript keeps frames."""
    transaction = capture.transaction_of(message.stream)
    if transaction is None:
        return []
    frame = carrying_frame(transaction, message)
    if frame is None:
        return [f"transaction {transaction.number}"]
    chunks = [f"in {chunk_words(frame.chunks)}"] if frame.chunks else []
    return [*packet_words(frame), f"transaction {transaction.number}", *chunks]


def _about(row: Numbered, message: Message, width: int | None) -> Iterator[Line]:
    """Yield lines about a message, which are shown above its payload."""
    method = row.method if isinstance(row, Exchange) else message.method or ""
    for text in about_lines(content_facts(message, method)):
        indent = len(text) - len(text.lstrip(" ")) + INDENT
        room = None if width is None else max(width - indent - INDENT, MIN_CHOP_CELLS)
        for index, part in enumerate([text.strip()] if room is None else broken(text.strip(), room)):
            yield [(" " * (indent + (INDENT if index else 0)), ""), (part.rstrip(), "")]


def _payload(message: Message, width: int | None) -> Iterator[Line]:
    if message.kind is not Kind.MALFORMED:
        yield from pretty(message.raw, width=width)
        return
    if message.reason:
        yield [(safe_text(message.reason), "warn")]
    yield from raw_lines(message.raw, width)


def raw_lines(raw: bytes, width: int | None) -> Iterator[Line]:
    """Yield captured bytes as lines for a terminal; what is dangerous or not text is spelled out."""
    for line in decoded(raw).removesuffix("\n").split("\n"):
        text = safe_text(line)
        for piece in [text] if width is None or cells(text) <= width else chopped(text, width):
            yield [(piece, "")]

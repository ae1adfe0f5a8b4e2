"""Findings about answers that were arriving when the client left: on stdio within a line, over HTTP within an event or a body.

→ tools/call export         the client asks
← {"jsonrpc":"2.0","id":3,"result":{"content":[{"text":"2026-11-23 …      1.7 MB of one event
· the client closes the stream                                            the rest was on its way
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT, SERVER
from ....wire.lines import UNENDED
from ...message import Message
from ...model import Exchange, UnpairedMessage
from ..facts import CaptureFacts
from ..rule import Hit, Severity, hit_in, transport_rule
from ..words import call_name, seconds

BROKEN_OFF: Final = transport_rule(
    name="answer-broken-off",
    title="Client left while the answer arrived",
    what="The client closed the connection, or its end of the pipe, within an answer that was arriving.",
    why="The caller has no result. Most often the answer is larger than what the client takes as one message.",
    blame="The client: it left while the answer was arriving.",
    example=(
        '· HTTP\n· handshake 2025-11-25, server: tools\n→ POST /mcp\n  tools/call 3 {"name":"export"}\n← 200 OK\n'
        "  Content-Type: text/event-stream\n"
        '← data: result 3 {"content":[{"type":"text","text":"⟪x×70000⟫"}]}…\n· the client closes the stream'
    ),
    clean=(
        '· HTTP\n· handshake 2025-11-25, server: tools\n→ POST /mcp\n  tools/call 3 {"name":"export"}\n← 200 OK\n'
        "  Content-Type: text/event-stream\n"
        '← data: result 3 {"content":[{"type":"text","text":"⟪x×70000⟫"}]}\n· the client closes the stream'
    ),
    advice=(
        "Look in the client's log for a limit on the size of a message, and raise it; or let the tool answer in pages, or with a "
        "link to a resource."
    ),
)

RULES: Final = (BROKEN_OFF,)

_LIMITS: Final = ((10 << 20, "10 MiB"), (1 << 20, "1 MiB"), (64 << 10, "64 KiB"))
"""Limits for one message that clients on the SDKs, asyncio and Go have."""
_STALLED_NS: Final = 5_000_000_000
"""A client that leaves so long after the last byte waited in vain for the rest."""
_PAUSE_NS: Final = 1_000_000_000
_PIPE_BYTES: Final = 1 << 16
"""A line of this size passes through a pipe at once, unless its writer stops in the middle."""
_UNCLEAR: Final = (
    "Unclear: the client left while the rest was on its way, or the server had stopped in the middle of its answer."
)
_UNCLEAR_ADVICE: Final = "Let the server write each message whole, and flush; and look in the client's log for why it left."
_LIKELY_WITHIN: Final = 300
_ids = lazy_pattern(rb'"id"\s*:\s*("[^"\\]{0,100}"|-?\d{1,30})')


class BrokenOff(NamedTuple):
    """An answer that the client did not take whole: the request, what had come of it, and when the client left."""

    exchange: Exchange
    arrived: Message
    left_ns: int


def broken_off(facts: CaptureFacts) -> Iterator[BrokenOff]:
    """Yield the answers within which the client left."""
    if facts.stopped_reading_ns is not None:
        yield from _left_in_line(facts, facts.stopped_reading_ns)
    for row in facts.malformed:
        if row.message.sender != SERVER or not (row.message.reason == "cut short" or UNENDED in row.message.flaws):
            continue
        left_ns = _left_ns(facts, row)
        exchange = None if left_ns is None else _asked(facts, row.message)
        if left_ns is not None and exchange is not None and left_ns - row.message.at_ns < _STALLED_NS:
            yield BrokenOff(exchange, row.message, left_ns)


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find answers that the client broke off. It is a note if the size of what came meets no usual limit."""
    for exchange, arrived, left_ns in broken_off(facts):
        if _hangs(facts, arrived):
            continue  # `stalls` says so
        limit = next(
            (f"; that is more than {name}, a limit of some clients" for size, name in _LIMITS if arrived.size > size), ""
        )
        what = (
            f"The client left {seconds(max(left_ns - exchange.at_ns, 0))} after it sent {call_name(exchange)}, while the answer was "
            f"arriving: {_amount(arrived, left_ns)}{limit}."
        )
        if limit or _flowed(exchange, arrived, left_ns):
            severity = None if limit else Severity.NOTE
            yield hit_in(BROKEN_OFF, exchange.request, exchange.row, what, culprit=CLIENT, severity=severity)
            continue
        yield hit_in(
            BROKEN_OFF, exchange.request, exchange.row, what, culprit="unclear", severity=Severity.NOTE, blame=_UNCLEAR,
            advice=_UNCLEAR_ADVICE,
        )  # fmt: skip


def _flowed(exchange: Exchange, arrived: Message, left_ns: int) -> bool:
    """Return whether the answer was arriving until the client left. Of a line on stdio only its first byte has a time."""
    return arrived.size > _PIPE_BYTES if exchange.transaction is None else left_ns - arrived.at_ns < _PAUSE_NS


def _hangs(facts: CaptureFacts, piece: Message) -> bool:
    """Return whether nothing came of a line any more after it had waited for its end for seconds."""
    return any(
        partial.stream == piece.stream and partial.first_ns + facts.capture.shift_ns == piece.first_ns
        for _, partial in facts.partials
        if partial.length >= piece.size
    )


def _amount(arrived: Message, left_ns: int) -> str:
    """Say how much had come; of a line whose end the server still wrote, only its whole size is known."""
    if arrived.at_ns > left_ns:
        return f"a line of {arrived.size:,} bytes had begun {seconds(left_ns - arrived.first_ns)} before"
    return f"{arrived.size:,} bytes had come within {seconds(max(arrived.at_ns - arrived.first_ns, 1_000_000))}"


def _left_in_line(facts: CaptureFacts, left_ns: int) -> Iterator[BrokenOff]:
    """Yield the answer whose line began before the client stopped to read and ended later, if no pipe holds as much."""
    for exchange in facts.exchanges:
        line = exchange.response
        if line is None or exchange.sender != CLIENT or not line.first_ns < left_ns < line.at_ns:
            continue
        if line.size > _LIMITS[-1][0] and exchange.cancelled is None:
            yield BrokenOff(exchange, line, left_ns)


def _left_ns(facts: CaptureFacts, row: UnpairedMessage) -> int | None:
    """Return when the client left within a piece of a message; None if the server did."""
    transaction = facts.capture.transaction_of(row.message.stream)
    if transaction is not None:
        return transaction.ended_ns if transaction.ended_by == CLIENT else None
    is_first = facts.left_ns is not None and (facts.gone_ns is None or facts.left_ns < facts.gone_ns)
    is_first = is_first and facts.left_ns is not None and row.message.first_ns < facts.left_ns
    return facts.left_ns if is_first and facts.stream_name(row.message.stream) == "stdout" else None


def _asked(facts: CaptureFacts, piece: Message) -> Exchange | None:
    """Return the request that a piece of an answer belongs to: by its id, or the only one that waits there."""
    pending = [
        exchange
        for exchange in (*facts.unanswered, *facts.cancelled)
        if exchange.response is None and exchange.sender == CLIENT and exchange.cancelled is None
        if _is_due(facts, exchange, piece)
    ]
    ids = {match.decode("utf-8", "replace") for match in _ids.findall(piece.raw[:_LIKELY_WITHIN])}
    named = [exchange for exchange in pending if exchange.request.id in ids]
    candidates = named or (pending if not ids else [])
    return candidates[0] if len(candidates) == 1 else None


def _is_due(facts: CaptureFacts, exchange: Exchange, piece: Message) -> bool:
    transaction, answering = exchange.transaction, facts.capture.transaction_of(piece.stream)
    if transaction is None or answering is None:
        return transaction is answering
    stream = transaction.scope.stream
    return transaction is answering or (bool(stream) and stream == answering.scope.stream)

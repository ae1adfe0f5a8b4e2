"""Findings about readers that stop reading, and about lines whose end does not come."""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT, SERVER, Stall
from ....wire.framing import FRAMINGS
from ....wire.http_body import WholeBody
from ....wire.json_spans import is_json
from ....wire.lines import UNENDED, Lines
from ...model import Exchange, UnpairedMessage
from ...waiting import first_unread
from ..facts import CaptureFacts
from ..hits import hit_on_record
from ..rule import Hit, transport_rule
from ..words import quoted, seconds
from .lines import streams_with_headers

READER_STALLED: Final = transport_rule(
    name="reader-stalled",
    title="Reader stopped reading",
    what="One side did not read for more than a second while the other was writing.",
    why="The writer is blocked, and often everything else it does is blocked too.",
    blame="The reader: mcpspy had bytes ready for it.",
    example="· stdin stalls: 65536 bytes waiting\n· 2.5 s later\n· stdin flows again after 2.5 s",
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    advice="Read messages in one task and handle them in others, so that a long call does not stop the reading.",
)

HALF_LINE: Final = transport_rule(
    name="half-line",
    title="Unfinished line or event",
    what="A line, or an event of SSE, began, and its end did not come within five seconds.",
    why="The reader waits: a message ends with a line feed, an event with an empty line.",
    blame="The writer: mcpspy forwarded everything it wrote.",
    example='← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}…\n· 5.0 s later',
    clean='← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n· 5.0 s later',
    advice="Write the end together with the message, and flush.",
)

RULES: Final = (READER_STALLED, HALF_LINE)


_NOTICED_NS: Final = 1_000_000_000
"""A stall is recorded for the first time when it has lasted so long."""

_READER = {"stdin": "server", "stdout": "client", "stderr": "client", "request": "server", "response": "client"}


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find readers that stopped and lines without an end."""
    yield from _stalls(facts)
    yield from _half_lines(facts)


def _stalls(facts: CaptureFacts) -> Iterator[Hit]:
    """Find each stall once: the record with its duration replaces the one of its beginning."""
    begun: dict[int, tuple[int, Stall]] = {}
    for at_ns, record in facts.stalls:
        if record.lasted_ns is None:
            begun[record.stream] = at_ns, record
            continue
        began_ns, first = begun.pop(record.stream, (at_ns, record))
        yield _stall(facts, began_ns, first, f"for {seconds(record.lasted_ns)}")
    for at_ns, record in begun.values():
        yield _stall(facts, at_ns, record, "until the end")


def was_blocked(facts: CaptureFacts, stream: int, since_ns: int, until_ns: int) -> bool:
    """Return whether the reader of a stream did not read at some time between: then nothing tells when its writer wrote."""
    lasting_ns: float = float("inf")
    for at_ns, record in facts.stalls:
        if record.stream != stream:
            continue
        if record.lasted_ns is None:
            lasting_ns = at_ns - _NOTICED_NS
            continue
        lasting_ns = float("inf")
        if at_ns - record.lasted_ns < until_ns and since_ns < at_ns:
            return True
    return lasting_ns < until_ns


def unread_ns(facts: CaptureFacts, exchange: Exchange, until_ns: int) -> int:
    """Return how long the side that waits for a response did not read meanwhile. What reached it late is its own fault."""
    unread: dict[int, int] = {}
    number = 0 if exchange.transaction is None else exchange.transaction.number
    for at_ns, record in facts.stalls:
        opened = facts.capture.streams.get(record.stream)
        if opened is None or opened.transaction != number or _READER.get(opened.name, CLIENT) != exchange.sender:
            continue
        began_ns, ended_ns = (at_ns, until_ns) if record.lasted_ns is None else (at_ns - record.lasted_ns, at_ns)
        within_ns = max(0, min(ended_ns, until_ns) - max(began_ns, exchange.at_ns))
        unread[record.stream] = unread.get(record.stream, 0) + within_ns
    return max(unread.values(), default=0)


def was_never_read(facts: CaptureFacts, exchange: Exchange) -> bool:
    """Return whether the side that was asked stopped reading before it had read a request, and did not go on."""
    stream = exchange.request.stream
    _, last = next((stall for stall in reversed(facts.stalls) if stall[1].stream == stream), (0, None))
    if last is None or last.lasted_ns is not None:
        return False
    return first_unread(facts.rows, facts.capture, last) <= exchange.request.number < last.number


def _stall(facts: CaptureFacts, at_ns: int, record: Stall, how_long: str) -> Hit:
    name = facts.stream_name(record.stream)
    reader = _READER.get(name, "client")
    what = f"The {reader} stopped reading {name or 'its stream'} {how_long}, with {record.waiting_bytes:,} bytes waiting."
    return hit_on_record(READER_STALLED, facts, at_ns, record.number, what, reader, group=name)


def _half_lines(facts: CaptureFacts) -> Iterator[Hit]:
    if not facts.partials:
        return
    with_headers, ends_ns = streams_with_headers(facts), _ends_ns(facts)
    for at_ns, record in facts.partials:
        name = facts.stream_name(record.stream)
        opened = facts.capture.streams.get(record.stream)
        framing = FRAMINGS.get(opened.framing, Lines) if opened else Lines
        if name == "stderr" or framing is WholeBody:  # nobody waits for the end of a prompt, a progress bar or a long upload
            continue
        first_ns = record.first_ns + facts.capture.shift_ns
        if was_blocked(facts, record.stream, first_ns, at_ns) or record.stream in with_headers:
            continue  # the writer may have written all of it; or it frames messages by their lengths, as `lines` says
        waited = _waited(facts, first_ns, ends_ns.get((record.stream, first_ns)))
        missing, advice = f"The end of {framing.frame_name}", ""
        if framing is Lines and is_json(record.data):
            missing = "The line feed after a whole message"
            advice = "Write a line feed after each message, together with it, and flush."
        what = f"{missing} on {name or 'a stream'} did not come {waited}: {quoted(record.data)}"
        yield hit_on_record(HALF_LINE, facts, at_ns, record.number, what, opened.sender if opened else SERVER, advice=advice)


def _ends_ns(facts: CaptureFacts) -> dict[tuple[int, int], int]:
    """Return when the messages ended that came in two pieces, by their stream and their first byte."""
    unpaired: dict[tuple[int, int], int] = {}
    paired: dict[tuple[int, int], int] = {}
    for row in facts.rows:
        if row.capture != facts.capture.index or not isinstance(row, Exchange | UnpairedMessage):
            continue
        if isinstance(row, Exchange):
            ends_ns, messages = paired, [row.request, row.response, *row.notifications]
        else:
            ends_ns, messages = unpaired, [row.message]
        for message in messages:
            if message is not None and message.first_ns < message.at_ns and UNENDED not in message.flaws:
                ends_ns[message.stream, message.first_ns] = message.at_ns
    return unpaired | paired


def _waited(facts: CaptureFacts, first_ns: int, came_ns: int | None) -> str:
    """Say how long the end of a frame did not come: until it came, until now, or until the capture ends."""
    if came_ns is not None:
        return f"for {seconds(came_ns - first_ns)}"
    now_ns = facts.capture.now_ns
    last_ns = facts.capture.last_ns + facts.capture.shift_ns if now_ns is None else now_ns
    return f"in the {seconds(max(last_ns - first_ns, 0))} until {'the end' if now_ns is None else 'now'}"

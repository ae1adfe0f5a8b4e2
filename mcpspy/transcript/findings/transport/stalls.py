"""Findings about readers that stop reading, and about lines whose end does not come."""

from collections.abc import Iterator
from typing import Final

from ....records import SERVER, Stall
from ....wire.body import WholeBody
from ....wire.framing import FRAMINGS
from ....wire.lines import Lines
from ..facts import CaptureFacts
from ..hits import hit_on_record
from ..rule import Hit, transport_rule
from ..words import quoted, seconds

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

reads_model_api: Final = True

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


def _stall(facts: CaptureFacts, at_ns: int, record: Stall, how_long: str) -> Hit:
    name = facts.stream_name(record.stream)
    reader = _READER.get(name, "client")
    what = f"The {reader} stopped reading {name or 'its stream'} {how_long}, with {record.waiting_bytes:,} bytes waiting."
    return hit_on_record(READER_STALLED, facts, at_ns, record.number, what, reader)


def _half_lines(facts: CaptureFacts) -> Iterator[Hit]:
    for at_ns, record in facts.partials:
        name = facts.stream_name(record.stream)
        opened = facts.capture.streams.get(record.stream)
        framing = FRAMINGS.get(opened.framing, Lines) if opened else Lines
        if name == "stderr" or framing is WholeBody:  # nobody waits for the end of a prompt, a progress bar or a long upload
            continue
        what = f"The end of {framing.frame_name} on {name or 'a stream'} did not come: {quoted(record.data)}"
        yield hit_on_record(HALF_LINE, facts, at_ns, record.number, what, opened.sender if opened else SERVER)

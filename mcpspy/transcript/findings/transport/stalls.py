"""Findings about what passes slowly: a side that does not read, a line whose end does not come."""

from collections.abc import Iterator
from typing import Final

from ....records import SERVER, Partial, Stall
from ....wire.body import WholeBody
from ....wire.framing import FRAMINGS
from ....wire.lines import Lines
from ..facts import CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit
from ..words import quoted, seconds

READER_STALLED: Final = Rule(
    name="reader-stalled",
    title="Reader stopped reading",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="One side stopped reading for more than a second while the other was writing.",
    why="Who writes is blocked, and with it often everything else it does.",
    blame="Whoever reads that stream: bytes waited that mcpspy was ready to hand over.",
    example="· stdin stalls: 65536 bytes waiting\n· 2.5 s later\n· stdin flows again after 2.5 s",
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    fix="Read and handle messages in different tasks, so that a long call does not stop the reading.",
)

HALF_LINE: Final = Rule(
    name="half-line",
    title="Unfinished line or event",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="The beginning of a line, or of an event of SSE, came, and for more than five seconds not its end.",
    why="A message is not read before its line feed, an event not before its empty line: to the reader it has not come.",
    blame="Whoever writes that stream: all that it wrote so far was passed on.",
    example='← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}…\n· 5.0 s later',
    clean='← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n· 5.0 s later',
    fix="Write the end with the message, and flush.",
)

RULES: Final = (READER_STALLED, HALF_LINE)

reads_model_api: Final = True

_READER = {"stdin": "server", "stdout": "client", "stderr": "client", "request": "server", "response": "client"}


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Who kept whom from reading on."""
    yield from _stalls(facts)
    yield from _half_lines(facts)


def _stalls(facts: CaptureFacts) -> Iterator[Hit]:
    """One for each time: the record that says how long it lasted takes the place of the one that said it began."""
    begun: dict[int, tuple[int, Stall]] = {}
    for at_ns, record in facts.stalls:
        if record.lasted_ns is None:
            begun[record.stream] = at_ns, record
            continue
        began_ns, first = begun.pop(record.stream, (at_ns, record))
        yield _stall(facts, began_ns, first, f"for {seconds(record.lasted_ns)}")
    for at_ns, record in begun.values():
        yield _stall(facts, at_ns, record, "and never read on")


def _stall(facts: CaptureFacts, at_ns: int, record: Stall, how_long: str) -> Hit:
    name = facts.stream_name(record.stream)
    reader = _READER.get(name, "client")
    what = f"The {reader} stopped reading {name or 'its stream'} {how_long}, with {record.waiting_bytes:,} bytes waiting."
    return _of_record(READER_STALLED, facts, at_ns, record, what, reader)


def _half_lines(facts: CaptureFacts) -> Iterator[Hit]:
    for at_ns, record in facts.partials:
        name = facts.stream_name(record.stream)
        opened = facts.capture.streams.get(record.stream)
        framing = FRAMINGS.get(opened.framing, Lines) if opened else Lines
        if name == "stderr" or framing is WholeBody:  # a prompt or a progress bar, or a long upload: nobody waits for its end
            continue
        what = f"The beginning of {framing.frame_name} on {name or 'a stream'} waited for its end: {quoted(record.data)}"
        yield _of_record(HALF_LINE, facts, at_ns, record, what, opened.sender if opened else SERVER)


def _of_record(rule: Rule, facts: CaptureFacts, at_ns: int, record: Stall | Partial, what: str, culprit: str) -> Hit:
    return hit(rule, at_ns=at_ns, capture=facts.capture.index, number=record.number, row=None, what=what, culprit=culprit)

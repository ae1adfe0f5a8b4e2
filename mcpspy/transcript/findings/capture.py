"""Findings about the recording itself: what a capture lacks, and how that came."""

from collections.abc import Iterator
from typing import Final

from ...records import Damage
from .facts import CaptureFacts
from .rule import Family, Hit, Rule, Severity, hit

CAPTURE_INCOMPLETE: Final = Rule(
    name="capture-incomplete",
    title="Capture has no end",
    family=Family.CAPTURE,
    severity=Severity.INFO,
    what="The capture has no end: mcpspy was killed, or is still recording.",
    why="What came after its last record is unknown; nothing before it is missing.",
    blame="mcpspy did not come to write its last record; whoever killed it is not in the capture.",
    example='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}\n· the capture breaks off',
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    fix="Nothing, unless it keeps happening: clients kill servers that do not end in time.",
)

CAPTURE_DAMAGED: Final = Rule(
    name="capture-damaged",
    title="Capture damaged",
    family=Family.CAPTURE,
    severity=Severity.WARNING,
    what="Lines of the capture could not be read, or are missing.",
    why="Messages may be missing here, so that findings about answers are left out.",
    blame="The file: its lines are not as mcpspy wrote them.",
    example='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}\n· the line before is flipped',
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    fix="mcpspy verify says what was lost, and --repair copies what is sound.",
)

CAPTURE_EDITED: Final = Rule(
    name="capture-edited",
    title="Capture edited",
    family=Family.CAPTURE,
    severity=Severity.INFO,
    what="Lines of the capture have no checksum: somebody edited them.",
    why="What they say is not what was recorded.",
    blame="The file: mcpspy writes no line without a checksum.",
    example='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}\n· the line before is edited',
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    fix="Nothing, if that was you.",
)

RECORDING_GAP: Final = Rule(
    name="recording-gap",
    title="Messages not recorded",
    family=Family.CAPTURE,
    severity=Severity.WARNING,
    what="Recording failed for a while; traffic went on unrecorded.",
    why="Messages are missing here, so that findings about answers are left out.",
    blame="The disk refused what mcpspy wrote; its reason stands in the finding.",
    example="· No space left on device: 120 frames, 96000 bytes",
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    fix="Make room on the disk, or keep captures elsewhere: MCPSPY_HOME, or --capture FILE.",
)

RULES: Final = (CAPTURE_INCOMPLETE, CAPTURE_DAMAGED, CAPTURE_EDITED, RECORDING_GAP)

reads_model_api: Final = True


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """What the capture lacks."""
    index = facts.capture.index
    for at_ns, gap in facts.gaps:
        what = f"{gap.frames:,} frames with {gap.bytes:,} bytes passed unrecorded: {gap.why}."
        yield hit(RECORDING_GAP, at_ns=at_ns, capture=index, number=gap.number, row=None, what=what, culprit="disk")
    for at_ns, record in facts.damages:
        yield _damage(facts, at_ns, record)
    yield from _completeness(facts)


def _damage(facts: CaptureFacts, at_ns: int, record: Damage) -> Hit:
    rule = CAPTURE_EDITED if record.reason == "edited" else CAPTURE_DAMAGED
    what = f"Line {record.line} of the capture: {record.text}."
    index = facts.capture.index
    return hit(rule, at_ns=at_ns, capture=index, number=-1, row=None, what=what, culprit="file", group=record.reason)


def _completeness(facts: CaptureFacts) -> Iterator[Hit]:
    source = facts.capture
    if not source.closed or facts.end is not None:
        return
    at_ns = source.last_ns + source.shift_ns
    what = "The capture breaks off: mcpspy was killed, or still records."
    yield hit(CAPTURE_INCOMPLETE, at_ns=at_ns, capture=source.index, number=-1, row=None, what=what, culprit="mcpspy")

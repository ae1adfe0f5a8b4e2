"""Findings about the capture itself: records that are missing, damaged or edited."""

from collections.abc import Iterator
from typing import Final

from ..absent_facts import imported_facts
from .facts import CaptureFacts
from .hits import hit_on_record
from .rule import Hit, HitDetails, Severity, capture_rule

CAPTURE_INCOMPLETE: Final = capture_rule(
    name="capture-incomplete",
    title="Capture has no end",
    severity=Severity.NOTE,
    what="The capture has no end, and the client had not ended the session: mcpspy was killed, or is still recording.",
    why="Nothing is known of what came after its last record; nothing before it is missing.",
    blame="mcpspy: it could not write its last record.",
    example='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}\n· the capture breaks off',
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    advice="Ignore this unless it keeps happening: clients kill servers that take too long to end.",
)

CAPTURE_DAMAGED: Final = capture_rule(
    name="capture-damaged",
    title="Capture damaged",
    what="Lines of the capture are missing or cannot be read.",
    why="Messages may be missing, so findings about responses are left out.",
    blame="The file: its lines are not as mcpspy wrote them.",
    example='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}\n· the line before is flipped',
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    advice="Run mcpspy verify to see what was lost, and with --repair to copy the sound lines.",
)

CAPTURE_EDITED: Final = capture_rule(
    name="capture-edited",
    title="Capture edited",
    severity=Severity.NOTE,
    what="Lines of the capture have no checksum: somebody edited them.",
    why="These lines do not show what was recorded.",
    blame="The file: mcpspy writes every line with a checksum.",
    example='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}\n· the line before is edited',
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    advice="Nothing, if you edited them yourself.",
)

RECORDING_GAP: Final = capture_rule(
    name="recording-gap",
    title="Messages not recorded",
    what="Messages are missing: recording failed or paused, another program cut the capture, or an imported file does not have them.",
    why="Messages are missing, so findings about responses are left out.",
    blame="The disk: it refused writes or was too slow; or a program that cut or removed the capture. "
    "Of an imported file: the file, or the program that wrote it.",
    example="· No space left on device: 120 frames, 96000 bytes",
    clean='→ {"jsonrpc":"2.0","id":1,"method":"ping"}\n← {"jsonrpc":"2.0","id":1,"result":{}}',
    advice="Free space on the disk, or store captures elsewhere with MCPSPY_HOME or --capture FILE. "
    "Leave a capture alone while it is recorded.",
)

_RECORD: Final = "Record the session with mcpspy, if you need these messages."
_IMPORTED: Final[HitDetails] = {"blame": "The file, or the program that wrote it.", "advice": _RECORD}
_HARMED: Final[HitDetails] = {
    "blame": "The file: these records were recorded, and damaged or cut out later.",
    "advice": "Leave a capture alone while it is recorded, and keep a copy that nothing else writes to.",
}

RULES: Final = (CAPTURE_INCOMPLETE, CAPTURE_DAMAGED, CAPTURE_EDITED, RECORDING_GAP)


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find what the capture lacks."""
    for at_ns, gap in facts.gaps:
        culprit, details = "disk", HitDetails()
        what = f"{gap.frames:,} frames with {gap.bytes:,} bytes passed unrecorded: {gap.why}."
        if imported_facts(facts.capture.header):
            what = f"Not everything could be read from the imported file: {gap.why}."
            culprit, details = "file", _IMPORTED
        elif gap.was_recorded:
            what = f"{gap.frames:,} records were lost from the capture: {gap.why}."
            culprit, details = "file", _HARMED
        yield hit_on_record(RECORDING_GAP, facts, at_ns, gap.number, what, culprit, **details)
    for at_ns, damage in facts.damages:
        rule = CAPTURE_EDITED if damage.reason == "edited" else CAPTURE_DAMAGED
        what = f"Line {damage.line} of the capture: {damage.text}."
        yield hit_on_record(rule, facts, at_ns, -1, what, "file", group=damage.reason)
    capture = facts.capture
    if capture.closed and facts.end is None and not _was_over(facts):
        what = "The capture breaks off: mcpspy was killed, or is still recording."
        yield hit_on_record(CAPTURE_INCOMPLETE, facts, capture.last_ns + capture.shift_ns, -1, what, "mcpspy")


def _was_over(facts: CaptureFacts) -> bool:
    """Return whether the client had ended the session, and waited for nothing: some clients kill a server, and mcpspy with it."""
    is_ended = facts.stdin_closed_ns is not None or facts.signalled_ns is not None
    return is_ended and not facts.unanswered

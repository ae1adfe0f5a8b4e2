"""Findings about what passes slowly, and about how it was kept: stalls, half lines, gaps and damage."""

from collections.abc import Iterator

from ..records import SERVER, Damage, Partial, Stall
from .found import Found, found, quoted, seconds
from .story import Story

_READER = {"stdin": "server", "stdout": "client", "stderr": "client", "request": "server", "response": "client"}


def keeping_findings(story: Story) -> Iterator[Found]:
    """Who kept whom from reading, and what the capture lacks."""
    yield from _stalls(story)
    yield from _half_lines(story)
    yield from _gaps(story)
    for at_ns, record in story.damages:
        yield _damage(story, at_ns, record)
    yield from _completeness(story)


def _stalls(story: Story) -> Iterator[Found]:
    """One for each time: the record that says how long it lasted takes the place of the one that said it began."""
    begun: dict[int, tuple[int, Stall]] = {}
    for at_ns, record in story.stalls:
        if record.lasted_ns is None:
            begun[record.stream] = at_ns, record
            continue
        began_ns, first = begun.pop(record.stream, (at_ns, record))
        yield _stall(story, began_ns, first, f"for {seconds(record.lasted_ns)}")
    for at_ns, record in begun.values():
        yield _stall(story, at_ns, record, "and never read on")


def _stall(story: Story, at_ns: int, record: Stall, how_long: str) -> Found:
    name = story.stream_name(record.stream)
    reader = _READER.get(name, "client")
    what = f"The {reader} stopped reading {name or 'its stream'} {how_long}, with {record.waiting_bytes:,} bytes waiting."
    return _of_record("reader-stalled", story, at_ns, record, what, reader)


def _half_lines(story: Story) -> Iterator[Found]:
    for at_ns, record in story.partials:
        name = story.stream_name(record.stream)
        opened = story.source.streams.get(record.stream)
        framing = opened.framing if opened else "lines"
        if name == "stderr" or framing == "body":  # a prompt or a progress bar, or a long upload: nobody waits for its end
            continue
        unit = "an event" if framing == "sse" else "a line"
        what = f"The beginning of {unit} on {name or 'a stream'} waited for its end: {quoted(record.data)}"
        yield _of_record("half-line", story, at_ns, record, what, opened.sender if opened else SERVER)


def _gaps(story: Story) -> Iterator[Found]:
    for at_ns, record in story.gaps:
        what = f"{record.frames:,} frames with {record.bytes:,} bytes passed unrecorded: {record.why}."
        yield found(
            "recording-gap", at_ns=at_ns, capture=story.source.index, number=record.number, row=None, what=what, culprit="disk"
        )


def _damage(story: Story, at_ns: int, record: Damage) -> Found:
    rule = "capture-edited" if record.reason == "edited" else "capture-damaged"
    what = f"Line {record.line} of the capture: {record.text}."
    return found(
        rule, at_ns=at_ns, capture=story.source.index, number=-1, row=None, what=what, culprit="file", group=record.reason
    )


def _completeness(story: Story) -> Iterator[Found]:
    source = story.source
    if not source.closed or story.end is not None:
        return
    at_ns = source.last_ns + source.shift_ns
    what = "The capture breaks off: mcpspy was killed, or still records."
    yield found("capture-incomplete", at_ns=at_ns, capture=source.index, number=-1, row=None, what=what, culprit="mcpspy")


def _of_record(rule: str, story: Story, at_ns: int, record: Stall | Partial, what: str, culprit: str) -> Found:
    return found(rule, at_ns=at_ns, capture=story.source.index, number=record.number, row=None, what=what, culprit=culprit)

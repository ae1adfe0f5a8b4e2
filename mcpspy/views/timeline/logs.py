"""Lines of a server's stderr. Where a line quotes a message, a reference to the message's row replaces the JSON.

Takes the log matches that `transcript.log_matches` found.
"""

import re
from collections.abc import Iterator

from ...lazy_pattern import lazy_pattern
from ...transcript.log_matches import LogMatch, line_text, log_matches
from ...transcript.model import CaptureInfo, ChannelEvent, Exchange, Log, Numbered, Row, Transcript
from ..text.cells import ELLIPSIS, cells, chopped, cut
from ..text.escape import safe_text
from ..text.line import Line, fitted, line_cells
from ..text.units import counted, duration, microseconds
from .phrases import event_phrase, log_text

MAX_MEANWHILE = 200
"""The most lines of stderr and events shown below an exchange that ran when they came; more are counted."""

MIN_WORDS_CELLS = 8
"""The cells that the words before a quoted message get at least."""

MAX_INDENT = 2
"""The cells that the indent of a line takes at most if the line is too long."""

_LETTERS_PER_CELL = 4

_LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE"
_prefix = lazy_pattern(
    r"(?:\[?[\d\-/T:.,Z+ ]{1,40}\]? ?)?(?:- )?(?:\[[^\]]{1,60}\] )?"
    rf"\[?({_LEVELS})(?::[\w.]{{1,80}}:|\]?:? +(?:- )?(?:\[[^\]]{{1,60}}\] )?(?:[\w.$:/]{{1,80}}(?: -|:) )?)",
    re.ASCII,
)
"""The prefix of a logger's line: the time, the thread, the level, the name of a class."""


def log_line(raw: bytes, room: int | None) -> Line:
    """Return a line of the log in `room` cells. If it is too long, its indent or the logger's prefix is shortened."""
    text = log_text(raw, room).rstrip(" ")
    if room is None or cells(text) <= room:
        return [(text, "")]
    indent = text[: min(len(text) - len(text.lstrip(" ")), MAX_INDENT)]
    return [(cut(_with_short_prefix(indent + text.lstrip(" ")), room), "")]


def _with_short_prefix(text: str) -> str:
    prefix = _prefix.match(text)
    return text if prefix is None else f"{prefix[1]} {ELLIPSIS} {text[prefix.end() :]}"


def log_match_line(raw: bytes, match: LogMatch, room: int | None, *, inside: int | None = None) -> Line:
    """Return a line of the log that quotes a message, in `room` cells. `inside` is the row that is shown in full, if any.

    On a screen the quoted JSON is replaced by its name, and the last words before it are kept, because they say what the server
    did with the message. On a pipe the line is complete, and the name follows it.

        DEBUG Received: {"jsonrpc":"2.0","id":1,…}   ->   DEBUG Received: {request of row 4} +74 µs
    """
    text = line_text(raw)
    name = f"{match.message.kind} of row {match.row}" if inside != match.row else f"this {match.message.kind}"
    if room is None:
        return [(_safe(text), ""), (f"  = {name}, {_gap(match, spelled=True)}", "dim")]
    letters = _LETTERS_PER_CELL * max(room, 1)
    before, after = _safe(text[: match.begin][-letters:]), _safe(text[match.end :][:letters])
    reference, gap = f"{{{name}}}", f"{' ' if inside is None else ', '}{_gap(match, spelled=inside is not None)}"
    free = room - cells(reference) - cells(gap)
    words = _before(before, max(free, MIN_WORDS_CELLS))
    rest = cut(after, free - cells(words)) if free > cells(words) else ""
    return fitted([(words, ""), (reference, "key"), (rest, ""), (gap, "dim")], room)


def meanwhile(transcript: Transcript, row: Numbered, width: int | None, *, stderr: bool) -> Iterator[Line]:
    """Yield the lines of stderr and the channel events during an exchange, and every line that quotes one of its messages."""
    rows = transcript.rows
    matches = log_matches(other for other in rows if other.capture == row.capture) if stderr else {}
    capture = transcript.captures[row.capture]
    begin_ns, until_ns = _span(row)
    lines: list[Line] = []
    for other in rows:
        if other.capture != row.capture or isinstance(other, Numbered):
            continue
        match = matches.get((other.capture, other.number)) if isinstance(other, Log) else None
        is_meanwhile = begin_ns <= other.at_ns and (until_ns is None or other.at_ns <= until_ns)
        if is_meanwhile or (match is not None and match.row == row.row):
            line = _line(other, match, row.row, capture, width, stderr=stderr)
            if line is not None:
                lines.append(line)
    if lines:
        yield []
        yield [("meanwhile" if isinstance(row, Exchange) else "on stderr", "strong")]
        yield from (fitted(line, width) for line in lines[:MAX_MEANWHILE])
        if len(lines) > MAX_MEANWHILE:
            yield [(f"… {counted(len(lines) - MAX_MEANWHILE, 'more line')}", "dim")]


def _span(row: Numbered) -> tuple[int, int | None]:
    """Return the time span whose lines belong to a row. It is empty for anything but an exchange."""
    if isinstance(row, Exchange):
        return row.at_ns, None if row.response is None else row.response.at_ns
    return row.at_ns, row.at_ns - 1


def _line(
    other: Row, match: LogMatch | None, row: int, capture: CaptureInfo, width: int | None, *, stderr: bool
) -> Line | None:
    at = f"{microseconds(other.at_ns)} "
    if isinstance(other, Log) and stderr:
        head: Line = [(at, "dim"), ("stderr ", "dim")]
        room = None if width is None else width - line_cells(head)
        return [*head, *(log_line(other.raw, room) if match is None else log_match_line(other.raw, match, room, inside=row))]
    if isinstance(other, ChannelEvent):
        phrase = event_phrase(other.record, capture)
        if phrase is not None:
            return [(at, "dim"), ("· ", "dim"), *phrase.line()]
    return None


def _gap(match: LogMatch, *, spelled: bool) -> str:
    """Return the time from a message to the line that quotes it: `+1.20 ms`, or in words."""
    gap = duration(abs(match.gap_ns))
    if not spelled:
        return f"{'-' if match.gap_ns < 0 else '+'}{gap}"
    if match.gap_ns < 0:
        return f"logged {gap} before it was sent"
    return f"logged {gap} after it {'arrived' if match.message.sender == 'client' else 'was sent'}"


def _safe(text: str) -> str:
    return safe_text(text.replace("\t", "    "))


def _before(text: str, limit: int) -> str:
    """Return the words before a quoted message as far as they fit: all, all with a short prefix, or the end."""
    short = _with_short_prefix(text)
    bare = short[short.find(ELLIPSIS) :] if short != text else short
    return next((words for words in (text, short, bare) if cells(words) <= limit), _end_of(text, limit))


def _end_of(text: str, limit: int) -> str:
    """Return the end of `text` in at most `limit` cells."""
    if cells(text) <= limit:
        return text
    return ELLIPSIS + chopped(text[::-1], limit - 1)[0][::-1]

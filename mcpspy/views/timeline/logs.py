"""What a server wrote to stderr, with the messages that it quotes: the JSON gives way to the row where it can be read.

Refuses to look for quotes: `transcript.quotes` finds them.
"""

import re
from collections.abc import Iterator

from ...transcript.log_matches import LogMatch, line_text, log_matches
from ...transcript.model import CaptureInfo, ChannelEvent, Exchange, Log, Numbered, Row, Transcript
from ..text.cells import ELLIPSIS, cells, chopped, cut
from ..text.escape import safe_text
from ..text.line import Line, fitted, line_cells
from ..text.units import MICROSECOND_NS, SECOND_NS, counted, duration
from .phrases import event_phrase, log_text

MAX_MEANWHILE = 200
"""So many lines of stderr and events are shown below an exchange that ran while they came; more are counted."""

MIN_WORDS_CELLS = 8
"""Of the words before a quote so many cells are shown at least."""

_LETTERS_PER_CELL = 4


_LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE"
_begins = re.compile(
    r"(?:\[?[\d\-/T:.,Z+ ]{1,40}\]? ?)?(?:- )?(?:\[[^\]]{1,60}\] )?"
    rf"\[?({_LEVELS})(?::[\w.]{{1,80}}:|\]?:? +(?:- )?(?:\[[^\]]{{1,60}}\] )?(?:[\w.$:/]{{1,80}}(?: -|:) )?)",
    re.ASCII,
).match
"""How loggers begin a line: the time, the thread, the level, the name of a class."""


def log_line(raw: bytes, room: int | None) -> Line:
    """A line of the log in `room` cells. Where it is too long, what a logger puts before the words gives way to the level alone."""
    text = log_text(raw, room)
    if room is None or cells(text) <= room:
        return [(text, "")]
    return [(cut(_without_beginning(text), room), "")]


def _without_beginning(text: str) -> str:
    begin = _begins(text)
    return text if begin is None else f"{begin[1]} {ELLIPSIS} {text[begin.end() :]}"


def quoted_line(raw: bytes, quote: LogMatch, room: int | None, *, inside: int | None = None) -> Line:
    """A line of the log that quotes a message, in `room` cells; `inside` is the row below which it stands, if any.

    On a screen what is quoted gives way to its name, and of the words before it the last ones stay: they say what was done with it.
    On a pipe the line is whole, and the name comes behind it.
    """
    text = line_text(raw)
    name = f"{quote.message.kind} of row {quote.row}" if inside != quote.row else f"this {quote.message.kind}"
    if room is None:
        return [(_safe(text), ""), (f"  = {name}, {_gap(quote, spelled=True)}", "dim")]
    letters = _LETTERS_PER_CELL * max(room, 1)
    before, after = _safe(text[: quote.begin][-letters:]), _safe(text[quote.end :][:letters])
    shown, told = f"{{{name}}}", f"{' ' if inside is None else ', '}{_gap(quote, spelled=inside is not None)}"
    free = room - cells(shown) - cells(told)
    words = _before(before, max(free, MIN_WORDS_CELLS))
    rest = cut(after, free - cells(words)) if free > cells(words) else ""
    return fitted([(words, ""), (shown, "key"), (rest, ""), (told, "dim")], room)


def meanwhile(transcript: Transcript, row: Numbered, width: int | None, *, stderr: bool) -> Iterator[Line]:
    """What the server wrote to stderr, and what happened to the channel, while an exchange ran; and every line that quotes it."""
    found = log_matches(one for one in transcript.rows if one.capture == row.capture) if stderr else {}
    capture = transcript.captures[row.capture]
    begin_ns, until_ns = _span(row)
    lines: list[Line] = []
    for other in transcript.rows:
        if other.capture != row.capture or isinstance(other, Numbered):
            continue
        quote = found.get((other.capture, other.number)) if isinstance(other, Log) else None
        is_meanwhile = begin_ns <= other.at_ns and (until_ns is None or other.at_ns <= until_ns)
        if is_meanwhile or (quote is not None and quote.row == row.row):
            line = _line(other, quote, row.row, capture, width, stderr=stderr)
            if line is not None:
                lines.append(line)
    if lines:
        yield []
        yield [("meanwhile" if isinstance(row, Exchange) else "on stderr", "strong")]
        yield from (fitted(line, width) for line in lines[:MAX_MEANWHILE])
        if len(lines) > MAX_MEANWHILE:
            yield [(f"… {counted(len(lines) - MAX_MEANWHILE, 'more line')}", "dim")]


def _span(row: Numbered) -> tuple[int, int | None]:
    """From when to when lines belong to a row: an exchange lasts, all else has none of its own."""
    if isinstance(row, Exchange):
        return row.at_ns, None if row.response is None else row.response.at_ns
    return row.at_ns, row.at_ns - 1


def _line(
    other: Row, quote: LogMatch | None, row: int, capture: CaptureInfo, width: int | None, *, stderr: bool
) -> Line | None:
    at = f"{microseconds(other.at_ns)} "
    if isinstance(other, Log) and stderr:
        head: Line = [(at, "dim"), ("stderr ", "dim")]
        room = None if width is None else width - line_cells(head)
        return [*head, *(log_line(other.raw, room) if quote is None else quoted_line(other.raw, quote, room, inside=row))]
    if isinstance(other, ChannelEvent):
        phrase = event_phrase(other.record, capture)
        if phrase is not None:
            return [
                (at, "dim"),
                ("· ", "dim"),
                (phrase.word, phrase.style),
                (f": {phrase.detail}" if phrase.detail else "", ""),
            ]
    return None


def microseconds(at_ns: int) -> str:
    """A point in time in seconds, to the microsecond."""
    whole, rest = divmod(at_ns, SECOND_NS)
    return f"{whole}.{rest // MICROSECOND_NS:06d}"


def _gap(quote: LogMatch, *, spelled: bool) -> str:
    """How long after its message a line came: `+1.20 ms`, or in words."""
    gap = duration(abs(quote.gap_ns))
    if not spelled:
        return f"{'-' if quote.gap_ns < 0 else '+'}{gap}"
    when = (
        "before it was sent"
        if quote.gap_ns < 0
        else "after it came"
        if quote.message.sender == "client"
        else "after it was sent"
    )
    return f"logged {gap} {when}"


def _safe(text: str) -> str:
    return safe_text(text.replace("\t", "    "))


def _before(text: str, limit: int) -> str:
    """Of the words before a quote what fits: all, all but what loggers put first, or the end."""
    short = _without_beginning(text)
    bare = short[short.find(ELLIPSIS) :] if short != text else short
    return next((one for one in (text, short, bare) if cells(one) <= limit), _end_of(text, limit))


def _end_of(text: str, limit: int) -> str:
    """The end of `text` in at most `limit` cells."""
    if cells(text) <= limit:
        return text
    return ELLIPSIS + chopped(text[::-1], limit - 1)[0][::-1]

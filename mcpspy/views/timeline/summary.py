"""The first line of a timeline: how many calls, what went wrong, what is pending, and whether all of it was recorded.

Below it, one line for each capture that is shown. Refuses to list what went wrong: the rows do.
"""

from collections import Counter
from datetime import datetime, tzinfo

from ...transcript.findings.rule import Severity
from ...transcript.model import CaptureInfo, Outcome, Transcript
from ...transcript.phases import Lifecycle, Phase, StartUp, lifecycles
from ...transcript.stats.outcomes import outcomes
from ..text.cells import cells
from ..text.escape import safe_text
from ..text.line import Line, Piece, fitted, joined, line_cells
from ..text.units import counted, duration
from .phrases import command_words, exit_words

MAX_CAPTURES = 8
"""More captures than this are counted, not listed."""

MAX_EXITS = 2
"""More servers that ended in one way are counted, not named."""

MAX_CLIENTS = 4
"""Of the clients of one capture so many are named."""

_BAD = (Outcome.ERROR, Outcome.TOOL_ERROR, Outcome.HTTP_ERROR, Outcome.UNANSWERED)
_SEPARATOR = " · "
_BETWEEN: Piece = (_SEPARATOR, "dim")


def summary(*transcripts: Transcript, live: bool = False, width: int | None = None, since: str = "") -> list[Line]:
    """One line on all of it, or more where `width` cells are too few; `live` says that a tap still records.

    `since` is for transcripts of what was alive since a moment: `since 2026-11-21 09:30`.
    """
    captures = [capture for one in transcripts for capture in shown_captures(one, since)]
    findings = sum(len(one.findings) for one in transcripts)
    severities = {finding.severity for one in transcripts for finding in one.findings}
    found: Counter[Outcome] = sum((outcomes(one) for one in transcripts), Counter())
    when = since or f"in {duration(_lasted_ns(transcripts))}"
    models = Counter(call.outcome for one in transcripts for call in one.model_calls)
    is_well = severities <= {Severity.INFO} and models.keys() <= {Outcome.OK}
    parts = [_calls(found, when, is_well=is_well)] if found or not models else []
    parts += outcome_counts(found)
    parts += _model_calls(models, "" if parts else when)
    if findings:
        parts.append([(counted(findings, "finding"), "warn")])
    parts += _exits(captures)
    parts.append([_completeness(captures, live=live)])
    return headline(_sign(found + models, is_bad=Severity.ERROR in severities), parts, width)


def outcome_counts(found: Counter[Outcome]) -> list[Line]:
    """What did not go well, and how often: `2 errors`, `1 pending`."""
    return [[_count(found[one], one.value, style)] for one, style in _STYLES.items() if found[one]]


def shown_captures(transcript: Transcript, since: str) -> list[CaptureInfo]:
    """The captures that a transcript is about: all, or those of which something was alive since a moment."""
    if not since:
        return transcript.captures
    alive = {row.capture for row in transcript.rows}
    return [one for one in transcript.captures if one.index in alive]


def capture_lines(
    transcript: Transcript,
    zone: tzinfo | None = None,
    *,
    width: int | None = None,
    phases: bool = True,
    since: str = "",
) -> list[Line]:
    """Lines for each capture: its server, when it began in the time zone `zone` (None: the system's), and what was tapped.

    `phases` puts the phases of a server that was started below it, in `width` cells. `since` is as for `summary`.
    """
    lines: list[Line] = []
    shown, found = shown_captures(transcript, since), lifecycles(transcript)
    for one in shown[:MAX_CAPTURES]:
        if one.header:
            lines.append(capture_line(one, zone))
            lines += phases_lines(found[one.index], width) if phases else []
    more = len(shown) - MAX_CAPTURES
    if more > 0:
        lines.append([(f"… {counted(more, 'more capture')}", "dim")])
    return lines


_STYLES = {
    Outcome.ERROR: "bad",
    Outcome.TOOL_ERROR: "bad",
    Outcome.HTTP_ERROR: "bad",
    Outcome.UNANSWERED: "bad",
    Outcome.CANCELLED: "warn",
    Outcome.REDIRECTED: "warn",
    Outcome.PENDING: "wait",
    Outcome.PROBE: "dim",
}


def _calls(found: Counter[Outcome], when: str, *, is_well: bool) -> Line:
    calls = found.total()
    if not calls:
        return [(f"no calls {when}" if when.startswith("since") else "no calls", "strong")]
    words = f"{counted(calls, 'call')} {when}"
    if is_well and found[Outcome.OK] + found[Outcome.PROBE] == calls:
        words += ", all well" if calls > 1 else ", well"
    return [(words, "strong")]


def _model_calls(found: Counter[Outcome], when: str) -> list[Line]:
    """Calls of models, and what of them did not go well."""
    if not found:
        return []
    words = f"{counted(found.total(), 'model call')} {when}".rstrip()
    return [[(words, "strong")], *outcome_counts(found)]


def _lasted_ns(transcripts: tuple[Transcript, ...]) -> int:
    """From the first beginning to the last record. Several transcripts have the wall clock in common, each its own axis."""
    spans: list[tuple[int, int]] = []
    for one in transcripts:
        last_ns = max((capture.last_ns + capture.shift_ns for capture in one.captures), default=0)
        begins = [capture.header.wall_ns - capture.shift_ns for capture in one.captures if capture.header]
        if begins or len(transcripts) == 1:
            begin_ns = begins[0] if begins else 0
            spans.append((begin_ns, begin_ns + last_ns))
    return max((end for _, end in spans), default=0) - min((begin for begin, _ in spans), default=0)


def _count(count: int, word: str, style: str) -> Piece:
    if word.endswith("error"):
        return counted(count, word), style
    return f"{count:,} {word}", style


def _exits(captures: list[CaptureInfo]) -> list[Line]:
    """Servers that did not end well."""
    ended = [(capture.server, capture.exit) for capture in captures if capture.exit is not None]
    by_words: dict[str, list[str]] = {}
    for server, end in ended:
        if end.code != 0:
            by_words.setdefault(exit_words(end), []).append(safe_text(server))
    return [[(f"{_those(servers)} {words}", "warn")] for words, some in by_words.items() for servers in _grouped(some)]


def _grouped(servers: list[str]) -> list[list[str]]:
    """Each by itself while they are few."""
    return [servers] if len(servers) > MAX_EXITS else [[one] for one in servers]


def _those(servers: list[str]) -> str:
    return servers[0] if len(servers) == 1 else counted(len(servers), "server")


def _completeness(captures: list[CaptureInfo], *, live: bool) -> Piece:
    counts = (
        (sum(one.gaps for one in captures), "gap"),
        (sum(one.damages for one in captures), "damaged line"),
    )
    lost = [counted(count, word) for count, word in counts if count]
    unkept = sum(one.unkept for one in captures)
    left_out = [*lost, f"payloads of {counted(unkept, 'frame')} not kept"] if unkept else lost
    if live:
        return ", ".join(["recording", *left_out]), "bad" if lost else "warn" if left_out else "wait"
    if all(one.complete for one in captures) and not lost:
        return ", ".join(["complete", *left_out]), "warn" if left_out else "good"
    cut_off = sum(1 for one in captures if not one.complete)
    word = "incomplete" if len(captures) == 1 or not cut_off else f"{cut_off} of {len(captures)} captures incomplete"
    return (f"{word}: {', '.join(left_out)}" if left_out else word), "bad" if lost else "warn"


def headline(sign: Piece, parts: list[Line], width: int | None) -> list[Line]:
    """The parts behind `sign`, broken between two of them where the line is full."""
    lines: list[Line] = [[sign, *parts[0]]]
    for part in parts[1:]:
        longer = joined([lines[-1], part], _BETWEEN)
        if width is None or line_cells(longer) <= width:
            lines[-1] = longer
        else:
            lines.append([("  ", ""), *part])
    return [fitted(line, width) for line in lines]


def _sign(found: Counter[Outcome], *, is_bad: bool) -> Piece:
    if is_bad or any(found[one] for one in _BAD):
        return "✗ ", "bad"
    if found[Outcome.PENDING]:
        return "… ", "wait"
    return ("✓ ", "good") if found else ("· ", "dim")


def capture_line(capture: CaptureInfo, zone: tzinfo | None = None) -> Line:
    """One capture: who talks to whom, when it began, what was tapped. Empty where the header is lost."""
    if capture.header is None:
        return []
    try:
        began = datetime.fromtimestamp(capture.header.wall_ns // 1_000_000_000, zone).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        began = "at an impossible time"
    clients = [safe_text(one) for one in capture.clients]
    more = [counted(len(clients) - MAX_CLIENTS, "more client")] if len(clients) > MAX_CLIENTS else []
    words = [", ".join(clients[:MAX_CLIENTS] + more), "→", safe_text(capture.server), " ", began, " ", command_words(capture)]
    return [("  " + " ".join(words), "dim")]


def phase_words(phases: list[Phase]) -> list[str]:
    """How long each phase took: `start 2.99 s`."""
    return [f"{one.name} {'…' if one.duration_ns is None else duration(one.duration_ns)}" for one in phases]


def start_up_words(start_up: StartUp) -> list[str]:
    """When the server first said something: `first answer after 3.20 s`."""
    marks = (("first log line", start_up.first_log_ns), ("first answer", start_up.first_answer_ns))
    known = sorted((at_ns, what) for what, at_ns in marks if at_ns is not None)
    return [f"{what} after {duration(max(0, at_ns - start_up.spawned_ns))}" for at_ns, what in known]


def phases_lines(course: Lifecycle, width: int | None) -> list[Line]:
    """The phases in a line of `width` cells, or in more; none where no tap started the server, and where it never answered."""
    start_up = course.start_up
    if start_up is None or start_up.first_answer_ns is None:
        return []
    return [[("  " + line, "dim")] for line in wrapped_words(phase_words(course.phases), None if width is None else width - 2)]


def wrapped_words(words: list[str], room: int | None) -> list[str]:
    """`words`, of which there is one at least, with a sign between them, on as many lines of `room` cells as they take."""
    lines = [words[0]]
    for word in words[1:]:
        longer = lines[-1] + _SEPARATOR + word
        if room is None or cells(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines

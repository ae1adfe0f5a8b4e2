"""The first lines of a timeline: the number of calls, what went wrong, what is pending, and whether all of it was recorded.

Below it, a line for each capture, and the phases of its server.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime, tzinfo

from ...transcript.absent_facts import TIMES, lacks
from ...transcript.findings.finders import left_rules
from ...transcript.findings.rule import Severity, Unchecked, is_at_least
from ...transcript.findings.run import unchecked
from ...transcript.model import CaptureInfo, Exchange, Outcome, Transcript
from ...transcript.phases import Lifecycle, Phase, StartUp, lifecycles
from ...transcript.stats.outcomes import Troubles, outcomes, troubles
from ...transcript.waiting import waited_ns
from ..text.cells import cells
from ..text.escape import safe_text
from ..text.line import Line, Piece, fitted, joined, line_cells
from ..text.units import counted, duration
from .phrases import OUTCOME_STYLES, command_words, exit_words

MAX_CAPTURES = 8
"""More captures than this are counted, not listed."""

MAX_EXITS = 2
"""More servers than this that ended in the same way are counted, not named."""

MAX_CLIENTS = 4
"""The most clients of one capture that are named."""

WAITING: Piece = ("… ", "wait")
WELL: Piece = ("✓ ", "good")
FLAG: Piece = ("⚑ ", "warn")
"""The sign of a session without bad findings in which a call failed, or something was given up, refused, ended by force or cut."""

UNKNOWN: Piece = ("· ", "dim")
"""The sign of a session of which nobody can say that it went well or badly."""

FAILURES = (Outcome.ERROR, Outcome.TOOL_ERROR, Outcome.UNANSWERED, Outcome.CANCELLED)
"""Outcomes that leave something to explain. Refused calls are counted among the troubles, where a login is none."""

_SEPARATOR = " · "
_BETWEEN: Piece = (_SEPARATOR, "dim")


def summary(
    *transcripts: Transcript, live: bool = False, checked: bool = True, width: int | None = None, since: str = ""
) -> list[Line]:
    """Return one line about the transcripts, or more where `width` cells are too few; `live` says that a tap still records.

    Unless `checked`, findings about some rows are not known yet. `since` is for transcripts that were cut at a point in time:
    `since 2026-11-21 09:30`.
    """
    captures = [capture for transcript in transcripts for capture in shown_captures(transcript, since)]
    findings = [finding for transcript in transcripts for finding in transcript.findings]
    severities = {finding.severity for finding in findings}
    calls: Counter[Outcome] = sum((outcomes(transcript) for transcript in transcripts), Counter())
    model_calls = Counter(call.outcome for transcript in transcripts for call in transcript.model_calls)
    lasted_ns = _lasted_ns(transcripts)
    when = since or (f"in {duration(lasted_ns)}" if lasted_ns else "")
    trouble = troubles(*transcripts)
    left = {rule for transcript in transcripts for rule in left_rules(transcript)}
    sign = session_sign(calls, model_calls, trouble, severities, checked=checked and not left)
    parts = [_calls(calls, when, is_ok=sign == WELL)] if calls or not model_calls else []
    parts += outcome_counts(calls)
    parts += _longest_wait(transcripts) if calls[Outcome.PENDING] else []
    parts += _model_calls(model_calls, "" if parts else when)
    parts += trouble_counts(trouble)
    if findings:
        parts.append([(counted(len(findings), "finding"), "warn")])
    if not checked:
        parts.append([("not all checked yet", "wait")])
    parts += _exits(captures)
    parts.append([_completeness(captures, live=live)])
    if checked:
        parts += [[(f"{len(left)} rules left to check", "dim")]] if left else []
        parts += unchecked_counts([limit for transcript in transcripts for limit in unchecked(transcript)], left)
    return headline(sign, parts, width)


def _longest_wait(transcripts: tuple[Transcript, ...]) -> list[Line]:
    """Return how long the oldest pending call has waited: `waiting for 3.20 s`."""
    longest_ns = max((waited for transcript in transcripts for _, waited in _waits(transcript)), default=0)
    return [[(f"waiting for {duration(longest_ns)}", "wait")]] if longest_ns else []


def _waits(transcript: Transcript) -> Iterator[tuple[int, int]]:
    """Yield the time of each pending call, and how long it has waited."""
    for row in transcript.rows:
        if isinstance(row, Exchange) and not row.over:
            yield row.at_ns, waited_ns(row, transcript.captures[row.capture]) or 0


def outcome_counts(counts: Counter[Outcome]) -> list[Line]:
    """Return the outcomes other than ok, with their counts: `2 errors`, `1 pending`."""
    styles = [(outcome, style) for outcome, style in OUTCOME_STYLES.items() if counts[outcome] and outcome is not Outcome.OK]
    return [[_count(counts[outcome], outcome.value, style)] for outcome, style in styles]


def unchecked_counts(limits: Collection[Unchecked], left: Collection[str] = ()) -> list[Line]:
    """Count the rules that did not run, but not those that were `left` to check, and say if others did not look at everything."""
    idle = {rule for limit in limits if not limit.did_run for rule in limit.rules if rule not in left}
    words = [f"{counted(len(idle), 'rule')} did not run"] if idle else []
    words += ["not all messages were checked"] if any(limit.did_run for limit in limits) else []
    return [[(word, "warn")] for word in words]


def trouble_counts(trouble: Troubles) -> list[Line]:
    """Return the troubles that no outcome of a call shows, with their counts: `1 forced stop`."""
    counts = {
        "refused message": trouble.refused_messages,
        "forced stop": trouble.forced_stops,
        "cut stream": trouble.cut_streams,
    }
    return [[(counted(count, noun), "warn")] for noun, count in counts.items() if count]


def shown_captures(transcript: Transcript, since: str) -> list[CaptureInfo]:
    """Return the captures of a transcript: all, or with `since` those that have rows."""
    if not since:
        return transcript.captures
    alive = {row.capture for row in transcript.rows}
    return [capture for capture in transcript.captures if capture.index in alive]


def capture_lines(
    transcript: Transcript,
    zone: tzinfo | None = None,
    *,
    width: int | None = None,
    phases: bool = True,
    since: str = "",
) -> list[Line]:
    """Return lines for each capture: client and server, when it began in `zone` (None: the system's), and what was tapped.

    `phases` adds the phases of its server, in `width` cells. `since` is as for `summary`.
    """
    lines: list[Line] = []
    shown, of_captures = shown_captures(transcript, since), lifecycles(transcript)
    for capture in shown[:MAX_CAPTURES]:
        if capture.header:
            lines.append(capture_line(capture, zone))
            lines += phases_lines(of_captures[capture.index], width) if phases else []
    more = len(shown) - MAX_CAPTURES
    if more > 0:
        lines.append([(f"… {counted(more, 'more capture')}", "dim")])
    return lines


def _calls(counts: Counter[Outcome], when: str, *, is_ok: bool) -> Line:
    calls = counts.total()
    if not calls:
        return [(f"no calls {when}" if when.startswith("since") else "no calls", "strong")]
    words = f"{counted(calls, 'call')} {when}".rstrip()
    if is_ok and counts[Outcome.OK] + counts[Outcome.PROBE] == calls:
        words += ", all ok" if calls > 1 else ", ok"
    return [(words, "strong")]


def _model_calls(counts: Counter[Outcome], when: str) -> list[Line]:
    """Return the number of model calls, and their outcomes other than ok."""
    if not counts:
        return []
    words = f"{counted(counts.total(), 'model call')} {when}".rstrip()
    return [[(words, "strong")], *outcome_counts(counts)]


def _lasted_ns(transcripts: tuple[Transcript, ...]) -> int:
    """Return the time from the first beginning to the last record.

    The transcripts share the wall clock, but each has its own time axis.
    """
    spans: list[tuple[int, int]] = []
    for transcript in transcripts:
        last_ns = last_of(transcript)
        begins = [capture.header.wall_ns - capture.shift_ns for capture in transcript.captures if capture.header]
        if begins or len(transcripts) == 1:
            begin_ns = begins[0] if begins else 0
            spans.append((begin_ns, begin_ns + last_ns))
    return max((end for _, end in spans), default=0) - min((begin for begin, _ in spans), default=0)


def last_of(transcript: Transcript) -> int:
    """Return the time of the last record, or the time up to which a pending call has waited, if that is later."""
    ends = [capture.last_ns + capture.shift_ns for capture in transcript.captures]
    return max([*ends, *(at_ns + waited for at_ns, waited in _waits(transcript)), 0])


def _count(count: int, word: str, style: str) -> Piece:
    if word.endswith("error"):
        return counted(count, word), style
    return f"{count:,} {word}", style


def _exits(captures: list[CaptureInfo]) -> list[Line]:
    """Return the servers that did not exit with status 0, grouped by how they ended."""
    ended = [(capture.server, capture.exit) for capture in captures if capture.exit is not None]
    by_words: dict[str, list[str]] = {}
    for server, end in ended:
        if end.code != 0:
            by_words.setdefault(exit_words(end), []).append(safe_text(server))
    parts: list[Line] = []
    for words, names in by_words.items():
        shown = [counted(len(names), "server")] if len(names) > MAX_EXITS else names
        parts += [[(f"{name} {words}", "warn")] for name in shown]
    return parts


def _completeness(captures: list[CaptureInfo], *, live: bool) -> Piece:
    counts = (
        (sum(capture.gaps for capture in captures), "gap"),
        (sum(capture.damages for capture in captures), "damaged line"),
    )
    lost = [counted(count, word) for count, word in counts if count]
    unkept = sum(capture.unkept for capture in captures)
    left_out = [*lost, f"payloads of {counted(unkept, 'frame')} not kept"] if unkept else lost
    if live:
        return ", ".join(["recording", *left_out]), "bad" if lost else "warn" if left_out else "wait"
    cut_off = sum(1 for capture in captures if not capture.complete)
    noun = "capture" if len(captures) == 1 else "captures"
    if not cut_off and not lost:
        return ", ".join([f"{noun} complete", *left_out]), "warn" if left_out else "good"
    word = f"{noun} incomplete" if noun == "capture" or not cut_off else f"{cut_off} of {len(captures)} {noun} incomplete"
    return (f"{word}: {', '.join(left_out)}" if left_out else word), "bad" if lost else "warn"


def headline(sign: Piece, parts: list[Line], width: int | None) -> list[Line]:
    """Return a sign and parts separated by `·`, broken between two parts where the line is full."""
    lines: list[Line] = [[sign, *parts[0]]]
    for part in parts[1:]:
        longer = joined([lines[-1], part], _BETWEEN)
        if width is None or line_cells(longer) <= width:
            lines[-1] = longer
        else:
            lines.append([("  ", ""), *part])
    return [fitted(line, width) for line in lines]


def session_sign(
    calls: Counter[Outcome],
    model_calls: Counter[Outcome],
    trouble: Troubles,
    severities: Collection[Severity],
    fail_on: Severity = Severity.WARNING,
    *,
    checked: bool = True,
) -> Piece:
    """Return the sign of a session, which `show` and `check` begin with: `✗` if a finding is as bad as `fail_on`.

    Else `…` while a call waits, `⚑` if something did not go well, and `✓` if all did. It is `·` if there was no call, or if nothing
    bad is known but not everything was `checked`.
    """
    if any(is_at_least(severity, fail_on) for severity in severities):
        return "✗ ", "bad"
    if calls[Outcome.PENDING] or model_calls[Outcome.PENDING]:
        return WAITING
    if trouble or any(calls[outcome] for outcome in FAILURES) or model_calls.keys() - {Outcome.OK}:
        return FLAG
    if any(is_at_least(severity, Severity.WARNING) for severity in severities):
        return FLAG
    return WELL if checked and (calls or model_calls) else UNKNOWN


def capture_line(capture: CaptureInfo, zone: tzinfo | None = None) -> Line:
    """Return the line of one capture: client and server, when it began, what was tapped. Empty where the header is missing."""
    if capture.header is None:
        return []
    try:
        began = datetime.fromtimestamp(capture.header.wall_ns // 1_000_000_000, zone).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        began = "at an unknown time"
    if lacks(capture, TIMES):
        began = "at an unknown time"
    clients = [safe_text(name) for name in capture.clients]
    more = [counted(len(clients) - MAX_CLIENTS, "more client")] if len(clients) > MAX_CLIENTS else []
    words = [", ".join(clients[:MAX_CLIENTS] + more), "→", safe_text(capture.server), " ", began, " ", command_words(capture)]
    return [("  " + " ".join(words), "dim")]


def phase_words(phases: list[Phase]) -> list[str]:
    """Return the duration of each phase: `start 2.99 s`."""
    return [f"{phase.name} {'…' if phase.duration_ns is None else duration(phase.duration_ns)}" for phase in phases]


def start_up_words(start_up: StartUp) -> list[str]:
    """Return the times of the server's first log line and first answer: `first answer after 3.20 s`."""
    marks = (("first log line", start_up.first_log_ns), ("first answer", start_up.first_answer_ns))
    known = sorted((at_ns, what) for what, at_ns in marks if at_ns is not None)
    return [f"{what} after {duration(max(0, at_ns - start_up.spawned_ns))}" for at_ns, what in known]


def phases_lines(lifecycle: Lifecycle, width: int | None) -> list[Line]:
    """Return the phases on lines of `width` cells; none if mcpspy started the server and it never answered."""
    start_up, phases = lifecycle.start_up, lifecycle.phases
    if not phases or (start_up is not None and start_up.first_answer_ns is None):
        return []
    room = None if width is None else width - 2
    return [[("  " + line, "dim")] for line in wrapped_words(phase_words(phases), room)]


def wrapped_words(words: list[str], room: int | None) -> list[str]:
    """Join `words` (at least one) with `·`, on as many lines of `room` cells as they take."""
    lines = [words[0]]
    for word in words[1:]:
        longer = lines[-1] + _SEPARATOR + word
        if room is None or cells(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines

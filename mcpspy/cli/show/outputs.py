"""The outputs of `show -f`: lines on a pipe, JSON, or a terminal with the pending calls below the lines."""

from collections import Counter
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ...transcript.calls.call import Call
from ...transcript.findings.finders import is_large
from ...transcript.findings.run import findings
from ...transcript.hops import forwarded_calls, recent_forwarded_calls
from ...transcript.http.transaction import Transaction
from ...transcript.model import Exchange, Log, ModelCall, Outcome, Row, Transcript
from ...transcript.stats.outcomes import outcomes_of
from ...views.json.rows import state_line
from ...views.text.columns import Lanes, columns
from ...views.text.escape import safe_text
from ...views.text.line import PALETTE, Line, fitted, joined, line_cells
from ...views.text.units import counted
from ...views.timeline.details import Detail, has_room, row_detail
from ...views.timeline.summary import capture_line, outcome_counts, summary
from ...views.timeline.timeline import EXPECTED_WORDS_CELLS, Timeline
from ..credential_search import CredentialSearch
from ..screen import Screen
from ..since import Since, recent_rows
from ..transcripts import now_ns
from .follow import FollowedRecording, LiveFilter

_SEPARATOR = (" · ", "dim")

REDRAW_S = 0.2
"""The seconds between redraws of running timers, while calls are pending."""

MAX_PENDING = 8
"""The number of pending calls that are listed; the others are counted."""

MAX_HELD_LINES = 5_000
"""The number of lines that are held before they are printed."""

MAX_UNJOINED = 200
"""So many printed calls are remembered that may still turn out to have passed a gateway."""

EXPECTED_ROWS = 999
EXPECTED_NS = 9_999 * 1_000_000_000
EXPECTED_ID_CELLS = 4
EXPECTED_PARAMS_CELLS = 72
"""The values for which columns are made, as later rows are not known."""


class JsonOutput:
    """JSON: an object whenever a row changes."""

    redraw_s: float | None = None

    def __init__(self, screen: Screen, *, stderr: bool) -> None:
        self._screen = screen
        self._stderr = stderr

    def row(self, followed: FollowedRecording, row: Row, *, ended: bool) -> None:
        """Print the row as it is now."""
        if self._stderr or not isinstance(row, Log):
            self._screen.texts([state_line(row, followed.captures)])

    def rest(self, all_followed: list[FollowedRecording]) -> None:
        """Do nothing: all is printed already."""

    def close(self, all_followed: list[FollowedRecording]) -> None:
        """Do nothing: all is printed already."""


class LineOutput:
    """Lines of each row when it has ended. `write` prints them, many at a time."""

    redraw_s: float | None = None

    def __init__(
        self, screen: Screen, write: Callable[[list[Line]], None], *, stderr: bool, detail: Detail | None = None
    ) -> None:
        self._screen = screen
        self._detail = detail
        self._write = write
        self._stderr = stderr
        self._lines: list[Line] = []
        self._timelines: dict[FollowedRecording, Timeline] = {}
        self._introduced: dict[FollowedRecording, int] = {}
        self._last: FollowedRecording | None = None
        self._unjoined: dict[FollowedRecording, set[int]] = {}
        """Rows of calls that were printed, and have no lines about a gateway yet."""

    def row(self, followed: FollowedRecording, row: Row, *, ended: bool) -> None:
        """Print a row that has ended."""
        if isinstance(row, Exchange | Transaction | ModelCall) and not ended:
            return
        if isinstance(row, Exchange) and len(followed.captures) > 1:
            self._unjoined.setdefault(followed, set()).add(row.row)
        timeline = self.timeline(followed)
        if followed is not self._last or self._introduced[followed] < len(followed.captures):
            self._introduce(followed, timeline)
        self._lines += timeline.feed(row)
        if len(self._lines) >= MAX_HELD_LINES:
            self._flush()

    def rest(self, all_followed: list[FollowedRecording]) -> None:
        """Print the held lines; successive lines of stderr among them are folded."""
        if self._last is not None:
            self._lines += self.timeline(self._last).pause()
        for followed in self._unjoined:
            self._join(followed)
        self._flush()

    def _join(self, followed: FollowedRecording) -> None:
        """Print what the gateway between two captures did with the calls that were printed."""
        printed = self._unjoined[followed]
        calls = recent_forwarded_calls(followed.growing.transcript) if printed else {}
        for call in {call.outer.row: call for call in calls.values()}.values():
            if call.outer.row in printed and all(row.response is not None for row in (call.outer, *call.inner)):
                from ...views.timeline.hops import hop_lines  # compares them, which most sessions have no need of

                printed -= {call.outer.row, *(row.row for row in call.inner)}
                head = (f"row {call.outer.row} ", "dim")
                self._lines += [fitted([head, *line], self._screen.width) for line in hop_lines(call, followed.captures)]
        if len(printed) > MAX_UNJOINED:
            self._unjoined[followed] = set(sorted(printed)[-MAX_UNJOINED:])

    def close(self, all_followed: list[FollowedRecording]) -> None:
        """Print the rest."""
        if self._last is not None:
            self._lines += self.timeline(self._last).close()
        self.rest(all_followed)

    def timeline(self, followed: FollowedRecording) -> Timeline:
        """Return the timeline of a recording, for the width that the screen has now."""
        timeline = self._timelines.get(followed)
        width = self._screen.width
        if timeline is not None and timeline.lanes.knows(followed.captures) and timeline.columns.width == width:
            return timeline
        lanes, detail = Lanes(followed.captures), row_detail(width, self._detail)
        with_params = detail is not Detail.NAMES and has_room(width)
        shape = columns(
            width=width,
            last_row=EXPECTED_ROWS,
            last_ns=EXPECTED_NS,
            longest_id=EXPECTED_ID_CELLS,
            lanes=lanes.names,
            lane_role=lanes.role,
            longest_words=EXPECTED_PARAMS_CELLS if with_params else EXPECTED_WORDS_CELLS,
            with_params=with_params,
        )
        if timeline is None:
            timeline = Timeline(shape, lanes, stderr=self._stderr)
        timeline.columns, timeline.lanes, timeline.detail = shape, lanes, detail
        self._timelines[followed] = timeline
        self._introduced.setdefault(followed, 0)
        return timeline

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self._write(lines)

    def _introduce(self, followed: FollowedRecording, timeline: Timeline) -> None:
        """Say which recording the next rows belong to: each server when it joins, and briefly after rows of another recording."""
        if self._last is not None:
            self._lines += self._timelines[self._last].pause()
        width = self._screen.width
        if self._introduced[followed] == len(followed.captures):
            self._lines.append(fitted(_name_line(followed), width))
            self._last = followed
            return
        new = followed.captures[self._introduced[followed] :]
        self._lines += [fitted(line, width) for line in map(capture_line, new) if line]
        if self._last is None:
            self._lines += [[], fitted(timeline.columns.header(), width)]
        self._introduced[followed] = len(followed.captures)
        self._last = followed


class TerminalOutput:
    """A terminal: rows scroll, and below them are the pending calls with running timers, and a status line."""

    redraw_s: float | None = REDRAW_S

    def __init__(
        self,
        screen: Screen,
        *,
        stderr: bool,
        detail: Detail | None = None,
        live_filter: LiveFilter | None = None,
        since: Since | None = None,
    ) -> None:
        self._screen = screen
        self._since = since
        self._filter = live_filter
        self._rows = LineOutput(screen, self._print, stderr=stderr, detail=detail)
        self._outcomes: Counter[Outcome] = Counter()
        """Of calls that are one exchange."""
        self._calls: dict[tuple[FollowedRecording, int], Call] = {}
        """Calls that may be several exchanges."""
        self._console = Console(highlight=False, markup=False, emoji=False, color_system="standard", soft_wrap=True)
        self._live = Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )

    def row(self, followed: FollowedRecording, row: Row, *, ended: bool) -> None:
        """Print a row that has ended."""
        if isinstance(row, Exchange):
            call = followed.captures[row.capture].calls.get(row.row)
            if call is not None:
                self._calls[followed, call.row] = call
            elif ended:
                self._outcomes[row.outcome] += 1
        self._rows.row(followed, row, ended=ended)

    def rest(self, all_followed: list[FollowedRecording]) -> None:
        """Print the rows that have ended, and redraw what is below them."""
        self._screen.measure()
        self._rows.rest(all_followed)
        self._live.start()
        region = [fitted(line, (self._screen.width or 80) - 1) for line in self._region(all_followed)]
        self._live.update(Group(*map(self._text, region)), refresh=True)

    def close(self, all_followed: list[FollowedRecording]) -> None:
        """Remove what is below the rows, and print a summary of all recordings."""
        self._rows.close(all_followed)
        self._live.stop()
        if all_followed:
            since = self._since
            transcripts = [_shown_transcript(followed, since) for followed in all_followed]
            live = any(followed.growing.live for followed in all_followed)
            since_words, width = "" if since is None else since.words, self._screen.width
            checked = not any(is_large(transcript) for transcript in transcripts)
            lines = summary(*transcripts, live=live, checked=checked, width=width, since=since_words)
            self._screen.lines([[], *lines])
            if self._filter is not None:
                self._screen.lines([fitted([("  ", ""), *self._filter.line(all_followed)], self._screen.width)])

    def _print(self, lines: list[Line]) -> None:
        if self._live.is_started:
            self._console.print(Text("\n").join(map(self._text, lines)))
        else:
            self._screen.lines(lines)

    def _region(self, all_followed: list[FollowedRecording]) -> list[Line]:
        pending = [(followed, row) for followed in all_followed for row in followed.waiting() if self._shows(followed, row)]
        lines: list[Line] = []
        for followed, row in pending[:MAX_PENDING]:
            lines.append(self._rows.timeline(followed).pending(row, now_ns(followed.captures[row.capture])))
        if len(pending) > MAX_PENDING:
            lines.append([(f"… {counted(len(pending) - MAX_PENDING, 'more pending call')}", "wait")])
        return [[], *lines, self._status(all_followed)] if lines else [[], self._status(all_followed)]

    def _shows(self, followed: FollowedRecording, row: Exchange | ModelCall) -> bool:
        return self._filter is None or self._filter.has_passed(followed, row)

    def _count(self, all_followed: list[FollowedRecording]) -> Counter[Outcome]:
        """Count the outcomes of calls so far, as the summary does."""
        outcomes = Counter(self._outcomes)
        for (followed, _), call in self._calls.items():
            outcomes += outcomes_of(call.exchanges, followed.captures)
        for followed in all_followed:
            exchanges = [row for row in followed.pending.values() if isinstance(row, Exchange)]
            single = (row for row in exchanges if row.row not in followed.captures[row.capture].calls)
            outcomes[Outcome.PENDING] += sum(1 for row in single if self._shows(followed, row))
        return outcomes

    def _status(self, all_followed: list[FollowedRecording]) -> Line:
        recorded = [
            capture.server
            for followed in all_followed
            for tail, capture in zip(followed.growing.tails, followed.captures, strict=False)
            if not tail.over
        ]
        outcomes = self._count(all_followed)
        rest = [[(counted(outcomes.total(), "call"), "")], *outcome_counts(outcomes), [("Ctrl-C ends", "dim")]]
        if not recorded:
            return joined([[("○ ", "dim"), ("waiting for the next capture", "dim")], *rest], _SEPARATOR)
        names, width = safe_text(", ".join(recorded)), self._screen.width
        for what in (names, counted(len(recorded), "server")):
            line = joined([[("● ", "bad"), (f"recording {what}", "")], *rest], _SEPARATOR)
            if width is None or line_cells(line) < width:
                break
        return line

    def _text(self, line: Line) -> Text:
        return Text.assemble(*((self._screen.letters(text), PALETTE[style]) for text, style in line))


def _name_line(followed: FollowedRecording) -> Line:
    """Name a recording that was introduced before by its clients and servers."""
    names = [(capture.client, capture.server) for capture in followed.captures]
    clients, servers = (safe_text(", ".join(dict.fromkeys(column))) for column in zip(*names, strict=True))
    return [(f"  {clients} → {servers}", "dim")]


def _shown_transcript(followed: FollowedRecording, since: Since | None) -> Transcript:
    """Select the rows of a recording that are of the time since a moment, with their findings: none where they take long."""
    transcript = followed.growing.transcript
    has_findings = not is_large(transcript)
    if has_findings and len(transcript.captures) > 1:
        transcript.hops = forwarded_calls(transcript)
    if since is None:
        transcript.findings = findings(transcript) if has_findings else []
        return transcript
    recent = recent_rows(transcript, [tail.path for tail in followed.growing.tails], since)
    found = findings(transcript, recent.is_about) if has_findings else []
    return Transcript(transcript.captures, recent.rows, found, transcript.hops, CredentialSearch(), transcript.limits)

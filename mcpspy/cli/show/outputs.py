"""Where `show -f` puts rows: lines on a pipe, JSON objects, or lines above a region that shows what is pending."""

import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ...transcript.http.transaction import Transaction
from ...transcript.model import Exchange, Log, ModelCall, Outcome, Row, Transcript
from ...transcript.stats.outcomes import outcomes_of
from ...views.json.rows import state_line
from ...views.text.columns import columns
from ...views.text.escape import safe_text
from ...views.text.lanes import Lanes
from ...views.text.line import PALETTE, Line, fitted, joined, line_cells
from ...views.text.units import counted
from ...views.timeline.summary import capture_line, outcome_counts, summary
from ...views.timeline.timeline import Timeline
from ..screen import Screen
from ..since import Since, recent_rows
from .follow import Followed
from .live_filter import Sieve

if TYPE_CHECKING:
    from ...transcript.calls.call import Call

_BETWEEN = (" · ", "dim")

REDRAW_S = 0.2
"""How often running timers are redrawn while calls are pending."""

MAX_PENDING = 8
"""More pending calls than this are counted in the region, not listed."""

MAX_HELD_LINES = 5_000
"""So many lines are held before they are printed, while a batch lasts."""

EXPECTED_ROWS = 999
EXPECTED_NS = 9_999 * 1_000_000_000
EXPECTED_ID_CELLS = 4
EXPECTED_WORDS_CELLS = 36
"""What the columns are made for, since nobody knows what will come."""


class StatesOut:
    """JSON: an object for each change of state."""

    redraw_s: float | None = None

    def __init__(self, screen: Screen, *, stderr: bool) -> None:
        self._screen = screen
        self._stderr = stderr

    def row(self, followed: Followed, row: Row, *, ended: bool) -> None:
        """Print it as it is now."""
        if self._stderr or not isinstance(row, Log):
            self._screen.texts([state_line(row, followed.captures)])

    def rest(self, all_followed: list[Followed]) -> None:
        """All is printed already."""

    def close(self, all_followed: list[Followed]) -> None:
        """Nothing is left to say."""


class RowsOut:
    """Lines, each row's when it has ended. `write` takes them, many at a time."""

    redraw_s: float | None = None

    def __init__(self, screen: Screen, write: Callable[[list[Line]], None], *, stderr: bool) -> None:
        self._screen = screen
        self._write = write
        self._stderr = stderr
        self._lines: list[Line] = []
        self._timelines: dict[Followed, Timeline] = {}
        self._introduced: dict[Followed, int] = {}
        self._last: Followed | None = None

    def row(self, followed: Followed, row: Row, *, ended: bool) -> None:
        """Print what has ended."""
        if isinstance(row, Exchange | Transaction | ModelCall) and not ended:
            return
        timeline = self.timeline(followed)
        if followed is not self._last or self._introduced[followed] < len(followed.captures):
            self._introduce(followed, timeline)
        self._lines += timeline.feed(row)
        if len(self._lines) >= MAX_HELD_LINES:
            self._flush()

    def rest(self, all_followed: list[Followed]) -> None:
        """Print what a batch has brought; a run of stderr is folded within it."""
        if self._last is not None:
            self._lines += self.timeline(self._last).pause()
        self._flush()

    def close(self, all_followed: list[Followed]) -> None:
        """Print what is left."""
        if self._last is not None:
            self._lines += self.timeline(self._last).close()
        self.rest(all_followed)

    def timeline(self, followed: Followed) -> Timeline:
        """What makes the lines of a recording, as wide as the screen is now."""
        found = self._timelines.get(followed)
        width = self._screen.width
        is_known = found is not None and found.lanes.knows(followed.captures)
        if found is not None and is_known and found.columns.width == width:
            return found
        lanes = Lanes(followed.captures)
        shape = columns(
            width=width,
            last_row=EXPECTED_ROWS,
            last_ns=EXPECTED_NS,
            longest_id=EXPECTED_ID_CELLS,
            lanes=lanes.names,
            lane_role=lanes.role,
            longest_words=EXPECTED_WORDS_CELLS,
        )
        if found is None:
            found = Timeline(shape, lanes, stderr=self._stderr)
        found.columns, found.lanes = shape, lanes
        self._timelines[followed] = found
        self._introduced.setdefault(followed, 0)
        return found

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self._write(lines)

    def _introduce(self, followed: Followed, timeline: Timeline) -> None:
        """Say whose rows these are: each server as it joins, and in a word when others came between."""
        if self._last is not None:
            self._lines += self._timelines[self._last].pause()
        width = self._screen.width
        if self._introduced[followed] == len(followed.captures):
            self._lines.append(fitted(_again(followed), width))
            self._last = followed
            return
        if self._last is not None:
            self._lines.append([])
        new = followed.captures[self._introduced[followed] :]
        self._lines += [fitted(line, width) for line in map(capture_line, new) if line]
        self._lines += [[], fitted(timeline.columns.header(), width)]
        self._introduced[followed] = len(followed.captures)
        self._last = followed


class RegionOut:
    """A terminal: rows scroll by, and below them stands what is pending, with a running timer, and what goes on at all."""

    redraw_s: float | None = REDRAW_S

    def __init__(self, screen: Screen, *, stderr: bool, sieve: Sieve | None = None, since: Since | None = None) -> None:
        self._screen = screen
        self._since = since
        self._sieve = sieve
        self._rows = RowsOut(screen, self._print, stderr=stderr)
        self._outcomes: Counter[Outcome] = Counter()
        """Of what was asked in one exchange."""
        self._calls: dict[tuple[Followed, int], Call] = {}
        """What may take several."""
        self._console = Console(highlight=False, markup=False, emoji=False, color_system="standard", soft_wrap=True)
        self._live = Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )

    def row(self, followed: Followed, row: Row, *, ended: bool) -> None:
        """Print what has ended."""
        if isinstance(row, Exchange):
            call = followed.captures[row.capture].calls.get(row.row)
            if call is not None:
                self._calls[followed, call.row] = call
            elif ended:
                self._outcomes[row.outcome] += 1
        self._rows.row(followed, row, ended=ended)

    def rest(self, all_followed: list[Followed]) -> None:
        """Print what has ended, and the region anew."""
        self._screen.measure()
        self._rows.rest(all_followed)
        self._live.start()
        region = [fitted(line, (self._screen.width or 80) - 1) for line in self._region(all_followed)]
        self._live.update(Group(*map(self._text, region)), refresh=True)

    def close(self, all_followed: list[Followed]) -> None:
        """Take the region away and leave a summary on all that was followed, as the region's status line was."""
        self._rows.close(all_followed)
        self._live.stop()
        if all_followed:
            since = self._since
            transcripts = [_followed(one, since) for one in all_followed]
            live = any(followed.growing.live for followed in all_followed)
            words = "" if since is None else since.words
            self._screen.lines([[], *summary(*transcripts, live=live, width=self._screen.width, since=words)])
            if self._sieve is not None:
                self._screen.lines([fitted([("  ", ""), *self._sieve.line(all_followed)], self._screen.width)])

    def _print(self, lines: list[Line]) -> None:
        if self._live.is_started:
            self._console.print(Text("\n").join(map(self._text, lines)))
        else:
            self._screen.lines(lines)

    def _region(self, all_followed: list[Followed]) -> list[Line]:
        pending = [(followed, row) for followed in all_followed for row in followed.waiting() if self._shows(followed, row)]
        lines: list[Line] = []
        for followed, row in pending[:MAX_PENDING]:
            lines.append(self._rows.timeline(followed).pending(row, _now_ns(followed, row)))
        if len(pending) > MAX_PENDING:
            lines.append([(f"… {counted(len(pending) - MAX_PENDING, 'more pending call')}", "wait")])
        return [[], *lines, self._status(all_followed)] if lines else [[], self._status(all_followed)]

    def _shows(self, followed: Followed, row: Exchange | ModelCall) -> bool:
        return self._sieve is None or self._sieve.has_passed(followed, row)

    def _counted(self, all_followed: list[Followed]) -> Counter[Outcome]:
        """What became of the calls so far, as the summary counts them."""
        found = Counter(self._outcomes)
        for (followed, _), call in self._calls.items():
            found += outcomes_of(call.exchanges, followed.captures)
        for followed in all_followed:
            exchanges = [row for row in followed.pending.values() if isinstance(row, Exchange)]
            single = (row for row in exchanges if row.row not in followed.captures[row.capture].calls)
            found[Outcome.PENDING] += sum(1 for row in single if self._shows(followed, row))
        return found

    def _status(self, all_followed: list[Followed]) -> Line:
        recorded = [
            source.server
            for followed in all_followed
            for tail, source in zip(followed.growing.tails, followed.captures, strict=False)
            if not tail.over
        ]
        found = self._counted(all_followed)
        rest = [[(counted(found.total(), "call"), "")], *outcome_counts(found), [("Ctrl-C ends", "dim")]]
        if not recorded:
            return joined([[("○ ", "dim"), ("waiting for the next capture", "dim")], *rest], _BETWEEN)
        names, width = safe_text(", ".join(recorded)), self._screen.width
        for what in (names, counted(len(recorded), "server")):
            line = joined([[("● ", "bad"), (f"recording {what}", "")], *rest], _BETWEEN)
            if width is None or line_cells(line) < width:
                break
        return line

    def _text(self, line: Line) -> Text:
        return Text.assemble(*((self._screen.letters(text), PALETTE[style]) for text, style in line))


def _again(followed: Followed) -> Line:
    """Whose rows follow, of a recording that was introduced before: its clients and its servers."""
    names = (dict.fromkeys(names) for names in zip(*((one.client, one.server) for one in followed.captures), strict=True))
    clients, servers = (safe_text(", ".join(found)) for found in names)
    return [(f"  {clients} → {servers}", "dim")]


def _followed(followed: Followed, since: Since | None) -> Transcript:
    """What was followed of a recording."""
    known = followed.growing.transcript
    if since is None:
        return known
    return Transcript(known.captures, recent_rows(known, [tail.path for tail in followed.growing.tails], since).rows)


def _now_ns(followed: Followed, row: Exchange | ModelCall) -> int:
    """The present moment on the transcript's clock, which is wall time here: a pending call may be older than we are."""
    source = followed.captures[row.capture]
    return time.time_ns() - source.header.wall_ns + source.shift_ns if source.header else row.at_ns

"""`show -f`: rows as they end, from captures as they grow, and from new captures in the store.

One loop: wait, read what is new, give it to an output (`outputs`), which prints it. A timer runs only while calls are pending on a
terminal.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from signal import SIGINT, SIGTERM, signal
from typing import TYPE_CHECKING, Protocol

from ...capture.store.address import STDIN
from ...capture.store.catalog import CatalogEntry, Recording, elsewhere, entries, entry, recordings
from ...capture.store.folder import EXTENSION, captures_folder
from ...capture.store.pruning import SETTLED_NS
from ...errors import AddressError
from ...platform.system import be_nice
from ...platform.watch import Watch
from ...transcript.http.transaction import Transaction
from ...transcript.model import CaptureInfo, Exchange, ModelCall, Numbered, Outcome, Row
from ...views.text.escape import safe_text
from ...views.text.filter_lines import matching_line
from ...views.text.line import Line
from ..screen import say
from ..since import Since
from ..transcripts import DEFAULT_WHAT, GrowingTranscript, select_captures

if TYPE_CHECKING:
    from ...transcript.filter.filter import FilterMatcher
    from ...transcript.filter.grammar import Filter

NICENESS = 5
"""The live view must not slow the traffic that it shows."""


class FollowedRecording:
    """A recording that is followed: its growing transcript, and its pending calls."""

    __slots__ = ("_since_ns", "early", "growing", "parent", "pending", "streams", "working")

    def __init__(self, *, keeps_frames: bool = False) -> None:
        self.growing = GrowingTranscript(keeps_frames=keeps_frames)
        self.parent: tuple[object, ...] | None = None
        self.pending: dict[int, Exchange | ModelCall] = {}
        self.working: dict[int, Exchange] = {}
        """The first exchanges of calls whose task is working, by row."""
        self.streams: set[int] = set()
        """The rows of open event streams and of model answers, which are shown when they begin and when they end; with a minus sign,
        the model answers whose end was shown."""
        self.early: dict[int, Exchange] = {}
        """Pending requests that were sent before the moment of --since."""
        self._since_ns: dict[int, int] = {}

    def is_recent(self, capture: int, since: Since | None) -> bool:
        """Return whether the last record that was read from a capture is of the time since then."""
        if since is None:
            return True
        info = self.captures[capture]
        if capture not in self._since_ns:
            self._since_ns[capture] = since.on_clock_ns(info.header, self.growing.tails[capture].path)
        return info.last_ns >= self._since_ns[capture]

    @property
    def captures(self) -> list[CaptureInfo]:
        """Its captures."""
        return self.growing.transcript.captures

    def waiting(self) -> list[Exchange | ModelCall]:
        """List what is pending: requests without an answer, and calls whose task is working."""
        working = (row for row in self.working.values() if not self.captures[row.capture].closed)
        return sorted([*self.pending.values(), *working], key=lambda row: row.row)

    def note_task(self, row: Exchange) -> None:
        """Note whether the call of `row` became a task that is working."""
        call = self.captures[row.capture].calls.get(row.row)
        if call is None or call.task is None:
            return
        if call.outcome is Outcome.PENDING and call.row not in self.pending:
            self.working[call.row] = call.first
        else:
            self.working.pop(call.row, None)


class Output(Protocol):
    """A place to print rows. `row` gets each row that is new or has changed; `rest` is called before each wait."""

    @property
    def redraw_s(self) -> float | None:
        """The seconds between calls of `rest` while calls are pending, even if nothing happens; None: no limit."""

    def row(self, followed: FollowedRecording, row: Row, *, ended: bool) -> None:
        """Take a row, and whether it has just ended."""

    def rest(self, all_followed: list[FollowedRecording]) -> None:
        """Print what was held: nothing more comes for now."""

    def close(self, all_followed: list[FollowedRecording]) -> None:
        """Finish: the user ended it."""


class LiveFilter:
    """A filter of followed rows: a row is shown when it first matches, and from then on."""

    __slots__ = ("_condition", "_ended", "_matchers", "_shown")

    def __init__(self, condition: Filter) -> None:
        if "rule" in condition.keys:
            import click

            raise click.UsageError("rule: needs the findings, which are made at the end; leave out -f.")
        self._condition = condition
        self._matchers: dict[FollowedRecording, FilterMatcher] = {}
        self._shown: set[tuple[FollowedRecording, int]] = set()
        self._ended: set[tuple[FollowedRecording, int]] = set()
        """Rows that ended before they matched."""

    def passes(self, followed: FollowedRecording, row: Row, *, ended: bool) -> bool | None:
        """Return whether a row that is shown has ended; None for one that is not shown."""
        if not isinstance(row, Numbered):
            return ended if self._matches(followed, row) else None
        key = followed, row.row
        if key in self._shown:
            return ended
        if not self._matches(followed, row):
            if ended:
                self._ended.add(key)
            return None
        self._shown.add(key)
        return ended or key in self._ended

    def has_passed(self, followed: FollowedRecording, row: Numbered) -> bool:
        """Return whether a row is shown."""
        return (followed, row.row) in self._shown

    def line(self, all_followed: list[FollowedRecording]) -> Line:
        """Count the rows that are shown, and all."""
        rows = sum(isinstance(row, Numbered) for followed in all_followed for row in followed.growing.transcript.rows)
        return matching_line(self._condition, len(self._shown), rows)

    def _matches(self, followed: FollowedRecording, row: Row) -> bool:
        matcher = self._matchers.get(followed)
        if matcher is None:
            from ...transcript.filter.filter import FilterMatcher

            matcher = self._matchers[followed] = FilterMatcher(self._condition, followed.growing.transcript)
        return matcher.matches(row)


class Follower:
    """The followed recordings, and a watch on the store for new captures; `wants` says which of those to follow.

    `keeps_frames` is for outputs that show HTTP as it is on the wire. Rows that ended before `since` are left out, and those that
    the filter does not show.
    """

    __slots__ = ("_all", "_empty", "_filter", "_keeps_frames", "_known", "_output", "_since", "_wants", "_watch", "ended_by")

    def __init__(
        self,
        output: Output,
        watch: Watch,
        wants: Callable[[CatalogEntry], bool],
        *,
        keeps_frames: bool,
        since: Since | None,
        live_filter: LiveFilter | None,
    ) -> None:
        self._filter = live_filter
        self._keeps_frames = keeps_frames
        self._since = since
        self._output = output
        self._watch = watch
        self._wants = wants
        self._all: list[FollowedRecording] = []
        self._known = set(_names())
        self._empty = [path for name in self._known if _is_empty(path := os.path.join(captures_folder(), name))]
        """Captures that have no header yet."""
        self.ended_by = 0
        """The signal that ended it. An exception alone may be lost: Python drops those that a callback of its imports raises."""

    def begin(self, paths: tuple[str, ...]) -> None:
        """Follow captures as one recording."""
        if paths:
            self._all.append(FollowedRecording(keeps_frames=self._keeps_frames))
        for path in paths:
            self._add(self._all[-1], path, None if path == STDIN else entry(path))

    def run(self) -> None:
        """Follow until interrupted, or until standard input ends, if only that is followed."""
        while not self.ended_by:
            self._watch.add(_watched_folder())
            self._look_for_newer()
            for followed in self._all:
                self._take(followed)
            self._show_waits()
            self._output.rest(self._all)
            sys.stdout.flush()
            if self._all and all(tail.path == STDIN and tail.over for followed in self._all for tail in followed.growing.tails):
                return
            pending = any(followed.waiting() for followed in self._all)
            if not self.ended_by:
                self._watch.wait(self._output.redraw_s if pending else None)

    def close(self) -> None:
        """Let the output finish."""
        self._output.close(self._all)
        sys.stdout.flush()

    def _take(self, followed: FollowedRecording) -> None:
        for row in followed.growing.take():
            ended = True
            if isinstance(row, Exchange):
                if row.response is None and row.cancelled is None and not row.over:
                    followed.pending[row.row] = row
                    ended = False
                else:
                    ended = followed.pending.pop(row.row, None) is not None
                followed.note_task(row)
                if not ended and not followed.is_recent(row.capture, self._since):
                    followed.early[row.row] = row
                    continue
                followed.early.pop(row.row, None)
            elif isinstance(row, ModelCall):
                ended = row.transaction.over or followed.captures[row.capture].closed
                if not _is_model_news(followed, row, ended=ended):
                    continue
            elif isinstance(row, Transaction):
                ended = _is_news(followed, row)
            if followed.is_recent(row.capture, self._since):
                self._show(followed, row, ended=ended)
        for row in followed.early.values():
            self._show(followed, row, ended=False)
        followed.early.clear()
        for tail in followed.growing.tails:
            if tail.over:
                self._watch.remove(tail.path)
                if tail.path == STDIN:
                    self._watch.remove_input()

    def _show_waits(self) -> None:
        """Show pending calls that match by now, as those that have waited long enough for `dur>2s`."""
        if self._filter is None:
            return
        for followed in self._all:
            for row in followed.pending.values():
                if not self._filter.has_passed(followed, row):
                    self._show(followed, row, ended=False)

    def _show(self, followed: FollowedRecording, row: Row, *, ended: bool) -> None:
        """Give a row to the output, if the filter shows it."""
        has_ended = ended if self._filter is None else self._filter.passes(followed, row, ended=ended)
        if has_ended is not None:
            self._output.row(followed, row, ended=has_ended)

    def _look_for_newer(self) -> None:
        """Follow captures that are new in the store, first those of a recording that is followed already."""
        names = set(_names())
        new = [*self._empty, *sorted(os.path.join(captures_folder(), name) for name in names - self._known)]
        self._known = names
        self._empty = []
        wanted: list[tuple[bool, str, CatalogEntry]] = []
        for path in new:
            capture = None if self._follows(path) else entry(path)
            if capture is None:
                continue
            if capture.header is None and capture.size_bytes == 0:
                self._await_header(path, capture)
            elif capture.header is not None and self._wants(capture):
                wanted.append((self._recording_of(capture) is None, path, capture))
        for _, path, capture in sorted(wanted, key=lambda item: item[:2]):
            recording = self._recording_of(capture)
            if recording is None:
                recording = FollowedRecording(keeps_frames=self._keeps_frames)
                self._all.append(recording)
            self._add(recording, path, capture)

    def _await_header(self, path: str, capture: CatalogEntry) -> None:
        """Look again when the tap has written the header; a tap that was killed at once never will."""
        if capture.live or time.time_ns() - capture.begin_ns < SETTLED_NS:
            self._empty.append(path)
            self._watch.add(path)
        else:
            self._watch.remove(path)

    def _follows(self, path: str) -> bool:
        return any(tail.path == path for followed in self._all for tail in followed.growing.tails)

    def _recording_of(self, capture: CatalogEntry) -> FollowedRecording | None:
        """Find the followed recording of this capture: of the same client, and still being recorded."""
        live = (followed for followed in self._all if followed.growing.live and followed.parent is not None)
        return next((followed for followed in live if followed.parent == capture.parent), None)

    def _add(self, followed: FollowedRecording, path: str, capture: CatalogEntry | None) -> None:
        followed.growing.add(path)
        if capture is not None:
            followed.parent = capture.parent if followed.parent is None else followed.parent
            self._watch.add(path)


def _is_model_news(followed: FollowedRecording, row: ModelCall, *, ended: bool) -> bool:
    """Return whether to show a model call now: when it is sent, at its first token and at its end, not at each delta."""
    if ended:
        followed.pending.pop(row.row, None)
        is_news = -row.row not in followed.streams
        followed.streams.add(-row.row)
        return is_news
    is_new = row.row not in followed.pending
    begins = row.first_ns is not None and row.row not in followed.streams
    followed.pending[row.row] = row
    if begins:
        followed.streams.add(row.row)
    return is_new or begins


def _is_news(followed: FollowedRecording, row: Transaction) -> bool:
    """Return whether to show a transaction now: when it has ended; a stream, which may last for hours, also when it begins."""
    if row.over or followed.captures[row.capture].closed:
        followed.streams.discard(row.row)
        return True
    begins = row.is_stream and row.row not in followed.streams
    if begins:
        followed.streams.add(row.row)
    return begins


def follow(
    whats: tuple[str, ...], output: Output, live_filter: LiveFilter | None, *, keeps_frames: bool, since: Since | None
) -> None:
    """Follow the captures that `whats` name, and new ones, until the user ends it. For the rest see `Follower`."""
    watch = Watch(reader_fd=_output_fd(), input_fd=0 if STDIN in whats else None)
    follower = Follower(output, watch, _wanted_captures(whats), keeps_frames=keeps_frames, since=since, live_filter=live_filter)

    def end(number: int, _frame: object) -> None:
        follower.ended_by = number
        raise KeyboardInterrupt

    for number in (SIGINT, SIGTERM):
        signal(number, end)
    watch.wake_by_signals()
    try:
        be_nice(NICENESS)
        for paths in _first_recordings(whats, since):
            follower.begin(paths)
        follower.run()
    except KeyboardInterrupt:
        pass
    finally:
        follower.close()
        watch.close()
    if follower.ended_by == SIGTERM:
        raise SystemExit(128 + SIGTERM)


def _first_recordings(whats: tuple[str, ...], since: Since | None) -> list[tuple[str, ...]]:
    """List the captures to begin with, by recording, the oldest first.

    They are those that are named; else those that are being recorded, or changed since the moment.
    """
    stored = recordings(entries())
    active = [
        recording for recording in stored if any(capture.live or _is_touched(capture, since) for capture in recording.own)
    ]
    if active and not whats:
        return _without_repeats(active)
    if since is not None and not whats:
        say(f"mcpspy: nothing was recorded {since.words}; waiting for new captures")
        return []
    try:
        selection = select_captures(whats)
    except AddressError:
        if whats not in ((), (DEFAULT_WHAT,)):
            raise
        say(f"mcpspy: nothing has been recorded yet; waiting for the first capture in {safe_text(captures_folder())}")
        if other := elsewhere():
            say(f"mcpspy: {safe_text(other)}")
        return []
    if selection.rows is not None:
        import click

        raise click.UsageError("-f follows whole captures; leave out the rows, and select rows with -F.")
    return [selection.paths]


def _without_repeats(some: list[Recording]) -> list[tuple[str, ...]]:
    """List the captures of recordings, the oldest first; a capture of several recordings only in the newest of them."""
    groups: list[tuple[str, ...]] = []
    seen: set[str] = set()
    for recording in some:
        groups.insert(0, tuple(capture.path for capture in recording.entries if capture.path not in seen))
        seen.update(groups[0])
    return groups


def _is_touched(capture: CatalogEntry, since: Since | None) -> bool:
    from ...capture.store.recent import has_grown_since

    return since is not None and has_grown_since(capture, since.wall_ns)


def _wanted_captures(whats: tuple[str, ...]) -> Callable[[CatalogEntry], bool]:
    """Choose which new captures to follow: with labels among `whats` those with such a label, else all."""
    labels = {what for what in whats if not what.startswith(DEFAULT_WHAT) and what != STDIN and not os.path.exists(what)}
    if not labels:
        return lambda capture: True
    return lambda capture: capture.label in labels


def _names() -> list[str]:
    try:
        return [name for name in os.listdir(captures_folder()) if name.endswith(EXTENSION)]
    except OSError:
        return []


def _is_empty(path: str) -> bool:
    try:
        return os.path.getsize(path) == 0
    except OSError:
        return False


def _watched_folder() -> str:
    """Return the store's folder of captures, or the nearest parent that exists."""
    folder = captures_folder()
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def _output_fd() -> int | None:
    try:
        return sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):
        return None

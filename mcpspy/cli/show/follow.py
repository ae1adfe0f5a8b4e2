"""`show -f`: rows as they end, from captures as they grow, and from each newer one that appears in the store.

One loop: wait, take what is new, print it. A timer runs only while calls are pending on a terminal. What is printed how is the
business of an output (`outputs`).
"""

import os
import sys
import time
from collections.abc import Callable
from signal import SIGTERM, signal
from typing import Protocol

import click

from ...capture.store.address import STDIN
from ...capture.store.catalog import CatalogEntry, Recording, entries, entry, recordings
from ...capture.store.folder import EXTENSION, captures_folder
from ...capture.store.pruning import SETTLED_NS
from ...errors import AddressError
from ...live.watch import Watch
from ...transcript.http.transaction import Transaction
from ...transcript.model import CaptureInfo, Exchange, ModelCall, Outcome, Row
from ...views.text.escape import safe_text
from ..screen import say
from ..since import Since
from ..transcripts import DEFAULT_WHAT, GrowingTranscript, select_captures

NICENESS = 5
"""The live view gives way to the traffic that it shows."""


class Followed:
    """One recording that is followed: its growing transcript, and the calls of it that are pending."""

    __slots__ = ("_since_ns", "growing", "parent", "pending", "streams", "unsaid", "working")

    def __init__(self, *, keeps_frames: bool = False) -> None:
        self.growing = GrowingTranscript(keeps_frames=keeps_frames)
        self.parent: tuple[object, ...] | None = None
        self.pending: dict[int, Exchange | ModelCall] = {}
        self.working: dict[int, Exchange] = {}
        """What began calls whose task works, by its row."""
        self.streams: set[int] = set()
        """Rows of HTTP's open streams of events, and of models' answers, which are told when they begin and when they end; with a
        minus those answers of which the end was told."""
        self.unsaid: dict[int, Exchange] = {}
        """What was asked before the moment since when rows are wanted, and may hang."""
        self._since_ns: dict[int, int] = {}

    def is_of_late(self, capture: int, since: Since | None) -> bool:
        """Whether what was read last of a capture is of the time since then."""
        if since is None:
            return True
        source = self.captures[capture]
        if capture not in self._since_ns:
            self._since_ns[capture] = since.on_clock_ns(source.header, self.growing.tails[capture].path)
        return source.last_ns >= self._since_ns[capture]

    @property
    def captures(self) -> list[CaptureInfo]:
        """Its captures."""
        return self.growing.transcript.captures

    def waiting(self) -> list[Exchange | ModelCall]:
        """What there is to wait for: requests without an answer, and what became a task that works."""
        working = (row for row in self.working.values() if not self.captures[row.capture].closed)
        return sorted([*self.pending.values(), *working], key=lambda row: row.row)

    def note_task(self, row: Exchange) -> None:
        """Whether the task of the call of `row`, if it became one, works."""
        call = self.captures[row.capture].calls.get(row.row)
        if call is None or call.task is None:
            return
        if call.outcome is Outcome.PENDING and call.row not in self.pending:
            self.working[call.row] = call.first
        else:
            self.working.pop(call.row, None)


class Output(Protocol):
    """Where rows go. `row` gets each as it is new or has changed, and whether it ended just now; `rest` comes before each wait."""

    @property
    def redraw_s(self) -> float | None:
        """While calls are pending: how long to wait before `rest` comes again though nothing happened. None: for ever."""

    def row(self, followed: Followed, row: Row, *, ended: bool) -> None:
        """Take a row."""

    def rest(self, all_followed: list[Followed]) -> None:
        """Nothing more for now: print what is held back."""

    def close(self, all_followed: list[Followed]) -> None:
        """The user has seen enough."""


class Follower:
    """What is followed, and the store that is watched for more. `wants` says which captures that appear later to follow.

    `keeps_frames` is for outputs that show HTTP as it is on the wire. What ended before `since` is left out.
    """

    __slots__ = ("_all", "_keeps_frames", "_known", "_output", "_since", "_unborn", "_wants", "_watch")

    def __init__(
        self,
        output: Output,
        watch: Watch,
        wants: Callable[[CatalogEntry], bool],
        *,
        keeps_frames: bool = False,
        since: Since | None = None,
    ) -> None:
        self._keeps_frames = keeps_frames
        self._since = since
        self._output = output
        self._watch = watch
        self._wants = wants
        self._all: list[Followed] = []
        self._known = set(_names())
        self._unborn: list[str] = []
        """Captures that have no header yet."""

    def begin(self, paths: tuple[str, ...]) -> None:
        """Follow these, as one recording."""
        if paths:
            self._all.append(Followed(keeps_frames=self._keeps_frames))
        for path in paths:
            self._add(self._all[-1], path, None if path == STDIN else entry(path))

    def run(self) -> None:
        """Follow until interrupted, or until standard input, if that is all, has ended."""
        while True:
            self._watch.add(_watched_folder())
            self._look_for_newer()
            for followed in self._all:
                self._take(followed)
            self._output.rest(self._all)
            sys.stdout.flush()
            if self._all and all(tail.path == STDIN and tail.over for one in self._all for tail in one.growing.tails):
                return
            pending = any(followed.waiting() for followed in self._all)
            self._watch.wait(self._output.redraw_s if pending else None)

    def close(self) -> None:
        """Print the last words."""
        self._output.close(self._all)
        sys.stdout.flush()

    def _take(self, followed: Followed) -> None:
        for row in followed.growing.take():
            ended = True
            if isinstance(row, Exchange):
                if row.response is None and row.cancelled is None and not row.over:
                    followed.pending[row.row] = row
                    ended = False
                else:
                    ended = followed.pending.pop(row.row, None) is not None
                followed.note_task(row)
                if not ended and not followed.is_of_late(row.capture, self._since):
                    followed.unsaid[row.row] = row
                    continue
                followed.unsaid.pop(row.row, None)
            elif isinstance(row, ModelCall):
                ended = row.transaction.over or followed.captures[row.capture].closed
                if not _is_said(followed, row, ended=ended):
                    continue
            elif isinstance(row, Transaction):
                ended = _is_news(followed, row)
            if followed.is_of_late(row.capture, self._since):
                self._output.row(followed, row, ended=ended)
        for row in followed.unsaid.values():
            self._output.row(followed, row, ended=False)
        followed.unsaid.clear()
        for tail in followed.growing.tails:
            if tail.over:
                self._watch.remove(tail.path)
                if tail.path == STDIN:
                    self._watch.remove_input()

    def _look_for_newer(self) -> None:
        """Follow the captures that are new in the store, those of a recording that we follow first."""
        names = set(_names())
        new = [*self._unborn, *sorted(os.path.join(captures_folder(), name) for name in names - self._known)]
        self._known = names
        self._unborn = []
        followed: list[tuple[bool, str, CatalogEntry]] = []
        for path in new:
            found = None if self._follows(path) else entry(path)
            if found is None:
                continue
            if found.header is None and found.size_bytes == 0:
                self._await_birth(path, found)
            elif found.header is not None and self._wants(found):
                followed.append((self._recording(found) is None, path, found))
        for _, path, found in sorted(followed, key=lambda one: one[:2]):
            recording = self._recording(found)
            if recording is None:
                recording = Followed(keeps_frames=self._keeps_frames)
                self._all.append(recording)
            self._add(recording, path, found)

    def _await_birth(self, path: str, found: CatalogEntry) -> None:
        """Look again when the tap has written its header, which one that was killed at once never will."""
        if found.live or time.time_ns() - found.begin_ns < SETTLED_NS:
            self._unborn.append(path)
            self._watch.add(path)
        else:
            self._watch.remove(path)

    def _follows(self, path: str) -> bool:
        return any(tail.path == path for followed in self._all for tail in followed.growing.tails)

    def _recording(self, found: CatalogEntry) -> Followed | None:
        """The recording that we follow and that this capture belongs to: the same client, and something of it still records."""
        alive = (one for one in self._all if one.growing.live and one.parent is not None)
        return next((one for one in alive if one.parent == found.parent), None)

    def _add(self, followed: Followed, path: str, found: CatalogEntry | None) -> None:
        followed.growing.add(path)
        if found is not None:
            followed.parent = found.parent if followed.parent is None else followed.parent
            self._watch.add(path)


def _is_said(followed: Followed, row: ModelCall, *, ended: bool) -> bool:
    """Whether to tell of a model call: when it was asked, when the first token came, when it has ended; not of each delta."""
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


def _is_news(followed: Followed, row: Transaction) -> bool:
    """Whether it is time to tell of a transaction: when it has ended; of a stream, which may last for hours, also when it begins."""
    if row.over or followed.captures[row.capture].closed:
        followed.streams.discard(row.row)
        return True
    begins = row.is_stream and row.row not in followed.streams
    if begins:
        followed.streams.add(row.row)
    return begins


def follow(whats: tuple[str, ...], output: Output, *, keeps_frames: bool = False, since: Since | None = None) -> None:
    """Follow what `whats` name, and what appears later, until the user has seen enough. The two others are those of `Follower`."""
    watch = Watch(reader_fd=_output_fd(), input_fd=0 if STDIN in whats else None)
    follower = Follower(output, watch, _wants(whats), keeps_frames=keeps_frames, since=since)
    signal(SIGTERM, _end)
    try:
        os.nice(NICENESS)
        for paths in _recordings(whats, since):
            follower.begin(paths)
        follower.run()
    except KeyboardInterrupt:
        pass
    finally:
        follower.close()
        watch.close()


def _recordings(whats: tuple[str, ...], since: Since | None) -> list[tuple[str, ...]]:
    """The captures to begin with, by recording, the oldest first: what was named; else all that runs, or was recorded since then."""
    known = recordings(entries())
    wanted = [one for one in known if any(each.live or _is_touched(each, since) for each in one.own)]
    if wanted and not whats:
        return _apart(wanted)
    if since is not None and not whats:
        say(f"mcpspy: nothing was recorded {since.words}; waiting for what comes")
        return []
    try:
        found = select_captures(whats)
    except AddressError:
        if whats not in ((), (DEFAULT_WHAT,)):
            raise
        say(f"mcpspy: nothing has been recorded yet; waiting for the first capture in {safe_text(captures_folder())}")
        return []
    if found.rows is not None:
        raise click.UsageError("-f follows captures, not rows of them; leave the rows out, and choose with -F.")
    return [found.paths]


def _apart(found: list[Recording]) -> list[tuple[str, ...]]:
    """Their captures, the oldest recording first; what several share is followed in the newest of them."""
    groups: list[tuple[str, ...]] = []
    seen: set[str] = set()
    for one in found:
        groups.insert(0, tuple(each.path for each in one.entries if each.path not in seen))
        seen.update(groups[0])
    return groups


def _is_touched(capture: CatalogEntry, since: Since | None) -> bool:
    from ...capture.store.recent import is_touched

    return since is not None and is_touched(capture, since.wall_ns)


def _wants(whats: tuple[str, ...]) -> Callable[[CatalogEntry], bool]:
    """Who follows labels gets newer captures with these labels; everybody else gets all."""
    labels = {one for one in whats if not one.startswith(DEFAULT_WHAT) and one != STDIN and not os.path.exists(one)}
    if not labels:
        return lambda found: True
    return lambda found: found.label in labels


def _names() -> list[str]:
    try:
        return [name for name in os.listdir(captures_folder()) if name.endswith(EXTENSION)]
    except OSError:
        return []


def _watched_folder() -> str:
    """The store's folder of captures, or what will have to change before there is one."""
    folder = captures_folder()
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def _output_fd() -> int | None:
    try:
        return sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):
        return None


def _end(number: int, _frame: object) -> None:
    """End as if by that signal, but with the screen left in order."""
    raise SystemExit(128 + number)

"""`mcpspy replay --until CONDITION`: search the fewest recorded messages with which the condition still holds."""

import os
import shutil
import sys
import time
from dataclasses import replace
from shlex import join, quote
from tempfile import TemporaryDirectory

import click

from ...capture.store.folder import create
from ...platform.loops import Interrupts
from ...replay.client.correlate.model import Correlations
from ...replay.client.plan import Plan
from ...replay.client.player import Report
from ...replay.condition import Condition, Occurrence
from ...replay.shrink import Shrinker, ShrinkResult, is_handshake_answered, live_exchanges, sends_after_handshake
from ...transcript.model import Transcript
from ...views.compare.replays import shrunk_json, shrunk_lines, shrunk_next_lines
from ...views.text.escape import one_line, safe_text, without_logins
from ...views.text.units import counted
from ..screen import Screen, say
from .play import PlayResult, PlaySettings, play
from .target import Target

FOUND, NOT_HAPPENED, NOT_SENT, NO_SERVER, STOPPED = 0, 1, 2, 4, 130

MAX_SIZES = 6
"""The number of search steps that are shown; more do not fit on a line."""

MAX_UNRESOLVED = 5
"""The number of successive replays without a server after which the search ends."""


def find_smallest(
    condition: Condition,
    recorded: Transcript,
    plans: list[Plan],
    settings: PlaySettings,
    *,
    carried: tuple[str, ...] = (),
    max_runs: int,
    as_json: bool = False,
) -> int:
    """Search, and print the result. Returns the exit status. Raises: click.UsageError: for several clients; McpspyError."""
    if len(plans) != 1:
        raise click.UsageError(
            f"--until plays one client, and {len(plans)} are selected; select rows of one of them, as in mcpspy replay @:7..20"
        )
    with TemporaryDirectory(prefix="mcpspy-until-") as folder:
        search = _UntilSearch(condition, plans[0], settings, max_runs, folder)
        with Interrupts() as interrupts:
            search.run(interrupts)
        is_stopped = search.is_stopped
        search.progress.end()
        result = search.result()
        if result is None:
            return STOPPED if is_stopped else _report_nothing(search, recorded, as_json=as_json)
        path = _keep(result.path, settings)
    result = replace(result, path=path)
    again = _command(result, settings.target, carried, settings.timeout_ns)
    if as_json:
        json = shrunk_json(result, condition.written, again, of=result.of, runs=result.runs, unresolved=result.unresolved)
        sys.stdout.write(json)
    else:
        screen = Screen()
        screen.lines(shrunk_lines(result, screen.width))
        say(f"mcpspy: recorded to {safe_text(path)}")
        for line in shrunk_next_lines(result, again, None):
            screen.advise(line)
    return STOPPED if is_stopped else FOUND


class _UntilSearch:
    """The search: it plays what the shrinker asks for, and keeps the capture of the smallest replay in which the condition held."""

    def __init__(self, condition: Condition, plan: Plan, settings: PlaySettings, max_runs: int, folder: str) -> None:
        self.condition = condition
        self.plan = plan
        self.settings = replace(settings, stops_when_late=condition.is_timeout)
        self.correlations: Correlations = settings.correlations
        self.sends = sends_after_handshake(plan)
        self.shrinking = Shrinker([send.row for send in self.sends], self.correlations.needs, max_runs=max_runs)
        self.folder = folder
        self.progress = _Progress(len(self.sends))
        self.best: PlayResult | None = None
        self.happened: Occurrence | None = None
        self.failure: str = ""
        self.is_stopped = False
        self.withheld = 0
        """The number of messages that could not be sent, because of a redacted value."""

    def run(self, interrupts: Interrupts) -> None:
        """Play until nothing smaller is left to try, or somebody ends it. Raises: McpspyError: if there is no server."""
        unanswered = 0
        while (rows := self.shrinking.next()) is not None and unanswered < MAX_UNRESOLVED:
            result = self._play(rows, interrupts)
            self.is_stopped = interrupts.has_come or result.report.stopped is not None
            if self.is_stopped:
                return
            is_begun = result.failure is None and is_handshake_answered(
                result.plan, live_exchanges(result.transcript, result.report)
            )
            happened = self.condition.occurrence(result.transcript, result.report) if is_begun else None
            at = self._row_of(result, happened)
            best_before = self.shrinking.best
            self.shrinking.take(happened=None if not is_begun else happened is not None, at=at)
            unanswered = 0 if is_begun else unanswered + 1
            kept, dropped = (result, self.best) if self.shrinking.best != best_before else (self.best, result)
            if kept is result:
                self.best, self.happened = result, happened
            if dropped is not None:
                os.unlink(dropped.path)
            if not is_begun and self.shrinking.runs == 1:
                self.failure = str(result.failure or result.report.lost or "it did not answer the handshake")
                return
            self.progress.show(self.shrinking)
        if unanswered == MAX_UNRESOLVED:
            self.progress.end()
            say(
                f"mcpspy: no server answered {counted(unanswered, 'replay')} in a row, so the search ends here."
                f"{' The server at --url must be restarted whenever it ends.' if self.settings.target.url else ''}"
            )

    def result(self) -> ShrinkResult | None:
        """Return the result so far; None if the condition never held."""
        best, happened = self.best, self.happened
        if best is None or happened is None:
            return None
        kept = {send.row for send in best.plan.sends} - {unsent.row for unsent in best.report.unsent}
        return ShrinkResult(
            until=self.condition.written,
            happened=happened,
            sends=tuple(send for send in self.sends if send.row in kept),
            live=live_exchanges(best.transcript, best.report),
            of=len(self.sends),
            runs=self.shrinking.runs,
            unresolved=self.shrinking.unresolved,
            is_minimal=self.shrinking.is_minimal,
            path=best.path,
        )

    def _play(self, rows: tuple[int, ...], interrupts: Interrupts) -> PlayResult:
        is_all = len(rows) == len(self.sends)
        plan = self.plan if is_all else self.plan.only(rows, self.correlations.needs)
        path = os.path.join(self.folder, f"run-{self.shrinking.runs + 1}.mcpspy")
        result = play(plan, replace(self.settings, capture=path), interrupts=interrupts)
        if is_all:
            for missing in result.not_correlated:
                say(f"mcpspy: {safe_text(missing)}; sent as it was recorded")
            for withheld in result.report.withheld:
                say(f"mcpspy: row {withheld.row} is not sent: {safe_text(withheld.why)}")
            self.withheld = len(result.report.withheld)
        return result

    def _row_of(self, result: PlayResult, happened: Occurrence | None) -> int | None:
        """Find the recorded row in which the condition held; if it is about no row, the last one that was sent."""
        if happened is None:
            return None
        for row, live in live_exchanges(result.transcript, result.report).items():
            if live.row == happened.row:
                return row
        return max(result.report.sent, default=None) if result.report.lost else None


class _Progress:
    """The progress on stderr, as `60 messages → 34 → 3, run 9`: on a terminal one line, elsewhere a line for each smaller result."""

    def __init__(self, count: int) -> None:
        self._sizes = [count]
        self._is_terminal = sys.stderr.isatty()
        self._width = 0

    def show(self, shrinking: Shrinker) -> None:
        """Show the progress after a replay."""
        size = None if shrinking.best is None else len(shrinking.best)
        is_less = size is not None and size < self._sizes[-1]
        if is_less and size is not None:
            self._sizes.append(size)
        first, *others = self._sizes
        shown = ["…" if len(others) > MAX_SIZES else "", *(f"{size:,}" for size in others[-MAX_SIZES:])]
        text = " → ".join([f"mcpspy: {counted(first, 'message')}", *filter(None, shown)]) + f", run {shrinking.runs:,}"
        if self._is_terminal:
            click.echo(f"\r{text:<{self._width}}", err=True, nl=False)
            self._width = len(text)
        elif is_less:
            click.echo(text, err=True)

    def end(self) -> None:
        """End the line."""
        if self._width:
            click.echo("", err=True)
            self._width = 0


def _report_nothing(search: _UntilSearch, recorded: Transcript, *, as_json: bool) -> int:
    """Report that the condition did not hold, or that there was no server."""
    shrinking = search.shrinking
    if as_json:
        of = len(search.sends)
        written = search.condition.written
        sys.stdout.write(shrunk_json(None, written, "", of=of, runs=shrinking.runs, unresolved=shrinking.unresolved))
    if search.failure:
        say(f"mcpspy: {safe_text(without_logins(search.failure))}")
        return NO_SERVER
    written = one_line(search.condition.written)
    if search.withheld:
        said = (
            f"{written} does not happen with the messages that could be sent; {counted(search.withheld, 'message')} could not"
        )
        say(f"mcpspy: {said}.")
        return NOT_SENT
    say(f"mcpspy: {written} does not happen with all {counted(len(search.sends), 'message')}, so there is nothing to reduce.")
    if search.condition.occurrence(recorded, Report()) is not None:
        say("In the capture it does. Name values that the server makes up with --carry, or try --speed 1.")
    return NOT_HAPPENED


def _keep(path: str, settings: PlaySettings) -> str:
    """Copy the capture of the smallest replay to its place. Returns its path. Raises: OSError."""
    named = settings.capture
    fd, kept = create(named, settings.label, wall_ns=time.time_ns())
    if named and kept != named:
        say(f"mcpspy: {named} exists; recording to {kept}")
    with open(fd, "wb") as copy, open(path, "rb") as original:
        shutil.copyfileobj(original, copy)
    return os.path.abspath(kept)


def _command(result: ShrinkResult, target: Target, carried: tuple[str, ...], timeout_ns: int) -> str:
    """Write the command that replays the result."""
    words = ["mcpspy", "replay", result.path]
    for value in carried:
        words += ["--carry", value]
    if result.until == "timeout":
        words += ["--timeout", f"{timeout_ns / 1_000_000_000:g}"]
    server = f"--url {quote(target.url)}" if target.url else f"-- {join(target.argv)}"
    return f"{join(words)} {server}"

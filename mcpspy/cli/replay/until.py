"""`mcpspy replay --until CONDITION`: the smallest sequence of recorded requests with which something still happens."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import replace
from shlex import join, quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from ...capture.store.folder import create
from ...replay.client.player import Report
from ...replay.shrink import Shrinker, ShrinkResult, is_handshake_answered, live_exchanges, sends_after_handshake
from ...views.compare.shrink import shrunk_json, shrunk_lines, shrunk_next_lines
from ...views.text.escape import one_line, safe_text
from ...views.text.units import counted
from ..screen import Screen, say
from .play import play

if TYPE_CHECKING:
    from ...replay.client.correlate.model import Correlations
    from ...replay.client.plan import Plan
    from ...replay.condition import Condition, Occurrence
    from ...transcript.model import Transcript
    from .play import Drive, Manner
    from .target import Target

FOUND, NOT_HAPPENED, NO_SERVER, STOPPED = 0, 1, 4, 130

MAX_SIZES = 6
"""So many steps of the search are shown: more do not fit on a line."""

MAX_UNRESOLVED = 5
"""After so many runs without a server, one after the other, there will be none any more."""


def until(
    condition: Condition,
    recorded: Transcript,
    plans: list[Plan],
    manner: Manner,
    *,
    handles: tuple[str, ...] = (),
    max_runs: int,
    as_json: bool = False,
) -> int:
    """Look for it, and tell it. Returns the exit status. Raises: click.UsageError: for several clients; McpspyError."""
    if len(plans) != 1:
        raise click.UsageError(
            f"--until plays one client, and {len(plans)} are asked for; name rows of one of them, as in mcpspy replay @:7..20"
        )
    with TemporaryDirectory(prefix="mcpspy-until-") as folder:
        search = _Search(condition, plans[0], manner, max_runs, folder)
        is_stopped = False
        try:
            search.run()
        except KeyboardInterrupt:
            is_stopped = True
        search.progress.end()
        found = search.found()
        if found is None:
            return STOPPED if is_stopped else _nothing(search, recorded, as_json=as_json)
        path = _kept(found.path, manner)
    found = replace(found, path=path)
    again = _again(found, manner.target, handles, manner.timeout_ns)
    if as_json:
        told = shrunk_json(found, condition.written, again, of=found.of, runs=found.runs, unresolved=found.unresolved)
        sys.stdout.write(told)
    else:
        screen = Screen()
        screen.lines(shrunk_lines(found, screen.width))
        say(f"mcpspy: recorded to {safe_text(path)}")
        for line in shrunk_next_lines(found, again, None):
            screen.advise(line)
    return STOPPED if is_stopped else FOUND


class _Search:
    """Drives what the search wants to be run, and keeps the capture of the smallest run in which it happened."""

    def __init__(self, condition: Condition, plan: Plan, manner: Manner, max_runs: int, folder: str) -> None:
        self.condition = condition
        self.plan = plan
        self.manner = replace(manner, stops_when_late=condition.is_timeout)
        self.correlations: Correlations = manner.correlations
        self.sends = sends_after_handshake(plan)
        self.shrinking = Shrinker([send.row for send in self.sends], self.correlations.needs, max_runs=max_runs)
        self.folder = folder
        self.progress = _Progress(len(self.sends))
        self.best: Drive | None = None
        self.happened: Occurrence | None = None
        self.failure: str = ""

    def run(self) -> None:
        """Until there is nothing left to learn. Raises: McpspyError: where there is no server to begin with."""
        in_vain = 0
        while (rows := self.shrinking.next()) is not None and in_vain < MAX_UNRESOLVED:
            drive = self._driven(rows)
            is_begun = drive.failure is None and is_handshake_answered(
                drive.plan, live_exchanges(drive.transcript, drive.report)
            )
            happened = self.condition.occurrence(drive.transcript, drive.report) if is_begun else None
            at = self._row_of(drive, happened)
            was = self.shrinking.best
            self.shrinking.take(happened=None if not is_begun else happened is not None, at=at)
            in_vain = 0 if is_begun else in_vain + 1
            kept, dropped = (drive, self.best) if self.shrinking.best != was else (self.best, drive)
            if kept is drive:
                self.best, self.happened = drive, happened
            if dropped is not None:
                os.unlink(dropped.path)
            if not is_begun and self.shrinking.runs == 1:
                self.failure = str(drive.failure or drive.report.lost or "it did not answer the handshake")
                return
            self.progress.tell(self.shrinking)
        if in_vain == MAX_UNRESOLVED:
            self.progress.end()
            say(
                f"mcpspy: no server answered {counted(in_vain, 'run')} in a row, so the search ends here."
                f"{' What --url names has to be started anew whenever it ends.' if self.manner.target.url else ''}"
            )

    def found(self) -> ShrinkResult | None:
        """What was found so far."""
        best, happened = self.best, self.happened
        if best is None or happened is None:
            return None
        kept = {send.row for send in best.plan.sends} - {one.row for one in best.report.unsent}
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

    def _driven(self, rows: tuple[int, ...]) -> Drive:
        is_all = len(rows) == len(self.sends)
        plan = self.plan if is_all else self.plan.only(rows, self.correlations.needs)
        named = os.path.join(self.folder, f"run-{self.shrinking.runs + 1}.mcpspy")
        drive = play(plan, replace(self.manner, capture=named))
        if drive.report.stopped is not None:
            raise KeyboardInterrupt
        if is_all:
            for missing in drive.not_correlated:
                say(f"mcpspy: {safe_text(missing)}; sent as it was recorded")
            for held in drive.report.withheld:
                say(f"mcpspy: row {held.row} is not sent: {safe_text(held.why)}")
        return drive

    def _row_of(self, drive: Drive, happened: Occurrence | None) -> int | None:
        """The recorded row in which it happened; of what is in none, the last one that was sent."""
        if happened is None:
            return None
        for row, live in live_exchanges(drive.transcript, drive.report).items():
            if live.row == happened.row:
                return row
        return max(drive.report.sent, default=None) if drive.report.lost else None


class _Progress:
    """`60 requests → 34 → 3, run 9` on stderr: on a terminal one line that grows, elsewhere a line whenever there is less."""

    def __init__(self, count: int) -> None:
        self._sizes = [count]
        self._is_terminal = sys.stderr.isatty()
        self._width = 0

    def tell(self, shrinking: Shrinker) -> None:
        """After a run."""
        size = None if shrinking.best is None else len(shrinking.best)
        is_less = size is not None and size < self._sizes[-1]
        if is_less and size is not None:
            self._sizes.append(size)
        first, *others = self._sizes
        shown = ["…" if len(others) > MAX_SIZES else "", *(f"{one:,}" for one in others[-MAX_SIZES:])]
        text = " → ".join([f"mcpspy: {counted(first, 'message')}", *filter(None, shown)]) + f", run {shrinking.runs:,}"
        if self._is_terminal:
            click.echo(f"\r{text:<{self._width}}", err=True, nl=False)
            self._width = len(text)
        elif is_less:
            click.echo(text, err=True)

    def end(self) -> None:
        """Leave the line."""
        if self._width:
            click.echo("", err=True)
            self._width = 0


def _nothing(search: _Search, recorded: Transcript, *, as_json: bool) -> int:
    """It did not happen, or there was no server."""
    shrinking = search.shrinking
    if as_json:
        of = len(search.sends)
        written = search.condition.written
        sys.stdout.write(shrunk_json(None, written, "", of=of, runs=shrinking.runs, unresolved=shrinking.unresolved))
    if search.failure:
        say(f"mcpspy: {safe_text(search.failure)}")
        return NO_SERVER
    written = one_line(search.condition.written)
    say(
        f"mcpspy: {written} does not happen with all {counted(len(search.sends), 'message')}, so there is nothing smaller to find."
    )
    if search.condition.occurrence(recorded, Report()) is not None:
        say("In the recording it does: what the server makes up may have to be named with --carry, or --speed 1 may be needed.")
    return NOT_HAPPENED


def _kept(path: str, manner: Manner) -> str:
    """The capture of the smallest run in the place of its own. Raises: OSError."""
    named = manner.capture
    fd, kept = create(named, manner.label, wall_ns=time.time_ns())
    if named and kept != named:
        say(f"mcpspy: {named} exists; recording to {kept}")
    with open(fd, "wb") as to, open(path, "rb") as source:
        shutil.copyfileobj(source, to)
    return os.path.abspath(kept)


def _again(found: ShrinkResult, target: Target, handles: tuple[str, ...], timeout_ns: int) -> str:
    """The command that sends it once more, and says whether anything came otherwise."""
    words = ["mcpspy", "replay", found.path]
    for handle in handles:
        words += ["--carry", handle]
    if found.until == "timeout":
        words += ["--timeout", f"{timeout_ns / 1_000_000_000:g}"]
    server = f"--url {quote(target.url)}" if target.url else f"-- {join(target.argv)}"
    return f"{join(words)} {server}"

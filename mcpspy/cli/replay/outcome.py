"""What came of a replay: how it differs from the recording, what was not sent and why, and the exit status that says so."""

from __future__ import annotations

import os
import sys
from shlex import quote
from typing import TYPE_CHECKING

from ...capture.store.address import STDIN
from ...capture.store.folder import captures_folder
from ...replay.client.counterpart import PlayedPlan, compared_sides
from ...replay.compare.compare import compare
from ...views.compare.comparison import comparison_lines, next_lines
from ...views.compare.replay_report import end_lines, report_lines
from ...views.json.replay import replay_object, replays_json
from ...views.text.escape import safe_text
from ..screen import Screen, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...replay.compare.compare import Comparison
    from .play import Drive
    from .selection import Wanted
    from .target import Target

SAME, DIFFERENT, NOT_SENT, NO_SERVER, STOPPED = 0, 1, 2, 4, 130


def tell(wanted: Wanted, drives: Sequence[Drive], rules: tuple[str, ...], *, as_json: bool, target: Target) -> int:
    """Print what came of each client's plan; `rules` are places to leave out. Returns the exit status."""
    compared = [_compared(wanted, drive, rules) for drive in drives]
    status = max(_status(drive, one) for drive, one in zip(drives, compared, strict=True))
    for drive in drives:
        if drive.failure is not None:
            say(f"mcpspy: {safe_text(str(drive.failure))}")
        for missing in drive.not_correlated:
            say(f"mcpspy: {safe_text(missing)}; sent as it was recorded")
    if as_json:
        clients = [replay_object(drive.report, drive.path, one) for drive, one in zip(drives, compared, strict=True)]
        sys.stdout.write(replays_json(target.facts, clients, status))
        return status
    screen = Screen()
    recorded = {one.row: one for one in wanted.transcript.exchanges}
    for number, (drive, one) in enumerate(zip(drives, compared, strict=True)):
        if number:
            screen.lines([[]])
        if drive.failure is None:
            screen.lines(end_lines(drive.report, len(drive.plan.sends), screen.width))
        if _status(drive, one) == NO_SERVER:
            continue
        if one.whole or one.servers:
            screen.lines(comparison_lines(one, width=screen.width))
        else:
            say("mcpspy: it was sent, and there is nothing to compare: no request is among it.")
        screen.lines(report_lines(drive.report, recorded, screen.width))
        for line in next_lines(one, _address(wanted.path), _own_address(drives, number), screen.width):
            screen.advise(line)
    return status


def _address(path: str) -> str:
    """What rows can be asked of; empty where it cannot be read twice."""
    return "" if path == STDIN else quote(path)


def _own_address(drives: Sequence[Drive], number: int) -> str:
    """What to call the capture of a drive: what was recorded last into the store is the newest recording."""
    path = drives[number].path
    is_newest = number == len(drives) - 1 and os.path.dirname(path) == os.path.abspath(captures_folder())
    return "@" if is_newest else quote(path)


def _compared(wanted: Wanted, drive: Drive, rules: tuple[str, ...]) -> Comparison:
    played = PlayedPlan(plan=drive.plan, report=drive.report, selected=wanted.asked, restore=drive.run.as_recorded)
    return compare(*compared_sides(wanted.transcript, drive.transcript, played), rules)


def _status(drive: Drive, compared: Comparison) -> int:
    """The worst wins: an interruption, no server, something not sent for want of a value, a difference."""
    if drive.report.stopped is not None:
        return STOPPED
    was_answered = any(one.response is not None for one in drive.plan.requests)
    if drive.failure is not None or (drive.report.lost and not drive.report.heard and was_answered):
        return NO_SERVER
    if drive.report.withheld:
        return NOT_SENT
    is_cut_short = bool(drive.report.lost) and len(drive.report.unsent) > len(drive.plan.left_out)
    return DIFFERENT if compared.different or is_cut_short else SAME

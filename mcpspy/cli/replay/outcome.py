"""The outcome of a replay: the differences from the capture, the messages that were not sent, and the exit status."""

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
    from .play import PlayResult
    from .selection import ReplaySelection
    from .target import Target

SAME, DIFFERENT, NOT_SENT, NO_SERVER, STOPPED = 0, 1, 2, 4, 130


def print_outcome(
    selection: ReplaySelection, results: Sequence[PlayResult], rules: tuple[str, ...], *, as_json: bool, target: Target
) -> int:
    """Print the outcome of each plan; `rules` are JSON paths to ignore. Returns the exit status."""
    comparisons = [_comparison(selection, result, rules) for result in results]
    status = max(_status(result, comparison) for result, comparison in zip(results, comparisons, strict=True))
    for result in results:
        if result.failure is not None:
            say(f"mcpspy: {safe_text(str(result.failure))}")
        for missing in result.not_correlated:
            say(f"mcpspy: {safe_text(missing)}; sent as it was recorded")
    if as_json:
        clients = [
            replay_object(result.report, result.path, comparison)
            for result, comparison in zip(results, comparisons, strict=True)
        ]
        sys.stdout.write(replays_json(target.facts, clients, status))
        return status
    screen = Screen()
    recorded = {exchange.row: exchange for exchange in selection.transcript.exchanges}
    for number, (result, comparison) in enumerate(zip(results, comparisons, strict=True)):
        if number:
            screen.lines([[]])
        if result.failure is None:
            screen.lines(end_lines(result.report, len(result.plan.sends), screen.width))
        if _status(result, comparison) == NO_SERVER:
            continue
        if comparison.whole or comparison.servers:
            screen.lines(comparison_lines(comparison, width=screen.width))
        else:
            say("mcpspy: the messages were sent. None of them is a request, so there is nothing to compare.")
        screen.lines(report_lines(result.report, recorded, screen.width))
        for line in next_lines(comparison, _quoted_path(selection.path), _replay_name(results, number), screen.width):
            screen.advise(line)
    return status


def _quoted_path(path: str) -> str:
    """Quote the path of the capture; empty for standard input, which cannot be read again."""
    return "" if path == STDIN else quote(path)


def _replay_name(results: Sequence[PlayResult], number: int) -> str:
    """Name the capture of a replay: `@` for the last one, if it is in the store, as it is the newest recording."""
    path = results[number].path
    is_newest = number == len(results) - 1 and os.path.dirname(path) == os.path.abspath(captures_folder())
    return "@" if is_newest else quote(path)


def _comparison(selection: ReplaySelection, result: PlayResult, rules: tuple[str, ...]) -> Comparison:
    played = PlayedPlan(plan=result.plan, report=result.report, selected=selection.selected, restore=result.run.as_recorded)
    return compare(*compared_sides(selection.transcript, result.transcript, played), rules)


def _status(result: PlayResult, comparison: Comparison) -> int:
    """Choose the worst status: an interruption, no server, a message that lacked a value, a difference."""
    if result.report.stopped is not None:
        return STOPPED
    was_answered = any(request.response is not None for request in result.plan.requests)
    if result.failure is not None or (result.report.lost and not result.report.heard and was_answered):
        return NO_SERVER
    if result.report.withheld:
        return NOT_SENT
    is_cut_short = bool(result.report.lost) and len(result.report.unsent) > len(result.plan.left_out)
    return DIFFERENT if comparison.different or is_cut_short else SAME

"""`mcpspy replay`: send the messages of a recorded client to a live server, and compare its answers with the capture.

WHAT names the capture; rows and `--only` select requests from it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ...capture.store.address import STDIN
from ...capture.store.catalog import entry
from ...capture.store.folder import captures_folder
from ...errors import AddressError, ReplayError
from ...records import CLIENT, SERVER
from ...replay.client.correlate.model import Correlations
from ...replay.client.correlate.reader import read_correlations
from ...replay.client.counterpart import PlayedPlan, compared_sides
from ...replay.client.outgoing import Effects, planned_messages
from ...replay.client.plan import Plan
from ...replay.client.player import TIMEOUT_NS
from ...replay.client.read_plan import read_plans
from ...replay.compare.compare import Comparison, compare
from ...replay.compare.ignore import Ignore
from ...replay.mock.content import VOLATILE
from ...replay.mock.match_key import Strictness
from ...replay.mock.matching import RequestMatcher
from ...transcript.model import CaptureInfo, Exchange, Numbered, Transcript
from ...views.compare.comparison import comparison_lines, next_lines
from ...views.compare.replays import changing_calls, end_lines, intent, plan_lines, report_lines
from ...views.json.comparisons import plans_json, replay_object, replays_json
from ...views.text.escape import safe_text, without_logins
from ..capture_options import NO_FILE
from ..filter_option import combined_filter, filter_rows
from ..screen import Screen, say
from ..transcripts import DEFAULT_WHAT, select_captures, transcript_of
from .play import PlayResult, PlaySettings, play
from .played import one_session, playable
from .target import (
    AUTHORIZATION,
    SERVER_WORDS,
    ServerCommand,
    Target,
    carry_option,
    confirm,
    missing_fields,
    server_options,
    target_of,
    tls,
)

if TYPE_CHECKING:
    from ...replay.condition import Condition

SAME, DIFFERENT, NOT_SENT, NO_SERVER, STOPPED = 0, 1, 2, 4, 130

MAX_RUNS = 200
"""The default number of servers that --until starts: to find 10 of 60 requests takes about 80."""

SUFFIX = "-replay"
NS = 1_000_000_000


@click.command("replay", cls=ServerCommand)
@click.argument("what", default=DEFAULT_WHAT)
@server_options
@click.option("--only", metavar="EXPR", multiple=True, help="Send only requests that match (`mcpspy help filter`).")
@carry_option
@click.option(
    "--until",
    metavar="CONDITION",
    help="Find the fewest requests with which this still happens: crash, timeout, error:-32603, rule:NAME, status:500, "
    "'\"text\"', or a filter.",
)
@click.option(
    "--max-runs", type=click.IntRange(min=1), metavar="N", help="With --until: start at most N servers, by default 200."
)
@click.option("--dry-run", is_flag=True, help="List what would be sent; send nothing, and start nothing.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    default=0,
    metavar="X",
    help="0, the default: as fast as answers come; 1: with the recorded pauses; 2: with half of them.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=TIMEOUT_NS / NS,
    metavar="SECONDS",
    show_default=True,
    help="How long to wait for an answer.",
)
@click.option(
    "--match",
    type=click.Choice([strictness.value for strictness in Strictness]),
    default=Strictness.DEFAULT.value,
    show_default=True,
    help="How closely a request from the live server must match a recorded one to get its recorded answer.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="PATH",
    help="Ignore these JSON paths: $.result.content[*].text, $..timestamp, … Repeatable.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask; start the recorded command, or call the recorded URL.")
@click.option("--label", metavar="NAME", help="A name for the capture. The default is the server's label and `-replay`.")
@click.option("--capture", metavar="FILE", help="Where to record. The default is a new file in the store.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs (docs/json.md).")
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> int:
    """Send the messages of a recorded client to a live server, and compare its answers with the capture.

    WHAT is as in `mcpspy show`, but @ skips replays. Name the server by its command after --, or by --url. Messages are sent as
    they were recorded, byte for byte, except for ids and for values that the live server makes up. `mcpspy call` sends a single
    row. The exit status is 0 if nothing differs, 1 if something does, 2 if a message could not be sent, 4 if there is no server.

    \b
    Examples:
      mcpspy replay weather -- ./server --verbose
      mcpspy replay bug.mcpspy --url http://127.0.0.1:3001/mcp --only 'tool:x*'
      git bisect run mcpspy replay good.mcpspy -- ./server
      mcpspy replay bug.mcpspy --until crash -- ./server
    """
    return _replay(_ReplayOptions(**values), ctx.meta[SERVER_WORDS])


class _ReplayOptions(NamedTuple):
    """The command line without the server's command."""

    what: str
    url: str | None
    transport: str | None
    headers: tuple[str, ...]
    insecure: bool
    ca: str | None
    only: tuple[str, ...]
    carried: tuple[str, ...]
    until: str | None
    max_runs: int | None
    dry_run: bool
    speed: float
    timeout: float
    match: str
    ignore: tuple[str, ...]
    yes: bool
    label: str | None
    capture: str | None
    as_json: bool


def _replay(options: _ReplayOptions, server: tuple[str, ...]) -> int:
    """Send what the options choose to the server that they name, and return the exit status."""
    Ignore.of(options.ignore)
    _check(options.speed, options.timeout, options.capture)
    condition = _condition(options.until, options.max_runs)
    selection = _select_requests(options.what, options.only, options.carried)
    security = tls(insecure=options.insecure, ca=options.ca)
    target = target_of(selection.capture, server, options.url, options.transport, options.headers, security)
    effects = Effects(selection.transcript)
    if options.dry_run:
        return _rehearse(selection, target, effects, as_json=options.as_json)
    runs = (options.max_runs or MAX_RUNS) if condition else 0
    _announce(options.what, selection, target, effects, runs)
    confirm(target, changing_calls(selection.plans, effects), yes=options.yes)
    settings = _settings(options, selection, target)
    if condition is not None:
        from .until import find_smallest

        transcript, plans, carried = selection.transcript, selection.plans, options.carried
        return find_smallest(condition, transcript, plans, settings, carried=carried, max_runs=runs, as_json=options.as_json)
    results = _play_all(selection, settings)
    return print_outcome(selection, results, options.ignore, as_json=options.as_json, target=target)


def _settings(options: _ReplayOptions, selection: _ReplaySelection, target: Target) -> PlaySettings:
    ignored = (*VOLATILE, *options.ignore)
    answers = RequestMatcher(selection.transcript.exchanges, side=SERVER, strictness=Strictness(options.match), ignore=ignored)
    replayed_label = selection.label.removesuffix(SUFFIX)
    return PlaySettings(
        target=target,
        answers=answers,
        correlations=selection.correlations,
        speed=options.speed,
        timeout_ns=int(options.timeout * NS),
        label=options.label or f"{replayed_label or 'server'}{SUFFIX}",
        replayed_label=replayed_label,
        redact="none" if selection.is_verbatim else "credentials",
        capture=os.path.abspath(options.capture)
        if options.capture
        else None,  # whatever folder a recorded server is started in
        ids=selection.ids,
    )


def _play_all(selection: _ReplaySelection, settings: PlaySettings) -> list[PlayResult]:
    """Play every client, one after the other, unless the user stops it."""
    results: list[PlayResult] = []
    for number, plan in enumerate(selection.plans):
        results.append(play(plan, settings, number))
        if results[-1].report.stopped is not None:
            break
    return results


def _check(speed: float, timeout: float, capture: str | None) -> None:
    if not isfinite(speed) or not isfinite(timeout):
        raise click.UsageError("--speed and --timeout take finite numbers, as in --speed 1 --timeout 30.")
    if capture == "":
        raise click.UsageError(f"{NO_FILE}.")


def _condition(until: str | None, max_runs: int | None) -> Condition | None:
    """Read the condition of `--until`. Raises: ReplayError: if it is none."""
    if until is None:
        if max_runs is not None:
            raise click.UsageError("--max-runs is for --until; add that.")
        return None
    from ...replay.condition import condition_of  # with every rule and every key of filters

    return condition_of(until)


def _announce(what: str, selection: _ReplaySelection, target: Target, effects: Effects, runs: int) -> None:
    """Say what will be sent."""
    if not what.startswith(selection.path):
        say(f"mcpspy: playing {safe_text(selection.path)}")
    often = f"; then fewer of them, in at most {runs} replays" if runs else ""
    say(f"mcpspy: {intent(selection.plans, effects, str(target))}{often}")
    names = missing_fields(selection.capture, target)
    if names:
        with_url = ", with --url" if target.is_recorded else ""
        variable = f", or set {AUTHORIZATION}{with_url}" if "authorization" in map(str.lower, names) else ""
        say(f"mcpspy: header fields of the recorded client are not sent: {safe_text(', '.join(names))}; add --header{variable}")


def _rehearse(selection: _ReplaySelection, target: Target, effects: Effects, *, as_json: bool) -> int:
    """List what would be sent."""
    messages = planned_messages(selection.plans, effects, selection.correlations, {})
    unsent = [message for plan in selection.plans for message in plan.left_out]
    if as_json:
        sys.stdout.write(plans_json(target.facts, messages, unsent))
    else:
        screen = Screen()
        say(f"mcpspy: {intent(selection.plans, effects, str(target))}")
        screen.lines(plan_lines(messages, unsent, screen.width))
    return NOT_SENT if any(message.refused for message in messages) else SAME


def print_outcome(
    selection: _ReplaySelection, results: Sequence[PlayResult], rules: tuple[str, ...], *, as_json: bool, target: Target
) -> int:
    """Print the outcome of each plan; `rules` are JSON paths to ignore. Returns the exit status."""
    comparisons = [_comparison(selection, result, rules) for result in results]
    status = max(_status(result, comparison) for result, comparison in zip(results, comparisons, strict=True))
    for result in results:
        if result.failure is not None:
            say(f"mcpspy: {safe_text(without_logins(str(result.failure)))}")
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
            screen.lines(comparison_lines(comparison, width=screen.width, unsent=_unsent(result)))
        elif not _unsent(result):
            say("mcpspy: the messages were sent. None of them is a request, so there is nothing to compare.")
        screen.lines(report_lines(result.report, recorded, screen.width))
        for line in next_lines(comparison, _quoted_path(selection.path), _replay_name(results, number), screen.width):
            screen.advise(line)
    if status == NO_SERVER:
        _advise_transport(target, results)
    return status


def _advise_transport(target: Target, results: Sequence[PlayResult]) -> None:
    """Name the other transport, if a server answered over HTTP but did not speak the one that was chosen."""
    other = {"sse": "streamable", "streamable": "sse"}.get(target.transport)
    transactions = [
        transaction
        for result in results
        for capture in result.transcript.captures
        for transaction in capture.transactions.values()
    ]
    if other and any(transaction.status for transaction in transactions):
        spoken = "HTTP+SSE" if target.transport == "sse" else "Streamable HTTP"
        say(f"mcpspy: this was over {spoken}; --transport {other} tries the other transport of HTTP")


def _quoted_path(path: str) -> str:
    """Quote the path of the capture; empty for standard input, which cannot be read again."""
    return "" if path == STDIN else quote(path)


def _replay_name(results: Sequence[PlayResult], number: int) -> str:
    """Name the capture of a replay: its id if it is in the store, which is shorter than its path."""
    path = results[number].path
    stored = entry(path) if os.path.dirname(path) == os.path.abspath(captures_folder()) else None
    return quote(path) if stored is None else f"@{stored.id}"


def _comparison(selection: _ReplaySelection, result: PlayResult, rules: tuple[str, ...]) -> Comparison:
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
    return DIFFERENT if comparison.different or _unsent(result) else SAME


def _unsent(result: PlayResult) -> int:
    """Count the messages that were withheld, or not sent because the server was gone."""
    report = result.report
    return len(report.unsent) - len(result.plan.left_out) if report.lost else len(report.withheld)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReplaySelection:
    """The plans to play, from the capture at `path`, and their rows that were selected (None: all).

    The plans also have the requests that the selected ones need.
    """

    path: str
    transcript: Transcript
    capture: CaptureInfo
    plans: list[Plan]
    selected: frozenset[int] | None
    correlations: Correlations

    @property
    def label(self) -> str:
        """The label of the recorded server."""
        return self.capture.header.label if self.capture.header else ""

    @property
    def ids(self) -> tuple[str, ...]:
        """The id of the capture."""
        return (self.capture.header.capture_id,) if self.capture.header else ()

    @property
    def is_verbatim(self) -> bool:
        """True if the capture was recorded without redaction."""
        return self.capture.header is not None and self.capture.header.redaction == "none"

    @property
    def requests(self) -> list[Exchange]:
        """The requests to send."""
        return [request for plan in self.plans for request in plan.requests]


def _select_requests(what: str, only: tuple[str, ...], carried: tuple[str, ...]) -> _ReplaySelection:
    """Select what a WHAT and `--only` name together. Raises: AddressError, ReplayError, FilterError."""
    condition = combined_filter(only)
    captures = select_captures((what,))
    if captures.rows is None:
        captures = captures._replace(paths=one_session(what, playable(what, captures.paths)))
    if len(captures.paths) > 1:
        count, paths = len(captures.paths), ", ".join(captures.paths)
        raise AddressError(what, f"a replay plays one capture, and these are {count}: {paths}; name one of them")
    if captures.is_one_row:
        raise AddressError(what, f"one row is not a replay; mcpspy call {what} sends it")
    transcript, _ = transcript_of(captures)
    correlations = read_correlations(transcript, carried)
    all_plans = read_plans(transcript)
    plans = [plan for plan in all_plans if plan.sends]
    if not plans:
        raise ReplayError(what, _why_no_plan(all_plans, transcript.captures[0].failed_start))
    selected = None
    if captures.rows is not None or condition is not None:
        rows = captures.rows_in(transcript)
        if condition is not None:
            rows = filter_rows(condition, transcript, rows).rows
        numbers = frozenset(row.row for row in rows if isinstance(row, Numbered))
        selected = numbers & {send.row for plan in plans for send in plan.sends}
        if not selected:
            raise ReplayError(what, _why_no_row(transcript, numbers, is_filtered=condition is not None))
        plans = [plan.only(plan.rows & selected, correlations.needs) for plan in plans if plan.rows & selected]
    return _ReplaySelection(
        path=captures.paths[0],
        transcript=transcript,
        capture=transcript.captures[0],
        plans=plans,
        selected=selected,
        correlations=correlations,
    )


def _why_no_plan(plans: list[Plan], failure: str) -> str:
    if failure:
        return f"its server could not be started ({failure}), so there is nothing to send; mcpspy list names older recordings"
    unsent = next((unsent for plan in plans for unsent in plan.left_out), None)
    if unsent is None:
        return "no client sent a request in it, so there is nothing to send; mcpspy show says what happened"
    return f"nothing in it can be sent again; row {unsent.row} cannot, because {unsent.why}"


def _why_no_row(transcript: Transcript, numbers: frozenset[int], *, is_filtered: bool) -> str:
    exchanges = [exchange for exchange in transcript.exchanges if exchange.row in numbers]
    if exchanges and all(exchange.sender != CLIENT for exchange in exchanges):
        return f"row {exchanges[0].row} is a request of the server, and a replay plays the client"
    none = f"no message of a client {'matches --only' if is_filtered else 'is among these rows'}"
    return f"{none}; mcpspy replay --dry-run, without these, lists all"

"""`mcpspy replay`: drives a live server with a recorded client, and compares what it says with what was recorded."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from math import isfinite
from shlex import quote
from typing import TYPE_CHECKING

import click

from ..capture.address import STDIN
from ..capture.store import captures_folder
from ..errors import AddressError, ReplayError
from ..records import CLIENT, SERVER
from ..replay.asked import VOLATILE
from ..replay.carrying import Carrying
from ..replay.compare import compare
from ..replay.counterpart import Played, sides
from ..replay.driving import TIMEOUT_NS
from ..replay.effects import Effects
from ..replay.ignore import Ignore
from ..replay.matching import Matcher
from ..replay.planning import plans
from ..replay.question import Strictness
from ..replay.rehearsal import rehearsed
from ..replay.setting import edits_of, setting_of
from ..transcript.model import Exchange, Numbered
from ..views.comparison import comparison_lines, next_lines
from ..views.escape import safe_text
from ..views.replaying import changing, end_lines, intent, plan_lines, report_lines
from ..views.replaying_json import plans_json, replay_object, replays_json
from ..views.timeline import selected
from .filtering import filtered, wanted_of
from .reading import DEFAULT_WHAT, WhatCommand, chosen, row_of, transcript_of
from .replay_target import AUTHORIZATION, confirm, login_wanted, target_of, tls
from .replaying import Drive, Manner, play
from .screen import Screen, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..replay.compare import Comparison
    from ..replay.edits import Edit
    from ..replay.plan import Plan
    from ..replay.predicate import Predicate
    from ..transcript.model import Source, Transcript
    from .replay_target import Target

MAX_RUNS = 200
"""So many servers are started by --until unless another number is given: 60 requests of which 10 matter take about 80."""

SAME, DIFFERENT, NOT_SENT, NO_SERVER = 0, 1, 2, 4

TIMEOUT_S = TIMEOUT_NS / 1_000_000_000


class ReplayCommand(WhatCommand):
    """What stands behind `--` is a server's command, and no option of ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put it aside, for `command`."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[__name__] = tuple(args[at + 1 :])
        if args[at:] == ["--"]:
            raise click.UsageError("Behind -- the server's command is missing.")
        try:
            return super().parse_args(ctx, args[:at])
        except click.UsageError as error:
            if "unexpected extra argument" not in error.message:
                raise
            raise click.UsageError(f"{error.message}. Put -- before the server's command.", ctx) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be played, from the capture at `path`: the plans, and of them the rows that were asked for (None: all)."""

    path: str
    transcript: Transcript
    source: Source
    plans: list[Plan]
    asked: frozenset[int] | None
    carrying: Carrying

    @property
    def requests(self) -> list[Exchange]:
        """All that are sent."""
        return [one for plan in self.plans for one in plan.requests]

    @property
    def asked_requests(self) -> list[Exchange]:
        """Those that were asked for."""
        return [one for one in self.requests if self.asked is None or one.row in self.asked]


@click.command("replay", cls=ReplayCommand)
@click.argument("what", default=DEFAULT_WHAT)
@click.option("--url", metavar="URL", help="Drive the HTTP server at this URL.")
@click.option(
    "--transport",
    type=click.Choice(["streamable", "sse"]),
    help="What the URL speaks; by default what was recorded, else what it looks like.",
)
@click.option(
    "--header", "headers", metavar="'NAME: VALUE'", multiple=True, help="Send this field with every HTTP request; repeatable."
)
@click.option("--insecure", is_flag=True, help="Do not check the certificate of an https server.")
@click.option("--ca", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="Trust the certificates in FILE.")
@click.option("--only", metavar="EXPR", multiple=True, help="Send only the requests that match (`mcpspy help filter`).")
@click.option(
    "--set", "settings", metavar="PATH=JSON", multiple=True, help="Send another value: '$.arguments.path=\"/srv\"'; repeatable."
)
@click.option(
    "--carry", "handles", metavar="PATH", multiple=True, help="Take what stands here from the live server's answers too."
)
@click.option(
    "--until",
    metavar="PREDICATE",
    help="Look for the fewest requests with which this still happens: crash, timeout, error:-32603, rule:NAME, status:500, "
    "'\"text\"', or a filter.",
)
@click.option("--max-runs", type=click.IntRange(min=1), metavar="N", help="With --until: start at most so many servers; 200.")
@click.option("--dry-run", is_flag=True, help="Say what would be sent; send nothing, and start nothing.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    default=0,
    metavar="X",
    help="0, the default: as fast as answers come; 1: with the pauses of the recording; 2: with half of them.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=TIMEOUT_S,
    metavar="SECONDS",
    show_default=True,
    help="How long a request waits for its answer.",
)
@click.option(
    "--match",
    type=click.Choice([one.value for one in Strictness]),
    default=Strictness.DEFAULT.value,
    show_default=True,
    help="How like a recorded question one of the server's has to be, to get its answer.",
)
@click.option(
    "--ignore", multiple=True, metavar="PATH", help="Leave out these places: $.result.content[*].text, $..timestamp, …"
)
@click.option("--yes", "-y", is_flag=True, help="Ask nothing.")
@click.option("--label", metavar="NAME", help="What to call the capture; by default the recorded server's label and `-replay`.")
@click.option("--capture", metavar="FILE", help="Where to record; by default a new file in the store.")
@click.option("--json", "as_json", is_flag=True, help="JSON for programs (docs/json.md).")
@click.pass_context
def command(
    ctx: click.Context,
    what: str,
    url: str | None,
    transport: str | None,
    headers: tuple[str, ...],
    insecure: bool,
    ca: str | None,
    only: tuple[str, ...],
    settings: tuple[str, ...],
    handles: tuple[str, ...],
    until: str | None,
    max_runs: int | None,
    dry_run: bool,
    speed: float,
    timeout: float,
    match: str,
    ignore: tuple[str, ...],
    yes: bool,
    label: str | None,
    capture: str | None,
    as_json: bool,
) -> int:
    """Drive a live server with the recorded client of WHAT, and compare what it says with what was recorded.

    WHAT is as in `mcpspy show`; replays do not count for @. The server is the one whose command stands behind --, or that of --url.
    What was recorded is sent byte for byte, but for ids, and for values that the live server gives out itself. The exit status is
    0 if nothing differs, 1 if something does, 2 if something could not be sent, 4 if there is no server.

    \b
      mcpspy replay weather -- ./server --verbose           the newest capture of `weather`
      mcpspy replay @:7 --set '$.arguments.path="/srv"' -- ./server
      mcpspy replay bug.mcpspy --url http://127.0.0.1:3001/mcp --only 'tool:search*'
      git bisect run mcpspy replay good.mcpspy -- ./server
      mcpspy replay bug.mcpspy --until crash -- ./server    the fewest requests that still crash it
    """
    Ignore.of(ignore)
    if not isfinite(speed) or not isfinite(timeout):
        raise click.UsageError("--speed and --timeout are finite numbers.")
    predicate = None if until is None else _predicate(until)
    if predicate is None and max_runs is not None:
        raise click.UsageError("--max-runs is for --until; add that.")
    edits = [setting_of(one) for one in settings]
    wanted = _wanted(what, only, Carrying, handles)
    target = target_of(wanted.source, ctx.meta[__name__], url, transport, headers, tls(insecure=insecure, ca=ca))
    effects = Effects(wanted.transcript)
    found = edits_of(edits, wanted.requests, wanted.asked_requests)
    if dry_run:
        return _rehearse(wanted, target, effects, found, as_json=as_json)
    often = "" if predicate is None else f"; then less and less of it, {max_runs or MAX_RUNS} times at most"
    if not what.startswith(wanted.path):
        say(f"mcpspy: playing {safe_text(wanted.path)}")
    say(f"mcpspy: {intent(wanted.plans, effects, str(target))}{often}")
    if login_wanted(wanted.source, target):
        say(f"mcpspy: the recorded client logged in; give a token with --header 'Authorization: …', or in {AUTHORIZATION}")
    confirm(target, changing(wanted.plans, effects), yes=yes)
    header = wanted.source.header
    manner = Manner(
        target=target,
        answers=Matcher(wanted.transcript.exchanges, side=SERVER, strictness=Strictness(match), ignore=(*VOLATILE, *ignore)),
        carrying=wanted.carrying,
        edits=found,
        speed=speed,
        timeout_ns=int(timeout * 1_000_000_000),
        label=label or f"{(header.label if header else '') or 'server'}-replay",
        redact="none" if header and header.redaction == "none" else "credentials",
        capture=capture,
        ids=(header.capture_id,) if header else (),
    )
    if predicate is not None:
        from .replay_until import until as shrunk

        return shrunk(
            predicate, wanted.transcript, wanted.plans, manner, handles=handles, max_runs=max_runs or MAX_RUNS, as_json=as_json
        )
    drives = [play(plan, manner, number) for number, plan in enumerate(wanted.plans)]
    rules = (*ignore, *(one.path for one in edits))
    return _tell(wanted, drives, rules, as_json=as_json, target=target)


def _predicate(text: str) -> Predicate:
    """What `--until` says. Raises: ReplayError: for what can be no such thing."""
    from ..replay.predicate import predicate_of  # with every rule and every key of filters

    return predicate_of(text)


def _wanted(what: str, only: tuple[str, ...], carrying_of: type[Carrying], handles: tuple[str, ...]) -> Wanted:
    """What a WHAT and `--only` name together. Raises: AddressError, ReplayError, FilterError."""
    wanted = wanted_of(only)
    asked = chosen((what,), skips_replays=True)
    if len(asked.paths) > 1:
        raise AddressError(what, f"a replay plays one capture, and these are {len(asked.paths)}: {', '.join(asked.paths)}")
    transcript, _ = transcript_of(asked.paths)
    carrying = carrying_of(transcript, handles)
    everything = plans(transcript)
    if not everything:
        raise ReplayError(
            what, "nobody asked a server anything in it, so there is nothing to send; mcpspy show says what happened"
        )
    rows = None
    if asked.rows is not None:
        row_of(transcript, what, asked.rows[0])
        rows = selected(transcript.rows, asked.rows)
    if wanted is not None:
        rows = filtered(wanted, transcript, transcript.rows if rows is None else rows).rows
    if rows is None:
        return Wanted(
            path=asked.paths[0],
            transcript=transcript,
            source=transcript.sources[0],
            plans=everything,
            asked=None,
            carrying=carrying,
        )
    numbers = frozenset(one.row for one in rows if isinstance(one, Numbered))
    asked_rows = numbers & {send.row for plan in everything for send in plan.sends}
    if not asked_rows:
        raise ReplayError(what, _why_none(transcript, numbers, is_filtered=wanted is not None))
    parts = [plan.only(plan.rows & asked_rows, carrying.needs) for plan in everything if plan.rows & asked_rows]
    return Wanted(
        path=asked.paths[0],
        transcript=transcript,
        source=transcript.sources[0],
        plans=parts,
        asked=asked_rows,
        carrying=carrying,
    )


def _why_none(transcript: Transcript, numbers: frozenset[int], *, is_filtered: bool) -> str:
    asked = [one for one in transcript.exchanges if one.row in numbers]
    if asked and all(one.sender != CLIENT for one in asked):
        return f"row {asked[0].row} was asked by the server, and a replay plays the client"
    return f"there is nothing that a client sends {'and that matches --only' if is_filtered else 'among these rows'}"


def _rehearse(wanted: Wanted, target: Target, effects: Effects, edits: dict[int, list[Edit]], *, as_json: bool) -> int:
    """Say what would be sent."""
    found = rehearsed(wanted.plans, effects, wanted.carrying, edits)
    left_out = [one for plan in wanted.plans for one in plan.left_out]
    if as_json:
        sys.stdout.write(plans_json(target.facts, found, left_out))
    else:
        screen = Screen()
        say(f"mcpspy: {intent(wanted.plans, effects, str(target))}")
        screen.lines(plan_lines(found, left_out, screen.width))
    return NOT_SENT if any(one.refused for one in found) else SAME


def _tell(wanted: Wanted, drives: Sequence[Drive], rules: tuple[str, ...], *, as_json: bool, target: Target) -> int:
    compared = [_compared(wanted, drive, rules) for drive in drives]
    status = max(_status(drive, one) for drive, one in zip(drives, compared, strict=True))
    for drive in drives:
        for missing in dict.fromkeys(map(str, drive.run.missing)):
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
    """What to call the capture of a drive: what was recorded last into the store is the newest sitting."""
    path = drives[number].path
    is_newest = number == len(drives) - 1 and os.path.dirname(path) == os.path.abspath(captures_folder())
    return "@" if is_newest else quote(path)


def _compared(wanted: Wanted, drive: Drive, rules: tuple[str, ...]) -> Comparison:
    played = Played(plan=drive.plan, report=drive.report, asked=wanted.asked, put_back=drive.run.as_recorded)
    return compare(*sides(wanted.transcript, drive.transcript, played), rules)


def _status(drive: Drive, compared: Comparison) -> int:
    """The worst wins: no server, something not sent for want of a value, a difference."""
    was_answered = any(one.response is not None for one in drive.plan.requests)
    if drive.failure is not None or (drive.report.lost and not drive.report.heard and was_answered):
        return NO_SERVER
    if drive.report.redacted:
        return NOT_SENT
    is_cut_short = bool(drive.report.lost) and len(drive.report.unsent) > len(drive.plan.left_out)
    return DIFFERENT if compared.different or is_cut_short else SAME

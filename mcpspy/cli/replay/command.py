"""`mcpspy replay`: drives a live server with a recorded client, and compares what it says with what was recorded."""

from __future__ import annotations

import os
import sys
from math import isfinite
from typing import TYPE_CHECKING

import click

from ...records import SERVER
from ...replay.client.outgoing import Effects, planned_messages
from ...replay.client.player import TIMEOUT_NS
from ...replay.compare.ignore import Ignore
from ...replay.json.overrides import override_edits, override_of
from ...replay.mock.content import VOLATILE
from ...replay.mock.match_key import Strictness
from ...replay.mock.matching import RequestMatcher
from ...views.compare.replay_report import changing_calls, intent, plan_lines
from ...views.json.replay import plans_json
from ...views.text.escape import safe_text
from ..capture_options import NO_FILE
from ..screen import Screen, say
from ..transcripts import DEFAULT_WHAT, WhatCommand
from .outcome import NOT_SENT, SAME, tell
from .play import Manner, play
from .selection import wanted as wanted_by
from .target import AUTHORIZATION, confirm, fields_wanted, target_of, tls

if TYPE_CHECKING:
    from ...replay.condition import Condition
    from ...wire.edits import ValueEdit
    from .play import Drive
    from .selection import Wanted
    from .target import Target

MAX_RUNS = 200
"""So many servers are started by --until unless another number is given: 60 requests of which 10 matter take about 80."""

SUFFIX = "-replay"
NS = 1_000_000_000


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
    "--carry",
    "handles",
    metavar="HANDLE",
    multiple=True,
    help="Take this from the live server's answers into later requests: '$.structuredContent.id', a member's name, or a value as "
    "'\"h1\"'; repeatable.",
)
@click.option(
    "--until",
    metavar="CONDITION",
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
    default=TIMEOUT_NS / NS,
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
@click.option("--yes", "-y", is_flag=True, help="Ask nothing; a recorded command or URL is taken as it is.")
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
    _check(speed, timeout, capture)
    condition = _condition(until, max_runs)
    edits = [override_of(one) for one in settings]
    wanted = wanted_by(what, only, handles)
    target = target_of(wanted.source, ctx.meta[__name__], url, transport, headers, tls(insecure=insecure, ca=ca))
    effects = Effects(wanted.transcript)
    found = override_edits(edits, wanted.requests, wanted.asked_requests)
    if dry_run:
        return _rehearse(wanted, target, effects, found, as_json=as_json)
    runs = (max_runs or MAX_RUNS) if condition else 0
    _announce(what, wanted, target, effects, runs)
    confirm(target, changing_calls(wanted.plans, effects), yes=yes)
    answers = RequestMatcher(
        wanted.transcript.exchanges, side=SERVER, strictness=Strictness(match), ignore=(*VOLATILE, *ignore)
    )
    manner = _manner(wanted, target, answers, found, speed=speed, timeout=timeout, label=label, capture=capture)
    if condition is not None:
        from .until import until as shrunk

        return shrunk(condition, wanted.transcript, wanted.plans, manner, handles=handles, max_runs=runs, as_json=as_json)
    return tell(wanted, _drives(wanted, manner), (*ignore, *(one.path for one in edits)), as_json=as_json, target=target)


def _drives(wanted: Wanted, manner: Manner) -> list[Drive]:
    """Every client driven, one after the other, unless somebody stops it."""
    made: list[Drive] = []
    for number, plan in enumerate(wanted.plans):
        made.append(play(plan, manner, number))
        if made[-1].report.stopped is not None:
            break
    return made


def _manner(
    wanted: Wanted,
    target: Target,
    answers: RequestMatcher,
    edits: dict[int, list[ValueEdit]],
    *,
    speed: float,
    timeout: float,
    label: str | None,
    capture: str | None,
) -> Manner:
    return Manner(
        target=target,
        answers=answers,
        correlations=wanted.correlations,
        edits=edits,
        speed=speed,
        timeout_ns=int(timeout * NS),
        label=label or f"{wanted.label.removesuffix(SUFFIX) or 'server'}{SUFFIX}",
        redact="none" if wanted.is_verbatim else "credentials",
        capture=os.path.abspath(capture) if capture else None,  # whatever folder a recorded server is started in
        ids=wanted.ids,
    )


def _check(speed: float, timeout: float, capture: str | None) -> None:
    if not isfinite(speed) or not isfinite(timeout):
        raise click.UsageError("--speed and --timeout are finite numbers.")
    if capture == "":
        raise click.UsageError(f"{NO_FILE}.")


def _condition(until: str | None, max_runs: int | None) -> Condition | None:
    """What `--until` says. Raises: ReplayError: for what can be no such thing."""
    if until is None:
        if max_runs is not None:
            raise click.UsageError("--max-runs is for --until; add that.")
        return None
    from ...replay.condition import condition_of  # with every rule and every key of filters

    return condition_of(until)


def _announce(what: str, wanted: Wanted, target: Target, effects: Effects, runs: int) -> None:
    """Say what is to be sent, before it is."""
    if not what.startswith(wanted.path):
        say(f"mcpspy: playing {safe_text(wanted.path)}")
    often = f"; then less and less of it, {runs} times at most" if runs else ""
    say(f"mcpspy: {intent(wanted.plans, effects, str(target))}{often}")
    names = fields_wanted(wanted.source, target)
    if names:
        named = ", with --url" if target.is_recorded else ""
        often = f", or {AUTHORIZATION} in the environment{named}" if "authorization" in map(str.lower, names) else ""
        say(f"mcpspy: not sent, as the recorded client did: {safe_text(', '.join(names))}; --header gives such fields{often}")


def _rehearse(wanted: Wanted, target: Target, effects: Effects, edits: dict[int, list[ValueEdit]], *, as_json: bool) -> int:
    """Say what would be sent."""
    found = planned_messages(wanted.plans, effects, wanted.correlations, edits)
    left_out = [one for plan in wanted.plans for one in plan.left_out]
    if as_json:
        sys.stdout.write(plans_json(target.facts, found, left_out))
    else:
        screen = Screen()
        say(f"mcpspy: {intent(wanted.plans, effects, str(target))}")
        screen.lines(plan_lines(found, left_out, screen.width))
    return NOT_SENT if any(one.refused for one in found) else SAME

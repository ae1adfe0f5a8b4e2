"""`mcpspy call`: send one recorded request again, or call a tool, in a session that runs or with a server of its own."""

from __future__ import annotations

import sys
from math import isfinite
from shlex import join, quote
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ...capture.store.folder import is_live
from ...replay.client.arguments import override_edits, override_of
from ...replay.client.outgoing import Effect, outgoing, pseudonym
from ...replay.client.player import TIMEOUT_NS
from ...replay.compare.ignore import Ignore
from ...views.compare.replays import call_lines, call_next_lines
from ...views.json.comparisons import call_json, planned_call_json
from ...views.text.escape import safe_text
from ...wire.edits import with_values
from ..capture_options import NO_FILE
from ..replay.target import SERVER_WORDS, ServerCommand, can_ask, carry_option, server_options, target_of, tls
from ..screen import Screen, say
from .live import NOT_SENT, SAME, CallResult, call_live, running_tap
from .subject import CallSubject, made_subject, recorded_subject

if TYPE_CHECKING:
    from ...control.client import RunningTap
    from ...wire.edits import ValueEdit
    from ..replay.target import Target

NS = 1_000_000_000


class _CallOptions(NamedTuple):
    """The command line without the server's command."""

    what: str
    words: tuple[str, ...]
    overrides: tuple[str, ...]
    url: str | None
    transport: str | None
    headers: tuple[str, ...]
    insecure: bool
    ca: str | None
    carried: tuple[str, ...]
    timeout: float
    ignore: tuple[str, ...]
    dry_run: bool
    yes: bool
    label: str | None
    capture: str | None
    as_json: bool


@click.command("call", cls=ServerCommand)
@click.argument("what")
@click.argument("words", nargs=-1, metavar="[TOOL [NAME=VALUE]...]")
@click.option(
    "--set",
    "overrides",
    metavar="PATH=JSON",
    multiple=True,
    help="Change a value of the params before sending, or add it: '$.arguments.path=\"/srv\"' is a JSON path and the new value as "
    "JSON. Repeatable.",
)
@server_options
@carry_option
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=TIMEOUT_NS / NS,
    metavar="SECONDS",
    show_default=True,
    help="How long to wait for the answer; then the call is cancelled.",
)
@click.option("--ignore", multiple=True, metavar="PATH", help="Leave these JSON paths out of the comparison. Repeatable.")
@click.option("--dry-run", is_flag=True, help="Print the request; send nothing, and start nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before a tool that may change something.")
@click.option("--label", metavar="NAME", help="A name for the capture. The default is the server's label and `-call`.")
@click.option("--capture", metavar="FILE", help="Where to record. The default is a new file in the store.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs (docs/json.md).")
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> int:
    """Send one request: a recorded one again, or a call of a tool.

    WHAT:ROW is a row as in `mcpspy show`. WHAT TOOL NAME=VALUE... calls a tool of that server; the arguments are checked against
    the recorded schema. NAME:=JSON takes any JSON.

    The request is sent once. Without -- and --url, it goes into the session that runs under `mcpspy run` or `mcpspy proxy`, and the
    client does not see it. With -- COMMAND, mcpspy starts a new server; with --url, it connects to one.

    The exit status is 0 if the answer is as recorded, or a new call succeeds; 1 if not; 2 if nothing is sent; 4 if there is no
    answer.

    \b
    Examples:
      mcpspy call @:7
      mcpspy call @:7 --set '$.arguments.path="/srv"' -- ./server
      mcpspy call weather forecast city=Rome days=3 --url http://127.0.0.1:3001/mcp
    """
    return _call(_CallOptions(**values), ctx.meta[SERVER_WORDS])


def _call(options: _CallOptions, server: tuple[str, ...]) -> int:
    _check(options)
    overrides = [override_of(text) for text in options.overrides]
    if options.words:
        subject = made_subject(options.what, options.words[0], options.words[1:])
    else:
        subject = recorded_subject(options.what)
    edits = override_edits(overrides, subject.exchange.request)
    for override, edit in zip(overrides, edits, strict=True):
        if with_values(subject.exchange.request.raw, [edit]) == subject.exchange.request.raw:
            say(f"mcpspy: --set {safe_text(override.path)} changes nothing: the request has this value already")
    if options.dry_run:
        return _rehearse(subject, outgoing(subject.exchange.request, edits), as_json=options.as_json)
    tap = None if server or options.url else _live_tap(options, subject)
    target = None if tap is not None else _target(options, subject, server)
    where = f"the session of {tap.status['label']} (pid {tap.status['pid']})" if tap is not None else str(target)
    say(f"mcpspy: {subject.name} to {safe_text(where)}")
    _confirm(subject, yes=options.yes)
    rules = (*options.ignore, *(override.path for override in overrides))
    result = _sent(options, subject, edits, rules, tap, target)
    _print(subject, result, as_json=options.as_json)
    return result.status


def _check(options: _CallOptions) -> None:
    Ignore.of(options.ignore)
    if not isfinite(options.timeout):
        raise click.UsageError("--timeout takes a finite number, as in --timeout 30.")
    if options.capture == "":
        raise click.UsageError(f"{NO_FILE}.")


def _live_tap(options: _CallOptions, subject: CallSubject) -> RunningTap:
    """Find the session that the request goes into. Raises: click.UsageError: if it does not run, with what to write instead."""
    named = {
        "--transport": options.transport, "--header": options.headers, "--insecure": options.insecure, "--ca": options.ca,
        "--carry": options.carried, "--label": options.label, "--capture": options.capture,
    }  # fmt: skip
    alone = next((name for name, value in named.items() if value), None)
    if alone is not None:
        raise click.UsageError(f"{alone} is for a server of its own; add -- COMMAND, or --url URL.")
    tap = running_tap(subject)
    if tap is None:
        raise click.UsageError(_why_no_session(options, subject))
    return tap


def _why_no_session(options: _CallOptions, subject: CallSubject) -> str:
    tapped = subject.capture.header.tapped if subject.capture.header else {}
    again = f"mcpspy call {' '.join(map(quote, (options.what, *options.words)))}"
    url, argv = str(tapped.get("url") or ""), tapped.get("argv")
    label = safe_text(subject.capture.label)
    if is_live(subject.path):
        why = f"{label} runs, but does not answer at its control socket"
        return f"{why}. Was it started with --no-control? mcpspy control lists what answers."
    if url:
        return f"This session of {label} has ended. Name its server, as in `{safe_text(again)} --url {safe_text(quote(url))}`."
    command = join(map(str, argv)) if isinstance(argv, list | tuple) and argv else "COMMAND…"
    return f"This session of {label} has ended. Name a server, as in `{safe_text(again)} -- {safe_text(command)}`."


def _target(options: _CallOptions, subject: CallSubject, server: tuple[str, ...]) -> Target:
    context = tls(insecure=options.insecure, ca=options.ca)
    return target_of(subject.capture, server, options.url, options.transport, options.headers, context)


def _rehearse(subject: CallSubject, data: bytes, *, as_json: bool) -> int:
    """Print the request."""
    redacted = pseudonym(data)
    if as_json:
        sys.stdout.write(planned_call_json(subject.exchange, data, subject.effect, redacted))
    else:
        Screen().texts([safe_text(data.decode("utf-8", "replace"))])
    if redacted:
        say(f"mcpspy: it would not be sent: it holds a value that was redacted: {redacted}; give it with --set")
    return NOT_SENT if redacted else SAME


def _confirm(subject: CallSubject, *, yes: bool) -> None:
    """Ask before a tool that is not marked as read-only. Raises: click.UsageError: if nobody can be asked; click.Abort: for a no."""
    if yes or subject.effect in (Effect.NONE, Effect.READS):
        return
    may = (
        "is marked as destructive"
        if subject.effect is Effect.DESTROYS
        else "may change something: it is not marked as read-only"
    )
    if not can_ask():
        raise click.UsageError(f"{subject.name} {may}.\nAdd --yes to call it.")
    click.confirm(f"{subject.name} {may}. Call it?", abort=True, err=True)


def _sent(
    options: _CallOptions,
    subject: CallSubject,
    edits: list[ValueEdit],
    rules: tuple[str, ...],
    tap: RunningTap | None,
    target: Target | None,
) -> CallResult:
    timeout_ns = int(options.timeout * NS)
    if tap is not None:
        return call_live(subject, tap, edits, rules, timeout_ns)
    from .fresh import call_fresh

    assert target is not None
    return call_fresh(
        subject,
        target,
        edits,
        rules,
        carried=options.carried,
        timeout_ns=timeout_ns,
        label=options.label,
        capture=options.capture,
    )


def _print(subject: CallSubject, result: CallResult, *, as_json: bool) -> None:
    recorded = subject.exchange if subject.is_recorded else None
    if result.live is None or result.live.response is None:
        say(f"mcpspy: {subject.name}: {safe_text(result.why)}")
    if as_json:
        sys.stdout.write(call_json(subject.exchange, recorded, result))
        return
    screen = Screen()
    if result.live is not None and result.live.response is not None:
        screen.lines(call_lines(result.live, recorded, result.comparison, screen.width))
        for line in call_next_lines(result.comparison, result.path, result.row, screen.width):
            screen.advise(line)

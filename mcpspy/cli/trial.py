"""`mcpspy trial`: run a client once for each fault of a server, or a server for each fault of a client, and tell what it does.

The file of `--expect` has a line for each fault, `slow: went on`, with commas between several outcomes.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from shlex import join
from typing import TYPE_CHECKING, Any

import click

from ..capture.store.folder import home_folder
from ..errors import AddressError, TrialError
from ..replay.trial import BAD, CLIENT_FAULTS, HTTP, NO_FAULT, SERVER_FAULTS, TrialOutcome
from ..transcript.filter.values import DURATIONS_NS, BadValue, amount
from ..views.compare.trial import trial_junit_lines, trial_lines
from ..views.json.checks import trials_json
from ..views.text.escape import safe_text
from .filter_option import combined_filter
from .replay.played import one_session, playable
from .replay.target import SERVER_WORDS, ServerCommand
from .screen import Screen, say
from .transcripts import DEFAULT_WHAT, select_captures
from .trial_bench import SERVER, URL, TrialBench, TrialOptions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ..replay.trial import TrialFault, TrialResult

FINE, NOT_FINE, STOPPED = 0, 1, 130

CALLS = "method:tools/call"

_OUTCOMES = frozenset(outcome.value for outcome in TrialOutcome)


@click.command("trial", cls=ServerCommand)
@click.argument("what", default=DEFAULT_WHAT)
@click.option("--server", "plays_client", is_flag=True, help="Try a server, with the capture's client: the command starts it.")
@click.option("--url", metavar="URL", help="With --server: try the HTTP server at this URL.")
@click.option("--transport", type=click.Choice(["streamable", "sse"]), help="The kind of HTTP. The default is `streamable`.")
@click.option("--only", "only", multiple=True, metavar="FAULT", help="Try only this fault. Repeatable.")
@click.option("--calls", default=CALLS, metavar="EXPR", show_default=True, help="A filter: which requests a fault can hit.")
@click.option("--slow", default="3s", metavar="TIME", show_default=True, help="The delay of the faults that are slow.")
@click.option("--late", default="65s", metavar="TIME", show_default=True, help="The delay of the fault `late`.")
@click.option(
    "--patience",
    type=click.FloatRange(min=0, min_open=True, max=86_400),
    default=90.0,
    metavar="SECONDS",
    show_default=True,
    help="How long a client or server may run before it counts as hung.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, metavar="NUMBER", show_default=True, help="The seed of the random choices."
)
@click.option("--expect", metavar="FILE", help="Fail where an outcome differs from this file's.")
@click.option("--accept", is_flag=True, help="Write the outcomes into the file of --expect.")
@click.option("--junit", metavar="FILE", help="Write JUnit XML too.")
@click.option("--captures", metavar="DIR", help="Where to record. The default is a new folder in ~/.mcpspy/trials.")
@click.option("--list", "lists", is_flag=True, help="List the faults, and start nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs (docs/json.md).")
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> int:
    """Run a client once for each fault of a standard list, and report whether it went on, asked again, gave up, hung or crashed.

    The client talks to a mock of the capture WHAT. {server} in its command becomes the mock's command; {url} becomes its address,
    for a client that speaks HTTP. The client has to end by itself. With --server, a server is tried instead, with the faults of a
    client.

    The exit status is 0 if nothing hung, crashed, lost every call or never came back, or with --expect if all outcomes are as
    expected; 1 if not; 4 if the client or server fails without a fault too.

    \b
    Examples:
      mcpspy trial weather -- python client.py {server}
      mcpspy trial weather -- python client.py {url}
      mcpspy trial weather --only slow --only crash -- sh -c 'my-agent --mcp "{server}"'
      mcpspy trial weather --server --expect server.trial -- ./server
      mcpspy trial --list
    """
    return _trial(TrialOptions(**values), list(ctx.meta[SERVER_WORDS]))


def _trial(options: TrialOptions, peer: list[str]) -> int:
    all_faults = CLIENT_FAULTS if options.plays_client else SERVER_FAULTS
    if options.lists:
        Screen().texts([_listed(fault) for fault in all_faults.values()])
        return FINE
    _check(options, peer)
    chosen = _chosen(options, options.faults(peer), all_faults)
    expected = None
    if options.expect is not None and not options.accept:
        expected = _read_expectations(options.expect, all_faults)
    path = _capture(options.what)
    folder = _folder(options.captures)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    results: list[TrialResult] = []
    with tempfile.TemporaryDirectory(prefix="mcpspy-trial-") as temporary:
        bench = TrialBench(options, peer, path, folder, temporary)
        made = _made_folders(folder)
        say(f"mcpspy: {len(chosen)} trials, recorded in {safe_text(folder)}")
        try:
            for fault in chosen:
                results.append(bench.run(fault))
                _report(results[-1])
        except KeyboardInterrupt:
            return STOPPED
        except TrialError:
            with suppress(OSError):  # what the peer printed is kept
                for path in made:
                    os.rmdir(path)
            raise
    if options.junit is not None:
        _write(
            options.junit,
            "".join(f"{line}\n" for line in trial_junit_lines(results, expected, BAD, join(peer) or str(options.url))),
        )
    if options.accept and options.expect is not None:
        _write_expectations(options.expect, results)
    is_fine = all(result.is_fine(expected, BAD) for result in results)
    if options.as_json:
        facts = {"argv": peer, "url": options.url, "transport": options.channel(peer), "seed": options.seed}
        sys.stdout.write(trials_json(results, expected, facts, status=FINE if is_fine else NOT_FINE))
    else:
        screen = Screen()
        screen.lines(trial_lines(results, expected, BAD, screen.width))
    return FINE if is_fine else NOT_FINE


def _listed(fault: TrialFault) -> str:
    only = "" if len(fault.transports) > 1 else f" (only {'over HTTP' if HTTP in fault.transports else 'on stdio'})"
    return f"{fault.name:<20}  {fault.words}{only}"


def _check(options: TrialOptions, peer: list[str]) -> None:
    """Check the command line but for the faults. Raises: click.UsageError, FilterError."""
    _check_peer(options, peer)
    if options.transport is not None and options.channel(peer) != HTTP:
        raise click.UsageError(f"--transport needs {URL} in the client's command, or --url; leave it out.")
    if options.accept and options.expect is None:
        raise click.UsageError("--accept writes the file of --expect; name that too.")
    for name, text in (("--slow", options.slow), ("--late", options.late)):
        try:
            amount(text, DURATIONS_NS)
        except BadValue:
            raise click.UsageError(f"{name} takes a time, as in {name} 3s or {name} 200ms.") from None
    combined_filter((options.calls,))


def _check_peer(options: TrialOptions, peer: list[str]) -> None:
    """Check what is tried, and how it is reached. Raises: click.UsageError."""
    if options.url is not None and not options.plays_client:
        raise click.UsageError(f"--url is for a server: add --server. For a client, write {URL} in its command.")
    if options.url is not None and peer:
        raise click.UsageError("A server has a command or a URL; leave out --url, or what follows --.")
    if options.url is None and not peer:
        kind = "server" if options.plays_client else f"client, with {SERVER} or {URL},"
        raise click.UsageError(f"Name the {kind} after --, as in mcpspy trial weather -- python client.py {SERVER}.")
    if options.plays_client:
        return
    has_server, has_url = (any(name in word for word in peer) for name in (SERVER, URL))
    if has_server and has_url:
        raise click.UsageError(
            f"The client's command has both {SERVER} and {URL}: one trial is on one transport. Leave one out."
        )
    if not has_server and not has_url:
        raise click.UsageError(
            f"The client's command has neither {SERVER}, which becomes the command of the mock, nor {URL}, which becomes its address."
        )


def _chosen(options: TrialOptions, faults: Mapping[str, TrialFault], known: Mapping[str, TrialFault]) -> list[TrialFault]:
    """Choose among the faults that this peer can be tried with. Raises: click.UsageError."""
    unknown = next((name for name in options.only if name not in faults), None)
    if unknown is not None and unknown in known:
        need = f"over HTTP: write {URL}" if HTTP in known[unknown].transports else f"on stdio: write {SERVER}"
        raise click.UsageError(f"There is {unknown} only {need} in the client's command. Here there are {', '.join(faults)}.")
    if unknown is not None:
        raise click.UsageError(f"There is no fault {safe_text(unknown)}. They are {', '.join(faults)}.")
    wanted = {NO_FAULT, *options.only} if options.only else set(faults)
    return [fault for fault in faults.values() if fault.name in wanted]


def _capture(what: str) -> str:
    """Find the one session that is played. Raises: AddressError."""
    captures = select_captures((what,))
    paths = captures.paths if captures.rows is not None else one_session(what, playable(what, captures.paths))
    if len(paths) > 1 or captures.rows is not None:
        raise AddressError(what, f"a trial plays one whole capture, and this is {', '.join(paths)}; name one capture")
    return os.path.abspath(paths[0])


def _folder(named: str | None) -> str:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return os.path.abspath(named or os.path.join(home_folder(), "trials", f"{stamp}-{os.getpid()}"))


def _made_folders(folder: str) -> list[str]:
    """Make the folder of the captures, and those above it that are missing; return them, the deepest first."""
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        os.mkdir(path, mode=0o700)
    return missing


def _report(result: TrialResult) -> None:
    say(f"mcpspy: {result.fault}: {result.judgement.outcome}")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _read_expectations(path: str, faults: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Read the expected outcomes. Raises: click.UsageError: if the file cannot be read, with the line that is wrong."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise click.UsageError(f"--expect {path}: {reason}. Add --accept to write the outcomes there.") from None
    expected: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(lines, 1):
        name, _, words = line.partition("#")[0].partition(":")
        if not name.strip():
            continue
        outcomes = tuple(word.strip() for word in words.split(","))
        wrong = next((word for word in outcomes if word not in _OUTCOMES), None)
        if name.strip() not in faults:
            raise click.UsageError(
                f"{path}, line {number}: there is no fault {safe_text(name.strip())}; mcpspy trial --list has all."
            )
        if wrong is not None:
            known = ", ".join(sorted(_OUTCOMES))
            raise click.UsageError(f"{path}, line {number}: {safe_text(wrong) or 'nothing'} is no outcome. They are {known}.")
        expected[name.strip()] = outcomes
    return expected


def _write_expectations(path: str, results: Iterable[TrialResult]) -> None:
    """Write the outcomes. Raises: OSError."""
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{result.fault}: {result.judgement.outcome}\n" for result in results)

"""What `wrap` and `unwrap` share: find the servers, show what would change, ask, keep a copy, replace."""

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from ..capture.redact import Redactor
from ..capture.store import home_folder, key
from ..errors import SetupError
from ..setup.clients import CLIENTS, Client, Machine, configs
from ..setup.files import keep, replace
from ..setup.plan import Aim, Change, Found, Looked, argv_after, change, look, named, wants
from ..setup.program import ensure_starts, program
from ..views.escape import safe_text
from .screen import Screen, say
from .wrapping_lines import change_lines, document, server_lines, status_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for on the command line."""

    clients: tuple[str, ...]
    servers: tuple[str, ...]
    asks: bool
    dry_run: bool
    status: bool
    as_json: bool


def setup_options(verb: Callable[[Wanted], int]) -> Callable[..., int]:
    """The options of both verbs."""

    @click.option("--client", "clients", multiple=True, type=click.Choice(list(CLIENTS)), help="Only this client's servers.")
    @click.option(
        "--server", "servers", multiple=True, metavar="NAME", help="Only the server of this name; a glob such as 'git*' too."
    )
    @click.option("--all", "everything", is_flag=True, help="All clients and servers, without asking.")
    @click.option("--yes", is_flag=True, help="Do not ask.")
    @click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
    @click.option("--status", is_flag=True, help="Say what is wrapped where, and what is recorded.")
    @click.option("--json", "as_json", is_flag=True, help="JSON for programs (docs/json.md); does not ask.")
    @functools.wraps(verb)
    def command(
        *,
        clients: tuple[str, ...],
        servers: tuple[str, ...],
        everything: bool,
        yes: bool,
        dry_run: bool,
        status: bool,
        as_json: bool,
    ) -> int:
        if everything and (clients or servers):
            raise click.UsageError("--all means every client and server; leave it out to name some.")
        asks = not (everything or yes or as_json) and sys.stdin.isatty() and sys.stdout.isatty()
        return verb(Wanted(clients=clients, servers=servers, asks=asks, dry_run=dry_run, status=status, as_json=as_json))

    return command


def work(aim: Aim, wanted: Wanted) -> int:
    """Do it. The exit status is 2 if a file could not be read or changed, or a server that was named is nowhere."""
    looked, problems = _look(wanted.clients)
    chosen = [one for file in looked for one in file.servers if named(one, wanted.servers)]
    if wanted.status:
        _print(aim, wanted, chosen, [], problems)
    else:
        done = _change(aim, wanted, looked, chosen, problems)
        if wanted.as_json:
            _print(aim, wanted, chosen, done, problems)
        elif not wanted.dry_run:
            _say_next(aim, done)
    for problem in problems:
        say(f"mcpspy: {safe_text(str(problem))}")
    if not chosen:
        _say_nothing_found(wanted)
    return 2 if problems or (wanted.servers and not chosen) else 0


def _look(clients: tuple[str, ...]) -> tuple[list[Looked], list[SetupError]]:
    machine = Machine(platform=sys.platform, home=Path(os.path.expanduser("~")), folder=Path.cwd(), environ=os.environ)
    found: list[Looked] = []
    problems: list[SetupError] = []
    for config in configs(machine):
        if clients and config.client.name not in clients:
            continue
        try:
            one = look(config)
        except SetupError as error:
            problems.append(error)
        else:
            found += [one] if one else []
    return found, problems


def _change(
    aim: Aim, wanted: Wanted, looked: list[Looked], chosen: list[Found], problems: list[SetupError]
) -> list[tuple[Change, Path | None]]:
    """What was changed, or would be, and where the copy of the file lies."""
    ours = program()
    redactor = Redactor(key())
    screen = Screen()
    if aim is Aim.WRAP and not wanted.dry_run and any(wants(one, aim) for one in chosen):
        ensure_starts(ours)
    done: list[tuple[Change, Path | None]] = []
    for file in looked:
        here = [one for one in chosen if one.config is file.config]
        try:
            planned = change(file, here, aim, ours)
            if not wanted.as_json and here:
                screen.lines(
                    change_lines(file, here, aim, lambda one: redactor.argv(argv_after(one, aim, ours)), redactor.argv)
                )
            if planned is None:
                continue
            if wanted.dry_run:
                done.append((planned, None))
            elif not wanted.asks or click.confirm(f"Change {safe_text(str(file.config.file))}?", default=True, err=True):
                kept = keep(file.snapshot, Path(home_folder()) / "backups")
                replace(file.snapshot, planned.text)
                done.append((planned, kept))
        except SetupError as error:
            problems.append(error)
    if wanted.dry_run and not wanted.as_json:
        screen.advise([("Nothing was changed; without --dry-run it is.", "dim")])
    return done


def _print(
    aim: Aim, wanted: Wanted, chosen: list[Found], done: list[tuple[Change, Path | None]], problems: list[SetupError]
) -> None:
    if wanted.as_json:
        click.echo(document(chosen, done, problems, dry_run=wanted.dry_run, aim=aim))
        return
    screen = Screen()
    screen.lines(server_lines(chosen))
    screen.lines(status_lines())


def _say_next(aim: Aim, done: list[tuple[Change, Path | None]]) -> None:
    """Where the copies are, who has to be started again, and what is then of use."""
    clients: dict[str, Client] = {}
    for made, kept in done:
        clients[made.looked.config.client.name] = made.looked.config.client
        shared = made.looked.config.sections[0].scope == "project"
        note = " The file belongs to the project: unwrap before you share it." if shared and aim is Aim.WRAP else ""
        say(f"Changed {safe_text(str(made.looked.config.file))}; as it was: {safe_text(str(kept))}.{note}")
    for client in clients.values():
        say(f"{client.title}: {client.restart}.")
    if clients and aim is Aim.WRAP:
        say("Then: mcpspy show -f. Back again: mcpspy unwrap.")


def _say_nothing_found(wanted: Wanted) -> None:
    names = f" by the name of {safe_text(', '.join(wanted.servers))}" if wanted.servers else ""
    say(
        f"No server{names} in the files of {', '.join(wanted.clients or CLIENTS)}. docs/wrap.md says where they are looked for."
    )

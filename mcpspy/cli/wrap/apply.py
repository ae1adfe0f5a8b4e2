"""What `wrap` and `unwrap` share: find the servers, show what would change, ask, keep a copy, replace."""

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import click

from ...capture.redaction.redactor import Redactor
from ...capture.store.folder import home_folder, key
from ...capture.store.quota import set_quota
from ...errors import SetupError
from ...setup.clients import CLIENTS, Machine, configs
from ...setup.commit import BACKUPS, Done, carry_out
from ...setup.plan import Aim, Change, Found, Looked, Means, change, look, named, wants
from ...setup.ports import Places, is_free, read_places
from ...setup.program import ensure_starts, is_passing, program
from ...views.text.escape import safe_text
from ...views.text.units import size
from ..screen import Screen, say
from ..units import QUOTA
from .lines import change_lines, document, server_lines
from .next_steps import say_next
from .status import captures_object, status_lines, status_object

PASSING = (
    "lies in a cache: once that is emptied, what is wrapped does not start any more. "
    "Install mcpspy for good (pipx install, uv tool install) and wrap with that."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for on the command line. `max_bytes` is a quota for the store: None leaves it as it is, 0 lifts it."""

    clients: tuple[str, ...]
    servers: tuple[str, ...]
    asks: bool
    dry_run: bool
    status: bool
    as_json: bool
    oauth: bool = False
    max_bytes: int | None = None


def setup_options(verb: Callable[[Wanted], int]) -> Callable[..., int]:
    """The options of both verbs."""

    @click.option("--client", "clients", multiple=True, type=click.Choice(list(CLIENTS)), help="Only this client's servers.")
    @click.option(
        "--server", "servers", multiple=True, metavar="NAME", help="Only the server of this name; a glob such as 'git*' too."
    )
    @click.option("--all", "everything", is_flag=True, help="All clients and servers, without asking.")
    @click.option("--yes", is_flag=True, help="Do not ask.")
    @click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
    @click.option("--status", is_flag=True, help="Say what is wrapped where, what records now, and the last errors.")
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
        oauth: bool = False,
        max_bytes: int | None = None,
    ) -> int:
        if everything and (clients or servers):
            raise click.UsageError("--all means every client and server; leave it out to name some.")
        if status and (dry_run or oauth or max_bytes is not None):
            raise click.UsageError("--status changes nothing; leave out what else was asked for.")
        asks = not (everything or yes or as_json) and sys.stdin.isatty() and sys.stdout.isatty()
        return verb(
            Wanted(
                clients=clients,
                servers=servers,
                asks=asks,
                dry_run=dry_run,
                status=status,
                as_json=as_json,
                oauth=oauth,
                max_bytes=max_bytes,
            )
        )

    return command


def wrap_options(verb: Callable[..., int]) -> Callable[..., int]:
    """Those of `wrap` alone."""
    oauth = click.option(
        "--oauth", is_flag=True, help="Wrap HTTP servers too that the client may have to log in to; it has to log in anew."
    )
    quota = click.option(
        "--max-size",
        "max_bytes",
        type=QUOTA,
        metavar="SIZE",
        help="Keep the store below this (2gb), the oldest recordings go; `none` lifts it. By default nothing is ever removed.",
    )
    return oauth(quota(verb))


def work(aim: Aim, wanted: Wanted) -> int:
    """Do it. The exit status is 2 if a file could not be read or changed, or a server that was named is nowhere."""
    means = Means(aim=aim, program=program(), oauth=wanted.oauth, is_free=is_free)
    looked, problems = _look(wanted.clients)
    chosen = [one for file in looked for one in file.servers if named(one, wanted.servers)]
    done: list[Done] = []
    if not wanted.status:
        try:
            _change(means, wanted, looked, chosen, problems, done)
        except click.Abort:  # they have seen enough; what was changed so far is changed
            say_next(aim, done, capped=False)
            raise
        _set_quota(wanted, problems)
    if wanted.as_json:
        more = status_object() if wanted.status else {"captures": captures_object()}
        click.echo(document(chosen, done, problems, means=means, dry_run=wanted.dry_run, more=more))
    elif wanted.status:
        screen = Screen()
        screen.lines(server_lines(chosen))
        screen.lines(status_lines())
    elif not wanted.dry_run:
        say_next(aim, done, capped=wanted.max_bytes is not None)
    for problem in dict.fromkeys(map(str, problems)):
        say(f"mcpspy: {safe_text(problem)}")
    if not chosen:
        _say_nothing_found(wanted)
    return 2 if problems or (wanted.servers and not chosen) else 0


def _look(clients: tuple[str, ...]) -> tuple[list[Looked], list[SetupError]]:
    home = Path(os.path.expanduser("~"))
    machine = Machine(platform=sys.platform, home=home, folder=_folder() or home, environ=os.environ)
    found: list[Looked] = []
    problems: list[SetupError] = []
    try:
        places = read_places(Path(home_folder()))
    except SetupError as error:
        problems.append(error)
        places = Places()
    for config in configs(machine):
        if clients and config.client.name not in clients:
            continue
        try:
            one = look(config, places, Path(home_folder()) / BACKUPS)
        except SetupError as error:
            problems.append(error)
        else:
            found += [one] if one else []
    return found, problems


def _folder() -> Path | None:
    """The folder one works in; None where it was removed meanwhile."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _change(
    means: Means, wanted: Wanted, looked: list[Looked], chosen: list[Found], problems: list[SetupError], done: list[Done]
) -> None:
    """Change file by file. What was changed, or would be, and where the copy of the file lies, is added to `done`.

    Raises: click.Abort: by who does not want to be asked any more.
    """
    screen = Screen()
    redactor = Redactor(key())
    if means.aim is Aim.WRAP and any(wants(one, means) and not one.entry.is_http for one in chosen):
        if is_passing(list(means.program)):
            say(f"mcpspy: {safe_text(means.program[0])} {PASSING}")
        if not wanted.dry_run:
            ensure_starts(list(means.program))
    for file in looked:
        here = [one for one in chosen if one.config is file.config]
        try:
            planned = change(_beside(file, done), here, means)
            if not wanted.as_json and here:
                screen.lines(change_lines(file, here, planned, means, redactor))
            if means.aim is Aim.UNWRAP:
                problems += [_lost(one) for one in here if one.entry.is_lost]
            if planned is None:
                continue
            if wanted.dry_run:
                done.append(Done(change=planned))
            elif not wanted.asks or _agreed(planned):
                made = carry_out(planned, means, Path(home_folder()))
                done += [made] if made else []
        except SetupError as error:
            problems.append(error)
    if wanted.dry_run and wanted.max_bytes is not None and not wanted.as_json:
        say(
            f"The store would be kept below {size(wanted.max_bytes)}." if wanted.max_bytes else "The store would have no quota."
        )
    if wanted.dry_run and not wanted.as_json:
        screen.advise([("Nothing was changed; without --dry-run it is.", "dim")])


def _beside(file: Looked, done: list[Done]) -> Looked:
    """The file, as it is to be planned beside what is done already: what is shown has to name the ports that it gets."""
    taken = [place for one in done for place in one.change.places.by_port.values()]
    return replace(file, places=Places([*file.places.by_port.values(), *taken]))


def _lost(found: Found) -> SetupError:
    return SetupError(str(found.config.file), f"its server {found.entry.name!r} cannot be unwrapped: {found.entry.problem}")


def _agreed(planned: Change) -> bool:
    return click.confirm(f"Change {safe_text(str(planned.looked.config.file))}?", default=True, err=True)


def _set_quota(wanted: Wanted, problems: list[SetupError]) -> None:
    if wanted.max_bytes is not None and not wanted.dry_run:
        try:
            set_quota(wanted.max_bytes or None)
        except OSError as error:
            problems.append(SetupError(str(error.filename), error.strerror or str(error)))


def _say_nothing_found(wanted: Wanted) -> None:
    names = f" by the name of {safe_text(', '.join(wanted.servers))}" if wanted.servers else ""
    say(
        f"No server{names} in the files of {', '.join(wanted.clients or CLIENTS)}. docs/wrap.md says where they are looked for."
    )

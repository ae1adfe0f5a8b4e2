"""The work of `wrap` and `unwrap`: find the servers, show the changes, ask, and make them."""

import os
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import click

from ...capture.redaction.redactor import Redactor
from ...capture.store.folder import home_folder, key
from ...capture.store.quota import set_quota
from ...errors import SetupError, sentence
from ...platform import system
from ...platform.files import user_home
from ...setup.clients import CLIENTS, Machine, client_files
from ...setup.commit import BACKUPS, AppliedChange, apply_change
from ...setup.files import remove_leftovers
from ...setup.plan import (
    Aim,
    ConfigChange,
    ConfigFileState,
    ConfiguredServer,
    WrapSettings,
    is_removable,
    matches,
    needs_change,
    own_server,
    plan_change,
    read_state,
    takes_own,
)
from ...setup.ports import ReservedPorts, is_free, read_reserved_ports
from ...setup.service import SOCKET, ensure_starts, is_in_cache, program
from ...views.text.escape import safe_text, without_logins
from ...views.text.units import size
from ..screen import Screen, say
from .lines import captures_object, change_lines, document, say_next_steps, server_lines, status_lines, status_object
from .serving import (
    keep_in_step,
    needs_service,
    ports_after,
    serve,
    service_change_lines,
    service_lines,
    service_object,
    with_service,
)

IN_CACHE = (
    "is in a cache; wrapped servers stop working once the cache is emptied. "
    "Install mcpspy permanently (pipx install, uv tool install) and wrap with that."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapOptions:
    """The options of both verbs. `quota_bytes` is a quota for the store: None does not change it, 0 removes it."""

    clients: tuple[str, ...]
    servers: tuple[str, ...]
    asks: bool
    yes: bool
    dry_run: bool
    status: bool
    as_json: bool
    own: bool
    """True if mcpspy's own entry is to be changed, instead of others."""
    oauth: bool = False
    without_service: bool = False
    quota_bytes: int | None = None

    @property
    def only_shows(self) -> bool:
        """True if nothing is to be changed: on a dry run, and where nobody said yes and nobody can be asked."""
        return self.dry_run or not (self.yes or self.asks)


def change_files(aim: Aim, options: WrapOptions) -> int:
    """Change the files, or show their state. The exit status is 2 if a file cannot be read or changed, or a server is not found."""
    settings = WrapSettings(aim=aim, program=program(), oauth=options.oauth, is_free=is_free)
    files, problems = _read_files(options.clients)
    servers = _chosen(aim, options, files, problems)
    if not options.status:
        settings = with_service(settings, servers, problems, without=options.without_service)
    applied: list[AppliedChange] = []
    is_wanted = options.quota_bytes is not None
    if not options.status:
        try:
            is_wanted |= _change(settings, options, files, servers, problems, applied)
        except click.Abort:  # Ctrl-C; what was changed so far is changed
            say_next_steps(aim, applied, quota_changed=False, by_service=settings.by_service)
            raise
        _set_quota(options, problems)
    if options.as_json:
        more = {**(status_object() if options.status else {"captures": captures_object()}), "service": service_object()}
        click.echo(document(servers, applied, problems, settings=settings, dry_run=options.only_shows, more=more))
    elif options.status:
        sections = [server_lines(servers), service_lines(), status_lines()]
        Screen().broken([line for section in sections if section for line in ([], *section)][1:])
    elif not options.only_shows:
        say_next_steps(aim, applied, quota_changed=options.quota_bytes is not None, by_service=settings.by_service)
    for problem in dict.fromkeys(map(str, problems)):
        say(f"mcpspy: {sentence(safe_text(problem))}")
    if not servers and not (aim is Aim.ADD and problems):
        _say_no_server(aim, options)
    is_refused = is_wanted and options.only_shows and not (options.dry_run or options.status)
    if is_refused:
        say(f"mcpspy: nothing was changed: without a terminal to ask on, changes need --yes: {_with_yes()}")
    return 2 if problems or is_refused or ((options.servers or aim is Aim.ADD) and not servers) else 0


def _with_yes() -> str:
    return safe_text(shlex.join(["mcpspy", *sys.argv[1:], "--yes"]))


def _read_files(clients: tuple[str, ...]) -> tuple[list[ConfigFileState], list[SetupError]]:
    home = Path(user_home())
    machine = Machine(platform=system.NAME, home=home, folder=_working_folder() or home, environ=os.environ)
    states: list[ConfigFileState] = []
    problems: list[SetupError] = []
    try:
        ports = read_reserved_ports(Path(home_folder()))
    except SetupError as error:
        problems.append(error)
        ports = ReservedPorts()
    for file in client_files(machine):
        if clients and file.client.name not in clients:
            continue
        try:
            state = read_state(file, ports, Path(home_folder()) / BACKUPS)
        except SetupError as error:
            problems.append(error)
        else:
            states += [state] if state else []
    return states, problems


def _chosen(aim: Aim, options: WrapOptions, files: list[ConfigFileState], problems: list[SetupError]) -> list[ConfiguredServer]:
    """Choose the servers that the options name; for the aims of `--self`, mcpspy's own in each file."""
    if aim is not Aim.ADD:
        servers = [server for file in files for server in file.servers if matches(server, options.servers)]
        return [server for server in servers if is_removable(server)] if aim is Aim.REMOVE else servers
    own: list[ConfiguredServer] = []
    for file in filter(takes_own, files):
        try:
            own.append(own_server(file))
        except SetupError as error:
            problems.append(error)
    return own


def _working_folder() -> Path | None:
    """Return the working folder; None if it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _change(
    settings: WrapSettings,
    options: WrapOptions,
    files: list[ConfigFileState],
    servers: list[ConfiguredServer],
    problems: list[SetupError],
    applied: list[AppliedChange],
) -> bool:
    """Change the files, and add to `applied` what was changed, or would be. Returns whether there was anything to change.

    The service comes first: a server whose port nobody serves would be dead. Raises: click.Abort: if the user ends it.
    """
    _check_program(settings, options, servers)
    planned = _plan(settings, options, files, servers, problems)
    reserved = files[0].ports if files else ReservedPorts()
    is_service_needed = needs_service(settings, ports_after(planned, reserved))
    if is_service_needed and not options.as_json:
        Screen().broken(service_change_lines())
    is_wanted = bool(planned) or is_service_needed
    if options.only_shows:
        applied += [AppliedChange(change=change) for change in planned]
        _say_nothing_changed(options)
        return is_wanted
    for state in files:
        remove_leftovers(state.snapshot.target.parent, state.snapshot.target.name)
    for own_folder in (Path(home_folder()), Path(home_folder()) / BACKUPS):
        remove_leftovers(own_folder)
    if options.asks:
        planned, is_service_needed = _agreed(planned, settings, with_service=is_service_needed)
    if is_service_needed:
        planned, settings = _served(planned, settings, ports_after(planned, reserved), problems)
    for change in planned:
        try:
            done = apply_change(change, settings, Path(home_folder()))
        except SetupError as error:
            problems.append(error)
        else:
            applied += [done] if done else []
    if planned and (settings.by_service or settings.aim is Aim.UNWRAP):
        _keep_service_in_step(settings.aim, problems)
    return is_wanted


def _check_program(settings: WrapSettings, options: WrapOptions, servers: list[ConfiguredServer]) -> None:
    """Warn of a mcpspy that may vanish, and start it once, if clients or the service are to start it. Raises: SetupError."""
    started = (server for server in servers if settings.by_service or not server.entry.is_http)
    if settings.aim in (Aim.UNWRAP, Aim.REMOVE) or not any(needs_change(server, settings) for server in started):
        return
    if is_in_cache(list(settings.program)):
        say(f"mcpspy: {safe_text(settings.program[0])} {IN_CACHE}")
    if not options.only_shows:
        ensure_starts(list(settings.program))


def _served(
    planned: list[ConfigChange], settings: WrapSettings, ports: ReservedPorts, problems: list[SetupError]
) -> tuple[list[ConfigChange], WrapSettings]:
    """Set up the service for the planned `ports`. If that fails, HTTP servers are left out of the plan."""
    try:
        serve(ports)
    except SetupError as error:
        problems.append(error)
        left = replace(settings, by_service=False, http_obstacle=str(error))
        return [change for whole in planned if (change := plan_change(whole.state, whole.servers, left))], left
    # the service listens there already, so a planned port does not look free any more
    return planned, replace(settings, is_free=lambda port: port in ports.by_port or is_free(port))


def _keep_service_in_step(aim: Aim, problems: list[SetupError]) -> None:
    try:
        message = keep_in_step(aim)
    except SetupError as error:
        problems.append(error)
    else:
        if message:
            say(message)


def _plan(
    settings: WrapSettings,
    options: WrapOptions,
    files: list[ConfigFileState],
    servers: list[ConfiguredServer],
    problems: list[SetupError],
) -> list[ConfigChange]:
    """Plan the change of each file, and show all of them."""
    screen, redactor = Screen(), Redactor(key())
    planned: list[ConfigChange] = []
    for file in files:
        here = [server for server in servers if server.file is file.file]
        try:
            change = plan_change(_with_ports(file, planned), here, settings)
        except SetupError as error:
            problems.append(error)
            continue
        if not options.as_json and here:
            screen.broken(change_lines(file, here, change, settings, redactor))
        if settings.aim is Aim.UNWRAP:
            problems += [_cannot_unwrap(server) for server in here if server.entry.has_unknown_original]
        planned += [change] if change else []
    return planned


def _say_nothing_changed(options: WrapOptions) -> None:
    if options.as_json or not options.dry_run:
        return
    if options.quota_bytes is not None:
        quota = options.quota_bytes
        say(f"The store would be kept below {size(quota)}." if quota else "The store would have no quota.")
    Screen().advise([("Nothing was changed. Without --dry-run, it would be.", "dim")])


def _with_ports(file: ConfigFileState, planned: list[ConfigChange]) -> ConfigFileState:
    """Add the ports that the plans of other files reserve, so that the plan shows the ports that the servers will get."""
    reserved = [port for change in planned for port in change.ports.by_port.values()]
    return replace(file, ports=ReservedPorts([*file.ports.by_port.values(), *reserved]))


def _cannot_unwrap(server: ConfiguredServer) -> SetupError:
    reason = f"its server {server.entry.name!r} cannot be unwrapped: {server.entry.problem}"
    return SetupError(str(server.file.path), reason)


def _agreed(planned: list[ConfigChange], settings: WrapSettings, *, with_service: bool) -> tuple[list[ConfigChange], bool]:
    """Ask once about all changes, and server by server if the answer is “some”. Raises: click.Abort.

    Returns the changes that were agreed to, and whether the service was.
    """
    servers = [server for change in planned for server in change.servers]
    service = f"{', and set' if servers else 'Set'} up the service {SOCKET}" if with_service else ""
    if not servers and not service:
        return [], False
    if len(servers) <= 1:
        file = f"Change {safe_text(str(servers[0].file.path))}" if servers else ""
        is_agreed = click.confirm(f"{file}{service}?", default=True, err=True)
        return (planned, with_service) if is_agreed else ([], False)
    files = "1 file" if len(planned) == 1 else f"{len(planned)} files"
    changes = {Aim.ADD: f"Add mcpspy to these {files}", Aim.REMOVE: f"Take mcpspy out of {files}"}
    words = changes.get(settings.aim, f"Change these {len(servers)} servers in {files}{service}")
    question = f"{words}? [all, some, none]"
    answer = click.prompt(question, default="all", show_default=False, value_proc=_answer, err=True)
    if answer == "some":
        some = [change for whole in planned if (change := _some(whole, settings))]
        return some, with_service and any(server.entry.is_http for change in some for server in change.servers)
    return (planned, with_service) if answer == "all" else ([], False)


def _answer(text: str) -> str:
    """Read an answer by its first letter; y and n are all and none."""
    answers = {"a": "all", "y": "all", "s": "some", "n": "none"}
    answer = answers.get(text.strip().lower()[:1])
    if answer is None:
        raise click.UsageError("answer all, some or none")
    return answer


def _some(change: ConfigChange, settings: WrapSettings) -> ConfigChange | None:
    """Ask about each server of a file, and plan the change of those that were agreed to."""
    path = safe_text(str(change.state.file.path))
    chosen = [
        server
        for server in change.servers
        if click.confirm(f"Change {safe_text(server.entry.name)} in {path}?", default=True, err=True)
    ]
    return plan_change(change.state, chosen, settings)


def _set_quota(options: WrapOptions, problems: list[SetupError]) -> None:
    if options.quota_bytes is not None and not options.only_shows:
        try:
            set_quota(options.quota_bytes or None)
        except OSError as error:
            problems.append(SetupError(str(error.filename), error.strerror or str(error)))


def _say_no_server(aim: Aim, options: WrapOptions) -> None:
    clients = ", ".join(options.clients or CLIENTS)
    if aim in (Aim.ADD, Aim.REMOVE):
        words = "There is none to add mcpspy to" if aim is Aim.ADD else "mcpspy's own server is in none"
        say(f"{words} of the files of {clients}. docs/wrap.md lists these files.")
        return
    names = f" named {safe_text(without_logins(', '.join(options.servers)))}" if options.servers else ""
    say(f"No server{names} in the files of {clients}. docs/wrap.md lists these files.")

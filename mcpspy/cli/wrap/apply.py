"""The work of `wrap` and `unwrap`: find the servers, show the changes, ask, and make them."""

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import click

from ...capture.redaction.redactor import Redactor
from ...capture.store.folder import home_folder, key
from ...capture.store.quota import set_quota
from ...errors import SetupError
from ...setup.clients import CLIENTS, Machine, client_files
from ...setup.commit import BACKUPS, AppliedChange, apply_change
from ...setup.plan import (
    Aim,
    ConfigChange,
    ConfigFileState,
    ConfiguredServer,
    WrapSettings,
    matches,
    needs_change,
    plan_change,
    read_state,
)
from ...setup.ports import ReservedPorts, is_free, read_reserved_ports
from ...setup.program import ensure_starts, is_in_cache, program
from ...views.text.escape import safe_text
from ...views.text.units import size
from ..screen import Screen, say
from .lines import change_lines, document, say_next_steps, server_lines
from .status import captures_object, status_lines, status_object

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
    dry_run: bool
    status: bool
    as_json: bool
    oauth: bool = False
    quota_bytes: int | None = None


def change_files(aim: Aim, options: WrapOptions) -> int:
    """Change the files, or show their state. The exit status is 2 if a file cannot be read or changed, or a server is not found."""
    settings = WrapSettings(aim=aim, program=program(), oauth=options.oauth, is_free=is_free)
    files, problems = _read_files(options.clients)
    servers = [server for file in files for server in file.servers if matches(server, options.servers)]
    applied: list[AppliedChange] = []
    if not options.status:
        try:
            _change(settings, options, files, servers, problems, applied)
        except click.Abort:  # Ctrl-C; what was changed so far is changed
            say_next_steps(aim, applied, quota_changed=False)
            raise
        _set_quota(options, problems)
    if options.as_json:
        more = status_object() if options.status else {"captures": captures_object()}
        click.echo(document(servers, applied, problems, settings=settings, dry_run=options.dry_run, more=more))
    elif options.status:
        screen = Screen()
        screen.lines(server_lines(servers))
        screen.lines(status_lines())
    elif not options.dry_run:
        say_next_steps(aim, applied, quota_changed=options.quota_bytes is not None)
    for problem in dict.fromkeys(map(str, problems)):
        say(f"mcpspy: {safe_text(problem)}")
    if not servers:
        _say_no_server(options)
    return 2 if problems or (options.servers and not servers) else 0


def _read_files(clients: tuple[str, ...]) -> tuple[list[ConfigFileState], list[SetupError]]:
    home = Path(os.path.expanduser("~"))
    machine = Machine(platform=sys.platform, home=home, folder=_working_folder() or home, environ=os.environ)
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
) -> None:
    """Change file by file, and add to `applied` what was changed, or would be. Raises: click.Abort: if the user ends it."""
    screen = Screen()
    redactor = Redactor(key())
    if settings.aim is Aim.WRAP and any(needs_change(server, settings) and not server.entry.is_http for server in servers):
        if is_in_cache(list(settings.program)):
            say(f"mcpspy: {safe_text(settings.program[0])} {IN_CACHE}")
        if not options.dry_run:
            ensure_starts(list(settings.program))
    for file in files:
        here = [server for server in servers if server.file is file.file]
        try:
            planned = plan_change(_with_ports(file, applied), here, settings)
            if not options.as_json and here:
                screen.lines(change_lines(file, here, planned, settings, redactor))
            if settings.aim is Aim.UNWRAP:
                problems += [_cannot_unwrap(server) for server in here if server.entry.has_unknown_original]
            if planned is None:
                continue
            if options.dry_run:
                applied.append(AppliedChange(change=planned))
            elif not options.asks or _is_agreed(planned):
                change = apply_change(planned, settings, Path(home_folder()))
                applied += [change] if change else []
        except SetupError as error:
            problems.append(error)
    if options.dry_run and not options.as_json:
        if options.quota_bytes is not None:
            quota = options.quota_bytes
            say(f"The store would be kept below {size(quota)}." if quota else "The store would have no quota.")
        screen.advise([("Nothing was changed. Without --dry-run, it would be.", "dim")])


def _with_ports(file: ConfigFileState, applied: list[AppliedChange]) -> ConfigFileState:
    """Add the ports that other files just reserved, so that the plan shows the ports that the servers will get."""
    reserved = [port for change in applied for port in change.change.ports.by_port.values()]
    return replace(file, ports=ReservedPorts([*file.ports.by_port.values(), *reserved]))


def _cannot_unwrap(server: ConfiguredServer) -> SetupError:
    reason = f"its server {server.entry.name!r} cannot be unwrapped: {server.entry.problem}"
    return SetupError(str(server.file.path), reason)


def _is_agreed(planned: ConfigChange) -> bool:
    return click.confirm(f"Change {safe_text(str(planned.state.file.path))}?", default=True, err=True)


def _set_quota(options: WrapOptions, problems: list[SetupError]) -> None:
    if options.quota_bytes is not None and not options.dry_run:
        try:
            set_quota(options.quota_bytes or None)
        except OSError as error:
            problems.append(SetupError(str(error.filename), error.strerror or str(error)))


def _say_no_server(options: WrapOptions) -> None:
    names = f" named {safe_text(', '.join(options.servers))}" if options.servers else ""
    say(f"No server{names} in the files of {', '.join(options.clients or CLIENTS)}. docs/wrap.md lists these files.")

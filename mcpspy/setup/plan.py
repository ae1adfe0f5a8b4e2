"""A client's file with the chosen servers wrapped or unwrapped: read and planned here, not written."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from ..errors import SetupError
from .clients import JETBRAINS, ClientFile, ServerSection
from .edit import added, origin_letters, removed, unwrapped, wrapped
from .entry import ConfigEntry, EntryLayout, EntryState, entries
from .files import Snapshot, copies, read
from .ports import ReservedPort, ReservedPorts
from .spans import Unreadable
from .wrapping import OWN_NAME, is_own, path_of, port_of, server_command_at


class Aim(StrEnum):
    """The change to make. ADD and REMOVE are of mcpspy's own entry."""

    WRAP = "wrap"
    UNWRAP = "unwrap"
    ADD = "add"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapSettings:
    """The settings of a change: the command of mcpspy, whether to wrap servers with a login too, which ports are free.

    HTTP servers are served by the service of the user if `by_service`. With an `http_obstacle`, they are not wrapped at all.
    """

    aim: Aim
    program: Sequence[str]
    oauth: bool
    is_free: Callable[[int], bool]
    by_service: bool = False
    http_obstacle: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredServer:
    """A server in a client's file. `program` is the path of the mcpspy that it is wrapped with.

    `missing` if that file does not exist, or if the port of its URL is not reserved.
    """

    file: ClientFile
    section: ServerSection
    entry: ConfigEntry
    program: str = ""
    missing: bool = False

    @property
    def project(self) -> str:
        """The folder of the project, for a server of one user in one project; else empty."""
        return self.entry.path[1] if self.section.scope == "local" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFileState:
    """A file as it was read, with its servers; `ports` are all reserved ports."""

    file: ClientFile
    snapshot: Snapshot
    ports: ReservedPorts
    servers: tuple[ConfiguredServer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """A planned change of some servers of one file: its new `text`, and all reserved `ports` after the change.

    `after` is what the client then starts for each server: the words of a command, or one URL; empty for one that is taken out.
    """

    state: ConfigFileState
    servers: tuple[ConfiguredServer, ...]
    after: tuple[tuple[str, ...], ...]
    text: str
    ports: ReservedPorts


def read_state(file: ClientFile, ports: ReservedPorts, backups: Path | None = None) -> ConfigFileState | None:
    """Read a client's file; None if it does not exist. Raises: SetupError.

    The original of a URL whose port is not reserved is searched in the copies of the file in `backups`.
    """
    snapshot = read(file.path)
    if snapshot is None:
        return None
    text = snapshot.text
    if not text.strip("\ufeff \t\r\n"):
        return ConfigFileState(file=file, snapshot=snapshot, ports=ports, servers=())
    path = str(snapshot.target)
    servers = _servers(file, text, ports.of(path))
    unknown = [server for server in servers if server.entry.has_unknown_original]
    if unknown and backups:
        texts = list(filter(None, map(_copy_text, copies(snapshot.target, backups))))
        recovered = (_recovered(server, texts, path) for server in unknown)
        ports = ReservedPorts([*filter(None, recovered), *ports.by_port.values()])
        servers = _servers(file, text, ports.of(path))
    return ConfigFileState(file=file, snapshot=snapshot, ports=ports, servers=tuple(servers))


def _recovered(server: ConfiguredServer, texts: Iterable[str], path: str) -> ReservedPort | None:
    """Recover the original of a URL from the first of the texts that has it, earlier ones of the file at `path`.

    A text has it if the entry has a URL there that is not wrapped, with the same path and query.
    """
    entry, file = server.entry, server.file
    for text in texts:
        try:
            for earlier in entries(text, file.syntax, server.section.keys):
                is_plain = earlier.is_http and not earlier.problem and earlier.url == earlier.server_url
                if is_plain and earlier.path == entry.path and path_of(earlier.url) == path_of(entry.url):
                    return _reserved(port_of(entry.url) or 0, earlier, text, file, path)
        except Unreadable:
            continue
    return None


def _reserved(port: int, entry: ConfigEntry, text: str, file: ClientFile, path: str) -> ReservedPort:
    """Reserve a port for an entry as it is in `text`; `path` is that of the file, with links resolved."""
    return ReservedPort(
        port=port,
        label=entry.name,
        url=entry.url,
        letters=origin_letters(text, entry),
        client=file.client.name,
        file=path,
        entry=entry.path,
    )


def _copy_text(copy: Path) -> str:
    try:
        return copy.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def matches(server: ConfiguredServer, patterns: Sequence[str]) -> bool:
    """Return whether the name of a server matches one of `patterns`, names or globs; without patterns all do."""
    name = server.entry.name
    return not patterns or any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def needs_change(server: ConfiguredServer, settings: WrapSettings) -> bool:
    """Return whether a server is to be changed. A wrapped one whose mcpspy or reserved port is missing is wrapped again."""
    state = server.entry.state
    if settings.aim is Aim.UNWRAP:
        return state is EntryState.WRAPPED
    if state in (EntryState.OWN, EntryState.ABSENT):
        return settings.aim is Aim.REMOVE or (settings.aim is Aim.ADD and (state is EntryState.ABSENT or server.missing))
    if settings.aim is not Aim.WRAP:
        return False
    if server.entry.is_http and server.entry.state is not EntryState.WRAPPED and settings.http_obstacle:
        return False
    plain = (EntryState.PLAIN, EntryState.LOGIN) if settings.oauth else (EntryState.PLAIN,)
    return state in plain or server.missing


def takes_own(state: ConfigFileState) -> bool:
    """Return whether mcpspy's own server may be added to a file: to those of the user; to a project's, if a client has no others."""
    return state.file.sections[0].scope == "user" or state.file.client is JETBRAINS


def is_removable(server: ConfiguredServer) -> bool:
    """Return whether a server is mcpspy's own, and not that of a plugin."""
    return server.entry.state is EntryState.OWN and server.section.scope != "plugin"


def own_server(state: ConfigFileState) -> ConfiguredServer:
    """Find mcpspy's own server in the first section of a file, or make one that is absent.

    Raises: SetupError: if another server has its name.
    """
    section = state.file.sections[0]
    path = (*section.keys, OWN_NAME)
    for server in state.servers:
        if server.section == section and (server.entry.state is EntryState.OWN or is_own(server.entry.server_argv)):
            return server
        if server.entry.path == path:
            raise SetupError(str(state.file.path), f"has another server of the name {OWN_NAME!r}; rename that first")
    entry = ConfigEntry(path=path, layout=EntryLayout.JSON, members=(), is_absent=True)
    return ConfiguredServer(file=state.file, section=section, entry=entry)


def plan_change(state: ConfigFileState, chosen: Iterable[ConfiguredServer], settings: WrapSettings) -> ConfigChange | None:
    """Plan the change of a file; None if nothing would change. Raises: SetupError."""
    servers = tuple(server for server in chosen if needs_change(server, settings))
    ports = ReservedPorts(state.ports.by_port.values())
    text, path = state.snapshot.text, str(state.snapshot.target)
    try:
        for section in state.file.sections:
            here = [server for server in servers if server.section == section]
            if settings.aim in (Aim.ADD, Aim.REMOVE):
                text = _with_or_without_own(state.file, text, here, settings)
            elif here and settings.aim is Aim.WRAP:
                text = _wrapped(state, text, here, settings, ports)
            elif here:
                paths = {server.entry.path for server in here}
                text = unwrapped(text, state.file.syntax, section.keys, paths, ports.of(path))
    except Unreadable as error:
        raise SetupError(str(state.file.path), str(error)) from error
    if not servers:
        return None
    entries_after = {(server.section, server.entry.path): server.entry for server in _servers(state.file, text, ports.of(path))}
    ports.drop(path, [port_of(entry.url) or 0 for entry in entries_after.values() if entry.is_http])
    after = tuple(_words(entries_after.get((server.section, server.entry.path))) for server in servers)
    return ConfigChange(state=state, servers=servers, after=after, text=text, ports=ports)


def _words(entry: ConfigEntry | None) -> tuple[str, ...]:
    return tuple(client_words(entry)) if entry else ()


def _with_or_without_own(file: ClientFile, text: str, servers: Iterable[ConfiguredServer], settings: WrapSettings) -> str:
    """Take mcpspy's own servers out, and put one in where they are to be there."""
    for server in servers:
        keys = server.section.keys
        if server.entry.state is EntryState.OWN:
            text = removed(text, file.syntax, keys, server.entry.path)
        if settings.aim is Aim.ADD:
            text = added(text, file.syntax, keys, settings.program)
    return text


def client_words(entry: ConfigEntry) -> list[str]:
    """Write what a client starts: the words of a command, or the URL without mcpspy's fragment."""
    return [entry.url.partition("#")[0]] if entry.is_http else entry.argv


def _wrapped(
    state: ConfigFileState, text: str, servers: Iterable[ConfiguredServer], settings: WrapSettings, ports: ReservedPorts
) -> str:
    """Wrap `servers`, all of one section, and reserve ports for those with a URL in `ports`."""
    path, syntax = str(state.snapshot.target), state.file.syntax
    by_path = {server.entry.path: server for server in servers}
    keys = next(iter(by_path.values())).section.keys
    bare = unwrapped(text, syntax, keys, by_path, ports.of(path))
    new_ports: dict[tuple[str, ...], int] = {}
    # also by URLs with an unknown original: such a port must not become another server's
    in_use = {port_of(server.entry.url) for server in state.servers}
    for entry in entries(bare, syntax, keys):
        if entry.path not in by_path or not entry.is_http or entry.problem:
            continue
        before = by_path[entry.path].entry
        earlier = port_of(before.url) if before.state is EntryState.WRAPPED else None
        port = ports.port(path, entry.path, earlier, is_free=lambda port: port not in in_use and settings.is_free(port))
        new_ports[entry.path] = port
        ports.put(_reserved(port, entry, bare, state.file, path))
    return wrapped(text, syntax, keys, by_path, settings.program, new_ports, ports.of(path))


def _servers(file: ClientFile, text: str, ports: Mapping[int, ReservedPort]) -> list[ConfiguredServer]:
    try:
        return [
            _server(file, section, entry)
            for section in file.sections
            for entry in entries(text, file.syntax, section.keys, ports)
        ]
    except Unreadable as error:
        raise SetupError(str(file.path), f"cannot be read: {error}; correct it first") from error


def _server(file: ClientFile, section: ServerSection, entry: ConfigEntry) -> ConfiguredServer:
    argv = entry.argv
    program = argv[0] if argv and (server_command_at(argv) is not None or is_own(argv)) else ""
    missing = bool(program) and Path(program).is_absolute() and not Path(program).is_file()
    if entry.is_http:
        missing = entry.state is EntryState.WRAPPED and entry.reserved_port is None
    return ConfiguredServer(file=file, section=section, entry=entry, program=program, missing=missing)

"""What there is in the clients' files, and the same files with the chosen servers wrapped or unwrapped: read, not yet written."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from ..errors import SetupError
from .address import port_of
from .backups import recovered
from .change import unwrapped, wrapped
from .clients import Config, Section
from .edit_url import origin_letters
from .entry import Entry, State, entries
from .files import Snapshot, copies, read
from .ports import Place, Places
from .prefix import inner
from .spans import Unreadable


class Aim(StrEnum):
    """What is to be done."""

    WRAP = "wrap"
    UNWRAP = "unwrap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """How it is to be done: what starts mcpspy, whether servers that are logged in to are wrapped too, which ports are free."""

    aim: Aim
    program: Sequence[str]
    oauth: bool
    is_free: Callable[[int], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A server where it was found. `program` is the absolute path of the mcpspy before it.

    `missing` if nothing is there, or if the place that its URL is at is not known.
    """

    config: Config
    section: Section
    entry: Entry
    program: str = ""
    missing: bool = False

    @property
    def project(self) -> str:
        """The folder of the project whose server it is for this user alone; empty for all others."""
        return self.entry.path[1] if self.section.scope == "local" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A file that is there, and what it names; read with the knowledge of all `places`."""

    config: Config
    snapshot: Snapshot
    places: Places
    servers: tuple[Found, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file with some of its servers changed: `text` is what it becomes, `places` what there are then.

    `after` is what the client gets for each server: the words of a command, or one URL.
    """

    looked: Looked
    servers: tuple[Found, ...]
    after: tuple[tuple[str, ...], ...]
    text: str
    places: Places


def look(config: Config, places: Places, backups: Path | None = None) -> Looked | None:
    """What `config` names; None if there is no such file. Raises: SetupError.

    A place that is not known is looked for in the copies of the file in `backups`.
    """
    snapshot = read(config.file)
    if snapshot is None:
        return None
    text = snapshot.text
    if not text.strip("\ufeff \t\r\n"):
        return Looked(config=config, snapshot=snapshot, places=places, servers=())
    file = str(snapshot.target)
    servers = _servers(config, text, places.of(file))
    lost = [(one.section.keys, one.entry) for one in servers if one.entry.is_lost]
    if lost and backups:
        known = recovered(lost, copies(snapshot.target, backups), config.syntax, client=config.client.name, file=file)
        places = Places([*known, *places.by_port.values()])
        servers = _servers(config, text, places.of(file))
    return Looked(config=config, snapshot=snapshot, places=places, servers=tuple(servers))


def named(found: Found, patterns: Sequence[str]) -> bool:
    """Whether a server is meant by one of `patterns`, names or globs; by none, every server is."""
    return not patterns or any(found.entry.name == one or fnmatchcase(found.entry.name, one) for one in patterns)


def wants(found: Found, means: Means) -> bool:
    """Whether there is something to do about it. A wrapped server whose mcpspy or place is gone is wrapped anew."""
    if means.aim is Aim.UNWRAP:
        return found.entry.state is State.WRAPPED
    plain = (State.PLAIN, State.LOGIN) if means.oauth else (State.PLAIN,)
    return found.entry.state in plain or found.missing


def change(looked: Looked, chosen: Iterable[Found], means: Means) -> Change | None:
    """The file as it would be; None if nothing would change. Raises: SetupError."""
    servers = tuple(one for one in chosen if wants(one, means))
    places = Places(looked.places.by_port.values())
    text, file = looked.snapshot.text, str(looked.snapshot.target)
    try:
        for section in looked.config.sections:
            here = [one for one in servers if one.section == section]
            if here and means.aim is Aim.WRAP:
                text = _wrapped(looked, text, here, means, places)
            elif here:
                paths = {one.entry.path for one in here}
                text = unwrapped(text, looked.config.syntax, section.keys, paths, places.of(file))
    except Unreadable as error:
        raise SetupError(str(looked.config.file), str(error)) from error
    if not servers:
        return None
    after = {(one.section, one.entry.path): one.entry for one in _servers(looked.config, text, places.of(file))}
    places.drop(file, [port_of(one.url) or 0 for one in after.values() if one.is_http])
    becomes = tuple(tuple(start(after[one.section, one.entry.path])) for one in servers)
    return Change(looked=looked, servers=servers, after=becomes, text=text, places=places)


def start(entry: Entry) -> list[str]:
    """How a client gets at a server: its command, or its URL without our mark."""
    return [entry.url.partition("#")[0]] if entry.is_http else entry.argv


def _wrapped(looked: Looked, text: str, servers: Iterable[Found], means: Means, places: Places) -> str:
    """`text` with `servers`, all of one section, wrapped; the HTTP ones get `places`."""
    file, syntax = str(looked.snapshot.target), looked.config.syntax
    found = {one.entry.path: one for one in servers}
    keys = next(iter(found.values())).section.keys
    bare = unwrapped(text, syntax, keys, found, places.of(file))
    ports: dict[tuple[str, ...], int] = {}
    named = {port_of(one.entry.url) for one in looked.servers}  # by a URL that is lost, too: it must not become another's
    for one in entries(bare, syntax, keys):
        if one.path not in found or not one.is_http or one.problem:
            continue
        had = port_of(found[one.path].entry.url) if found[one.path].entry.state is State.WRAPPED else None
        port = places.port(file, one.path, had, is_free=lambda port: port not in named and means.is_free(port))
        ports[one.path] = port
        letters, client = origin_letters(bare, one), looked.config.client.name
        places.put(Place(port=port, label=one.name, url=one.url, letters=letters, client=client, file=file, entry=one.path))
    return wrapped(text, syntax, keys, found, means.program, ports, places.of(file))


def _servers(config: Config, text: str, places: Mapping[int, Place]) -> list[Found]:
    try:
        return [
            _found(config, section, entry)
            for section in config.sections
            for entry in entries(text, config.syntax, section.keys, places)
        ]
    except Unreadable as error:
        raise SetupError(str(config.file), f"cannot be read: {error}") from error


def _found(config: Config, section: Section, entry: Entry) -> Found:
    argv = entry.argv
    program = argv[0] if argv and inner(argv) is not None else ""
    missing = bool(program) and Path(program).is_absolute() and not Path(program).is_file()
    if entry.is_http:
        missing = entry.state is State.WRAPPED and entry.place is None
    return Found(config=config, section=section, entry=entry, program=program, missing=missing)

"""What there is in the clients' files, and the same files with the chosen servers wrapped or unwrapped: read, not yet written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from ..errors import SetupError
from .change import unwrapped, wrapped
from .clients import Config, Section
from .entry import Entry, State, entries
from .files import Snapshot, read
from .prefix import inner, words
from .spans import Unreadable


class Aim(StrEnum):
    """What is to be done."""

    WRAP = "wrap"
    UNWRAP = "unwrap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A server where it was found. `program` is the absolute path of the mcpspy before it; `missing` if nothing is there."""

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
    """A file that is there, and what it names."""

    config: Config
    snapshot: Snapshot
    servers: tuple[Found, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file with some of its servers changed: `text` is what it becomes."""

    looked: Looked
    servers: tuple[Found, ...]
    text: str


def look(config: Config) -> Looked | None:
    """What `config` names; None if there is no such file. Raises: SetupError."""
    snapshot = read(config.file)
    if snapshot is None:
        return None
    text = snapshot.text
    if not text.strip("\ufeff \t\r\n"):
        return Looked(config=config, snapshot=snapshot, servers=())
    try:
        servers = [
            _found(config, section, entry)
            for section in config.sections
            for entry in entries(text, config.syntax, section.keys)
        ]
    except Unreadable as error:
        raise SetupError(str(config.file), f"cannot be read: {error}") from error
    return Looked(config=config, snapshot=snapshot, servers=tuple(servers))


def named(found: Found, patterns: Sequence[str]) -> bool:
    """Whether a server is meant by one of `patterns`, names or globs; by none, every server is."""
    return not patterns or any(found.entry.name == one or fnmatchcase(found.entry.name, one) for one in patterns)


def wants(found: Found, aim: Aim) -> bool:
    """Whether there is something to do about it. A wrapped server whose mcpspy is gone is wrapped anew."""
    if aim is Aim.UNWRAP:
        return found.entry.state is State.WRAPPED
    return found.entry.state is State.PLAIN or found.missing


def change(looked: Looked, chosen: Iterable[Found], aim: Aim, program: Sequence[str]) -> Change | None:
    """The file as it would be; None if nothing would change. Raises: SetupError."""
    servers = tuple(one for one in chosen if wants(one, aim))
    text = looked.snapshot.text
    try:
        for section in looked.config.sections:
            paths = {one.entry.path for one in servers if one.section == section}
            if paths and aim is Aim.WRAP:
                text = wrapped(text, looked.config.syntax, section.keys, paths, program)
            elif paths:
                text = unwrapped(text, looked.config.syntax, section.keys, paths)
    except Unreadable as error:
        raise SetupError(str(looked.config.file), str(error)) from error
    return Change(looked=looked, servers=servers, text=text) if servers else None


def argv_after(found: Found, aim: Aim, program: Sequence[str]) -> list[str]:
    """What the client will start."""
    if aim is Aim.UNWRAP:
        return found.entry.server_argv
    new_args = found.entry.args is None
    return [*words(program, found.entry.name, new_args=new_args), *found.entry.server_argv]


def _found(config: Config, section: Section, entry: Entry) -> Found:
    argv = entry.argv
    program = argv[0] if argv and inner(argv) is not None else ""
    missing = bool(program) and Path(program).is_absolute() and not Path(program).is_file()
    return Found(config=config, section=section, entry=entry, program=program, missing=missing)

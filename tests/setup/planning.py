"""A client's file as `wrap` and `unwrap` see it: planned on a file of the disk, and written, without a process of its own."""

from pathlib import Path

from mcpspy.setup.clients import CLAUDE_CODE, CODEX, Client, Config, Section
from mcpspy.setup.entry import Syntax
from mcpspy.setup.plan import Aim, Change, Looked, Means, change, look
from mcpspy.setup.ports import Places

PROGRAM = ("/opt/my tools/bin/mcpspy",)


def config(file: Path, *, client: Client | None = None, keys: tuple[str, ...] = ()) -> Config:
    """A file of a client that keeps its servers under `keys`: by default Codex's and Claude Code's, by the file's name."""
    toml = file.suffix == ".toml"
    section = Section(scope="user", keys=keys or (("mcp_servers",) if toml else ("mcpServers",)))
    syntax = Syntax.TOML if toml else Syntax.JSON
    return Config(client=client or (CODEX if toml else CLAUDE_CODE), file=file, sections=(section,), syntax=syntax)


def means(aim: Aim, *, oauth: bool = True) -> Means:
    """How it is done: every port is free."""
    return Means(aim=aim, program=PROGRAM, oauth=oauth, is_free=lambda _: True)


def looked(named: Config, places: Places | None = None) -> Looked:
    """The file as it is."""
    found = look(named, places or Places())
    assert found is not None
    return found


def planned(named: Config, aim: Aim, places: Places | None = None, *, oauth: bool = True) -> Change | None:
    """What is to be done to all servers of the file."""
    found = looked(named, places)
    return change(found, found.servers, means(aim, oauth=oauth))


def carried_out(named: Config, aim: Aim, places: Places | None = None, *, oauth: bool = True) -> Places:
    """The same, written to the file; the places that there are then."""
    made = planned(named, aim, places, oauth=oauth)
    if made is None:
        return places or Places()
    named.file.write_bytes(made.text.encode())
    return made.places

"""A client's file as `wrap` and `unwrap` see it: planned on a file of the disk, and written, without a process of its own."""

from pathlib import Path

from mcpspy.setup.clients import CLAUDE_CODE, CODEX, ClientFile, McpClient, ServerSection
from mcpspy.setup.entry import Syntax
from mcpspy.setup.plan import Aim, ConfigChange, ConfigFileState, WrapSettings, plan_change, read_state
from mcpspy.setup.ports import ReservedPorts

PROGRAM = ("/opt/my tools/bin/mcpspy",)


def config(path: Path, *, client: McpClient | None = None, keys: tuple[str, ...] = ()) -> ClientFile:
    """Describe a client's file that keeps its servers under `keys`: by default Codex's and Claude Code's, by the file's name."""
    toml = path.suffix == ".toml"
    section = ServerSection(scope="user", keys=keys or (("mcp_servers",) if toml else ("mcpServers",)))
    syntax = Syntax.TOML if toml else Syntax.JSON
    return ClientFile(client=client or (CODEX if toml else CLAUDE_CODE), path=path, sections=(section,), syntax=syntax)


def settings(aim: Aim, *, oauth: bool = True) -> WrapSettings:
    """Make the settings of a change; every port is free."""
    return WrapSettings(aim=aim, program=PROGRAM, oauth=oauth, is_free=lambda _: True)


def state_of(file: ClientFile, ports: ReservedPorts | None = None) -> ConfigFileState:
    """Read the file as it is."""
    state = read_state(file, ports or ReservedPorts())
    assert state is not None
    return state


def planned(file: ClientFile, aim: Aim, ports: ReservedPorts | None = None, *, oauth: bool = True) -> ConfigChange | None:
    """Plan the change of all servers of the file."""
    state = state_of(file, ports)
    return plan_change(state, state.servers, settings(aim, oauth=oauth))


def changed(file: ClientFile, aim: Aim, ports: ReservedPorts | None = None, *, oauth: bool = True) -> ReservedPorts:
    """Make that change to the file. Returns all reserved ports after it."""
    plan = planned(file, aim, ports, oauth=oauth)
    if plan is None:
        return ports or ReservedPorts()
    file.path.write_bytes(plan.text.encode())
    return plan.ports

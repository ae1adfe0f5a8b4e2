"""Where MCP clients keep their servers, on Linux, macOS and Windows. Refuses to look whether the files are there."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .entry import Syntax
from .jsonc import ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program that starts servers: the name for `--client`, what people call it, what it needs to take note of a change."""

    name: str
    title: str
    restart: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Where in a file servers stand, and for whom: for the user, for one project, or (local) for the user in one project."""

    scope: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One file of one client."""

    client: Client
    file: Path
    sections: tuple[Section, ...]
    syntax: Syntax = Syntax.JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What files are found by: `sys.platform`, the home folder, the folder one works in, the environment."""

    platform: str
    home: Path
    folder: Path
    environ: Mapping[str, str]

    @property
    def applications(self) -> Path:
        """Where applications with a window keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return Path(self.environ.get("APPDATA") or self.home / "AppData" / "Roaming")
        return Path(self.environ.get("XDG_CONFIG_HOME") or self.home / ".config")


CLAUDE_CODE = Client(name="claude-code", title="Claude Code", restart="end its sessions and start it again")
CLAUDE_DESKTOP = Client(name="claude-desktop", title="Claude Desktop", restart="quit it, from its menu, and start it again")
CURSOR = Client(name="cursor", title="Cursor", restart="start it again, or switch the server off and on in its MCP settings")
VS_CODE = Client(name="vscode", title="VS Code", restart="run “MCP: List Servers” and restart the server")
CODEX = Client(name="codex", title="Codex", restart="begin a new session")

CLIENTS = {one.name: one for one in (CLAUDE_CODE, CLAUDE_DESKTOP, CURSOR, VS_CODE, CODEX)}


def configs(machine: Machine) -> list[Config]:
    """Every file in which the clients may name servers, there or not, each once."""
    found = {
        os.path.realpath(one.file): one for one in (*reversed(list(_of_project(machine))), *reversed(list(_of_user(machine))))
    }
    return list(reversed(found.values()))


def _of_user(machine: Machine) -> Iterator[Config]:
    home, applications = machine.home, machine.applications
    claude = Path(machine.environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
    local = Section(scope="local", keys=("projects", ANY, "mcpServers"))
    yield Config(client=CLAUDE_CODE, file=claude, sections=(_section("user", "mcpServers"), local))
    yield _config(CLAUDE_DESKTOP, applications / "Claude" / "claude_desktop_config.json", "user", "mcpServers")
    yield _config(CURSOR, home / ".cursor" / "mcp.json", "user", "mcpServers")
    for edition in ("Code", "Code - Insiders"):
        user = applications / edition / "User"
        yield _config(VS_CODE, user / "mcp.json", "user", "servers")
        for profile in sorted(user.glob("profiles/*/mcp.json")):
            yield _config(VS_CODE, profile, "user", "servers")
    codex = Path(machine.environ.get("CODEX_HOME") or home / ".codex") / "config.toml"
    yield Config(client=CODEX, file=codex, sections=(_section("user", "mcp_servers"),), syntax=Syntax.TOML)


def _of_project(machine: Machine) -> Iterator[Config]:
    project = _project(machine)
    yield _config(CLAUDE_CODE, project / ".mcp.json", "project", "mcpServers")
    yield _config(CURSOR, project / ".cursor" / "mcp.json", "project", "mcpServers")
    yield _config(VS_CODE, project / ".vscode" / "mcp.json", "project", "servers")
    codex = project / ".codex" / "config.toml"
    yield Config(client=CODEX, file=codex, sections=(_section("project", "mcp_servers"),), syntax=Syntax.TOML)


def _project(machine: Machine) -> Path:
    """The folder one works in, or the one above it that is a repository's; never the home folder's parents."""
    for folder in (machine.folder, *machine.folder.parents):
        if folder == machine.home:
            break
        if (folder / ".git").exists():
            return folder
    return machine.folder


def _section(scope: str, key: str) -> Section:
    return Section(scope=scope, keys=(key,))


def _config(client: Client, file: Path, scope: str, key: str) -> Config:
    return Config(client=client, file=file, sections=(_section(scope, key),))

"""The files in which MCP clients keep their servers, on Linux, macOS and Windows, whether they exist or not."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .entry import Syntax
from .jsonc import ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """A program that starts servers: its name for `--client`, its title, and how to make it read a changed file."""

    name: str
    title: str
    restart: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSection:
    """A part of a file that names servers, and its scope: the user, one project, or (local) the user in one project."""

    scope: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFile:
    """One configuration file of one client."""

    client: McpClient
    path: Path
    sections: tuple[ServerSection, ...]
    syntax: Syntax = Syntax.JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The facts that determine where files are: `sys.platform`, the home folder, the working folder, the environment."""

    platform: str
    home: Path
    folder: Path
    environ: Mapping[str, str]

    @property
    def applications(self) -> Path:
        """The folder where applications with a window keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return Path(self.environ.get("APPDATA") or self.home / "AppData" / "Roaming")
        return Path(self.environ.get("XDG_CONFIG_HOME") or self.home / ".config")


CLAUDE_CODE = McpClient(name="claude-code", title="Claude Code", restart="end its sessions and start it again")
CLAUDE_DESKTOP = McpClient(name="claude-desktop", title="Claude Desktop", restart="quit it, from its menu, and start it again")
CURSOR = McpClient(name="cursor", title="Cursor", restart="start it again, or switch the server off and on in its MCP settings")
VS_CODE = McpClient(name="vscode", title="VS Code", restart="run “MCP: List Servers” and restart the server")
CODEX = McpClient(name="codex", title="Codex", restart="begin a new session")

CLIENTS = {client.name: client for client in (CLAUDE_CODE, CLAUDE_DESKTOP, CURSOR, VS_CODE, CODEX)}


def client_files(machine: Machine) -> list[ClientFile]:
    """List every file in which a client may name servers, each once."""
    last_first = (*reversed(list(_of_project(machine))), *reversed(list(_of_user(machine))))
    by_path = {os.path.realpath(file.path): file for file in last_first}
    return list(reversed(by_path.values()))


def _of_user(machine: Machine) -> Iterator[ClientFile]:
    home, applications = machine.home, machine.applications
    claude = Path(machine.environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
    local = ServerSection(scope="local", keys=("projects", ANY, "mcpServers"))
    yield ClientFile(client=CLAUDE_CODE, path=claude, sections=(_section("user", "mcpServers"), local))
    yield _file(CLAUDE_DESKTOP, applications / "Claude" / "claude_desktop_config.json", "user", "mcpServers")
    yield _file(CURSOR, home / ".cursor" / "mcp.json", "user", "mcpServers")
    for edition in ("Code", "Code - Insiders"):
        user = applications / edition / "User"
        yield _file(VS_CODE, user / "mcp.json", "user", "servers")
        for profile in sorted(user.glob("profiles/*/mcp.json")):
            yield _file(VS_CODE, profile, "user", "servers")
    codex = Path(machine.environ.get("CODEX_HOME") or home / ".codex") / "config.toml"
    yield ClientFile(client=CODEX, path=codex, sections=(_section("user", "mcp_servers"),), syntax=Syntax.TOML)


def _of_project(machine: Machine) -> Iterator[ClientFile]:
    project = _project(machine)
    yield _file(CLAUDE_CODE, project / ".mcp.json", "project", "mcpServers")
    yield _file(CURSOR, project / ".cursor" / "mcp.json", "project", "mcpServers")
    yield _file(VS_CODE, project / ".vscode" / "mcp.json", "project", "servers")
    codex = project / ".codex" / "config.toml"
    yield ClientFile(client=CODEX, path=codex, sections=(_section("project", "mcp_servers"),), syntax=Syntax.TOML)


def _project(machine: Machine) -> Path:
    """Find the repository that contains the working folder, else the working folder; never a parent of the home folder."""
    for folder in (machine.folder, *machine.folder.parents):
        if folder == machine.home:
            break
        if (folder / ".git").exists():
            return folder
    return machine.folder


def _section(scope: str, key: str) -> ServerSection:
    return ServerSection(scope=scope, keys=(key,))


def _file(client: McpClient, path: Path, scope: str, key: str) -> ClientFile:
    return ClientFile(client=client, path=path, sections=(_section(scope, key),))

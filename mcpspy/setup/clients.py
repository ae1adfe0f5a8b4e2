"""The files in which MCP clients keep their servers, on Linux, macOS and Windows, whether they exist or not.

Plugins of Claude Code name servers in `.mcp.json`, `plugin.json`, or a file that the latter names. `.mcp.json` has its
servers under `mcpServers`, or at the top. Source: https://code.claude.com/docs/en/plugins-reference#mcp-servers
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .entry import Syntax
from .jsonc import ANY

Keys = tuple[str, ...]

INSTALLED = "installed_plugins.json"
SERVERS = "mcpServers"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """A program that starts servers: its name for `--client`, its title, and how to make it read a changed file.

    `source` is the page that says where its files are and what they look like.
    """

    name: str
    title: str
    restart: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSection:
    """A part of a file that names servers, and its scope: the user, one project, (local) the user in one project, or a plugin."""

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
    """The facts that determine where files are: the system's name, the home folder, the working folder, the environment."""

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


EDITIONS = ("Code", "Code - Insiders")
CLINE_FILE = "cline_mcp_settings.json"

CLAUDE_CODE = McpClient(
    name="claude-code",
    title="Claude Code",
    restart="end its sessions and start it again",
    source="https://code.claude.com/docs/en/mcp",
)

CLAUDE_DESKTOP = McpClient(
    name="claude-desktop",
    title="Claude Desktop",
    restart="quit it, from its menu, and start it again",
    source="https://modelcontextprotocol.io/docs/develop/connect-local-servers",
)

CURSOR = McpClient(
    name="cursor",
    title="Cursor",
    restart="start it again, or switch the server off and on in its MCP settings",
    source="https://cursor.com/docs/context/mcp",
)

VS_CODE = McpClient(
    name="vscode",
    title="VS Code",
    restart="run “MCP: List Servers” and restart the server",
    source="https://code.visualstudio.com/docs/copilot/customization/mcp-servers",
)

CODEX = McpClient(name="codex", title="Codex", restart="begin a new session", source="https://developers.openai.com/codex/mcp")
WINDSURF = McpClient(
    name="windsurf",
    title="Windsurf",
    restart="press Refresh in its MCP settings, or start it again",
    source="https://docs.windsurf.com/windsurf/cascade/mcp",
)

CLINE = McpClient(
    name="cline",
    title="Cline",
    restart="restart the server in its list of MCP servers",
    source="https://docs.cline.bot/mcp/configuring-mcp-servers",
)

ZED = McpClient(
    name="zed",
    title="Zed",
    restart="switch the server off and on in its settings, or start it again",
    source="https://zed.dev/docs/ai/mcp",
)

GEMINI = McpClient(
    name="gemini",
    title="Gemini CLI",
    restart="begin a new session",
    source="https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
)

JUNIE = McpClient(
    name="junie",
    title="JetBrains Junie",
    restart="start the IDE again",
    source="https://www.jetbrains.com/help/junie/model-context-protocol-mcp.html",
)

JETBRAINS = McpClient(
    name="jetbrains",
    title="JetBrains AI Assistant",
    restart="start the IDE again",
    source="https://www.jetbrains.com/help/ai-assistant/mcp.html",
)

CLIENTS = {
    client.name: client
    for client in (
        CLAUDE_CODE,
        CLAUDE_DESKTOP,
        CURSOR,
        VS_CODE,
        CODEX,
        WINDSURF,
        CLINE,
        ZED,
        GEMINI,
        JUNIE,
        JETBRAINS,
    )
}


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
    for edition in EDITIONS:
        user = applications / edition / "User"
        yield _file(VS_CODE, user / "mcp.json", "user", "servers")
        for profile in sorted(user.glob("profiles/*/mcp.json")):
            yield _file(VS_CODE, profile, "user", "servers")
    codex = Path(machine.environ.get("CODEX_HOME") or home / ".codex") / "config.toml"
    yield ClientFile(client=CODEX, path=codex, sections=(_section("user", "mcp_servers"),), syntax=Syntax.TOML)
    yield from _of_more_clients(machine)
    for path, keys in _plugin_files(Path(machine.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "plugins"):
        yield ClientFile(client=CLAUDE_CODE, path=path, sections=(ServerSection(scope="plugin", keys=keys),))


def _of_more_clients(machine: Machine) -> Iterator[ClientFile]:
    home, applications = machine.home, machine.applications
    yield _file(WINDSURF, home / ".codeium" / "windsurf" / "mcp_config.json", "user", "mcpServers")
    named = machine.environ.get("CLINE_MCP_SETTINGS_PATH")
    cline = Path(named) if named else home / ".cline" / "data" / "settings" / CLINE_FILE
    yield _file(CLINE, cline, "user", "mcpServers")
    for edition in EDITIONS:
        storage = applications / edition / "User" / "globalStorage" / "saoudrizwan.claude-dev"
        yield _file(CLINE, storage / "settings" / CLINE_FILE, "user", "mcpServers")
    yield _file(ZED, _zed_folder(machine) / "settings.json", "user", "context_servers")
    yield _file(GEMINI, home / ".gemini" / "settings.json", "user", "mcpServers")
    yield _file(JUNIE, home / ".junie" / "mcp" / "mcp.json", "user", "mcpServers")


def _zed_folder(machine: Machine) -> Path:
    """Return the folder of Zed's settings, which on macOS is not that of applications with a window."""
    if machine.platform == "darwin":
        return machine.home / ".config" / "zed"
    return machine.applications / ("Zed" if machine.platform == "win32" else "zed")


def _of_project(machine: Machine) -> Iterator[ClientFile]:
    project = _project(machine)
    yield _file(CLAUDE_CODE, project / ".mcp.json", "project", "mcpServers")
    yield _file(CURSOR, project / ".cursor" / "mcp.json", "project", "mcpServers")
    yield _file(VS_CODE, project / ".vscode" / "mcp.json", "project", "servers")
    codex = project / ".codex" / "config.toml"
    yield ClientFile(client=CODEX, path=codex, sections=(_section("project", "mcp_servers"),), syntax=Syntax.TOML)
    yield _file(ZED, project / ".zed" / "settings.json", "project", "context_servers")
    yield _file(GEMINI, project / ".gemini" / "settings.json", "project", "mcpServers")
    yield _file(JUNIE, project / ".junie" / "mcp" / "mcp.json", "project", "mcpServers")
    yield _file(JETBRAINS, project / ".ai" / "mcp" / "mcp.json", "project", "mcpServers")
    of_workspace = ServerSection(scope="project", keys=("settings", "mcp", "servers"))
    for workspace in sorted(project.glob("*.code-workspace")):
        yield ClientFile(client=VS_CODE, path=workspace, sections=(of_workspace,))


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


def _plugin_files(folder: Path) -> Iterator[tuple[Path, Keys]]:
    """Find the files of the plugins that `folder`, Claude Code's for plugins, lists as installed, and the keys of their servers."""
    plugins = _object(_object(folder / INSTALLED).get("plugins"))
    installs = [install for value in plugins.values() for install in (value if isinstance(value, list) else [value])]
    roots = [Path(str(_object(install).get("installPath") or "")) for install in installs]
    for root in dict.fromkeys(root for root in roots if root.is_absolute()):
        manifest = root / ".claude-plugin" / "plugin.json"
        yield manifest, (SERVERS,)
        named = _object(manifest).get(SERVERS)
        names = [".mcp.json", *([named] if isinstance(named, str) and named.endswith(".json") else [])]
        for file in dict.fromkeys(root / name for name in names):
            if file.resolve().is_relative_to(root.resolve()):  # a plugin names its own files only
                yield file, (SERVERS,) if SERVERS in _object(file) else ()


def _object(value: Any) -> dict[str, Any]:
    """Return an object; that of the file, if `value` is a path. Anything else is an empty one."""
    if isinstance(value, Path):
        try:
            value = json.loads(value.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}

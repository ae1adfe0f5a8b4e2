"""Tests of where the clients keep their servers, on made-up machines."""

import json
from pathlib import Path

import pytest

from mcpspy.setup.clients import CLIENTS, Machine, client_files
from mcpspy.setup.plan import Aim
from tests.conftest import ROOT
from tests.setup.planning import changed

CLINE = "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
USER_FILES = {
    "linux": [
        "claude-code .claude.json",
        "claude-desktop .config/Claude/claude_desktop_config.json",
        "cursor .cursor/mcp.json",
        "vscode .config/Code/User/mcp.json",
        "vscode .config/Code - Insiders/User/mcp.json",
        "codex .codex/config.toml",
        "windsurf .codeium/windsurf/mcp_config.json",
        "cline .cline/data/settings/cline_mcp_settings.json",
        f"cline .config/Code/User/{CLINE}",
        f"cline .config/Code - Insiders/User/{CLINE}",
        "zed .config/zed/settings.json",
        "gemini .gemini/settings.json",
        "junie .junie/mcp/mcp.json",
    ],
    "darwin": [
        "claude-code .claude.json",
        "claude-desktop Library/Application Support/Claude/claude_desktop_config.json",
        "cursor .cursor/mcp.json",
        "vscode Library/Application Support/Code/User/mcp.json",
        "vscode Library/Application Support/Code - Insiders/User/mcp.json",
        "codex .codex/config.toml",
        "windsurf .codeium/windsurf/mcp_config.json",
        "cline .cline/data/settings/cline_mcp_settings.json",
        f"cline Library/Application Support/Code/User/{CLINE}",
        f"cline Library/Application Support/Code - Insiders/User/{CLINE}",
        "zed .config/zed/settings.json",
        "gemini .gemini/settings.json",
        "junie .junie/mcp/mcp.json",
    ],
    "win32": [
        "claude-code .claude.json",
        "claude-desktop AppData/Roaming/Claude/claude_desktop_config.json",
        "cursor .cursor/mcp.json",
        "vscode AppData/Roaming/Code/User/mcp.json",
        "vscode AppData/Roaming/Code - Insiders/User/mcp.json",
        "codex .codex/config.toml",
        "windsurf .codeium/windsurf/mcp_config.json",
        "cline .cline/data/settings/cline_mcp_settings.json",
        f"cline AppData/Roaming/Code/User/{CLINE}",
        f"cline AppData/Roaming/Code - Insiders/User/{CLINE}",
        "zed AppData/Roaming/Zed/settings.json",
        "gemini .gemini/settings.json",
        "junie .junie/mcp/mcp.json",
    ],
}
PROJECT_FILES = [
    "claude-code .mcp.json",
    "cursor .cursor/mcp.json",
    "vscode .vscode/mcp.json",
    "codex .codex/config.toml",
    "zed .zed/settings.json",
    "gemini .gemini/settings.json",
    "junie .junie/mcp/mcp.json",
    "jetbrains .ai/mcp/mcp.json",
]


def machine(
    home: Path, *, platform: str = "linux", folder: Path | None = None, environ: dict[str, str] | None = None
) -> Machine:
    """Somebody's machine."""
    return Machine(platform=platform, home=home, folder=folder or home, environ=environ or {})


def files(machine: Machine, below: Path, scope: str) -> list[str]:
    """McpClient and file of each configuration of a scope."""
    return [
        f"{client_file.client.name} {client_file.path.relative_to(below).as_posix()}"
        for client_file in client_files(machine)
        if client_file.sections[0].scope == scope
    ]


@pytest.mark.parametrize("platform", USER_FILES)
def test_a_users_files_are_where_each_system_has_them(platform: str, tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "project"
    assert files(machine(home, platform=platform, folder=folder), home, "user") == USER_FILES[platform]


def test_a_projects_files_are_at_its_root(tmp_path: Path) -> None:
    (tmp_path / "p" / ".git").mkdir(parents=True)
    assert files(machine(tmp_path / "home", folder=tmp_path / "p" / "a" / "b"), tmp_path / "p", "project") == PROJECT_FILES


def test_in_the_home_folder_no_file_is_named_twice(tmp_path: Path) -> None:
    paths = [client_file.path for client_file in client_files(machine(tmp_path))]
    assert len(set(paths)) == len(paths)


def test_a_file_of_the_user_stays_theirs_in_the_home_folder(tmp_path: Path) -> None:
    assert "cursor .cursor/mcp.json" in files(machine(tmp_path), tmp_path, "user")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CLAUDE_CONFIG_DIR", ".claude.json"),
        ("CODEX_HOME", "config.toml"),
        ("XDG_CONFIG_HOME", "Claude/claude_desktop_config.json"),
        ("XDG_CONFIG_HOME", "zed/settings.json"),
        ("CLINE_MCP_SETTINGS_PATH", ""),
    ],
)
def test_the_variables_of_the_clients_are_heeded(name: str, expected: str, tmp_path: Path) -> None:
    paths = [
        client_file.path for client_file in client_files(machine(tmp_path / "home", environ={name: str(tmp_path / "named")}))
    ]
    assert tmp_path / "named" / expected in paths


def test_profiles_of_vs_code_have_files_of_their_own(tmp_path: Path) -> None:
    profile = tmp_path / ".config" / "Code" / "User" / "profiles" / "1a2b" / "mcp.json"
    profile.parent.mkdir(parents=True)
    profile.touch()
    assert profile in [client_file.path for client_file in client_files(machine(tmp_path))]


def test_workspaces_of_vs_code_are_beside_the_project(tmp_path: Path) -> None:
    workspace = tmp_path / "p" / "team.code-workspace"
    workspace.parent.mkdir()
    workspace.touch()
    (file,) = [file for file in client_files(machine(tmp_path / "home", folder=tmp_path / "p")) if file.path == workspace]
    assert (file.client.name, [section.keys for section in file.sections]) == ("vscode", [("settings", "mcp", "servers")])


def plugin(home: Path, name: str, files: dict[str, object]) -> Path:
    """Install a plugin of Claude Code with these files. Return its folder."""
    root = home / ".claude" / "plugins" / "cache" / "market" / name / "1.0.0"
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(json.dumps(content))
    listed = home / ".claude" / "plugins" / "installed_plugins.json"
    plugins = json.loads(listed.read_text())["plugins"] if listed.exists() else {}
    plugins[f"{name}@market"] = [{"scope": "user", "installPath": str(root), "version": "1.0.0"}]
    listed.write_text(json.dumps({"version": 2, "plugins": plugins}))
    return root


def plugin_sections(home: Path) -> dict[str, tuple[str, ...]]:
    """Return the files of plugins that exist, below their cache, and the keys of their servers."""
    found = [file for file in client_files(machine(home)) if file.sections[0].scope == "plugin" and file.path.exists()]
    return {file.path.parts[-1]: file.sections[0].keys for file in found}


SERVER = {"command": "${CLAUDE_PLUGIN_ROOT}/server", "args": ["--config", "${CLAUDE_PLUGIN_ROOT}/config.json"]}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({".mcp.json": {"database": SERVER}}, {".mcp.json": ()}),
        ({".mcp.json": {"mcpServers": {"database": SERVER}}}, {".mcp.json": ("mcpServers",)}),
        ({".claude-plugin/plugin.json": {"name": "x", "mcpServers": {"api": SERVER}}}, {"plugin.json": ("mcpServers",)}),
        (
            {".claude-plugin/plugin.json": {"name": "x", "mcpServers": "./servers.json"}, "servers.json": {"api": SERVER}},
            {"plugin.json": ("mcpServers",), "servers.json": ()},
        ),
        (
            {
                ".claude-plugin/plugin.json": {"mcpServers": "../../../../../elsewhere.json"},
                "../../../../../elsewhere.json": {},
            },
            {"plugin.json": ("mcpServers",)},
        ),
    ],
)
def test_plugins_have_their_servers_in_each_of_their_files(
    files: dict[str, object], expected: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    plugin(tmp_path, "x", files)
    assert plugin_sections(tmp_path) == expected


@pytest.mark.parametrize("text", ["", "[]", '{"plugins": [1]}', '{"plugins": {"x": [{"installPath": "relative"}, 1, {}]}}'])
def test_an_odd_list_of_plugins_is_no_error(text: str, tmp_path: Path) -> None:
    (tmp_path / ".claude" / "plugins").mkdir(parents=True)
    (tmp_path / ".claude" / "plugins" / "installed_plugins.json").write_text(text)
    assert plugin_sections(tmp_path) == {}


@pytest.mark.parametrize(
    "files",
    [
        {".mcp.json": {"database": SERVER, "docs": {"type": "http", "url": "http://localhost:3001/mcp"}}},
        {".claude-plugin/plugin.json": {"name": "x", "mcpServers": {"database": SERVER, "docs": {"url": "http://h/mcp"}}}},
    ],
)
def test_the_servers_of_a_plugin_are_wrapped_and_unwrapped(files: dict[str, object], tmp_path: Path) -> None:
    root = plugin(tmp_path, "x", files)
    (name,) = files
    before = (root / name).read_bytes()
    (file,) = [file for file in client_files(machine(tmp_path)) if file.path == root / name]
    ports = changed(file, Aim.WRAP)
    text = (root / name).read_text()
    assert '"args": ["run", "--label", "database", "--", "${CLAUDE_PLUGIN_ROOT}/server", "--config"' in text
    assert "http://127.0.0.1:28700/mcp#mcpspy=http://" in text
    changed(file, Aim.UNWRAP, ports)
    assert (root / name).read_bytes() == before


def test_the_page_names_each_client_with_its_source() -> None:
    page = (ROOT / "docs" / "wrap.md").read_text(encoding="utf-8")
    assert [client.name for client in CLIENTS.values() if f"]({client.source})" not in page] == []
    assert [client.name for client in CLIENTS.values() if f"`{client.name}`" not in page] == []

"""Where the clients keep their servers, on made-up machines."""

from pathlib import Path

import pytest

from mcpspy.setup.clients import Machine, client_files

USER_FILES = {
    "linux": [
        "claude-code .claude.json",
        "claude-desktop .config/Claude/claude_desktop_config.json",
        "cursor .cursor/mcp.json",
        "vscode .config/Code/User/mcp.json",
        "vscode .config/Code - Insiders/User/mcp.json",
        "codex .codex/config.toml",
    ],
    "darwin": [
        "claude-code .claude.json",
        "claude-desktop Library/Application Support/Claude/claude_desktop_config.json",
        "cursor .cursor/mcp.json",
        "vscode Library/Application Support/Code/User/mcp.json",
        "vscode Library/Application Support/Code - Insiders/User/mcp.json",
        "codex .codex/config.toml",
    ],
    "win32": [
        "claude-code .claude.json",
        "claude-desktop AppData/Roaming/Claude/claude_desktop_config.json",
        "cursor .cursor/mcp.json",
        "vscode AppData/Roaming/Code/User/mcp.json",
        "vscode AppData/Roaming/Code - Insiders/User/mcp.json",
        "codex .codex/config.toml",
    ],
}
PROJECT_FILES = ["claude-code .mcp.json", "cursor .cursor/mcp.json", "vscode .vscode/mcp.json", "codex .codex/config.toml"]


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

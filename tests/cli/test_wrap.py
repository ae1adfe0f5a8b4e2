"""`mcpspy wrap` and `mcpspy unwrap`, as a user calls them, with a real client that reads the file."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Peer
from tests.deadlines import DEADLINE_S, SCENE_S


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up home folder, in which no client has a file yet."""
    folder = tmp_path / "home"
    (folder / "project" / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


def run(argv: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    """The finished process, started in the project."""
    return subprocess.run(
        argv,
        cwd=home / "project",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SCENE_S,
        check=False,
    )


def write(home: Path, name: str, text: str) -> Path:
    """A client's file."""
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


CURSOR = """{
  // mine
  "mcpServers": {
    "time": { "command": "uvx", "args": ["mcp-server-time"], },
    "docs": {"url": "http://x"}
  }
}"""
CODEX = '[mcp_servers.git]\ncommand = "uvx"\nargs = ["mcp-server-git"]\n'
LOCAL = '{"projects": {"/p": {"mcpServers": {"memory": {"command": "npx"}}}}, "mcpServers": {}}'


def states(mcpspy: list[str], home: Path, *arguments: str) -> dict[str, str]:
    """Each server and its state."""
    done = run([*mcpspy, "wrap", "--status", "--json", *arguments], home)
    return {one["server"]: one["state"] for one in json.loads(done.stdout)["servers"]}


def test_all_servers_of_all_clients_are_wrapped_and_unwrapped(mcpspy: list[str], home: Path) -> None:
    files = {
        name: write(home, name, text)
        for name, text in ((".cursor/mcp.json", CURSOR), (".codex/config.toml", CODEX), (".claude.json", LOCAL))
    }
    before = {name: file.read_bytes() for name, file in files.items()}
    assert run([*mcpspy, "wrap", "--all"], home).returncode == 0
    assert states(mcpspy, home) == {"memory": "wrapped", "time": "wrapped", "docs": "http", "git": "wrapped"}
    assert run([*mcpspy, "unwrap", "--all"], home).returncode == 0
    assert {name: file.read_bytes() for name, file in files.items()} == before


def test_a_real_client_starts_what_was_wrapped_and_its_capture_is_there(
    mcpspy: list[str], home: Path, peer: Peer, store: Path
) -> None:
    command, *args = peer("pyserver.py")
    entry = {"command": command, "args": args, "env": {"MCPSPY_HOME": str(store)}}
    file = write(home, "project/.mcp.json", json.dumps({"mcpServers": {"measured": entry}}, indent=3) + "\n")
    before = file.read_bytes()
    client = [*peer("configclient.py"), str(file)]
    direct = run(client, home)
    run([*mcpspy, "wrap", "--yes"], home)
    through = run(client, home)
    assert (through.returncode, through.stdout) == (0, direct.stdout)
    assert "tools/list" in run([*mcpspy, "show", "measured"], home).stdout
    run([*mcpspy, "unwrap", "--yes"], home)
    assert file.read_bytes() == before


def test_what_is_wrapped_starts_without_a_path(mcpspy: list[str], home: Path, store: Path) -> None:
    file = write(home, ".cursor/mcp.json", json.dumps({"mcpServers": {"x": {"command": "/bin/echo", "args": ["hello"]}}}))
    run([*mcpspy, "wrap", "--yes"], home)
    entry = json.loads(file.read_text())["mcpServers"]["x"]
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        env={"HOME": str(home)},
        capture_output=True,
        cwd="/",
        timeout=DEADLINE_S,
        check=False,
    )
    assert (os.path.isabs(entry["command"]), done.stdout) == (True, b"hello\n")


def test_a_dry_run_changes_nothing_and_says_what_would_change(mcpspy: list[str], home: Path) -> None:
    file = write(home, ".codex/config.toml", CODEX)
    done = run([*mcpspy, "wrap", "--dry-run"], home)
    assert file.read_text() == CODEX
    assert "    - uvx mcp-server-git\n" in done.stdout
    assert "mcpspy run --label git -- uvx mcp-server-git\n" in done.stdout


def test_only_the_server_that_was_named_is_wrapped(mcpspy: list[str], home: Path) -> None:
    write(home, ".cursor/mcp.json", CURSOR)
    write(home, ".codex/config.toml", CODEX)
    run([*mcpspy, "wrap", "--server", "gi*"], home)
    assert states(mcpspy, home) == {"time": "plain", "docs": "http", "git": "wrapped"}


def test_only_the_client_that_was_named_is_looked_at(mcpspy: list[str], home: Path) -> None:
    write(home, ".cursor/mcp.json", CURSOR)
    write(home, ".codex/config.toml", CODEX)
    assert states(mcpspy, home, "--client", "codex") == {"git": "plain"}


def test_a_server_that_is_nowhere_is_an_error(mcpspy: list[str], home: Path) -> None:
    done = run([*mcpspy, "wrap", "--server", "nobody"], home)
    assert (done.returncode, "nobody" in done.stderr) == (2, True)


def test_a_file_that_cannot_be_read_is_said_and_the_others_are_changed(mcpspy: list[str], home: Path) -> None:
    broken = write(home, ".cursor/mcp.json", '{"mcpServers": {')
    write(home, ".codex/config.toml", CODEX)
    done = run([*mcpspy, "wrap", "--yes"], home)
    assert (done.returncode, broken.read_text()) == (2, '{"mcpServers": {')
    assert f"{broken}: cannot be read: a key or }} is missing (line 1, column 17)" in done.stderr
    assert states(mcpspy, home, "--client", "codex") == {"git": "wrapped"}


def test_a_copy_is_kept_and_the_client_to_restart_is_named(mcpspy: list[str], home: Path, store: Path) -> None:
    write(home, ".codex/config.toml", CODEX)
    done = run([*mcpspy, "wrap", "--yes"], home)
    assert [file.read_text() for file in (store / "backups").iterdir()] == [CODEX]
    assert "Codex: begin a new session." in done.stderr


def test_secrets_in_arguments_are_not_printed(mcpspy: list[str], home: Path) -> None:
    write(home, ".claude.json", '{"mcpServers": {"x": {"command": "npx", "args": ["--api-key", "sk-very-secret-1234"]}}}')
    done = run([*mcpspy, "wrap", "--dry-run"], home)
    assert "sk-very-secret" not in done.stdout + done.stderr


def test_a_server_whose_mcpspy_is_gone_is_said_and_mended(mcpspy: list[str], home: Path) -> None:
    text = '{"mcpServers": {"x": {"command": "/gone/bin/mcpspy", "args": ["run", "--label", "x", "--", "npx", "-y"]}}}'
    file = write(home, ".cursor/mcp.json", text)
    assert "no longer there" in run([*mcpspy, "wrap", "--status"], home).stdout
    run([*mcpspy, "wrap", "--yes"], home)
    entry = json.loads(file.read_text())["mcpServers"]["x"]
    assert (entry["command"] != "/gone/bin/mcpspy", entry["args"][-4:]) == (True, ["x", "--", "npx", "-y"])


def test_a_virtual_environment_without_a_script_is_started_by_its_python(home: Path, tmp_path: Path) -> None:
    script = "import sys; sys.executable = sys.argv[1]; from mcpspy.setup.program import program; print(program())"
    done = run([sys.executable, "-c", script, str(tmp_path / "bin" / "python")], home)
    assert done.stdout == f"['{tmp_path / 'bin' / 'python'}', '-P', '-m', 'mcpspy']\n"


def test_a_terminal_is_asked_and_no_means_no(mcpspy: list[str], home: Path) -> None:
    file = write(home, ".codex/config.toml", CODEX)
    script = shutil.which("script")
    if script is None:
        pytest.skip("the program script is not installed")
    argv = [script, "-qec", " ".join([*mcpspy, "wrap"]), "/dev/null"]
    done = subprocess.run(
        argv,
        cwd=home / "project",
        input=b"n\n",
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
        env={**os.environ, "TERM": "dumb"},
    )
    assert (b"Change " in done.stdout, file.read_text()) == (True, CODEX)

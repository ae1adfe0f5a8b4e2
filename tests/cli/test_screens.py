"""The screens of the captures in captures/, 80, 120 and 200 columns wide, compared with files.

`MCPSPY_WRITE_GOLDEN=1 pytest tests/cli/test_screens.py` writes the files anew.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.systemctl import Systemctl
from tests.cli.terminal import on_terminal, run
from tests.conftest import ROOT
from tests.views.golden import same_as_golden

WIDTHS = (80, 120, 200)
AGENT = ["captures/agent-model.mcpspy", "captures/agent-weather.mcpspy"]
SCREENS = {
    "show-time": ["show", "captures/time.mcpspy"],
    "show-agent": ["show", *AGENT],
    "show-streamable": ["show", "captures/streamable.mcpspy"],
    "show-channels": ["show", "captures/channels.mcpspy"],
    "call-channels": ["show", "captures/channels.mcpspy:4"],
    "stats-agent": ["show", "--stats", *AGENT],
    "check-agent": ["check", *AGENT],
    "check-channels": ["check", "captures/channels.mcpspy"],
}
"""A tool error with a log; an agent with its model and a server; requests of a server over HTTP; a server of its own kind."""

LISTED = ("time", "git", "refused", "agent-model", "agent-weather", "channels")


@pytest.fixture(autouse=True)
def short_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in the folder of the project."""
    monkeypatch.chdir(ROOT)


def assert_looks_as_it_did(name: str, *words: str, columns: int, made_up: tuple[str, str] = ("", "")) -> None:
    """Compare a screen with its file, where `made_up` of the two paths is written for the other."""
    done = run(*words, COLUMNS=str(columns))
    text = re.sub(r"\b28\d\d\d\b", "28700", (done.stdout + done.stderr).replace(*made_up))
    same_as_golden(f"screen-{name}-{columns}", [[(line, "")] for line in text.splitlines()])


@pytest.mark.grid
@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", SCREENS)
def test_the_screens_of_captures_look_as_they_did(name: str, columns: int) -> None:
    assert_looks_as_it_did(name, *SCREENS[name], columns=columns)


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_list_of_recordings_looks_as_it_did(columns: int, store: Path) -> None:
    (store / "captures").mkdir(parents=True, mode=0o700)
    for name in LISTED:
        shutil.copy(ROOT / "captures" / f"{name}.mcpspy", store / "captures")
    assert_looks_as_it_did("list", "list", columns=columns)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A home folder with two clients, whose path is as long on every machine."""
    Systemctl(tmp_path / "systemctl", monkeypatch)
    with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as folder:
        gone = {"command": "/opt/mcpspy/bin/mcpspy", "args": ["run", "--label", "time", "--", "mcp-server-time"]}
        for file, servers in {
            ".cursor/mcp.json": {"time": gone, "docs": {"url": "http://localhost:3001/mcp"}},
            ".gemini/settings.json": {"git": {"command": "mcp-server-git", "args": ["-r", "."]}},
        }.items():
            (Path(folder) / file).parent.mkdir()
            (Path(folder) / file).write_text(json.dumps({"mcpServers": servers}))
        monkeypatch.setenv("HOME", folder)
        monkeypatch.setenv("MCPSPY_HOME", f"{folder}/.mcpspy")
        monkeypatch.chdir(folder)
        yield folder


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_status_of_servers_looks_as_it_did(columns: int, home: str) -> None:
    assert run("wrap", "--yes", "--server", "docs").returncode == 0
    assert_looks_as_it_did("status", "wrap", "--status", columns=columns, made_up=(home, "/home/someone"))


def test_a_terminal_gets_the_same_with_colours_and_commands_to_go_on(short_paths: None) -> None:
    with on_terminal(*SCREENS["show-time"]) as running:
        running.rest()
    text = run(*SCREENS["show-time"], COLUMNS="80").stdout
    assert running.words.startswith(text)
    assert "\x1b[31mtool error" in running.text
    assert "mcpspy show captures/time.mcpspy:6" in running.words.removeprefix(text)

"""A home that an mcpspy of November 2026 wrapped, before `places.json` was called `reserved_ports.json`: it is unwrapped as it was.

`tests/setup/old_home` has the files before and after that. They name the folder /home/ada, which becomes the test's.
"""

import json
import os
from pathlib import Path

import pytest

from mcpspy.setup.ports import read_reserved_ports
from tests.cli.terminal import run
from tests.conftest import ROOT

OLD_HOME = ROOT / "tests" / "setup" / "old_home"
NAMED_HOME = "/home/ada"


def files(folder: Path) -> dict[str, str]:
    """Return the text of each file below, by its path."""
    return {file.relative_to(folder).as_posix(): file.read_text("utf-8") for file in folder.rglob("*") if file.is_file()}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in files(OLD_HOME / "wrapped").items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace(NAMED_HOME, str(tmp_path)), "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MCPSPY_HOME")
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def clients_files(home: Path) -> dict[str, str]:
    names = files(OLD_HOME / "before")
    return {name: (home / name).read_text("utf-8") for name in names}


def test_the_status_knows_each_server_and_its_port() -> None:
    servers = json.loads(run("wrap", "--status", "--json").stdout)["servers"]
    assert {server["state"] for server in servers} == {"wrapped"}
    assert {server["server"]: (server["port"], server["missing"]) for server in servers if "port" in server} == {
        "search": (28700, False),
        "tickets": (28701, False),
        "login": (28702, False),
        "docs": (28703, False),
    }


def test_unwrap_gives_every_byte_back(home: Path) -> None:
    done = run("unwrap", "--yes")
    assert (done.returncode, clients_files(home)) == (0, files(OLD_HOME / "before"))


def test_ports_that_change_move_to_the_file_of_now_and_the_others_stay(home: Path) -> None:
    before = read_reserved_ports(home / ".mcpspy").by_port
    assert run("unwrap", "--server", "docs", "--yes").returncode == 0
    assert sorted(name for name in os.listdir(home / ".mcpspy") if name.endswith(".json")) == ["reserved_ports.json"]
    now = read_reserved_ports(home / ".mcpspy").by_port
    assert now == {port: reserved for port, reserved in before.items() if reserved.label != "docs"}
    assert run("unwrap", "--yes").returncode == 0
    assert clients_files(home) == files(OLD_HOME / "before")


def test_wrapping_again_changes_no_url(home: Path) -> None:
    before = clients_files(home)
    assert run("wrap", "--yes", "--oauth").returncode == 0
    urls = {name: [line for line in text.splitlines() if "http" in line] for name, text in before.items()}
    assert {name: [line for line in text.splitlines() if "http" in line] for name, text in clients_files(home).items()} == urls

"""Clients on both SDKs that read a configuration file which `mcpspy wrap` has changed: what they start and call is recorded.

A server that a client starts gets the few variables that the SDK hands on: `MCPSPY_HOME` is none of them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpspy.setup import ports
from mcpspy.setup.wrapping import PORTS
from tests.cli.terminal import run
from tests.conftest import NPM_MODULES, NPM_SCRIPTS, NpmProgram, Peer
from tests.deadlines import DEADLINE_S, SCENE_S


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up home folder, with the store in it."""
    monkeypatch.delenv("MCPSPY_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    begin = os.getpid() % (len(PORTS) // 10) * 10  # other processes run such tests at the same time
    monkeypatch.setattr(ports, "PORTS", PORTS[begin : begin + 10])
    monkeypatch.setenv("SPY_PORTS", f"{begin}:{begin + 10}")
    return tmp_path


@contextmanager
def running(argv: list[str], lines: int = 1) -> Iterator[str]:
    """A program, once it has printed so many lines; the last of them."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield [process.stdout.readline() for _ in range(lines)][-1].strip()
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE_S)


def everything_is_recorded(client: list[str], peer: Peer, home: Path) -> None:
    """Wrap a server of each transport, have the client use them, look at the captures, unwrap."""
    command, *script = peer("pyserver.py")
    with running([command, *script, "http", "0"]) as streamable, running([command, *script, "sse", "0"]) as events:
        servers = {
            "started": {"command": command, "args": [*script, "stdio"]},
            "streamable": {"type": "http", "url": f"http://127.0.0.1:{streamable}/mcp"},
            "events": {"type": "sse", "url": f"http://127.0.0.1:{events}/sse"},
        }
        file = home / ".mcp.json"
        file.write_text(json.dumps({"mcpServers": servers}, indent=3) + "\n")
        before = file.read_bytes()
        assert run("wrap", "--yes", "--without-service").returncode == 0
        with running([sys.executable, "-m", "mcpspy", "proxy", "--all"], lines=2):
            done = subprocess.run([*client, str(file)], capture_output=True, text=True, timeout=SCENE_S, check=True)
    assert [json.loads(line)["tools"] for line in done.stdout.splitlines()] == [["add", "slow", "greet"]] * 3
    for label in servers:
        assert "tools/list" in run("show", label).stdout
    assert run("unwrap", "--yes").returncode == 0
    assert file.read_bytes() == before


def test_what_a_client_on_the_python_sdk_uses_is_recorded(peer: Peer, home: Path) -> None:
    everything_is_recorded(peer("configclient.py"), peer, home)


def test_what_a_client_on_the_typescript_sdk_uses_is_recorded(npm_program: NpmProgram, peer: Peer, home: Path) -> None:
    node = npm_program("mcp-inspector")[0]  # which brings the SDK
    everything_is_recorded([node, str(NPM_SCRIPTS / "config_client.mjs"), str(NPM_MODULES)], peer, home)


def test_what_a_client_starts_for_itself_is_mcpspy(peer: Peer, home: Path) -> None:
    file = home / ".claude.json"
    file.write_text('{"numStartups": 1}')
    assert run("wrap", "--self", "--yes", PYTHONPATH="").returncode == 0
    done = subprocess.run([*peer("configclient.py"), str(file)], capture_output=True, text=True, timeout=SCENE_S, check=True)
    assert "findings" in json.loads(done.stdout)["tools"]
    assert run("unwrap", "--self", "--yes").returncode == 0
    assert file.read_text() == '{"numStartups": 1}'

"""Tests of how real clients end a server: they close stdin, wait 2 s, send SIGTERM, wait 2 s, and kill. No process remains."""

import signal
from pathlib import Path

import pytest

from mcpspy.records import Record
from tests.conftest import NpmProgram
from tests.deadlines import eventually
from tests.interop.playing import Playing, Scene, escalations, exits, is_alive, pids, stored, tap
from tests.interop.scenes import INSPECTOR, NPM, PYSERVER, STUBBORN, steps

POLITE = Scene(client=steps("legacy", {"list": "tools"}), server=PYSERVER)
PYTHON_CLIENT = Scene(client=steps("legacy", {"list": "tools"}), server=STUBBORN)
NODE_CLIENT = Scene(client=INSPECTOR, server=STUBBORN, after=("--method", "tools/list"), eats_dashes=True)

KILLED_S = 10.0
"""A process that was killed is gone by then; a stubborn one that nobody kills lives for 30 s."""

KILLED = ([signal.SIGKILL.name], [None])  # on a busy machine mcpspy has to leave before it is told the signal


def nothing_left(scene: Scene, folder: Path) -> list[Record]:
    """Return the capture of a scene, once no process is alive. What was killed may need a moment on a busy machine."""
    playing = Playing(scene, folder, tap(scene))
    played = playing.end()
    assert played.status == 0, played.errors
    records = stored(folder)
    log = folder / "stubborn.log"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    grandchildren = [int(line.split()[-1]) for line in lines if "grandchild" in line]
    started = pids(records) + grandchildren
    eventually(lambda: not any(map(is_alive, started)), f"the end of {started}", KILLED_S)
    return records


def test_a_server_that_ends_at_the_end_of_its_input_is_left_to_do_so(tmp_path: Path) -> None:
    records = nothing_left(POLITE, tmp_path / "run")
    assert [exit.code for exit in exits(records)] == [0]
    assert escalations(records) == []


def test_a_python_client_leaves_nothing_of_a_stubborn_server(tmp_path: Path) -> None:
    records = nothing_left(PYTHON_CLIENT, tmp_path / "run")
    assert [exit.signal for exit in exits(records)] in KILLED


def test_a_node_client_leaves_nothing_of_a_stubborn_server(tmp_path: Path, npm_program: NpmProgram) -> None:
    npm_program("mcp-inspector")
    records = nothing_left(NODE_CLIENT, tmp_path / "run")
    assert [exit.signal for exit in exits(records)] in KILLED


@pytest.mark.parametrize("name", NPM)
def test_nothing_is_left_of_npm_programs(name: str, tmp_path: Path, npm_program: NpmProgram) -> None:
    npm_program("mcp-inspector")
    nothing_left(NPM[name], tmp_path / "run")

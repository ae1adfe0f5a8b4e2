"""Tests of how real clients end a server: they close stdin, wait 2 s, send SIGTERM, wait 2 s, and kill. No process remains."""

import signal
from pathlib import Path

import pytest

from mcpspy.records import Record
from tests.conftest import NpmProgram
from tests.interop.playing import Playing, Scene, escalations, exits, is_alive, pids, stored, tap
from tests.interop.scenes import INSPECTOR, NPM, PYSERVER, STUBBORN, steps

POLITE = Scene(client=steps("legacy", {"list": "tools"}), server=PYSERVER)
PYTHON_CLIENT = Scene(client=steps("legacy", {"list": "tools"}), server=STUBBORN)
NODE_CLIENT = Scene(client=INSPECTOR, server=STUBBORN, after=("--method", "tools/list"), eats_dashes=True)


def alive_after(scene: Scene, folder: Path) -> tuple[list[Record], list[int]]:
    """Return the capture of a scene, and the processes that are alive when its client has gone."""
    playing = Playing(scene, folder, tap(scene))
    played = playing.end()
    assert played.status == 0, played.errors
    records = stored(folder)
    log = folder / "stubborn.log"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    grandchildren = [int(line.split()[-1]) for line in lines if "grandchild" in line]
    return records, [pid for pid in pids(records) + grandchildren if is_alive(pid)]


def test_a_server_that_ends_at_the_end_of_its_input_is_left_to_do_so(tmp_path: Path) -> None:
    records, alive = alive_after(POLITE, tmp_path / "run")
    assert alive == []
    assert [exit.code for exit in exits(records)] == [0]
    assert escalations(records) == []


def test_a_python_client_leaves_nothing_of_a_stubborn_server(tmp_path: Path) -> None:
    records, alive = alive_after(PYTHON_CLIENT, tmp_path / "run")
    assert alive == []
    assert [exit.signal for exit in exits(records)] == [signal.SIGKILL.name]


def test_a_node_client_leaves_nothing_of_a_stubborn_server(tmp_path: Path, npm_program: NpmProgram) -> None:
    npm_program("mcp-inspector")
    records, alive = alive_after(NODE_CLIENT, tmp_path / "run")
    assert alive == []
    assert [exit.signal for exit in exits(records)] == [signal.SIGKILL.name]


@pytest.mark.parametrize("name", NPM)
def test_nothing_is_left_of_npm_programs(name: str, tmp_path: Path, npm_program: NpmProgram) -> None:
    npm_program("mcp-inspector")
    assert alive_after(NPM[name], tmp_path / "run")[1] == []

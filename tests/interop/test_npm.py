"""mcpspy between npm's programs and a client: servers on the TypeScript SDK, and its client, which gives servers UNIX sockets."""

import json
from pathlib import Path

import pytest

from tests.conftest import NpmProgram
from tests.interop.playing import Playing, play_logged, tap
from tests.interop.scenes import NPM

pytestmark = pytest.mark.parametrize("name", NPM)


@pytest.fixture(autouse=True)
def _installed(npm_program: NpmProgram) -> None:
    """Scenes name programs as users do; here they are looked for, so that tests are skipped where there are none."""
    npm_program("mcp-inspector")


def test_the_client_sees_the_same_with_mcpspy_as_without(name: str, tmp_path: Path) -> None:
    scene = NPM[name]
    runs = Playing(scene, tmp_path / "direct"), Playing(scene, tmp_path / "tapped", tap(scene))
    direct, tapped = (run.end() for run in runs)
    assert direct.status == 0, direct.errors
    assert tapped == direct


def test_the_capture_holds_the_bytes_of_the_wire(name: str, tmp_path: Path) -> None:
    scene = NPM[name]
    played, client_end, capture, server_end = play_logged(scene, tmp_path / "logged")
    assert played.status == 0, played.errors
    assert capture == client_end
    assert capture == server_end
    assert json.loads(capture.stdin.splitlines()[0])["method"] == scene.opening

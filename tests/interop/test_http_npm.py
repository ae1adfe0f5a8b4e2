"""mcpspy between npm's programs over HTTP: the server and the client on the TypeScript SDK, and the official Python ones."""

import json
from pathlib import Path

import pytest

from mcpspy.records import CLIENT
from tests.conftest import NpmProgram
from tests.interop.http_scenes import NPM
from tests.interop.serving import play_both, play_logged
from tests.interop.wires import disagreements, recorded

pytestmark = pytest.mark.parametrize("name", NPM)


@pytest.fixture(autouse=True)
def _installed(npm_program: NpmProgram) -> None:
    """Scenes name programs as users do; here they are looked for, so that tests are skipped where there are none."""
    npm_program("mcp-inspector")


def test_the_client_sees_the_same_with_mcpspy_as_without(name: str, tmp_path: Path) -> None:
    direct, tapped = play_both(NPM[name], tmp_path)
    assert direct.status == 0, direct.errors
    assert tapped == direct


def test_the_capture_holds_the_bytes_of_the_wire(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "logged"
    played, records = play_logged(NPM[name], folder)
    assert played.status == 0, played.errors
    assert disagreements(folder, records) == []
    posted = [json.loads(message.body) for one in recorded(records, CLIENT) for message in one.requests if message.body]
    assert NPM[name].opening in {message["method"] for message in posted[:1]}

"""mcpspy between npm's programs over HTTP: the server and the client on the TypeScript SDK, and the official Python ones."""

from pathlib import Path

import pytest

from tests.conftest import NpmProgram
from tests.interop.faults import faults
from tests.interop.http_scenes import NPM
from tests.interop.serving import play_both, play_tapped
from tests.interop.wires import disagreements, opening


@pytest.mark.parametrize("name", NPM)
def test_mcpspy_changes_nothing_and_misses_nothing(
    name: str, tmp_path: Path, npm_program: NpmProgram, subtests: pytest.Subtests
) -> None:
    npm_program("mcp-inspector")  # scenes name programs as users do; here one is looked for
    run = play_both(NPM[name], tmp_path / "run")
    with subtests.test("the scene goes as it should"):
        assert run.direct.status == 0, run.direct.errors
        assert opening(run.records) == NPM[name].opening
    with subtests.test("the client sees the same with mcpspy as without"):
        assert run.tapped == run.direct
    with subtests.test("nothing is found but what the scene does on purpose"):
        assert faults(run.records) == []
    with subtests.test("the capture holds the bytes of the wire"):
        assert disagreements(run.wires, run.records) == []
    with subtests.test("what is redacted on the disk passes as it is"):
        assert play_tapped(NPM[name], tmp_path / "redacted")[0] == run.direct

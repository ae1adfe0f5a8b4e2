"""mcpspy between npm's programs and a client: servers on the TypeScript SDK, and its client, which gives servers UNIX sockets."""

from pathlib import Path

import pytest

from tests.conftest import NpmProgram
from tests.interop.faults import faults
from tests.interop.playing import opening, play, recorded
from tests.interop.scenes import NPM


@pytest.mark.parametrize("name", NPM)
def test_mcpspy_changes_nothing_and_misses_nothing(
    name: str, tmp_path: Path, npm_program: NpmProgram, subtests: pytest.Subtests
) -> None:
    npm_program("mcp-inspector")  # scenes name programs as users do; here one is looked for
    run = play(NPM[name], tmp_path)
    capture = recorded(run.records)
    with subtests.test("the scene goes as it should"):
        assert run.direct.status == 0, run.direct.errors
        assert opening(capture) == NPM[name].opening
    with subtests.test("the client sees the same with mcpspy as without"):
        assert run.tapped == run.direct
    with subtests.test("nothing is found but what the scene does on purpose"):
        assert faults(run.records) == []
    with subtests.test("the capture holds the bytes of the wire, at the client's end and at the server's"):
        assert capture == run.client_end
        assert capture == run.server_end

"""mcpspy between HTTP clients and servers on the official Python SDK, in both eras: neither can tell that it is there."""

from pathlib import Path

import pytest

from tests.interop.faults import faults
from tests.interop.http_scenes import PLAYED, PYTHON, REDACTED
from tests.interop.serving import play_both, play_tapped
from tests.interop.wires import disagreements, opening


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize("name", PLAYED)
def test_mcpspy_changes_nothing_and_misses_nothing(name: str, tmp_path: Path, subtests: pytest.Subtests) -> None:
    run = play_both(PYTHON[name], tmp_path / "run")
    with subtests.test("the scene goes as it should"):
        assert run.direct.status == 0, run.direct.errors
        assert opening(run.records) == PYTHON[name].opening
    with subtests.test("the client sees the same with mcpspy as without"):
        assert run.tapped == run.direct
    with subtests.test("nothing is found but what the scene does on purpose"):
        assert faults(run.records) == []
    with subtests.test("the capture holds the bytes of the wire"):
        assert disagreements(run.wires, run.records) == []
    if name in REDACTED:
        with subtests.test("what is redacted on the disk passes as it is"):
            assert play_tapped(PYTHON[name], tmp_path / "redacted")[0] == run.direct

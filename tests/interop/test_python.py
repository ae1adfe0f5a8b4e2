"""mcpspy between clients and servers on the official Python SDK, in both eras: neither can tell that it is there."""

from pathlib import Path

import pytest

from tests.interop.faults import faults
from tests.interop.playing import escalations, opening, play, recorded
from tests.interop.scenes import PYTHON


@pytest.mark.parametrize("name", PYTHON)
def test_mcpspy_changes_nothing_and_misses_nothing(name: str, tmp_path: Path, subtests: pytest.Subtests) -> None:
    run = play(PYTHON[name], tmp_path)
    capture = recorded(run.records)
    with subtests.test("the scene goes as it should"):
        assert run.direct.status == 0, run.direct.errors
        assert opening(capture) == PYTHON[name].opening
    with subtests.test("the client sees the same with mcpspy as without"):
        assert run.tapped == run.direct
    with subtests.test("mcpspy has no reason to do anything but forward"):
        assert escalations(run.records) == []
    with subtests.test("nothing is found but what the scene does on purpose"):
        assert faults(run.records) == []
    with subtests.test("the capture holds the bytes of the wire, at the client's end and at the server's"):
        assert capture == run.client_end
        assert capture == run.server_end

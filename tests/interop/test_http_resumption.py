"""A call whose stream breaks off, and is taken up again with `Last-Event-ID`, with mcpspy between: nothing is lost or doubled."""

import json
import sys
from pathlib import Path

import pytest

from captures.serving import PEERS
from mcpspy import Exchange, transcribe
from tests.conftest import NpmProgram
from tests.interop.http_scenes import everything
from tests.interop.serving import play_both, play_logged
from tests.interop.wires import disagreements

TOOL = "trigger-long-running-operation"
ARGUMENTS = json.dumps({"duration": 1.2, "steps": 4})
SCENE = everything("streamableHttp", "/mcp", (sys.executable, str(PEERS / "resumeclient.py"), "URL", TOOL, ARGUMENTS))


@pytest.fixture(autouse=True)
def _installed(npm_program: NpmProgram) -> None:
    npm_program("mcp-server-everything")


def test_a_call_is_taken_up_again_as_without_mcpspy(tmp_path: Path) -> None:
    direct, tapped = play_both(SCENE, tmp_path)
    assert direct.status == 0, direct.errors
    assert "GET 200" in direct.output
    assert "DELETE 200" in direct.output
    assert tapped == direct


def test_an_answer_that_came_on_a_resumed_stream_belongs_to_the_call(tmp_path: Path) -> None:
    played, records = play_logged(SCENE, tmp_path / "logged")
    assert played.status == 0, played.errors
    assert disagreements(tmp_path / "logged", records) == []
    (call,) = (row for row in transcribe(records).rows if isinstance(row, Exchange) and row.request.method == "tools/call")
    assert call.response is not None
    assert [one.method for one in call.notifications] == ["notifications/progress"] * 4

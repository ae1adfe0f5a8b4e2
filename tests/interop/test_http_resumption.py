"""A call whose stream breaks off, and is taken up again with `Last-Event-ID`, with mcpspy between: nothing is lost or doubled."""

import json
import sys
from pathlib import Path

import pytest

from captures.serving import PEERS
from mcpspy import Exchange, transcribe
from tests.conftest import NpmProgram
from tests.interop.faults import faults
from tests.interop.http_scenes import everything
from tests.interop.serving import play_both
from tests.interop.wires import disagreements

TOOL = "trigger-long-running-operation"
ARGUMENTS = json.dumps({"duration": 1.2, "steps": 4})
SCENE = everything("streamableHttp", "/mcp", (sys.executable, str(PEERS / "resumeclient.py"), "URL", TOOL, ARGUMENTS))


def test_a_call_is_taken_up_again_as_without_mcpspy(tmp_path: Path, npm_program: NpmProgram, subtests: pytest.Subtests) -> None:
    npm_program("mcp-server-everything")
    run = play_both(SCENE, tmp_path / "run")
    with subtests.test("the scene goes as it should"):
        assert run.direct.status == 0, run.direct.errors
        assert "GET 200" in run.direct.output
        assert "DELETE 200" in run.direct.output
    with subtests.test("the client sees the same with mcpspy as without"):
        assert run.tapped == run.direct
    with subtests.test("the capture holds the bytes of the wire"):
        assert disagreements(run.wires, run.records) == []
    with subtests.test("an answer that came on the resumed stream belongs to the call"):
        rows = transcribe(run.records).rows
        (call,) = (row for row in rows if isinstance(row, Exchange) and row.request.method == "tools/call")
        assert call.response is not None
        assert [notification.method for notification in call.notifications] == ["notifications/progress"] * 4
    with subtests.test("nothing is found"):
        assert faults(run.records) == []

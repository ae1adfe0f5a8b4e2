"""Debug logs that the official Python SDK writes, in both of its generations, make the calls of the taps' captures."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from captures.serving import port, started, tapped
from mcpspy import open as open_captures
from mcpspy.imports.log_messages import messages_in
from mcpspy.transcript.model import Transcript
from tests.cli.terminal import run
from tests.conftest import PEERS, BuiltProgram
from tests.deadlines import DEADLINE_S

LOGGING = """\
import logging, os, runpy, sys
logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(name)s %(levelname)s %(message)s", filename=os.environ["LOG"])
sys.argv = sys.argv[1:]
sys.modules["prepared"] = sys  # the copy of another process would not log
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("generation", ["1", "2"])
@pytest.mark.parametrize("path", ["/mcp", "/sse"])
def test_a_debug_log_makes_the_calls_of_the_taps_capture(
    generation: str, path: str, tmp_path: Path, built: BuiltProgram
) -> None:
    python = sys.executable if generation == "2" else built("mcp1/bin/python")
    log, capture, home = tmp_path / "client.log", tmp_path / "tap.mcpspy", tmp_path / "home"
    home.mkdir()
    (home / "logging_client.py").write_text(LOGGING)
    server = ["python", str(PEERS / "sdkserver.py"), "mcp", "sse" if path == "/sse" else "http"]
    with ExitStack() as running:
        said = running.enter_context(started(server, tmp_path, home / "server.log", {}))
        url = running.enter_context(tapped(f"http://127.0.0.1:{port(said)}{path}", tmp_path, "--capture", str(capture)))
        words = [python, str(home / "logging_client.py"), str(PEERS / "sdkclient.py"), "mcp", url]
        done = subprocess.run(
            words, env={**os.environ, "LOG": str(log)}, capture_output=True, timeout=DEADLINE_S, check=False, text=True
        )
        assert done.returncode == 0, done.stderr
    made = run("import", str(log), "-o", str(tmp_path / "made.mcpspy")).stdout.strip()
    logged, recorded = open_captures(made), open_captures(capture)
    if (generation, path) == ("2", "/mcp"):  # it speaks the newest revision, in which answers are JSON, and does not log those
        assert [row.request.id for row in logged.exchanges] == [row.request.id for row in recorded.exchanges]
        assert {finding.rule for finding in logged.findings} == {"recording-gap"}
    else:
        assert calls(logged) == calls(recorded)


def calls(transcript: Transcript) -> list[tuple[object, ...]]:
    return sorted((row.sender, row.method, row.request.id or "", row.outcome.value) for row in transcript.exchanges)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("jsonrpc='2.0' id=1 method='ping' params=None", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        ("jsonrpc='2.0' id='a' result={'x': [' id=2', None]}", {"jsonrpc": "2.0", "id": "a", "result": {"x": [" id=2", None]}}),
        (
            "jsonrpc='2.0' id=1 error=ErrorData(code=-32602, message=\"it's (\", data=None)",
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "it's ("}},
        ),
    ],
)
def test_messages_without_the_name_of_their_class_are_read(text: str, value: object) -> None:
    (message,) = messages_in(f"2026-01-02 DEBUG SSE message: {text}")
    assert (json.loads(message.text), message.before) == (value, "2026-01-02 DEBUG SSE message: ")

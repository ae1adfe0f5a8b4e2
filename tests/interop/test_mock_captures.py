"""Each capture of captures/ whose session ended well, served by `mcpspy mock` to the client that recorded it, over each transport.

The client does what it did; what it gets is held against the recording: the same calls, the same answers, the same progress, the same
questions. What is left out is named in matrix.py, with its reason.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from captures.runs import RUNS, captures_of
from captures.serving import environment
from mcpspy.capture.file.reader import read
from mcpspy.transcript.model import Outcome, Transcript
from mcpspy.transcript.transcribe import transcribe
from tests.conftest import NpmProgram
from tests.deadlines import SCENE_S
from tests.interop.matrix import (
    CAPTURES,
    HTTP_STORIES,
    LEFT_OUT,
    SERVED,
    TRANSPORTS,
    UNSAID,
    asks_together,
    calls,
    client,
    mocking,
    news,
    placed,
    questions,
    transactions,
)
from tests.tiers import current_tier  # fmt: skip


def play(words: list[str], folder: Path) -> str:
    """Run a client that has to succeed, and return its output."""
    done = subprocess.run(
        words, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=SCENE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def played(name: str, transport: str, folder: Path) -> tuple[Transcript, Transcript]:
    """Return the capture of a story, and the capture of its client with the mock."""
    with placed(name, folder) as capture:
        if transport == "stdio":
            mock = [sys.executable, "-m", "mcpspy", "mock", str(capture), "--capture", str(folder / "own.mcpspy")]
            printed = play(client(name, transport, folder, mock), folder)
        else:
            with mocking(capture, transport, folder) as url:
                printed = play(client(name, transport, folder, [url]), folder)
    assert "result" in printed or (name == "oauth" and printed == "me\n")
    return transcribe(read(str(capture))), transcribe(read(str(folder / "own.mcpspy")))


CELLS = [(name, transport) for name in SERVED for transport in TRANSPORTS]
SAMPLE = [
    *((name, "stdio") for name in SERVED),
    *((name, "streamable") for name in ("oauth", "question", "resumed", "streamable")),
    *((name, "sse") for name in ("question", "sse")),
]


@pytest.mark.grid(7)
@pytest.mark.parametrize(("name", "transport"), current_tier()(sample=SAMPLE, more=CELLS, full=CELLS))
def test_the_client_that_recorded_a_capture_gets_the_same_from_its_mock(name: str, transport: str, tmp_path: Path) -> None:
    before, after = played(name, transport, tmp_path)
    unsaid = UNSAID.get((name, transport))
    repeated, due = calls(after), calls(before, unsaid)
    if transport != "stdio" and asks_together(name):  # then each has a connection of its own, and no order
        repeated, due = sorted(repeated, key=repr), sorted(due, key=repr)
    assert repeated == due
    assert questions(after) == questions(before, unsaid)
    assert news(after) == news(before)
    if HTTP_STORIES.get(name) == transport:
        assert transactions(before) - transactions(after) == Counter()
        assert len(after.captures[0].transactions) == len(before.captures[0].transactions)


@pytest.mark.parametrize("name", ["time", "everything"])
def test_a_client_that_tries_the_modern_era_first_falls_back_as_with_a_real_server(name: str, tmp_path: Path) -> None:
    mock = [sys.executable, "-m", "mcpspy", "mock", str(CAPTURES / f"{name}.mcpspy"), "--capture", str(tmp_path / "own.mcpspy")]
    words = client(name, "stdio", tmp_path, mock)
    play([*words[:2], "auto", *words[3:]], tmp_path)
    probe, *others = calls(transcribe(read(str(tmp_path / "own.mcpspy"))))
    assert probe[:3] == ("server/discover", None, Outcome.PROBE)
    assert others == calls(transcribe(read(str(CAPTURES / f"{name}.mcpspy"))))


def test_the_typescript_sdk_gets_the_recorded_answers(tmp_path: Path, npm_program: NpmProgram) -> None:
    mock = [
        sys.executable,
        "-m",
        "mcpspy",
        "mock",
        str(CAPTURES / "everything.mcpspy"),
        "--capture",
        str(tmp_path / "own.mcpspy"),
    ]
    tool_call = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=first"]
    words = [*npm_program("mcp-inspector"), "--cli", *mock, *tool_call]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SCENE_S, check=False)
    assert json.loads(done.stdout) == {"content": [{"type": "text", "text": "Echo: first"}]}, done.stderr


def test_every_capture_is_served_or_left_out_for_a_reason() -> None:
    of_runs = {capture for name in RUNS for capture in captures_of(name)}  # test_mock_runs.py serves them together
    assert {file.stem for file in CAPTURES.glob("*.mcpspy")} == {*SERVED, *LEFT_OUT} | of_runs

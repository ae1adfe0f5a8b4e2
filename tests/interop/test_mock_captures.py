"""Each capture of captures/ whose session ended well, served by `mcpspy mock` on stdio to the official client that recorded it.

The client does what it did; what it gets is held against the recording: the same calls, the same answers, the same progress, the same
questions. The captures that are left out are named, each with its reason.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from captures.make import LONG, STORIES, Step, call, known
from mcpspy.capture.reader import read
from mcpspy.records import CLIENT, SERVER
from mcpspy.transcript.model import Exchange, Kind, Outcome, Stray, Transcript
from mcpspy.transcript.transcribe import transcribe
from tests.conftest import ROOT, NpmProgram
from tests.deadlines import SCENE_S

CAPTURES = ROOT / "captures"
STEPCLIENT = ROOT / "tests" / "peers" / "stepclient.py"

LEFT_OUT = {"refused": "the server would not start, and said nothing"}

OWN_STEPS: dict[str, tuple[str, list[Step]]] = {
    "oauth": ("legacy", [known("whoami"), call("whoami"), {"list": "tools"}]),
    "resumed": ("legacy", [known(LONG), {**call(LONG, duration=1.2, steps=4), "progress": True}]),
}
"""What the official client does in the place of clients that speak HTTP alone."""

ONLY_HTTP = {"resumed": {"ping"}}
"""What those asked besides."""


def steps(name: str) -> tuple[str, list[Step]]:
    """Mode and steps of a story's client, in the folder in which it was recorded."""
    story = STORIES[name]
    mode, found = OWN_STEPS.get(name, (story.mode, list(story.steps)))
    return mode, json.loads(json.dumps(found).replace("FOLDER", "/tmp/demo"))


def played(name: str, folder: Path, mode: str = "") -> tuple[Transcript, list[dict[str, Any]]]:
    """The mock's own capture of a story, and what its client printed."""
    own_mode, todo = steps(name)
    own = folder / "own.mcpspy"
    mock = [sys.executable, "-m", "mcpspy", "mock", str(CAPTURES / f"{name}.mcpspy"), "--capture", str(own)]
    done = subprocess.run(
        [sys.executable, str(STEPCLIENT), mode or own_mode, json.dumps(todo), *mock],
        cwd=folder,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=SCENE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return transcribe(read(str(own))), [json.loads(line) for line in done.stdout.splitlines()]


def recorded(name: str) -> Transcript:
    return transcribe(read(str(CAPTURES / f"{name}.mcpspy")))


def answer(exchange: Exchange) -> Any:
    """What an exchange brought, without the id of its message."""
    response = exchange.response
    if response is None:
        return None
    return response.error if response.kind is Kind.ERROR else response.result


def calls(transcript: Transcript, name: str = "") -> list[tuple[Any, ...]]:
    """What the client asked, and what came of it; what was refused by HTTP alone never reached the server."""
    unheard = (Outcome.HTTP_ERROR, Outcome.REDIRECTED)
    return [
        (one.method, one.target, one.outcome, one.progress, answer(one))
        for one in transcript.exchanges
        if one.sender == CLIENT and one.outcome not in unheard and one.method not in ONLY_HTTP.get(name, ())
    ]


def questions(transcript: Transcript) -> list[tuple[str, Any]]:
    """What the server asked, and with which params."""
    return [(one.method, one.request.params) for one in transcript.exchanges if one.sender == SERVER]


def news(transcript: Transcript) -> list[tuple[str | None, Any]]:
    """What the server said on its own."""
    strays = [row.message for row in transcript.rows if isinstance(row, Stray)]
    return [(one.method, one.params) for one in strays if one.sender == SERVER]


SERVED = sorted(set(STORIES) - set(LEFT_OUT))


@pytest.mark.parametrize("name", SERVED)
def test_the_client_that_recorded_a_capture_gets_the_same_from_its_mock(name: str, tmp_path: Path) -> None:
    transcript, printed = played(name, tmp_path)
    before = recorded(name)
    assert calls(transcript) == calls(before, name)
    assert questions(transcript) == questions(before)
    assert news(transcript) == news(before)
    assert any("result" in line for line in printed)


@pytest.mark.parametrize("name", ["time", "everything"])
def test_a_client_that_tries_the_modern_era_first_falls_back_as_with_a_real_server(name: str, tmp_path: Path) -> None:
    transcript, _ = played(name, tmp_path, "auto")
    probe, *others = calls(transcript)
    assert probe[:3] == ("server/discover", None, Outcome.PROBE)
    assert others == calls(recorded(name))


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
    asked = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=first"]
    words = [*npm_program("mcp-inspector"), "--cli", *mock, *asked]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SCENE_S, check=False)
    assert json.loads(done.stdout) == {"content": [{"type": "text", "text": "Echo: first"}]}, done.stderr


def test_every_capture_is_served_or_left_out_for_a_reason() -> None:
    assert {file.stem for file in CAPTURES.glob("*.mcpspy")} == {*SERVED, *LEFT_OUT}

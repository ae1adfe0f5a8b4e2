"""The runs of an agent in captures/, played again: one mock serves the model and the server, and the agent runs."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from captures.make import files_of
from captures.runs import RUNS, agent
from captures.serving import environment
from mcpspy.capture.file.reader import read
from mcpspy.transcript.transcribe import transcribe
from tests.deadlines import DEADLINE_S
from tests.tiers import current_tier


@contextmanager
def mocking(name: str, folder: Path, *options: str) -> Iterator[tuple[str, str]]:
    """`mcpspy mock` of all captures of a run. Yields the model's base URL, and the server's URL."""
    words = [sys.executable, "-m", "mcpspy", "mock", *map(str, files_of(name)), "--listen", "127.0.0.1:0", *options]
    store = {"MCPSPY_HOME": str(folder / "store")}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ, **store}) as mock:
        try:
            assert mock.stderr is not None
            model = re.fullmatch(r"OPENAI_BASE_URL=(http://\S+/v1)\n", mock.stderr.readline())
            server = re.fullmatch(rf"{RUNS[name].label}  (http://\S+/sse)\n", mock.stderr.readline())
            assert model is not None
            assert server is not None
            yield model[1], server[1]
            mock.terminate()
            stderr = mock.communicate(timeout=DEADLINE_S)[1]
            assert (mock.returncode, stderr) == (0, "")
        finally:
            mock.kill()


@pytest.mark.parametrize("name", current_tier()(sample=["agent"], more=list(RUNS), full=list(RUNS)))
def test_an_agent_comes_to_the_same_answer_with_mocks_alone(name: str, tmp_path: Path, subtests: pytest.Subtests) -> None:
    (tmp_path / "home").mkdir()
    with mocking(name, tmp_path) as (base_url, server):
        words = agent(RUNS[name], base_url, server)
        ran = subprocess.run(words, env=environment(tmp_path), capture_output=True, timeout=DEADLINE_S, check=False)
    output = [json.loads(line) for line in ran.stdout.splitlines()]
    recorded = transcribe(*map(read, map(str, files_of(name))))
    own = transcribe(*map(read, map(str, sorted((tmp_path / "store" / "captures").iterdir()))))
    with subtests.test("the agent ends with what the model said last"):
        last = recorded.model_calls[-1].answer
        assert last is not None
        assert output[-1] == {"answer": last.turn.text}, ran.stderr.decode()
    with subtests.test("the mocks recorded the run as it was recorded"):
        assert [call.prompt.turns for call in own.model_calls] == [call.prompt.turns for call in recorded.model_calls]
        assert [exchange.method for exchange in own.exchanges] == [exchange.method for exchange in recorded.exchanges]

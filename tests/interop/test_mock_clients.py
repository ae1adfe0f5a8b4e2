"""Clients of other making before a mock: the TypeScript SDK's and both inspectors, and a crowd of the official Python SDK's."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from captures.make import TOOLS, call
from captures.serving import PEERS, environment
from mcpspy.capture.file.reader import read
from mcpspy.records import CLIENT
from mcpspy.transcript.http.head import SESSION
from mcpspy.transcript.model import Outcome, Transcript
from mcpspy.transcript.transcribe import transcribe
from tests.conftest import NPM_MODULES, NPM_SCRIPTS, ROOT, NpmProgram
from tests.deadlines import SCENE_S
from tests.interop.matrix import CAPTURES, mocking, placed
from tests.interop.scenes import INSPECTOR, PYSERVER, steps
from tests.interop.test_http_inspector import INSPECTOR as NEWEST
from tests.tiers import Tier, current_tier

RECORDED = ROOT / "tests" / "transcript" / "recorded"
ECHO = ("--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=first")
ECHOED = {"content": [{"type": "text", "text": "Echo: first"}]}
PRINTED = {
    "research": "research result\n",
    "sampling": "sampled [COMPLETED] Async sampling completed!\n",
    "urls": "sent by request false\nsent by error -32042\ntried again false\n",
    "updates": "updated true\n",
}
"""Output of each scene of tests/npm/task_client.mjs, with the server that was recorded."""

MILLION = 1_000_000


def shown(words: list[str], folder: Path) -> str:
    """Run a client that has to succeed, and return its output."""
    (folder / "home").mkdir(exist_ok=True)
    done = subprocess.run(
        words, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=SCENE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def own(folder: Path) -> Transcript:
    """Read the capture that a mock made of itself and its clients."""
    return transcribe(read(str(folder / "own.mcpspy")))


@pytest.mark.parametrize("transport", ["stdio", "streamable"])
@pytest.mark.parametrize("scene", PRINTED)
def test_the_typescript_sdk_has_its_tasks_its_urls_and_its_news_from_a_mock(
    scene: str, transport: str, tmp_path: Path, npm_program: NpmProgram
) -> None:
    npm_program("mcp-inspector")  # which brings the SDK
    client, capture = ["node", str(NPM_SCRIPTS / "task_client.mjs"), str(NPM_MODULES), scene], RECORDED / f"{scene}.mcpspy"
    if transport == "stdio":
        mock = [sys.executable, "-m", "mcpspy", "mock", str(capture), "--capture", str(tmp_path / "own.mcpspy")]
        assert shown([*client, *mock], tmp_path) == PRINTED[scene]
    else:
        with mocking(capture, transport, tmp_path) as url:
            assert shown([*client, url], tmp_path) == PRINTED[scene]


def test_the_typescript_sdk_logs_in_to_a_mock(tmp_path: Path, npm_program: NpmProgram) -> None:
    npm_program("mcp-inspector")
    client = ["node", str(NPM_SCRIPTS / "oauth_client.mjs"), str(NPM_MODULES)]
    with placed("oauth", tmp_path) as capture, mocking(capture, "streamable", tmp_path) as url:
        assert shown([*client, url], tmp_path) == '[{"type":"text","text":"me"}]\n'


@pytest.mark.parametrize(("transport", "kind"), [("streamable", "http"), ("sse", "sse")])
def test_the_inspector_gets_the_recorded_answer(transport: str, kind: str, tmp_path: Path, npm_program: NpmProgram) -> None:
    npm_program(INSPECTOR[0])
    with mocking(CAPTURES / "everything.mcpspy", transport, tmp_path) as url:
        assert json.loads(shown([*INSPECTOR, url, "--transport", kind, *ECHO], tmp_path)) == ECHOED


@pytest.fixture
def newest(npm_program: NpmProgram) -> Callable[..., list[str]]:
    """`newest(url, kind)` are the words that start the newest inspector, on the TypeScript SDK 2, with a Node of its own."""
    npm_program("mcp-server-everything")
    if not Path(NEWEST[1]).exists():
        pytest.skip("the inspector is not installed: make npm")
    return lambda url, *options: [*(url if word == "URL" else word for word in NEWEST), *options]


@pytest.mark.parametrize(("transport", "kind"), [("streamable", "http"), ("sse", "sse")])
def test_the_newest_inspector_gets_the_recorded_answer(
    transport: str, kind: str, tmp_path: Path, newest: Callable[..., list[str]]
) -> None:
    with mocking(CAPTURES / "everything.mcpspy", transport, tmp_path) as url:
        assert json.loads(shown(newest(url, kind, *ECHO), tmp_path)) == ECHOED


def test_the_newest_inspector_gets_it_in_the_modern_era_too(tmp_path: Path, newest: Callable[..., list[str]]) -> None:
    tool_call = ("--protocol-era", "modern", "--method", "tools/call", "--tool-name", "slow", "--tool-arg", "n=2")
    with mocking(CAPTURES / "question.mcpspy", "streamable", tmp_path) as url:
        assert json.loads(shown(newest(url, "http", *tool_call), tmp_path))["structuredContent"] == {"result": "done"}


def sums(folder: Path, mode: str, count: int) -> Path:
    """Record one client that asks for all the sums that a crowd will ask for."""
    capture = folder / "sums.mcpspy"
    step = {"together": [call("add", a=number, b=MILLION) for number in range(count)]}
    tap = [sys.executable, "-m", "mcpspy", "run", "--quiet", "--capture", str(capture), "--"]
    shown([*steps(mode, TOOLS, step), *tap, *PYSERVER], folder)
    return capture


CROWDS = [("streamable", "legacy"), ("streamable", "auto"), ("sse", "legacy")]


@pytest.mark.parametrize(("transport", "mode"), current_tier()(sample=CROWDS[:1], more=CROWDS, full=CROWDS))
def test_each_of_many_clients_has_its_own_session_and_its_recorded_answers(
    transport: str, mode: str, tmp_path: Path, tier: Tier
) -> None:
    count = tier(sample=10, more=200, full=200)
    with mocking(sums(tmp_path, mode, count), transport, tmp_path) as url:
        printed = shown([sys.executable, str(PEERS / "crowd.py"), mode, str(count), url], tmp_path)
    assert sorted(tuple(map(int, line.split())) for line in printed.splitlines()) == [
        (number, number + MILLION) for number in range(count)
    ]
    transcript = own(tmp_path)
    assert Counter(exchange.method for exchange in transcript.exchanges if exchange.sender == CLIENT)["tools/call"] == count
    assert {exchange.outcome for exchange in transcript.exchanges} <= {Outcome.OK}
    assert _sessions(transcript) == (0 if mode == "auto" else count)


def _sessions(transcript: Transcript) -> int:
    """Count the sessions, by their ids or their streams."""
    transactions = transcript.captures[0].transactions.values()
    gets = [transaction for transaction in transactions if transaction.is_stream and transaction.target == "/sse"]
    named = {transaction.response.head.get(SESSION) for transaction in transactions if transaction.response is not None}
    return len(gets) or len(named - {""})

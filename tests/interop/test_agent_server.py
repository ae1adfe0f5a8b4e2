"""`mcpspy mcp` as a program: under the official clients of both eras, over both transports, and under mcpspy itself."""

import asyncio
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from mcpspy.cli.transcripts import transcript_of_file
from mcpspy.transcript.findings.run import all_findings
from tests.agent.agents import Agent, capture
from tests.deadlines import DEADLINE_S, SCENE_S
from tests.starting import PEERS, Program
from tests.tiers import Tier

AGENT_SERVER = [sys.executable, str(PEERS / "agentserver.py")]
CALLS: dict[str, dict[str, Any]] = {
    "recordings": {},
    "timeline": {"max_tokens": 500},
    "row": {"what": "@:3"},
    "findings": {},
    "compare": {"before": "@:3", "after": "@:3"},
    "wait_for": {"timeout_s": 0.1},
}


async def use(client: Client) -> None:
    """Use everything that the server has."""
    agent = Agent(client)
    assert len((await client.list_tools()).tools) >= 6
    for tool, arguments in CALLS.items():
        told = await agent.call(tool, **arguments)
        assert not told.is_error, told.text
    assert (await agent.call("timeline", what="no-such-label")).is_error
    prompts = (await client.list_prompts()).prompts
    assert len((await client.get_prompt(prompts[0].name)).messages) == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_of_either_era_uses_it_over_stdio_and_mcpspy_finds_nothing_in_that(
    mode: str, mcpspy: list[str], tmp_path: Path, store: Path
) -> None:
    own = tmp_path / "own.mcpspy"
    words = [*mcpspy[1:], "run", "--capture", str(own), "--", *AGENT_SERVER, "mcp", str(capture("everything"))]
    environment = {"MCPSPY_HOME": str(store)}

    async def main() -> None:
        server = StdioServerParameters(command=mcpspy[0], args=words, env=environment)
        async with asyncio.timeout(DEADLINE_S), Client(server, mode=mode) as client:
            await use(client)

    asyncio.run(main())
    transcript = transcript_of_file(str(own))
    assert len(transcript.rows) > 10
    assert [(finding.rule, finding.what) for finding in all_findings(transcript)] == []


@contextmanager
def listening(mcpspy: list[str], *words: str) -> Iterator[str]:
    """Let `mcpspy mcp` listen. Yields its URL."""
    words = (*mcpspy, "mcp", *words, "--listen", "127.0.0.1:0")
    with Program(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def test_over_http_it_answers_those_who_know_the_path_and_have_no_other_origin() -> None:
    with listening(AGENT_SERVER, str(capture("everything"))) as url:

        async def main() -> None:
            async with asyncio.timeout(DEADLINE_S), Client(url) as client:
                await use(client)

        asyncio.run(main())
        host, _, path = url.removeprefix("http://").partition("/")
        assert refused(host, "/mcp", {}) == 404
        assert refused(host, f"/{path}", {"Origin": "http://elsewhere.example"}) == 404
        assert refused(host, f"/{path}", {"Host": "elsewhere.example"}) == 404
        assert refused(host, f"/{path}", {"Sec-Fetch-Site": "cross-site"}) == 404


@pytest.mark.grid(1)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_many_clients_at_once_get_all_their_answers(mode: str, tier: Tier) -> None:
    count = tier(sample=10, more=50, full=50)
    with listening(AGENT_SERVER, str(capture("everything"))) as url:

        async def client(everybody: asyncio.Barrier) -> None:
            async with Client(url, mode=mode) as connected:
                await everybody.wait()
                await use(connected)

        async def main() -> None:
            everybody = asyncio.Barrier(count)
            async with asyncio.timeout(SCENE_S), asyncio.TaskGroup() as clients:
                for _ in range(count):
                    clients.create_task(client(everybody))

        asyncio.run(main())


def refused(host: str, path: str, headers: dict[str, str]) -> int:
    """Send a request, and return the status."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    with closing(http.client.HTTPConnection(host, timeout=DEADLINE_S)) as connection:
        connection.request("POST", path, body, {"Content-Type": "application/json", "Host": host, **headers})
        return connection.getresponse().status


def test_without_the_sdk_it_says_what_to_install(mcpspy: list[str], tmp_path: Path) -> None:
    hidden = tmp_path / "anyio"
    hidden.mkdir()
    (hidden / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'anyio'\", name='anyio')")
    done = subprocess.run(
        [*mcpspy, "mcp"],
        env={"PYTHONPATH": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'mcp>=2.3'" in done.stderr

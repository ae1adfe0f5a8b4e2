"""`mcpspy mcp` as a program: under the official clients of both eras, over both transports, and under mcpspy itself."""

import asyncio
import http.client
import json
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from mcpspy.cli.transcripts import transcript_of_file
from mcpspy.transcript.findings.run import all_findings
from tests.agent.agents import Agent, capture
from tests.conftest import BuiltProgram
from tests.deadlines import DEADLINE_S

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
    words = [*mcpspy[1:], "run", "--capture", str(own), "--", *mcpspy, "mcp", str(capture("everything"))]
    environment = {"MCPSPY_HOME": str(store)}

    async def main() -> None:
        server = StdioServerParameters(command=mcpspy[0], args=words, env=environment)
        async with asyncio.timeout(DEADLINE_S), Client(server, mode=mode) as client:
            await use(client)

    asyncio.run(main())
    transcript = transcript_of_file(str(own))
    assert len(transcript.rows) > 10
    assert [(finding.rule, finding.what) for finding in all_findings(transcript)] == []


def test_over_http_it_answers_those_who_know_the_path_and_have_no_other_origin(mcpspy: list[str]) -> None:
    words = [*mcpspy, "mcp", str(capture("everything")), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        try:

            async def main() -> None:
                async with asyncio.timeout(DEADLINE_S), Client(url) as client:
                    await use(client)

            asyncio.run(main())
            host, _, path = url.removeprefix("http://").partition("/")
            assert refused(host, "/mcp", {}) == 404
            assert refused(host, f"/{path}", {"Origin": "http://elsewhere.example"}) == 404
            assert refused(host, f"/{path}", {"Host": "elsewhere.example"}) == 404
            assert refused(host, f"/{path}", {"Sec-Fetch-Site": "cross-site"}) == 404
        finally:
            process.terminate()


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
    assert "pip install 'mcpspy[mcp]'" in done.stderr


def test_another_generation_of_the_sdk_uses_it(built: BuiltProgram, mcpspy: list[str], tmp_path: Path) -> None:
    client = Path(__file__).parents[1] / "peers" / "listclient.py"
    words = [built("mcp1/bin/python"), str(client), "findings", *mcpspy, "mcp", str(capture("everything"))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert "timeline" in done.stdout, done.stderr
    assert "Nothing found" in done.stdout, done.stderr

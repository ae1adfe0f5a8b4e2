"""A gateway on the official SDK, tapped on both sides: its calls have one row each."""

import asyncio
import json
import os
import sys
from pathlib import Path

import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S

PEERS = ROOT / "tests" / "peers"


async def call_through(*command: str) -> None:
    """Call two tools of the server that this command starts."""
    parameters = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ))
    async with mcp.Client(stdio_client(parameters)) as client:
        await client.list_tools()
        await client.call_tool("demo_add", {"a": 1, "b": 2})
        await client.call_tool("demo_count", {"to": 2})


def tapped(capture: Path, *command: str) -> list[str]:
    """Return the command that runs this one through mcpspy."""
    return [
        sys.executable,
        "-m",
        "mcpspy",
        "run",
        "--quiet",
        "--label",
        capture.stem,
        "--capture",
        str(capture),
        "--",
        *command,
    ]


def test_a_call_through_a_gateway_has_one_row_with_both_hops(tmp_path: Path) -> None:
    outer, inner = tmp_path / "gateway.mcpspy", tmp_path / "sums.mcpspy"
    server = tapped(inner, sys.executable, str(PEERS / "sdkserver.py"), "mcp", "stdio")
    command = tapped(outer, sys.executable, str(PEERS / "gateway.py"), *server)
    asyncio.run(asyncio.wait_for(call_through(*command), DEADLINE_S))
    made = json.loads(run("show", str(outer), str(inner), "--json").stdout)
    forwarded = [row["target"] for row in made["rows"] if "hops" in row]
    assert [target for target in forwarded if target] == ["demo_add", "demo_count"]
    assert len([row for row in made["rows"] if "forwarded_for" in row]) == len(forwarded)
    text = run("show", str(outer), str(inner)).stdout
    assert text.count("→ sums row") == len(forwarded)

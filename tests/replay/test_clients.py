"""Clients of one server are compared side by side."""

import asyncio
import json
import os
import sys
from pathlib import Path

import mcp
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

from mcpspy.replay.compare.server import ComparedClient, compared_client
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.compare.side_by_side import client_json, client_lines, client_markdown
from mcpspy.views.text.line import line_cells, plain
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S
from tests.findings.account import records
from tests.views.golden import same_as_golden

PEERS = ROOT / "tests" / "peers"
CALL = '· handshake 2025-11-25, server: tools.listChanged\n→ tools/call 1 {"name":"slow"}\n'
CHANGED = "· handshake 2025-11-25, server: tools.listChanged\n← notifications/tools/list_changed\n"
PROMPT_CALL = '→ tools/call 2 {"name":"slow"}\n← result 2\n'
LATE_CALL = f"· 0.2 s later\n{PROMPT_CALL}"
FETCH = '· 5.0 s later\n→ tools/list 3\n← result 3 {"tools":[]}\n'


def client(account: str) -> ComparedClient:
    return compared_client(transcribe(records(account)))


@pytest.mark.parametrize(
    ("account", "aspect", "words"),
    [
        (
            f'{CALL}· 3.0 s later\n→ notifications/cancelled {{"requestId":1}}',
            "gives up",
            "after 3.0 s, by notifications/cancelled",
        ),
        (
            f'{CALL}· 3.0 s later\n→ notifications/cancelled {{"requestId":1,"reason":"MCP error -32001: Request timed out"}}',
            "gives up",
            "after 3.0 s, by notifications/cancelled (timed out)",
        ),
        (
            f'{CALL}· 3.0 s later\n→ notifications/cancelled {{"requestId":1,"reason":"User pressed stop"}}',
            "gives up",
            "after 3.0 s, by notifications/cancelled (by the user)",
        ),
        (
            f'{CALL}· 3.0 s later\n→ notifications/cancelled {{"requestId":1,"reason":"shutting down"}}',
            "gives up",
            "after 3.0 s, by notifications/cancelled (“shutting down”)",
        ),
        (f"{CALL}← result 1", "gives up", "not seen"),
        (f'{CHANGED}→ tools/list 2\n← result 2 {{"tools":[]}}', "on list_changed", "fetches tools/list"),
        (f"{CHANGED}→ ping 2\n← result 2", "on list_changed", "does not fetch tools/list"),
        (
            f"{CHANGED}{LATE_CALL}{FETCH}",
            "on list_changed",
            "goes on with the old list of tools, fetches tools/list 5.2 s later",
        ),
        (f"{CHANGED}{LATE_CALL}", "on list_changed", "goes on with the old list of tools"),
        (f"{CHANGED}{PROMPT_CALL}{FETCH}", "on list_changed", "fetches tools/list"),
        (CALL, "header fields", "none: stdio"),
        ("· HTTP\n· handshake 2025-11-25, server: tools\n→ POST /mcp\n  tools/list 1\n← 404 Not Found", "on 404", "stops"),
    ],
    ids=["gives-up", "times-out", "user", "reason", "waits", "fetches", "ignores", "late", "old", "prompt", "stdio", "stops"],
)
def test_an_aspect_says_what_the_client_did(account: str, aspect: str, words: str) -> None:
    assert client(account).aspects[aspect] == words


def test_differences_are_marked_in_each_format() -> None:
    clients = [client(f'{CHANGED}→ tools/list 2\n← result 2 {{"tools":[]}}'), client(f"{CHANGED}→ ping 2\n← result 2")]
    assert "≠ on list_changed" in [plain(line) for line in client_lines(clients)]
    assert any(line.startswith("| on list_changed ≠ |") for line in client_markdown(clients))
    assert json.loads(client_json(clients))["different"] == ["opening", "on list_changed"]


@pytest.mark.parametrize("width", [80, 200])
def test_clients_side_by_side_look_as_they_did(width: int) -> None:
    clients = [client(CALL), client(f"{CHANGED}→ ping 2\n← result 2")]
    same_as_golden(f"clients-{width}", client_lines(clients, width=width))


def test_the_table_of_clients_looks_as_it_did() -> None:
    clients = [client(CALL), client(f"{CHANGED}→ ping 2\n← result 2")]
    same_as_golden("clients-markdown", [[(line, "")] for line in client_markdown(clients)])


@pytest.mark.parametrize("width", [20, 80, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    clients = [client(CALL), client(f"{CHANGED}→ ping 2\n← result 2")]
    assert all(line_cells(line) <= width for line in client_lines(clients, width=width))


async def talk(*command: str, legacy: bool) -> None:
    """Call a tool with one of the clients that the official SDK has: the one of the modern era, or the session with a handshake."""
    connection = stdio_client(StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ)))
    if legacy:
        async with connection as (read, write), mcp.ClientSession(read, write) as session:
            await session.initialize()
            await session.call_tool("add", {"a": 1, "b": 2})
    else:
        async with mcp.Client(connection) as modern:
            await modern.call_tool("add", {"a": 1, "b": 2})


def test_two_clients_of_the_official_sdk_are_told_apart(tmp_path: Path) -> None:
    captures = [str(tmp_path / name) for name in ("modern.mcpspy", "legacy.mcpspy")]
    server = [sys.executable, str(PEERS / "sdkserver.py"), "mcp", "stdio"]
    for capture in captures:
        command = [sys.executable, "-m", "mcpspy", "run", "--quiet", "--capture", capture, "--", *server]
        asyncio.run(asyncio.wait_for(talk(*command, legacy="legacy" in capture), DEADLINE_S))
    done = run("diff", "--clients", *captures, "--json")
    made = json.loads(done.stdout)
    assert done.returncode == 1
    assert {"revision", "opening"} <= set(made["different"])
    openings = [compared["aspects"]["opening"].split(" → ")[0] for compared in made["clients"]]
    assert openings == ["server/discover", "initialize"]


def test_captures_of_different_servers_or_of_one_client_are_a_mistake() -> None:
    time, git = (str(ROOT / "captures" / f"{name}.mcpspy") for name in ("time", "git"))
    apart, alone = run("diff", "--clients", time, git), run("diff", "--clients", time)
    assert (apart.returncode, alone.returncode) == (2, 2)
    assert "these captures are of different servers: mcp-time, mcp-git." in apart.stderr
    assert "two captures or more" in alone.stderr


def test_a_wide_terminal_shows_a_column_for_each_client_if_there_is_room() -> None:
    clients = [client(CALL), client(f"{CHANGED}→ ping 2\n← result 2")]
    wide = [plain(line) for line in client_lines(clients, width=160)]
    (row,) = [line for line in wide if line.startswith("≠ on list_changed")]
    assert row.split("  ")[-1] == "does not fetch tools/list"
    assert "not seen" in row
    assert max(map(len, wide)) <= 160
    assert any(line == "≠ on list_changed" for line in (plain(line) for line in client_lines(clients * 4, width=160)))

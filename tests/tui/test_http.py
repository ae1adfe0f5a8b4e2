"""The keys that act, on an official server and client over HTTP: calls made again in the client's session, messages held."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from mcpspy import read
from mcpspy.transcript.transcribe import transcribe
from tests.cli.test_intercepted_http_sessions import EVENTS, JSON, KINDS, _target, proxied
from tests.deadlines import DEADLINE_S
from tests.tui.piloting import Piloted, piloted, piloting


@pytest.fixture
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path / "home"))
    return tmp_path / "sums.mcpspy"


@asynccontextmanager
async def called(kind: str, capture: Path) -> AsyncIterator[Any]:
    """Yield a client that has called a tool over HTTP."""
    with proxied(kind, capture, "--label", "sums") as proxy:
        async with asyncio.timeout(3 * DEADLINE_S), Client(_target(kind, proxy.address), mode="legacy") as client:
            await client.list_tools()
            await client.call_tool("add", {"a": 1, "b": 2})
            yield client


@asynccontextmanager
async def at_the_call(capture: Path) -> AsyncIterator[Piloted]:
    async with piloted(capture) as shown:
        await shown.until("tools/call add")
        await shown.press("slash")
        await shown.type("tool:add")
        await shown.press("enter")
        yield shown


async def added(client: Any, a: int, b: int) -> str:
    result = await client.call_tool("add", {"a": a, "b": b})
    return str(result.content[0].text)


def calls_by_mcpspy(capture: Path) -> int:
    return sum(exchange.is_by_mcpspy for exchange in transcribe(list(read(capture))).exchanges)


@pytest.mark.parametrize("kind", KINDS)
@piloting
async def test_r_calls_again_in_the_session_of_the_client_which_goes_on(kind: str, capture: Path) -> None:
    async with called(kind, capture) as client, at_the_call(capture) as shown:
        await shown.press("r")
        await shown.until("tools/call add to the running session of sums")
        await shown.press("c")
        text = await shown.until("✓ as recorded in row")
        assert "✓ tools/call add  ok  " in text
        assert await added(client, 3, 4) == "7"
    assert calls_by_mcpspy(capture) == 1


@piloting
async def test_the_call_can_go_into_a_session_of_its_own(capture: Path) -> None:
    async with called(JSON, capture), at_the_call(capture) as shown:
        await shown.press("r")
        await shown.until("u  call it in a session of its own, at http://127.0.0.1:")
        await shown.press("u")
        await shown.until("✓ as recorded in row")
    assert calls_by_mcpspy(capture) == 0


@piloting
async def test_a_message_over_http_is_held_and_released(capture: Path) -> None:
    async with called(EVENTS, capture) as client, at_the_call(capture) as shown:
        await shown.press("b")
        await shown.until("tool:add => hold")
        await shown.press("enter")
        await shown.until("In force until you press b again or quit")
        answer = asyncio.create_task(added(client, 20, 22))
        await shown.until("held → tools/call add · goes on in")
        await shown.press("h", "r")
        assert await answer == "42"


@piloting
async def test_closing_the_interface_releases_what_is_held_over_http(capture: Path) -> None:
    async with called(JSON, capture) as client:
        async with at_the_call(capture) as shown:
            await shown.press("b", "enter")
            await shown.until("In force")
            answer = asyncio.create_task(added(client, 20, 22))
            await shown.until("goes on in")
        assert await answer == "42"

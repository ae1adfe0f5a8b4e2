"""The tool that sends: only where a user allows it, asked about where the client can ask, and once."""

from collections.abc import Iterator
from typing import Any

import mcp_types as types
import pytest

from mcpspy.agent.tools import CALL_AGAIN
from mcpspy.records import Frame
from tests.agent.agents import Agent, capture, play
from tests.cli.call.test_live import SDK_SERVER, begin, end
from tests.live.client import Client

CALL = {"what": "sums:4", "set": {"$.arguments.b": 40}}


@pytest.fixture
def sums() -> Iterator[Client]:
    """A client of a server on the official SDK, under the label `sums`."""
    with Client(SDK_SERVER, "--label", "sums") as client:
        begin(client)
        yield client


def sent(client: Client) -> int:
    """Return how many requests of mcpspy's own the capture has, when the client has left."""
    return sum(isinstance(record, Frame) and record.injected for record in end(client))


def test_without_the_users_leave_there_is_no_such_tool() -> None:
    async def scene(agent: Agent) -> None:
        assert (await agent.call(CALL_AGAIN, what="@:4")).is_error
        assert CALL_AGAIN not in [tool.name for tool in (await agent.client.list_tools()).tools]

    play(scene, capture("everything"))


def test_a_call_goes_into_the_session_and_its_answer_is_compared(sums: Client) -> None:
    async def scene(agent: Agent) -> None:
        told = await agent.call(CALL_AGAIN, **CALL)
        assert not told.is_error, told.text
        assert "differs from recorded in row 4" in told.text
        assert "41" in told.captured
        again = await agent.call(CALL_AGAIN, what="sums", tool="add", arguments={"a": 2, "b": 5})
        assert again.content["outcome"] == "ok"
        assert "7" in again.captured
        wrong = await agent.call(CALL_AGAIN, what="sums", tool="add", arguments={"a": "x"})
        assert wrong.is_error
        assert "Nothing was sent" in wrong.text

    play(scene, calls=True)
    assert sent(sums) == 2


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("action", ["accept", "decline"])
def test_a_client_that_can_ask_its_user_does(sums: Client, mode: str, action: str) -> None:
    asked: list[str] = []

    async def ask(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action=action, content={} if action == "accept" else None)  # type: ignore[arg-type]

    async def scene(agent: Agent) -> None:
        told = await agent.call(CALL_AGAIN, **CALL)
        assert told.is_error == (action == "decline"), told.text

    play(scene, calls=True, mode=mode, elicitation_callback=ask)
    assert len(asked) == 1
    assert "tools/call add" in asked[0]
    assert sent(sums) == (action == "accept")

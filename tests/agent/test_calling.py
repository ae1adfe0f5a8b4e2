"""The tool that sends: only where a user allows it, asked about where the client can ask, and once."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from mcpspy.agent.tools import CALL_AGAIN, REPLAY
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


@pytest.mark.grid
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


async def ask_nobody(_: Any, __: types.ElicitRequestParams) -> types.ElicitResult:
    """Fail: nothing was to be asked."""
    raise AssertionError("the user was asked")


def over(client: Client) -> None:
    """End the session."""
    end(client)


@pytest.mark.grid
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("action", ["accept", "decline"])
def test_a_recording_is_replayed_once_its_user_was_asked(
    sums: Client, mode: str, action: str, tmp_path: Path, store: Path
) -> None:
    over(sums)
    asked: list[str] = []

    async def ask(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action=action, content={} if action == "accept" else None)  # type: ignore[arg-type]

    async def scene(agent: Agent) -> None:
        told = await agent.call(REPLAY, what="sums")
        assert told.is_error == (action == "decline"), told.text
        if action == "accept":
            assert "The answers do not differ" in told.ours
            assert told.content["exit"] == 0
            assert "unchanged" in told.captured

    play(scene, calls=True, mode=mode, elicitation_callback=ask)
    assert len(asked) == 1
    assert "sdkserver.py" in asked[0]
    assert "3 requests, 1 of which may change something" in asked[0]
    replays = [file for file in (store / "captures").glob("*.mcpspy") if "sums-replay" in file.name]
    assert len(replays) == (action == "accept")


def test_a_client_that_cannot_ask_gets_no_replay(sums: Client, store: Path) -> None:
    over(sums)

    async def scene(agent: Agent) -> None:
        told = await agent.call(REPLAY, what="sums")
        assert told.is_error
        assert "cannot ask its user" in told.text

    play(scene, calls=True)
    assert len(list((store / "captures").glob("*.mcpspy"))) == 1


def test_no_server_is_started_that_a_file_names(sums: Client, tmp_path: Path, store: Path) -> None:
    over(sums)
    (recorded,) = (store / "captures").glob("*.mcpspy")
    file = shutil.move(recorded, tmp_path / "of-somebody.mcpspy")

    async def scene(agent: Agent) -> None:
        told = await agent.call(REPLAY, what="@")
        assert told.is_error
        assert "Only what mcpspy recorded here" in told.text

    play(scene, file, calls=True, elicitation_callback=ask_nobody)


def test_the_words_of_a_program_are_fenced(sums: Client) -> None:
    async def scene(agent: Agent) -> None:
        told = await agent.call(CALL_AGAIN, what="sums", tool="no-such-tool")
        assert told.is_error
        assert "no-such-tool" in told.captured
        assert "Nothing was sent." in told.ours

    play(scene, calls=True)
    over(sums)

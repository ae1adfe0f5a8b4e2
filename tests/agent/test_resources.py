"""The resources: numbers and diagrams of recordings, and word of their changes."""

import asyncio
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.agent.agents import Agent, play
from tests.cli.recording import Recording


def test_each_recording_has_numbers_and_a_diagram() -> None:
    recording = Recording()
    recording.ask(1, name="search").answer(1, result={"content": []})

    async def scene(agent: Agent) -> None:
        listed = (await agent.client.list_resources()).resources
        assert [str(resource.uri) for resource in listed] == [
            f"mcpspy://recording/{recording.id}/numbers",
            f"mcpspy://recording/{recording.id}/diagram",
        ]
        for resource in listed:
            (content,) = (await agent.client.read_resource(str(resource.uri))).contents
            assert "search" in content.text  # type: ignore[union-attr]  # all are text

    play(scene)


@pytest.mark.parametrize("uri", ["mcpspy://recording/ffff/numbers", "mcpspy://recording/../../etc", "file:///etc/passwd"])
def test_a_resource_that_does_not_exist_is_an_error(uri: str) -> None:
    async def scene(agent: Agent) -> None:
        with pytest.raises(MCPError):
            await agent.client.read_resource(uri)

    play(scene)


async def grow(recording: Recording, told: asyncio.Event) -> None:
    """Record until a subscriber was told."""
    for id in count(2):
        recording.ask(id, name="search")
        with suppress(TimeoutError):
            await asyncio.wait_for(told.wait(), 0.05)
            return


@pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed")
def test_a_subscriber_is_told_when_a_recording_grows() -> None:
    recording = Recording()
    recording.ask(1, name="search")
    told = asyncio.Event()
    uri = f"mcpspy://recording/{recording.id}/numbers"

    async def take(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated" and str(message.params.uri) == uri:
            told.set()

    async def scene(agent: Agent) -> None:
        await agent.client.session.subscribe_resource(uri)
        await grow(recording, told)
        await agent.client.session.unsubscribe_resource(uri)

    play(scene, mode="legacy", message_handler=take)


def test_a_listener_of_the_modern_era_is_told_too() -> None:
    recording = Recording()
    recording.ask(1, name="search")
    uri = f"mcpspy://recording/{recording.id}/numbers"

    async def scene(agent: Agent) -> None:
        told = asyncio.Event()
        growing = asyncio.ensure_future(grow(recording, told))
        async with agent.client.listen(resource_subscriptions=[uri]) as events:
            async for event in events:
                assert str(event.uri) == uri  # type: ignore[union-attr]  # no others were asked for
                break
        told.set()
        await growing

    play(scene)

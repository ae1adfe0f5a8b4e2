"""The tool that waits: for a call to come, end, fail or hang, in a capture that grows while it waits."""

import asyncio
from itertools import count
from typing import Any

from tests.agent.agents import Agent, Told, play
from tests.cli.recording import Recording


def waited(tool: str, answer: dict[str, Any] | None, **arguments: Any) -> Told:
    """Wait while calls of a tool are recorded, again and again, so that one comes after the wait has begun."""
    recording = Recording()
    recording.ask(1, name="early").answer(1, result={"content": []})
    told: list[Told] = []

    async def scene(agent: Agent) -> None:
        waits = asyncio.ensure_future(agent.call("wait_for", **arguments))
        for id in count(2):
            if tool:
                recording.ask(id, name=tool)
            if answer is not None:
                recording.answer(id, result=answer)
            if (await asyncio.wait([waits], timeout=0.02))[0]:
                break
        told.append(await waits)

    play(scene)
    return told[0]


def test_a_call_that_ends_is_shown_whole() -> None:
    told = waited("search", {"content": [{"type": "text", "text": "found it"}]}, filter="tool:search")
    assert told.content["outcome"] == "ok"
    assert "found it" in told.captured


def test_a_call_that_fails_is_told_from_others() -> None:
    failed = {"content": [{"type": "text", "text": "no such town"}], "isError": True}
    told = waited("search", failed, event="fails")
    assert told.content["outcome"] == "tool error"


def test_a_call_comes_before_its_answer() -> None:
    told = waited("search", None, event="comes")
    assert told.content["outcome"] == "pending"


def test_a_call_without_an_answer_hangs() -> None:
    told = waited("search", None, event="hangs", hang_s=0.2)
    assert told.content["outcome"] == "pending"
    assert told.content["took_ms"] is None


def test_a_call_that_was_over_before_does_not_count() -> None:
    told = waited("", None, event="ends", timeout_s=0.3)
    assert told.content == {"found": False, "seen": 0, "pending": []}
    assert "No call" in told.text


def test_a_session_that_begins_and_ends_meanwhile_is_seen() -> None:
    told: list[Told] = []

    async def scene(agent: Agent) -> None:
        waits = asyncio.ensure_future(agent.call("wait_for"))
        await asyncio.wait([waits], timeout=0.2)
        Recording().ask(1, name="search").answer(1, result={"content": []}).end()
        told.append(await waits)

    play(scene)
    assert told[0].content["outcome"] == "ok"


def test_a_call_of_a_session_that_was_over_does_not_hang() -> None:
    recording = Recording()
    recording.ask(1, name="search")
    recording.end()
    told: list[Told] = []

    async def scene(agent: Agent) -> None:
        told.append(await agent.call("wait_for", event="hangs", hang_s=0.1, timeout_s=0.3))

    play(scene)
    assert told[0].content == {"found": False, "seen": 0, "pending": []}


def test_a_wait_before_the_first_recording_finds_it() -> None:
    told: list[Told] = []

    async def scene(agent: Agent) -> None:
        waits = asyncio.ensure_future(agent.call("wait_for", event="ends"))
        await asyncio.wait([waits], timeout=0.2)
        recording = Recording()
        for id in count(1):
            recording.ask(id, name="search").answer(id, result={"content": []})
            if (await asyncio.wait([waits], timeout=0.02))[0]:
                break
        told.append(await waits)

    play(scene)
    assert told[0].content["outcome"] == "ok"

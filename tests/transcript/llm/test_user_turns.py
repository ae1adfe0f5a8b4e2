"""A user speaks in the longest silence before the prompt: before the lists that a client requests then, and after what ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcpspy.transcript.llm.agent_runs import agent_runs
from mcpspy.transcript.llm.tool_trips import tool_trips
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.dialogue import MS, notification, request, result
from tests.transcript.llm.traffic import ModelTraffic, completion
from tests.transcript.traffic import Traffic, initialize

if TYPE_CHECKING:
    from mcpspy.transcript.model import Transcript


def connected(*, before_ms: int, after_ms: int, questions: int = 1) -> Transcript:
    """Make a client that connects, lists the tools after `before_ms`, and sends a prompt `after_ms` later."""
    server, model = Traffic(), ModelTraffic()
    server.post(initialize()).answer(200, result(0, {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s"}}))
    server.post(notification("notifications/initialized")).answer(202)
    for id in range(1, questions + 1):
        server.wait(before_ms).post(request(id)).answer(200, result(id, {"tools": []}))
        server.wait(after_ms)
        model.at_ns = server.at_ns
        model.ask(f"user: question {id}").answer(200, completion("an answer"))
        server.at_ns = model.at_ns
    return transcribe(server.records, model.records)


def list_and_prompt(transcript: Transcript) -> list[tuple[int, int, int]]:
    """Return for each run the times of the tool list before it, of the user and of the prompt."""
    asked_ns = [exchange.at_ns for exchange in transcript.exchanges if exchange.method == "tools/list"]
    return [
        (at_ns, run.spoken_ns, run.began_ns)
        for at_ns, run in zip(asked_ns, agent_runs(transcript, tool_trips(transcript)), strict=True)
    ]


@pytest.mark.parametrize("questions", [1, 2])
def test_a_user_who_takes_time_before_the_list_spoke_before_it(questions: int) -> None:
    for list_ns, spoken_ns, prompt_ns in list_and_prompt(connected(before_ms=500, after_ms=20, questions=questions)):
        assert list_ns - MS < spoken_ns < list_ns < prompt_ns


def test_a_user_who_takes_time_after_the_list_spoke_at_the_prompt() -> None:
    [(list_ns, spoken_ns, prompt_ns)] = list_and_prompt(connected(before_ms=20, after_ms=500))
    assert list_ns < spoken_ns == prompt_ns


def test_of_a_leg_alone_a_user_speaks_at_the_prompt() -> None:
    model = ModelTraffic()
    model.ask("user: hello").answer(200, completion("hi"))
    [run] = agent_runs(model.transcript, [])
    assert run.spoken_ns == run.began_ns


def test_time_until_the_user_spoke_is_nobodys() -> None:
    transcript = connected(before_ms=500, after_ms=20)
    [run] = agent_runs(transcript, tool_trips(transcript))
    assert run.took_ns < 500 * MS

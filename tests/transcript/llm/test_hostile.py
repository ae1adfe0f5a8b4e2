"""Property tests: tool round trips, findings and views show whatever clients and APIs send; nothing raises or is printed raw."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.llm.agent_runs import agent_runs
from mcpspy.transcript.llm.tool_trips import tool_trips
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.json.rows import transcript_json
from mcpspy.views.json.server_statistics import statistics_json
from mcpspy.views.statistics import statistics_lines
from mcpspy.views.text.line import line_cells, plain
from mcpspy.views.timeline.model_call import model_call_lines
from mcpspy.views.timeline.timeline import timeline
from tests.tiers import current_tier, slow_examples
from tests.transcript.dialogue import Dialogue, request, result, tool_call
from tests.transcript.llm.traffic import MESSAGES, RESPONSES, ModelTraffic, sse
from tests.views.test_hostile import HOSTILE

TEXTS = st.sampled_from(["", "a", "fetch", "mcp__weather__forecast", "call_1", "{", '{"a":', "null", "杭州", *HOSTILE.values()])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def maybe(**members: Any) -> Any:
    """Objects with any of these members."""
    return st.fixed_dictionaries({}, optional=members)


CALLS = st.lists(maybe(id=VALUES, function=VALUES | maybe(name=TEXTS, arguments=TEXTS)), max_size=3)
MEMBERS = ("text", "id", "name", "input", "tool_use_id", "content", "call_id", "arguments", "output", "is_error")
BLOCKS = st.lists(
    VALUES
    | st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "tool_use", "tool_result", "thinking", "function_call", "function_call_output"])},
        optional=dict.fromkeys(MEMBERS, VALUES),
    ),
    max_size=3,
)
ROLES = st.sampled_from(["user", "assistant", "tool", "system", "x"])
TURNS = st.lists(
    VALUES | maybe(role=ROLES, content=TEXTS | BLOCKS, tool_calls=VALUES | CALLS, tool_call_id=VALUES),
    max_size=4,
)
TOOLS = st.lists(VALUES | maybe(name=TEXTS, input_schema=VALUES) | maybe(function=VALUES), max_size=3)
PROMPTS = maybe(model=VALUES, messages=TURNS, input=BLOCKS, tools=TOOLS, max_tokens=VALUES)
SAID = VALUES | maybe(tool_calls=CALLS)
CHOICES = st.lists(maybe(message=SAID, delta=SAID, finish_reason=VALUES), max_size=2)
ANSWERS = maybe(choices=CHOICES, content=BLOCKS, output=BLOCKS, usage=VALUES, stop_reason=VALUES, error=VALUES)
PATHS = st.sampled_from(["/v1/chat/completions", MESSAGES, RESPONSES])


def both_captures(prompts: list[tuple[Any, Any, str, bool]], tools: Any, answered: Any) -> Transcript:
    """Make prompts and answers, and between them a server that lists `tools` and answers a call."""
    traffic = ModelTraffic()
    for prompt, answer, path, streamed in prompts:
        call = traffic.post(json.dumps(prompt).encode(), path)
        if streamed:
            call.stream().raw(sse(answer, b"{", answer)).close()
        else:
            call.answer(200, json.dumps(answer).encode(), Content_Type="application/json")
    server = Dialogue().client(request(1)).server(result(1, {"tools": tools}))
    server.client(tool_call(2, "fetch", a=1)).server(result(2, answered))
    return transcribe(traffic.records, server.records)


@settings(max_examples=slow_examples(current_tier()))
@given(st.lists(st.tuples(PROMPTS, ANSWERS, PATHS, st.booleans()), max_size=3), VALUES, VALUES)
def test_nothing_raises_and_all_of_it_can_be_shown(
    prompts: list[tuple[Any, Any, str, bool]], tools: Any, answered: Any
) -> None:
    transcript = both_captures(prompts, tools, answered)
    trips = tool_trips(transcript)
    for run in agent_runs(transcript, trips):
        assert run.model_ns + run.server_ns + run.client_ns == run.took_ns
    transcript.findings = all_findings(transcript)
    lines = [*timeline(transcript, width=80), *statistics_lines(transcript, width=80)]
    for call in transcript.model_calls:
        lines += model_call_lines(transcript, call, trips, width=80)
    shown = "\n".join(map(plain, lines))
    assert not set(shown) & {"\x1b", "\x07", "\u202e", "\ud800", "\r"}
    assert [plain(line) for line in lines if line_cells(line) > 80] == []
    json.loads("".join(transcript_json(transcript, transcript.rows, live=False, whole=True)))
    json.loads(statistics_json(transcript, live=False))


def deep(depth: int) -> bytes:
    return (
        b'{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"function":{"name":"f","parameters":'
        + (b'{"a":' * depth + b"1" + b"}" * depth)
        + b"}}]}"
    )


@pytest.mark.parametrize("depth", [100, 900, 20_000])
def test_a_deep_schema_can_be_shown(depth: int) -> None:
    traffic = ModelTraffic()
    traffic.post(deep(depth), "/v1/chat/completions").answer(200, {"choices": []})
    transcript = traffic.transcript
    assert [plain(line) for call in transcript.model_calls for line in model_call_lines(transcript, call, [], width=80)]
    json.loads("".join(transcript_json(transcript, transcript.rows, live=False, whole=True)))
    json.loads(statistics_json(transcript, live=False))
    all_findings(transcript)

"""Answers of models, assembled from deltas: the same wherever they are cut, and with flaws where they are broken."""

import json
from time import process_time_ns
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.transcript.llm.apis import assembler
from mcpspy.transcript.llm.prompt import Answer, Api, ToolUse
from tests.peers.modelspelling import (
    ModelAnswer,
    chat_body,
    chat_events,
    message_body,
    message_events,
    response_body,
    response_events,
)

MAX_SECONDS: Final = 10
"""Many times what it takes, and a part of what it would take if it were quadratic."""

WHOLE: Final = {"chat": chat_body, "responses": response_body, "messages": message_body}
EVENTS: Final = {"chat": chat_events, "responses": response_events, "messages": message_events}
APIS: Final[list[Api]] = ["chat", "responses", "messages"]


def model_answer(text: str, uses: list[dict[str, Any]], pieces: int, thinking: str = "") -> ModelAnswer:
    return ModelAnswer(
        number=1, id="a1", model="m", created=1, text=text, thinking=thinking, uses=uses, pieces=pieces, finish="",
        usage={"input": 7, "output": 5, "cached": 3, "reasoning": 2},
        ask={"stream": True, "stream_options": {"include_usage": True}},
    )  # fmt: skip


def streamed(api: Api, events: list[tuple[str, Any]], *, is_cut: bool = False) -> Answer:
    assembling = assembler(api)
    for at_ns, (name, data) in enumerate(events):
        text = data if isinstance(data, str) else json.dumps(data)
        assembling.feed(name or "message", text.encode(), at_ns)
    assembling.close(is_cut=is_cut)
    return assembling.answer


def facts(answer: Answer) -> tuple[object, ...]:
    uses = [(use.id, use.name, use.arguments, use.from_text) for use in answer.turn.uses]
    return answer.id, answer.model, answer.turn.text, answer.turn.thinking, uses, answer.finish, answer.usage, answer.is_whole


TEXTS: Final = st.text(st.characters(codec="utf-8"), max_size=30)


def use_of(name: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"call_{name}", "name": name, "arguments": json.dumps(value, ensure_ascii=False, separators=(",", ":"))}


VALUES_OF_USES: Final = st.dictionaries(TEXTS, st.integers() | TEXTS, max_size=3)
USES: Final = st.lists(
    st.builds(use_of, st.text("abc_", min_size=1, max_size=8), VALUES_OF_USES), max_size=3, unique_by=lambda use: str(use["id"])
)


@pytest.mark.parametrize("api", APIS)
@given(text=TEXTS, uses=USES, pieces=st.integers(1, 9))
def test_an_answer_is_the_same_whole_and_in_deltas_cut_anywhere(
    api: Api, text: str, uses: list[dict[str, Any]], pieces: int
) -> None:
    answer = model_answer(text, uses, pieces, thinking="" if api == "chat" else "hm")
    whole = assembler(api)
    whole.feed_body(json.loads(json.dumps(WHOLE[api](answer))), 0)
    in_deltas = streamed(api, list(EVENTS[api](answer)))
    assert facts(in_deltas) == facts(whole.answer)
    assert in_deltas.flaws == whole.answer.flaws == ()


@pytest.mark.parametrize("api", APIS)
@given(events=st.lists(st.tuples(st.sampled_from(["", "message_start", "error", "x"]), st.binary(max_size=40))))
def test_arbitrary_bytes_never_raise(api: Api, events: list[tuple[str, bytes]]) -> None:
    assembling = assembler(api)
    for name, data in events:
        assembling.feed(name, data, 0)
    assembling.close(is_cut=False)
    assert assembling.answer.deltas == len(events)


WORDS: Final = [
    "choices", "delta", "index", "tool_calls", "function", "name", "arguments", "id", "content", "usage", "error", "type", "text",
    "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message", "item",
    "content_block", "input_json_delta", "partial_json", "tool_use", "response.output_item.added", "response.output_item.done",
    "response.function_call_arguments.delta", "output_index", "function_call", "response.completed", "response", "output", "input",
]  # fmt: skip
VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("api", APIS)
@given(events=st.lists(VALUES, max_size=6), body=VALUES)
def test_members_in_the_wrong_places_never_raise(api: Api, events: list[Any], body: Any) -> None:
    streamed(api, [("", event) for event in events])
    whole = assembler(api)
    whole.feed_body(body, 0)
    whole.close(is_cut=False)
    assert whole.answer.turn.role == "assistant"


@pytest.mark.parametrize("api", APIS)
@given(cut=st.integers(0, 12))
def test_a_stream_that_breaks_off_is_told_as_far_as_it_came(api: Api, cut: int) -> None:
    answer = model_answer("hello there", [{"id": "c", "name": "f", "arguments": '{"a": 1}'}], 3)
    events = list(EVENTS[api](answer))[:cut]
    received = streamed(api, events, is_cut=True)
    assert "hello there".startswith(received.turn.text)
    assert all('{"a": 1}'.startswith(use.arguments) for use in received.turn.uses)
    assert not received.is_whole or len(events) == len(list(EVENTS[api](answer)))


# Chat completions


def chunk(**delta: Any) -> tuple[str, Any]:
    return "", {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta}]}


def call(index: int | None, id: str = "", name: str = "", arguments: str = "") -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    return {**place, **({"id": id} if id else {}), "function": {**({"name": name} if name else {}), "arguments": arguments}}


DONE: Final = ("", "[DONE]")


def uses_of(*events: tuple[str, Any]) -> tuple[list[tuple[str, str, str]], tuple[str, ...]]:
    answer = streamed("chat", [*events, DONE])
    return [(use.id, use.name, use.arguments) for use in answer.turn.uses], answer.flaws


def test_parallel_tool_calls_are_told_apart_by_their_index() -> None:
    uses, flaws = uses_of(
        chunk(tool_calls=[call(0, "a", "f", '{"x'), call(1, "b", "g")]),
        chunk(tool_calls=[call(1, arguments='{"y":2}')]),
        chunk(tool_calls=[call(0, arguments='":1}')]),
    )
    assert uses == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]
    assert flaws == ()


def test_tool_calls_that_share_an_index_are_told_apart_by_their_ids() -> None:
    uses, flaws = uses_of(chunk(tool_calls=[call(0, "a", "f", "{}")]), chunk(tool_calls=[call(0, "b", "g", "[]")]))
    assert uses == [("a", "f", "{}"), ("b", "g", "[]")]
    assert flaws == ("index 0 has several tool calls",)


def test_a_tool_call_without_an_index_goes_on_with_the_last_one() -> None:
    uses, flaws = uses_of(
        chunk(tool_calls=[call(None, "a", "f", "{")]),
        chunk(tool_calls=[call(None, arguments="}")]),
        chunk(tool_calls=[call(None, "b", "g", "[]")]),
        chunk(tool_calls=[call(None, "a", arguments=" ")]),
    )
    assert uses == [("a", "f", "{} "), ("b", "g", "[]")]
    assert flaws == ("a tool call has no index",)


def test_a_name_that_is_repeated_is_one_and_one_that_is_cut_is_joined() -> None:
    uses, _ = uses_of(chunk(tool_calls=[call(0, "a", "f", "{")]), chunk(tool_calls=[call(0, "a", "f", "}")]))
    assert uses == [("a", "f", "{}")]
    uses, _ = uses_of(chunk(tool_calls=[call(0, "a", "get_")]), chunk(tool_calls=[call(0, "", "weather")]))
    assert uses == [("a", "get_weather", "")]


def test_a_delta_of_a_tool_call_that_none_began_is_kept_and_told() -> None:
    uses, flaws = uses_of(chunk(tool_calls=[call(7, arguments="{}")]))
    assert uses == [("", "", "{}")]
    assert flaws == ("a delta continues a tool call that never began",)


def test_arguments_that_are_an_object_are_read_as_json() -> None:
    uses, _ = uses_of(chunk(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": {"a": [1, "é"]}}}]))
    assert uses == [("", "f", '{"a":[1,"é"]}')]


def test_the_older_function_call_is_a_tool_use() -> None:
    uses, _ = uses_of(chunk(function_call={"name": "f", "arguments": '{"a'}), chunk(function_call={"arguments": '":1}'}))
    assert uses == [("", "f", '{"a":1}')]


def test_a_tool_call_in_text_is_found_wherever_its_tags_are_cut() -> None:
    text = 'Let me see. <tool_call>\n{"name": "fetch", "arguments": {"url": "https://x/"}}\n</tool_call>'
    for size in (1, 2, 5, 11, 500):
        pieces = [chunk(content=text[at : at + size]) for at in range(0, len(text), size)]
        answer = streamed("chat", [*pieces, chunk(content=" …"), DONE])
        expected = ToolUse(name="fetch", arguments='{"url": "https://x/"}', from_text=True, at_ns=len(pieces) - 1)
        assert answer.turn.uses == (expected,)


def test_a_tool_call_in_text_that_is_no_json_is_shown_as_it_is() -> None:
    answer = streamed("chat", [chunk(content="<tool_call>{oh</tool_call><tool_call>{cut"), DONE])
    assert answer.turn.uses == (ToolUse(arguments="{oh", from_text=True, at_ns=0),)


def test_tool_calls_in_a_text_are_looked_for_once_however_often_somebody_looks() -> None:
    assembling = assembler("chat")
    began_ns = process_time_ns()
    for at_ns in range(1_000):
        assembling.feed("", json.dumps(chunk(content='<tool_call>{"name":"f"}</tool_call>')[1]).encode(), at_ns)
        assert len(assembling.answer.turn.uses) == at_ns + 1
    assembling.feed("", json.dumps(chunk(content='<tool_call>{"name":"g"}')[1]).encode(), 1_000)
    assert len(assembling.answer.turn.uses) == 1_000
    assembling.close(is_cut=True)
    assert (assembling.answer.turn.uses[-1].name, assembling.answer.turn.uses[-1].at_ns) == ("g", 1_000)
    assert (process_time_ns() - began_ns) / 1e9 < MAX_SECONDS


def test_several_choices_are_kept_apart() -> None:
    two = {
        "choices": [{"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]
    }
    answer = streamed("chat", [("", two), DONE])
    assert (answer.turn.text, [turn.text for turn in answer.more], answer.finish) == ("a", ["b"], "stop")


def test_an_error_within_a_stream_is_told() -> None:
    answer = streamed("chat", [chunk(content="hel"), ("", {"error": {"type": "overloaded_error", "message": "Busy"}})])
    assert (answer.turn.text, answer.error, answer.is_whole) == ("hel", "overloaded_error: Busy", False)


def test_usage_in_a_last_chunk_without_choices_counts() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}}
    answer = streamed("chat", [chunk(content="a"), ("", {"choices": [], "usage": usage}), DONE])
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.cached_tokens) == (9, 4, 8)


def test_thinking_and_refusals_are_no_text() -> None:
    answer = streamed("chat", [chunk(reasoning_content="hm"), chunk(refusal="I can"), chunk(refusal="not"), DONE])
    assert (answer.turn.text, answer.turn.thinking, answer.turn.refusal) == ("", "hm", "I cannot")


def test_ten_thousand_tool_calls_without_an_index_take_linear_time() -> None:
    events = [chunk(tool_calls=[call(None, f"id{number}", "f", "{}")]) for number in range(10_000)]
    assert len(streamed("chat", [*events, DONE]).turn.uses) == 10_000


# Messages


def test_what_anthropic_counts_as_cached_is_part_of_the_input() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5, "output_tokens": 1}
    events = [
        ("message_start", {"type": "message_start", "message": {"id": "m1", "usage": usage}}),
        ("message_delta", {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 42}}),
        ("message_stop", {"type": "message_stop"}),
    ]
    counted = streamed("messages", events).usage
    assert (counted.input_tokens, counted.cached_tokens, counted.output_tokens) == (115, 100, 42)


def test_a_block_that_begins_twice_is_two_tool_uses() -> None:
    begin = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    }
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}}
    answer = streamed("messages", [("", begin), ("", delta), ("", begin), ("", delta)], is_cut=True)
    assert [use.arguments for use in answer.turn.uses] == ["{}", "{}"]
    assert answer.flaws == ("block 0 began twice",)


@pytest.mark.parametrize("api", ["responses", "messages"])
def test_events_of_types_that_nobody_knows_yet_are_no_flaw(api: Api) -> None:
    assert streamed(api, [("later", {"type": "later", "delta": "x"})], is_cut=True).flaws == ()
    assert streamed(api, [("", {"x": 1})], is_cut=True).flaws == ("an event has no type",)


def test_what_the_api_runs_itself_is_hosted() -> None:
    body = {
        "id": "m1",
        "content": [
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "text", "text": "found"}]},
            {"type": "tool_use", "id": "c", "name": "f", "input": {}},
        ],
    }
    whole = assembler("messages")
    whole.feed_body(body, 0)
    assert [(use.name, use.is_hosted) for use in whole.answer.turn.uses] == [("web_search", True), ("f", False)]
    assert [(returned.id, returned.text, returned.is_hosted) for returned in whole.answer.turn.returns] == [
        ("s", "found", True)
    ]


# Responses


def test_what_only_the_whole_response_at_the_end_says_is_filled_in() -> None:
    output = [
        {"type": "message", "content": [{"type": "output_text", "text": "hello"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ]
    done = {"type": "response.completed", "response": {"id": "r1", "status": "completed", "output": output}}
    answer = streamed("responses", [("", done)])
    assert (answer.turn.text, [use.name for use in answer.turn.uses], answer.is_whole) == ("hello", ["f"], True)


def test_a_response_that_ends_too_early_says_why() -> None:
    body = {"id": "r1", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}
    whole = assembler("responses")
    whole.feed_body(body, 0)
    assert whole.answer.finish == "max_output_tokens"

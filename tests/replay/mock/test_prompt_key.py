"""Equal prompts, and the explanation of a miss."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.compare.ignore import Ignore
from mcpspy.replay.json_values import read
from mcpspy.replay.mock.match_key import Strictness, match_key
from mcpspy.replay.mock.matching import RequestMatcher, Reuse
from mcpspy.replay.mock.miss import Miss
from mcpspy.replay.mock.prompt_key import PromptRules
from mcpspy.replay.mock.recorded_prompts import prompt_exchange, recorded_prompts
from mcpspy.transcript.http.head import Head
from mcpspy.transcript.http.transaction import Transaction
from mcpspy.transcript.llm.model_call import ModelCall
from mcpspy.transcript.model import Exchange
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.llm.traffic import CHAT, ModelTraffic, completion

USER = {"role": "user", "content": "杭州的天气"}


def use(name: str, arguments: str) -> dict[str, Any]:
    """Return a tool use of chat completions."""
    return {"id": name, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}


def chat(*turns: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gpt", "messages": [USER, *turns], **more}


def tool_return(name: str, text: str) -> dict[str, Any]:
    """Return the result of a tool use."""
    return {"role": "tool", "tool_call_id": name, "content": text}


def wants(*uses: dict[str, Any]) -> dict[str, Any]:
    """Return a turn of the model."""
    return {"role": "assistant", "content": None, "tool_calls": list(uses)}


def keys(*bodies: Any, strictness: Strictness = Strictness.DEFAULT, ignore: tuple[str, ...] = ()) -> set[str]:
    """Return the match keys of bodies."""
    rules = PromptRules(strictness, Ignore.of(ignore))
    values = [read(json.dumps(body).encode()) for body in bodies]
    return {match_key("chat.completions", rules.counted("chat.completions", value)) for value in values}


ONE = chat(wants(use("a", '{"city": "杭州"}')), tool_return("a", "晴"))
TWO = chat(wants(use("a", "{}"), use("b", "{}")), tool_return("a", "1"), tool_return("b", "2"))
ITEM = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"a": 1}'}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (chat(temperature=1), {"temperature": 1.0, **chat()}),
        (chat(), chat(user="ada", metadata={"run": "7"}, seed=4, prompt_cache_key="k", safety_identifier="s")),
        (
            chat(tools=[{"type": "function", "function": {"name": name}} for name in "ab"]),
            chat(tools=[{"type": "function", "function": {"name": name}} for name in "ba"]),
        ),
        (chat(tools=[{"name": "a"}, 7, None]), chat(tools=[None, {"name": "a"}, 7])),
        (ONE, chat(wants(use("b", '{"city":"杭州"}')), tool_return("b", "晴"))),
        (
            {"input": [ITEM, {"type": "function_call_output", "call_id": "call_1", "output": "2"}]},
            {
                "input": [
                    {**ITEM, "id": "fc_2", "call_id": "call_2", "arguments": '{"a":1.0}'},
                    {"type": "function_call_output", "call_id": "call_2", "output": "2"},
                ]
            },
        ),
        (
            {
                "messages": [
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"id": 1}}]}
                ]
            },
            {
                "messages": [
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_2", "name": "f", "input": {"id": 1.0}}]}
                ]
            },
        ),
    ],
)
def test_prompts_are_the_same_by_what_they_ask(one: Any, other: Any) -> None:
    assert len(keys(one, other)) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (chat(), chat(stream=True)),
        (chat(), {**chat(), "model": "gpt-mini"}),
        (chat(), chat(tools=[])),
        (ONE, chat(wants(use("a", '{"city":"北京"}')), tool_return("a", "晴"))),
        (TWO, chat(wants(use("a", "{}"), use("b", "{}")), tool_return("b", "1"), tool_return("a", "2"))),
        (chat(temperature=True), chat(temperature=1)),
        (
            {
                "messages": [
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"id": "x"}}]}
                ]
            },
            {
                "messages": [
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"id": "y"}}]}
                ]
            },
        ),
        ({"input": "a"}, {"input": "b"}),
    ],
)
def test_prompts_that_ask_something_else_are_others(one: Any, other: Any) -> None:
    assert len(keys(one, other)) == 2


def test_strictly_ids_and_names_of_who_asks_count() -> None:
    assert len(keys(chat(), chat(user="ada"), strictness=Strictness.STRICT)) == 2
    assert len(keys(ONE, chat(wants(use("b", '{"city": "杭州"}')), tool_return("b", "晴")), strictness=Strictness.STRICT)) == 2


def test_ignore_rules_begin_at_the_body() -> None:
    assert len(keys(chat(), {**chat(), "messages": [{"role": "user", "content": "?"}]}, ignore=("$.messages[0].content",))) == 1


def test_a_body_of_any_kind_can_be_matched() -> None:
    for body in (b"", b"[1]", b"{", b'"\xff"', b"null"):
        prompt = prompt_exchange(Head("POST /v1/chat/completions HTTP/1.1"), body)
        matcher = RequestMatcher([prompt], rules=PromptRules)
        assert isinstance(matcher.cursor().match(prompt.request), Exchange)


NAMES = st.sampled_from(
    ["messages", "input", "tools", "content", "tool_calls", "id", "call_id", "type", "function", "arguments", "x"]
)
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.sampled_from(["tool_use", "function_call", "[1", '{"a":1}']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


@given(ODD, ODD)
def test_whatever_is_asked_is_found_again_and_what_is_not_is_explained(one: Any, other: Any) -> None:
    first, second = (prompt_exchange(Head(f"POST {CHAT} HTTP/1.1"), json.dumps(body).encode()) for body in (one, other))
    matcher = RequestMatcher([first], rules=PromptRules)
    assert matcher.cursor().match(first.request) is first
    missed = matcher.cursor().match(second.request)
    assert missed is first or (isinstance(missed, Miss) and missed.sentence)


@given(st.binary(max_size=40))
def test_whatever_bytes_are_a_body_are_found_again(body: bytes) -> None:
    prompt = prompt_exchange(Head(f"POST {CHAT} HTTP/1.1"), body)
    assert RequestMatcher([prompt], rules=PromptRules).cursor().match(prompt.request) is prompt


def cursor_of(*prompts: dict[str, Any], **options: Any) -> Any:
    """Return a cursor of recorded prompts, all of them answered."""
    traffic = ModelTraffic()
    for prompt in prompts:
        traffic.post(prompt, CHAT).answer(200, completion("yes"))
    recorded = recorded_prompts(transcribe(traffic.records, keep_frames=True))
    return RequestMatcher([prompt.exchange for prompt in recorded], rules=PromptRules, **options).cursor()


def ask(prompt: dict[str, Any]) -> Any:
    return prompt_exchange(Head(f"POST {CHAT} HTTP/1.1"), json.dumps(prompt).encode()).request


def test_a_prompt_that_was_asked_twice_gets_one_answer_after_the_other_and_then_the_last() -> None:
    cursor = cursor_of(chat(), chat())
    assert [cursor.match(ask(chat())).row for _ in range(3)] == [1, 2, 2]


def test_a_prompt_that_was_asked_often_enough_is_a_miss_where_reuse_is_an_error() -> None:
    cursor = cursor_of(chat(), reuse=Reuse.ERROR)
    assert cursor.match(ask(chat())).row == 1
    assert "was recorded once and asked for once more" in cursor.match(ask(chat())).sentence


def test_a_miss_names_the_conversation_that_has_most_in_common_and_the_place() -> None:
    offers = [
        {"type": "function", "function": {"name": f"tool{number}", "parameters": {"type": "object"}}} for number in range(60)
    ]
    first, second = chat(tools=offers), chat(wants(use("a", "{}")), tool_return("a", "25°C"), tools=offers)
    missed = cursor_of(first, second).match(ask(chat(wants(use("a", "{}")), tool_return("a", "雨"), tools=offers)))
    assert isinstance(missed, Miss)
    assert missed.nearest is not None
    assert missed.nearest.row == 2
    assert missed.sentence == (
        "chat.completions gpt was never recorded with this prompt; the nearest is row 2, where"
        ' $.messages[2].content: "25°C" ≠ "雨"; --match default refuses it;'
        " --ignore '$.messages[2].content' or --match loose would let it match"
    )


def test_a_model_that_was_never_asked_is_a_place_where_prompts_differ() -> None:
    missed = cursor_of(chat()).match(ask({**chat(), "model": "other"}))
    assert '$.model: "gpt" ≠ "other"' in missed.sentence
    assert "--ignore '$.model'" in missed.sentence


def test_loosely_the_api_and_the_model_are_enough() -> None:
    cursor = cursor_of(chat(), {**chat(), "model": "small"}, strictness=Strictness.LOOSE)
    assert cursor.match(ask({"model": "small", "messages": []})).row == 2
    assert isinstance(cursor.match(ask({"model": "none", "messages": []})), Miss)


def test_what_follows_advice_is_a_hit() -> None:
    other = chat(wants(use("a", "{}")))
    missed = cursor_of(chat(), other).match(ask({**other, "temperature": 0.5}))
    assert cursor_of(chat(), other, ignore=missed.ignore).match(ask({**other, "temperature": 0.5})).row == 2


def test_rows_are_those_that_show_has() -> None:
    traffic = ModelTraffic()
    traffic.get("/v1/models").answer(200, {"data": []})
    traffic.ask("user: hi").answer(200, completion("hello"))
    transcript = transcribe(traffic.records, keep_frames=True)
    rows = [row.row for row in transcript.rows if isinstance(row, ModelCall | Transaction)]
    assert [prompt.exchange.row for prompt in recorded_prompts(transcript)] == rows == [1, 2]

"""Prompts as the three APIs spell them: turns, tool offers, tool uses and tool returns."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.transcript.llm.apis import prompt
from mcpspy.transcript.llm.prompt import Api, Prompt, ToolReturn, ToolUse, Turn
from tests.transcript.llm.test_answers import APIS, VALUES

IMAGE = "iVBORw0KGgo="


def read(api: Api, **body: Any) -> Prompt:
    return prompt(api, json.dumps(body).encode())


def chat(*messages: dict[str, Any]) -> tuple[Turn, ...]:
    return read("chat", model="m", messages=list(messages)).turns


def test_a_conversation_of_chat_completions_has_a_turn_for_each_message() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"city":"杭州"}'}}
    assert chat(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "杭州"}, {"type": "text", "text": "天气"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "Sunny"},
    ) == (
        Turn(role="system", text="Be brief."),
        Turn(role="user", text="杭州\n天气"),
        Turn(role="assistant", uses=(ToolUse(id="c", name="f", arguments='{"city":"杭州"}'),)),
        Turn(role="tool", returns=(ToolReturn(id="c", text="Sunny"),)),
    )


def test_the_older_functions_are_tool_uses_and_returns() -> None:
    call = {"name": "f", "arguments": "{}"}
    assert chat(
        {"role": "assistant", "content": None, "function_call": call}, {"role": "function", "name": "f", "content": "1"}
    ) == (
        Turn(role="assistant", uses=(ToolUse(name="f", arguments="{}"),)),
        Turn(role="tool", returns=(ToolReturn(name="f", text="1"),)),
    )


def test_tools_in_plain_text_are_found_in_a_prompt() -> None:
    prompt = read(
        "chat",
        messages=[
            {
                "role": "system",
                "content": '# Tools\n<tools>\n{"type": "function", "function": {"name": "fetch"}}\n</tools>\nGo.',
            },
            {"role": "user", "content": "What is it?"},
            {"role": "assistant", "content": '<tool_call>\n{"name": "fetch", "arguments": {"url": "x"}}\n</tool_call>'},
            {"role": "user", "content": "<tool_response>\nA page\n</tool_response>"},
        ],
    )
    assert [(offer.name, offer.from_text) for offer in prompt.offers] == [("fetch", True)]
    assert prompt.turns[2].uses == (ToolUse(name="fetch", arguments='{"url": "x"}', from_text=True),)
    assert prompt.turns[3] == Turn(role="tool", returns=(ToolReturn(text="A page", from_text=True),))


def test_a_turn_with_a_tool_return_and_a_question_is_the_users() -> None:
    (turn,) = chat({"role": "user", "content": "<tool_response>\nA page\n</tool_response>\nAnd now?"})
    assert (turn.role, turn.text, len(turn.returns)) == ("user", "And now?", 1)


PARTS = [
    ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}, "[image/png, 8 bytes]"),
    ({"type": "image_url", "image_url": {"url": "https://x/a.png"}}, "[image_url https://x/a.png]"),
    ({"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}"}, "[image/png, 8 bytes]"),
    ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}, "[image/png, 8 bytes]"),
    ({"type": "image", "source": {"type": "url", "url": "https://x/a.png"}}, "[image https://x/a.png]"),
    ({"type": "input_audio", "input_audio": {"data": IMAGE, "format": "wav"}}, "[wav, 8 bytes]"),
    ({"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{IMAGE}"}},
     "[application/pdf, a.pdf, 8 bytes]"),
    ({"type": "document", "title": "A", "source": {"type": "text", "media_type": "text/plain", "data": "abc"}},
     "[text/plain, 3 letters]"),
    ({"type": "oh"}, "[oh]"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "named"), PARTS)
def test_what_is_no_text_is_named_by_type_and_size(part: dict[str, Any], named: str) -> None:
    api: Api
    for api in ("chat", "messages"):
        assert read(api, messages=[{"role": "user", "content": [part]}]).turns[0].text == named


def test_a_tool_offer_has_its_schema_and_its_size() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}
    (offer,) = read("chat", messages=[], tools=[tool]).offers
    assert (offer.name, offer.description, offer.schema) == ("f", "d", schema)
    assert offer.bytes == len(json.dumps(tool, separators=(",", ":")))


def test_the_tool_results_of_messages_are_a_turn_of_the_tools() -> None:
    prompt = read(
        "messages",
        system=[{"type": "text", "text": "Be brief."}],
        messages=[
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look."},
                                              {"type": "tool_use", "id": "c", "name": "f", "input": {"n": 10**20}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "is_error": True,
                                          "content": [{"type": "text", "text": "no"}, {"type": "text", "text": "way"}]}]},
        ],
    )  # fmt: skip
    assert prompt.turns == (
        Turn(role="system", text="Be brief."),
        Turn(role="assistant", text="I look.", thinking="hm", uses=(ToolUse(id="c", name="f", arguments=f'{{"n":{10**20}}}'),)),
        Turn(role="tool", returns=(ToolReturn(id="c", text="no\nway", is_error=True),)),
    )


def test_tools_of_a_namespace_and_a_computer_are_offered_by_the_names_of_their_uses() -> None:
    space = {"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "lookup"}]}
    tools = [space, {"type": "computer_use_preview"}, {"type": "namespace", "name": "no"}]
    offers = read("responses", input="x", tools=tools).offers
    assert [(offer.name, offer.is_hosted) for offer in offers] == [("crm.lookup", False), ("computer", False), ("no", True)]
    use = {"type": "function_call", "call_id": "c", "namespace": "crm", "name": "lookup", "arguments": "{}"}
    assert read("responses", input=[use]).turns[0].uses == (ToolUse(id="c", name="crm.lookup", arguments="{}"),)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({"type": "computer_screenshot", "image_url": f"data:image/png;base64,{IMAGE}"}, "[image/png, 8 bytes]"),
        ([{"stdout": "a.txt", "stderr": ""}], '[{"stdout":"a.txt","stderr":""}]'),
    ],
)
def test_the_output_of_a_computer_and_of_a_shell_is_a_tool_return(output: Any, text: str) -> None:
    (turn,) = read("responses", input=[{"type": "computer_call_output", "call_id": "c", "output": output}]).turns
    assert turn.returns == (ToolReturn(id="c", text=text),)


def test_each_item_of_the_input_of_responses_is_a_turn() -> None:
    prompt = read(
        "responses",
        model="m",
        instructions="Be brief.",
        previous_response_id="r1",
        input=[
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "1"},
            {"type": "mcp_call", "id": "m1", "name": "g", "arguments": "{}", "output": "2"},
        ],
    )
    assert prompt.continues == "r1"
    assert prompt.turns == (
        Turn(role="system", text="Be brief."),
        Turn(role="user", text="hi"),
        Turn(role="assistant", thinking="hm"),
        Turn(role="assistant", uses=(ToolUse(id="c", name="f", arguments="{}"),)),
        Turn(role="tool", returns=(ToolReturn(id="c", text="1"),)),
        Turn(
            role="assistant",
            uses=(ToolUse(id="m1", name="g", arguments="{}", is_hosted=True),),
            returns=(ToolReturn(id="m1", text="2", is_hosted=True),),
        ),
    )


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"null", b"\xff", b'"x"', b"[" * 100_000])
def test_a_body_that_is_no_prompt_says_so(payload: bytes) -> None:
    for api in APIS:
        assert prompt(api, payload).flaw


KEYS = [
    "messages",
    "input",
    "system",
    "instructions",
    "tools",
    "functions",
    "role",
    "content",
    "tool_calls",
    "model",
    "type",
    "text",
]


@given(body=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4))
def test_members_in_the_wrong_places_never_raise(body: dict[str, Any]) -> None:
    for api in APIS:
        read(api, **body)

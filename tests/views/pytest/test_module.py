"""A capture as a module of tests: the calls, the assertions, and that captured text is never code."""

import ast
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.pytest.module import pytest_module
from mcpspy.views.pytest.sdk import SDK_1
from tests.capture.making import header
from tests.tiers import current_tier, slow_examples
from tests.transcript.dialogue import Dialogue, cancelled, error, make_header, notification, request, result, tool_call
from tests.views.test_hostile import HOSTILE

RECORDED_S = 1_795_214_221  # 2026-11-20T22:37:01Z
TEXT = {"type": "text", "text": "12 °C"}


def module(scene: Dialogue, name: str = "weather.mcpspy") -> str:
    """Return the module of a dialogue, after Python has parsed it."""
    transcript = transcribe(scene.records)
    text = "\n".join(pytest_module(transcript, transcript.rows, {0: name}))
    ast.parse(text.encode())
    return text


def opened() -> Dialogue:
    scene = Dialogue(header=make_header(label="weather", wall_ns=RECORDED_S * 1_000_000_000))
    scene.client(request(0, "initialize", {"protocolVersion": "2025-06-18"}))
    return scene.server(result(0, {"protocolVersion": "2025-06-18"})).client(notification())


def asked(line: dict[str, Any], answer: Any) -> str:
    """Return the statements about one request with the id 1 and its answer."""
    text = module(opened().client(request(2)).server(result(2, {"tools": []})).client(line).server(answer))
    return text.partition("== []\n\n")[2].rstrip()


def test_a_tool_is_called_with_its_recorded_arguments() -> None:
    assert 'result = await client.call_tool("forecast", {"city": "Ulm"})' in asked(
        tool_call(1, city="Ulm"), result(1, {"content": []})
    )


def test_a_call_follows_a_comment_with_its_row() -> None:
    assert asked(tool_call(1), result(1, {"content": []})).startswith("        # row 4: tools/call forecast\n")


def test_texts_structured_content_and_the_error_flag_are_asserted() -> None:
    answer = {"content": [TEXT], "structuredContent": {"celsius": 12}, "isError": True}
    assert asked(tool_call(1), result(1, answer)).splitlines()[2:] == [
        "        assert result.is_error",
        '        assert [block.text for block in result.content] == ["12 °C"]',
        '        assert result.structured_content == {"celsius": 12}',
    ]


def test_a_text_that_repeats_the_structured_content_is_not_asserted_twice() -> None:
    text = '{"celsius": 12, "wind": "from the north-east, 12 knots, gusts of 30"}'
    answer = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {"celsius": 12, "wind": "from the north-east, 12 knots, gusts of 30"},
    }
    assert ".text" not in asked(tool_call(1), result(1, answer))


def test_the_beginning_and_the_length_of_a_long_text_are_asserted() -> None:
    lines = asked(tool_call(1), result(1, {"content": [{"type": "text", "text": "x" * 10_000}]})).splitlines()
    assert lines[-2:] == [
        f'        assert result.content[0].text.startswith("{"x" * 80}")',
        "        assert len(result.content[0].text) == 10000",
    ]


@pytest.mark.parametrize(
    "made_up",
    ["2026-11-20T22:37:02Z", "at 2026-11-21 00:01", "1795214222", "1795214222123", "9b2e1f6c-3c1d-4f7e-8a55-0123456789ab"],
)
def test_a_generated_value_is_a_comment(made_up: str) -> None:
    answer = {"content": [], "structuredContent": {"is": made_up}}
    assert asked(tool_call(1), result(1, answer)).splitlines()[-2:] == [
        "        # Different each time:",
        f'        # assert result.structured_content == {{"is": "{made_up}"}}',
    ]


@pytest.mark.parametrize("lasting", ["2026-01-02T03:04:05Z", "1600000000", "v1.2.3", "2026-11-20"])
def test_an_old_date_is_asserted(lasting: str) -> None:
    answer = {"content": [], "structuredContent": {"is": lasting}}
    assert f'        assert result.structured_content == {{"is": "{lasting}"}}' in asked(tool_call(1), result(1, answer))


def test_an_error_is_expected_with_its_code_and_words() -> None:
    assert asked(tool_call(1), error(1, -32602)).splitlines()[1:] == [
        "        with pytest.raises(MCPError) as caught:",
        '            await client.call_tool("forecast")',
        "        assert caught.value.code == -32602",
        '        assert caught.value.message == "no"',
    ]


def test_a_cancelled_call_is_a_comment() -> None:
    scene = opened().client(tool_call(1)).client(cancelled(1))
    text = module(scene)
    assert "# row 3: tools/call forecast: not called here, it was cancelled" in text
    assert "await" not in text


def test_a_method_that_the_sdk_lacks_is_a_comment() -> None:
    assert asked(request(1, "acme/forecast", {}), result(1, {})) == (
        "        # row 4: acme/forecast: not called here, the SDK has no method for this"
    )


@pytest.mark.parametrize(
    ("method", "params", "answer", "expected"),
    [
        ("resources/list", {}, {"resources": [{"uri": "a://b"}]}, 'assert [str(item.uri) for item in result.resources] == ["a://b"]'),
        ("prompts/list", {"cursor": "2"}, {"prompts": []}, 'result = await client.list_prompts(cursor="2")'),
        ("resources/templates/list", {}, {"resourceTemplates": [{"uriTemplate": "a://{b}"}]}, "item.uri_template"),
        ("resources/read", {"uri": "a://b"}, {"contents": [{"uri": "a://b", "blob": "AAAA"}]}, "len(result.contents[0].blob) == 4"),
        ("prompts/get", {"name": "p", "arguments": {"a": "b"}}, {"messages": []}, 'await client.get_prompt("p", {"a": "b"})'),
        ("prompts/get", {"name": "p"}, {"messages": [{"role": "user", "content": TEXT}]}, '[0].content.text == "12 °C"'),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "b"}},
            {"completion": {"values": ["bc"]}},
            'assert result.completion.values == ["bc"]',
        ),
    ],
)  # fmt: skip
def test_each_method_is_called_through_the_sdk(method: str, params: Any, answer: Any, expected: str) -> None:
    assert expected in asked(request(1, method, params), result(1, answer))


def test_requests_of_the_server_are_answered_as_recorded() -> None:
    scene = opened().client(tool_call(1)).server(request(7, "elicitation/create", {"message": "?"}))
    text = module(scene.client(result(7, {"action": "decline"})).server(result(1, {"content": []})))
    assert 'return types.ElicitResult.model_validate({"action": "decline"})' in text
    assert "elicitation_callback=elicit" in text


def test_answers_that_differ_are_given_in_their_order() -> None:
    scene = opened().client(tool_call(1))
    for id, action in ((7, "decline"), (8, "cancel")):
        scene.server(request(id, "elicitation/create", {"message": "?"})).client(result(id, {"action": action}))
    text = module(scene.server(result(1, {"content": []})))
    assert 'elicit_answers = [{"action": "decline"}, {"action": "cancel"}]' in text
    assert "model_validate(elicit_answers.pop(0))" in text


def test_without_a_recorded_list_of_tools_the_list_is_not_requested() -> None:
    text = module(opened().client(tool_call(1)).server(result(1, {"content": []})))
    assert 'result = await call(client, "forecast")' in text
    assert "async def call(client, name, arguments=None):" in text


def test_version_1_of_the_sdk_is_supported() -> None:
    scene = opened().client(request(2, "resources/read", {"uri": "a://b"}))
    scene.server(result(2, {"contents": [{"uri": "a://b", "text": "x", "mimeType": "text/plain"}]}))
    scene.client(request(3)).server(result(3, {"tools": []})).client(tool_call(4)).server(request(7, "roots/list"))
    scene.client(result(7, {"roots": []})).server(result(4, {"content": [], "structuredContent": {"a": 1}}))
    transcript = transcribe(scene.client(tool_call(5)).server(error(5)).records)
    text = "\n".join(pytest_module(transcript, transcript.rows, {0: "weather"}, SDK_1))
    ast.parse(text)
    wanted = [
        "from mcp import ClientSession, McpError, types",
        "from mcp.client.stdio import stdio_client",
        "from pydantic import AnyUrl",
        "async with stdio_client(server.stdio_parameters()) as streams, ClientSession(",
        "list_roots_callback=roots) as client:",
        "await client.initialize()",
        'result = await client.read_resource(AnyUrl("a://b"))',
        'assert result.contents[0].mimeType == "text/plain"',
        "assert not result.isError",
        'assert result.structuredContent == {"a": 1}',
        "with pytest.raises(McpError) as caught:",
        "assert caught.value.error.code == -32601",
    ]
    assert [line for line in wanted if line not in text] == []


def test_captures_of_several_servers_become_several_tests() -> None:
    scenes = [opened().client(tool_call(1)).server(result(1, {"content": []})) for _ in range(2)]
    transcript = transcribe(*(scene.records for scene in scenes))
    text = "\n".join(pytest_module(transcript, transcript.rows, {0: "a", 1: "b"}))
    assert [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)] == [
        "test_weather",
        "test_weather_2",
    ]


# --- What was captured is never code ---


def words_everywhere(text: str) -> Dialogue:
    """Put `text` into every field that a module of tests reads."""
    scene = Dialogue(header=header(tapped={"transport": "stdio", "argv": [text]}))
    scene.client(request("0", "initialize", {"protocolVersion": text})).server(result("0", {"protocolVersion": text}))
    answers = [
        ("tools/list", {}, {"tools": [{"name": text}]}),
        ("resources/list", {"cursor": text}, {"resources": [{"uri": text}]}),
        ("tools/call", {"name": text, "arguments": {text: text}}, {"content": [{"type": text, "text": text * 9, "mimeType": text}]}),
        ("tools/call", {"name": text, "arguments": {}}, {"content": [], "structuredContent": {text: [text]}, "isError": True}),
        ("resources/read", {"uri": text}, {"contents": [{"uri": text, "text": text, "blob": text}]}),
        ("prompts/get", {"name": text}, {"messages": [{"role": text, "content": {"type": text, "text": text}}]}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": text}, "argument": {text: text}},
            {"completion": {"values": [text]}},
        ),
    ]  # fmt: skip
    for id, (method, params, answer) in enumerate(answers, 1):
        scene.client(request(id, method, params)).server(result(id, answer))
    scene.client(request(90, "tools/call", {"name": text})).server(request(91, "sampling/createMessage", {text: text}))
    scene.client(result(91, {"role": text, "model": text})).server(
        {"jsonrpc": "2.0", "id": 90, "error": {"code": -1, "message": text, "data": text}}
    )
    return scene


def code(text: str) -> list[str]:
    """Return the syntax tree of a module without the values of its literals, and without what depends on their length."""
    tree = ast.parse(text.encode())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = ""
    calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    return sorted({*calls, *names})


ALLOWED = {
    "Client", "MCPError", "asyncio", "asyncio.run", "client.call_tool", "client.complete", "client.get_prompt",
    "client.list_resources", "client.list_tools", "client.read_resource", "len", "mcpspy.serve", "pytest", "pytest.raises",
    "result.content[''].text.startswith",
    "result.contents[''].text.startswith", "result.messages[''].content.text.startswith", "server.stdio_parameters", "sorted", "str",
    "types", "types.CreateMessageResult.model_validate", "types.PromptReference.model_validate", "weather",
}  # fmt: skip

OF_PYTHON = {
    "end of a string": '"; import os; os.system("x") #',
    "end of the other string": "'); __import__('os').system('x') #",
    "end of three": '"""\nimport os\n"""',
    "backslash": "\\",
    "backslash before a quote": '\\" + __import__("os").name + "\\',
    "a format": "{__import__('os').name}",
    "a line of a comment": "x\nimport os\n",
    "form feed": "x\fimport os",
    "NUL": "\0import os",
}


@pytest.mark.parametrize("text", [*HOSTILE.values(), *OF_PYTHON.values()], ids=[*HOSTILE, *OF_PYTHON])
def test_hostile_words_call_nothing(text: str) -> None:
    assert set(code(module(words_everywhere(text), text))) <= ALLOWED


@settings(max_examples=slow_examples(current_tier()))
@given(st.text(st.characters(codec=None), min_size=1, max_size=20))
def test_captured_words_call_nothing(text: str) -> None:
    assert set(code(module(words_everywhere(text), text))) <= ALLOWED


MADE_UP = "8f3a9c01b2d4"


def words_around_a_value(text: str) -> Dialogue:
    """Put `text` around a value that the server made up, in answers of every kind, and in requests that send it back."""
    scene = opened()
    answers: list[tuple[str, Any, Any]] = [
        ("tools/list", {}, {"tools": []}),
        ("tools/call", {"name": "open"}, {"content": [{"type": "text", "text": f"{text}{MADE_UP}{text}"}]}),
        ("tools/call", {"name": "a", "arguments": {text: f"{text} {MADE_UP}"}}, {"structuredContent": {text: MADE_UP}}),
        ("resources/read", {"uri": f"x://{MADE_UP}"}, {"contents": [{"uri": f"x://{MADE_UP}", "text": f"{text} {MADE_UP}"}]}),
    ]  # fmt: skip
    for id, (method, params, answer) in enumerate(answers, 1):
        scene.client(request(id, method, params)).server(result(id, answer))
    return scene


def test_of_a_long_text_with_a_variable_the_recorded_length_is_compared() -> None:
    assert f"assert len(result.content[0].text) == {812 + 4}\n" in module(words_around_a_value(f" {'x' * 400} "))


def test_a_text_that_only_its_spelling_makes_long_is_compared_whole() -> None:
    text = module(words_around_a_value(f" {'{}' * 60} "))
    assert "len(result" not in text


@settings(max_examples=slow_examples(current_tier()))
@given(st.text(st.characters(codec=None), max_size=20))
def test_words_around_variables_call_nothing_and_are_what_was_captured(text: str) -> None:
    tree = ast.parse(module(words_around_a_value(text)).encode())
    fields = [node.value for node in ast.walk(tree) if isinstance(node, ast.FormattedValue)]
    assert all(isinstance(field, ast.Name) for field in fields)
    assert set(code(ast.unparse(tree))) <= ALLOWED | {"re", "re.search", "json", "json.loads"}
    known = {"re": re, "json": json, "result": SimpleNamespace(content=[SimpleNamespace(text=f"{text}{MADE_UP}{text}")])}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) != "result":
            known[ast.unparse(node.targets[0])] = eval(ast.unparse(node.value), known)
            assert known[ast.unparse(node.targets[0])] == MADE_UP
            break
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    spelled = [eval(ast.unparse(node), known) for node in texts]
    assert set(spelled) <= {f"{text}{MADE_UP}{text}", f"{text} {MADE_UP}", f"x://{MADE_UP}"}


@settings(max_examples=slow_examples(current_tier()))
@given(st.text(st.characters(codec=None), min_size=1, max_size=20))
def test_the_names_of_functions_are_names_whatever_a_server_is_called(text: str) -> None:
    scene = Dialogue(header=make_header(label=text))
    scene.client(tool_call(1)).server(result(1, {"content": []}))
    tree = ast.parse(module(scene).encode())
    assert all(node.name.isidentifier() and node.name.isascii() for node in tree.body if isinstance(node, ast.FunctionDef))


def test_no_calls_make_an_empty_test() -> None:
    assert "def test" not in "\n".join(pytest_module(Transcript(), [], {}))

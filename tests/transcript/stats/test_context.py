"""The context that tools take: definitions, calls and results, in bytes and in estimated tokens."""

from typing import Any

from mcpspy.transcript.stats.context import ServerCost, ToolCost, costs, result_text
from mcpspy.transcript.stats.tokens import estimated_tokens, weight
from tests.transcript.dialogue import Dialogue, error, request, result, tool_call

FORECAST = {"name": "forecast", "description": "The weather of tomorrow.", "inputSchema": {"type": "object"}}


def listed(dialogue: Dialogue, *tools: dict[str, Any]) -> Dialogue:
    return dialogue.client(request(900, "tools/list")).server(result(900, {"tools": list(tools)}))


def cost(dialogue: Dialogue) -> ServerCost:
    (server,) = costs(dialogue.transcript)
    return server


def tool(dialogue: Dialogue) -> ToolCost:
    (tool_cost,) = cost(dialogue).tools
    return tool_cost


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def test_a_definition_has_its_bytes_on_the_wire() -> None:
    raw = b'{"name": "a",  "title":"A"}'
    dialogue = Dialogue().client(request(1)).server(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[' + raw + b"]}}\n")
    assert tool(dialogue).definition_bytes == len(raw)


def test_the_model_is_told_name_description_and_schema_and_not_the_rest() -> None:
    more = {"title": "Forecast", "annotations": {"readOnlyHint": True}, "outputSchema": {"type": "object"}, "_meta": {"x": 1}}
    assert tool(listed(Dialogue(), FORECAST | more)).definition_tokens == tool(listed(Dialogue(), FORECAST)).definition_tokens


def test_a_list_that_is_fetched_twice_counts_once() -> None:
    assert (
        cost(listed(listed(Dialogue(), FORECAST), FORECAST)).definition_bytes
        == cost(listed(Dialogue(), FORECAST)).definition_bytes
    )


def test_results_are_added_up() -> None:
    dialogue = listed(Dialogue(), FORECAST)
    for id in (1, 2):
        dialogue.client(tool_call(id)).server(result(id, text("Sun. " * 200)))
    costs_of_tool = tool(dialogue)
    assert (costs_of_tool.calls, costs_of_tool.result_tokens) == (2, estimated_tokens(b"Sun. " * 400))


def test_result_bytes_are_those_on_the_wire() -> None:
    dialogue = Dialogue().client(tool_call(1)).server(b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
    assert tool(dialogue).result_bytes == 37


def test_an_error_has_bytes_and_no_result_for_the_model() -> None:
    costs_of_tool = tool(Dialogue().client(tool_call(1)).server(error(1)))
    assert (costs_of_tool.calls, costs_of_tool.result_bytes > 0, costs_of_tool.result_tokens) == (1, True, 0)


def test_the_largest_result_is_known_by_its_exchange() -> None:
    dialogue = Dialogue().client(tool_call(1)).server(result(1, text("ab"))).client(tool_call(2)).server(result(2, text("abc")))
    largest = tool(dialogue).largest
    assert largest is not None
    assert largest.request.id == "2"


def test_a_tool_that_was_called_and_never_listed_has_no_definition() -> None:
    costs_of_tool = tool(Dialogue().client(tool_call(1)))
    assert (costs_of_tool.name, costs_of_tool.definition, costs_of_tool.calls) == ("forecast", None, 1)


def test_tools_that_nobody_called_are_unused() -> None:
    dialogue = listed(Dialogue(), FORECAST, FORECAST | {"name": "alerts"}).client(tool_call(1)).server(result(1))
    assert [tool.name for tool in cost(dialogue).unused] == ["alerts"]


def test_instructions_stand_beside_the_tools() -> None:
    dialogue = Dialogue().client(request(0, "initialize")).server(result(0, {"instructions": "Be quick."}))
    server = cost(dialogue)
    assert (server.instructions_bytes, server.definition_bytes, server.listed) == (11, 0, False)


def response(value: Any) -> bytes:
    answer = Dialogue().client(tool_call(1)).server(result(1, value)).exchange.response
    assert answer is not None
    return result_text(answer)


def test_the_text_of_a_result_is_that_of_its_blocks() -> None:
    embedded = {"type": "resource", "resource": {"uri": "file:///a", "text": "three"}}
    assert response({"content": [{"type": "text", "text": "one\n“two”"}, embedded]}) == "one\n“two”\nthree".encode()


def test_structured_content_counts_where_there_is_no_text() -> None:
    assert response({"content": [], "structuredContent": {"a": 1}}) == b'{"a": 1}'
    assert response({**text("one"), "structuredContent": {"a": 1}}) == b"one"


def test_a_picture_is_no_text() -> None:
    assert response({"content": [{"type": "image", "data": "A" * 900, "mimeType": "image/png"}]}) == b""


def test_a_result_of_another_shape_has_what_text_it_has() -> None:
    assert response({"content": [7, {"type": "text", "text": "one"}, {"text": 3}]}) == b"one"
    assert response({"content": "one"}) == b""
    assert response([]) == b""


def test_of_very_many_results_a_part_is_weighed_and_the_rest_is_taken_to_be_alike() -> None:
    dialogue, whole = Dialogue(), 0
    for id in range(6000):
        words = "The sun shines. " * (id % 7)
        whole += weight(words.encode())
        dialogue.client(tool_call(id)).server(result(id, text(words)))
    assert abs(tool(dialogue).result_tokens / (whole / 1000) - 1) < 0.01
